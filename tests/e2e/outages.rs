//! The service fails, and the user types meanwhile: what becomes of a loop in the real client.

use serde_json::json;

use crate::client::{Client, Session};
use crate::clock::wait_until;
use crate::messages_api::{Api, Reply};
use crate::ralph::{SOON, ralph, session, session_of, the_loop, with_running_clock};
use crate::screen::{queue, turns};
use crate::tmux::Screen;

const HOUR: i64 = 3600;

/// One turn that works, then what is scripted. The client does not retry by itself.
fn failing(after: Vec<Reply>) -> Option<(Api, Session)> {
    let api = Api::start([turns(1), after].concat());
    let session = session(&api)?;
    Screen::available().then_some(())?;
    Some((api, session.env("CLAUDE_CODE_MAX_RETRIES", "0")))
}

/// How often the agent was woken for another attempt.
fn attempts(api: &Api) -> usize {
    let last = api.requests().last().map(|request| request.text()).unwrap_or_default();
    last.matches("Try again.").count()
}

#[test]
fn a_loop_continues_when_the_service_is_back() {
    let Some((api, session)) = failing([vec![Reply::error(529)], turns(3)].concat()) else { return };
    let (session, clock) = with_running_clock(session);
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start keep going --max-iterations 3");

    screen.wait_for("Ralph 1/3", SOON);
    wait_until("the wait is shown", || the_loop(&session)["waiting"]["for"] == "service");
    assert_eq!(the_loop(&session)["state"], "running");
    clock.advance(HOUR);
    screen.wait_for("Ralph ended (max-iterations): ", SOON);

    assert_eq!(attempts(&api), 1, "{}", api.requests().last().unwrap().text());
    assert_eq!(
        (&the_loop(&session)["iteration"], &the_loop(&session)["last_error"]),
        (&json!(3), &json!(null))
    );
}

#[test]
fn a_loop_ends_with_the_words_of_a_service_that_stays_away() {
    let Some((_api, session)) = failing(vec![Reply::error(529)]) else { return };
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start keep going --max-outage 8s");
    screen.wait_for("Ralph 1/50", SOON);

    wait_until("the loop has ended", || the_loop(&session)["state"] == "stopped");

    let ended = the_loop(&session);
    assert_eq!((&ended["outcome"], &ended["iteration"]), (&json!("error"), &json!(1)));
    let reason = ended["reason"].as_str().unwrap();
    assert!(reason.starts_with("the API failed for ") && reason.contains("API Error: 529"), "{reason}");
    assert!(ralph(&session, &["history"]).contains("the API failed for"));
}

#[test]
fn an_error_that_does_not_pass_ends_the_loop_at_once() {
    let Some((api, session)) = failing(vec![Reply::error(401)]) else { return };
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start keep going");
    screen.wait_for("Ralph 1/50", SOON);

    wait_until("the loop has ended", || the_loop(&session)["state"] == "stopped");

    let ended = the_loop(&session);
    assert_eq!(ended["outcome"], "error");
    assert_eq!(ended["reason"], "Please run /login · API Error: 401 scripted 401");
    assert_eq!(attempts(&api), 0);
}

#[test]
fn a_prompt_of_the_users_takes_the_place_of_the_next_attempt() {
    let script = [vec![Reply::error(529)], turns(3)].concat();
    let Some((api, session)) = failing(script) else { return };
    let (session, clock) = with_running_clock(session);
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start keep going --max-iterations 3");
    screen.wait_for("Ralph 1/3", SOON);
    wait_until("the wait is shown", || the_loop(&session)["waiting"]["for"] == "service");
    // Set back, so that the next attempt is far away.
    clock.advance(-HOUR);

    screen.type_line("try it now");
    screen.wait_for("Ralph ended (max-iterations): ", SOON);

    let read = api.requests().last().unwrap().text();
    assert_eq!((read.matches("try it now").count(), attempts(&api)), (1, 0), "{read}");
}

/// The clients write different things for a command that they answer themselves, some of them a prompt.
#[test]
fn no_command_without_a_turn_puts_the_loop_to_sleep_in_any_client() {
    for version in ["2.1.205", "2.1.286", "2.1.318", "2.1.325"] {
        for command in ["/context", "/compact"] {
            let api = Api::start_holding(turns(30), 3);
            let claude = if version == "2.1.325" { Client::find() } else { Client::find_version(version) };
            let Some(claude) = claude.filter(|_| Screen::available()) else { return };
            let session = session_of(&claude, &api);
            let screen = Screen::start(&session);
            screen.type_line("/ralph:start keep going --max-iterations 40");
            screen.wait_for("Ralph 1/40", SOON);
            api.wait_for_requests(4, SOON);
            let context = format!("{version} {command}");

            queue(&session, &screen, command);
            api.answer_all();
            // A client with modules does not write down what is queued.
            screen.wait_for(" first, then continuing", SOON);
            let before = the_loop(&session)["iteration"].as_u64().unwrap();
            wait_until(&format!("{context}: the loop continues"), || {
                the_loop(&session)["iteration"].as_u64().unwrap() >= before + 2
            });
            ralph(&session, &["stop"]);
        }
    }
}
