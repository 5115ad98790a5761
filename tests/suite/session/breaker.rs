//! The circuit breaker in a session: one warning, then an ending with its reason, and no start before a reset.

use crate::env::{Env, OTHER, SESSION};
use serde_json::{Value, json};

fn lookup(n: i64) -> String {
    const PARTS: [&str; 8] =
        ["the parser", "a config", "its tests", "old notes", "the build", "some docs", "a cache", "the lock"];
    format!("Read about {} and thought about what it means for the work.", PARTS[(n % 8) as usize])
}

/// Ends the loop as stuck: five turns that change nothing.
fn get_stuck(env: &Env) -> String {
    for turn in 1..5 {
        env.at(turn * 10).turn(SESSION, &lookup(turn)).continues();
    }
    env.at(50).turn(SESSION, &lookup(5)).ended("stuck").to_owned()
}

#[test]
fn turns_without_progress_get_one_warning_and_then_end_the_loop_with_the_reason() {
    let env = Env::git();
    env.write("src/a.rs", "fn a() {}");
    env.start("task", &[]);
    for turn in 1..=4 {
        let answer = env.at(turn * 10).turn(SESSION, &lookup(turn));
        let hint = answer.continues().contains("one more ends the loop");
        assert_eq!(hint, turn == 4, "{answer:?}");
        assert_eq!(answer.message.unwrap().contains("4 turns in a row without progress"), turn == 4);
    }
    let answer = env.at(50).turn(SESSION, &lookup(5));
    let told = answer.ended("stuck");
    for part in
        ["5 turns in a row without progress", "5 iterations", "Runtime:", "/ralph:start --resume --reset"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(env.shown(SESSION)["circuit"]["state"], "tripped");
    assert_eq!(env.history()[0]["outcome"], "stuck");
}

#[test]
fn every_kind_of_progress_keeps_the_loop_running() {
    type Step = fn(&Env, i64);
    let steps: [(&str, Step); 5] = [
        ("a commit", |env, n| {
            env.write(".git/refs/heads/main", format!("{n:040}\n"));
        }),
        ("a source", |env, n| {
            env.write("src/a.rs", format!("// {n}"));
        }),
        ("prose", |env, n| {
            env.write("NOTES.md", format!("{n}"));
        }),
        ("a new file", |env, n| {
            env.write(&format!("src/new-{n}.rs"), "");
        }),
        ("a file removed", |env, n| std::fs::remove_file(env.path(&format!("old/{n}.txt"))).unwrap()),
    ];
    for (what, step) in steps {
        let env = Env::git();
        for n in 0..12 {
            env.write(&format!("old/{n}.txt"), "");
        }
        env.start("task", &[]);
        for turn in 0..12 {
            step(&env, turn);
            let answer = env.at(10 + turn).turn(SESSION, &lookup(turn));
            assert!(!answer.continues().contains("one more ends the loop"), "{what}: {answer:?}");
        }
    }
}

#[test]
fn ignored_files_and_ralphs_own_files_are_not_progress() {
    let env = Env::git();
    env.write(".gitignore", "target/\n");
    env.start("task", &[]);
    for turn in 1..5 {
        env.write("target/out.txt", format!("{turn}"));
        env.at(turn * 10).turn(SESSION, &lookup(turn)).continues();
    }
    env.write("target/out.txt", "5");
    env.at(50).turn(SESSION, &lookup(5)).ended("stuck");
}

#[test]
fn edits_and_status_counts_are_progress_and_failed_edits_are_not() {
    let edit = |env: &Env, turn: i64, failed: bool| {
        let transcript = env.transcript();
        for n in 1..=turn {
            let call = json!({"type": "tool_use", "id": format!("t{n}"), "name": "Edit", "input": {}});
            transcript.assistant(n * 10 - 5, call, json!({}));
            let result = json!([{"type": "tool_result", "tool_use_id": format!("t{n}"), "is_error": failed}]);
            transcript.entry(n * 10 - 4, "user", json!({"message": {"role": "user", "content": result}}));
            transcript.text(n * 10 - 3, &lookup(n));
        }
        env.at(turn * 10).stop(SESSION).with(&transcript).says(&lookup(turn)).run()
    };
    let env = Env::new();
    env.start("task", &[]);
    (1..10).for_each(|turn| drop(edit(&env, turn, false).continues().to_owned()));
    let env = Env::new();
    env.start("task", &[]);
    (1..5).for_each(|turn| drop(edit(&env, turn, true).continues().to_owned()));
    edit(&env, 5, true).ended("stuck");

    let env = Env::new();
    env.start("task", &[]);
    for turn in 1..10 {
        let block = "---RALPH_STATUS---\nFILES_MODIFIED: 2\n---END_RALPH_STATUS---";
        env.at(turn * 10).turn(SESSION, &format!("{}\n{block}", lookup(turn))).continues();
    }
}

#[test]
fn a_ticked_task_is_progress() {
    let env = Env::new();
    let tasks = |passing: i64| {
        let stories: Vec<Value> =
            (0..9).map(|n| json!({"id": format!("S{n}"), "passes": n < passing})).collect();
        json!({"userStories": stories}).to_string()
    };
    env.write("ralph/tasks.json", tasks(0));
    env.write(".claude/ralph-config.json", json!({"scan": {"enabled": false}}).to_string());
    env.start("task", &[]);
    for turn in 1..9 {
        env.write("ralph/tasks.json", tasks(turn));
        env.at(turn * 10).turn(SESSION, &lookup(turn)).continues();
    }
}

#[test]
fn the_same_error_with_other_numbers_trips_and_is_quoted() {
    let env = Env::without_breaker();
    env.start("task", &[]);
    let fails = |n: i64| format!("{}\nerror: connection refused (10.0.0.{n}:54{n}2)", lookup(n));
    for turn in 1..5 {
        env.at(turn * 10).turn(SESSION, &fails(turn)).continues();
    }
    let answer = env.at(50).turn(SESSION, &fails(5));
    assert!(answer.ended("circuit").contains("same error 5 times: connection refused"), "{answer:?}");
}

#[test]
fn an_error_as_a_build_tool_prints_it_trips_too() {
    for error in [
        "make: *** [Makefile:{n}: x] Error 2",
        "CMake Error at CMakeLists.txt:{n} (add_executable):",
        "Caused by:\n  the linker took {n} s",
        "[BUILD] step {n} of 9 error: no linker",
        "x.go:{n}:2: undefined: y",
    ] {
        let env = Env::without_breaker();
        env.start("task", &[]);
        let fails = |n: i64| format!("{}\n{}", lookup(n), error.replace("{n}", &n.to_string()));
        for turn in 1..5 {
            env.at(turn * 10).turn(SESSION, &fails(turn)).continues();
        }
        let answer = env.at(50).turn(SESSION, &fails(5));
        assert!(answer.ended("circuit").contains("same error 5 times"), "{error}: {answer:?}");
    }
}

#[test]
fn a_repeated_message_trips_unless_there_is_progress() {
    let env = Env::new();
    env.start("task", &[]);
    for turn in 1..4 {
        env.at(turn * 10).turn(SESSION, "I am still looking into it.").continues();
    }
    let answer = env.at(40).turn(SESSION, "I am still looking into it.");
    assert!(answer.ended("stuck").contains("message repeated 3 times in a row"), "{answer:?}");

    let env = Env::new();
    env.start("task", &[]);
    for turn in 1..20 {
        env.write("src/a.rs", format!("{turn}"));
        env.at(turn * 10).turn(SESSION, "Next step done.").continues();
    }
}

#[test]
fn a_completion_in_the_turn_that_would_trip_counts() {
    let env = Env::new();
    env.start("task", &[]);
    for turn in 1..5 {
        env.at(turn * 10).turn(SESSION, &lookup(turn)).continues();
    }
    env.at(50).turn(SESSION, &format!("{}\n<promise>COMPLETE</promise>", lookup(5))).ended("complete");
    env.at(60).start("again", &[]);
}

#[test]
fn thresholds_are_settings_and_zero_switches_a_condition_off() {
    let env = Env::new();
    env.write(".claude/ralph-config.json", json!({"circuit": {"stagnation": 2}}).to_string());
    env.start("task", &[]);
    env.at(10).turn(SESSION, &lookup(1)).continues();
    env.at(20).turn(SESSION, &lookup(2)).ended("stuck");

    let env = Env::new();
    env.write(".claude/ralph-config.json", json!({"circuit": {"stagnation": 0}}).to_string());
    env.start("task", &[]);
    (1..8).for_each(|turn| drop(env.at(turn * 10).turn(SESSION, &lookup(turn)).continues().to_owned()));
}

#[test]
fn a_trip_refuses_the_next_start_until_it_is_reset() {
    let env = Env::new();
    env.start("task", &[]);
    get_stuck(&env);
    for args in [&["start", "--session", SESSION, "other"][..], &["start", "--session", SESSION, "--resume"]]
    {
        let told = env.at(60).ralph(args).fails(1);
        assert!(told.contains("without progress") && told.contains("ralph reset"), "{told}");
    }
    env.start_in(OTHER, "another session is not concerned", &[]);
    let told = env.ralph(&["reset", "--session", SESSION]).ok();
    assert!(told.contains("It had tripped: 5 turns in a row without progress"), "{told}");
    env.at(70).ralph(&["start", "--session", SESSION, "--resume"]).ok();
    let circuit = &env.shown(SESSION)["circuit"];
    assert_eq!((&circuit["state"], &circuit["reason"]), (&json!("ok"), &Value::Null));
    assert_eq!(circuit["counters"]["stagnation"], 0);
    env.at(80).turn(SESSION, "And on it goes with new ideas.").continues();
}

#[test]
fn start_can_reset_the_breaker() {
    let env = Env::new();
    env.start("task", &[]);
    get_stuck(&env);
    env.at(60).ralph(&["start", "--session", SESSION, "--resume", "--reset"]).ok();
    env.at(70).turn(SESSION, "And on it goes with new ideas.").continues();
}

#[test]
fn a_trip_outlives_the_state_file() {
    let env = Env::new();
    env.start("task", &[]);
    get_stuck(&env);
    std::fs::remove_file(env.path(".claude/ralph-state.json")).unwrap();
    env.ralph(&["start", "--session", SESSION, "again"]).fails(1);
    env.ralph(&["reset"]).ok();
    env.ralph(&["start", "--session", SESSION, "again"]).ok();
}

#[test]
fn trips_and_resets_are_events_with_their_counters() {
    let env = Env::new();
    assert!(env.ralph(&["history", "--circuit"]).ok().contains("never tripped"));
    env.start("task", &[]);
    get_stuck(&env);
    env.at(60).ralph(&["reset", "--all"]).ok();
    let text = env.ralph(&["history", "--circuit", "--json"]).ok();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 2);
    assert_eq!((&events[0]["event"], &events[1]["event"]), (&json!("reset"), &json!("trip")));
    assert_eq!(events[1]["counters"]["stagnation"], 5);
    let shown = env.ralph(&["history", "--circuit"]).ok();
    assert!(shown.contains("trip") && shown.contains("no progress 5"), "{shown}");
}

