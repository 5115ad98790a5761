//! `ralph doctor` with the real Claude Code: healthy means that loops work, and problems are reported.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::client::{Client, Session, runs};
use crate::messages_api::{Api, Reply};
use crate::ralph::{plugin, with_clock};
use crate::skip::skip;

/// A user with a repository, without the plugin.
fn user() -> Option<Session> {
    // The doctor starts its own model; this one must not be called.
    let api = Api::start(vec![Reply::error(500)]);
    let session = Session::new(&Client::find()?, &api);
    if !runs(Path::new("git"), "--version") {
        skip("git is not installed");
        return None;
    }
    let made = Command::new("git").args(["init", "-q"]).arg(session.project()).status().unwrap();
    assert!(made.success());
    // What the doctor runs has limits, which do not pass however slow the machine is.
    Some(with_clock(session).0)
}

fn in_project(session: &Session, program: &Path, args: &[&str]) -> std::process::Output {
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(session.variables()).current_dir(session.project()).output().unwrap()
}

fn doctor(session: &Session, args: &[&str]) -> (Option<i32>, Value) {
    let claude = session.program().to_str().unwrap();
    let args = [&["doctor", "--json", "--claude", claude], args].concat();
    let output = in_project(session, Path::new(env!("CARGO_BIN_EXE_ralph")), &args);
    let told = serde_json::from_slice(&output.stdout);
    let told = told.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), told)
}

fn check<'a>(report: &'a Value, id: &str) -> &'a Value {
    report["checks"].as_array().unwrap().iter().find(|check| check["id"] == id).unwrap()
}

fn assert_says(report: &Value, id: &str, verdict: &str, words: &str) {
    let check = check(report, id);
    assert_eq!(check["verdict"], verdict, "{check:#}");
    assert!(check.to_string().contains(words), "{words}: {check:#}");
}

/// Copies the plugin, so that a test can break it.
fn copy(session: &Session) -> PathBuf {
    let target = session.root().join("copy");
    let copied = Command::new("cp").arg("-r").arg(plugin()).arg(&target).status().unwrap();
    assert!(copied.success());
    target
}

/// Returns every file below a folder, with its bytes.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(contents(&path)),
            false => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    found
}

