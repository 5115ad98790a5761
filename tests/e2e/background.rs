//! A loop in a session in the background, `claude --bg`: started, seen, steered, stopped.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::client::Session;
use crate::clock::wait_until;
use crate::messages_api::Api;
use crate::ralph::{SOON, ralph, session, the_loop};
use crate::screen::turns;

/// Runs the client's own program; dropping this ends what it left in the background.
struct Background<'s>(&'s Session);

impl Background<'_> {
    fn claude(&self, args: &[&str]) -> Output {
        let mut command = Command::new(self.0.program());
        command.args(args).env_clear().envs(self.0.variables()).current_dir(self.0.project());
        command.output().unwrap()
    }

    fn agents(&self) -> Value {
        let listed = self.claude(&["agents", "--json"]);
        serde_json::from_slice(&listed.stdout).unwrap_or_default()
    }
}

impl Drop for Background<'_> {
    fn drop(&mut self) {
        self.claude(&["daemon", "stop", "--any"]);
    }
}

#[test]
fn a_loop_in_the_background_is_seen_steered_and_stopped() {
    let api = Api::start_holding(turns(30), 1);
    let Some(session) = session(&api) else { return };
    // What starts the session for the client has the settings, not our variables.
    let settings = json!({"env": {"ANTHROPIC_BASE_URL": api.url()}});
    fs::write(session.claude_config().join("settings.json"), settings.to_string()).unwrap();
    let background = Background(&session);
    let args: Vec<&str> = session.args().iter().map(|arg| arg.to_str().unwrap()).collect();
    let start = ["--bg", "--", "/ralph:start keep going --max-iterations 40"];
    let started = background.claude(&[&args[..], &start].concat());
    let told = String::from_utf8_lossy(&started.stdout).into_owned();
    assert!(started.status.success(), "{started:?}");

    api.wait_for_requests(2, SOON);
    let shown = the_loop(&session);
    let id = shown["session_id"].as_str().unwrap();
    let attach = format!("claude attach {}", &id[..8]);
    assert!(told.contains(&attach), "the client's own words: {told}");
    wait_until("the session is seen at work", || {
        let shown = the_loop(&session);
        shown["activity"] == "working" && shown["client"] == "open" && shown["attach"] == attach.as_str()
    });
    let status = ralph(&session, &["status"]);
    assert!(status.contains(&attach), "{status}");

    let guidance = Command::new(env!("CARGO_BIN_EXE_ralph-guidance"))
        .args(["forbid", "touching the quokka"])
        .env_clear()
        .envs(session.variables())
        .current_dir(session.project())
        .status();
    assert!(guidance.unwrap().success());
    api.answer(2);
    api.wait_for_requests(3, SOON);
    assert!(api.requests()[2].text().contains("FORBIDDEN:\n- touching the quokka"));

    ralph(&session, &["stop"]);
    api.answer_all();
    wait_until("the client is idle", || background.agents()[0]["status"] == "idle");
    let ended = the_loop(&session);
    assert_eq!((&ended["outcome"], &ended["iteration"]), (&json!("stopped"), &json!(1)));
    assert_eq!(api.requests().len(), 4, "the turn ends, and no other follows");
}
