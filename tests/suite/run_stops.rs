//! A run ends at once, whatever it is waiting for and whoever says so.

use crate::agents::{Live, told};
use crate::env::{Env, SESSION};
use rustix::process::Signal;
use std::fs;
use std::io::Write;
use std::time::Duration;

/// Long enough for a busy machine, and far shorter than any wait here.
const AT_ONCE: Duration = Duration::from_secs(60);

const STOPS: [(&str, &str); 4] = [
    ("ralph stop", "stopped"),
    ("STOP_LOOP", "killed"),
    ("ralph stop --all", "stopped"),
    ("Ctrl-C", "interrupted"),
];

fn give(env: &Env, run: &Live, how: &str) {
    match how {
        "ralph stop" => drop(env.ralph(&["stop"]).ok()),
        "ralph stop --all" => drop(env.at(5).ralph(&["stop", "--all"]).ok()),
        "STOP_LOOP" => fs::write(env.path(".claude/STOP_LOOP"), "").unwrap(),
        _ => run.signal(Signal::INT),
    }
}

/// Each way to stop, given when the run says `ready`.
fn stops(start: impl Fn(&Env) -> Live + Sync, ready: &str, rows: usize) {
    let one = |how: &str, outcome: &str| {
        let env = Env::new();
        let notified = format!("echo $RALPH_OUTCOME >> {}", env.base.join("notified").display());
        env.var("RALPH_NOTIFY", &notified);
        let mut run = start(&env);
        run.until(ready);
        give(&env, &run, how);
        let run = run.ends_within(AT_ONCE);
        assert_eq!(run.code, Some(130), "{how}: {run:?}");
        assert_eq!(told(&run, "Exit"), format!("{} (code 130)", outcome.to_uppercase()), "{how}");
        let history = env.history();
        assert_eq!((history.len(), &history[0]["outcome"]), (1, &outcome.into()), "{how}: {history:?}");
        assert_eq!(env.shown("ralph-run")["outcome"], outcome, "{how}");
        assert!(!env.exists(".claude/STOP_LOOP") && !env.exists("ralph/run.lock"), "{how}");
        let written = if env.exists("ralph/logs/summary.csv") { env.rows().len() } else { 0 };
        assert_eq!(written, rows, "{how}: a wait is no iteration");
        env.nothing_runs();
        assert_eq!(env.awaits("notified"), outcome, "{how}: told once");
    };
    std::thread::scope(|scope| {
        for (how, outcome) in STOPS {
            let one = &one;
            scope.spawn(move || one(how, outcome));
        }
    });
}

#[test]
fn while_the_agent_works() {
    stops(|env| env.run_with("work; echo at work; sleep 600", &["x"]).live(), "at work", 1);
}

#[test]
fn between_two_iterations() {
    let start = |env: &Env| env.run_with("work", &["--delay", "600", "x"]).live();
    stops(start, "── iteration 1 ok", 1);
}

#[test]
fn while_waiting_for_the_hour() {
    let start = |env: &Env| env.run_with("work", &["--calls-per-hour", "1", "x"]).live();
    stops(start, "1 iterations within the hour; going on in", 1);
}

#[test]
fn while_waiting_for_the_plan() {
    let start = |env: &Env| env.run_claude("limit 1794834014", &["x"]).live();
    stops(start, "usage limit reached; going on in", 0);
}

#[test]
fn while_waiting_for_the_service() {
    let start = |env: &Env| env.run_claude("error 529", &["x"]).live();
    stops(start, "the service is overloaded (529); going on in", 0);
}

#[test]
fn while_a_claim_is_checked() {
    let start = |env: &Env| {
        env.run_with("work; promise COMPLETE", &["--verify", "touch ../checking; sleep 600", "x"]).live()
    };
    stops(start, "checking", 1);
}

#[test]
fn the_kill_switch_means_the_sessions_of_the_project_too() {
    let env = Env::new();
    env.start("in a session", &[]);
    let mut run = env.run_with("echo at work; sleep 600", &["x"]).live();
    run.until("at work");
    give(&env, &run, "STOP_LOOP");
    assert_eq!(run.ends_within(AT_ONCE).code, Some(130));
    assert_eq!(env.lap(SESSION)["outcome"], "killed");
}

