//! Every way `ralph run` ends, with its exit code, its words and its records.

use crate::agents::summary;
use crate::env::{Call, Env, Run};
use rustix::process::Signal;

fn ends(env: &Env, call: Call, code: i32, outcome: &str) -> Run {
    assert_ended(env, call.run(), code, outcome)
}

/// Asserts the exit code, and the outcome in the table, the summary and the history.
fn assert_ended(env: &Env, run: Run, code: i32, outcome: &str) -> Run {
    assert_eq!((run.code, run.stderr.as_str()), (Some(code), ""), "{}", run.stdout);
    assert_eq!(summary(&run, "Exit"), format!("{} (code {code})", outcome.to_uppercase()));
    assert_eq!(env.outcomes().last().map(String::as_str), Some(outcome));
    let history = env.history();
    assert_eq!((history.len(), &history[0]["outcome"]), (1, &outcome.into()), "{history:?}");
    assert_eq!(env.shown("ralph-run")["outcome"], outcome);
    assert!(!env.exists("ralph/run.lock"), "the project is free again");
    env.wait_until_nothing_runs();
    run
}

#[test]
fn complete_is_0() {
    let env = Env::new();
    let call = env.run_with("work; [ $n = 2 ] && promise COMPLETE", &["finish it"]);
    let run = ends(&env, call, 0, "complete");
    assert_eq!(summary(&run, "Iterations"), "2 / 50");
    assert!(!run.stdout.contains("Next:"), "nothing is left to do: {}", run.stdout);
}

#[test]
fn a_limit_is_1() {
    let env = Env::new();
    let call = env.run_with("work", &["--max-iterations", "2", "x"]);
    let run = ends(&env, call, 1, "max-iterations");
    assert_eq!(summary(&run, "Iterations"), "2 / 2");
    let status = env.ralph(&["status"]).ok();
    assert!(status.contains("ralph run --max-iterations N") && !status.contains("/ralph:start"), "{status}");

    let env = Env::new();
    let clock = env.clock();
    let mut run = env.run_with("work; echo at work; wait_for go", &["--max-hours", "1", "x"]).spawn();
    run.until("at work");
    clock.advance(3600);
    env.touch("go");
    assert_ended(&env, run.wait(), 1, "max-runtime");

    let env = Env::new();
    let call = env.run_claude("work; result \"step $n\" 0.6", &["--max-cost", "1", "x"]);
    let run = ends(&env, call, 1, "max-cost");
    assert_eq!(summary(&run, "Usage"), "30 tokens · $1.20");
    let costs: Vec<_> = env.rows().into_iter().map(|row| (row[9].clone(), row[10].clone())).collect();
    assert_eq!(costs, [("0.6000".into(), "15".into()), ("0.6000".into(), "15".into())]);
}

#[test]
fn blocked_is_2_and_decide_is_3_and_the_answer_reaches_the_agent() {
    for (word, code, outcome, file) in
        [("BLOCKED:no key", 2, "blocked", "blocked.txt"), ("DECIDE:A or B?", 3, "decide", "decide.txt")]
    {
        let env = Env::new();
        let script = format!("work; [ $n = 1 ] && promise '{word}' || promise COMPLETE");
        let run = ends(&env, env.run_with(&script, &["x"]), code, outcome);
        let question = word.split_once(':').unwrap().1;
        assert_eq!(summary(&run, "Reason"), question);
        assert!(env.read(&format!("ralph/{file}")).contains(question));
        if outcome == "decide" {
            let refused = env.run_with(&script, &["x"]).run().fails(3);
            assert!(refused.contains(question), "{refused}");
            assert_eq!(env.starts(), 1);
            env.ralph(&["answer", "take", "B"]).ok();
        }
        let run = env.run_with(&script, &["x"]).run();
        assert_eq!(run.code, Some(0), "{run:?}");
        if outcome == "decide" {
            let prompt = env.prompt(2);
            assert!(prompt.contains(question) && prompt.contains("take B"), "{prompt}");
            assert!(!env.exists("ralph/decide.txt"));
        }
    }
}

#[test]
fn stuck_and_circuit_are_4() {
    let env = Env::git();
    let call = env.run_with("work; echo \"thoughts about $n\"", &["--max-stuck", "2", "x"]);
    let run = ends(&env, call, 4, "stuck");
    let reason = "2 iterations in a row without a commit (files changed, nothing was committed)";
    assert_eq!(summary(&run, "Reason"), reason);
    assert_eq!(summary(&run, "Stuck iters"), "2");

    let env = Env::new();
    let call = env.run_with("work; echo \"error: disk on fire\"; exit 3", &["--max-stuck", "0", "x"]);
    let run = ends(&env, call, 4, "circuit");
    assert!(summary(&run, "Reason").contains("same error"), "{run:?}");
    // A run that does not begin says why by the code the last one ended with.
    let refused = env.run_with("work", &["x"]).run().fails(4);
    assert!(refused.contains("reset"), "{refused}");
    assert_eq!(env.run_with("promise COMPLETE", &["--reset", "x"]).run().code, Some(0));
}

