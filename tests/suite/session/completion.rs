//! A claim of completion is checked before it counts.

use crate::env::{Env, SESSION, wait_until};
use serde_json::json;

const DONE: &str = "All done.\n<promise>COMPLETE</promise>";

#[test]
fn a_failed_check_is_reported_to_the_agent_and_a_passed_one_ends_the_loop() {
    let env = Env::new();
    env.start(
        "task",
        &["--verify", "echo checking; test -f done.txt || { echo 'no done.txt' >&2; exit 7; }"],
    );
    let answer = env.at(10).turn(SESSION, DONE);
    let prompt = answer.continues();
    assert!(prompt.contains("test -f done.txt") && prompt.contains("exit code 7"), "{prompt}");
    assert!(prompt.contains("checking\nno done.txt"), "the last lines: {prompt}");
    let told = answer.message.unwrap();
    assert!(told.contains("completion rejected") && told.contains("exit code 7"), "{told}");
    env.write("done.txt", "");
    let answer = env.at(20).turn(SESSION, DONE);
    let told = answer.ended("complete");
    assert!(told.contains("` passed") && !told.contains("not verified"), "{told}");
    assert_eq!(env.history()[0]["iterations"], 2);
}

#[test]
fn checks_run_in_order_up_to_the_first_failure_and_only_for_a_claim() {
    let env = Env::new();
    let note = |name: &str, code: u8| format!("echo {name} >> order.txt; exit {code}");
    let (first, second, third) = (note("first", 0), note("second", 1), note("third", 0));
    env.start("task", &["--verify", &first, "--verify", &second, "--verify", &third]);
    env.at(10).turn(SESSION, "Working on the first part.").continues();
    assert!(!env.exists("order.txt"), "nothing was claimed");
    env.at(20).turn(SESSION, DONE).continues();
    assert_eq!(env.read("order.txt"), "first\nsecond\n");
}

#[test]
fn without_checks_a_claim_is_believed_and_the_ending_says_so() {
    let env = Env::new();
    env.start("task", &[]);
    let answer = env.turn(SESSION, DONE);
    assert!(answer.ended("complete").contains("not verified"));
}

#[test]
fn a_minimum_rejects_a_claim_before_any_check_runs() {
    let env = Env::new();
    env.start("task", &["--min-iterations", "2", "--verify", "touch ran.txt"]);
    let answer = env.at(10).turn(SESSION, DONE);
    assert!(answer.continues().contains("Use the remaining time"), "{answer:?}");
    assert!(!env.exists("ran.txt"));
    env.at(20).turn(SESSION, DONE).ended("complete");
    assert!(env.exists("ran.txt"));
}

#[test]
fn every_task_must_pass_where_there_are_tasks() {
    let env = Env::new();
    let tasks = |passes: [bool; 2]| json!({"userStories": [{"id": "US-1", "passes": passes[0]}, {"id": "US-2", "passes": passes[1]}]});
    env.write("ralph/tasks.json", tasks([true, false]).to_string());
    env.start("task", &["--verify", "touch ran.txt"]);
    let answer = env.at(10).turn(SESSION, DONE);
    let prompt = answer.continues();
    assert!(
        prompt.contains("1 of 2 tasks") && prompt.contains("US-2") && !prompt.contains("US-1"),
        "{prompt}"
    );
    assert!(!env.exists("ran.txt"), "tasks come before checks");
    env.write("ralph/tasks.json", "{\"userStories\": ");
    let answer = env.at(20).turn(SESSION, DONE);
    assert!(answer.continues().contains("ralph/tasks.json is not valid JSON"), "{answer:?}");
    env.write("ralph/tasks.json", tasks([true, true]).to_string());
    env.at(30).turn(SESSION, DONE).ended("complete");
}

#[test]
fn an_exit_signal_needs_phrases_beside_it() {
    let env = Env::new();
    env.start("task", &[]);
    let block = "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---";
    env.at(10).turn(SESSION, &format!("Cleaned up.\n{block}")).continues();
    let said = format!("All tasks are complete. The implementation is finished.\n{block}");
    let told = env
        .at(20)
        .turn(SESSION, &format!("```\n{said}\n```\nThis is how I will end."))
        .continues()
        .to_owned();
    assert!(!told.contains("rejected"), "a fence is no signal: {told}");
    let answer = env.at(30).turn(SESSION, &said);
    assert!(answer.ended("complete").contains("EXIT_SIGNAL"), "{answer:?}");
}