#[test]
fn an_installed_plugin_is_found_and_runs_a_loop() {
    let Some(session) = user() else { return };
    let market = session.root().join("the market");
    fs::create_dir_all(market.join(".claude-plugin")).unwrap();
    let entry = json!({"name": "ralph", "source": "./plugin", "description": "the loop"});
    let manifest = json!({"name": "here", "owner": {"name": "us"}, "plugins": [entry]});
    fs::write(market.join(".claude-plugin/marketplace.json"), manifest.to_string()).unwrap();
    fs::rename(copy(&session), market.join("plugin")).unwrap();

    // A Claude Code that was never started is not asked, so it creates no files.
    let first = session.claude_config().join(".claude.json");
    let kept = fs::read(&first).unwrap();
    fs::remove_file(&first).unwrap();
    let (code, report) = doctor(&session, &["--quick"]);
    assert_eq!(code, Some(1));
    assert_says(&report, "plugin", "failure", "not installed");
    assert_eq!(fs::read_dir(session.claude_config()).unwrap().count(), 0);
    fs::write(&first, kept).unwrap();
    let (_, report) = doctor(&session, &["--quick"]);
    assert_says(&report, "plugin", "failure", "not installed");

    let add = ["plugin", "marketplace", "add", market.to_str().unwrap()];
    for args in [&add[..], &["plugin", "install", "ralph@here"]] {
        let done = in_project(&session, session.program(), args);
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    let before = contents(&session.claude_config());

    let (code, report) = doctor(&session, &[]);

    assert_eq!((code, &report["verdict"]), (Some(0), &json!("ok")), "{report:#}");
    assert_says(&report, "plugin", "ok", "ralph@here");
    let hooks = concat!(include_str!("../../hooks/hooks.json"), include_str!("../../hooks/steering.json"));
    let answered = format!("{} hooks answered", hooks.matches("\"type\":").count());
    assert_says(&report, "hook-programs", "ok", &answered);
    assert_says(&report, "round-trip", "ok", "a loop of 2 turns");
    assert_says(&report, "steering", "ok", "module (Claude Code 2.1.325)");
    assert_says(&report, "figures", "ok", "the plugin's module reports cost, context and quota");
    assert!(contents(&session.claude_config()) == before, "the user's files are unchanged");
    assert!(!session.data_dir().join("history").exists(), "and no run is recorded");

    let disabled = in_project(&session, session.program(), &["plugin", "disable", "ralph@here"]);
    assert!(disabled.status.success());
    let (code, report) = doctor(&session, &["--quick"]);
    assert_eq!(code, Some(1));
    assert_says(&report, "plugin", "failure", "claude plugin enable ralph@here");
}

#[test]
fn disabled_hooks_are_reported_and_do_not_run() {
    let Some(session) = user() else { return };
    let dir = plugin().to_str().unwrap();
    let user = session.claude_config().join("settings.json");
    let local = session.project().join(".claude/settings.local.json");
    fs::create_dir_all(local.parent().unwrap()).unwrap();

    for switched_off in [r#"{"disableAllHooks": true}"#, r#"{"env": {"CLAUDE_CODE_SIMPLE": "1"}}"#] {
        fs::write(&user, switched_off).unwrap();
        let (code, report) = doctor(&session, &["--plugin-dir", dir]);
        assert_eq!(code, Some(1));
        assert_says(&report, "hooks", "failure", user.to_str().unwrap());
        assert_says(&report, "round-trip", "failure", "did not run the plugin's Stop hook");
        assert_says(&report, "steering", "skipped", "did not run a hook of the plugin");
    }
    // Local settings win, as in Claude Code.
    fs::write(&user, r#"{"disableAllHooks": true}"#).unwrap();
    fs::write(&local, r#"{"disableAllHooks": false}"#).unwrap();
    let (code, report) = doctor(&session, &["--plugin-dir", dir]);
    assert_eq!(code, Some(0), "{report:#}");
    assert_says(&report, "hooks", "ok", "");
    assert_says(&report, "round-trip", "ok", "a loop of 2 turns");
}

#[test]
fn a_plugin_without_its_stop_program_is_reported_and_does_not_loop() {
    let Some(session) = user() else { return };
    let copy = copy(&session);
    fs::remove_file(copy.join("bin/ralph-stop-hook")).unwrap();

    let (code, report) = doctor(&session, &["--plugin-dir", copy.to_str().unwrap()]);

    assert_eq!(code, Some(1));
    assert_says(&report, "hook-programs", "failure", "ralph-stop-hook is missing");
    assert_says(&report, "round-trip", "failure", "Stop hook failed");
}

#[test]
fn the_way_into_a_running_turn_is_named() {
    let Some(session) = user() else { return };
    let copy = copy(&session);
    let dir = copy.to_str().unwrap().to_owned();
    fs::write(copy.join("hooks/register.js"), "export function register(on) {{{").unwrap();
    let (code, report) = doctor(&session, &["--plugin-dir", &dir]);
    assert_eq!(code, Some(0), "a refused module costs no hook: {report:#}");
    assert_says(&report, "round-trip", "ok", "a loop of 2 turns");
    assert_says(
        &report,
        "steering",
        "warning",
        "2.1.325 did not load the plugin's module and uses PostToolBatch",
    );

    let Some(older) = Client::find_version("2.1.197") else { return };
    let api = Api::start(vec![Reply::error(500)]);
    let session = Session::new(&older, &api);
    let (_, report) = doctor(&session, &["--plugin-dir", plugin().to_str().unwrap()]);
    assert_says(&report, "steering", "ok", "PostToolBatch: the agent reads new guidance after its next tool");
    assert_says(&report, "steering", "ok", "Claude Code 2.1.197");
    assert_says(&report, "figures", "ok", "nothing reports cost, context and quota");
    let line = r#"{"statusLine": {"type": "command", "command": "ralph statusline"}}"#;
    fs::write(session.claude_config().join("settings.json"), line).unwrap();
    let (_, report) = doctor(&session, &["--plugin-dir", plugin().to_str().unwrap()]);
    assert_says(&report, "figures", "ok", "the status line reports cost, context and quota");
}