#[test]
fn a_usage_limit_is_5_if_the_run_does_not_wait() {
    let env = Env::new();
    let script = "text 'I got this far'; limit 1794834014";
    let run = ends(&env, env.run_claude(script, &["--on-limit", "stop", "x"]), 5, "usage-limit");
    assert_eq!(summary(&run, "Reason"), "usage limit reached, resets at 2026-11-16 13:00 UTC · limit");
}

#[test]
fn wrong_usage_is_64_and_starts_nothing() {
    let env = Env::new();
    env.write("empty.md", " \n").write("binary.md", [0xff, 0xfe]);
    for (flags, part) in [
        (&[][..], "nothing to run"),
        (&["--max-iterations", "x", "x"], "--max-iterations"),
        (&["--max-iterations=-1", "x"], "-1"),
        (&["--no-such-flag", "x"], "--no-such-flag"),
        (&["--on-limit", "maybe", "x"], "maybe"),
        (&["-f", "nowhere.md"], "nowhere.md"),
        (&["-f", "empty.md"], "empty"),
        (&["-f", "binary.md"], "UTF-8"),
        (&["-f", "empty.md", "x"], "cannot be used with"),
        (&["-"], "stdin"),
    ] {
        let said = env.run_with("work", flags).run().fails(64);
        assert!(said.contains(part), "{flags:?}: {said}");
    }
    assert_eq!(env.starts(), 0);
    assert!(!env.exists("ralph/run.lock") && env.shown("ralph-run").is_null());
}

#[test]
fn a_missing_or_old_client_is_69_with_a_hint() {
    let env = Env::new();
    let said = env.ralph(&["run", "--claude", "/no/such/claude", "x"]).fails(69);
    assert!(said.contains("/no/such/claude") && said.contains("--agent-command"), "{said}");
    let old = env.run_claude("", &["x"]);
    let path = env.base.join("claude.sh");
    let text = std::fs::read_to_string(&path).unwrap().replace("2.1.325", "1.0.9");
    std::fs::write(&path, text).unwrap();
    let said = old.run().fails(69);
    assert!(said.contains("1.0.9") && said.contains("too old"), "{said}");
    assert!(env.shown("ralph-run").is_null(), "nothing was begun");
}

#[test]
fn an_agent_that_its_shell_does_not_know_is_69_too() {
    let env = Env::new();
    for line in ["no-such-agent --fast", "./no-such-agent.sh | cat"] {
        let said = env.ralph(&["run", "--agent-command", line, "x"]).fails(69);
        assert!(said.contains("no-such-agent") && said.contains("--agent-command"), "{said}");
    }
    assert!(env.shown("ralph-run").is_null(), "nothing was begun");
    for line in ["echo '<promise>COMPLETE</promise>'", "if true; then echo '<promise>COMPLETE</promise>'; fi"]
    {
        env.ralph(&["run", "--agent-command", line, "x"]).ok();
    }
}

#[test]
fn an_error_that_no_retry_fixes_is_70() {
    for (status, part) in [("401", "log in"), ("402", "billing failed")] {
        let env = Env::new();
        let run = ends(&env, env.run_claude(&format!("error {status}"), &["x"]), 70, "error");
        assert!(summary(&run, "Reason").contains(part), "{run:?}");
        assert_eq!(env.starts(), 1);
    }
}

#[test]
fn interrupted_is_130() {
    let interrupted = |signal: Signal| {
        let env = Env::git();
        env.write(".git/refs/heads/main", "a".repeat(40));
        let mut run = env.run_with("echo at work; sleep 600", &["x"]).spawn();
        run.until("at work");
        run.signal(signal);
        let run = run.wait();
        assert_eq!((run.code, env.outcomes()), (Some(130), vec!["interrupted".to_owned()]), "{run:?}");
        assert_eq!(summary(&run, "Exit"), "INTERRUPTED (code 130)");
        assert_eq!(env.rows()[0][3], "", "nothing was committed in it");
        assert_eq!((env.history().len(), &env.history()[0]["outcome"]), (1, &"interrupted".into()));
        env.wait_until_nothing_runs();
    };
    std::thread::scope(|scope| {
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            scope.spawn(move || interrupted(signal));
        }
    });
}

#[test]
fn a_critical_constraint_is_70() {
    let env = Env::git();
    env.write(".git/MERGE_HEAD", "0123456789012345678901234567890123456789\n");
    let said = env.run_with("work", &["x"]).run().fails(70);
    assert!(said.contains("critical"), "{said}");
    assert_eq!(env.starts(), 0);
}
