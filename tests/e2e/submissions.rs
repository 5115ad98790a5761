//! What a person types or pastes outside a running loop: answers, plain replies, and commands pasted whole.

use serde_json::json;

use crate::client::{Client, Session};
use crate::messages_api::{Api, Reply};
use crate::ralph::{SOON, ralph, session, session_of, the_loop, working};
use crate::tmux::{SIZES, Screen};

const PASTED: &str =
    "make the suite green\nand then\ntidy the docs,\nall of them,\nslowly --max-iterations 40";

/// A session whose loop ended with a question, on a screen of this size.
fn asked(api: &Api, size: (u16, u16)) -> Option<(Session, Screen)> {
    let session = session(api)?;
    if !Screen::available() {
        return None;
    }
    let screen = Screen::start_sized(&session, &[], size);
    screen.type_line("/ralph:start keep going --max-iterations 40");
    screen.wait_for("Ralph ended (decide)", SOON);
    Some((session, screen))
}

/// An agent that asks at once, and later works forever.
fn asking() -> Api {
    let mut script = vec![Reply::text("Two ways.\n<promise>DECIDE:Tabs or spaces?</promise>")];
    script.extend((0..30).flat_map(|_| working("still working")));
    Api::start_holding(script, 3)
}

/// The lines of the screen from the last one that has `first` to the next one that has `last`.
fn part(text: &str, first: &str, last: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let from = lines.iter().rposition(|line| line.contains(first)).expect("its first line");
    let to = lines.iter().skip(from).position(|line| line.contains(last)).expect("its last line");
    lines[from..=from + to].join("\n")
}

#[test]
fn an_answer_after_a_question_continues_the_loop_with_it() {
    for size @ (columns, rows) in SIZES {
        let api = asking();
        let Some((session, screen)) = asked(&api, size) else { return };
        let text = screen.wait_for("Next: /ralph:answer TEXT", SOON);
        // The transcript may lag behind the turn, and then no tokens are counted yet.
        let question = part(&text, "Stop says", "Next:").replace(" · 15 tokens", "");
        insta::assert_snapshot!(format!("a_question_{columns}x{rows}"), question);

        screen.type_line("/ralph:answer spaces, always");
        let is_shown = |text: &str| text.matches("/ralph:status shows it").count() == 2;
        let text = screen.wait_until(is_shown, SOON);
        let answer = part(&text, "Answer saved", "/ralph:status shows it");
        insta::assert_snapshot!(format!("an_answer_{columns}x{rows}"), answer);
        api.wait_for_requests(2, SOON);
        let next = api.requests()[1].text();
        assert!(next.contains("Tabs or spaces?") && next.contains("The answer:\nspaces, always"), "{next}");
        api.answer_all();
        screen.wait_for("Ralph 2/40", SOON);
        assert_eq!(the_loop(&session)["state"], "running");
        ralph(&session, &["stop"]);
    }
}

#[test]
fn a_plain_reply_after_a_question_is_asked_about_once_and_taken_for_nothing() {
    for size @ (columns, rows) in SIZES {
        let api = asking();
        let Some((session, screen)) = asked(&api, size) else { return };
        api.answer_all();

        screen.type_line("spaces, always");
        let text = screen.wait_for("resumes the loop", SOON);
        let reply = part(&text, "UserPromptSubmit says", "resumes the loop");
        insta::assert_snapshot!(format!("a_plain_reply_{columns}x{rows}"), reply);
        api.wait_for_requests(3, SOON);
        let next = api.requests()[1].text();
        assert!(next.contains("Take this as the answer?") && next.contains("Tabs or spaces?"), "{next}");
        assert_unanswered(&session);

        screen.wait_until(|text| text.contains("still working"), SOON);
        let before = api.requests().len();
        screen.type_line("what did I say?");
        api.wait_for_requests(before + 1, SOON);
        assert_eq!(screen.text().matches("UserPromptSubmit says").count(), 1, "{}", screen.text());
    }
}

fn assert_unanswered(session: &Session) {
    assert_eq!(the_loop(session)["state"], "stopped");
    let question = std::fs::read_to_string(session.project().join("ralph/decide.txt")).unwrap();
    assert!(question.trim_end().ends_with("## Answer"), "{question}");
}

