//! `ralph monitor` in tmux, beside a loop of the real client and beside a run of `ralph run`.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::client::Session;
use crate::messages_api::{Api, Reply};
use crate::ralph::{SOON, ralph, session, status, the_loop};
use crate::runner::DONE;
use crate::screen::{holding_the_second_turn, looping, looping_in, turns};
use crate::tmux::Screen;
use crate::webhook::Webhook;
use crate::{clock, runner};

const ASKS: &str = "<promise>DECIDE:Tabs or spaces?</promise>";

/// The monitor in a second terminal of the session's user.
fn monitor(session: &Session) -> Screen {
    monitor_sized(session, (120, 40))
}

fn monitor_sized(session: &Session, size: (u16, u16)) -> Screen {
    let mut words: Vec<OsString> = vec!["env".into(), "-i".into(), "TERM=screen-256color".into()];
    words.extend(session.variables().map(|(name, value)| {
        let mut assignment = name.to_owned();
        assignment.push("=");
        assignment.push(value);
        assignment
    }));
    words.extend([env!("CARGO_BIN_EXE_ralph"), "monitor"].map(OsString::from));
    Screen::open(&session.project(), size, &words)
}

/// A user whose desktop opens pages by writing down which one.
fn with_opener(session: Session) -> Session {
    let bin = session.root().join("bin");
    fs::create_dir(&bin).unwrap();
    let opener = bin.join(if cfg!(target_os = "macos") { "open" } else { "xdg-open" });
    fs::write(&opener, "#!/bin/sh\nprintf %s \"$1\" > \"$HOME/opened\"\n").unwrap();
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).unwrap();
    let path = session.variables().find(|(name, _)| *name == "PATH").map(|(_, value)| value.to_owned());
    let mut path_with_opener = bin.into_os_string();
    path_with_opener.push(":");
    path_with_opener.push(path.unwrap_or_default());
    session.env("PATH", path_with_opener)
}

/// Presses every key that only looks, and those that steer and leave the loop as it is. `task` is that of the selected
/// loop, the first of two; `other` that of the second.
fn press_every_key(session: &Session, monitor: &Screen, task: &str, other: &str) {
    let gone = |text: &str| monitor.wait_until(|screen| !screen.contains(text), SOON);
    let selected = |task: &str| monitor.wait_for(&format!("▌● working   {task}"), SOON);
    selected(task);
    for (down, up) in [("Down", "Up"), ("j", "k")] {
        monitor.key(down);
        selected(other);
        monitor.key(up);
        selected(task);
    }
    // The run has the focus: it is scrolled, and the list stays as it is.
    for (enter, leave) in [("Enter", "Escape"), ("Tab", "Tab")] {
        monitor.wait_for("│ run ", SOON);
        monitor.key(enter);
        monitor.key("G");
        gone("│ run ");
        selected(task);
        monitor.key("g");
        monitor.wait_for("│ run ", SOON);
        monitor.key(leave);
        // Typed too soon after Esc, a letter would be another key.
        monitor.wait_for("j/k select", SOON);
        monitor.key("j");
        selected(other);
        monitor.key("k");
        selected(task);
    }
    monitor.key("/");
    monitor.wait_for("filter:", SOON);
    monitor.key(other);
    gone(&format!("● working   {task}"));
    monitor.key("Enter");
    selected(other);
    monitor.key("Escape");
    monitor.wait_for(&format!("● working   {task}"), SOON);
    monitor.key("g");
    selected(task);
    monitor.key("l");
    monitor.wait_for("G newest", SOON);
    monitor.wait_for("tool  Bash: echo work >> work.txt", SOON);
    monitor.key("Escape");
    selected(task);
    monitor.key("?");
    monitor.wait_for("this help", SOON);
    monitor.key("?");
    selected(task);
    monitor.key("e");
    monitor.wait_for("encourage:", SOON);
    monitor.key("small steps");
    monitor.wait_for("encourage: small steps", SOON);
    monitor.key("Enter");
    monitor.wait_for("encouraged: small steps", SOON);
    assert_eq!(status(session)["guidance"]["encouraged"][0]["text"], "small steps");
    monitor.key("r");
    monitor.wait_for("Reset the circuit breaker of this loop? y / n", SOON);
    monitor.key("y");
    monitor.wait_for("It was ok", SOON);
    monitor.key("o");
    monitor.wait_for_words("opened /", SOON);
    let opened = clock::wait_for("the program that opens it", || {
        fs::read_to_string(session.home().join("opened")).ok().filter(|path| !path.is_empty())
    });
    assert!(fs::read_to_string(opened).unwrap().contains(task));
}

/// Answers the question of the selected run.
fn answer(monitor: &Screen, text: &str) {
    monitor.wait_for("press a to answer", SOON);
    monitor.key("a");
    monitor.wait_for("answer:", SOON);
    monitor.key(text);
    monitor.wait_for(&format!("answer: {text}"), SOON);
    monitor.key("Enter");
    monitor.wait_until(|screen| !screen.contains("press a to answer"), SOON);
}

