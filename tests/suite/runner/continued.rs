//! `ralph run` without a prompt continues the last unfinished run: the same run, whatever ended it.

use crate::agents::summary;
use crate::env::{Call, Env, Program, Run};
use rustix::process::Signal;
use serde_json::json;

/// Returns a call of `ralph run` with flags alone: no prompt and no agent.
fn again(env: &Env, flags: &[&str]) -> Call {
    env.call(Program::Ralph).var("RALPH_RUN_DELAY_SECONDS", "0").args(&["run"]).args(flags)
}

fn first_line(run: &Run) -> &str {
    run.stdout.lines().next().unwrap_or_default()
}

/// What the agent does until it is told that it may finish, and then.
const UNTIL_READY: &str = "work; [ -e ../ready ] && { promise COMPLETE; exit; }; ";

/// Ends a run in some way with a check, then continues it and sees that it is still the same.
fn continues(name: &str, env: &Env, end: impl FnOnce(&Env, &str) -> i32, flags: &[&str]) {
    let code = end(env, "test -e ../proven");
    let before = env.history()[0].clone();
    assert_ne!(before["outcome"], "complete", "{name}");
    env.touch("ready");
    // The check still guards the run: a claim without the proof does not complete it.
    let rejected = again(env, flags).args(&["--max-iterations", "6"]).run();
    assert_eq!(rejected.code, Some(1), "{name} ({code}): {rejected:?}");
    let (id, next) = (&before["run_id"].as_str().unwrap()[..8], before["iterations"].as_u64().unwrap() + 1);
    let expected = format!("Continuing run {id} at iteration {next}/6 · 1 check · 2h limit");
    assert!(first_line(&rejected).starts_with(&expected), "{name}: {}", first_line(&rejected));
    assert!(rejected.stdout.contains("\nTask: the whole task\nCheck: test -e ../proven\n"), "{rejected:?}");
    env.touch("proven");
    let run = again(env, &["--max-iterations", "9"]).run();
    assert_eq!((run.code, summary(&run, "Iterations")), (Some(0), "7 / 9"), "{name}: {run:?}");
    let history = env.history();
    assert_eq!((history.len(), &history[0]["run_id"]), (1, &before["run_id"]), "{name}: one run");
    let numbers: Vec<String> = env.rows().iter().map(|row| row[0].clone()).collect();
    assert_eq!(numbers, ["1", "2", "3", "4", "5", "6", "7"], "{name}");
    assert!(env.run_with("work", &[]).run().fails(64).contains("nothing to run"), "{name}: it is complete");
}

fn flags<'a>(check: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["--verify", check, "--max-hours", "2", "the whole task"], more].concat()
}

#[test]
fn a_run_continues_after_a_limit() {
    let limit = |env: &Env, check: &str| {
        let run = env.run_with(UNTIL_READY, &flags(check, &["--max-iterations", "3"])).run();
        assert_eq!((run.code, summary(&run, "Next")), (Some(1), "ralph run --max-iterations N"), "{run:?}");
        let refused = again(env, &[]).run().fails(1);
        assert!(
            refused.contains("limit already reached: 3 of 3 iterations") && refused.contains("--new"),
            "{refused}"
        );
        1
    };
    continues("limit", &Env::new(), limit, &[]);
}

#[test]
fn a_run_continues_after_a_question_and_its_answer() {
    let decide = |env: &Env, check: &str| {
        let script = format!("{UNTIL_READY} [ $n = 2 ] && promise 'DECIDE:A or B?'");
        let run = env.run_with(&script, &flags(check, &[])).run();
        assert_eq!(run.code, Some(3), "{run:?}");
        assert!(again(env, &[]).run().fails(3).contains("unanswered question"));
        env.ralph(&["answer", "take B"]).ok();
        3
    };
    let env = Env::new();
    continues("decide", &env, decide, &[]);
    assert!(env.prompt(3).contains("take B"), "{}", env.prompt(3));
}

#[test]
fn a_run_continues_after_it_was_blocked() {
    let blocked = |env: &Env, check: &str| {
        let script = format!("{UNTIL_READY} [ $n = 2 ] && promise 'BLOCKED:no key'");
        let run = env.run_with(&script, &flags(check, &[])).run();
        assert_eq!(run.code, Some(2), "{run:?}");
        2
    };
    continues("blocked", &Env::new(), blocked, &[]);
}

