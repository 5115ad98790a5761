//! A turn that ended with an API error: what the loop does about it, and the waker that tries again.

use crate::env::{Call, Env, HOUR, MINUTE, Program, Running, SESSION, T0, wait_until};
use crate::transcript::Transcript;
use serde_json::{Value, json};

const WORDS: &str = "API Error: 529 overloaded. Try again in a moment.";

fn started(flags: &[&str]) -> (Env, Transcript) {
    let env = Env::new();
    env.start("task", flags);
    let transcript = env.transcript();
    transcript.prompt(1, "p", "go");
    (env, transcript)
}

/// The payload of a failed turn.
fn failure(env: &Env, transcript: &Transcript, error: &str, words: &str) -> String {
    let event = env.event(Program::StopHook, SESSION, "StopFailure").with(transcript);
    event.field("error", error).says(words).payload()
}

fn fails(env: &Env, transcript: &Transcript, error: &str, words: &str) {
    env.call(Program::StopHook).stdin(failure(env, transcript, error, words)).run().answer().silent();
}

/// The waker of a failed turn, in the terminal's interface.
fn waker(env: &Env, transcript: &Transcript) -> Call {
    let payload = failure(env, transcript, "server_error", WORDS);
    env.call(Program::Ralph).args(&["wake"]).var("CLAUDE_CODE_ENTRYPOINT", "cli").stdin(payload)
}

fn client_says(env: &Env, status: &str) {
    super::activity::client_says(env, &super::activity::alive(), json!({"status": status}));
}

#[test]
fn a_failure_of_the_service_is_waited_for_and_no_iteration() {
    let (env, transcript) = started(&[]);
    fails(env.at(10), &transcript, "server_error", WORDS);
    let shown = env.shown(SESSION);
    assert_eq!((&shown["state"], &shown["iteration"]), (&json!("running"), &json!(0)));
    assert_eq!((&shown["waiting"]["for"], &shown["last_error"]), (&json!("service"), &json!("server_error")));
    assert!(env.ralph(&["status"]).ok().contains("waiting: API until 2026-11-16 08:00 UTC, "));
    // Nothing may wake the session any more: its waker was killed, say.
    let told = env.at(10 + MINUTE).ralph(&["status"]).ok();
    assert!(told.contains("waiting: your prompt, after an API error: server_error"), "{told}");
    env.at(20 + MINUTE).turn(SESSION, "On it again.").continues();
    assert_eq!(env.record(SESSION)["session"]["outage"], Value::Null);
}

#[test]
fn an_outage_ends_the_loop_after_its_limit_in_the_words_of_the_service() {
    let (env, transcript) = started(&["--notify", "echo \"$RALPH_EVENT: $RALPH_REASON\" >> ../told"]);
    for minute in [0, 4, 6, 200, 719] {
        fails(env.at(minute * MINUTE), &transcript, "server_error", WORDS);
        assert_eq!(env.shown(SESSION)["state"], "running", "{minute}");
    }
    // Each is told by a process of its own.
    env.wait_for_file("told");
    fails(env.at(720 * MINUTE), &transcript, "server_error", WORDS);
    let shown = env.shown(SESSION);
    let reason = format!("the API failed for 12h: {WORDS}");
    assert_eq!((&shown["outcome"], &shown["reason"]), (&json!("error"), &json!(reason)));
    assert_eq!(env.history()[0]["reason"], reason);
    let told = env.at(721 * MINUTE).session_start(SESSION, "resume").run().message.unwrap();
    assert!(told.contains(&format!("Ralph ended (error): failed: {reason}")), "{told}");
    wait_until("both notifications", || env.wait_for_file("told").lines().count() == 2);
    let told = env.wait_for_file("told");
    assert!(told.starts_with("outage: the API has failed for 6m: server_error\n"), "{told}");
    assert_eq!(told.lines().last(), Some(format!("ended: {reason}").as_str()));
}

