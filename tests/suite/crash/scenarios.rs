//! The commands that save, each with the world before it and the call after it.

use super::world::{Outside, View};
use crate::env::{Call, DONE, Env, OTHER, Program, Run, SESSION, copy_program, names_in};
use crate::setup::{self, install::Home};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Scenario {
    pub prepare: fn() -> Env,
    pub call: fn(&Env) -> Call,
    /// The next call, which must work whatever happened.
    pub again: super::Again,
    /// Accepts states between the old and the new one, for a command that saves more than once.
    pub between: fn(&View) -> bool,
    pub is_hook: bool,
    /// Removes what it made beside its world.
    pub finish: fn(),
}

const COMMAND: Scenario = Scenario {
    prepare: running,
    call: |env| ralph(env, &["status"]),
    again: start_again,
    between: |_| false,
    is_hook: false,
    finish: || {},
};

fn ralph(env: &Env, args: &[&str]) -> Call {
    env.call(Program::Ralph).args(args)
}

fn guidance(env: &Env, args: &[&str]) -> Call {
    env.call(Program::Guidance).args(args)
}

/// A project with a loop that has made a turn, guidance, and a finding.
fn running() -> Env {
    let env = Env::git();
    env.write(".env", "TOKEN=x\n");
    env.start("the old task", &[]);
    env.at(10).turn(SESSION, "one").continues();
    guidance(&env, &["forbid", "old rule"]).run().ok();
    env.at(20);
    env
}

fn ok(run: Run, codes: &[i32]) -> Result<Run, String> {
    let fits = run.code.is_some_and(|code| codes.contains(&code));
    if fits { Ok(run) } else { Err(format!("the next call failed: {run:?}")) }
}

/// Starts a loop and makes a turn of it.
fn start_again(env: &Env, _: &Outside) -> Result<(), String> {
    ok(ralph(env, &["start", "--session", SESSION, "--replace", "again"]).run(), &[0])?;
    turn_again(env, &Outside::new())
}

fn turn_again(env: &Env, _: &Outside) -> Result<(), String> {
    let run = ok(env.stop(SESSION).says("next").call().run(), &[0])?;
    match run.stdout.contains("\"block\"") {
        true => Ok(()),
        false => Err(format!("the loop does not continue: {run:?}")),
    }
}

/// The next call is of another session: what was left must not wait for this one.
pub fn start() -> Scenario {
    let again: super::Again = |env, _| {
        ok(ralph(env, &["start", "--session", OTHER, "again"]).run(), &[0])?;
        let run = ok(env.stop(OTHER).says("next").call().run(), &[0])?;
        let continues = run.stdout.contains("\"block\"");
        if continues { Ok(()) } else { Err(format!("the loop does not continue: {run:?}")) }
    };
    let call = |env: &Env| ralph(env, &["start", "--session", SESSION, "the new task"]);
    Scenario { prepare: Env::git, call, again, ..COMMAND }
}

pub fn replace() -> Scenario {
    Scenario {
        call: |env| ralph(env, &["start", "--session", SESSION, "--replace", "the new task"]),
        ..COMMAND
    }
}

pub fn resume() -> Scenario {
    let prepare = || {
        let env = running();
        env.ralph(&["stop"]).ok();
        env
    };
    let call = |env: &Env| ralph(env, &["start", "--session", SESSION, "--resume"]);
    let again: super::Again = |env, _| {
        ok(ralph(env, &["start", "--session", SESSION, "--resume"]).run(), &[0])?;
        turn_again(env, &Outside::new())?;
        match env.record(SESSION)["iteration"].as_u64() {
            Some(2) => Ok(()),
            other => Err(format!("the count was lost: {other:?}")),
        }
    };
    Scenario { prepare, call, again, ..COMMAND }
}

pub fn adopt() -> Scenario {
    let prepare = || {
        let env = running();
        env.event(Program::SessionStartHook, SESSION, "SessionEnd").field("reason", "clear").run().silent();
        env
    };
    let call = |env: &Env| ralph(env, &["start", "--session", OTHER, "--resume"]);
    let again: super::Again = |env, _| {
        ok(ralph(env, &["start", "--session", OTHER, "--resume"]).run(), &[0])?;
        let run = ok(env.stop(OTHER).says("next").call().run(), &[0])?;
        let continues = run.stdout.contains("\"block\"") && env.record(OTHER)["iteration"] == 2;
        if continues { Ok(()) } else { Err(format!("the loop does not continue: {run:?}")) }
    };
    Scenario { prepare, call, again, ..COMMAND }
}

