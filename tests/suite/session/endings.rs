//! Every ending has one outcome, is reported to the user, and is recorded.

use crate::env::{DONE, Env, OTHER, SESSION};
use serde_json::{Value, json};

#[test]
fn an_ending_is_the_same_in_message_state_status_and_history() {
    for (message, outcome, reason) in [
        (DONE, "complete", "COMPLETE"),
        ("<promise>BLOCKED:the key is missing</promise>", "blocked", "the key is missing"),
        ("<promise>DECIDE:tabs or spaces?</promise>", "decide", "tabs or spaces?"),
        ("x", "max-iterations", "1 of 1"),
    ] {
        let env = Env::new();
        env.start("the task", &["--max-iterations", "1"]);
        let told = env.at(60).turn(SESSION, message);
        assert!(told.ended(outcome).contains(reason), "{told:?}");
        let record = env.record(SESSION);
        assert_eq!((&record["outcome"], &record["state"]), (&json!(outcome), &json!("stopped")));
        let shown = env.shown(SESSION);
        assert_eq!((&shown["outcome"], &shown["state"]), (&json!(outcome), &json!("stopped")));
        assert!(shown["reason"].as_str().unwrap().contains(reason));
        let human = env.ralph(&["status"]).ok();
        assert!(human.contains(reason), "{human}");
        let history = env.history();
        assert_eq!(
            (history.len(), &history[0]["outcome"], &history[0]["iterations"]),
            (1, &json!(outcome), &json!(1))
        );
        assert!(env.ralph(&["history"]).ok().contains(outcome));
    }
}