#[test]
fn no_more_than_fifty_events_are_kept() {
    let env = Env::new();
    env.start("task", &["--max-iterations", "0"]);
    for n in 0..60 {
        env.at(n).turn(SESSION, &lookup(n)).continues();
        env.ralph(&["reset"]).ok();
    }
    // A reset that changes nothing is none.
    env.ralph(&["reset"]).ok();
    assert_eq!(env.ralph(&["history", "--circuit", "--json"]).ok().lines().count(), 50);
}

#[test]
fn resetting_a_running_loop_sets_its_counters_to_zero() {
    let env = Env::new();
    env.start("task", &[]);
    for turn in 1..5 {
        env.at(turn * 10).turn(SESSION, &lookup(turn)).continues();
    }
    let told = env.ralph(&["reset", "--session", SESSION]).ok();
    assert!(told.contains("It was ok"), "{told}");
    env.at(50).turn(SESSION, &lookup(5)).continues();
    env.ralph(&["reset", "--session", "nobody"]).fails(1);
}

#[test]
fn a_session_without_activity_is_forgotten_after_a_day_but_a_trip_is_not() {
    const DAY: i64 = 86_400;
    let env = Env::new();
    env.start("task", &[]);
    get_stuck(&env);
    env.start_in(OTHER, "left alone", &[]);
    assert_eq!(crate::env::names_in(&env.data().join("circuit")).len(), 2);
    env.at(2 * DAY).start_in("third", "task", &[]);
    let left = crate::env::names_in(&env.data().join("circuit"));
    assert_eq!(left.len(), 2, "the trip and the new one: {left:?}");
    env.ralph(&["start", "--session", SESSION, "again"]).fails(1);
}