#[test]
fn sleep_of_the_machine_is_no_part_of_an_outage() {
    let (env, transcript) = started(&["--max-outage", "1h"]);
    fails(env.at(10), &transcript, "server_error", WORDS);
    let payload = failure(&env, &transcript, "server_error", WORDS);
    let woken = format!("{} slept {}", T0 + 9 * HOUR, 9 * HOUR - 20 * MINUTE);
    env.call(Program::StopHook).stdin(payload).var("RALPH_NOW", woken).run().answer().silent();
    assert_eq!(env.record(SESSION)["state"], "running");
    fails(env.at(10 * HOUR), &transcript, "server_error", WORDS);
    assert_eq!(env.record(SESSION)["outcome"], "error", "after a restart the machine has not slept");
}

#[test]
fn an_error_that_does_not_pass_ends_the_loop_at_once_in_its_words() {
    for error in ["authentication_failed", "billing_error", "model_not_found", "account_on_hold"] {
        let (env, transcript) = started(&[]);
        fails(env.at(10), &transcript, error, "Please run /login");
        let shown = env.shown(SESSION);
        assert_eq!(
            (&shown["outcome"], &shown["reason"], &shown["last_error"]),
            (&json!("error"), &json!("Please run /login"), &json!(error))
        );
    }
}

#[test]
fn an_error_of_no_known_name_is_tried_three_times() {
    for (error, words, reason) in [
        (json!("an_error_of_next_year"), "Odd.", "same error 3 times in a row: Odd."),
        (json!(null), "", "same error 3 times in a row: unknown"),
        (json!({"not": "text"}), "\u{1b}[2J", "same error 3 times in a row: [2J"),
    ] {
        let (env, transcript) = started(&[]);
        for second in [10, 40, 90] {
            assert_eq!(env.record(SESSION)["state"], "running", "{error}");
            let event = env.at(second).event(Program::StopHook, SESSION, "StopFailure").with(&transcript);
            event.field("error", error.clone()).says(words).run().silent();
        }
        let shown = env.shown(SESSION);
        assert_eq!((&shown["outcome"], &shown["reason"]), (&json!("error"), &json!(reason)));
    }
}

#[test]
fn the_waker_tries_again_once_the_time_has_come() {
    let (env, transcript) = started(&[]);
    let clock = env.clock();
    fails(&env, &transcript, "server_error", WORDS);
    // What the client writes in place of an answer comes late.
    let error = json!({"isApiErrorMessage": true, "message": {"content": [{"type": "text", "text": WORDS}]}});
    transcript.entry(3, "assistant", error);
    let mut waker = waker(&env, &transcript).spawn();
    clock.advance_until(1, "the attempt", || waker.has_ended());
    let woken = waker.wait();
    assert_eq!((woken.code, woken.stdout.as_str()), (Some(2), ""), "{woken:?}");
    let text = &woken.stderr;
    assert!(text.starts_with("The last turn ended with an API error (server_error). Try again."), "{text}");
    assert!(text.contains("Ralph: 0 of 50 iterations done") && text.contains("task"), "{text}");
    assert_eq!(env.record(SESSION)["session"]["waiting"], Value::Null, "the attempt is taken");
}

#[test]
fn the_waker_waits_while_the_client_works_and_leaves_a_turn_of_the_users_alone() {
    let (env, transcript) = started(&[]);
    let clock = env.clock();
    fails(&env, &transcript, "server_error", WORDS);
    client_says(&env, "busy");
    let mut waker = waker(&env, &transcript).spawn();
    transcript.prompt(20, "q", "try it now");
    for _ in 0..4 {
        clock.advance(MINUTE);
        clock.wait_until_seen();
    }
    assert!(!waker.has_ended());
    transcript.text(30, "on it");
    let left = waker.wait();
    assert_eq!((left.code, left.stderr.as_str()), (Some(0), ""), "{left:?}");
}