#[test]
fn a_status_of_blocked_ends_the_loop_with_its_recommendation() {
    let env = Env::new();
    env.start("task", &[]);
    let block =
        "---RALPH_STATUS---\n**STATUS:** BLOCKED\nRECOMMENDATION: give me the key\n---END_RALPH_STATUS---";
    let answer = env.turn(SESSION, &format!("I cannot go on.\n{block}"));
    assert!(answer.ended("blocked").contains("give me the key"), "{answer:?}");
    assert!(env.read("ralph/blocked.txt").contains("give me the key"));
}

#[test]
fn a_check_that_hangs_is_killed_with_all_it_started() {
    let env = Env::new();
    env.write(".claude/ralph-config.json", json!({"completion": {"verify_timeout_seconds": 60}}).to_string());
    env.start("task", &["--verify", "sleep 600 & echo waiting; touch running.txt; wait"]);
    let clock = env.clock();
    let hook = env.stop(SESSION).says(DONE).call().spawn();
    until_running(&env);
    clock.advance(60);
    let answer = hook.wait().answer();
    let prompt = answer.continues();
    assert!(prompt.contains("timed out after 1m") && prompt.contains("waiting"), "{prompt}");
    assert_eq!(env.processes(), [""; 0]);
}

#[test]
fn all_checks_share_the_time_that_the_client_gives_the_hook() {
    let env = Env::new();
    env.write(
        ".claude/ralph-config.json",
        json!({"completion": {"verify_timeout_seconds": 3400}}).to_string(),
    );
    let first = "touch running.txt; until [ -f go.txt ]; do sleep 0.05; done";
    env.start("task", &["--verify", first, "--verify", "touch second.txt; sleep 600"]);
    let clock = env.clock();
    let hook = env.stop(SESSION).says(DONE).call().spawn();
    until_running(&env);
    clock.advance(3200);
    env.write("go.txt", "");
    wait_until("the second check runs", || env.exists("second.txt"));
    // Its own limit is much longer.
    clock.advance(300);
    let answer = hook.wait().answer();
    assert!(answer.continues().contains("timed out after 5m"), "{answer:?}");
}

#[test]
fn while_a_check_runs_other_programs_work_and_a_stop_wins() {
    let env = Env::new();
    env.start("task", &["--verify", "touch running.txt; while [ ! -f go.txt ]; do sleep 0.05; done"]);
    let hook = env.at(10).stop(SESSION).says(DONE).call().spawn();
    until_running(&env);
    env.guidance(&["encourage", "--session", SESSION, "heard meanwhile"]).ok();
    env.ralph(&["stop", "--session", SESSION]).ok();
    env.write("go.txt", "");
    let answer = hook.wait().answer();
    answer.ended("stopped");
    assert_eq!(env.history()[0]["outcome"], "stopped");
    assert_eq!(env.status()["guidance"]["encouraged"][0]["text"], "heard meanwhile");
}

#[test]
fn checks_of_a_project_run_only_once_they_are_trusted() {
    let env = Env::new();
    env.write(".claude/ralph-config.json", json!({"completion": {"verify": ["touch ran.txt"]}}).to_string());
    let told = env.start("task", &[]);
    assert!(told.contains("completion.verify is not run") && told.contains("ralph trust"), "{told}");
    let answer = env.at(10).turn(SESSION, DONE);
    let told = answer.ended("complete");
    assert!(told.contains("not verified") && told.contains("`ralph trust`"), "{told}");
    assert!(!env.exists("ran.txt"));
    env.ralph(&["trust"]).ok();
    env.at(20).start("task", &[]);
    env.at(30).turn(SESSION, DONE).ended("complete");
    assert!(env.exists("ran.txt"));
}

#[test]
fn what_a_check_prints_is_bounded_and_harmless() {
    let env = Env::new();
    let noisy = r"i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; printf 'red \033[31m\377end\n'; exit 1";
    env.start("task", &["--verify", noisy]);
    let answer = env.turn(SESSION, DONE);
    let prompt = answer.continues();
    assert!(prompt.len() < 8000 && prompt.contains("end") && !prompt.contains('\u{1b}'), "{prompt}");
}