#[test]
fn every_key_works_beside_a_loop_of_the_real_client() {
    // The second turn is held after its tool, and ends with a question.
    let script = turns(2).into_iter().take(3).chain([Reply::text(ASKS), Reply::text(DONE)]).collect();
    let api = Api::start_holding(script, 3);
    let Some(session) = session(&api).map(with_opener) else { return };
    ralph(&session, &["start", "--session", "another", "--", "water alpacas"]);
    let Some((session, client)) = looping_in(&api, session) else { return };
    let monitor = monitor_sized(&session, (80, 24));
    press_every_key(&session, &monitor, "keep going", "water alpacas");
    api.answer_all();
    client.wait_for("Ralph ended (decide)", SOON);
    answer(&monitor, "Spaces, four of them");
    monitor.key("q");
    monitor.wait_for_exit(SOON);
    client.type_line("/ralph:start --resume");
    client.wait_for("Ralph ended (complete)", SOON);
    let read = api.requests().last().unwrap().text();
    assert!(read.contains("small steps") && read.contains("Spaces, four of them"), "{read}");
    ralph(&session, &["stop", "--all"]);
}

#[test]
fn every_key_works_beside_a_run_of_the_runner() {
    let script = turns(2).into_iter().take(3).chain([Reply::text(ASKS), Reply::text(DONE)]).collect();
    let api = Api::start_holding(script, 3);
    let Some(session) = runner::session(&api) else { return };
    if !Screen::available() {
        return;
    }
    // With a topic for answers the run waits for one, and takes it from here too.
    let service = Webhook::start();
    let session = with_opener(session).env("RALPH_NOTIFY_ANSWERS", service.url("/answers"));
    ralph(&session, &["start", "--session", "another", "--", "water alpacas"]);
    let mut run = runner::start(&session, &["--max-iterations", "9", "--max-stuck", "0"]);
    api.wait_for_requests(4, SOON);
    let monitor = monitor_sized(&session, (80, 24));
    press_every_key(&session, &monitor, "make it", "water alpacas");
    api.answer_all();
    answer(&monitor, "Spaces, four of them");
    clock::wait_until("the run has ended", || run.has_ended());
    let output = run.wait();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("answer from terminal: \"Spaces, four of them\""), "{output:?}");
    let read = api.requests().last().unwrap().text();
    assert!(read.contains("small steps") && read.contains("Spaces, four of them"), "{read}");
    monitor.key("q");
    monitor.wait_for_exit(SOON);
}

#[test]
fn a_loop_of_the_real_client_is_watched_steered_paused_and_stopped() {
    let api = holding_the_second_turn();
    let Some((session, client)) = looping(&api) else { return };
    let monitor = monitor(&session);
    monitor.wait_for("● working", SOON);
    monitor.wait_for("keep going", SOON);
    monitor.wait_for("tool  Bash", SOON);
    monitor.wait_for("39 iterations left", SOON);

    monitor.key("f");
    monitor.wait_for("forbid:", SOON);
    monitor.key("never push");
    monitor.wait_for("forbid: never push", SOON);
    monitor.key("Enter");
    monitor.wait_for("− never push", SOON);
    api.answer(4);
    monitor.wait_until(|screen| screen.contains("− never push") && screen.contains(", delivered)"), SOON);

    monitor.key("p");
    monitor.wait_for("y / n", SOON);
    monitor.key("y");
    monitor.wait_for("◐ paused", SOON);
    api.answer_all();
    client.wait_for("PAUSED: paused by you", SOON);
    assert_eq!(the_loop(&session)["state"], "paused");
    client.type_line("/ralph:start --resume");
    monitor.wait_for("● working", SOON);

    monitor.key("s");
    monitor.wait_for("Stop this loop?", SOON);
    monitor.key("y");
    monitor.wait_for("■ stopped", SOON);
    client.wait_for("Ralph ended (stopped)", SOON);
}

#[test]
fn a_run_of_the_runner_is_watched_paused_resumed_and_stopped() {
    // Two requests for each iteration; the second iteration waits after its tool.
    let api = Api::start_holding(turns(20), 3);
    let Some(session) = runner::session(&api) else { return };
    if !Screen::available() {
        return;
    }
    let mut run = runner::start(&session, &["--max-iterations", "9", "--max-stuck", "0"]);
    api.wait_for_requests(4, SOON);
    let monitor = monitor(&session);
    monitor.wait_for("● working · iteration 2 for", SOON);
    monitor.wait_for("tool  Bash", SOON);
    monitor.wait_for("turn 1 done", SOON);

    monitor.key("p");
    monitor.wait_for("y / n", SOON);
    monitor.key("y");
    monitor.wait_for("● working: pauses before the next iteration", SOON);
    api.answer(4);
    run.wait_until(|output| output.stdout.contains("Ralph: paused by you"));
    monitor.wait_for("◐ paused", SOON);
    assert_eq!(the_loop(&session)["iteration"], 2);

    monitor.key("p");
    monitor.wait_for("Resume this loop?", SOON);
    monitor.key("y");
    monitor.wait_for("● working · iteration 3 for", SOON);
    monitor.key("s");
    monitor.wait_for("Stop this loop?", SOON);
    monitor.key("y");
    monitor.wait_for("■ stopped", SOON);
    clock::wait_until("the run has ended", || run.has_ended());
    assert_eq!(run.wait().code, Some(130));
    let status = ralph(&session, &["status"]);
    assert!(status.contains("ended: stopped"), "{status}");
}