#[test]
fn a_command_that_the_client_answers_itself_does_not_end_the_watch() {
    let (env, transcript) = started(&[]);
    let clock = env.clock();
    fails(&env, &transcript, "server_error", WORDS);
    client_says(&env, "idle");
    let mut waker = waker(&env, &transcript).spawn();
    transcript.prompt(5, "q", "/compact").entry(
        6,
        "user",
        json!({"isMeta": true, "message": {"content": "## Context Usage"}}),
    );
    clock.advance_until(1, "the attempt", || waker.has_ended());
    assert_eq!(waker.wait().code, Some(2));
}

#[test]
fn of_two_wakers_one_wakes_the_agent() {
    let (env, transcript) = started(&[]);
    let clock = env.clock();
    fails(&env, &transcript, "server_error", WORDS);
    let mut wakers = [waker(&env, &transcript).spawn(), waker(&env, &transcript).spawn()];
    clock.advance_until(1, "both end", || wakers.iter_mut().all(|waker| waker.has_ended()));
    let mut codes = wakers.map(|waker| waker.wait().code);
    codes.sort();
    assert_eq!(codes, [Some(0), Some(2)]);
}

const LIMIT: &str = "You've hit your 5-hour limit · resets 8:30am (UTC)";

/// The waker of a turn that a usage limit cut off.
fn limited(env: &Env, transcript: &Transcript, words: &str) -> Running {
    let payload = failure(env, transcript, "rate_limit", words);
    env.call(Program::Ralph).args(&["wake"]).var("CLAUDE_CODE_ENTRYPOINT", "cli").stdin(payload).spawn()
}

#[test]
fn the_waker_continues_after_a_usage_limit_if_the_client_does_not() {
    let (env, transcript) = started(&[]);
    let clock = env.clock();
    fails(&env, &transcript, "rate_limit", LIMIT);
    let mut waker = limited(&env, &transcript, LIMIT);
    // The client notes the limit in the transcript, late.
    let limit = json!({"isApiErrorMessage": true, "quotaLimits": {"resetsAt": T0 + 30 * MINUTE},
        "message": {"content": [{"type": "text", "text": LIMIT}]}});
    transcript.entry(3, "assistant", limit);
    clock.wait_until_seen();
    clock.advance(34 * MINUTE);
    clock.wait_until_seen();
    let told = env.ralph(&["status"]).ok();
    assert!(told.contains("waiting: usage limit has reset, continues shortly"), "{told}");
    assert!(!waker.has_ended(), "the client may continue by itself");
    clock.advance_until(10, "the waker ends", || waker.has_ended());
    let woken = waker.wait();
    assert_eq!(woken.code, Some(2), "{woken:?}");
    assert!(woken.stderr.contains("Continue the task: task"), "{woken:?}");
}

#[test]
fn the_client_that_continues_by_itself_after_a_usage_limit_is_left_alone() {
    let (env, transcript) = started(&[]);
    let clock = env.clock();
    fails(&env, &transcript, "rate_limit", LIMIT);
    let mut waker = limited(&env, &transcript, LIMIT);
    clock.wait_until_seen();
    transcript
        .prompt(1860, "q", "Your claude.ai usage limit has reset. Continue the task")
        .text(1865, "on it");
    clock.advance_until(10, "the waker ends", || waker.has_ended());
    assert_eq!(waker.wait().code, Some(0));
}

#[test]
fn a_reset_in_another_time_zone_is_noted_by_the_waker() {
    for (words, what, until) in [
        ("You've hit your limit · resets 9:30am (Europe/Berlin)", "usage-limit", "2026-11-16T08:30:00.000Z"),
        ("You've hit your limit · resets 9:30am (Nowhere/Land)", "service", "2026-11-16T08:15:00.000Z"),
    ] {
        let (env, transcript) = started(&[]);
        let _clock = env.clock();
        fails(&env, &transcript, "rate_limit", words);
        assert_eq!(env.shown(SESSION)["waiting"]["for"], "prompt", "{words}");
        let mut waker = limited(&env, &transcript, words);
        wait_until("the time is noted", || env.shown(SESSION)["waiting"]["for"] != "prompt");
        let waiting = &env.shown(SESSION)["waiting"];
        assert_eq!((&waiting["for"], &waiting["until"]), (&json!(what), &json!(until)), "{words}");
        assert!(!waker.has_ended());
        env.ralph(&["stop"]).ok();
        assert_eq!(waker.wait().code, Some(0));
    }
}

