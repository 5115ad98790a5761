//! The heartbeat, the time limit, and the end of everything an agent started.
//!
//! The clock stands still unless a test moves it, so that a silence is exactly as long as the test says.

use crate::agents::summary;
use crate::env::{Clock, Env, Run, Running, T0, stamp, wait_until};
use rustix::process::Signal;

/// A warning after 3 seconds of silence, a stall after 6.
const SHORT_HEARTBEAT: [&str; 6] =
    ["--heartbeat-interval", "3", "--heartbeat-threshold", "2", "--startup-grace-period", "0"];

fn flags<'f>(more: &[&'f str]) -> Vec<&'f str> {
    [&SHORT_HEARTBEAT[..], more].concat()
}

/// Asserts that the run said this about a silence on stderr, and nothing about silence among the agent's output.
fn assert_warned(run: &Run, text: &str) {
    assert!(run.stderr.lines().any(|line| line == text), "not printed: {text}\n{}", run.stderr);
    for word in ["Warning:", "Agent stall detected"] {
        assert!(!run.stdout.contains(word), "{}", run.stdout);
    }
}

/// Asserts that the second iteration completed after the first one ended like this.
fn assert_then_completed(env: &Env, run: &Run, first: &str) {
    let outcomes = vec![first.to_owned(), "complete".to_owned()];
    assert_eq!((run.code, env.outcomes()), (Some(0), outcomes), "{run:?}");
}

#[test]
fn a_silent_agent_is_warned_about_then_ended_and_the_run_continues() {
    let env = Env::new();
    let clock = env.clock();
    let script = "work; [ $n = 2 ] && { promise COMPLETE; exit; }; echo at work; sleep 600";
    let mut run = env.run_with(script, &flags(&["x"])).spawn();
    run.until("at work");
    clock.advance(3);
    let warning = run.until_stderr("event=");
    clock.advance(3);
    let stall = run.until_stderr("event=");
    run.until("── iteration 1 stalled");
    let run = run.wait();
    assert_then_completed(&env, &run, "stalled");
    let run_id = env.history()[0]["run_id"].as_str().unwrap().to_owned();
    let event = |name: &str, seconds: u32, missed: u32| {
        format!("event={name} elapsed_seconds={seconds} missed_count={missed} iteration=1 run_id={run_id}")
    };
    assert_eq!([warning, stall], [event("heartbeat_warning", 3, 1), event("stall_detected", 6, 2)]);
    assert_eq!(run.stderr.lines().count(), 4, "{run:?}");
    assert_warned(
        &run,
        "Warning: No agent output for 3s (1 heartbeat intervals). Stall detection in 3s unless activity resumes. \
         (iteration 1)",
    );
    assert_warned(
        &run,
        "Agent stall detected: no output for 6s (exceeded 6s threshold). Terminating agent. (iteration 1)",
    );
    let duration = &env.rows()[0][2];
    let ended = format!(
        "── iteration 1 stalled · {duration}s · stalled: no output for 6s · log: ralph/logs/iteration-001.log"
    );
    assert!(run.stdout.lines().any(|line| line == ended), "{ended}\n{}", run.stdout);
    env.wait_until_nothing_runs();
}

/// Asserts the warning and the stall of a stream that hangs once it has printed `ready`.
fn assert_stalls(script: &str, ready: &str, warned: u32, limit: u32) {
    let env = Env::new();
    env.var("RALPH_HEARTBEAT_TOOL_SECONDS", "8");
    let clock = env.clock();
    let script =
        format!("work; [ $n = 2 ] && {{ result '<promise>COMPLETE</promise>'; exit; }}; {script}; sleep 600");
    let mut run = env.run_claude(&script, &flags(&["x"])).spawn();
    run.until(ready);
    clock.advance(warned.into());
    let warning = run.until_stderr("event=");
    clock.advance((limit - warned).into());
    let stall = run.until_stderr("event=");
    run.until("── iteration 1 stalled");
    let run = run.wait();
    assert_then_completed(&env, &run, "stalled");
    let run_id = env.history()[0]["run_id"].as_str().unwrap().to_owned();
    let event = |name: &str, seconds: u32| {
        let missed = seconds / 3;
        format!("event={name} elapsed_seconds={seconds} missed_count={missed} iteration=1 run_id={run_id}")
    };
    assert_eq!([warning, stall], [event("heartbeat_warning", warned), event("stall_detected", limit)]);
    let (missed, remaining) = (warned / 3, limit - warned);
    assert_warned(
        &run,
        &format!(
            "Warning: No agent output for {warned}s ({missed} heartbeat intervals). Stall detection in {remaining}s \
             unless activity resumes. (iteration 1)"
        ),
    );
    assert_warned(
        &run,
        &format!(
            "Agent stall detected: no output for {limit}s (exceeded {limit}s threshold). Terminating agent. \
             (iteration 1)"
        ),
    );
    env.wait_until_nothing_runs();
}