#[test]
fn a_stop_of_one_session_is_not_the_runs() {
    let env = Env::new();
    env.start("in a session", &[]);
    let mut run = env
        .run_with("echo at work; until [ -e ../go ]; do sleep 0.02; done; promise COMPLETE", &["x"])
        .live();
    run.until("at work");
    env.ralph(&["stop", "--session", SESSION]).ok();
    std::thread::sleep(Duration::from_millis(400));
    fs::write(env.base.join("go"), "").unwrap();
    assert_eq!(run.end().code, Some(0));
}

#[test]
fn a_stop_that_was_given_before_does_not_end_the_next_run() {
    let env = Env::new();
    env.ralph(&["stop", "--all"]).ok();
    env.write(".claude/STOP_LOOP", "");
    assert_eq!(env.run_with("sleep 0.6; promise COMPLETE", &["x"]).run().code, Some(0));
}

#[test]
fn the_first_ctrl_c_asks_and_the_second_does_not() {
    let env = Env::new();
    let script =
        "trap 'echo asked; sleep 1.5; echo still here' TERM; echo at work; while :; do sleep 0.05; done";
    let mut run = env.run_with(script, &["x"]).live();
    run.until("at work");
    run.signal(Signal::INT);
    run.until("asked");
    run.signal(Signal::INT);
    let run = run.end();
    assert_eq!((run.code, env.outcomes()), (Some(130), vec!["interrupted".to_owned()]));
    assert!(!run.stdout.contains("still here"), "{run:?}");
    env.nothing_runs();
}

#[test]
fn the_ending_says_how_it_was_asked_for() {
    let requests = [
        (Signal::INT, "Ctrl-C"),
        (Signal::TERM, "asked to end (SIGTERM)"),
        (Signal::HUP, "the terminal was closed (SIGHUP)"),
    ];
    let one = |signal: Signal, reason: &str, waiting: bool| {
        let env = Env::new();
        let script = if waiting { "work; echo at work" } else { "echo at work; sleep 600" };
        let mut run = env.run_with(script, &["--delay", "600", "x"]).live();
        run.until(if waiting { "iteration 1 ok" } else { "at work" });
        run.signal(signal);
        let run = run.ends_within(AT_ONCE);
        assert_eq!((run.code, told(&run, "Reason")), (Some(130), reason), "{run:?}");
        assert_eq!(env.history()[0]["reason"], reason);
        env.nothing_runs();
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
fn who_was_started_deaf_to_a_hang_up_goes_on() {
    let env = Env::new();
    let script = "echo at work; until [ -e ../go ]; do sleep 0.02; done; promise COMPLETE";
    let mut run = env.run_with(script, &["x"]).nohup().live();
    run.until("at work");
    run.signal(Signal::HUP);
    std::thread::sleep(Duration::from_millis(300));
    fs::write(env.base.join("go"), "").unwrap();
    assert_eq!(run.end().code, Some(0));
}

#[test]
fn enter_goes_on_at_once_whatever_is_waited_for() {
    let env = Env::new();
    // A clock that stands still would not wait.
    env.without("RALPH_NOW");
    let call = env.run_with("work; [ $n = 3 ] && promise COMPLETE", &["--calls-per-hour", "1", "x"]);
    let (mut run, mut keyboard) = call.live_typed();
    for _ in 0..2 {
        let said = run.until("1 iterations within the hour; going on in");
        assert!(said.ends_with("(Enter tries now)"), "{said}");
        keyboard.write_all(b"\n").unwrap();
    }
    run.until("── iteration 3 of");
    assert_eq!((run.end().code, env.starts()), (Some(0), 3), "one press, one iteration");

    let env = Env::new();
    let call = env.run_claude("[ $n = 1 ] && limit 1794834014; result '<promise>COMPLETE</promise>'", &["x"]);
    let (mut run, mut keyboard) = call.live_typed();
    let said = run.until("usage limit reached; going on in");
    assert!(said.ends_with("(Enter tries now)"), "{said}");
    keyboard.write_all(b"\n").unwrap();
    assert_eq!(run.end().code, Some(0));
}

#[test]
fn enter_is_not_offered_where_nobody_can_press_it() {
    let env = Env::new();
    let mut run = env.run_with("work", &["--calls-per-hour", "1", "x"]).live();
    let said = run.until("1 iterations within the hour; going on in");
    assert!(!said.contains("Enter"), "{said}");
    run.signal(Signal::INT);
    assert_eq!(run.end().code, Some(130));
}
