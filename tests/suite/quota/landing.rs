//! `--land-at` and `--reserve` in a session: the agent lands, the loop waits, and the waker continues it.

use super::told;
use crate::env::{Answer, Env, HOUR, Program, SESSION, T0, wait_until};
use crate::session::activity::{alive, client_says};
use serde_json::{Value, json};

fn turn(env: &Env, seconds: i64, percent: f64, resets_at: i64) -> Answer {
    told(env.at(seconds - 5), SESSION)
        .cost(seconds as f64 / 1e6, seconds)
        .window("five_hour", percent, Some(T0 + resets_at))
        .line();
    env.write("work.txt", seconds.to_string());
    env.at(seconds).turn(SESSION, &format!("done with part {seconds}"))
}

#[test]
fn the_agent_lands_and_the_loop_waits_for_the_reset_without_counting_it() {
    let env = Env::new();
    env.start("work", &["--land-at", "90"]);
    assert!(!turn(&env, 10, 50.0, 3600).continues().contains("safe point"));
    let landing = turn(&env, 20, 92.0, 3600);
    assert!(
        landing
            .continues()
            .contains("92% of the 5-hour limit (resets in 59m) used. After this turn the loop waits"),
        "{landing:?}"
    );
    assert!(landing.continues().contains("commit what is verified"));
    let waits = turn(&env, 30, 93.0, 3600);
    assert!(
        waits
            .allows()
            .contains("93% of the 5-hour limit (resets in 59m) used; continuing at 2026-11-16 09:00 UTC"),
        "{waits:?}"
    );
    let shown = env.shown(SESSION);
    assert_eq!(
        (&shown["waiting"]["for"], &shown["waiting"]["until"]),
        (&"usage-limit".into(), &"2026-11-16T09:00:00.000Z".into())
    );
    assert_eq!((&shown["iteration"], &shown["state"]), (&3.into(), &"running".into()));
    let window = &shown["quota"]["windows"][0];
    assert_eq!((&window["window"], &window["percent"]), (&"five_hour".into(), &93.0.into()));
    assert_eq!(shown["quota"]["source"], "status-line");
    assert!(env.ralph(&["status"]).ok().contains("5-hour 93% (resets in 59m) · status line, 5s ago"));
    let runtime = shown["runtime_seconds"].as_f64().unwrap();

    // A turn of the user's in between is no iteration, and the loop still waits.
    let between = turn(&env, 1800, 94.0, 3600);
    assert!(between.allows().contains("continuing at 2026-11-16 09:00 UTC"), "{between:?}");
    assert_eq!(env.shown(SESSION)["iteration"], 3);
    // The figure is still the old one at the first Stop after the reset: it says nothing about the new window.
    let after = env.at(3700).turn(SESSION, "continued after the reset");
    after.continues();
    let shown = env.shown(SESSION);
    assert_eq!((&shown["iteration"], &shown["waiting"]), (&4.into(), &Value::Null));
    assert_eq!(shown["quota"]["windows"][0]["percent"], Value::Null, "unknown is unknown");
    assert!(shown["runtime_seconds"].as_f64().unwrap() < runtime + 400.0, "waiting is not runtime");
    assert!(!turn(&env, 3710, 3.0, 3600 + 5 * HOUR).continues().contains("safe point"));
}

#[test]
fn a_figure_that_is_old_or_cannot_be_true_lands_nothing() {
    let env = Env::new();
    told(&env, SESSION).cost(0.1, 1).window("five_hour", 99.0, Some(T0 + 3600)).line();
    env.at(60).start("work", &["--land-at", "90"]);
    assert!(!env.at(70).turn(SESSION, "one").continues().contains("safe point"), "from before the loop");
    told(env.at(75), SESSION).cost(0.2, 2).window("five_hour", 99.0, Some(T0 + 60)).line();
    assert!(!env.at(80).turn(SESSION, "two").continues().contains("safe point"), "of a window that is over");
    told(env.at(85), SESSION).cost(0.3, 3).window("five_hour", 250.0, Some(T0 + 3600)).line();
    assert!(!env.at(90).turn(SESSION, "three").continues().contains("safe point"), "250 %");
    told(env.at(92), SESSION).cost(0.4, 4).window("five_hour", 91.0, Some(T0 + 3600)).line();
    env.write("work.txt", "1");
    assert!(env.at(95).turn(SESSION, "four").continues().contains("safe point"), "and one that is true does");
    told(env.at(97), SESSION).cost(0.5, 5).window("five_hour", 40.0, Some(T0 + 3600)).line();
    env.at(98).turn(SESSION, "five").continues();
}