#[test]
fn a_stream_that_hangs_between_events_stalls() {
    assert_stalls("text 'I look around'", "I look around", 3, 6);
}

#[test]
fn a_stream_that_hangs_within_an_event_stalls() {
    // Printed at once, so that all of it has arrived when its first line is shown.
    let script = r#"printf '%s\n%s' "$(text 'I look around')" '{"type":"assistant","mess'"#;
    assert_stalls(script, "I look around", 3, 6);
}

#[test]
fn a_stream_that_hangs_in_a_tool_stalls_at_the_limit_for_tools() {
    assert_stalls("tool 'make test'", "make test", 5, 8);
}

#[test]
fn the_time_in_which_a_runner_was_stopped_is_no_silence() {
    let env = Env::new();
    let clock = env.clock();
    let mut run = env.run_with("echo at work; wait_for go; promise COMPLETE", &flags(&["x"])).spawn();
    run.until("at work");
    run.signal(Signal::STOP);
    let stat = format!("/proc/{}/stat", run.pid());
    let is_stopped = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") T "));
    wait_until("the runner is stopped", is_stopped);
    clock.advance(7);
    run.signal(Signal::CONT);
    clock.wait_until_seen();
    clock.advance(3);
    let warning = run.until_stderr("event=");
    assert!(warning.starts_with("event=heartbeat_warning elapsed_seconds=3 "), "{warning}");
    env.touch("go");
    let run = run.wait();
    assert_eq!((run.code, run.stderr.lines().count()), (Some(0), 2), "{run:?}");
    assert_eq!(env.outcomes(), ["complete"]);
}

