//! The status line in the real client, at two sizes: while the loop runs, while it waits, paused, and after its ending.

use std::fs;

use serde_json::{Value, json};

use crate::client::Session;
use crate::clock::wait_until;
use crate::messages_api::{Api, Reply};
use crate::ralph::{SOON, plugin, ralph, session, the_loop, working};
use crate::runner::{in_an_hour, limited_by};
use crate::tmux::{SIZES, Screen};

/// Adds the status line that `ralph install --settings` offers, asked for more often.
pub fn with_status_line(session: &Session) {
    let command = format!("{} statusline", env!("CARGO_BIN_EXE_ralph"));
    let line = json!({"type": "command", "command": command, "refreshInterval": 1});
    let settings = session.claude_config().join("settings.json");
    fs::write(settings, json!({"statusLine": line}).to_string()).unwrap();
}

/// Waits until the status line begins so, and returns it.
fn line_when(screen: &Screen, beginning: &str) -> String {
    let found =
        |text: &str| text.lines().map(str::trim).find(|line| line.starts_with(beginning)).map(str::to_owned);
    let mut line = None;
    screen.wait_until(
        |_| {
            line = found(&screen.visible(false));
            line.is_some()
        },
        SOON,
    );
    line.unwrap()
}

#[test]
fn the_status_line_is_true_from_the_start_to_after_the_ending() {
    let mut lines = String::new();
    for size in SIZES {
        let mut script: Vec<Reply> = [working("one"), working("two"), working("three")].concat();
        script.push(Reply::text("all proven\n<promise>COMPLETE</promise>"));
        // The second turn is held after its tool.
        let api = Api::start_holding(script, 3);
        let Some(session) = session(&api) else { return };
        if !Screen::available() {
            return;
        }
        with_status_line(&session);
        let screen = Screen::start_sized(&session, &[], size);
        screen.type_line("/ralph:start keep going --max-iterations 40");
        let mut seen = |state: &str, beginning: &str| {
            let line = line_when(&screen, beginning);
            assert!(line.chars().count() <= usize::from(size.0), "{line}");
            // What follows may be cut, and the client writes messages of its own at the right edge.
            let stable =
                line.split(" | ").next().and_then(|line| line.split("  ").next()).unwrap_or_default();
            lines.push_str(&format!("{}x{}, {state}: {stable}\n", size.0, size.1));
        };
        seen("started", "working · Ralph 1/40 · ");
        screen.key("Escape");
        seen("after Esc", "paused: ");
        assert!(ralph(&session, &["status"]).contains("◐ paused: you interrupted the agent"));
        api.answer_all();
        screen.type_line("/ralph:start --resume");
        screen.wait_for("Ralph ended (complete)", SOON);
        // Whether the interrupted turn had reached the model decides how many turns there are.
        let turns = the_loop(&session)["iteration"].as_u64().unwrap();
        seen("after the ending", &format!("ended: complete · {turns} iterations"));
        lines = lines.replace(&format!("{turns} iterations"), "N iterations");
    }
    insta::assert_snapshot!(lines);
}

#[test]
fn a_permission_prompt_and_a_killed_client_are_told_apart_from_work() {
    let mut script: Vec<Reply> = working("one").into();
    script.push(Reply::tool("Write", json!({"file_path": "x.txt", "content": "x"})));
    let api = Api::start(script);
    let Some(session) = session(&api) else { return };
    if !Screen::available() {
        return;
    }
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start keep going");
    screen.wait_for("Do you want to", SOON);
    let is = |activity: &str, waits_for: &Value, client: &str| {
        let record = the_loop(&session);
        record["activity"] == activity && record["waiting"]["for"] == *waits_for && record["client"] == client
    };
    wait_until("the client says that it asks", || is("waiting", &json!("permission"), "open"));
    assert!(ralph(&session, &["status"]).contains("○ waiting: permission"));
    screen.kill();
    wait_until("the client is gone", || is("client-closed", &Value::Null, "closed"));
    assert!(ralph(&session, &["status"]).contains("◌ client closed"));
}

#[test]
fn a_usage_limit_in_a_session_is_named_with_its_reset() {
    let (resets, moment) = in_an_hour();
    let (_api, Some(session)) = limited_by("five_hour", Some(resets)) else { return };
    if !Screen::available() {
        return;
    }
    let session = session.plugin(plugin());
    with_status_line(&session);
    let screen = Screen::start_sized(&session, &[], SIZES[0]);
    screen.type_line("/ralph:start keep going");
    line_when(&screen, &format!("waiting: usage limit until {moment}, "));
    assert!(ralph(&session, &["status"]).contains(&format!("○ waiting: usage limit until {moment}, ")));
    assert_eq!(the_loop(&session)["waiting"]["for"], "usage-limit");
}
