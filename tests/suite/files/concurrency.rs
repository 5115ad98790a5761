//! Several programs at once, a held lock, a killed program: nothing is lost.

use crate::env::{Access, Env, FileEvents, OTHER, Program, Running, SESSION};
use fs2::FileExt;
use serde_json::Value;
use std::fs::{File, OpenOptions};

fn hold(env: &Env) -> File {
    let path = env.path(".claude/ralph-state.lock");
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap();
    FileExt::lock_exclusive(&file).unwrap();
    file
}

fn opens_of_lock(env: &Env) -> FileEvents {
    FileEvents::of_file(&env.path(".claude/ralph-state.lock"), Access::Open)
}

const BUSY: [&str; 4] = ["--max-iterations", "0", "--max-idle", "0"];

#[test]
fn a_held_lock_is_waited_for_two_seconds_then_the_stop_is_allowed() {
    let env = Env::new();
    env.start("task", &[]);
    let lock = hold(&env);
    let before = env.read(".claude/ralph-state.json");
    let clock = env.clock();
    let mut opens = opens_of_lock(&env);
    let mut hook = env.stop(SESSION).says("<promise>COMPLETE</promise>").call().spawn();
    assert!(opens.wait_for_or_end(1, &mut hook), "it wants the lock");
    // From here on it looks at the clock only to end its wait.
    clock.wait_until_seen();
    clock.advance_ms(1900);
    clock.wait_until_seen();
    assert!(!hook.has_ended(), "it still waits");
    clock.advance_ms(100);
    let told = hook.wait().answer();
    assert!(told.allows().contains("ralph-state.lock"), "{told:?}");
    assert_eq!(env.read(".claude/ralph-state.json"), before);
    FileExt::unlock(&lock).unwrap();
    env.turn(SESSION, "x").continues();
}

#[test]
fn a_held_lock_does_not_delay_a_session_without_a_loop() {
    let env = Env::new();
    env.start("task", &[]);
    let _lock = hold(&env);
    // It stands still, so that a wait for the lock would never end.
    let _clock = env.clock();
    env.turn(OTHER, "x").silent();
    env.session_start(OTHER, "startup").run().silent();
    env.ralph(&["status"]).ok();
}

#[test]
fn a_lock_that_is_released_in_time_costs_only_the_wait() {
    let env = Env::new();
    env.start("task", &[]);
    let lock = hold(&env);
    let _clock = env.clock();
    let mut opens = opens_of_lock(&env);
    let mut hook = env.stop(SESSION).says("x").call().spawn();
    assert!(opens.wait_for_or_end(1, &mut hook), "it wants the lock");
    FileExt::unlock(&lock).unwrap();
    hook.wait().answer().continues();
    assert_eq!(env.record(SESSION)["iteration"], 1);
}

#[test]
fn a_busy_start_and_stop_say_so() {
    let env = Env::new();
    env.start("task", &[]);
    let _lock = hold(&env);
    let clock = env.clock();
    let mut calls = [
        env.call(Program::Ralph).args(&["start", "--session", OTHER, "x"]).spawn(),
        env.call(Program::Ralph).args(&["stop"]).spawn(),
    ];
    clock.advance_until(1, "both give up", || calls.iter_mut().all(Running::has_ended));
    for call in calls {
        let run = call.wait();
        assert!(run.code != Some(0) && run.stderr.contains("ralph-state.lock"), "{run:?}");
    }
    assert!(env.record(OTHER).is_null());
    let armed = crate::env::names_in(&env.data().join("sessions"));
    assert_eq!(armed.len(), 1, "a start that failed armed nothing");
}

#[test]
fn many_hooks_at_once_lose_no_iteration() {
    let env = Env::without_breaker();
    env.start("task", &BUSY);
    env.start_in(OTHER, "task", &BUSY);
    let hooks: Vec<_> = (0..24)
        .map(|n| env.stop(if n % 2 == 0 { SESSION } else { OTHER }).says("x").call().spawn())
        .collect();
    for hook in hooks {
        hook.wait().answer().continues();
    }
    assert_eq!(
        (&env.record(SESSION)["iteration"], &env.record(OTHER)["iteration"]),
        (&12.into(), &12.into())
    );
    assert_eq!(env.list(".claude"), ["ralph-state.json", "ralph-state.lock"]);
}

#[test]
fn a_stop_wins_against_hooks_that_run_at_the_same_time() {
    let env = Env::without_breaker();
    env.start("task", &BUSY);
    let hooks: Vec<_> = (0..8).map(|_| env.stop(SESSION).says("x").call().spawn()).collect();
    env.ralph(&["stop", "--session", SESSION]).ok();
    let answers: Vec<_> = hooks.into_iter().map(|hook| hook.wait().answer()).collect();
    assert_eq!(env.record(SESSION)["state"], "stopped");
    let told =
        answers.iter().filter(|answer| answer.message.as_ref().is_some_and(|m| m.contains("ended"))).count();
    assert!(told <= 1, "an ending is told once: {answers:?}");
    env.turn(SESSION, "x");
    env.turn(SESSION, "x").silent();
    assert_eq!(env.history().len(), 1);
}

#[test]
fn simultaneous_starts_in_many_sessions_all_succeed() {
    let env = Env::git();
    let sessions: Vec<String> = (0..8).map(|n| format!("session-{n}")).collect();
    let starts: Vec<_> = sessions
        .iter()
        .map(|id| env.call(Program::Ralph).args(&["start", "--session", id, "task"]).spawn())
        .collect();
    for start in starts {
        start.wait().ok();
    }
    for session in &sessions {
        env.turn(session, "x").continues();
    }
    let excluded = env.read(".git/info/exclude");
    assert_eq!(excluded.matches("ralph-state.*").count(), 1, "{excluded}");
}

#[test]
fn a_killed_program_leaves_no_half_file() {
    let env = Env::without_breaker();
    // Long enough that writing it takes a while.
    let mut args = vec!["start", "--session", SESSION, "-"];
    args.extend(BUSY);
    env.call(Program::Ralph).args(&args).stdin("long task ".repeat(1_900)).run().ok();
    let mut counted = 0;
    for n in 0..30 {
        let mut events = FileEvents::of(&env.folders(), Access::Change);
        let mut hook = env.stop(SESSION).says("x").call().spawn();
        events.wait_for_or_end(n % 6, &mut hook);
        hook.kill();
        let state: Value = serde_json::from_str(&env.read(".claude/ralph-state.json")).expect("a whole file");
        let iteration = state["loops"][SESSION]["iteration"].as_u64().unwrap();
        assert!(iteration == counted || iteration == counted + 1);
        counted = iteration;
    }
    env.turn(SESSION, "x").continues();
    assert_eq!(env.record(SESSION)["iteration"], counted + 1, "a killed program blocks no other");
}

#[test]
fn temporary_files_of_a_killed_program_are_removed() {
    let env = Env::new();
    env.start("task", &BUSY);
    // Only the holder of the lock writes: any other temporary file is of a killed program.
    env.write(".claude/ralph-state.json.tmp-new", "{\"half");
    env.turn(SESSION, "x").continues();
    assert_eq!(env.list(".claude"), ["ralph-state.json", "ralph-state.lock"]);
}
