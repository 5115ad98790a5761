//! Runtime is the time the client was working; wall time is calendar time.

use crate::env::{Env, HOUR, MINUTE, SESSION};
use crate::transcript::Transcript;

fn runtime(env: &Env) -> f64 {
    env.record(SESSION)["accumulated_runtime_seconds"].as_f64().unwrap()
}

fn started() -> Env {
    let env = Env::without_breaker();
    env.start("task", &["--max-idle", "0"]);
    env
}

#[test]
fn the_first_turn_counts_and_short_gaps_add_up() {
    let env = started();
    env.at(100).turn(SESSION, "x").continues();
    assert_eq!(runtime(&env), 100.0);
    env.at(399).turn(SESSION, "x").continues();
    assert_eq!(runtime(&env), 399.0);
    assert_eq!(env.record(SESSION)["last_hook_timestamp"], (crate::env::T0 + 399) as f64);
}

#[test]
fn a_gap_of_the_threshold_is_a_pause() {
    let env = started();
    env.at(300).turn(SESSION, "x").continues();
    assert_eq!(runtime(&env), 0.0);
    env.at(599).turn(SESSION, "x").continues();
    assert_eq!(runtime(&env), 299.0);
    let shown = env.at(1000).shown(SESSION);
    assert_eq!(
        (shown["runtime_seconds"].as_f64(), shown["wall_seconds"].as_f64()),
        (Some(299.0), Some(1000.0))
    );
}

#[test]
fn the_threshold_is_a_setting() {
    let env = Env::new();
    env.start("task", &["--gap-threshold", "1000"]);
    env.at(999).turn(SESSION, "x").continues();
    assert_eq!(runtime(&env), 999.0);
}

#[test]
fn a_clock_set_back_neither_adds_nor_shrinks_runtime() {
    let env = started();
    env.at(200).turn(SESSION, "x").continues();
    env.at(50).turn(SESSION, "x").continues();
    assert_eq!(runtime(&env), 200.0);
    env.at(80).turn(SESSION, "x").continues();
    assert_eq!(runtime(&env), 230.0, "measured from where the clock is now");
    env.at(-9 * HOUR).turn(SESSION, "x").continues();
    env.at(-9 * HOUR + 10).turn(SESSION, "x").continues();
    assert_eq!(runtime(&env), 240.0);
    let shown = env.shown(SESSION);
    assert_eq!(shown["wall_seconds"], 0.0, "never negative");
}

#[test]
fn an_older_state_without_marks_starts_at_zero() {
    let env = started();
    env.edit_state(|state| {
        let record = state["loops"][SESSION].as_object_mut().unwrap();
        for name in ["accumulated_runtime_seconds", "last_hook_timestamp", "timing"] {
            record.remove(name);
        }
    });
    env.at(100).turn(SESSION, "x").continues();
    assert_eq!(runtime(&env), 0.0, "no mark yet adds nothing");
    env.at(150).turn(SESSION, "x").continues();
    assert_eq!(runtime(&env), 50.0);
}

#[test]
fn a_tool_that_runs_for_an_hour_counts_whole() {
    let env = started();
    let transcript = env.transcript();
    transcript.prompt(1, "p", "go").call(10, "t1").result(10 + HOUR, "t1").text(HOUR + 20, "built");
    env.at(HOUR + 21).stop(SESSION).with(&transcript).says("built").run().continues();
    assert_eq!(runtime(&env), (HOUR + 21) as f64);
}

#[test]
fn a_model_that_thinks_for_twenty_minutes_counts_whole() {
    let env = started();
    let transcript = env.transcript();
    transcript.prompt(1, "p", "go").text(20 * MINUTE, "thought");
    env.at(20 * MINUTE + 1).stop(SESSION).with(&transcript).prompt_id("p").run().continues();
    assert_eq!(runtime(&env), (20 * MINUTE + 1) as f64);
}

#[test]
fn twenty_turns_of_six_minutes_are_two_hours() {
    let env = Env::without_breaker();
    env.start("task", &["--max-hours", "2"]);
    let transcript = env.transcript();
    transcript.prompt(0, "p", "go");
    for turn in 0..20 {
        let begin = turn * 6 * MINUTE;
        let id = format!("t{turn}");
        transcript.call(begin + 1, &id).result(begin + 350, &id).text(begin + 358, "step");
        let answer = env.at(begin + 360).stop(SESSION).with(&transcript).prompt_id("p").says("step").run();
        if turn < 19 {
            answer.continues();
            transcript.feedback(begin + 360);
        } else {
            answer.ended("max-runtime");
        }
    }
    assert_eq!(runtime(&env), 2.0 * HOUR as f64);
}

#[test]
fn a_night_with_the_client_closed_is_a_pause_even_inside_a_tool_call() {
    let env = started();
    let transcript = env.transcript();
    transcript.prompt(1, "p", "go").call(10, "t1");
    // Killed here; the session is resumed the next morning with a new prompt.
    env.at(10 * HOUR).session_start(SESSION, "resume").with(&transcript).run();
    transcript.prompt(10 * HOUR + 60, "q", "go on").text(10 * HOUR + 100, "on it");
    env.at(10 * HOUR + 101).stop(SESSION).with(&transcript).prompt_id("q").run().continues();
    let known = runtime(&env);
    assert!((101.0..=111.0).contains(&known), "only this morning and the minutes before the end: {known}");
    let line = env.turn(SESSION, "x").message.unwrap();
    assert!(line.contains("Runtime: 0.0h/9.0h | Wall: 10.0h"), "{line}");
}

