//! What a person sees and does in the terminal while the loop runs.

use std::fs;

use serde_json::json;

use crate::client::Session;
use crate::clock::wait_until;
use crate::messages_api::{Api, Reply};
use crate::ralph::{SOON, ralph, session, status, the_loop, working};
use crate::tmux::Screen;

/// Turns of two requests each.
pub fn turns(count: usize) -> Vec<Reply> {
    (1..=count).flat_map(|number| working(&format!("turn {number} done"))).collect()
}

/// An API that answers the first turn, and the second one up to its tool: there a test can type.
pub fn holding_the_second_turn() -> Api {
    Api::start_holding(turns(30), 3)
}

/// A session on the screen with a loop in its second turn, after its tool.
pub fn looping(api: &Api) -> Option<(Session, Screen)> {
    looping_in(api, session(api)?)
}

/// The same in a session that is there already.
pub fn looping_in(api: &Api, session: Session) -> Option<(Session, Screen)> {
    if !Screen::available() {
        return None;
    }
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start keep going --max-iterations 40");
    screen.wait_for("Ralph started: keep going", SOON);
    screen.wait_for("Ralph 1/40", SOON);
    api.wait_for_requests(4, SOON);
    Some((session, screen))
}

/// Types a line in the middle of a turn. It waits in the client's queue when this returns.
pub fn queue(session: &Session, screen: &Screen, line: &str) {
    // A client with modules does not write down what is queued, only that something is.
    let queued = || {
        let transcript = fs::read_to_string(session.transcript()).unwrap_or_default();
        transcript.lines().filter(|entry| entry.contains(r#""operation":"enqueue""#)).count()
    };
    let before = queued();
    screen.type_line(line);
    wait_until("the line is in the queue", || queued() > before);
}

#[test]
fn status_typed_in_mid_loop_is_shown_at_the_end_of_the_turn_and_the_loop_continues() {
    let api = holding_the_second_turn();
    let Some((session, screen)) = looping(&api) else { return };

    queue(&session, &screen, "/ralph:status");
    api.answer(4);
    screen.wait_for("first, then continuing", SOON);
    screen.wait_for("● working · this session", SOON);
    let shown_at = the_loop(&session)["iteration"].as_u64().unwrap();

    api.answer_all();
    screen.wait_for(&format!("Ralph {}/40", shown_at + 2), SOON);
    ralph(&session, &["stop"]);
}

#[test]
fn stop_typed_in_mid_loop_ends_it_at_the_end_of_the_turn() {
    let api = holding_the_second_turn();
    let Some((session, screen)) = looping(&api) else { return };

    queue(&session, &screen, "/ralph:stop");
    api.answer_all();
    screen.wait_for("Ralph ended (stopped): stopped by you", SOON);

    let requests = api.requests().len();
    // The client may put a command that a hook has answered back into the input box.
    screen.key("C-u");
    screen.type_line("are you still there");
    api.wait_for_requests(requests + 1, SOON);
    let record = the_loop(&session);
    assert_eq!((&record["state"], &record["outcome"]), (&json!("stopped"), &json!("stopped")));
}

#[test]
fn esc_pauses_until_the_user_resumes() {
    let api = holding_the_second_turn();
    let Some((session, screen)) = looping(&api) else { return };

    screen.key("Escape");
    screen.wait_for("Interrupted", SOON);
    api.answer_all();
    screen.type_line("what are you doing?");
    screen.wait_for("PAUSED: you interrupted the agent", SOON);
    let paused = the_loop(&session);
    assert_eq!(paused["state"], "paused");

    screen.type_line("/ralph:start --resume");
    screen.wait_for("Ralph resumed: keep going", SOON);
    let next = paused["iteration"].as_u64().unwrap() + 2;
    screen.wait_for(&format!("Ralph {next}/40"), SOON);
    ralph(&session, &["stop"]);
}

#[test]
fn after_esc_not_even_a_command_sends_the_agent_on() {
    let api = holding_the_second_turn();
    let Some((session, screen)) = looping(&api) else { return };
    screen.key("Escape");
    screen.wait_for("Interrupted", SOON);
    api.answer_all();

    let before = api.requests().len();
    screen.type_line("/ralph:status");
    screen.wait_for("◐ paused: you interrupted the agent · this session", SOON);
    // The client may put a command that a hook has answered back into the input box.
    screen.key("C-u");
    screen.type_line("/compact");
    screen.wait_until(|text| text.contains("Compacted") || text.contains("compaction"), SOON);
    screen.type_line("just say hello");
    api.wait_for_requests(before + 2, SOON);
    screen.wait_until(|text| text.matches(" done").count() >= 2, SOON);
    assert_eq!(the_loop(&session)["state"], "paused");
}

#[test]
fn a_command_that_brings_no_turn_does_not_put_the_loop_to_sleep() {
    let api = holding_the_second_turn();
    let Some((session, screen)) = looping(&api) else { return };

    // Answered by the client itself: no turn of the agent, and so no Stop, follows from it.
    queue(&session, &screen, "/compact");
    api.answer_all();
    screen.wait_for("running what you typed first", SOON);
    let before = the_loop(&session)["iteration"].as_u64().unwrap();

    screen.wait_for(&format!("Ralph {}/40", before + 2), SOON);
    ralph(&session, &["stop"]);
}

#[test]
fn text_typed_in_mid_loop_reaches_the_agent_and_the_loop_continues() {
    let api = holding_the_second_turn();
    let Some((session, screen)) = looping(&api) else { return };

    queue(&session, &screen, "mind the quokka");
    api.answer_all();
    let before = the_loop(&session)["iteration"].as_u64().unwrap();
    screen.wait_for(&format!("Ralph {}/40", before + 2), SOON);

    assert!(api.requests().iter().any(|request| request.text().contains("mind the quokka")));
    ralph(&session, &["stop"]);
}

#[test]
fn clear_orphans_the_loop_and_the_new_session_adopts_it() {
    let api = holding_the_second_turn();
    let Some(session) = session(&api) else { return };
    // Outside the alternate screen this client does not draw what a hook says after /clear.
    let session = session.env("CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN", "0");
    let Some((session, screen)) = looping_in(&api, session) else { return };

    screen.type_line("/clear");
    api.answer_all();
    screen.wait_for("Ralph: found a loop whose session was cleared", SOON);
    let orphan = the_loop(&session);
    assert_eq!((&orphan["orphaned"], &orphan["state"]), (&json!(true), &json!("running")));
    let requests = api.requests().len();

    screen.type_line("/ralph:start --resume");
    screen.wait_for("Ralph adopted: keep going", SOON);
    api.wait_for_requests(requests + 3, SOON);
    let adopted = the_loop(&session);
    assert_ne!(adopted["session_id"], orphan["session_id"]);
    assert_eq!(adopted["run_id"], orphan["run_id"]);
    assert_eq!(status(&session)["loops"].as_array().unwrap().len(), 1);
    ralph(&session, &["stop"]);
}

#[test]
fn the_screen_says_where_the_loop_is_and_why_it_ended() {
    let mut script = turns(2);
    script.push(Reply::text("all proven\n<promise>COMPLETE</promise>"));
    let api = Api::start_holding(script, 3);
    let Some((_session, screen)) = looping(&api) else { return };
    api.answer_all();

    let text = screen.wait_for("Ralph ended (complete): task complete", SOON);

    assert!(text.contains("h/9.0h | Wall: "), "{text}");
}

/// On the screen, because a printed run ends without waiting for this hook.
#[test]
fn an_api_error_is_remembered_and_the_loop_stays_armed() {
    let mut script = turns(1);
    script.push(Reply::error(529));
    let api = Api::start(script);
    let Some(session) = session(&api) else { return };
    if !Screen::available() {
        return;
    }
    let session = session.env("CLAUDE_CODE_MAX_RETRIES", "0");
    let screen = Screen::start(&session);

    screen.type_line("/ralph:start go on regardless");

    screen.wait_for("Ralph 1/50", SOON);
    wait_until("the error is remembered", || the_loop(&session)["last_error"].is_string());
    let record = the_loop(&session);
    assert_eq!((&record["state"], &record["iteration"]), (&json!("running"), &json!(1)));
    assert!(record["last_error"].as_str().is_some_and(|error| !error.is_empty()), "{record}");
}