#[test]
fn a_printed_reply_is_asked_about_and_a_printed_answer_continues_the_loop() {
    let mut script = vec![
        Reply::text("Two ways.\n<promise>DECIDE:Tabs or spaces?</promise>"),
        Reply::text("Is that the answer?"),
    ];
    script.extend(working("indented"));
    script.push(Reply::text("<promise>COMPLETE</promise>"));
    let api = Api::start(script);
    let Some(session) = session(&api) else { return };
    let asked = session.print("/ralph:start keep going");
    let id = asked.session_id();

    let reply = session.resume(id, "spaces, always");
    let told = reply.system_messages().join("\n");
    assert!(told.contains("resumes the loop"), "{told}");
    let next = api.requests()[1].text();
    assert!(next.contains("Take this as the answer?") && next.contains("Tabs or spaces?"), "{next}");
    assert_unanswered(&session);

    session.resume(id, "/ralph:answer spaces, always");
    let next = api.requests()[2].text();
    assert!(next.contains("The answer:\nspaces, always"), "{next}");
    assert_eq!(the_loop(&session)["outcome"], "complete");
}

/// The client takes it for text: no UserPromptExpansion comes.
#[test]
fn a_start_that_is_pasted_whole_starts_the_loop() {
    for size @ (columns, rows) in SIZES {
        let api = Api::start((0..30).flat_map(|_| working("still working")).collect());
        let Some(session) = session(&api) else { return };
        if !Screen::available() {
            return;
        }
        let screen = Screen::start_sized(&session, &[], size);
        screen.paste_and_send(&format!("/ralph:start {PASTED}"));
        let text = screen.wait_for("Ralph ran the pasted command", SOON);
        let start = part(&text, "Ralph started", "Ralph ran the pasted command");
        insta::assert_snapshot!(format!("a_pasted_start_{columns}x{rows}"), start);
        screen.wait_for("Ralph 2/40", SOON);

        let first = api.requests()[0].text();
        assert_eq!(first.matches("You are in a Ralph loop").count(), 1, "{first}");
        assert_eq!(the_loop(&session)["max_iterations"], json!(40));
        ralph(&session, &["stop"]);
    }
}

/// This client gives prompts no id, and takes it for a command: it expands before it is submitted.
#[test]
fn a_start_pasted_into_an_older_client_is_run_once_and_says_nothing_else() {
    let Some(claude) = Client::find_version("2.1.163") else { return };
    if !Screen::available() {
        return;
    }
    let api = Api::start((0..30).flat_map(|_| working("still working")).collect());
    let session = session_of(&claude, &api);
    let screen = Screen::start_sized(&session, &[], SIZES[1]);
    screen.paste_and_send(&format!("/ralph:start {PASTED}"));
    let text = screen.wait_for("Ralph 2/40", SOON);
    assert_eq!(text.matches("Ralph started").count(), 1, "{text}");
    assert!(!text.contains("UserPromptSubmit says"), "{text}");
    ralph(&session, &["stop"]);
}

/// The client takes it for a command: both events come.
#[test]
fn a_start_that_is_typed_with_a_pasted_task_is_run_once() {
    let api = Api::start((0..30).flat_map(|_| working("still working")).collect());
    let Some(session) = session(&api) else { return };
    if !Screen::available() {
        return;
    }
    let screen = Screen::start(&session);
    screen.type_text("/ralph:start ");
    screen.paste_and_send(PASTED);
    screen.wait_for("Ralph 2/40", SOON);

    let text = screen.text();
    assert_eq!(text.matches("Ralph started").count(), 1, "{text}");
    assert!(!text.contains("already running"), "{text}");
    let first = api.requests()[0].text();
    assert_eq!(first.matches("You are in a Ralph loop").count(), 1, "{first}");
    ralph(&session, &["stop"]);
}

#[test]
fn a_long_start_with_p_is_run_once() {
    let mut script = working("still working").to_vec();
    script.push(Reply::text("<promise>COMPLETE</promise>"));
    let api = Api::start(script);
    let Some(session) = session(&api) else { return };

    let output = session.print(&format!("/ralph:start {PASTED}"));

    assert_eq!(output.code, Some(0), "{output:?}");
    let first = api.requests()[0].text();
    assert_eq!(first.matches("You are in a Ralph loop").count(), 1, "{first}");
    let ended = the_loop(&session);
    assert_eq!((&ended["outcome"], &ended["iteration"]), (&json!("complete"), &json!(2)), "{ended}");
}
