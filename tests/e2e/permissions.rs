//! Permission prompts, questions and background work in the real client, with a person and without one.

use std::fs;

use serde_json::{Value, json};

use crate::client::{Client, Session};
use crate::clock::wait_until;
use crate::messages_api::{Api, Reply};
use crate::ralph::{SOON, plugin, ralph, session, the_loop, with_clock, working};
use crate::tmux::Screen;

const DONE: &str = "All of it is there.\n\n<promise>COMPLETE</promise>";
const DIALOG: &str = "Do you want to proceed?";

/// A session that asks for every command, with this much time to answer.
fn asking(api: &Api, wait: &str) -> Option<Session> {
    let claude = Client::find()?;
    if !Screen::available() {
        return None;
    }
    let session = Session::new(&claude, api).plugin(plugin());
    Some(session.env("RALPH_PERMISSION_WAIT_MINUTES", wait))
}

fn publish() -> Reply {
    Reply::tool("Bash", json!({"command": "touch published", "description": "publish it"}))
}

fn tool_result(api: &Api, request: usize) -> String {
    api.requests()[request].text()
}

fn events(session: &Session, name: &str) -> Vec<Value> {
    let run_id = the_loop(session)["run_id"].as_str().unwrap().to_owned();
    let path = session.data_dir().join(format!("runs/{run_id}/events.jsonl"));
    let text = fs::read_to_string(path).unwrap_or_default();
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|event| event["event"] == name).collect()
}

#[test]
fn a_prompt_that_no_person_answers_is_denied_and_the_agent_reads_why() {
    let api = Api::start(vec![publish(), Reply::text("I continue without it."), Reply::text(DONE)]);
    let Some(session) = asking(&api, "7m") else { return };
    let (session, clock) = with_clock(session);
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start publish it");
    screen.wait_for(DIALOG, SOON);
    clock.advance_until(30, "the end", || screen.text().contains("Ralph ended (complete)"));
    assert!(
        tool_result(&api, 1)
            .contains("Bash(touch published) is denied: no answer within 7m. Continue without it")
    );
    assert!(!session.project().join("published").exists());
    assert_eq!(events(&session, "permission")[0]["decision"], "denied");
}

#[test]
fn a_prompt_that_a_person_answers_is_answered_by_that_person_alone() {
    let api = Api::start_holding(vec![publish(), Reply::text("It is published."), Reply::text(DONE)], 1);
    let Some(session) = asking(&api, "1h") else { return };
    let session = session.env("RALPH_NOTIFY", "touch ../told");
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start publish it");
    screen.wait_for(DIALOG, SOON);
    wait_until("the loop waits for a permission", || the_loop(&session)["waiting"]["for"] == "permission");
    // By then the hook has seen the dialog open; an answer before that is noted at the next prompt or end of a turn.
    wait_until("the user is notified", || session.root().join("told").exists());
    assert_eq!(the_loop(&session)["waiting"]["what"], "Bash(touch published)");
    screen.key("Enter");
    // The client leaves the hook running; it must find out by itself, while the loop is there.
    wait_until("the hook has noted the answer", || events(&session, "permission").len() == 1);
    assert_eq!(events(&session, "permission")[0]["decision"], "answered");
    api.answer_all();
    screen.wait_for("Ralph ended (complete)", SOON);
    assert!(session.project().join("published").exists());
}

#[test]
fn what_the_user_allows_for_the_loop_opens_no_prompt() {
    let api = Api::start(vec![publish(), Reply::text("It is published."), Reply::text(DONE)]);
    let Some(session) = asking(&api, "1h") else { return };
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start publish it --allow-tool 'Bash(touch published)'");
    screen.wait_for("Allowed without asking: Bash(touch published)", SOON);
    screen.wait_for("Ralph ended (complete)", SOON);
    assert!(session.project().join("published").exists());
}

#[test]
fn a_question_in_the_clients_dialog_becomes_decide_and_the_answer_continues_the_loop() {
    let question = json!({"questions": [{"question": "Tabs or spaces?", "header": "Style", "multiSelect": false, "options": [
        {"label": "Tabs", "description": "use tabs"}, {"label": "Spaces", "description": "use spaces"}]}]});
    let api = Api::start(vec![
        Reply::tool("AskUserQuestion", question),
        Reply::text("I end my turn."),
        Reply::text(DONE),
    ]);
    let Some(session) = asking(&api, "7m") else { return };
    let (session, clock) = with_clock(session);
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start format it");
    screen.wait_for("Tabs or spaces?", SOON);
    clock.advance_until(30, "the end", || screen.text().contains("Ralph ended (decide)"));
    assert!(tool_result(&api, 1).contains("End your turn now"));
    let file = fs::read_to_string(session.project().join("ralph/decide.txt")).unwrap();
    assert!(file.contains("Tabs or spaces?\n- Tabs: use tabs\n- Spaces: use spaces"), "{file}");
    screen.type_line("/ralph:answer Spaces, two of them");
    screen.wait_for("Ralph ended (complete)", SOON);
    assert!(tool_result(&api, 2).contains("Spaces, two of them"));
}

/// A monitor is a running command in every Stop, and never ends.
#[test]
fn a_monitor_of_another_plugin_does_not_hold_the_loop() {
    let mut script: Vec<Reply> = working("The first part is there.").into();
    script.push(Reply::text(DONE));
    let api = Api::start(script);
    let Some(session) = session(&api) else { return };
    if !Screen::available() {
        return;
    }
    let other = session.root().join("monitors plugin");
    for (name, text) in [
        (
            ".claude-plugin/plugin.json",
            json!({"name": "ticker", "version": "0.0.1", "description": "a monitor"}),
        ),
        (
            "monitors/monitors.json",
            json!([{"name": "ticker", "command": "while true; do sleep 5; done", "description": "a ticker", "when": "always"}]),
        ),
    ] {
        fs::create_dir_all(other.join(name).parent().unwrap()).unwrap();
        fs::write(other.join(name), text.to_string()).unwrap();
    }
    let session = session.plugin(&other).env("RALPH_BACKGROUND_WAIT_MINUTES", "3s");
    let screen = Screen::start(&session);
    screen.wait_for("1 monitor", SOON);
    screen.type_line("/ralph:start make it");
    screen.wait_for("waiting for background work: a ticker, 3s at most", SOON);
    screen.wait_for("Ralph ended (complete)", SOON);
    assert!(tool_result(&api, 2).contains("Still running in the background: a ticker"));
}

/// With `-p` the client itself would wait for the server forever.
#[test]
fn a_server_in_the_background_does_not_hold_a_printed_loop() {
    let serve = json!({"command": "sleep 1000", "description": "serve it", "run_in_background": true});
    let api =
        Api::start(vec![Reply::tool("Bash", serve), Reply::text("The server runs."), Reply::text(DONE)]);
    let Some(session) = session(&api) else { return };
    let session = session.env("RALPH_BACKGROUND_WAIT_MINUTES", "3s");
    let running = session.spawn_print("/ralph:start serve it", &[]);
    wait_until("the loop ends", || the_loop_if_any(&session) == Some(json!("complete")));
    running.kill();
    assert!(tool_result(&api, 2).contains("Still running in the background: serve it"));
}

fn the_loop_if_any(session: &Session) -> Option<Value> {
    let status: Value = serde_json::from_str(&ralph(session, &["status", "--json"])).ok()?;
    Some(status["loops"].get(0)?["outcome"].clone())
}