#[test]
fn a_run_continues_after_it_was_stuck() {
    let stuck = |env: &Env, check: &str| {
        // In git a run without a commit is stuck; the check is what ends it later.
        let run = env.run_with(UNTIL_READY, &flags(check, &["--max-stuck", "2"])).run();
        assert_eq!((run.code, summary(&run, "Next")), (Some(4), "ralph run --reset"), "{run:?}");
        4
    };
    let env = Env::git();
    env.write(".git/refs/heads/main", "a".repeat(40));
    continues("stuck", &env, stuck, &["--reset", "--max-stuck", "0"]);
}

#[test]
fn a_run_continues_after_ctrl_c_and_after_a_stop() {
    let script = format!("{UNTIL_READY} echo at $n; [ $n = 2 ] && sleep 600");
    let interrupted = |env: &Env, check: &str| {
        let mut run = env.run_with(&script, &flags(check, &[])).spawn();
        run.until("at 2");
        run.signal(Signal::INT);
        assert_eq!(run.wait().code, Some(130));
        130
    };
    continues("Ctrl-C", &Env::new(), interrupted, &[]);
    let stopped = |env: &Env, check: &str| {
        let mut run = env.run_with(&script, &flags(check, &[])).spawn();
        run.until("at 2");
        env.ralph(&["stop"]).ok();
        assert_eq!(run.wait().code, Some(130));
        130
    };
    continues("ralph stop", &Env::new(), stopped, &[]);
}

#[test]
fn cost_runtime_and_guidance_accumulate() {
    let env = Env::new();
    let script = "work; result 'on it'";
    let run = env.run_claude(script, &["--max-iterations", "2", "x"]).run();
    assert_eq!(run.code, Some(1), "{run:?}");
    env.guidance(&["forbid", "touching the API"]).ok();
    let run = again(&env, &["--max-iterations", "4"]).run();
    assert!(first_line(&run).contains("at iteration 3/4 · 9h limit · 1 guidance entry"), "{run:?}");
    let usage = &env.history()[0]["usage"]["cost_usd"];
    assert_eq!((usage, &env.history()[0]["iterations"]), (&json!(2.0), &json!(4)));
    assert!(env.prompt(3).contains("touching the API"), "{}", env.prompt(3));
}

#[test]
fn flags_given_now_override_and_the_rest_stays() {
    let env = Env::new();
    let first = ["--model", "one", "--permission-mode", "plan", "--max-iterations", "1", "x"];
    assert_eq!(env.run_claude("work; result on", &first).run().code, Some(1));
    let run = again(&env, &["--model", "two", "--max-iterations", "2"]).run();
    assert_eq!(run.code, Some(1), "{run:?}");
    let args = env.wait_for_file("args");
    let last = args.lines().last().unwrap();
    assert!(last.contains("--model two") && last.contains("--permission-mode plan"), "{last}");
}

#[test]
fn a_new_run_begins_afresh() {
    let env = Env::new();
    let limited =
        |env: &Env, flags: &[&str]| env.run_with("work", &[flags, &["--max-iterations", "1"]].concat()).run();
    assert_eq!(limited(&env, &["first"]).code, Some(1));
    assert!(
        env.run_with("work", &["--new"]).run().fails(64).contains("nothing to run"),
        "the prompt is the old run's"
    );
    let run = limited(&env, &["second"]);
    assert!(first_line(&run).starts_with("Starting run") && first_line(&run).contains("1/1"), "{run:?}");
    env.write("ralph/prompt.md", "from the file");
    let run = limited(&env, &["--new"]);
    assert!(run.stdout.contains("Starting run") && run.stdout.contains("Task: from the file"), "{run:?}");
    assert_eq!(env.history().len(), 3);
}

#[test]
fn an_unfinished_run_comes_before_the_prompt_file_and_an_edited_prompt_is_read_again() {
    let env = Env::new();
    env.write("ralph/prompt.md", "from the file");
    assert_eq!(env.run_with("work", &["typed", "--max-iterations", "1"]).run().code, Some(1));
    let run = again(&env, &["--max-iterations", "2"]).run();
    assert!(run.stdout.contains("Task: typed\n"), "{run:?}");

    let env = Env::new();
    env.write("ralph/prompt.md", "from the file");
    assert_eq!(env.run_with("work", &["--max-iterations", "1"]).run().code, Some(1));
    env.write("ralph/prompt.md", "from the file, improved");
    let run = again(&env, &["--max-iterations", "2"]).run();
    assert!(run.stdout.contains("Continuing run") && run.stdout.contains("prompt.md has changed"), "{run:?}");
    assert!(env.prompt(2).contains("from the file, improved"));
}