#[test]
fn an_iteration_that_ends_leaves_no_process() {
    let env = Env::new();
    let script = "setsid sleep 602 > /dev/null 2>&1 & sleep 600 > /dev/null 2>&1 & echo $! > ../child; work; \
                  [ $n = 1 ] && exit; { alive $(cat ../first); echo asked; } > ../alive; promise COMPLETE";
    // A zombie has no folder.
    let alive = "alive() { if [ -d /proc/self ]; then readlink /proc/$1/cwd; else ps -o stat= -p $1 | grep -v Z; fi; }";
    let script = format!("{alive}\n[ $n = 2 ] && cp ../child ../first; {script}");
    let run = env.run_with(&script, &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(env.wait_for_file("alive"), "asked", "ended before the next begins");
    assert_eq!(env.processes(), [""; 0]);
}

#[test]
fn any_byte_is_a_sign_of_life() {
    let env = Env::new();
    let clock = env.clock();
    let script = "until [ -e ../go ]; do printf .; sleep 0.02; done; echo; promise COMPLETE";
    let run = env.run_with(script, &flags(&["x"])).spawn();
    let log = env.path("ralph/logs/iteration-001.log");
    let length = || log.metadata().map_or(0, |meta| meta.len());
    // In all longer than a stall takes.
    for _ in 0..8 {
        let before = length();
        wait_until("another byte is read", || length() > before);
        clock.advance(1);
    }
    env.touch("go");
    let run = run.wait();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
}

#[test]
fn a_tool_may_be_silent_for_longer() {
    let env = Env::new();
    let clock = env.clock();
    let script = "work; tool 'make test'; wait_for go; result '<promise>COMPLETE</promise>'";
    let heartbeat =
        ["--heartbeat-interval", "1", "--heartbeat-threshold", "2", "--startup-grace-period", "0"];
    let mut run = env.run_claude(script, &[&heartbeat[..], &["x"]].concat()).spawn();
    run.until("make test");
    // Without a tool this would be a stall.
    clock.advance(4);
    clock.wait_until_seen();
    env.touch("go");
    let run = run.wait();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
}

#[test]
fn a_grace_longer_than_the_limit_delays_the_warning_but_does_not_drop_it() {
    let env = Env::new();
    let clock = env.clock();
    let script = "[ $n = 2 ] && { promise COMPLETE; exit; }; echo at work; sleep 600";
    let mut run = env.run_with(script, &[&SHORT_HEARTBEAT[..5], &["8", "x"]].concat()).spawn();
    run.until("at work");
    clock.advance(4);
    clock.wait_until_seen();
    clock.advance(4);
    let warning = run.until_stderr("");
    assert_eq!(
        warning,
        "Warning: No agent output for 8s (2 heartbeat intervals). Stall detection in 3s unless activity resumes. \
         (iteration 1)"
    );
    clock.advance(3);
    let stall = run.until_stderr("event=stall_detected");
    assert!(stall.contains(" elapsed_seconds=11 "), "{stall}");
    run.until("── iteration 1 stalled");
    assert_then_completed(&env, &run.wait(), "stalled");
}

#[test]
fn the_history_tells_how_often_agents_were_silent_and_for_how_long() {
    let env = Env::new();
    let none = env.ralph(&["history", "--stalls"]).ok();
    assert_eq!(none, "No stalls or stall warnings in this project.\n");
    let clock = env.clock();
    let script =
        "work; [ $n = 2 ] && { promise COMPLETE; exit; }; echo at work; wait_for go; echo back; sleep 600";
    let mut run = env.run_with(script, &flags(&["x"])).spawn();
    run.until("at work");
    clock.advance(4);
    run.until_stderr("heartbeat_warning");
    env.touch("go");
    run.until("back");
    stall(&clock, &mut run);
    run.until("── iteration 1 stalled");
    assert_then_completed(&env, &run.wait(), "stalled");
    let lines = env.ralph(&["history", "--stalls", "--json"]).ok();
    let records: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let run_id = env.history()[0]["run_id"].clone();
    assert_eq!(records.len(), 2, "{lines}");
    for (record, event, silence) in [(&records[0], "stall", 6), (&records[1], "resumed", 4)] {
        assert_eq!(
            (&record["event"], &record["silence_seconds"]),
            (&event.into(), &silence.into()),
            "{lines}"
        );
        assert_eq!((&record["limit_seconds"], &record["in_tool"]), (&6.into(), &false.into()), "{lines}");
        assert_eq!((&record["run_id"], &record["iteration"]), (&run_id, &1.into()), "{lines}");
        assert!(record["at"].as_str().is_some_and(|at| at.ends_with('Z')), "{lines}");
    }
    let told = env.ralph(&["history", "--stalls"]).ok();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], "1 stall, after 6s of silence", "{told}");
    assert_eq!(lines[1], "1 warning without a stall: output after 4s of silence", "{told}");
    assert!(lines[2].starts_with("stall   silent for 6s (limit 6s) · "), "{told}");
    assert!(lines[3].starts_with("resumed silent for 4s (limit 6s) · "), "{told}");
    let newest = env.ralph(&["history", "--stalls", "--last", "1"]).ok();
    assert!(newest.starts_with("1 stall,") && newest.lines().count() == 2, "{newest}");
    assert!(env.ralph(&["history", "--stalls", "--circuit"]).fails(64).contains("--circuit"));
}

#[test]
fn a_piece_of_a_message_is_a_sign_of_life() {
    let env = Env::new();
    let clock = env.clock();
    let piece = r#"printf '{"type":"stream_event","event":{"type":"content_block_delta"}}\n'"#;
    let script = format!(
        "work; text 'at work'; for i in 1 2 3; do wait_for go$i; {piece}; done; wait_for go; \
         result '<promise>COMPLETE</promise>'"
    );
    let mut run = env.run_claude(&script, &flags(&["x"])).spawn();
    run.until("at work");
    for round in 1..=3 {
        clock.advance(4);
        let warning = run.until_stderr("event=");
        assert!(warning.starts_with("event=heartbeat_warning elapsed_seconds=4 "), "{warning}");
        env.touch(&format!("go{round}"));
        let resumed = || env.ralph(&["history", "--stalls", "--json"]).stdout.lines().count();
        wait_until("the piece is read", || resumed() == round);
    }
    env.touch("go");
    let run = run.wait();
    assert_eq!((run.code, env.outcomes()), (Some(0), vec!["complete".to_owned()]), "{run:?}");
}

