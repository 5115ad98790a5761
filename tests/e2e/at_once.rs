//! What acts inside a running turn of the real client: the plugin's module, and without it the hook after a batch of
//! tools.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, Session};
use crate::clock::wait_until;
use crate::messages_api::{Api, Reply};
use crate::ralph::{SOON, plugin, session, session_of, status, the_loop};
use crate::tmux::Screen;

/// A tool that runs until the test makes this file.
fn until(file: &str) -> Reply {
    let command = format!("echo work >> work.txt; until [ -e {file} ]; do sleep 0.1; done");
    Reply::tool("Bash", json!({"command": command, "description": "work until told"}))
}

fn let_go(session: &Session, file: &str) {
    fs::write(session.project().join(file), "").unwrap();
}

/// Waits until the tool of this number of replies is at work.
fn wait_for_tool(session: &Session, lines: usize) {
    let done = || fs::read_to_string(session.project().join("work.txt")).unwrap_or_default().lines().count();
    wait_until("the tool runs", || done() == lines);
}

/// Runs `ralph-guidance` from another terminal.
fn guidance(session: &Session, args: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ralph-guidance"));
    command.args(args).env_clear().envs(session.variables()).current_dir(session.project());
    assert!(command.status().unwrap().success(), "{args:?}");
}

/// The loop as the state file has it, which no look at the transcript has changed.
fn stored_state(session: &Session) -> Value {
    let text = fs::read(session.project().join(".claude/ralph-state.json")).unwrap();
    let state: Value = serde_json::from_slice(&text).unwrap();
    let loops = state["loops"].as_object().unwrap();
    loops.values().next().unwrap()["state"].clone()
}

fn delivered(session: &Session, list: &str, text: &str) -> bool {
    let entries = status(session)["guidance"][list].as_array().unwrap().clone();
    entries.iter().any(|entry| entry["text"] == text && entry["delivered"] == true)
}

/// A copy of the plugin that a test may change.
fn copied_plugin() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("plugin");
    let copied = Command::new("cp").arg("-r").arg(plugin()).arg(&copy).status().unwrap();
    assert!(copied.success());
    (folder, copy)
}

