//! Background work: a command is waited for once and for a limited time, whatever wakes the session.

use crate::env::{Answer, Clock, Env, Event, Program, Running, SESSION};
use crate::transcript::Transcript;
use serde_json::{Value, json};

fn task(id: &str, kind: &str) -> Value {
    json!({"id": id, "type": kind, "status": "running", "description": format!("run {id}"), "command": "x"})
}

fn stop<'e>(env: &'e Env, tasks: &[Value]) -> Event<'e> {
    env.stop(SESSION).says("x").field("background_tasks", json!(tasks))
}

fn prompt(answer: &Answer) -> String {
    [answer.block.clone(), answer.context.clone()].into_iter().flatten().collect()
}

const SENTENCE: &str = "Still running in the background: run server";

#[test]
fn a_server_or_monitor_holds_a_loop_for_its_limit_and_once() {
    let env = Env::without_breaker();
    env.start("task", &[]);
    let server = [task("server", "shell")];
    let told = stop(env.at(10), &server).run();
    assert!(told.allows().contains("waiting for background work: run server, 10m at most"), "{told:?}");
    let shown = env.at(70).shown(SESSION);
    assert_eq!((&shown["iteration"], &shown["waiting"]["for"]), (&json!(0), &json!("background")));
    assert_eq!(shown["waiting"]["what"], "run server");
    assert!(shown["waiting"]["until"].as_str().unwrap().contains("08:10:10"), "{shown}");
    assert!(env.ralph(&["status"]).ok().contains("waiting: background work: run server, 9m left"));
    stop(env.at(300), &server).run().allows();
    let answer = stop(env.at(610), &server).run();
    assert!(prompt(&answer).contains(SENTENCE), "{answer:?}");
    let answer = stop(env.at(620), &server).run();
    answer.continues();
    assert!(!prompt(&answer).contains(SENTENCE), "told once: {answer:?}");
    assert_eq!(env.shown(SESSION)["iteration"], 2);
    let both = [task("server", "shell"), task("build", "shell")];
    let told = stop(env.at(700), &both).run();
    assert!(told.allows().contains("run build"), "a new command is waited for: {told:?}");
}

#[test]
fn a_subagent_is_waited_for_without_a_limit() {
    let env = Env::without_breaker();
    env.start("task", &[]);
    for seconds in [10, 5000, 50_000] {
        let told = stop(env.at(seconds), &[task("server", "shell"), task("agent", "subagent")]).run();
        assert!(told.allows().contains("waiting for background work: run agent"), "{told:?}");
        assert_eq!(env.shown(SESSION)["waiting"]["until"], json!(null));
    }
    stop(env.at(50_001), &[task("server", "shell")]).run().continues();
}

#[test]
fn zero_minutes_wait_for_no_command() {
    let env = Env::without_breaker();
    env.ralph(&["config", "background.wait_minutes", "0"]).ok();
    env.start("task", &[]);
    assert!(prompt(&stop(env.at(10), &[task("server", "shell")]).run()).contains(SENTENCE));
}

/// A stop that was allowed for a server, and the waker beside it.
fn waits(env: &Env, transcript: &Transcript, entrypoint: &str) -> (Clock, Running) {
    env.start("task", &[]);
    transcript.worked(1);
    let clock = env.at(20).clock();
    let event = stop(env, &[task("server", "shell")]).with(transcript);
    let payload = event.payload();
    event.run().allows();
    let call = env.call(Program::Ralph).args(&["wake"]).var("CLAUDE_CODE_ENTRYPOINT", entrypoint);
    (clock, call.stdin(payload).spawn())
}

#[test]
fn the_waker_continues_the_loop_when_the_time_is_up() {
    for entrypoint in ["cli", "sdk-cli"] {
        let env = Env::without_breaker();
        let (clock, mut waker) = waits(&env, &env.transcript(), entrypoint);
        // It takes the time of its start for that of the stop.
        clock.wait_until_seen();
        clock.advance(590);
        clock.wait_until_seen();
        assert!(!waker.has_ended(), "{entrypoint}: the command has ten minutes");
        clock.advance_until(5, "the waker ends", || waker.has_ended());
        let run = waker.wait();
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{entrypoint}: {run:?}");
        assert!(
            run.stderr.starts_with(SENTENCE) && run.stderr.contains("Continue the task: task"),
            "{run:?}"
        );
        assert!(env.record(SESSION)["session"]["waiting"].is_null());
        let answer = stop(&env, &[task("server", "shell")]).run();
        answer.continues();
        assert!(!prompt(&answer).contains(SENTENCE), "{entrypoint}: told once: {answer:?}");
    }
}

/// With `-p` the client waits for the waker, so the end of a command shows only in its queue.
#[test]
fn the_waker_steps_back_when_the_command_has_ended_or_the_loop_is_stopped() {
    let env = Env::without_breaker();
    let transcript = env.transcript();
    let (_clock, waker) = waits(&env, &transcript, "sdk-cli");
    transcript.queue(25, "enqueue", "<task-notification>");
    let run = waker.wait();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));

    let env = Env::without_breaker();
    let (_clock, waker) = waits(&env, &env.transcript(), "cli");
    env.ralph(&["stop", "--session", SESSION]).ok();
    let run = waker.wait();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));

    let env = Env::without_breaker();
    let (_clock, waker) = waits(&env, &env.transcript(), "cli");
    stop(&env, &[]).run().continues();
    let run = waker.wait();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "another turn has ended");
}