#[test]
fn what_a_check_changes_is_not_progress_of_the_agent() {
    let commit = "printf '%040d\\n' $(wc -l < log.txt) > .git/refs/heads/main";
    // Whatever changes the loop meanwhile, the agent's turn ended before.
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let limit = format!("{commit}; {ralph} config loop_limits.max_hours $((9 + $(wc -l < log.txt)))");
    for (name, change) in [("a file", ":"), ("a commit", commit), ("a limit", &limit)] {
        let env = Env::git();
        env.write(".git/refs/heads/main", format!("{}\n", "a".repeat(40)));
        env.write("a.txt", "1");
        env.start("task", &["--verify", &format!("echo x >> log.txt; {change}; exit 1")]);
        for (turn, part) in ["one", "two", "three", "four"].iter().enumerate() {
            let message = format!("Looked at part {part} of it all.\n<promise>COMPLETE</promise>");
            env.at(10 * (turn as i64 + 1)).turn(SESSION, &message).continues();
        }
        let answer = env.at(90).turn(SESSION, "Another look at the whole.\n<promise>COMPLETE</promise>");
        assert!(answer.ended("stuck").contains("without progress"), "{name}: {answer:?}");
        assert_eq!(env.read("log.txt").lines().count(), 5, "{name}: the check ran at each claim");
    }
}

/// Waits until a check says that it runs.
fn until_running(env: &Env) {
    wait_until("the check runs", || env.exists("running.txt"));
}

#[test]
fn another_run_is_not_judged_by_the_claim_of_the_one_before() {
    let env = Env::new();
    env.start("old", &["--verify", "touch running.txt; while [ ! -f go.txt ]; do sleep 0.05; done"]);
    let hook = env.at(10).stop(SESSION).says(DONE).call().spawn();
    until_running(&env);
    env.at(11).ralph(&["start", "--session", SESSION, "--replace", "--verify", "false", "brand new"]).ok();
    env.write("go.txt", "");
    hook.wait().answer().continues();
    assert_eq!(env.shown(SESSION)["task"], "brand new");
    assert_eq!(env.shown(SESSION)["state"], "running");
}

#[test]
fn a_stop_or_the_kill_switch_ends_a_check_at_once() {
    for (outcome, stop) in [("stopped", true), ("killed", false)] {
        let env = Env::new();
        env.start("task", &["--verify", "touch running.txt; sleep 600"]);
        let hook = env.at(10).stop(SESSION).says(DONE).call().spawn();
        until_running(&env);
        if stop {
            env.ralph(&["stop", "--session", SESSION]).ok();
        } else {
            env.write(".claude/STOP_LOOP", "");
        }
        hook.wait().answer().ended(outcome);
        assert!(!env.exists(".claude/STOP_LOOP"));
    }
}

#[test]
fn a_project_file_cannot_remove_checks() {
    let env = Env::new();
    std::fs::write(env.base.join("config/config.json"), r#"{"completion": {"verify": ["false"]}}"#).unwrap();
    env.write(".claude/ralph-config.json", json!({"completion": {"verify": []}}).to_string());
    env.start("task", &[]);
    env.at(10).turn(SESSION, DONE).continues();

    let env = Env::without_breaker();
    env.write(".claude/ralph-config.json", json!({"completion": {"verify": ["false"]}}).to_string());
    env.ralph(&["trust"]).ok();
    env.start("task", &[]);
    env.at(10).turn(SESSION, DONE).continues();
    for lessened in [json!(["false "]), json!([]), json!(null)] {
        env.write(".claude/ralph-config.json", json!({"completion": {"verify": lessened}}).to_string());
        env.at(20).turn(SESSION, DONE).continues();
    }
    std::fs::remove_file(env.path(".claude/ralph-config.json")).unwrap();
    env.at(30).turn(SESSION, DONE).continues();
}

#[test]
fn a_task_list_that_was_deleted_does_not_complete_the_loop() {
    let env = Env::new();
    env.write("ralph/tasks.json", json!({"userStories": [{"id": "S1", "passes": false}]}).to_string());
    env.start("task", &[]);
    env.at(10).turn(SESSION, DONE).continues();
    std::fs::remove_file(env.path("ralph/tasks.json")).unwrap();
    let answer = env.at(20).turn(SESSION, DONE);
    assert!(answer.continues().contains("ralph/tasks.json is missing"), "{answer:?}");
}

#[test]
fn a_failed_check_is_reported_even_while_work_runs_in_the_background() {
    let env = Env::new();
    env.start("task", &["--verify", "echo broken; exit 9"]);
    let answer = env.at(10).stop(SESSION).says(DONE).background("dev server").run();
    assert!(answer.allows().contains("failed (exit code 9)"), "{answer:?}");
    env.write("a.rs", "");
    let answer = env.at(20).turn(SESSION, "Looking into it.");
    assert!(
        answer.continues().contains("exit code 9") && answer.continues().contains("broken"),
        "{answer:?}"
    );
}
