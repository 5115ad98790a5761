//! A run ends at once, whatever it is waiting for and however it is stopped. Every wait here would last for minutes.

use crate::agents::summary;
use crate::env::{Access, Env, FileEvents, Program, Running, SESSION, wait_until};
use rustix::process::Signal;
use std::fs;
use std::io::Write;

const STOPS: [(&str, &str); 4] = [
    ("ralph stop", "stopped"),
    ("STOP_LOOP", "killed"),
    ("ralph stop --all", "stopped"),
    ("Ctrl-C", "interrupted"),
];

fn give(env: &Env, run: &Running, how: &str) {
    match how {
        "ralph stop" => drop(env.ralph(&["stop"]).ok()),
        "ralph stop --all" => drop(env.at(5).ralph(&["stop", "--all"]).ok()),
        "STOP_LOOP" => fs::write(env.path(".claude/STOP_LOOP"), "").unwrap(),
        _ => run.signal(Signal::INT),
    }
}

/// Waits until the runner has looked for a stop, which it does by reading the state of the project.
fn wait_until_stops_are_looked_for(env: &Env) {
    FileEvents::of_file(&env.path(".claude/ralph-state.json"), Access::Open).wait_for(3);
}

#[test]
fn a_stop_is_reported_once_the_agent_has_ended() {
    let env = Env::new();
    // It stands still: the agent has all the time it wants to end.
    let _clock = env.clock();
    let script =
        "trap 'sleep 0.3; echo over > ../over; exit' TERM; echo at work; while :; do sleep 0.01; done";
    let mut run = env.run_with(script, &["x"]).spawn();
    run.until("at work");
    env.ralph(&["stop"]).ok();
    assert!(env.base.join("over").exists(), "it was still writing");
    assert_eq!(run.wait().code, Some(130));
}

#[test]
fn a_stop_ends_what_a_dead_runner_left() {
    let env = Env::new();
    // Neither the guard nor the end of the group reaches it.
    let script = "setsid sh -c 'trap \"\" TERM HUP; echo at work; sleep 600; sleep 601'";
    let mut run = env.run_with(script, &["x"]).spawn();
    run.until("at work");
    run.kill();
    assert!(env.ralph(&["stop"]).ok().contains("stopped"));
    env.wait_until_nothing_runs();
    assert!(!env.run_record().exists());
}

