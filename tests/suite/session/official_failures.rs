//! The twelve known failures of the official ralph-loop plugin's hook: none of them happens here.

use crate::env::{DONE, Env, OTHER, Program, SESSION};
use serde_json::json;

#[test]
fn an_empty_session_id_has_no_loop() {
    let env = Env::new();
    let refused = env.ralph(&["start", "--session", "", "trap everybody"]).fails(64);
    assert!(refused.contains("session"), "{refused}");
    env.ralph(&["start", "no session at all"]).fails(64);
    assert!(!env.exists(".claude"), "a refused start leaves nothing: {:?}", env.list(".claude"));
    env.start("mine alone", &[]);
    for session in [json!(""), json!("  "), json!(null), json!(OTHER)] {
        env.stop(SESSION).field("session_id", session).says("hello").run().silent();
    }
    assert_eq!(env.record(SESSION)["iteration"], 0);
    // Not even if the file has a loop under the empty id.
    env.edit_state(|state| state["loops"][""] = state["loops"][SESSION].clone());
    env.stop("").says("hello").run().silent();
}

#[test]
fn an_inactive_loop_is_not_followed() {
    let env = Env::new();
    env.start("task", &[]);
    env.ralph(&["stop", "--session", SESSION]).ok();
    env.turn(SESSION, "still here").ended("stopped");
    env.turn(SESSION, "and again").silent();
    env.edit_state(|state| state["loops"][SESSION]["state"] = json!("stopped"));
    env.turn(SESSION, "and again").silent();
    assert_eq!(env.record(SESSION)["iteration"], 0);
}

#[test]
fn a_promise_that_is_not_yet_in_the_transcript_counts() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.prompt(1, "p", "go").text(2, "starting");
    env.at(60).stop(SESSION).with(&transcript).says(DONE).run().ended("complete");
    assert_eq!(env.shown(SESSION)["outcome"], "complete");
}

#[test]
fn a_tag_mentioned_in_prose_is_no_promise() {
    let env = Env::without_breaker();
    env.start("task", &[]);
    for message in [
        "I will print <promise>COMPLETE</promise> when finished.",
        "<promise>COMPLETE</promise> comes later, first the tests.",
        "Plan:\n```\n<promise>COMPLETE</promise>\n```\nNext step follows.",
        "```\n<promise>COMPLETE</promise>\n```",
        "> <promise>COMPLETE</promise>",
        "<promise>COMPLETE</promise>\n\nNot yet, though.",
    ] {
        env.turn(SESSION, message).continues();
    }
    assert_eq!(env.shown(SESSION)["state"], "running");
}

#[test]
fn the_second_of_two_tags_is_seen() {
    let env = Env::new();
    env.start("task", &[]);
    env.turn(SESSION, "<promise>ALMOST</promise>\nand now:\n<promise>COMPLETE</promise>").ended("complete");
}

#[test]
fn no_assistant_line_in_the_transcript_ends_nothing() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    transcript.prompt(1, "p", "go").entry(2, "system", json!({"content": "note"}));
    env.at(30).stop(SESSION).with(&transcript).run().continues();
    assert_eq!(env.record(SESSION)["iteration"], 1);
    assert_eq!(env.shown(SESSION)["state"], "running");
}

#[test]
fn a_control_character_breaks_neither_promise_nor_answer() {
    let env = Env::new();
    env.start("ta\u{1}sk \u{1b}[31m", &[]);
    let answer = env.turn(SESSION, "bell \u{7} and escape \u{1b}[2J");
    answer.continues();
    assert!(!answer.message.unwrap().contains('\u{1b}'), "escape codes never reach a terminal");
    env.turn(SESSION, "fine\u{0}\u{8}\n<promise>COM\u{1}PLETE</promise>").ended("complete");
}

#[test]
fn an_invisible_character_beside_the_promise_does_not_hide_it() {
    for message in
        ["ok\n<promise>COMPLETE</promise>\u{1}", "ok\n\u{feff}<promise>COMPLETE</promise>\u{200b}\n"]
    {
        let env = Env::new();
        env.start("task", &[]);
        env.turn(SESSION, message).ended("complete");
    }
}

#[test]
fn zero_eight_is_eight() {
    let env = Env::without_breaker();
    env.start("task", &["--max-iterations", "08"]);
    assert_eq!(env.shown(SESSION)["max_iterations"], 8);
    for turn in 1..8 {
        env.at(turn).turn(SESSION, "working").continues();
    }
    env.at(9).turn(SESSION, "working").ended("max-iterations");
}

#[test]
fn quotes_in_the_promise_are_kept() {
    let env = Env::new();
    let promise = r#"it's "really" done; $(rm -rf) `x` \n *"#;
    env.start("task", &["--promise", promise]);
    let prompt = env.turn(SESSION, DONE).continues().to_owned();
    assert!(prompt.contains(promise), "the agent is told the exact text: {prompt}");
    env.turn(SESSION, &format!("ok\n<promise>{promise}</promise>")).ended("complete");
}

#[test]
fn a_line_of_dashes_in_the_task_is_kept() {
    let env = Env::new();
    let task = "first part\n---\nactive: false\n---\nlast part";
    env.start(task, &[]);
    assert_eq!(env.record(SESSION)["task"], task);
    env.turn(SESSION, "x").continues();
    let told = env.session_start(SESSION, "compact").run().context.expect("the task again");
    assert!(told.contains(task), "{told}");
}

#[test]
fn a_hook_in_a_subdirectory_finds_the_loop() {
    let env = Env::git();
    env.start("task", &[]);
    let deep = env.path("src/deep/er");
    std::fs::create_dir_all(&deep).unwrap();
    let event = env.stop(SESSION).says("x").field("cwd", deep.to_str().unwrap());
    event.call().without("CLAUDE_PROJECT_DIR").cwd(&deep).run().answer().continues();
    assert_eq!(env.record(SESSION)["iteration"], 1);
    assert!(!deep.join(".claude").exists());
}

#[test]
fn both_forms_of_a_flag_limit_the_loop() {
    for form in [&["--max-iterations=3"][..], &["--max-iterations", "3"]] {
        let env = Env::new();
        let mut args = vec!["start", "--session", SESSION, "fix", "it"];
        args.extend(form);
        let told = env.ralph(&args).ok();
        assert!(told.contains("3 iterations"), "the cap is echoed: {told}");
        assert_eq!(env.record(SESSION)["task"], "fix it");
        assert_eq!(env.shown(SESSION)["max_iterations"], 3);
        env.call(Program::Ralph).args(&["stop"]).run().ok();
        env.types(OTHER, "start", &format!("fix it {}", form.join(" ")));
        assert_eq!(
            (&env.record(OTHER)["task"], &env.shown(OTHER)["max_iterations"]),
            (&json!("fix it"), &json!(3))
        );
    }
}