#[test]
fn the_reserve_is_left_and_on_limit_stop_ends_the_loop() {
    let env = Env::new();
    env.start("work", &["--reserve", "30"]);
    turn(&env, 10, 70.0, 3600).continues();
    let waits = turn(&env, 20, 71.0, 3600);
    assert!(
        waits.allows().contains("71% of the 5-hour limit (resets in 59m) used; 30% is reserved"),
        "{waits:?}"
    );
    let env = Env::new();
    env.start("work", &["--reserve", "30", "--on-limit", "stop"]);
    let ended = turn(&env, 20, 71.0, 3600);
    assert!(
        ended.ended("usage-limit").contains("30% is reserved; resets at 2026-11-16 09:00 UTC"),
        "{ended:?}"
    );
}

#[test]
fn the_waker_continues_after_the_reset_and_not_before() {
    let env = Env::new();
    env.start("work", &["--land-at", "90"]);
    env.var("CLAUDE_CODE_ENTRYPOINT", "cli");
    turn(&env, 10, 92.0, 60).continues();
    turn(&env, 20, 92.0, 60).allows();
    let clock = env.clock();
    let payload = env.stop(SESSION).payload();
    let mut waker = env.call(Program::Ralph).args(&["wake"]).stdin(payload).spawn();
    clock.wait_until_seen();
    clock.advance(69);
    clock.wait_until_seen();
    assert!(!waker.has_ended(), "the margin for the service's clock is not over");
    clock.advance(1);
    let run = waker.wait();
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.starts_with("Ralph: 2 of 50 iterations done"), "{run:?}");
    assert_eq!(env.shown(SESSION)["iteration"], 2);
}

#[test]
fn a_reset_that_is_days_away_costs_a_short_turn_a_day() {
    let env = Env::new();
    env.start("work", &["--land-at", "90"]);
    env.var("CLAUDE_CODE_ENTRYPOINT", "cli");
    let weekly = |seconds: i64| {
        told(env.at(seconds - 5), SESSION).window("seven_day", 92.0, Some(T0 + 72 * HOUR)).line();
        env.at(seconds).turn(SESSION, &format!("done with part {seconds}"))
    };
    weekly(10).continues();
    weekly(20).allows();
    let clock = env.clock();
    let waker = || env.call(Program::Ralph).args(&["wake"]).stdin(env.stop(SESSION).payload()).spawn();
    let first = waker();
    clock.wait_until_seen();
    let mut second = waker();
    wait_until("one of them watches", || second.has_ended());
    clock.advance(23 * HOUR);
    let run = first.wait();
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(
        run.stderr.starts_with("The loop still waits until ")
            && run.stderr.contains(": 92% of the weekly limit"),
        "{run:?}"
    );
    env.turn(SESSION, "Waiting.").allows();
    assert_eq!(
        (&env.shown(SESSION)["iteration"], &env.shown(SESSION)["activity"]),
        (&2.into(), &"waiting".into())
    );
}