#[test]
fn another_task_list_is_another_run() {
    let env = Env::new();
    env.write("TODO.md", "- [ ] bake\n");
    env.write("OTHER.md", "- [ ] eat\n");
    let list =
        |file: &str, limit: &str| env.run_with("work", &["--tasks", file, "--max-iterations", limit]).run();
    assert_eq!(list("TODO.md", "1").code, Some(1));
    assert!(first_line(&list("TODO.md", "2")).starts_with("Continuing run"));
    assert!(first_line(&list("OTHER.md", "1")).starts_with("Starting run"));
}

#[test]
fn an_archived_run_is_not_continued() {
    let env = Env::new();
    env.ralph(&["init"]).ok();
    assert_eq!(env.run_with("work", &["x", "--max-iterations", "1"]).run().code, Some(1));
    env.ralph(&["archive"]).ok();
    let run = env.run_with("work", &["--max-iterations", "1"]).run();
    assert!(first_line(&run).starts_with("Starting run"), "{run:?}");
}

#[test]
fn what_the_agent_has_still_to_hear_is_told_in_the_continued_run() {
    let env = Env::new();
    let flags = ["--verify", "echo not yet; exit 7", "--max-iterations", "1", "x"];
    assert_eq!(env.run_with("work; promise COMPLETE", &flags).run().code, Some(1));
    again(&env, &["--max-iterations", "2"]).run();
    assert!(
        env.prompt(2).contains("Completion rejected: `echo not yet; exit 7` failed"),
        "{}",
        env.prompt(2)
    );

    let env = Env::new();
    let ignored = "work; echo 'I will say <promise>COMPLETE</promise> later'";
    let run = env.run_with(ignored, &["--max-iterations", "1", "x"]).run();
    let reason =
        "1 of 1 iterations done; the last signal was ignored: the promise tag is not alone on its line";
    assert_eq!(summary(&run, "Reason"), reason, "{run:?}");
    again(&env, &["--max-iterations", "2"]).run();
    assert!(env.prompt(2).contains("the promise tag is not alone on its line"), "{}", env.prompt(2));
}

#[test]
fn a_conversation_that_continues_begins_with_the_whole_prompt_and_the_answer() {
    let env = Env::new();
    let script = "work; case $n in 1) result '<promise>DECIDE:A or B?</promise>';; *) result on;; esac";
    let flags = ["--context", "continue", "--verify", "exit 7", "the whole task"];
    assert_eq!(env.run_claude(script, &flags).run().code, Some(3));
    env.ralph(&["answer", "take B"]).ok();
    again(&env, &["--max-iterations", "3"]).run();
    for part in ["take B", "Task:\n\nthe whole task", "- exit 7"] {
        assert!(env.prompt(2).contains(part), "{part}: {}", env.prompt(2));
    }
    assert!(!env.prompt(3).contains("Task:"), "the conversation knows it: {}", env.prompt(3));
    let args = env.wait_for_file("args");
    assert!(args.lines().last().unwrap().contains("--resume s-1"), "{args}");
    again(&env, &["--max-iterations", "4", "--context", "fresh"]).run();
    let args = env.wait_for_file("args");
    assert!(!args.lines().last().unwrap().contains("--resume"), "{args}");
}

#[test]
fn a_saved_run_that_cannot_be_read_is_not_replaced_by_another() {
    let env = Env::new();
    env.write("ralph/prompt.md", "from the file");
    assert_eq!(env.run_with("work", &["--max-iterations", "1"]).run().code, Some(1));
    let folder = env.data().join("prompts");
    let name = crate::env::names_in(&folder).into_iter().find(|name| name.ends_with(".json")).unwrap();
    std::fs::write(folder.join(&name), "{\"run\": 7").unwrap();
    let said = env.run_with("work", &[]).run().fails(70);
    assert!(said.contains("the last run cannot be continued") && said.contains("--new"), "{said}");
    assert_eq!(env.run_with("work; promise COMPLETE", &["--new"]).run().code, Some(0));
}