#[test]
fn a_damaged_breaker_record_does_not_stop_the_loop() {
    let env = Env::new();
    env.start("task", &[]);
    env.at(10).turn(SESSION, &lookup(1)).continues();
    for damage in ["", "{", "[]", "{\"run_id\": 7}", "\u{0}"] {
        let folder = env.data().join("circuit");
        for name in crate::env::names_in(&folder) {
            std::fs::write(folder.join(name), damage).unwrap();
        }
        env.at(20).turn(SESSION, &format!("{} {damage:?}", lookup(2))).continues();
    }
}

#[test]
fn escape_characters_in_an_error_reach_no_terminal() {
    let env = Env::without_breaker();
    env.start("task", &[]);
    for turn in 1..=5 {
        env.at(turn * 10).turn(SESSION, &format!("{}\nerror: bad \u{1b}[2J\u{9b}31m thing", lookup(turn)));
    }
    let shown = [env.ralph(&["status"]).ok(), env.ralph(&["history", "--circuit"]).ok()].concat();
    assert!(shown.contains("same error") && !shown.contains(['\u{1b}', '\u{9b}']), "{shown}");
}

#[test]
fn fixing_a_test_suite_step_by_step_never_trips() {
    let env = Env::git();
    env.start("make the suite green", &[]);
    for turn in 1..12 {
        env.write("src/a.rs", format!("// {turn}"));
        let failed = 60 - turn * 5;
        let message =
            format!("Mended one more.\ntest result: FAILED. {} passed; {failed} failed", 70 - failed);
        env.at(turn * 10).turn(SESSION, &message).continues();
    }
}