#[test]
fn a_dialog_about_the_limit_is_notified_once_and_a_client_that_waits_by_itself_is_not() {
    let (env, transcript) = started(&["--notify", "echo \"$RALPH_EVENT: $RALPH_REASON\" >> ../told"]);
    let clock = env.clock();
    fails(&env, &transcript, "rate_limit", LIMIT);
    client_says(&env, "idle");
    let waker = limited(&env, &transcript, LIMIT);
    clock.wait_until_seen();
    assert!(!env.project.join("../told").exists());
    super::activity::client_says(
        &env,
        &super::activity::alive(),
        json!({"status": "waiting", "waitingFor": "dialog open"}),
    );
    assert_eq!(env.wait_for_file("told"), "usage-limit: usage limit resets 8:30am (UTC)");
    clock.wait_until_seen();
    env.ralph(&["stop"]).ok();
    assert_eq!(waker.wait().code, Some(0));
    wait_until("the ending is told", || env.wait_for_file("told").lines().count() == 2);
    assert!(env.wait_for_file("told").lines().last().unwrap().starts_with("ended: "));
}

#[test]
fn a_usage_limit_ends_a_loop_that_is_not_to_wait() {
    for words in [LIMIT, "You've hit your limit · resets 9:30am (Europe/Berlin)"] {
        let (env, transcript) = started(&["--on-limit", "stop"]);
        fails(env.at(10), &transcript, "rate_limit", words);
        let shown = env.shown(SESSION);
        assert_eq!((&shown["outcome"], &shown["reason"]), (&json!("usage-limit"), &json!(words)));
    }
}

#[test]
fn the_waker_tries_again_without_a_transcript() {
    let (env, transcript) = started(&[]);
    let clock = env.clock();
    fails(&env, &transcript, "server_error", WORDS);
    let gone =
        env.event(Program::StopHook, SESSION, "StopFailure").field("error", "server_error").says(WORDS);
    let call = env.call(Program::Ralph).args(&["wake"]).var("CLAUDE_CODE_ENTRYPOINT", "cli");
    let mut waker = call.stdin(gone.field("transcript_path", "/no/such/file").payload()).spawn();
    clock.advance_until(1, "the attempt", || waker.has_ended());
    assert_eq!(waker.wait().code, Some(2));
}

#[test]
fn the_waker_leaves_an_ended_loop_alone() {
    let (env, transcript) = started(&[]);
    fails(&env, &transcript, "rate_limit", "API Error: Request rejected (429)");
    assert_eq!(env.shown(SESSION)["waiting"]["for"], "service", "a throttle");
    let stopped = waker(&env, &transcript).spawn();
    env.ralph(&["stop"]).ok();
    assert_eq!(stopped.wait().code, Some(0));
}

#[test]
fn the_waker_survives_bad_input() {
    let (env, _) = started(&[]);
    for payload in [
        json!({"session_id": SESSION, "hook_event_name": "StopFailure"}),
        json!({"session_id": SESSION, "hook_event_name": "StopFailure", "transcript_path": "/no/such/file"}),
        json!({"session_id": 7, "hook_event_name": "StopFailure", "error": []}),
        json!({"hook_event_name": "StopFailure"}),
    ] {
        let clock = env.clock();
        let call = env.call(Program::Ralph).args(&["wake"]).var("CLAUDE_CODE_ENTRYPOINT", "cli");
        let mut run = call.stdin(payload.to_string()).spawn();
        clock.advance_until(10, "the waker ends", || run.has_ended());
        let run = run.wait();
        assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""), "{payload}");
    }
}