pub fn stop() -> Scenario {
    let again: super::Again = |env, outside| {
        ok(ralph(env, &["stop"]).run(), &[0])?;
        start_again(env, outside)
    };
    Scenario { call: |env| ralph(env, &["stop"]), again, ..COMMAND }
}

/// Gives guidance again and makes a turn: the loop must not have suffered.
fn guide_again(env: &Env, outside: &Outside) -> Result<(), String> {
    ok(guidance(env, &["forbid", "another rule"]).run(), &[0])?;
    turn_again(env, outside)
}

pub fn encourage() -> Scenario {
    Scenario { call: |env| guidance(env, &["encourage", "new idea"]), again: guide_again, ..COMMAND }
}

pub fn forbid() -> Scenario {
    Scenario { call: |env| guidance(env, &["forbid", "new rule"]), again: guide_again, ..COMMAND }
}

pub fn remove() -> Scenario {
    Scenario { call: |env| guidance(env, &["remove", "1"]), again: guide_again, ..COMMAND }
}

pub fn allow() -> Scenario {
    let call = |env: &Env| {
        let state = env.state();
        let id = state["constraints"][0]["id"].as_str().expect("a finding").to_owned();
        guidance(env, &["allow", &id])
    };
    Scenario { call, again: guide_again, ..COMMAND }
}

pub fn turn() -> Scenario {
    let call = |env: &Env| {
        env.write("work.txt", "done");
        env.stop(SESSION).says("two").call()
    };
    Scenario { call, again: turn_again, is_hook: true, ..COMMAND }
}

pub fn completion() -> Scenario {
    let again: super::Again = |env, outside| {
        ok(env.stop(SESSION).says(DONE).call().run(), &[0])?;
        start_again(env, outside)?;
        let ended = env.history();
        match ended.iter().filter(|run| run["outcome"] == "complete").count() {
            1 => Ok(()),
            count => Err(format!("{count} completions in the history: {ended:?}")),
        }
    };
    Scenario { call: |env| env.stop(SESSION).says(DONE).call(), again, is_hook: true, ..COMMAND }
}

pub fn session_start() -> Scenario {
    let again: super::Again = |env, outside| {
        ok(env.session_start(SESSION, "resume").call().run(), &[0])?;
        turn_again(env, outside)
    };
    Scenario { call: |env| env.session_start(SESSION, "resume").call(), again, is_hook: true, ..COMMAND }
}

/// Works, and completes in the second iteration. What it does is not bound to how often it was started.
const AGENT: &str = "work; commit; [ $n -ge 2 ] && promise COMPLETE";

fn run_to_completion(env: &Env, _: &Outside) -> Result<(), String> {
    let run = env.run_with(AGENT, &["the task"]).run();
    ok(run, &[0])?;
    let ended = env.history();
    match ended.iter().filter(|run| run["outcome"] == "complete").count() {
        // A run that had completed before the fault may have been started once more.
        1 | 2 => Ok(()),
        count => Err(format!("{count} completions in the history: {ended:?}")),
    }
}

fn is_run(view: &View) -> bool {
    view.loops.iter().all(|(session, (task, ..))| session == "ralph-run" && task == "the task")
}

pub fn run() -> Scenario {
    let call = |env: &Env| env.run_with(AGENT, &["the task"]);
    Scenario { prepare: Env::git, call, again: run_to_completion, between: is_run, ..COMMAND }
}

pub fn continued_run() -> Scenario {
    let prepare = || {
        let env = Env::git();
        assert_eq!(env.run_with("work", &["--max-iterations", "3", "the task"]).run().code, Some(1));
        env
    };
    let call = |env: &Env| env.run_with("work; promise COMPLETE", &["--max-iterations", "6"]);
    let again: super::Again = |env, _| {
        let has_completed = env.record("ralph-run")["outcome"] == "complete"
            || env.history().iter().any(|run| run["outcome"] == "complete");
        match has_completed {
            true => drop(ok(ralph(env, &["stop"]).run(), &[0])?),
            false => {
                let run = env.run_with("work; promise COMPLETE", &["--max-iterations", "9"]).run();
                drop(ok(run, &[0])?);
            }
        }
        let record = env.record("ralph-run");
        let is_complete = record["outcome"] == "complete" && record["iteration"].as_u64() >= Some(4);
        if is_complete { Ok(()) } else { Err(format!("it did not continue after iteration 3: {record}")) }
    };
    Scenario { prepare, call, again, between: is_run, ..COMMAND }
}

