//! Checks in a run: shown at its start, to the agent, and wherever a person looks for their results.

use crate::agents::summary;
use crate::env::{Env, Program};
use serde_json::{Value, json};

/// A check that fails until the second claim.
const SECOND: &str =
    "echo checked >> ../checks; test $(wc -l < ../checks) -gt 1 || { echo not yet; exit 3; }";

#[test]
fn a_check_is_shown_before_it_runs_and_each_result_after() {
    let env = Env::new();
    let run = env.run_with("work; promise COMPLETE", &["--verify", "true", "--verify", SECOND, "x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(lines[0].contains("· 2 checks ·"), "{run:?}");
    assert_eq!(&lines[2..4], ["Check: true".to_owned(), format!("Check: {}", &SECOND[..SECOND.len()])]);
    assert!(run.stdout.contains("Check: true · passed"), "{run:?}");
    assert!(run.stdout.contains("· failed: exit code 3 · "), "{run:?}");
    assert!(run.stdout.contains("\n  not yet\n"), "the end of its output: {run:?}");
    assert_eq!(summary(&run, "Reason"), "the agent promised COMPLETE, and all 2 checks passed");
    assert!(run.stdout.contains("\nCheck:       passed: true\nCheck:       passed: echo checked"), "{run:?}");
    for n in [1, 2] {
        let prompt = env.prompt(n);
        assert!(
            prompt.contains("Ralph runs these checks when you claim completion:\n- true\n- echo"),
            "{prompt}"
        );
    }
    let rows: Vec<String> = env.rows().iter().map(|row| row[11].clone()).collect();
    assert!(rows[0].starts_with("failed (exit code 3): echo checked") && rows[1] == "passed", "{rows:?}");
}

#[test]
fn scripts_get_each_result_as_an_event() {
    let env = Env::new();
    let run = env.run_with("work; promise COMPLETE", &["--json", "--verify", SECOND, "x"]).run();
    let events: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let checks: Vec<&Value> = events.iter().filter(|event| event["event"] == "check").collect();
    assert_eq!(checks.len(), 2, "{events:?}");
    for (check, passed, exit_code, tail) in [(checks[0], false, 3, "not yet"), (checks[1], true, 0, "")] {
        assert_eq!((&check["command"], &check["passed"]), (&json!(SECOND), &json!(passed)));
        assert_eq!((&check["exit_code"], &check["tail"]), (&json!(exit_code), &json!(tail)));
        assert!(check["seconds"].is_number(), "{check}");
    }
    assert_eq!(events[0]["checks"], json!([SECOND]));
    assert_eq!(events.last().unwrap()["checks"][0]["passed"], true);
}

#[test]
fn a_run_that_ends_at_its_limit_says_that_its_last_claim_was_rejected() {
    let env = Env::new();
    let told = env.base.join("told").display().to_string();
    let notify = format!("printf '%s|%s\\n' \"$RALPH_REASON\" \"$RALPH_CHECKS\" > {told}");
    let flags = ["--verify", "exit 7", "--max-iterations", "2", "--notify", &notify, "x"];
    let run = env.run_with("work; promise COMPLETE", &flags).run();
    let reason =
        "2 of 2 iterations done; the last claim of completion was rejected: `exit 7` failed (exit code 7)";
    assert_eq!((run.code, summary(&run, "Reason")), (Some(1), reason), "{run:?}");
    assert_eq!(env.wait_for_file("told"), format!("{reason}|failed (exit code 7): exit 7"));
    let last = &env.history()[0];
    assert_eq!((&last["reason"], &last["checks"][0]["exit_code"]), (&json!(reason), &json!(7)));
    assert!(env.ralph(&["history"]).ok().contains("  check failed (exit code 7): exit 7\n"));
}

#[test]
fn status_shows_each_check_with_its_last_result() {
    let env = Env::new();
    let flags =
        ["--verify", "true", "--verify", "exit 7", "--verify", "echo never", "--max-iterations", "1", "x"];
    assert_eq!(env.run_with("work; promise COMPLETE", &flags).run().code, Some(1));
    let shown = env.ralph(&["status"]).ok();
    for check in ["passed: true", "failed (exit code 7): exit 7", "not run: echo never"] {
        assert!(shown.contains(&format!("  Check       {check}\n")), "{shown}");
    }
    let checks = &env.status()["loops"][0]["checks"];
    let brief: Vec<Value> = checks
        .as_array()
        .unwrap()
        .iter()
        .map(|check| json!([check["command"], check["passed"], check["exit_code"]]))
        .collect();
    assert_eq!(json!(brief), json!([["true", true, 0], ["exit 7", false, 7], ["echo never", null, null]]));
    assert!(checks[0]["at"].is_string() && checks[2]["at"].is_null(), "{checks}");
}

#[test]
fn a_session_shows_its_checks_too() {
    let env = Env::new();
    let said = env.ralph(&["start", "--session", "s", "task", "--verify", "exit 7"]).ok();
    assert!(said.contains("\nCheck: exit 7\n"), "{said}");
    env.turn("s", "<promise>COMPLETE</promise>").continues();
    assert_eq!(env.status()["loops"][0]["checks"][0]["exit_code"], 7);
}

/// Returns a list with these check commands, whose only story needs a review.
fn list(commands: &[&str]) -> String {
    json!({"verifyCommands": commands, "userStories": [{"id": "US-1", "passes": true}]}).to_string()
}

#[test]
fn the_commands_of_a_task_list_run_once_they_are_trusted() {
    let env = Env::new();
    env.write("ralph/tasks.json", list(&["echo checked >> ../checked"]));
    let complete = || env.run_with("work; promise COMPLETE", &["--skip-review", "x"]).run();
    let run = complete();
    assert_eq!(run.code, Some(0), "{run:?}");
    let warning = "ralph/tasks.json: verifyCommands is not run until you trust it with `ralph trust`";
    assert!(run.stdout.contains(warning) && !env.base.join("checked").exists(), "{run:?}");
    let shown = env.ralph(&["trust", "--show"]).ok();
    assert!(shown.contains("verifyCommands (not trusted, not run)\n  echo checked >> ../checked"), "{shown}");

    env.ralph(&["trust"]).ok();
    let run = complete();
    assert!(run.stdout.contains("· 1 check ·") && env.base.join("checked").exists(), "{run:?}");
    assert_eq!(
        summary(&run, "Reason"),
        "the agent promised COMPLETE, and `echo checked >> ../checked` passed"
    );

    // Another text, another trust: an agent cannot bring its own.
    env.write("ralph/tasks.json", list(&["echo other >> ../other"]));
    assert!(complete().stdout.contains(warning) && !env.base.join("other").exists());
}

#[test]
fn an_agent_that_removes_the_lists_commands_removes_no_check() {
    let env = Env::new();
    env.write("ralph/tasks.json", list(&["exit 7"]));
    env.ralph(&["trust"]).ok();
    std::fs::write(env.base.join("without"), list(&[])).unwrap();
    let script = "work; cp ../without ralph/tasks.json; promise COMPLETE";
    let run = env.run_with(script, &["--skip-review", "--max-iterations", "2", "x"]).run();
    assert!(run.code == Some(1) && summary(&run, "Reason").contains("`exit 7` failed"), "{run:?}");
}

#[test]
fn a_session_runs_the_trusted_commands_of_the_list() {
    let env = Env::new();
    env.write("ralph/tasks.json", list(&["exit 7"]));
    env.ralph(&["trust"]).ok();
    env.start("task", &[]);
    let answer = env.turn(crate::env::SESSION, "<promise>COMPLETE</promise>");
    let prompt = answer.continues();
    assert!(prompt.contains("`exit 7` failed (exit code 7)"), "{prompt}");
    assert!(env.call(Program::Ralph).args(&["config"]).run().ok().contains("exit 7"));
}

#[test]
fn a_check_of_an_earlier_call_is_not_shown_beside_the_present_ones() {
    let env = Env::new();
    let script = "work; promise COMPLETE";
    assert_eq!(
        env.run_with(script, &["--verify", "exit 7", "--max-iterations", "1", "x"]).run().code,
        Some(1)
    );
    assert_eq!(env.run_with(script, &["--verify", "true", "--max-iterations", "2"]).run().code, Some(0));
    let shown = env.ralph(&["history"]).ok();
    assert!(shown.contains("check passed: true") && !shown.contains("exit 7"), "{shown}");
}

#[test]
fn a_check_that_was_cancelled_did_not_fail() {
    let env = Env::new();
    let run =
        env.run_with("work; promise COMPLETE", &["--verify", "echo > ../started; sleep 600", "x"]).spawn();
    env.wait_for_file("started");
    run.signal(rustix::process::Signal::INT);
    let run = run.wait();
    assert!(run.code == Some(130) && !run.stdout.contains("· failed"), "{run:?}");
    assert_eq!(env.rows()[0][11], "", "{run:?}");
}