#[test]
fn a_night_without_any_session_start_is_a_pause_too() {
    let env = started();
    let transcript = env.transcript();
    transcript.prompt(1, "p", "go").text(20, "done for now");
    env.at(21).stop(SESSION).with(&transcript).prompt_id("p").run().continues();
    transcript.feedback(21).call(30, "t1");
    transcript.prompt(9 * HOUR, "q", "good morning").text(9 * HOUR + 30, "hi");
    env.at(9 * HOUR + 31).stop(SESSION).with(&transcript).prompt_id("q").run().continues();
    let known = runtime(&env);
    assert!((52.0..=61.0).contains(&known), "{known}");
}

#[test]
fn resuming_soon_after_closing_still_marks_a_pause() {
    let env = started();
    env.at(100).turn(SESSION, "x").continues();
    env.at(200).session_start(SESSION, "resume").run();
    env.at(230).turn(SESSION, "x").continues();
    assert_eq!(runtime(&env), 130.0, "the client was closed from 100 to 200");
}

#[test]
fn resuming_a_running_loop_loses_no_time() {
    let env = started();
    env.at(100).ralph(&["start", "--resume", "--session", SESSION]).ok();
    env.at(150).turn(SESSION, "x").continues();
    assert_eq!(runtime(&env), 150.0, "else a loop that is resumed often never reaches its limit");
}

#[test]
fn compaction_is_work() {
    let env = started();
    env.at(100).turn(SESSION, "x").continues();
    env.at(200).session_start(SESSION, "compact").run();
    env.at(250).turn(SESSION, "x").continues();
    assert_eq!(runtime(&env), 250.0);
}

#[test]
fn a_lagging_transcript_does_not_change_the_total() {
    let total = |lagging: bool| {
        let env = started();
        let transcript = env.transcript();
        transcript.prompt(1, "p", "go").call(5, "t1");
        if !lagging {
            transcript.result(20 * MINUTE, "t1").text(20 * MINUTE + 5, "x");
        }
        env.at(20 * MINUTE + 6).stop(SESSION).with(&transcript).prompt_id("p").run().continues();
        if lagging {
            transcript.result(20 * MINUTE, "t1").text(20 * MINUTE + 5, "x");
        }
        transcript.feedback(20 * MINUTE + 6).text(21 * MINUTE, "y");
        env.at(21 * MINUTE).stop(SESSION).with(&transcript).prompt_id("p").run().continues();
        runtime(&env)
    };
    assert_eq!(total(true), total(false));
    assert_eq!(total(false), 21.0 * 60.0);
}

#[test]
fn runtime_never_exceeds_wall_time() {
    let env = started();
    let transcript = env.transcript();
    transcript
        .call(-HOUR, "old")
        .prompt(-5, "p", "go")
        .call(1, "t")
        .result(30 * HOUR, "t")
        .result(2 * HOUR, "old");
    env.at(60).stop(SESSION).with(&transcript).run().continues();
    assert!(runtime(&env) <= 60.0, "{}", runtime(&env));
}

#[test]
fn ralph_now_accepts_both_forms_and_names_a_bad_value() {
    let env = started();
    env.var("RALPH_NOW", &(crate::env::T0 + 90).to_string()).turn(SESSION, "x").continues();
    assert_eq!(runtime(&env), 90.0);
    env.var("RALPH_NOW", "tomorrow");
    assert!(env.ralph(&["status"]).fails(64).contains("RALPH_NOW"));
    assert!(env.turn(SESSION, "x").allows().contains("RALPH_NOW"));
}

/// A Stop at this time, of a machine that has slept for so long since it was started.
fn slept(env: &Env, seconds: i64, slept: i64, transcript: &Transcript) {
    let payload = env.at(seconds).stop(SESSION).with(transcript).says("x").payload();
    let call = env.call(crate::env::Program::StopHook).stdin(payload);
    call.var("RALPH_NOW", format!("{} slept {slept}", crate::env::T0 + seconds)).run().answer().continues();
}

#[test]
fn sleep_of_the_machine_is_no_runtime_also_in_the_middle_of_a_tool() {
    let env = started();
    let transcript = env.transcript();
    transcript.prompt(1, "p", "go").call(10, "t1").result(10 * HOUR, "t1").text(10 * HOUR + 20, "x");
    slept(&env, 10 * HOUR + 20, 9 * HOUR, &transcript);
    assert_eq!(runtime(&env), (HOUR + 20) as f64);
    transcript.feedback(10 * HOUR + 21).text(10 * HOUR + 80, "x");
    slept(&env, 10 * HOUR + 80, 9 * HOUR, &transcript);
    assert_eq!(runtime(&env), (HOUR + 80) as f64, "and counts on from there");
    transcript.feedback(10 * HOUR + 81).text(12 * HOUR, "x");
    slept(&env, 12 * HOUR, 0, &transcript);
    assert_eq!(runtime(&env), (3 * HOUR) as f64, "a restarted machine has not slept");
}

#[test]
fn a_short_sleep_is_left_out_without_a_transcript_too() {
    let env = started();
    let stop = |seconds: i64, slept: i64| {
        let payload = env.at(seconds).stop(SESSION).says("x").payload();
        let call = env.call(crate::env::Program::StopHook).stdin(payload);
        call.var("RALPH_NOW", format!("{} slept {slept}", crate::env::T0 + seconds))
            .run()
            .answer()
            .continues();
    };
    stop(200, 50);
    assert_eq!(runtime(&env), 150.0);
    stop(800, 550);
    assert_eq!(runtime(&env), 250.0, "ten minutes of which the machine was awake for two");
}
