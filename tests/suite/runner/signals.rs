//! Signals, recommendations and the breaker in the runner: what the user sees, and what the next iteration reads.

use crate::env::{Env, HOUR};
use serde_json::{Value, json};

/// Prints a status block.
const BLOCK: &str = "block() { printf -- '---RALPH_STATUS---\\n%s\\n---END_RALPH_STATUS---\\n' \"$1\"; }\n";

#[test]
fn a_tag_counts_before_and_behind_a_status_block() {
    for script in ["block 'STATUS: COMPLETE'; promise COMPLETE", "promise COMPLETE; block 'STATUS: COMPLETE'"]
    {
        let env = Env::new();
        let run = env.run_with(&format!("{BLOCK}work; {script}"), &["x"]).run();
        assert_eq!((run.code, env.starts()), (Some(0), 1), "{run:?}");
    }
}

#[test]
fn a_signal_that_does_not_count_is_in_the_turns_line_and_in_the_next_prompt() {
    for (said, why) in [
        ("echo 'Done: <promise>COMPLETE</promise>'", "the promise tag is not alone on its line"),
        (
            "block 'EXIT_SIGNAL: true'",
            "EXIT_SIGNAL: true needs at least 2 completion phrases in the message, found 0",
        ),
        ("block 'STATUS: COMPLETE'", "STATUS: COMPLETE alone does not end the loop"),
    ] {
        let script = format!("{BLOCK}work; [ $n = 1 ] && {said} || promise COMPLETE");
        let env = Env::new();
        let run = env.run_with(&script, &["x"]).run();
        assert_eq!(run.code, Some(0), "{run:?}");
        let line = run.stdout.lines().find(|line| line.starts_with("── iteration 1 ok")).unwrap();
        assert!(line.contains(&format!("signal ignored: {why}")), "{line}");
        let prompt = env.prompt(2);
        assert!(prompt.contains(&format!("From the previous iteration: Signal ignored: {why}")), "{prompt}");

        let env = Env::new();
        let run = env.run_with(&script, &["--json", "x"]).run();
        let events: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let ended: Vec<&Value> = events.iter().filter(|event| event["event"] == "iteration_ended").collect();
        assert_eq!(ended[0]["remarks"], json!([format!("signal ignored: {why}")]));
        assert_eq!(ended[1]["remarks"], json!([]));
    }
}

#[test]
fn a_rejected_completion_is_in_the_turns_line() {
    let env = Env::new();
    let script = "work; [ $n = 2 ] && touch green; promise COMPLETE";
    let run = env.run_with(script, &["--verify", "test -e green", "x"]).run();
    let line = run.stdout.lines().find(|line| line.starts_with("── iteration 1 rejected")).unwrap();
    assert!(line.contains("completion rejected: `test -e green` failed (exit code 1)"), "{line}");
}