/// Replaces the program that the module calls by a script.
fn replace_ralph(plugin: &Path, script: &str) {
    let program = plugin.join("bin/ralph");
    fs::remove_file(&program).unwrap();
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn each_command_acts_while_a_tool_runs() {
    for version in [None, Some("2.1.286")] {
        let script =
            vec![until("go-1"), Reply::text("one"), until("go-2"), Reply::text("two"), Reply::text("here")];
        let api = Api::start(script);
        let client = version.map_or_else(Client::find, Client::find_version);
        let Some(client) = client.filter(|_| Screen::available()) else { return };
        let session = session_of(&client, &api);
        let screen = Screen::start(&session);
        screen.type_line("/ralph:start keep going --max-iterations 40");
        wait_for_tool(&session, 1);
        screen.wait_for("ralph: working · Ralph 0/40", SOON);

        screen.type_line("/ralph-forbid touching the \"quokka\" $(touch pwned)");
        screen.wait_for("forbidden: touching the \"quokka\" $(touch pwned); 1 active", SOON);
        screen.type_line("/ralph-encourage small steps");
        screen.wait_for("encouraged: small steps; 2 active", SOON);
        screen.type_line("/ralph-status");
        screen.wait_for("40 iterations left", SOON);
        screen.wait_for("· 1 encouraged, 1 forbidden", SOON);
        guidance(&session, &["forbid", "new files"]);
        wait_until("guidance from elsewhere is told", || delivered(&session, "forbidden", "new files"));
        assert_eq!(api.requests().len(), 1, "all of it in the middle of the tool");
        assert!(!session.project().join("pwned").exists());

        let_go(&session, "go-1");
        wait_for_tool(&session, 2);
        let requests = api.requests();
        let in_turn = requests[1].last_user_text();
        for line in ["- touching the \"quokka\" $(touch pwned)", "- small steps", "- new files"] {
            assert!(in_turn.contains(line), "{line}: {in_turn}");
        }
        let later = requests[2].text();
        assert_eq!(later.matches("Ralph: new guidance").count(), 3, "each is new once: {later}");
        assert!(requests[2].last_user_text().contains("1 of 40 iterations done"), "the loop continued");

        screen.type_line("/ralph-stop");
        screen.wait_for("ended (stopped)", SOON);
        assert_eq!((the_loop(&session)["outcome"].as_str(), api.requests().len()), (Some("stopped"), 3));
        screen.wait_for("ralph: ended: stopped · 1 iteration", SOON);
        let_go(&session, "go-2");
        screen.wait_for("● two", SOON);
        screen.type_line("are you there");
        screen.wait_for("● here", SOON);
        let requests = api.requests();
        assert_eq!(requests.len(), 5, "the turn ended, and nothing continued it");
        assert!(requests[4].last_user_text().contains("are you there"));
        screen.wait_until(|_| !screen.visible(false).contains("ended: stopped"), SOON);
    }
}

#[test]
fn escape_pauses_the_loop_the_moment_it_is_pressed() {
    let script =
        vec![until("go-1"), until("go-2"), Reply::text("one"), Reply::text("<promise>COMPLETE</promise>")];
    let api = Api::start(script);
    let Some(session) = session(&api).filter(|_| Screen::available()) else { return };
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start keep going --max-iterations 40");
    wait_for_tool(&session, 1);
    screen.key("Escape");
    screen.wait_for_words("PAUSED: you interrupted the agent. Resume with /ralph:start --resume", SOON);
    screen.wait_for("ralph: paused: you interrupted the agent", SOON);
    assert_eq!((stored_state(&session), api.requests().len()), (json!("paused"), 1));

    screen.type_line("/ralph:start --resume");
    wait_for_tool(&session, 2);
    let_go(&session, "go-2");
    screen.wait_for("Ralph ended (complete)", SOON);
}

/// The client ends a turn that is cut short for a queued command as it does for Esc.
#[test]
fn a_turn_that_is_cut_for_a_queued_command_pauses_nothing() {
    let script = vec![until("go-1"), Reply::text("late"), Reply::text("on"), Reply::text("and on")];
    let api = Api::start_holding(script, 1);
    let Some(session) = session(&api).filter(|_| Screen::available()) else { return };
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start keep going --max-iterations 40");
    wait_for_tool(&session, 1);
    let_go(&session, "go-1");
    api.wait_for_requests(2, SOON);
    screen.type_line("/ralph:status");
    screen.wait_for("ctrl+x ctrl+s to send now", SOON);
    screen.key("C-x");
    screen.key("C-s");
    screen.wait_for("40 iterations left", SOON);
    api.wait_for_requests(3, SOON);
    assert_eq!(stored_state(&session), "running");
    api.answer_all();
    screen.wait_for("Ralph 1/40", SOON);
}

#[test]
fn an_answer_resumes_the_loop_at_once() {
    let script = vec![
        Reply::text("<promise>DECIDE:tabs or spaces?</promise>"),
        Reply::text("<promise>COMPLETE</promise>"),
    ];
    let api = Api::start(script);
    let Some(session) = session(&api).filter(|_| Screen::available()) else { return };
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start keep going");
    screen.wait_for("Ralph ended (decide)", SOON);
    screen.type_line("/ralph-answer tabs, as in the \"old\" files");
    screen.wait_for("Ralph ended (complete)", SOON);
    let read = api.requests()[1].last_user_text();
    assert!(read.contains("tabs, as in the \"old\" files"), "{read}");
}

#[test]
fn without_the_module_guidance_reaches_the_turn_after_its_next_tool() {
    let (_folder, refused) = copied_plugin();
    fs::write(refused.join("hooks/register.js"), "export function register(on) {{{").unwrap();
    for (version, plugin) in [(Some("2.1.197"), plugin()), (None, &refused)] {
        let script = vec![until("go-1"), Reply::text("one"), Reply::text("<promise>COMPLETE</promise>")];
        let api = Api::start(script);
        let client = version.map_or_else(Client::find, Client::find_version);
        let Some(client) = client.filter(|_| Screen::available()) else { return };
        let session = Session::new(&client, &api).plugin(plugin).allow("Bash");
        let screen = Screen::start(&session);
        screen.type_line("/ralph:start keep going --max-iterations 40");
        wait_for_tool(&session, 1);
        guidance(&session, &["forbid", "touching the quokka"]);
        let_go(&session, "go-1");
        screen.wait_for("Ralph ended (complete)", SOON);

        let requests = api.requests();
        let in_turn = requests[1].text();
        assert!(in_turn.contains("PostToolBatch hook additional context"), "{in_turn}");
        assert!(in_turn.contains("FORBIDDEN:\n- touching the quokka"), "{in_turn}");
        let later = requests[2].text();
        assert_eq!(later.matches("Ralph: new guidance").count(), 1, "{later}");
        assert!(delivered(&session, "forbidden", "touching the quokka"));
        assert!(!screen.text().contains("ralph: working"), "{}", screen.text());
    }
}

#[test]
fn a_session_without_a_loop_starts_no_process_for_the_module() {
    let (_folder, plugin) = copied_plugin();
    let calls = plugin.join("calls");
    let real = env!("CARGO_BIN_EXE_ralph");
    replace_ralph(&plugin, &format!("echo \"$1\" >> '{}'; exec '{real}' \"$@\"", calls.display()));
    let look = json!({"command": "echo looked", "description": "look"});
    let script =
        vec![Reply::tool("Bash", look), Reply::text("one"), Reply::text("two"), Reply::text("three")];
    let api = Api::start(script);
    let Some(client) = Client::find().filter(|_| Screen::available()) else { return };
    let session = Session::new(&client, &api).plugin(&plugin).allow("Bash");
    let screen = Screen::start(&session);
    for (prompt, answer) in [("first", "one"), ("second", "two"), ("third", "three")] {
        screen.type_line(prompt);
        screen.wait_for(&format!("● {answer}"), SOON);
    }
    let calls = fs::read_to_string(calls).unwrap();
    assert_eq!(calls.lines().filter(|call| *call == "module").count(), 1, "at the start: {calls}");
    assert!(!screen.visible(false).contains("ralph:"), "{}", screen.visible(false));
}

#[test]
fn a_ralph_that_is_missing_fails_hangs_or_prints_garbage_breaks_nothing() {
    let Some(client) = Client::find().filter(|_| Screen::available()) else { return };
    for script in [
        "exit 1",
        "exec sleep 600",
        "echo garbage",
        r#"echo '{"text": 7, "status": 7, "append": {}, "watch": []}'"#,
        "",
    ] {
        let (_folder, plugin) = copied_plugin();
        replace_ralph(&plugin, script);
        if script.is_empty() {
            fs::remove_file(plugin.join("bin/ralph")).unwrap();
        }
        let api = Api::start(vec![Reply::text("hello")]);
        let session = Session::new(&client, &api).plugin(&plugin);
        let screen = Screen::start(&session);
        screen.type_line("say hello");
        screen.wait_for("● hello", SOON);
        if script != "exec sleep 600" {
            screen.type_line("/ralph-forbid new files");
            screen.wait_for("Ralph did not answer. /ralph:forbid does the same", SOON);
        }
    }
}
