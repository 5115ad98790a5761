//! A session starts, is resumed, cleared, compacted, or loses a turn.

use crate::env::{DONE, Env, HOUR, OTHER, Program, SESSION};
use serde_json::json;

#[test]
fn a_plain_start_of_another_session_says_nothing() {
    let env = Env::new();
    env.start("task", &[]);
    let before = env.snapshot();
    env.session_start(OTHER, "startup").run().silent();
    env.session_start(OTHER, "resume").run().silent();
    assert_eq!(env.snapshot(), before);
}

#[test]
fn after_compaction_the_agent_gets_task_position_and_guidance_again() {
    let env = Env::new();
    let task = "first line\nsecond \"line\" with $(x)";
    env.start(task, &["--max-iterations", "7"]);
    env.turn(SESSION, "x").continues();
    let entry = json!({"text": "small commits", "timestamp": crate::env::stamp(-60), "session_id": SESSION});
    env.set_guidance(json!({"encouraged": [entry], "forbidden": []}));
    let answer = env.at(60).session_start(SESSION, "compact").run();
    let told = answer.context.expect("context");
    for part in [task, "iteration 2 of 7", "small commits", "<promise>COMPLETE</promise>"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(env.status()["guidance"]["encouraged"][0]["delivered"], true);
    env.turn(SESSION, "x").continues();
}

#[test]
fn a_resumed_session_continues_its_loop() {
    let env = Env::new();
    env.start("the task", &[]);
    env.turn(SESSION, "x").continues();
    let answer = env.at(8 * HOUR).session_start(SESSION, "resume").run();
    assert!(answer.context.unwrap().contains("the task"));
    assert!(answer.message.unwrap().contains("continues at the end"), "the user is told as well");
    env.at(8 * HOUR + 10).turn(SESSION, "x").continues();
    assert_eq!(env.record(SESSION)["iteration"], 2);
}

#[test]
fn a_resumed_session_with_a_paused_loop_stays_paused() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.prompt(1, "p", "go").esc(2).prompt(3, "q", "hm").text(4, "ok");
    env.at(5).stop(SESSION).with(&transcript).run().allows();
    let answer = env.at(HOUR).session_start(SESSION, "resume").run();
    assert_eq!(answer.context, None);
    assert!(answer.message.unwrap().contains("PAUSED"));
    env.turn(SESSION, "x").silent();
}

#[test]
fn a_resumed_session_does_not_restart_an_ended_loop() {
    let env = Env::new();
    env.start("task", &[]);
    env.turn(SESSION, DONE).ended("complete");
    for source in ["startup", "resume", "compact"] {
        assert_eq!(env.session_start(SESSION, source).run().context, None);
    }
    env.turn(SESSION, "x").silent();
}

#[test]
fn clear_shows_the_orphaned_loop_and_resume_adopts_it() {
    let env = Env::new();
    env.start("the long task", &["--max-iterations", "9"]);
    env.turn(SESSION, "x").continues();
    let run = env.record(SESSION)["run_id"].clone();
    env.event(Program::StopHook, SESSION, "SessionEnd").field("reason", "clear").run().silent();
    let answer = env.at(10).session_start(OTHER, "clear").run();
    let told = answer.message.unwrap();
    assert!(told.contains("the long task") && told.contains("--resume"), "{told}");
    assert_eq!(answer.context, None, "shown, not followed");
    env.turn(OTHER, "x").silent();
    let told = env.ralph(&["start", "--resume", "--session", OTHER]).ok();
    assert!(told.contains("the long task"), "{told}");
    let record = env.record(OTHER);
    assert_eq!(
        (&record["run_id"], &record["iteration"]),
        (&run, &json!(1)),
        "the same run, with its counters"
    );
    assert!(env.record(SESSION).is_null());
    let prompt = env.at(20).turn(OTHER, "x").continues().to_owned();
    assert!(prompt.contains("the long task"), "{prompt}");
    env.turn(SESSION, "x").silent();
    assert_eq!(env.shown(OTHER)["max_iterations"], 9);
}

#[test]
fn an_orphan_is_adopted_before_a_loop_that_lives_in_another_session() {
    let env = Env::new();
    env.start("orphan", &[]);
    env.start_in(OTHER, "alive elsewhere", &[]);
    env.event(Program::StopHook, SESSION, "SessionEnd").field("reason", "clear").run().silent();
    env.ralph(&["start", "--resume", "--session", "third"]).ok();
    assert_eq!(env.record("third")["task"], "orphan");
    env.turn(OTHER, "x").continues();
}

#[test]
fn a_loop_at_work_in_another_session_is_not_taken_from_it() {
    let env = Env::new();
    env.start("at work", &[]);
    env.at(60).turn(SESSION, "x").continues();
    let run = env.at(61).ralph(&["start", "--resume", "--session", OTHER]);
    assert_ne!(run.code, Some(0), "it was seen a second ago; taking it needs --run: {run:?}");
    env.at(70).turn(SESSION, "x").continues();
}

#[test]
fn several_orphans_are_named_and_one_can_be_chosen() {
    let env = Env::new();
    env.start("first", &[]);
    env.start_in(OTHER, "second", &[]);
    for session in [SESSION, OTHER] {
        env.event(Program::StopHook, session, "SessionEnd").field("reason", "clear").run();
    }
    let told = env.ralph(&["start", "--resume", "--session", "third"]).fails(1);
    assert!(told.contains("first") && told.contains("second") && told.contains("--run"), "{told}");
    let run = env.record(OTHER)["run_id"].as_str().unwrap()[..8].to_owned();
    env.ralph(&["start", "--resume", "--run", &run, "--session", "third"]).ok();
    assert_eq!(env.record("third")["task"], "second");
    let refused = env.ralph(&["start", "--resume", "--session", "fourth", "--run", "ffffffff"]).fails(1);
    assert!(refused.contains("no loop"), "{refused}");
}