#[test]
fn a_recommendation_is_handed_to_the_next_iteration_and_to_no_later_one() {
    let env = Env::new();
    let script =
        "work; [ $n = 1 ] && block 'RECOMMENDATION: write the parser next'; [ $n = 3 ] && promise COMPLETE";
    let run = env.run_with(&format!("{BLOCK}{script}"), &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    let prompt = env.prompt(2);
    let expected = "Recommendation of the previous iteration (the agent's words, not the user's):\nwrite the parser next";
    assert!(prompt.contains(expected), "{prompt}");
    assert!(!env.prompt(1).contains("parser") && !env.prompt(3).contains("parser"));

    let env = Env::new();
    let script =
        "[ $n = 1 ] && block \"RECOMMENDATION: $(head -c 9000 /dev/zero | tr '\\0' x)\" || promise COMPLETE";
    env.run_with(&format!("{BLOCK}{script}"), &["x"]).run();
    let prompt = env.prompt(2);
    assert!(
        prompt.contains(&"x".repeat(400)) && !prompt.contains(&"x".repeat(501)),
        "it is bounded: {prompt}"
    );
}

#[test]
fn a_failed_agent_is_heard_if_it_needs_a_person() {
    for (said, code, outcome, file) in [
        ("promise 'BLOCKED:no key'", 2, "blocked", "blocked.txt"),
        ("promise 'DECIDE:no key?'", 3, "decide", "decide.txt"),
        ("block 'STATUS: BLOCKED\nRECOMMENDATION: no key'", 2, "blocked", "blocked.txt"),
    ] {
        let env = Env::new();
        let run = env.run_with(&format!("{BLOCK}work; {said}; exit 1"), &["x"]).run();
        assert_eq!((run.code, env.outcomes()), (Some(code), vec![outcome.to_owned()]), "{run:?}");
        assert!(env.read(&format!("ralph/{file}")).contains("no key"));
    }
    let env = Env::new();
    let run = env.run_claude("work; result '<promise>BLOCKED:no key</promise>'; exit 1", &["x"]).run();
    assert_eq!((run.code, env.outcomes()), (Some(2), vec!["blocked".to_owned()]), "{run:?}");
}

#[test]
fn max_stuck_warns_the_agent_and_the_user_one_iteration_before() {
    let env = Env::git();
    env.write(".git/refs/heads/main", "f".repeat(40));
    let run = env.run_with("work; echo \"thoughts about $n\"", &["--max-stuck", "3", "x"]).run();
    assert_eq!(run.code, Some(4), "{run:?}");
    let warning = "2 iterations in a row without a commit (files changed, nothing was committed); one more ends the loop";
    let warned: Vec<&str> = run.stdout.lines().filter(|line| line.contains("one more ends")).collect();
    assert_eq!(warned.len(), 1, "{run:?}");
    assert!(warned[0].starts_with("── iteration 2 ok") && warned[0].contains(warning), "{warned:?}");
    assert!(env.prompt(3).contains(warning) && !env.prompt(2).contains("one more ends"), "{}", env.prompt(3));

    let reason = "3 iterations in a row without a commit (files changed, nothing was committed)";
    assert!(run.stdout.contains(reason), "{run:?}");
    let shown = env.shown("ralph-run");
    assert_eq!(
        (&shown["stuck_count"], &shown["max_stuck"], &shown["reason"]),
        (&json!(3), &json!(3), &json!(reason))
    );
    assert!(env.ralph(&["status"]).ok().contains("3/3 iterations in a row without a commit"));
    let events: Vec<Value> = env
        .ralph(&["history", "--circuit", "--json"])
        .ok()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!((&events[0]["event"], &events[0]["reason"]), (&json!("trip"), &json!(reason)));
    assert_eq!((&events[0]["session_id"], &events[0]["run_id"]), (&json!("ralph-run"), &shown["run_id"]));
}

#[test]
fn without_a_changed_file_the_warning_says_that() {
    let env = Env::git();
    env.write(".git/refs/heads/main", "f".repeat(40));
    let run = env.run_with("echo \"thoughts about $n\"", &["x"]).run();
    assert_eq!(run.code, Some(4), "{run:?}");
    let line = run.stdout.lines().find(|line| line.contains("one more ends")).unwrap();
    assert!(line.contains("no commit, no changed file") && !line.contains("files changed,"), "{line}");
    assert_eq!(env.ralph(&["history", "--circuit"]).ok().matches("trip ").count(), 1);
}

#[test]
fn the_calls_left_and_when_the_window_frees_up_are_in_the_status() {
    let env = Env::new();
    let flags = ["--calls-per-hour", "3", "--max-iterations", "2", "x"];
    assert_eq!(env.run_with("work", &flags).run().code, Some(1));
    let frees_at = "2026-11-16T09:00:00.000Z";
    assert_eq!(env.shown("ralph-run")["calls"], json!({"per_hour": 3, "remaining": 1, "frees_at": frees_at}));
    let page = env.at(600).ralph(&["status"]).ok();
    assert!(page.contains("1 of 3 left this hour · the next frees up in 50m"), "{page}");
    env.at(HOUR);
    assert_eq!(env.shown("ralph-run")["calls"], json!({"per_hour": 3, "remaining": 3, "frees_at": null}));

    let env = Env::new();
    env.run_with("promise COMPLETE", &["--calls-per-hour", "0", "x"]).run();
    assert_eq!(env.shown("ralph-run")["calls"], Value::Null, "no limit");
}

#[test]
fn an_answer_stays_in_the_prompts_until_a_run_completes() {
    let env = Env::new();
    env.run_with("promise 'DECIDE:A or B?'", &["one"]).run();
    env.ralph(&["answer", "take", "B"]).ok();
    let answered = |n: u32| env.prompt(n).contains("A or B?") && env.prompt(n).contains("take B");
    assert_eq!(env.run_with("work", &["--max-iterations", "2", "one"]).run().code, Some(1));
    assert!(answered(2) && answered(3), "each iteration starts with a fresh context");
    assert_eq!(env.run_with("work; promise 'BLOCKED:no key'", &["two"]).run().code, Some(2));
    assert!(answered(4), "another run: {}", env.prompt(4));
    assert_eq!(env.run_with("work; promise COMPLETE", &["three"]).run().code, Some(0));
    assert!(answered(5), "whatever ended in between: {}", env.prompt(5));
    assert_eq!(env.run_with("work; promise COMPLETE", &["four"]).run().code, Some(0));
    assert!(!env.prompt(6).contains("take B"), "{}", env.prompt(6));
}

#[test]
fn a_blocked_txt_that_is_left_over_is_mentioned_given_to_the_agent_and_cleared_by_a_completed_run() {
    let env = Env::new();
    env.run_with("promise 'BLOCKED:no key for staging'", &["one"]).run();
    let run = env.at(10).run_with("work", &["--max-iterations", "1", "two"]).run();
    let told = "ralph/blocked.txt still exists: \"no key for staging\"";
    assert!(run.stdout.contains(told), "{run:?}");
    let prompt = env.prompt(2);
    assert!(prompt.contains("ended as blocked") && prompt.contains("no key for staging"), "{prompt}");
    assert!(env.exists("ralph/blocked.txt"), "nothing was resolved yet");

    assert_eq!(env.at(20).run_with("work; promise COMPLETE", &["two"]).run().code, Some(0));
    assert!(env.prompt(3).contains("no key for staging"));
    assert!(!env.exists("ralph/blocked.txt") && env.list("ralph/answered").len() == 1);
    let run = env.at(30).run_with("work; promise COMPLETE", &["three"]).run();
    assert!(!run.stdout.contains("blocked.txt") && !env.prompt(4).contains("staging"), "{run:?}");
}

#[test]
fn a_claim_of_an_agent_that_failed_is_answered() {
    let env = Env::new();
    let run = env.run_with("work; promise COMPLETE; exit 1", &["--max-iterations", "2", "x"]).run();
    let told = "the agent claimed completion and then failed";
    assert!(run.stdout.contains(&format!("signal ignored: {told}")), "{run:?}");
    assert!(env.prompt(2).contains(told), "{}", env.prompt(2));
}

#[test]
fn max_stuck_trips_the_breaker() {
    let env = Env::git();
    env.write(".git/refs/heads/main", "a".repeat(40));
    assert_eq!(env.run_with("work", &["--max-stuck", "2", "x"]).run().code, Some(4));
    assert_eq!(env.shown("ralph-run")["circuit"]["state"], "tripped");
    assert!(env.run_with("work", &[]).run().fails(4).contains("--reset"));
}
