//! Agents and surroundings that nobody wishes for: the run lives, and says what happened.

use crate::agents::told;
use crate::env::{Env, Program, ignores_permissions};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

#[test]
fn an_agent_that_prints_nothing_is_stuck_in_the_end() {
    let env = Env::new();
    let run = env.run_with("true", &["x"]).run();
    assert_eq!(
        (run.code, env.outcomes()),
        (Some(4), vec!["ok".into(), "ok".into(), "stuck".into()]),
        "{run:?}"
    );
    assert_eq!(told(&run, "Reason"), "3 iterations in a row without a change in the work tree");
    assert_eq!(fs::metadata(env.path("ralph/logs/iteration-001.log")).unwrap().len(), 0);
}

#[test]
fn without_git_a_change_in_the_work_tree_is_progress() {
    let env = Env::new();
    let run = env.run_with("work; echo \"thing $n\"", &["--max-iterations", "5", "x"]).run();
    assert_eq!((run.code, env.rows().len()), (Some(1), 5), "{run:?}");
    assert!(run.stdout.contains("no git repository here"), "{run:?}");
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

/// The most memory a process ever had, in kilobytes.
fn peak(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.split_whitespace().next()?.parse().ok()
}

#[test]
fn two_hundred_megabytes_on_one_line_are_no_memory() {
    for stream in [false, true] {
        let env = Env::new();
        // The runner waits for us at its end, so that its peak can be read.
        let script = "work; head -c 200000000 /dev/zero; echo; ";
        let verify = ["--quiet", "--verify", "touch ../over; until [ -e ../go ]; do sleep 0.02; done", "x"];
        let call = match stream {
            true => env.run_claude(&format!("{script} result '<promise>COMPLETE</promise>'"), &verify),
            false => env.run_with(&format!("{script} promise COMPLETE"), &verify),
        };
        let run = call.live();
        let began = Instant::now();
        while !env.base.join("over").exists() {
            assert!(began.elapsed() < Duration::from_secs(60), "too slow");
            std::thread::sleep(Duration::from_millis(20));
        }
        let peak = peak(run.pid()).unwrap();
        fs::write(env.base.join("go"), "").unwrap();
        let run = run.end();
        assert_eq!(run.code, Some(0), "{stream}: {run:?}");
        assert!(peak < 64 << 10, "{stream}: {peak} kB");
        assert!(fs::metadata(env.path("ralph/logs/iteration-001.log")).unwrap().len() > 200_000_000);
    }
}

#[test]
fn an_agent_that_exits_at_once_trips_and_says_why() {
    let env = Env::new();
    let run = env.run_with("exit 9", &["--max-stuck", "0", "--max-iterations", "1000", "x"]).run();
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(env.rows().len() <= 5 && run.stdout.contains("exit code 9"), "{run:?}");
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
fn of_an_agent_that_failed_nothing_is_believed() {
    for word in ["COMPLETE", "BLOCKED:x", "DECIDE:x"] {
        let env = Env::new();
        let run =
            env.run_with(&format!("work; promise {word}; exit 1"), &["--max-iterations", "1", "x"]).run();
        assert_eq!((run.code, env.outcomes()), (Some(1), vec!["max-iterations".to_owned()]), "{run:?}");
    }
}

#[test]
fn output_that_is_no_stream_is_survived() {
    let env = Env::new();
    let script = r#"work; echo 'no json'; echo '{"type":7}'; printf '\377\376\000{\n[]\nnull\n'; echo '{"type":"result"'
result '<promise>COMPLETE</promise>'"#;
    let run = env.run_claude(script, &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn logs_that_cannot_be_written_are_said_before_anything_begins() {
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
fn logs_that_are_lost_in_mid_run_end_nothing() {
    let env = Env::new();
    let script = "work; case $n in 1) rm -r ralph/logs; echo x > ralph/logs;; 2) rm ralph/logs;; 3) promise COMPLETE;; esac";
    let run = env.run_with(script, &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("Ralph: no row in the summary"), "{run:?}");
}

#[test]
fn a_full_disk_is_said_and_ends_nothing() {
    let env = Env::new();
    let script = "work; ln -sf /dev/full ralph/logs/iteration-002.log; [ $n = 2 ] && { echo hello; sleep 0.1; promise COMPLETE; }";
    let run = env.run_with(script, &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("the log of this iteration is not whole"), "{run:?}");
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
    let mut run = env.run_with("rm .claude/ralph-state.json; echo at work; sleep 600", &["x"]).live();
    run.until("at work");
    fs::write(env.path(".claude/STOP_LOOP"), "").unwrap();
    assert_eq!(run.ends_within(Duration::from_secs(60)).code, Some(130));
}

#[test]
fn an_agent_in_a_run_cannot_start_a_second_one_here() {
    let env = Env::new();
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let script = format!("work; {ralph} run --agent-command true inner; echo \"inner $?\"; promise COMPLETE");
    let run = env.run_with(&script, &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("a run is active here") && run.stdout.contains("inner 70"), "{run:?}");
    assert_eq!(env.call(Program::Ralph).args(&["status"]).run().code, Some(0));
}