/// With `-p` the client waits for this hook, and would exit before the reset without it.
#[test]
fn a_printed_session_waits_for_the_reset_and_continues() {
    let env = Env::new();
    env.var("CLAUDE_CODE_ENTRYPOINT", "sdk-cli");
    env.start("work", &["--land-at", "90"]);
    let clock = env.clock();
    let told = |percent| {
        told(&env, SESSION).cost(percent / 100.0, 9).window("five_hour", percent, Some(T0 + 60)).line();
        env.write("work.txt", percent.to_string());
        env.turn(SESSION, &format!("at {percent}"))
    };
    clock.advance(1);
    told(92.0).continues();
    clock.advance(1);
    told(93.0).allows();
    let payload = env.stop(SESSION).payload();
    client_says(&env, &alive(), json!({"status": "busy", "entrypoint": "sdk-cli"}));
    let mut waker = env.call(Program::Ralph).args(&["wake"]).stdin(payload).spawn();
    clock.wait_until_seen();
    assert!(!waker.has_ended(), "the reset is ahead");
    assert_eq!(env.shown(SESSION)["waiting"]["for"], "usage-limit");
    clock.advance_until(1, "the waker ends", || waker.has_ended());
    let run = waker.wait();
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.starts_with("Ralph: 2 of 50 iterations done"), "{run:?}");
}

#[test]
fn a_printed_session_that_needs_no_reset_is_not_held() {
    let env = Env::new();
    env.var("CLAUDE_CODE_ENTRYPOINT", "sdk-cli");
    env.start("work", &[]);
    env.at(10).turn(SESSION, "one").continues();
    let run = env.call(Program::Ralph).args(&["wake"]).stdin(env.stop(SESSION).payload()).run();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

/// On a busy machine the client starts it after the hook beside it has decided.
#[test]
fn a_printed_session_is_not_held_by_a_waker_that_starts_late() {
    let env = Env::new();
    env.var("CLAUDE_CODE_ENTRYPOINT", "sdk-cli");
    env.start("work", &["--land-at", "90"]);
    let clock = env.clock();
    let ended = |message: &str| env.stop(SESSION).says(message);
    let waker = |message: &str| env.call(Program::Ralph).args(&["wake"]).stdin(ended(message).payload());
    clock.advance(10);
    ended("one").run().continues();
    clock.advance(1);
    assert_eq!(waker("one").run().code, Some(0), "its turn is decided");

    let mut early = waker("two").spawn();
    clock.wait_until_seen();
    assert!(!early.has_ended(), "what was decided is an earlier turn");
    ended("two").run().continues();
    assert_eq!(early.wait().code, Some(0));
}

#[test]
fn a_loop_that_waits_is_paused_at_once_and_resumed_in_its_session() {
    let env = Env::new();
    env.start("work", &["--land-at", "90"]);
    turn(&env, 10, 92.0, 3600).continues();
    turn(&env, 20, 92.0, 3600).allows();
    let told = env.at(30).ralph(&["pause"]).ok();
    assert!(told.contains("is paused. Resume it with /ralph:start --resume"), "{told}");
    let refused = env.ralph(&["pause", "--resume"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("its session waits for you"), "{refused:?}");
    env.ralph(&["start", "--resume", "--session", SESSION]).ok();
    assert_eq!(env.record(SESSION)["state"], "running");
}

#[test]
fn a_start_says_that_a_known_level_will_hold_the_loop() {
    let env = Env::new();
    told(&env, SESSION).window("five_hour", 95.0, Some(T0 + 3600)).line();
    let started = env.ralph(&["start", "work", "--session", SESSION, "--reserve", "30"]).ok();
    let known = "95% of the 5-hour limit (resets in 1h) used; 30% is reserved; the loop waits for the reset after its \
                 first turn, until 2026-11-16 09:00 UTC";
    assert!(started.contains(known), "{started}");
}

#[test]
fn a_reset_beyond_its_window_is_unknown() {
    let env = Env::new();
    env.start("work", &["--land-at", "90"]);
    turn(&env, 10, 92.0, 72 * HOUR).continues();
    let waits = turn(&env, 20, 93.0, 72 * HOUR);
    assert!(
        waits.allows().contains("93% of the 5-hour limit used; continuing at 2026-11-16 08:15 UTC"),
        "{waits:?}"
    );
}