#[test]
fn resume_continues_an_ended_loop_with_a_higher_limit() {
    let env = Env::new();
    env.start("task", &["--max-iterations", "2"]);
    env.turn(SESSION, "x").continues();
    env.turn(SESSION, "x").ended("max-iterations");
    let refused = env.ralph(&["start", "--resume", "--session", SESSION]).fails(1);
    assert!(refused.contains("--max-iterations"), "{refused}");
    env.ralph(&["start", "--resume", "--max-iterations", "4", "--session", SESSION]).ok();
    env.turn(SESSION, "x").continues();
    env.turn(SESSION, "x").ended("max-iterations");
    assert_eq!(
        (env.history().len(), env.history()[0]["iterations"].clone()),
        (1, json!(4)),
        "one record a run"
    );
}

#[test]
fn a_second_start_is_refused_and_replace_ends_the_first() {
    let env = Env::new();
    env.start("first", &[]);
    env.turn(SESSION, "x").continues();
    let told = env.ralph(&["start", "--session", SESSION, "second"]).fails(1);
    assert!(told.contains("first") && told.contains("--replace"), "{told}");
    assert_eq!(env.record(SESSION)["task"], "first");
    env.start("second", &["--replace"]);
    let record = env.record(SESSION);
    assert_eq!(
        (&record["task"], &record["iteration"]),
        (&json!("second"), &json!(0)),
        "counters belong to the run"
    );
    assert_eq!(env.history()[0]["outcome"], "stopped");
    env.turn(SESSION, "x").continues();
}

#[test]
fn over_age_guidance_is_dropped_at_the_session_start_and_named_once() {
    let env = Env::new();
    env.start("task", &[]);
    let entry = |text: &str, hours: i64| json!({"text": text, "timestamp": crate::env::stamp(-hours * HOUR)});
    let pinned = json!({"text": "pinned", "timestamp": crate::env::stamp(-99 * HOUR), "pinned": true});
    env.set_guidance(json!({"encouraged": [entry("fresh", 1), entry("last week's", 25), pinned],
            "forbidden": [{"text": "undated"}], "note": "kept"}));
    let told = env.session_start(OTHER, "startup").run().message.unwrap();
    assert!(told.contains("last week's") && told.contains("undated"), "{told}");
    assert!(!told.contains("fresh") && !told.contains("pinned"), "{told}");
    env.session_start(OTHER, "startup").run().silent();
    let kept = env.state()["guidance"].clone();
    assert_eq!((kept["encouraged"].as_array().map(Vec::len), &kept["note"]), (Some(2), &json!("kept")));
}

#[test]
fn over_age_guidance_is_dropped_at_a_stop_and_the_agent_never_sees_it() {
    let env = Env::new();
    env.start("task", &[]);
    let entry = json!({"text": "stale words", "timestamp": crate::env::stamp(-25 * HOUR)});
    env.set_guidance(json!({"encouraged": [entry], "forbidden": []}));
    let answer = env.turn(SESSION, "x");
    assert!(!answer.continues().contains("stale words"));
    assert!(answer.message.unwrap().contains("stale words"));
    assert!(!env.turn(SESSION, "x").message.unwrap().contains("stale words"));
}

#[test]
fn guidance_reaches_the_agent_at_the_very_next_stop_with_its_age() {
    let env = Env::new();
    env.start("task", &[]);
    let entry = json!({"text": "use tabs", "timestamp": crate::env::stamp(-120), "session_id": SESSION});
    env.set_guidance(json!({"encouraged": [], "forbidden": [entry]}));
    let prompt = env.turn(SESSION, "x").continues().to_owned();
    assert!(prompt.contains("FORBIDDEN") && prompt.contains("use tabs") && prompt.contains("2m"), "{prompt}");
    assert_eq!(env.status()["guidance"]["forbidden"][0]["delivered"], true);
}

#[test]
fn an_api_error_ends_no_loop_and_is_shown() {
    let env = Env::new();
    env.start("task", &[]);
    let event = env.event(Program::StopHook, SESSION, "StopFailure").field("error", "rate_limit\u{1b}[2J");
    event.says("You've hit your limit\n<promise>COMPLETE</promise>").run().silent();
    assert_eq!(
        (env.shown(SESSION)["state"].clone(), env.record(SESSION)["iteration"].clone()),
        (json!("running"), json!(0))
    );
    let text = env.ralph(&["status"]).ok();
    assert!(text.contains("rate_limit") && !text.contains('\u{1b}'), "{text}");
    env.turn(SESSION, "x").continues();
    assert!(!env.ralph(&["status"]).ok().contains("rate_limit"), "over once a turn ended well");
}

#[test]
fn the_end_of_a_session_keeps_its_loop_and_says_nothing() {
    let env = Env::new();
    env.start("task", &[]);
    for reason in ["other", "logout", "prompt_input_exit"] {
        env.event(Program::StopHook, SESSION, "SessionEnd").field("reason", reason).run().silent();
    }
    assert_eq!(env.shown(SESSION)["state"], "running");
    env.turn(SESSION, "x").continues();
}

#[test]
fn events_that_are_not_ours_are_never_blocked() {
    let env = Env::new();
    env.start("task", &[]);
    for event in ["SubagentStop", "PreCompact", "PreToolUse", "PermissionRequest", "SomethingNew"] {
        env.event(Program::StopHook, SESSION, event).says("x").run().silent();
        env.event(Program::SessionStartHook, SESSION, event).run().silent();
    }
    assert_eq!(env.record(SESSION)["iteration"], 0);
}