#[test]
fn blocked_and_decide_write_a_file_with_the_question() {
    let env = Env::new();
    env.start("task", &[]);
    env.turn(SESSION, "x").continues();
    env.turn(SESSION, "<promise>DECIDE:tabs\u{1b}[2J or spaces?</promise>").ended("decide");
    let text = env.read("ralph/decide.txt");
    assert!(
        text.contains("or spaces?") && text.contains("iteration 2") && text.contains("2026-11-16"),
        "{text}"
    );
    assert!(text.ends_with("\n---\n## Answer\n"), "{text}");
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn an_unanswered_question_refuses_the_start_and_an_answered_one_reaches_the_agent() {
    let env = Env::new();
    env.start("task", &[]);
    env.turn(SESSION, "<promise>DECIDE:tabs or spaces?</promise>").ended("decide");
    let told = env.ralph(&["start", "--resume", "--session", SESSION]).fails(1);
    assert!(told.contains("tabs or spaces?") && told.contains("decide.txt"), "{told}");
    env.ralph(&["start", "--session", OTHER, "--ignore-open-questions", "another"]).ok();
    let text = env.read("ralph/decide.txt");
    env.write("ralph/decide.txt", format!("{text}spaces, please\n"));
    env.types(SESSION, "start", "--resume");
    let told = env.ralph(&["relay", "start", "--session", SESSION]).ok();
    assert!(told.contains("tabs or spaces?") && told.contains("spaces, please"), "{told}");
    assert!(!env.exists("ralph/decide.txt"), "filed away");
    assert_eq!(env.list("ralph/answered").len(), 1);
    env.turn(SESSION, "x").continues();
}

#[test]
fn the_notification_gets_its_facts_through_variables_only() {
    let env = Env::new();
    let out = env.base.join("notified");
    let command = format!(
        "printf '%s|%s|%s|%s\\n' \"$RALPH_OUTCOME\" \"$RALPH_REASON\" \"$RALPH_PROJECT\" \"$RALPH_RUN_ID\" > '{}'",
        out.display()
    );
    env.start("task", &["--notify", &command]);
    let run = env.record(SESSION)["run_id"].as_str().unwrap().to_owned();
    env.turn(SESSION, "<promise>BLOCKED:$(touch pwned) `id` \"; touch pwned</promise>").ended("blocked");
    let text = env.wait_for_file("notified");
    let expected = format!("blocked|$(touch pwned) `id` \"; touch pwned|{}|{run}", env.project.display());
    assert_eq!(text, expected);
    assert!(!env.exists("pwned"));
}

#[test]
fn a_notification_that_hangs_or_fails_delays_no_answer() {
    let env = Env::new();
    let pid = env.base.join("pid");
    let command = format!("echo noise; echo noise >&2; echo $$ > '{}'; exec sleep 600", pid.display());
    env.start("task", &["--notify", &command]);
    env.turn(SESSION, DONE).ended("complete");
    let pid = rustix::process::Pid::from_raw(env.wait_for_file("pid").parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    env.start("task", &["--notify", "/no/such/program"]);
    env.turn(SESSION, DONE).ended("complete");
}

#[test]
fn history_keeps_one_record_a_run_newest_first() {
    let env = Env::new();
    for (n, task) in ["first", "second", "third"].into_iter().enumerate() {
        env.at(n as i64 * 100).start(task, &[]);
        env.at(n as i64 * 100 + 60).turn(SESSION, DONE).ended("complete");
    }
    let tasks: Vec<_> = env.history().iter().map(|run| run["task"].clone()).collect();
    assert_eq!(tasks, ["third", "second", "first"]);
    let text = env.ralph(&["history", "--last", "1"]).ok();
    assert!(text.contains("third") && !text.contains("second"), "{text}");
    let run = &env.history()[0];
    let fields =
        ["run_id", "session_id", "engine", "project", "task", "started_at", "ended_at", "outcome", "reason"];
    assert!(fields.iter().all(|name| run[name].is_string()), "{run}");
    assert_eq!(
        (run["iterations"].as_u64(), run["runtime_seconds"].as_f64(), run["wall_seconds"].as_f64()),
        (Some(1), Some(60.0), Some(60.0))
    );
}

#[test]
fn history_is_capped_and_invalid_lines_are_skipped() {
    let env = Env::new();
    env.start("real", &[]);
    env.turn(SESSION, DONE).ended("complete");
    let path = std::fs::read_dir(env.data().join("history")).unwrap().flatten().map(|entry| entry.path());
    let path = path.into_iter().find(|path| path.extension().is_some_and(|end| end == "jsonl")).unwrap();
    let line = std::fs::read_to_string(&path).unwrap();
    let mut run: Value = serde_json::from_str(&line).unwrap();
    let mut text = String::from("rubbish\n{}\n");
    for n in 0..8000 {
        run["run_id"] = json!(format!("{n:032x}"));
        text.push_str(&format!("{run}\n"));
    }
    std::fs::write(&path, text).unwrap();
    env.at(9).start("newest", &[]);
    env.at(10).turn(SESSION, DONE).ended("complete");
    let runs = env.history();
    assert!(runs.len() <= 1000, "{} runs", runs.len());
    assert_eq!(runs[0]["task"], "newest");
    assert!(std::fs::metadata(&path).unwrap().len() < 2 << 20);
}

#[test]
fn a_reason_of_megabytes_does_not_fill_state_and_history() {
    let env = Env::new();
    env.start("task", &[]);
    env.turn(SESSION, &format!("<promise>BLOCKED:{}</promise>", "why ".repeat(500_000))).ended("blocked");
    let state = env.path(".claude/ralph-state.json").metadata().unwrap().len();
    assert!(state < 100_000, "{state} bytes of state are read and written at every hook");
    let history: u64 = std::fs::read_dir(env.data().join("history"))
        .unwrap()
        .flatten()
        .map(|e| e.metadata().unwrap().len())
        .sum();
    assert!(history < 100_000, "{history} bytes for one run, and 500 are kept");
}

#[test]
fn an_ended_loop_is_not_armed() {
    let env = Env::new();
    env.start("task", &[]);
    env.turn(SESSION, DONE).ended("complete");
    assert!(crate::env::names_in(&env.data().join("sessions")).is_empty());
    // Not even if its record is changed back to running.
    env.edit_state(|state| state["loops"][SESSION]["state"] = json!("running"));
    env.turn(SESSION, "x").silent();
}
