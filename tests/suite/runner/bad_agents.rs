//! Agents and environments that misbehave: the run survives and reports it.

use crate::agents::summary;
use crate::env::{Env, Program, ignores_permissions, wait_until};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn an_agent_that_prints_nothing_gets_stuck() {
    let env = Env::new();
    let run = env.run_with("true", &["x"]).run();
    assert_eq!(
        (run.code, env.outcomes()),
        (Some(4), vec!["ok".into(), "ok".into(), "stuck".into()]),
        "{run:?}"
    );
    assert_eq!(summary(&run, "Reason"), "3 iterations in a row without a changed file");
    assert_eq!(fs::metadata(env.path("ralph/logs/iteration-001.log")).unwrap().len(), 0);
}

#[test]
fn without_git_a_change_in_the_work_tree_is_progress() {
    let env = Env::new();
    let run = env.run_with("work; echo \"thing $n\"", &["--max-iterations", "5", "x"]).run();
    assert_eq!((run.code, env.rows().len()), (Some(1), 5), "{run:?}");
    assert!(run.stdout.contains("not in a git repository"), "{run:?}");
    assert!(env.rows().iter().all(|row| row[6] == "0" && row[3].is_empty()), "{:?}", env.rows());
}

#[test]
fn stuck_can_be_switched_off() {
    let env = Env::git();
    let flags = ["--max-stuck", "0", "--max-iterations", "5", "x"];
    let run = env.run_with("work; echo \"thing $n\"", &flags).run();
    assert_eq!((run.code, env.rows().len()), (Some(1), 5), "{run:?}");
    assert_eq!(env.rows()[4][6], "5", "and is counted all the same");
    assert!(!run.stdout.contains("no git repository"), "{run:?}");
}

/// Returns the peak memory of a process, in kilobytes.
fn peak(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.split_whitespace().next()?.parse().ok()
}

#[test]
fn a_line_of_a_hundred_megabytes_takes_no_memory() {
    for stream in [false, true] {
        let env = Env::new();
        // The runner waits for us at its end, so that its peak can be read.
        let script = "work; head -c 100000000 /dev/zero; echo; ";
        let verify = ["--quiet", "--verify", "touch ../over; until [ -e ../go ]; do sleep 0.05; done", "x"];
        let call = match stream {
            true => env.run_claude(&format!("{script} result '<promise>COMPLETE</promise>'"), &verify),
            false => env.run_with(&format!("{script} promise COMPLETE"), &verify),
        };
        let run = call.spawn();
        wait_until("all is printed", || env.base.join("over").exists());
        let peak = peak(run.pid()).unwrap();
        env.touch("go");
        let run = run.wait();
        assert_eq!(run.code, Some(0), "{stream}: {run:?}");
        assert!(peak < 64 << 10, "{stream}: {peak} kB");
        let log = fs::read(env.path("ralph/logs/iteration-001.log")).unwrap();
        assert!(log.len() > 50_000_000 && log.ends_with(b"\n[ralph: cut at 50 MB]\n"), "{}", log.len());
    }
}

#[test]
fn an_agent_that_exits_at_once_ends_the_run() {
    let env = Env::new();
    let run = env.run_with("exit 9", &["--max-stuck", "0", "--max-iterations", "1000", "x"]).run();
    assert_eq!((run.code, env.rows().len()), (Some(70), 3), "{run:?}");
    assert_eq!(summary(&run, "Reason"), "same error 3 times in a row: exit code 9");
}

#[test]
fn an_agent_that_is_killed_fails_by_its_signal() {
    let env = Env::new();
    let script = "work; [ $n = 2 ] && { promise COMPLETE; exit; }; promise COMPLETE; kill -9 $$";
    let run = env.run_with(script, &["x"]).run();
    assert_eq!((run.code, env.outcomes()), (Some(0), vec!["failed".into(), "complete".into()]), "{run:?}");
    assert!(run.stdout.contains("killed by signal 9"), "{run:?}");
}