#[test]
fn completing_stories_one_by_one_never_trips() {
    let env = Env::git();
    env.start("all stories", &[]);
    for turn in 1..12 {
        env.write(&format!("src/{turn}.rs"), "");
        let message =
            format!("Story US-{turn}: implementation complete. All acceptance criteria are met. Next one.");
        env.at(turn * 10).turn(SESSION, &message).continues();
    }
}

#[test]
fn a_warning_is_repeated_after_a_turn_that_yielded_to_the_user() {
    let env = Env::new();
    env.start("task", &[]);
    let transcript = env.transcript();
    for turn in 1..4 {
        env.at(turn * 10).turn(SESSION, &lookup(turn)).continues();
    }
    transcript.entry(35, "queue-operation", json!({"operation": "enqueue", "content": "/ralph:status"}));
    transcript.call(36, "t1");
    let answer = env.at(40).stop(SESSION).with(&transcript).says(&lookup(4)).run();
    assert!(answer.allows().contains("one more ends the loop"), "{answer:?}");
    transcript.entry(41, "queue-operation", json!({"operation": "dequeue"}));
    env.write("a.rs", "");
    let answer = env.at(50).stop(SESSION).with(&transcript).says(&lookup(5)).run();
    assert!(answer.continues().contains("4 turns in a row without progress"), "{answer:?}");
    env.write("a.rs", "1");
    let answer = env.at(60).stop(SESSION).with(&transcript).says(&lookup(6)).run();
    assert!(!answer.continues().contains("without progress"), "once: {answer:?}");
}

#[test]
fn tools_seen_at_a_compaction_count_at_the_end_of_the_turn() {
    let env = Env::without_breaker();
    env.start("task", &[]);
    let transcript = env.transcript();
    for turn in 1..8 {
        transcript.call(turn * 10, &format!("t{turn}"));
        env.at(turn * 10 + 1).session_start(SESSION, "compact").with(&transcript).run();
        transcript.text(turn * 10 + 2, &lookup(turn));
        env.at(turn * 10 + 3).stop(SESSION).with(&transcript).says(&lookup(turn)).run().continues();
    }
}

#[test]
fn a_refused_start_resets_nothing() {
    let env = Env::new();
    env.start("task", &[]);
    get_stuck(&env);
    env.ask("A or B?");
    env.ralph(&["start", "--session", SESSION, "--resume", "--reset"]).fails(1);
    std::fs::remove_file(env.path("ralph/decide.txt")).unwrap();
    env.ralph(&["start", "--session", SESSION, "--resume"]).fails(1);
}

#[test]
fn a_reset_prints_no_escape_code_of_a_folder_or_a_session() {
    let env = Env::named("pro\u{1b}[2J\u{9b}ject");
    let session = "s\u{9b}31m";
    env.start("task", &[]);
    get_stuck(&env);
    for args in [
        &["reset"][..],
        &["reset", "--all"],
        &["reset", "--session", session],
        &["stop"],
        &["stop", "--session", session],
    ] {
        let run = env.ralph(args);
        let told = run.stdout + &run.stderr;
        assert!(!told.is_empty() && !told.contains(['\u{1b}', '\u{9b}']), "{args:?}: {told:?}");
    }
}