pub fn archive() -> Scenario {
    let prepare = || {
        let env = Env::new();
        env.ralph(&["init"]).ok();
        env.write("ralph/progress.txt", "what was done").write("ralph/decide.txt", "which?\n");
        env.write("ralph/logs/iteration-001.log", "log");
        env
    };
    let again: super::Again = |env, before| {
        ok(ralph(env, &["archive", "--include-logs"]).run(), &[0, 1])?;
        let archives = env.list("ralph-archive");
        let [archive] = archives.as_slice() else { return Err(format!("not one archive: {archives:?}")) };
        for name in ["progress.txt", "decide.txt", "logs/iteration-001.log"] {
            let wanted = &before[&Path::new("ralph").join(name)];
            let kept = fs::read_to_string(env.path("ralph-archive").join(archive).join(name));
            if kept.as_ref().ok() != Some(wanted) {
                return Err(format!("{name} is not in the archive: {kept:?}"));
            }
        }
        if env.exists("ralph/decide.txt") { Err("ralph/ was not reset".into()) } else { Ok(()) }
    };
    Scenario { prepare, call: |env| ralph(env, &["archive", "--include-logs"]), again, ..COMMAND }
}

pub fn install() -> Scenario {
    // The real `ralph` with small stand-ins for the other programs: every point copies them. Beside the world, so that
    // they are not copied with it.
    let prepare = || {
        fs::create_dir_all(programs()).unwrap();
        let (program, copy) = (Path::new(Program::Ralph.path()), programs().join("ralph"));
        // Without symbols it is a fifth of the size.
        if !Command::new("strip").arg("-o").args([&copy, program]).status().is_ok_and(|done| done.success()) {
            copy_program(program, &copy);
        }
        for name in ["ralph-stop-hook", "ralph-session-start-hook", "ralph-guidance"] {
            fs::write(programs().join(name), "stand-in").unwrap();
        }
        Env::new()
    };
    let call = |env: &Env| env.call_at(&programs().join("ralph")).args(&["install", "--to", "../plugin"]);
    let again: super::Again = |env, _| {
        let install = env.call_at(&programs().join("ralph")).args(&["install", "--to", "../plugin"]);
        ok(install.run(), &[0])?;
        let size = |path: PathBuf| path.metadata().ok().map(|meta| meta.len());
        let names = names_in(&programs());
        let copied = names
            .iter()
            .filter(|name| size(env.base.join("plugin/bin").join(name)) == size(programs().join(name)));
        let is_complete = copied.count() == 4 && env.base.join("plugin/.claude-plugin/plugin.json").is_file();
        if is_complete { Ok(()) } else { Err("the plugin is not complete".into()) }
    };
    Scenario { prepare, call, again, finish: || drop(fs::remove_dir_all(programs())), ..COMMAND }
}

/// The user's own settings, in a form that no writer of ours would choose.
const SETTINGS: &str = "{\r\n\t\"model\" : \"x\",\r\n\t\"n\": 1.50\r\n}";

/// An install that registers the plugin with a scripted client and writes the status line.
pub fn registering_install() -> Scenario {
    let prepare = || {
        let home = Home::new();
        fs::write(home.settings(), SETTINGS).unwrap();
        home.env
    };
    let again: super::Again = |env, _| {
        let settings = env.base.join("home/.claude/settings.json");
        let text = fs::read_to_string(&settings).unwrap_or_default();
        let is_new = || serde_json::from_str::<Value>(&text).is_ok_and(|now| now["statusLine"].is_object());
        if text != SETTINGS && !is_new() {
            return Err(format!("the settings are neither the old nor the new ones: {text}"));
        }
        ok(register(env).run(), &[0])?;
        let folder = env.data().join("plugin");
        let names = names_in(&folder);
        let plugins = fs::read_to_string(env.base.join("fake/plugins")).unwrap_or_default();
        if names != [".claude-plugin", "before.json", "ralph"] || !plugins.contains("ralph@ralph") {
            return Err(format!(
                "the plugin is not registered, or something is left over: {names:?} {plugins}"
            ));
        }
        ok(ralph(env, &["uninstall"]).run(), &[0])?;
        match fs::read_to_string(&settings).ok().as_deref() {
            Some(SETTINGS) => Ok(()),
            other => Err(format!("uninstalling does not restore the settings: {other:?}")),
        }
    };
    Scenario { prepare, call: register, again, ..COMMAND }
}

fn register(env: &Env) -> Call {
    env.call_at(&setup::install::programs().join("ralph")).args(&["install", "--settings", "--yes"])
}

fn programs() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("crash-points-{}", std::process::id()))
}
