//! What a person sees and does in the terminal while the loop runs.

use std::time::Duration;

use serde_json::json;

use crate::client::Session;
use crate::messages_api::{Api, Reply};
use crate::ralph::{SOON, ralph, session, status, the_loop};
use crate::tmux::Screen;

/// Turns that work and take their time, so that there is a middle to type in.
fn slow_turns(count: usize) -> Vec<Reply> {
    let turn = |number: usize| {
        let command = json!({"command": "echo work >> work.txt", "description": "work"});
        let pause = Duration::from_millis(700);
        [Reply::tool("Bash", command).delay(pause), Reply::text(&format!("turn {number} done")).delay(pause)]
    };
    (1..=count).flat_map(turn).collect()
}

/// A session on the screen with a loop that has ended its first turn.
fn looping(api: &Api) -> Option<(Session, Screen)> {
    looping_in(session(api)?)
}

fn looping_in(session: Session) -> Option<(Session, Screen)> {
    if !Screen::available() {
        return None;
    }
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start keep going --max-iterations 40");
    screen.wait_for("Ralph started: keep going", SOON);
    screen.wait_for("Ralph 1/40", SOON);
    Some((session, screen))
}

#[test]
fn status_typed_in_mid_loop_is_shown_at_the_end_of_the_turn_and_the_loop_goes_on() {
    let api = Api::start(slow_turns(30));
    let Some((session, screen)) = looping(&api) else { return };

    screen.type_line("/ralph:status");
    screen.wait_for("goes first, then the loop goes on", SOON);
    screen.wait_for("● running · this session", SOON);
    let shown_at = the_loop(&session)["iteration"].as_u64().unwrap();

    screen.wait_for(&format!("Ralph {}/40", shown_at + 2), SOON);
    assert!(shown_at < 10, "it did not wait for the end of the loop");
    ralph(&session, &["stop"]);
}

#[test]
fn stop_typed_in_mid_loop_ends_it_at_the_end_of_the_turn() {
    let api = Api::start(slow_turns(30));
    let Some((session, screen)) = looping(&api) else { return };

    screen.type_line("/ralph:stop");
    screen.wait_for("Ralph ended (stopped): stopped by you", SOON);

    let requests = api.requests().len();
    screen.type_line("are you still there");
    api.wait_for_requests(requests + 1, SOON);
    let lap = the_loop(&session);
    assert_eq!((&lap["state"], &lap["outcome"]), (&json!("stopped"), &json!("stopped")));
}

#[test]
fn esc_pauses_until_the_user_says_go_on() {
    let api = Api::start(slow_turns(30));
    let Some((session, screen)) = looping(&api) else { return };

    let requests = api.requests().len();
    api.wait_for_requests(requests + 1, SOON);
    screen.key("Escape");
    screen.wait_for("Interrupted", SOON);
    screen.type_line("what are you doing?");
    screen.wait_for("PAUSED: you interrupted the agent", SOON);
    let paused = the_loop(&session);
    assert_eq!(paused["state"], "paused");

    screen.type_line("/ralph:start --resume");
    screen.wait_for("Ralph goes on: keep going", SOON);
    let next = paused["iteration"].as_u64().unwrap() + 2;
    screen.wait_for(&format!("Ralph {next}/40"), SOON);
    ralph(&session, &["stop"]);
}

#[test]
fn after_esc_not_even_a_command_sends_the_agent_on() {
    let api = Api::start(slow_turns(30));
    let Some((session, screen)) = looping(&api) else { return };
    let requests = api.requests().len();
    api.wait_for_requests(requests + 1, SOON);
    screen.key("Escape");
    screen.wait_for("Interrupted", SOON);

    let before = api.requests().len();
    screen.type_line("/ralph:status");
    screen.wait_for("◐ paused · this session", SOON);
    screen.type_line("/compact");
    screen.wait_until(|text| text.contains("Compacted") || text.contains("compaction"), SOON);
    screen.type_line("just say hello");
    api.wait_for_requests(before + 2, SOON);
    screen.wait_until(|text| text.matches(" done").count() >= 2, SOON);
    assert_eq!(the_loop(&session)["state"], "paused");
}

#[test]
fn a_command_that_brings_no_turn_does_not_put_the_loop_to_sleep() {
    let api = Api::start(slow_turns(30));
    let Some((session, screen)) = looping(&api) else { return };

    // Answered by the client itself: no turn of the agent, and so no Stop, follows from it.
    screen.type_line("/compact");
    screen.wait_for("your \"/compact\" goes first", SOON);
    let before = the_loop(&session)["iteration"].as_u64().unwrap();

    screen.wait_for(&format!("Ralph {}/40", before + 2), SOON);
    ralph(&session, &["stop"]);
}

#[test]
fn text_typed_in_mid_loop_reaches_the_agent_and_the_loop_goes_on() {
    let api = Api::start(slow_turns(30));
    let Some((session, screen)) = looping(&api) else { return };

    screen.type_line("mind the quokka");
    let before = the_loop(&session)["iteration"].as_u64().unwrap();
    screen.wait_for(&format!("Ralph {}/40", before + 2), SOON);

    assert!(api.requests().iter().any(|request| request.text().contains("mind the quokka")));
    ralph(&session, &["stop"]);
}

#[test]
fn clear_orphans_the_loop_and_the_new_session_adopts_it() {
    let api = Api::start(slow_turns(30));
    let Some(session) = session(&api) else { return };
    // Outside the alternate screen this client does not draw what a hook says after /clear.
    let session = session.env("CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN", "0");
    let Some((session, screen)) = looping_in(session) else { return };

    screen.type_line("/clear");
    screen.wait_for("Ralph: a loop lost its session", SOON);
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
    let mut script = slow_turns(1);
    script.push(Reply::text("all proven\n<promise>COMPLETE</promise>"));
    let api = Api::start(script);
    let Some((_session, screen)) = looping(&api) else { return };

    let text = screen.wait_for("Ralph ended (complete): task complete", SOON);

    assert!(text.contains("Runtime: 0.0h/9.0h | Wall: 0.0h"), "{text}");
}