#[test]
fn a_timeout_below_the_limit_for_tools_is_told_at_the_start() {
    let note = "Ralph: --timeout (15m) ends an iteration before a tool reaches --tool-limit (30m)";
    let done = "work; result '<promise>COMPLETE</promise>'";
    let env = Env::new();
    for (flags, told) in [
        (&["x"][..], false),
        (&["--timeout", "15", "x"], true),
        (&["--timeout", "30", "x"], false),
        (&["--timeout", "0", "x"], false),
        (&["--tool-limit", "15m", "x"], false),
        (&["--heartbeat-threshold", "0", "x"], false),
    ] {
        let run = env.run_claude(done, flags).run();
        assert_eq!(run.stdout.contains(note), told, "{flags:?}: {run:?}");
    }
    let run = env.run_with("work; promise COMPLETE", &["x"]).run();
    assert!(!run.stdout.contains("--tool-limit"), "its tools are not known: {run:?}");
}

/// Children of every kind: in the group, deaf to SIGTERM, in a session of their own, twice removed.
const FAMILY: &str = "sleep 600 & (trap '' TERM; sleep 601 & wait) & setsid sleep 602 & \
                      setsid sh -c 'trap \"\" TERM HUP; setsid sleep 603 & sleep 604' & echo at work; sleep 605";

/// Asserts that the iteration fails once `end` has moved the clock, that nothing of it is left, and that the run
/// continues.
fn assert_ended(
    script: &str,
    flags: &[&str],
    end: impl Fn(&Clock, &mut Running),
    outcome: &str,
    how: &str,
) -> Env {
    let env = Env::new();
    let clock = env.clock();
    let script = format!("work; [ $n = 2 ] && {{ promise COMPLETE; exit; }}; {script}");
    let mut run = env.run_with(&script, flags).spawn();
    run.until("at work");
    end(&clock, &mut run);
    let ended = format!("── iteration 1 {outcome} · ");
    clock.advance_until(1, "the end of the iteration", || run.has_printed(&ended));
    let run = run.wait();
    assert_then_completed(&env, &run, outcome);
    assert!(run.stdout.contains(how), "{run:?}");
    assert_eq!(env.processes(), [""; 0], "at the end of the run no process is left");
    env
}

fn time_out(clock: &Clock, _: &mut Running) {
    clock.advance(601);
}

fn stall(clock: &Clock, run: &mut Running) {
    clock.advance(3);
    run.until_stderr("heartbeat_warning");
    clock.advance(3);
    run.until_stderr("stall_detected");
}

const TIMEOUT: [&str; 3] = ["--timeout", "10", "x"];

#[test]
fn a_family_of_processes_is_ended_by_the_time_limit() {
    assert_ended(FAMILY, &TIMEOUT, time_out, "timed-out", "timed out after 10m");
}

#[test]
fn an_agent_deaf_to_sigterm_is_ended_by_the_time_limit() {
    let script = "trap '' TERM; echo at work; while :; do sleep 600; done";
    assert_ended(script, &TIMEOUT, time_out, "timed-out", "timed out after 10m");
}

#[test]
fn an_agent_that_closed_its_output_is_ended_as_stalled() {
    let script = "echo at work; exec >&- 2>&-; sleep 600";
    let env = assert_ended(script, &flags(&["x"]), stall, "stalled", "stalled: no output for 6s");
    assert_eq!(env.read("ralph/logs/iteration-001.log"), "at work\n");
}

#[test]
fn a_family_of_processes_is_ended_as_stalled() {
    assert_ended(FAMILY, &flags(&["x"]), stall, "stalled", "stalled: no output for 6s");
}

#[test]
fn an_agent_that_stays_after_its_result_is_believed_and_ended() {
    let env = Env::new();
    let clock = env.clock();
    let mut run = env.run_claude("work; result '<promise>COMPLETE</promise>'; sleep 600", &["x"]).spawn();
    let log = env.path("ralph/logs/iteration-001.log");
    wait_until("the result", || std::fs::read_to_string(&log).is_ok_and(|text| text.contains("COMPLETE")));
    clock.advance_until(1, "the end of the run", || run.has_ended());
    let run = run.wait();
    assert_eq!((run.code, env.outcomes()), (Some(0), vec!["complete".to_owned()]), "{run:?}");
    env.wait_until_nothing_runs();
}