#[test]
fn a_promise_of_an_agent_that_failed_does_not_count() {
    let env = Env::new();
    let run = env.run_with("work; promise COMPLETE; exit 1", &["--max-iterations", "1", "x"]).run();
    assert_eq!((run.code, env.outcomes()), (Some(1), vec!["max-iterations".to_owned()]), "{run:?}");
}

#[test]
fn output_that_is_not_json_is_skipped() {
    let env = Env::new();
    let script = r#"work; echo 'no json'; echo '{"type":7}'; printf '\377\376\000{\n[]\nnull\n'; echo '{"type":"result"'
result '<promise>COMPLETE</promise>'"#;
    let run = env.run_claude(script, &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn logs_that_cannot_be_written_refuse_the_run() {
    let env = Env::new();
    env.write("ralph/logs", "a file in the way");
    let said = env.run_with("work", &["x"]).run().fails(70);
    assert!(said.contains("ralph/logs"), "{said}");
    assert_eq!(env.starts(), 0);
    assert!(
        !env.exists("ralph/run.lock") && env.shown("ralph-run").is_null(),
        "nothing was begun: {}",
        env.status()
    );

    if ignores_permissions() {
        return;
    }
    let env = Env::new();
    env.write("ralph/logs/iteration-001.log", "old");
    fs::set_permissions(env.path("ralph/logs"), fs::Permissions::from_mode(0o500)).unwrap();
    let said = env.run_with("work", &["x"]).run().fails(70);
    assert!(said.contains("logs"), "{said}");
    assert!(!env.exists("ralph/run.lock") && env.shown("ralph-run").is_null(), "nothing was begun");
}

#[test]
fn logs_that_are_lost_during_a_run_do_not_end_it() {
    let env = Env::new();
    let script = "work; case $n in 1) rm -r ralph/logs; echo x > ralph/logs;; 2) rm ralph/logs;; 3) promise COMPLETE;; esac";
    let run = env.run_with(script, &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("Ralph: could not add a row to summary.csv"), "{run:?}");
}

#[test]
fn a_log_that_cannot_be_opened_is_reported_and_does_not_end_the_run() {
    let env = Env::new();
    let script = "work; ln -sf /dev/full ralph/logs/iteration-002.log; [ $n = 2 ] && { echo hello; wait_for go; promise COMPLETE; }";
    let mut run = env.run_with(script, &["x"]).spawn();
    run.until("hello");
    env.touch("go");
    let run = run.wait();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("iteration-002.log is a symbolic link"), "{run:?}");
}

#[test]
fn a_state_file_that_vanishes_is_written_again() {
    let env = Env::new();
    let script = "work; case $n in 1) rm .claude/ralph-state.json;; 2) echo '{' > .claude/ralph-state.json;; \
                  3) rm -r ralph/run.lock;; 4) promise COMPLETE;; esac";
    let run = env.run_with(script, &["x"]).run();
    assert_eq!((run.code, env.rows().len()), (Some(0), 4), "{run:?}");
    assert_eq!(env.shown("ralph-run")["outcome"], "complete");
    assert_eq!(env.history().len(), 1);
}

#[test]
fn a_run_whose_state_was_lost_can_still_be_stopped() {
    let env = Env::new();
    let mut run = env.run_with("rm .claude/ralph-state.json; echo at work; sleep 600", &["x"]).spawn();
    run.until("at work");
    fs::write(env.path(".claude/STOP_LOOP"), "").unwrap();
    assert_eq!(run.wait().code, Some(130));
}

#[test]
fn an_agent_in_a_run_cannot_start_a_second_one_here() {
    let env = Env::new();
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let script = format!("work; {ralph} run --agent-command true inner; echo \"inner $?\"; promise COMPLETE");
    let run = env.run_with(&script, &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.stdout.contains("a run is already active in this project") && run.stdout.contains("inner 70"),
        "{run:?}"
    );
    assert_eq!(env.call(Program::Ralph).args(&["status"]).run().code, Some(0));
}
