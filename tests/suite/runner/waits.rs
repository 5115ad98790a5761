//! Waits for the service and the usage limit: how long they are, what they cost, and what ends them.
//!
//! The tests read what is printed about a wait, then Enter ends it.

use crate::agents::summary;
use crate::env::{Call, Clock, Env, Running, SESSION, stamp, wait_until};
use crate::session::statusline::status_line;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;

/// Errors as the real client prints them.
const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/claude/stream/samples");

struct Waiter {
    run: Running,
    keyboard: File,
}

impl Waiter {
    fn at(call: Call) -> Waiter {
        let (run, keyboard) = call.spawn_typed();
        Waiter { run, keyboard }
    }

    /// The next wait, as an event.
    fn sees(&mut self) -> Value {
        serde_json::from_str(&self.run.until(r#""event":"waiting""#)).unwrap()
    }

    fn presses_enter(&mut self) {
        self.keyboard.write_all(b"\n").unwrap();
    }

    /// So many waits, in seconds, each of them cut short.
    fn waits(&mut self, count: usize) -> Vec<u64> {
        let one = |_| {
            let wait = self.sees();
            self.presses_enter();
            wait["seconds"].as_u64().unwrap()
        };
        (0..count).map(one).collect()
    }
}

/// Half of each wait is random.
fn assert_within(waits: &[u64], longest: &[u64]) {
    let within = |(wait, longest): (&u64, &u64)| (longest / 2..=*longest).contains(wait);
    assert!(
        waits.len() == longest.len() && waits.iter().zip(longest).all(within),
        "{waits:?} for {longest:?}"
    );
}

/// A service that is away for nine attempts; what was waited.
fn nine_failures() -> Vec<u64> {
    let env = Env::new();
    let script = "[ $n -lt 10 ] && error 529; work; result '<promise>COMPLETE</promise>'";
    let flags = ["--json", "--max-iterations", "1", "--max-stuck", "1", "x"];
    let mut waiter = Waiter::at(env.run_claude(script, &flags));
    let waits = waiter.waits(9);
    let run = waiter.run.wait();
    assert_eq!((run.code, env.starts()), (Some(0), 10), "{run:?}");
    assert_eq!(env.outcomes(), ["complete"], "no failure of the service is an iteration");
    let count = |event: &str| run.stdout.matches(&format!(r#""event":"{event}""#)).count();
    assert_eq!((count("iteration_started"), count("iteration_ended")), (10, 1), "{run:?}");
    assert_within(&waits, &[10, 20, 40, 80, 160, 300, 300, 300, 300]);
    waits
}

#[test]
fn waits_for_the_service_grow_and_cost_no_iteration() {
    let runs = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3).map(|_| scope.spawn(nine_failures)).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(runs[0] != runs[1] && runs[1] != runs[2], "many runs do not come back together: {runs:?}");
}

/// Lets each wait of a run pass, up to the run's end.
fn pass_each_wait(clock: &Clock, run: &mut Running, in_each: impl Fn(usize)) {
    for waits in 1.. {
        let is_told = |run: &Running| run.times_printed("; continuing in ") == waits;
        wait_until("the next wait", || is_told(run) || run.has_ended());
        if run.has_ended() {
            return;
        }
        in_each(waits);
        clock.advance(301);
    }
}

#[test]
fn a_service_that_stays_away_ends_the_run_in_its_words_and_the_user_is_told_before() {
    let env = Env::new();
    let clock = env.clock();
    let notify = "echo \"$RALPH_EVENT: $RALPH_REASON\" >> ../told";
    let flags = ["--max-outage", "1h", "--max-stuck", "1", "--notify", notify, "x"];
    let call = env.run_claude("error 529", &flags).var("RALPH_NOTIFY_IDLE_MINUTES", "0");
    let mut run = call.spawn();
    pass_each_wait(&clock, &mut run, |waits| {
        if waits == 2 {
            // The end is told by another process, which could be faster.
            env.wait_for_file("told");
        }
    });
    let run = run.wait();
    assert_eq!(run.code, Some(70), "{run:?}");
    let reason = summary(&run, "Reason");
    assert!(reason.starts_with("the API failed for 1h"), "{reason}");
    assert!(reason.ends_with(": the API is overloaded (529) · API Error"), "{reason}");
    assert_eq!((env.outcomes(), summary(&run, "Stuck iters")), (vec!["error".to_owned()], "0"));
    // Each is told by a process of its own.
    wait_until("both are told", || env.wait_for_file("told").lines().count() >= 2);
    let told = env.wait_for_file("told");
    let events: Vec<&str> = told.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(events, ["outage", "ended"], "{told}");
    assert!(told.starts_with("outage: the API has failed for "), "{told}");
}

#[test]
fn an_outage_in_which_the_machine_sleeps_is_shorter_than_the_night() {
    let env = Env::new();
    let clock = env.clock();
    let script = "[ $n -lt 3 ] && error 529; work; result '<promise>COMPLETE</promise>'";
    let mut run = env.run_claude(script, &["--max-outage", "1h", "x"]).spawn();
    run.until("Ralph: the API is overloaded (529); continuing in ");
    clock.sleep(9 * 3600);
    run.until("Ralph: the API is overloaded (529); continuing in ");
    clock.advance_until(10, "the third attempt", || env.starts() == 3);
    assert_eq!(run.wait().code, Some(0));
}

#[test]
fn a_wait_for_a_reset_ends_when_the_machine_wakes_up_after_it() {
    let env = Env::new();
    let clock = env.clock();
    let script = format!(
        "[ $n = 1 ] && limit {}; work; result '<promise>COMPLETE</promise>'",
        crate::env::T0 + 5 * 3600
    );
    let mut run = env.run_claude(&script, &["x"]).spawn();
    run.until("Ralph: usage limit reached; continuing in ");
    clock.sleep(8 * 3600);
    let run = run.wait();
    assert_eq!((run.code, env.starts()), (Some(0), 2), "{run:?}");
}

#[test]
fn a_clock_that_is_set_back_makes_no_wait_longer() {
    let env = Env::new();
    let clock = env.clock();
    let script = "[ $n = 1 ] && error 529; work; result '<promise>COMPLETE</promise>'";
    let mut run = env.run_claude(script, &["x"]).spawn();
    run.until("Ralph: the API is overloaded (529); continuing in ");
    // The wall goes back two hours while eleven seconds pass.
    clock.sleep(-2 * 3600 - 11);
    clock.advance(11);
    assert_eq!(run.wait().code, Some(0));
}

#[test]
fn sleep_of_the_machine_is_neither_runtime_nor_silence_nor_a_timeout() {
    let env = Env::new();
    let clock = env.clock();
    let script = "text hello; wait_for go; work; result '<promise>COMPLETE</promise>'";
    let flags = ["--timeout", "15m", "--heartbeat-interval", "60", "--startup-grace-period", "0", "x"];
    let mut run = env.run_claude(script, &flags).spawn();
    run.until("hello");
    clock.advance(30);
    clock.sleep(8 * 3600);
    clock.wait_until_seen();
    assert!(!run.has_printed("Warning: No agent output"));
    env.touch("go");
    let run = run.wait();
    assert_eq!((run.code, env.outcomes()), (Some(0), vec!["complete".to_owned()]), "{run:?}");
    let ended = &env.history()[0];
    let runtime = ended["runtime_seconds"].as_f64().unwrap();
    assert!((30.0..600.0).contains(&runtime), "{ended}");
}

#[test]
fn a_program_that_is_replaced_while_the_run_continues_is_tried_again() {
    let env = Env::new();
    let clock = env.clock();
    let script = "case $n in 1) mv ../claude.sh ../claude.away; result 'one step'; exit;; esac; \
                  work; result '<promise>COMPLETE</promise>'";
    let mut run = env.run_claude(script, &["--max-stuck", "0", "x"]).spawn();
    let line = run.until("Ralph: the agent could not be started: ../claude.sh: ");
    assert!(line.contains("; continuing in "), "{line}");
    std::fs::rename(env.base.join("claude.away"), env.base.join("claude.sh")).unwrap();
    clock.advance_until(5, "the next start", || env.starts() == 2);
    let run = run.wait();
    assert_eq!(
        (run.code, env.outcomes()),
        (Some(0), vec!["ok".to_owned(), "complete".to_owned()]),
        "{run:?}"
    );
}

#[test]
fn a_program_that_stays_away_ends_the_run_within_minutes() {
    let env = Env::new();
    let clock = env.clock();
    let mut run = env
        .run_claude("mv ../claude.sh ../claude.away; result 'one step'", &["--max-stuck", "0", "x"])
        .spawn();
    // The checks of the start have a time limit too.
    wait_until("the program is away", || env.exists("../claude.away"));
    pass_each_wait(&clock, &mut run, |_| ());
    let run = run.wait();
    assert_eq!(run.code, Some(70), "{run:?}");
    let reason = summary(&run, "Reason");
    assert!(reason.starts_with("the agent could not be started: ../claude.sh: "), "{reason}");
    let ended = env.history()[0]["ended_at"].as_str().unwrap().to_owned();
    assert!(ended < stamp(3600) && ended > stamp(600), "{ended}");
}

#[test]
fn a_run_that_waits_for_a_weekly_reset_is_alive() {
    let env = Env::new();
    let clock = env.clock();
    let script = format!(
        "[ $n = 1 ] && limit {}; work; result '<promise>COMPLETE</promise>'",
        crate::env::T0 + 72 * 3600
    );
    let mut run = env.run_claude(&script, &["x"]).spawn();
    run.until("Ralph: usage limit reached; continuing in ");
    clock.advance(60 * 3600);
    let hook = |env: &Env| env.record("ralph-run")["last_hook_timestamp"].as_f64().unwrap();
    wait_until("the record is refreshed", || hook(&env) >= (crate::env::T0 + 60 * 3600) as f64);
    env.session_start("another", "startup").run();
    assert_eq!(env.shown("ralph-run")["waiting"]["for"], "usage-limit");
    clock.advance(13 * 3600);
    assert_eq!(run.wait().code, Some(0));
}

#[test]
fn failures_are_forgotten_once_the_service_works_again() {
    let env = Env::new();
    let script = "case $n in 1|2|4) error 500;; 3) work; result 'one step'; exit;; esac; \
                  work; result '<promise>COMPLETE</promise>'";
    let mut waiter = Waiter::at(env.run_claude(script, &["--json", "x"]));
    assert_within(&waiter.waits(3), &[10, 20, 10]);
    let run = waiter.run.wait();
    assert_eq!((run.code, env.starts()), (Some(0), 5), "{run:?}");
    assert_eq!(env.outcomes(), ["ok", "complete"]);
}

#[test]
fn every_error_of_the_service_is_waited_for() {
    for (sample, reason) in [
        ("error-429", "the API limits requests (429)"),
        ("error-500", "the API failed (500)"),
        ("error-529", "the API is overloaded (529)"),
        ("error-connection", "the API cannot be reached"),
    ] {
        let env = Env::new();
        let script = format!(
            "[ $n = 1 ] && {{ cat {SAMPLES}/{sample}.jsonl; exit 1; }}; work; result '<promise>COMPLETE</promise>'"
        );
        let mut waiter = Waiter::at(env.run_claude(&script, &["--json", "x"]));
        let wait = waiter.sees();
        assert_eq!((&wait["reason"], &wait["until"]), (&reason.into(), &Value::Null), "{sample}");
        waiter.presses_enter();
        let run = waiter.run.wait();
        assert_eq!((run.code, env.outcomes()), (Some(0), vec!["complete".to_owned()]), "{sample}: {run:?}");
    }
}

#[test]
fn a_wait_is_in_the_status_with_its_end_and_the_clients_words_and_gone_after_it() {
    let env = Env::new();
    let clock = env.clock();
    let script = "case $n in 1) limit 1794827520;; 2) error 529;; 3) result x; exit;; esac; \
                  wait_for go; work; result '<promise>COMPLETE</promise>'";
    let mut waiter = Waiter::at(env.run_claude(script, &["--calls-per-hour", "3", "x"]));
    let line = waiter.run.until("Ralph: usage limit reached; continuing in 3h 12m");
    assert!(line.trim_end().ends_with(" · limit"), "{line}");
    let shown = env.shown("ralph-run");
    let until = stamp(3 * 3600 + 720).replace("+00:00", ".000Z");
    assert_eq!(shown["waiting"], json!({"for": "usage-limit", "until": until}));
    assert_eq!(
        (&shown["last_error"], &shown["client"]),
        (&"usage limit reached · limit".into(), &"open".into())
    );
    let state = "waiting: usage limit until 2026-11-16 11:12 UTC, 2h 13m left";
    clock.advance(3540);
    assert!(
        env.ralph(&["status"]).ok().contains(&format!("\n○ {state}\n")),
        "{}",
        env.ralph(&["status"]).ok()
    );
    let line = status_line(&env, SESSION);
    assert!(line.starts_with(&format!("{state} · ralph run 0/50 · Runtime: ")), "in every session: {line}");
    waiter.presses_enter();
    waiter.run.until("Ralph: the API is overloaded (529); continuing in ");
    let shown = env.shown("ralph-run");
    assert_eq!((&shown["waiting"]["for"], shown["waiting"]["until"].is_string()), (&"service".into(), true));
    assert_eq!(shown["last_error"], "the API is overloaded (529) · API Error");
    waiter.presses_enter();
    waiter.run.until("Ralph: limit of 3 iterations per hour reached; continuing in ");
    let shown = env.shown("ralph-run");
    assert_eq!((&shown["waiting"]["for"], &shown["last_error"]), (&"calls".into(), &Value::Null));
    let line = status_line(&env, SESSION);
    assert!(line.starts_with("waiting: calls per hour until 2026-11-16 "), "{line}");
    waiter.presses_enter();
    waiter.run.until("── iteration 2 of ");
    assert_eq!(env.shown("ralph-run")["waiting"], Value::Null);
    assert!(status_line(&env, SESSION).starts_with("working · ralph run 1/50 · "));
    env.touch("go");
    assert_eq!(waiter.run.wait().code, Some(0));
    assert_eq!(status_line(&env, SESSION), "", "no session is told of a run that ended elsewhere");
}

#[test]
fn a_runner_that_died_in_a_wait_waits_no_longer() {
    let env = Env::new();
    let script = "[ $n = 1 ] && limit 1794827520; wait_for go; work; result '<promise>COMPLETE</promise>'";
    let mut run = env.run_claude(script, &["x"]).spawn();
    run.until("usage limit reached; continuing in ");
    run.kill();
    let shown = env.shown("ralph-run");
    assert_eq!((&shown["waiting"], &shown["client"]), (&Value::Null, &"unknown".into()));
    let mut run = env.run_claude(script, &[]).spawn();
    run.until("── iteration 1");
    assert_eq!(env.shown("ralph-run")["waiting"], Value::Null);
    env.touch("go");
    assert_eq!(run.wait().code, Some(0));
}

#[test]
fn a_usage_limit_is_waited_for_until_the_time_the_client_names() {
    let env = Env::new();
    // The first time it is named, the second time not.
    let script = "case $n in \
        1) limit 1794819600;; \
        2) printf '{\"type\":\"result\",\"is_error\":true,\"api_error\":\"usage_limit_reached\"}\\n'; exit 1;; \
        esac; work; result '<promise>COMPLETE</promise>'";
    let mut waiter = Waiter::at(env.run_claude(script, &["--json", "--max-iterations", "1", "x"]));
    let stated = waiter.sees();
    assert_eq!(stated["reason"], "usage limit reached");
    assert_eq!(stated["until"], stamp(3600).replace("+00:00", ".000Z"));
    assert_eq!(stated["seconds"], 3630, "and half a minute for the clocks of others");
    waiter.presses_enter();
    let unknown = waiter.sees();
    assert_eq!((&unknown["until"], &unknown["seconds"]), (&Value::Null, &900.into()));
    waiter.presses_enter();
    let run = waiter.run.wait();
    assert_eq!((run.code, env.starts()), (Some(0), 3), "{run:?}");
    assert_eq!(env.outcomes(), ["complete"], "a limit is no iteration, however often");

    let env = Env::new();
    let run = env.run_claude("limit 1794819600", &["--on-limit", "stop", "x"]).run();
    assert_eq!((run.code, summary(&run, "Iterations")), (Some(5), "1 / 50"), "{run:?}");
}