#[test]
fn a_process_that_keeps_the_pipe_open_does_not_delay_the_run() {
    let env = Env::new();
    env.real_time();
    // It sleeps for longer than a test waits, so that a run that waits for it fails.
    let run = env.run_with("setsid sleep 600 & work; promise COMPLETE", &["x"]).run();
    assert_eq!(run.code, Some(0), "{run:?}");
    env.wait_until_nothing_runs();
}

#[test]
fn a_service_that_fails_is_tried_again_at_the_cost_of_no_iteration() {
    let env = Env::new();
    let clock = env.clock();
    let script = "[ $n = 1 ] && error 500; work; result '<promise>COMPLETE</promise>' 0.5";
    let mut run = env.run_claude(script, &["--max-iterations", "1", "x"]).spawn();
    run.until("Ralph: the API failed (500); continuing in ");
    clock.advance_until(1, "the second try", || run.times_printed("── iteration 1 of") == 2);
    let run = run.wait();
    let outcomes = vec!["complete".to_owned()];
    assert_eq!((run.code, env.starts(), env.outcomes()), (Some(0), 2, outcomes), "{run:?}");
    assert_eq!(summary(&run, "Usage"), "18 tokens · $0.60", "{run:?}");
}

#[test]
fn the_rows_add_up_to_the_duration_of_the_run() {
    let env = Env::new();
    let clock = env.clock();
    let script = "text \"try $n\"; wait_for go$n; case $n in 1) error 500;; 3) work; result '<promise>COMPLETE</promise>';; \
                  *) work; result 'more to do';; esac";
    let mut run = env.run_claude(script, &["--json", "x"]).spawn();
    for (n, seconds) in [(1, 20), (2, 40), (3, 70)] {
        clock.advance_until(1, "the next try", || run.has_printed(&format!("try {n}")));
        clock.advance(seconds);
        env.touch(&format!("go{n}"));
    }
    run.until("\"ended\"");
    let run = run.wait();
    assert_eq!(run.code, Some(0), "{run:?}");
    let rows = env.rows();
    let number = |row: usize, column: usize| rows[row][column].parse::<u64>().unwrap();
    let attempts: Vec<u64> = (0..2).map(|row| number(row, 12)).collect();
    assert_eq!(attempts, [2, 1], "{rows:?}");
    // The first attempt and the wait after it are not in the duration of the second, and not lost.
    assert!(number(0, 2) >= 40 && number(0, 13) >= 20 + 5, "{rows:?}");
    let sum: u64 = (0..2).map(|row| number(row, 2) + number(row, 13)).sum();
    let ended: serde_json::Value = serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(ended["duration_seconds"], sum, "{rows:?}");
}

#[test]
fn the_wait_for_a_usage_limit_is_neither_iteration_nor_runtime() {
    let env = Env::new();
    let clock = env.clock();
    let script = format!(
        "text \"try $n\"; [ $n = 1 ] && limit {}; work; result '<promise>COMPLETE</promise>' 0.5",
        T0 + 3600
    );
    // Longer than the wait, which would not count otherwise either.
    env.var("RALPH_LOOP_LIMITS_CLI_GAP_THRESHOLD_SECONDS", "7200");
    let mut run = env.run_claude(&script, &["--max-iterations", "1", "x"]).spawn();
    run.until("Ralph: usage limit reached; continuing in ");
    // The wait has begun before it is told. Half a minute is added because the clock of the service may differ.
    clock.advance(3600 + 31);
    let run = run.wait();
    let outcomes = vec!["complete".to_owned()];
    assert_eq!((run.code, env.starts(), env.outcomes()), (Some(0), 2, outcomes), "{run:?}");
    assert!(env.rows()[0][7] >= stamp(3630), "tried too early: {:?}", env.rows());
    let runtime = env.history()[0]["runtime_seconds"].as_f64().unwrap();
    assert!(runtime < 1.0, "waiting is no runtime: {runtime}");
    let log = env.read("ralph/logs/iteration-001.log");
    assert!(log.contains("try 1") && log.contains("try 2"), "the first try is not lost: {log}");
    assert_eq!(summary(&run, "Usage"), "18 tokens · $0.60", "what was spent before it is not forgotten");
}