/// The events of a run that a runner should have ended, had it not been killed.
fn endings_of(env: &Env) -> usize {
    let path = env.events_file(env.record("ralph-run")["run_id"].as_str().unwrap());
    fs::read_to_string(path).unwrap().matches(r#""event":"ended""#).count()
}

#[test]
fn a_runner_that_is_killed_after_a_stop_leaves_complete_events() {
    let env = Env::new();
    let mut run = env.run_with("echo at work; sleep 600", &["x"]).spawn();
    run.until("at work");
    // It can no longer see the stop.
    run.signal(Signal::STOP);
    let stop = env.call(Program::Ralph).args(&["stop"]).spawn();
    wait_until("the stop is recorded", || env.record("ralph-run")["state"] == "stopped");
    assert_eq!(endings_of(&env), 0, "the runner is alive, and may add an iteration before it ends");
    run.kill();
    assert_eq!(stop.wait().code, Some(0));
    assert_eq!(endings_of(&env), 1);
    // The same if the stop was killed too: the next run adds what is missing.
    let path = env.events_file(env.record("ralph-run")["run_id"].as_str().unwrap());
    let events = fs::read_to_string(&path).unwrap();
    let without: Vec<&str> = events.lines().filter(|line| !line.contains(r#""event":"ended""#)).collect();
    fs::write(&path, without.join("\n") + "\n").unwrap();
    env.run_with("promise COMPLETE", &["--new", "y"]).run().ok();
    let events = fs::read_to_string(&path).unwrap();
    assert_eq!(events.matches(r#""outcome":"stopped""#).count(), 1, "{events}");
}

/// Stops a run in each way, once it has printed `ready`.
fn stops(start: impl Fn(&Env) -> Running + Sync, ready: &str, rows: usize) {
    let one = |how: &str, outcome: &str| {
        let env = Env::new();
        let notified = format!("echo $RALPH_OUTCOME >> {}", env.base.join("notified").display());
        env.var("RALPH_NOTIFY", &notified);
        let mut run = start(&env);
        run.until(ready);
        give(&env, &run, how);
        let run = run.wait();
        assert_eq!(run.code, Some(130), "{how}: {run:?}");
        assert_eq!(summary(&run, "Exit"), format!("{} (code 130)", outcome.to_uppercase()), "{how}");
        let history = env.history();
        assert_eq!((history.len(), &history[0]["outcome"]), (1, &outcome.into()), "{how}: {history:?}");
        assert_eq!(env.shown("ralph-run")["outcome"], outcome, "{how}");
        assert!(!env.exists(".claude/STOP_LOOP") && !env.exists("ralph/run.lock"), "{how}");
        let written = if env.exists("ralph/logs/summary.csv") { env.rows().len() } else { 0 };
        assert_eq!(written, rows, "{how}: a wait is no iteration");
        env.wait_until_nothing_runs();
        assert_eq!(env.wait_for_file("notified"), outcome, "{how}: told once");
    };
    std::thread::scope(|scope| {
        for (how, outcome) in STOPS {
            let one = &one;
            scope.spawn(move || one(how, outcome));
        }
    });
}

#[test]
fn a_stop_ends_a_working_agent() {
    stops(|env| env.run_with("work; echo at work; sleep 600", &["x"]).spawn(), "at work", 1);
}

#[test]
fn a_stop_ends_the_delay_between_iterations() {
    let start = |env: &Env| env.run_with("work", &["--delay", "600", "x"]).spawn();
    stops(start, "── iteration 1 ok", 1);
}

#[test]
fn a_stop_ends_the_wait_for_the_hourly_limit() {
    let start = |env: &Env| env.run_with("work", &["--calls-per-hour", "1", "x"]).spawn();
    stops(start, "limit of 1 iteration per hour reached; continuing in", 1);
}

#[test]
fn a_stop_ends_the_wait_for_the_usage_limit() {
    let start = |env: &Env| env.run_claude("limit 1794834014", &["x"]).spawn();
    stops(start, "usage limit reached; continuing in", 0);
}

#[test]
fn a_stop_ends_the_wait_for_the_service() {
    let start = |env: &Env| env.run_claude("error 529", &["x"]).spawn();
    stops(start, "the API is overloaded (529); continuing in", 0);
}

#[test]
fn a_stop_ends_a_running_check() {
    let start = |env: &Env| {
        env.run_with("work; promise COMPLETE", &["--verify", "touch ../checking; sleep 600", "x"]).spawn()
    };
    stops(start, "the agent claims completion; running the checks", 1);
}

#[test]
fn the_kill_switch_ends_the_sessions_of_the_project_too() {
    let env = Env::new();
    env.start("in a session", &[]);
    let mut run = env.run_with("echo at work; sleep 600", &["x"]).spawn();
    run.until("at work");
    give(&env, &run, "STOP_LOOP");
    assert_eq!(run.wait().code, Some(130));
    assert_eq!(env.record(SESSION)["outcome"], "killed");
}

#[test]
fn a_stop_of_a_session_does_not_end_the_run() {
    let env = Env::new();
    env.start("in a session", &[]);
    let mut run = env.run_with("echo at work; wait_for go; promise COMPLETE", &["x"]).spawn();
    run.until("at work");
    env.ralph(&["stop", "--session", SESSION]).ok();
    wait_until_stops_are_looked_for(&env);
    env.touch("go");
    assert_eq!(run.wait().code, Some(0));
}

#[test]
fn a_stop_that_was_given_before_does_not_end_the_next_run() {
    let env = Env::new();
    env.ralph(&["stop", "--all"]).ok();
    env.write(".claude/STOP_LOOP", "");
    let mut run = env.run_with("echo at work; wait_for go; promise COMPLETE", &["x"]).spawn();
    run.until("at work");
    wait_until_stops_are_looked_for(&env);
    env.touch("go");
    assert_eq!(run.wait().code, Some(0));
}

#[test]
fn the_first_ctrl_c_asks_and_the_second_kills() {
    let env = Env::new();
    // It stands still: the agent has all the time it wants to react to the first Ctrl-C.
    let _clock = env.clock();
    let script =
        "trap 'echo asked; sleep 600; echo still here' TERM; echo at work; while :; do sleep 0.05; done";
    let mut run = env.run_with(script, &["x"]).spawn();
    run.until("at work");
    run.signal(Signal::INT);
    run.until("asked");
    run.signal(Signal::INT);
    let run = run.wait();
    assert_eq!((run.code, env.outcomes()), (Some(130), vec!["interrupted".to_owned()]));
    assert!(!run.stdout.contains("still here"), "{run:?}");
    env.wait_until_nothing_runs();
}

#[test]
fn the_ending_names_the_signal() {
    let requests = [
        (Signal::INT, "Ctrl-C"),
        (Signal::TERM, "asked to end (SIGTERM)"),
        (Signal::HUP, "the terminal was closed (SIGHUP)"),
    ];
    let one = |signal: Signal, reason: &str, waiting: bool| {
        let env = Env::new();
        let script = if waiting { "work; echo at work" } else { "echo at work; sleep 600" };
        let mut run = env.run_with(script, &["--delay", "600", "x"]).spawn();
        run.until(if waiting { "iteration 1 ok" } else { "at work" });
        run.signal(signal);
        let run = run.wait();
        assert_eq!((run.code, summary(&run, "Reason")), (Some(130), reason), "{run:?}");
        assert_eq!(env.history()[0]["reason"], reason);
        env.wait_until_nothing_runs();
    };
    std::thread::scope(|scope| {
        for (signal, reason) in requests {
            for waiting in [true, false] {
                let one = &one;
                scope.spawn(move || one(signal, reason, waiting));
            }
        }
    });
}

#[test]
fn a_run_started_with_nohup_survives_the_end_of_its_terminal() {
    let env = Env::new();
    let mut run = env.run_with("echo at work; wait_for go; promise COMPLETE", &["x"]).nohup().spawn();
    run.until("at work");
    // The system drops a signal that is ignored, so there is nothing to wait for.
    if let Ok(status) = fs::read_to_string(format!("/proc/{}/status", run.pid())) {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
        assert_eq!(u64::from_str_radix(mask.trim(), 16).unwrap() & 1, 1, "SIGHUP is ignored");
    }
    run.signal(Signal::HUP);
    env.touch("go");
    assert_eq!(run.wait().code, Some(0));
}

#[test]
fn enter_ends_every_wait() {
    let env = Env::new();
    // It stands still, so that only Enter ends a wait.
    let _clock = env.clock();
    let call = env.run_with("work; [ $n = 3 ] && promise COMPLETE", &["--calls-per-hour", "1", "x"]);
    let (mut run, mut keyboard) = call.spawn_typed();
    for _ in 0..2 {
        let said = run.until("limit of 1 iteration per hour reached; continuing in");
        assert!(said.ends_with("(Enter tries now)"), "{said}");
        keyboard.write_all(b"\n").unwrap();
    }
    run.until("── iteration 3 of");
    assert_eq!((run.wait().code, env.starts()), (Some(0), 3), "one press, one iteration");

    let env = Env::new();
    let _clock = env.clock();
    let call = env.run_claude("[ $n = 1 ] && limit 1794834014; result '<promise>COMPLETE</promise>'", &["x"]);
    let (mut run, mut keyboard) = call.spawn_typed();
    let said = run.until("usage limit reached; continuing in");
    assert!(said.ends_with("(Enter tries now) · limit"), "{said}");
    keyboard.write_all(b"\n").unwrap();
    assert_eq!(run.wait().code, Some(0));
}

#[test]
fn enter_is_not_offered_without_a_keyboard() {
    let env = Env::new();
    let mut run = env.run_with("work", &["--calls-per-hour", "1", "x"]).spawn();
    let said = run.until("limit of 1 iteration per hour reached; continuing in");
    assert!(!said.contains("Enter"), "{said}");
    run.signal(Signal::INT);
    assert_eq!(run.wait().code, Some(130));
}

#[test]
fn a_kill_switch_that_a_start_removes_is_named() {
    let env = Env::new();
    env.write(".claude/STOP_LOOP", "");
    let told = env.start("task", &[]);
    assert!(told.contains(".claude/STOP_LOOP was removed") && !env.exists(".claude/STOP_LOOP"), "{told}");
    env.write(".claude/STOP_LOOP", "");
    let run = env.run_with("promise COMPLETE", &["x"]).run();
    assert!(run.stdout.contains(".claude/STOP_LOOP was removed"), "{run:?}");
    assert!(!env.start_in("another", "task", &[]).contains("STOP_LOOP"));
}
