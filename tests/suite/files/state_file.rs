//! The state file: what is kept, what is refused, and who may read it.

use crate::env::{Env, HOUR, OTHER, SESSION, mode};
use serde_json::{Value, json};
use std::fs;

#[test]
fn state_lock_and_records_are_readable_by_the_user_only() {
    let env = Env::new();
    env.start("task", &[]);
    env.turn(SESSION, "<promise>BLOCKED:no key</promise>").ended("blocked");
    for name in [".claude/ralph-state.json", ".claude/ralph-state.lock", "ralph/blocked.txt"] {
        assert_eq!(mode(&env.path(name)), 0o600, "{name}");
    }
    let history = env.data().join("history");
    assert_eq!(mode(&history), 0o700);
    for entry in fs::read_dir(history).unwrap().flatten() {
        assert_eq!(mode(&entry.path()), 0o600, "{:?}", entry.path());
    }
}

#[test]
fn a_state_file_others_could_read_becomes_private_at_the_next_write() {
    let env = Env::new();
    env.start("task", &[]);
    let path = env.path(".claude/ralph-state.json");
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    env.turn(SESSION, "x").continues();
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn nothing_is_written_when_nothing_changed() {
    let env = Env::new();
    env.start("task", &[]);
    env.turn(SESSION, "<promise>COMPLETE</promise>").ended("complete");
    let before = env.snapshot();
    env.at(50).turn(SESSION, "chatting on").silent();
    env.turn(OTHER, "somebody else").silent();
    env.session_start(OTHER, "startup").run().silent();
    env.session_start(OTHER, "clear").run().silent();
    env.ralph(&["status"]).ok();
    env.ralph(&["history"]).ok();
    env.ralph(&["config"]).ok();
    env.ralph(&["stop"]).ok();
    assert_eq!(env.snapshot(), before);
}

#[test]
fn a_file_formatted_by_hand_keeps_its_format() {
    let env = Env::new();
    env.start("task", &[]);
    env.turn(SESSION, "<promise>COMPLETE</promise>").ended("complete");
    env.edit_state(|state| state["mine"] = json!("kept"));
    let before = env.snapshot();
    env.ralph(&["stop"]).ok();
    assert_eq!(env.snapshot(), before, "no loop was running: nothing changed, nothing is written");
}

#[test]
fn a_session_without_a_loop_leaves_no_file() {
    let env = Env::git();
    let before = env.snapshot();
    env.turn(SESSION, "<promise>COMPLETE</promise>").silent();
    for source in ["startup", "resume", "clear", "compact"] {
        env.session_start(SESSION, source).run().silent();
    }
    assert_eq!(env.snapshot(), before);
    assert!(!env.exists(".claude"));
}

#[test]
fn unknown_fields_survive_a_rewrite() {
    let env = Env::new();
    env.start("task", &[]);
    env.edit_state(|state| {
        state["tomorrow"] = json!({"a": [1, null, 2.5]});
        state["loops"][SESSION]["colour"] = json!({"of": "magic"});
        state["loops"][SESSION]["circuit"]["repetition"] = json!(2);
        state["loops"]["from-a-newer-ralph"] = json!({"run_id": "n", "shape": "odd"});
        state["loops"]["no-object"] = json!(null);
    });
    env.at(5).turn(SESSION, "x").continues();
    let state = env.state();
    assert_eq!(state["tomorrow"], json!({"a": [1, null, 2.5]}));
    assert_eq!(state["loops"][SESSION]["colour"], json!({"of": "magic"}));
    assert_eq!(state["loops"][SESSION]["circuit"]["repetition"], 2);
    assert_eq!(state["loops"]["from-a-newer-ralph"], json!({"run_id": "n", "shape": "odd"}));
    assert!(state["loops"].as_object().unwrap().contains_key("no-object"));
    assert_eq!(state["loops"][SESSION]["iteration"], 1);
}

#[test]
fn unknown_fields_survive_inside_the_parts_of_a_loop() {
    let env = Env::new();
    env.start("task", &[]);
    env.edit_state(|state| {
        for part in ["usage", "timing", "session", "pending", "told", "given"] {
            state["loops"][SESSION][part]["later"] = json!("kept");
        }
    });
    let transcript = env.transcript();
    transcript.worked(1);
    env.at(20).stop(SESSION).with(&transcript).says("x").run().continues();
    for part in ["usage", "timing", "session", "pending", "told", "given"] {
        assert_eq!(env.record(SESSION)[part]["later"], "kept", "{part}");
    }
}

#[test]
fn an_invalid_guidance_entry_does_not_hide_the_others() {
    let env = Env::new();
    env.start("task", &[]);
    let good = json!({"text": "small commits", "timestamp": "2026-11-16T07:59:00Z", "session_id": SESSION});
    env.set_guidance(json!({"encouraged": [null, good.clone()], "forbidden": [good]}));
    env.at(5).turn(SESSION, "x").continues();
    let kept = env.state()["guidance"]["encouraged"].to_string();
    assert!(kept.contains("small commits"), "the user's words are lost: {kept}");
}

#[test]
fn nulls_and_wrong_types_in_a_loop_are_read_as_defaults() {
    let env = Env::new();
    env.start("task", &[]);
    env.edit_state(|state| {
        let record = &mut state["loops"][SESSION];
        for name in ["iteration", "stuck_count", "accumulated_runtime_seconds", "last_hook_timestamp"] {
            record[name] = json!(null);
        }
        record["circuit"] = json!("closed");
        record["session"] = json!({"transcript": [1], "waiting": 7});
        record["usage"] = json!({"input_tokens": null});
        record["timing"]["clock"] = json!({"marks": "x"});
        state["guidance"] = json!(null);
        state["constraints"] = json!(7);
    });
    env.at(100).turn(SESSION, "x").continues();
    let record = env.record(SESSION);
    assert_eq!((&record["iteration"], &record["accumulated_runtime_seconds"]), (&json!(1), &json!(0.0)));
    env.ralph(&["status"]).ok();
}

#[test]
fn a_file_from_a_newer_version_is_read_and_never_written() {
    let env = Env::new();
    env.start("task", &[]);
    env.edit_state(|state| state["version"] = json!(99));
    let before = env.read(".claude/ralph-state.json");
    let told = env.turn(SESSION, "x");
    assert!(told.allows().contains("newer"), "it fails open and says so: {told:?}");
    env.turn(OTHER, "x").silent();
    let told = env.session_start(SESSION, "resume").run();
    assert_eq!((told.block, told.context), (None, None));
    let refused = env.ralph(&["start", "--session", OTHER, "another"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("newer"), "{refused:?}");
    let refused = env.ralph(&["stop"]);
    assert!(refused.stderr.contains("newer"), "{refused:?}");
    assert_eq!(env.shown(SESSION)["state"], "running", "it can still be read");
    assert_eq!(env.read(".claude/ralph-state.json"), before);
}

#[test]
fn a_damaged_file_is_moved_aside_and_reported() {
    for damage in ["", "{\"version\":1,\"loops\":{", "[]", "\u{0}\u{0}", "{\"loops\":[1]}"] {
        let env = Env::new();
        env.start("task", &[]);
        env.write(".claude/ralph-state.json", damage);
        let told = env.turn(SESSION, "x");
        assert!(told.allows().contains("ralph-state.json.corrupt-"), "{damage:?}: {told:?}");
        let aside: Vec<_> = env
            .list(".claude")
            .into_iter()
            .filter(|name| name.starts_with("ralph-state.json.corrupt-"))
            .collect();
        assert_eq!(aside.len(), 1, "{damage:?}");
        assert_eq!(env.read(&format!(".claude/{}", aside[0])), damage, "never deleted, never changed");
        env.at(1).turn(SESSION, "x").silent();
        env.start("again", &[]);
        env.turn(SESSION, "x").continues();
    }
}

#[test]
fn a_damaged_record_costs_only_its_own_loop() {
    let env = Env::new();
    env.start("task", &[]);
    env.ralph(&["start", "--session", OTHER, "another"]).ok();
    let file = ".claude/ralph-state.json";
    let damaged = env.read(file).replacen("\"iteration\": 0,", "\"iteration\": 0,,", 1);
    env.write(file, &damaged);
    env.turn(OTHER, "x").continues();
    assert!(env.read(file).contains("\"iteration\": 0,,"), "an unreadable record is kept to the letter");
    for seen_by in ["status", "doctor"] {
        let shown = env.ralph(&[seen_by]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains("is damaged; the other loops"), "{seen_by}: {shown}");
    }
    let told = env.turn(SESSION, "x");
    let told = told.allows();
    assert!(told.contains("was damaged") && told.contains("ralph-state.json.corrupt-"), "{told}");
    let aside = env.list(".claude").into_iter().find(|name| name.contains(".corrupt-")).unwrap();
    assert!(env.read(&format!(".claude/{aside}")).contains("\"iteration\": 0,,"), "a copy is kept");
    env.turn(OTHER, "x").continues();
    env.start("again", &[]);
    env.turn(SESSION, "x").continues();
}

/// A lost bracket or a cut file does not tell where the record ends.
#[test]
fn a_record_that_breaks_the_file_costs_only_its_own_loop() {
    let file = ".claude/ralph-state.json";
    for (what, whole, broken) in
        [("bracket", "\n    },\n", "\n    ,\n"), ("quote", "\"in-session\"", "\"in-session")]
    {
        let env = Env::new();
        env.start("task", &[]);
        env.start_in(OTHER, "another", &[]);
        env.guidance(&["forbid", "push"]).ok();
        let damaged = env.read(file).replacen(whole, broken, 1);
        env.write(file, &damaged);
        let told = env.guidance(&["encourage", "small commits"]).ok();
        assert!(told.contains("Note: ") && told.contains("ralph-state.json.corrupt-"), "{what}: {told}");
        let aside = env.list(".claude").into_iter().find(|name| name.contains(".corrupt-")).unwrap();
        assert_eq!(env.read(&format!(".claude/{aside}")), damaged, "{what}: kept as it was");
        let prompt = env.turn(OTHER, "x").continues().to_owned();
        assert!(prompt.contains("push") && prompt.contains("small commits"), "{what}: {prompt}");
        let lost = env.turn(SESSION, "x");
        assert!(lost.ended("error").contains("ralph-state.json"), "{what}: {lost:?}");
        env.turn(OTHER, "x").continues();
    }
}

#[test]
fn ralph_guidance_says_that_it_moved_a_damaged_state_aside() {
    let env = Env::new();
    env.write(".claude/ralph-state.json", "{oops");
    let told = env.guidance(&["forbid", "push"]).ok();
    assert!(told.contains("forbidden: push") && told.contains("ralph-state.json.corrupt-"), "{told}");
    env.write(".claude/ralph-state.json", "{oops");
    let told: Value = serde_json::from_str(&env.guidance(&["forbid", "push", "--json"]).ok()).unwrap();
    assert!(told["notes"][0].as_str().unwrap().contains("ralph-state.json.corrupt-"), "{told}");
}

#[test]
fn a_start_keeps_the_damaged_record_it_replaces() {
    let env = Env::new();
    env.write(".claude/ralph-state.json", format!("{{\"loops\":{{\"{SESSION}\":{{\"task\":@}}}}}}"));
    let told = env.start("task", &[]);
    assert!(told.contains("corrupt-"), "{told}");
    let aside = env.list(".claude").into_iter().find(|name| name.contains(".corrupt-")).unwrap();
    assert!(env.read(&format!(".claude/{aside}")).contains("{\"task\":@}"));
    serde_json::from_str::<serde_json::Value>(&env.read(".claude/ralph-state.json")).unwrap();
}

#[test]
fn two_damaged_files_in_one_moment_are_both_kept() {
    let env = Env::new();
    for damage in ["first damage", "second damage"] {
        env.write(".claude/ralph-state.json", damage);
        env.start("task", &["--replace"]);
    }
    let kept: String = env.list(".claude").iter().map(|name| env.read(&format!(".claude/{name}"))).collect();
    assert!(kept.contains("first damage") && kept.contains("second damage"), "{:?}", env.list(".claude"));
}

#[test]
fn a_damaged_file_is_seen_by_status_and_survives_it() {
    let env = Env::new();
    env.write(".claude/ralph-state.json", "{oops");
    let text = env.ralph(&["status"]).ok();
    assert!(text.contains("damaged"), "{text}");
    env.ralph(&["status", "--json"]).ok();
    assert_eq!(env.read(".claude/ralph-state.json"), "{oops");
    let told = env.start("task", &[]);
    assert!(told.contains("corrupt-"), "a start says what it moved aside: {told}");
}

#[test]
fn loops_without_activity_are_closed_then_removed_and_stay_in_history() {
    let env = Env::new();
    env.start("task", &[]);
    env.at(25 * HOUR).session_start(OTHER, "startup").run();
    assert_eq!(env.shown(SESSION)["outcome"], "interrupted");
    env.at(50 * HOUR).session_start(OTHER, "startup").run();
    assert!(env.record(SESSION).is_null());
    assert!(crate::env::names_in(&env.data().join("sessions")).is_empty(), "its record is cleaned up too");
    assert_eq!(env.history().len(), 1);
}

#[test]
fn the_state_is_pretty_printed_and_written_so_again() {
    let env = Env::new();
    env.start("task", &[]);
    for seconds in [10, 20] {
        env.at(seconds).turn(SESSION, "x").continues();
        let text = env.read(".claude/ralph-state.json");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(text, serde_json::to_string_pretty(&value).unwrap() + "\n");
    }
}

#[test]
fn an_ended_loop_leaves_the_state_a_day_later_at_the_next_start() {
    let env = Env::new();
    env.start("old", &["--max-iterations", "1"]);
    env.turn(SESSION, "x").ended("max-iterations");
    let start_at = |hours: i64, session: &str| {
        env.at(hours * 3600).ralph(&["start", "--session", session, "--replace", "new"]).ok();
        env.state()["loops"].as_object().unwrap().contains_key(SESSION)
    };
    assert!(start_at(23, "other"), "within a day it is shown by status");
    assert!(!start_at(25, "other"), "then the history has it");
    let history = env.ralph(&["history", "--json"]).ok();
    assert!(history.contains("\"task\":\"old\""), "{history}");
}

#[test]
fn a_loop_that_was_left_for_a_day_ends_in_both_engines() {
    type Open = fn(&Env);
    let opens: [(&str, Open); 3] = [
        ("a session opens", |env| drop(env.session_start(OTHER, "startup").run())),
        ("ralph start", |env| drop(env.start_in(OTHER, "other", &["--replace"]))),
        ("ralph run", |env| drop(env.run_with("promise COMPLETE", &["x"]).run())),
    ];
    for (name, open) in opens {
        for (hours, state) in [(23, "running"), (25, "stopped")] {
            let env = Env::new();
            env.start("task", &[]);
            open(env.at(hours * HOUR));
            let left = env.record(SESSION);
            assert_eq!(left["state"], state, "{name} after {hours} hours");
            if state == "stopped" {
                assert_eq!(left["outcome"], "interrupted", "{name}");
                let told: Vec<_> =
                    env.history().into_iter().filter(|run| run["session_id"] == SESSION).collect();
                assert_eq!(told.len(), 1, "{name}");
                // A day later it leaves the file.
                open(env.at(2 * hours * HOUR + HOUR));
                assert!(env.record(SESSION).is_null(), "{name}");
            }
        }
    }
}

#[test]
fn a_runner_that_waits_for_days_was_not_left() {
    let env = Env::new();
    let clock = env.clock();
    let script =
        format!("[ $n = 1 ] && limit {}; result '<promise>COMPLETE</promise>'", crate::env::T0 + 72 * HOUR);
    let mut run = env.run_claude(&script, &["x"]).spawn();
    run.until("usage limit reached; continuing in ");
    clock.advance(50 * HOUR);
    env.start_in(OTHER, "other", &[]);
    assert_eq!(env.record("ralph-run")["state"], "running");
    env.ralph(&["stop", "--session", OTHER]).ok();
    // Small steps: a leap would outrun the iteration that follows.
    clock.advance(22 * HOUR);
    clock.advance_until(1, "the end of the run", || run.has_ended());
    assert_eq!(run.wait().code, Some(0));
}

#[test]
fn every_command_says_that_it_moved_a_damaged_file_aside() {
    let damage = |env: &Env| drop(env.write(".claude/ralph-state.json", "{").list(""));
    let calls: [(bool, &[&str]); 7] = [
        (true, &["allow", "no-such-finding"]),
        (true, &["adopt"]),
        (true, &["remove", "9"]),
        (false, &["start", "--session", SESSION, "--resume"]),
        (false, &["reset"]),
        (false, &["stop"]),
        (false, &["config", "max-hours", "3"]),
    ];
    for (is_guidance, args) in calls {
        let env = Env::new();
        env.start("task", &[]);
        damage(&env);
        let run = if is_guidance { env.guidance(args) } else { env.ralph(args) };
        let is_aside = env.list(".claude").iter().any(|name| name.contains(".corrupt-"));
        let said = format!("{}{}", run.stdout, run.stderr);
        assert_eq!(said.matches("was damaged").count(), usize::from(is_aside), "{args:?}: {said}");
        assert_eq!(said.matches("is now ").count(), usize::from(is_aside), "{args:?}: {said}");
    }
    for (command, text) in [("forbid", "push"), ("encourage", "tests"), ("status", ""), ("start", "--resume")]
    {
        let env = Env::new();
        env.start("task", &[]);
        damage(&env);
        let answer = env.types(SESSION, command, text);
        let is_aside = env.list(".claude").iter().any(|name| name.contains(".corrupt-"));
        let said = format!("{}{}", answer.message.unwrap_or_default(), answer.block.unwrap_or_default());
        assert!(is_aside && said.matches("and is now ").count() == 1, "{command}: {said}");
    }
}
