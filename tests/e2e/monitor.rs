//! `ralph monitor` in tmux, beside a loop of the real client and beside a run of `ralph run`.

use std::ffi::OsString;

use crate::client::Session;
use crate::messages_api::Api;
use crate::ralph::{SOON, ralph, the_loop};
use crate::screen::{holding_the_second_turn, looping, turns};
use crate::tmux::Screen;
use crate::{clock, runner};

/// The monitor in a second terminal of the session's user.
fn monitor(session: &Session) -> Screen {
    let mut words: Vec<OsString> = vec!["env".into(), "-i".into(), "TERM=screen-256color".into()];
    words.extend(session.variables().map(|(name, value)| {
        let mut assignment = name.to_owned();
        assignment.push("=");
        assignment.push(value);
        assignment
    }));
    words.extend([env!("CARGO_BIN_EXE_ralph"), "monitor"].map(OsString::from));
    Screen::open(&session.project(), (120, 40), &words)
}

#[test]
fn a_loop_of_the_real_client_is_watched_steered_paused_and_stopped() {
    let api = holding_the_second_turn();
    let Some((session, client)) = looping(&api) else { return };
    let monitor = monitor(&session);
    monitor.wait_for("● working", SOON);
    monitor.wait_for("keep going", SOON);
    monitor.wait_for("tool Bash", SOON);
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
    monitor.key("q");
    monitor.wait_for("Pane is dead", SOON);
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
    monitor.wait_for("tool Bash", SOON);
    monitor.wait_for("turn 1 done", SOON);

    monitor.key("p");
    monitor.wait_for("y / n", SOON);
    monitor.key("y");
    monitor.wait_for("◐ paused", SOON);
    api.answer(4);
    run.wait_until(|output| output.stdout.contains("Ralph: paused by you"));
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
