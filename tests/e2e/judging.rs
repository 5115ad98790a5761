//! How a turn is judged in the real client: done, blocked, stuck, or continued.

use std::fs;
use std::time::Duration;

use serde_json::json;

use crate::messages_api::{Api, Reply};
use crate::ralph::{SOON, ralph, session, the_loop, working};
use crate::tmux::Screen;

const DONE: &str = "All of it is there.\n\n<promise>COMPLETE</promise>";

fn bash(command: &str) -> Reply {
    Reply::tool("Bash", json!({"command": command, "description": "a step"}))
}

#[test]
fn a_claim_is_verified_red_then_green() {
    let api = Api::start(vec![Reply::text(DONE), bash("touch done.txt"), Reply::text(DONE)]);
    let Some(session) = session(&api) else { return };

    let output =
        session.print("/ralph:start make it --verify 'test -f done.txt || { echo nothing there; exit 3; }'");

    let told = output.system_messages().join("\n");
    assert!(
        told.contains("completion rejected: `test -f done.txt") && told.contains("exit code 3"),
        "{told}"
    );
    assert!(told.contains("Ralph ended (complete)") && told.contains("exit 3; }` passed"), "{told}");
    let second = api.requests()[1].last_user_text();
    assert!(second.contains("Completion rejected") && second.contains("nothing there"), "{second}");
    assert_eq!(the_loop(&session)["outcome"], "complete");
}

#[test]
fn a_tag_in_a_sentence_is_answered_and_one_before_a_status_block_counts() {
    let block = "---RALPH_STATUS---\nSTATUS: COMPLETE\n---END_RALPH_STATUS---";
    let done = format!("{DONE}\n\n{block}");
    let api = Api::start(vec![Reply::text("So: <promise>COMPLETE</promise>"), Reply::text(&done)]);
    let Some(session) = session(&api) else { return };

    let output = session.print("/ralph:start make it");

    let why = "the promise tag is not alone on its line";
    let told = output.system_messages().join("\n");
    assert!(told.contains(&format!("signal ignored: {why}")), "{told}");
    let second = api.requests()[1].last_user_text();
    assert!(second.contains(&format!("Signal ignored: {why}")), "{second}");
    assert_eq!(the_loop(&session)["outcome"], "complete");
}

#[test]
fn while_a_check_runs_the_screen_says_so() {
    let api = Api::start(vec![bash("echo hi > hi.txt"), Reply::text("first"), Reply::text(DONE)]);
    let Some(session) = session(&api) else { return };
    if !Screen::available() {
        return;
    }
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start make it --verify 'until [ -f go.txt ]; do sleep 0.1; done'");
    screen.wait_for("Ralph is checking the work", SOON);
    fs::write(session.project().join("go.txt"), "").unwrap();
    screen.wait_for("Ralph ended (complete)", SOON);
}

#[test]
fn a_blocked_agent_is_waited_for_and_resumed() {
    let api = Api::start(vec![Reply::text("<promise>BLOCKED:no API key</promise>"), Reply::text(DONE)]);
    let Some(session) = session(&api) else { return };

    let output = session.print("/ralph:start deploy it");
    let told = output.system_messages().join("\n");
    assert!(told.contains("Ralph ended (blocked): needs a person: no API key"), "{told}");
    let file = session.project().join("ralph/blocked.txt");
    assert!(fs::read_to_string(&file).unwrap().contains("no API key"));
    fs::remove_file(&file).unwrap();
    session.resume(output.session_id(), "/ralph:start --resume");
    assert_eq!(the_loop(&session)["outcome"], "complete");
}

#[test]
fn an_answer_given_in_a_terminal_reaches_the_agent_that_asked() {
    let api = Api::start(vec![Reply::text("<promise>DECIDE:tabs or spaces?</promise>"), Reply::text(DONE)]);
    let Some(session) = session(&api) else { return };

    let output = session.print("/ralph:start format the code");
    assert!(ralph(&session, &["answer"]).contains("tabs or spaces?"));
    ralph(&session, &["answer", "Spaces, of course."]);
    session.resume(output.session_id(), "/ralph:start --resume");

    let answered = api.requests().last().unwrap().text();
    assert!(answered.contains("tabs or spaces?") && answered.contains("Spaces, of course."), "{answered}");
    assert_eq!(the_loop(&session)["outcome"], "complete");
}

#[test]
fn a_stuck_agent_gets_its_hint_and_then_the_screen_says_why_it_ended() {
    const PARTS: [&str; 6] = ["the parser", "its tests", "old notes", "the build files", "a log", "the lock"];
    let turns =
        PARTS.iter().flat_map(|part| [bash("ls"), Reply::text(&format!("I have read about {part} now."))]);
    let api = Api::start(turns.collect());
    let Some(session) = session(&api) else { return };
    if !Screen::available() {
        return;
    }
    let screen = Screen::start(&session);
    screen.type_line("/ralph:start find the bug");
    let text = screen.wait_for("Ralph ended (stuck)", SOON + SOON);

    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("5 turns in a row without progress"), "{text}");
    let hints =
        api.requests().iter().filter(|r| r.last_user_text().contains("one more ends the loop")).count();
    assert_eq!(hints, 1, "one hint, in the prompt of one turn");
    let hint = api.requests()[8].last_user_text();
    assert!(hint.contains("4 turns in a row without progress"), "{hint}");
    screen.type_line("/ralph:start --resume");
    screen.wait_for("the circuit breaker has tripped", SOON);
    ralph(&session, &["reset"]);
}

#[test]
fn a_productive_loop_of_forty_turns_is_never_disturbed() {
    // What working agents say: the same words again, parts that are complete, tests that still fail.
    let said = |turn: usize| match turn % 4 {
        0 => "Step done.".to_owned(),
        1 => format!("Story {turn}: implementation complete, all acceptance criteria are met. Next story."),
        2 => format!("Mended one more.\ntest result: FAILED. {turn} passed; {} failed", 40 - turn),
        _ => "The task is done, moving on to the next one.".to_owned(),
    };
    let api = Api::start((0..40).flat_map(|turn| working(&said(turn))).collect());
    let Some(session) = session(&api) else { return };
    let session = session.timeout(Duration::from_secs(600));

    let output = session.print("/ralph:start work through the list --max-iterations 40");

    let told = output.system_messages().join("\n");
    assert!(told.contains("Ralph 39/40") && told.contains("Ralph ended (max-iterations)"), "{told}");
    assert_eq!(api.requests().len(), 80);
    let said: String = api.requests().iter().map(|request| request.last_user_text()).collect();
    assert!(!said.contains("one more ends the loop"));
    assert_eq!(the_loop(&session)["circuit"]["state"], "ok");
}
