//! A run with a check on the real client that ended, and is continued as its `Next` line says: the check still decides.

use serde_json::json;
use std::time::Duration;

use crate::client::Session;
use crate::messages_api::{Api, Reply};
use crate::ralph::{SOON, ralph, the_loop};
use crate::run::{Output, Running};
use crate::runner::{DONE, bash, column, session};
use crate::signals::with_default_signals;

const CHECK: &str = "test -f proven.txt";

fn start(session: &Session, args: &[&str]) -> Running {
    let mut command = with_default_signals(env!("CARGO_BIN_EXE_ralph"));
    command.arg("run").args(args).env_clear().envs(session.variables()).current_dir(session.project());
    Running::start(command, session.root(), Duration::from_secs(300))
}

/// Starts the run that is going to end.
fn begin(session: &Session, flags: &[&str]) -> Running {
    let program = session.program().to_str().unwrap();
    let args = ["make it", "--delay", "0", "--allowed-tools", "Bash", "--verify", CHECK, "--claude", program];
    start(session, &[&args, flags].concat())
}

/// What the agent does in the continued run: it claims to be done, then it is.
fn then_done(first: Vec<Reply>) -> Vec<Reply> {
    let prove = bash("echo x > proven.txt; git add -A; git commit -q -m proven");
    first.into_iter().chain([Reply::text(DONE), prove, Reply::text(DONE)]).collect()
}

/// Continues the run that ended in its first iteration.
fn continues(session: &Session, ended: &Output, next: &str, flags: &[&str]) {
    let told = ended.stdout.lines().rfind(|line| line.starts_with("Next:")).unwrap_or_default();
    assert_eq!(told.trim_start_matches("Next:").trim(), next, "{ended:?}");
    let before = the_loop(session);
    assert_eq!((&before["checks"][0]["command"], &before["iteration"]), (&json!(CHECK), &json!(1)));

    let output = start(session, flags).wait();

    assert_eq!(output.code, Some(0), "{output:?}");
    let id = &before["run_id"].as_str().unwrap()[..8];
    assert!(output.stdout.starts_with(&format!("Continuing run {id} at iteration 2")), "{output:?}");
    assert!(output.stdout.contains(&format!("\nCheck: {CHECK}\n")), "{output:?}");
    let first = before["outcome"].as_str().unwrap();
    assert_eq!(column(session, "outcome"), [first, "rejected", "complete"]);
    assert_eq!(column(session, "check")[1..], [format!("failed (exit code 1): {CHECK}"), "passed".into()]);
    let after = the_loop(session);
    assert_eq!((&after["run_id"], &after["checks"][0]["passed"]), (&before["run_id"], &json!(true)));
}

#[test]
fn a_run_that_ended_at_a_limit_continues_with_its_check() {
    let api = Api::start(then_done(vec![Reply::text("the first step is done")]));
    let Some(session) = session(&api) else { return };

    let ended = begin(&session, &["--max-iterations", "1"]).wait();

    assert_eq!(ended.code, Some(1), "{ended:?}");
    continues(&session, &ended, "ralph run --max-iterations N", &["--max-iterations", "5"]);
}

#[test]
fn a_run_that_asked_continues_with_the_answer_and_its_check() {
    let api = Api::start(then_done(vec![Reply::text("<promise>DECIDE:tabs or spaces?</promise>")]));
    let Some(session) = session(&api) else { return };

    let ended = begin(&session, &[]).wait();

    assert_eq!(ended.code, Some(3), "{ended:?}");
    ralph(&session, &["answer", "three spaces"]);
    continues(&session, &ended, "`ralph answer TEXT`, then ralph run", &[]);
    let prompt = api.requests()[1].text();
    assert!(prompt.contains("tabs or spaces?") && prompt.contains("three spaces"), "{prompt}");
}

#[test]
fn a_run_that_ctrl_c_ended_continues_with_its_check() {
    let never = Reply::text("never arrives").delay(Duration::from_secs(600));
    let api = Api::start(then_done(vec![never]));
    let Some(session) = session(&api) else { return };

    let running = begin(&session, &[]);
    api.wait_for_requests(1, SOON);
    running.signal("INT");
    let ended = running.wait();

    assert_eq!(ended.code, Some(130), "{ended:?}");
    continues(&session, &ended, "ralph run", &[]);
}

#[test]
fn a_run_that_was_stopped_continues_with_its_check() {
    let never = Reply::text("never arrives").delay(Duration::from_secs(600));
    let api = Api::start(then_done(vec![never]));
    let Some(session) = session(&api) else { return };

    let running = begin(&session, &[]);
    api.wait_for_requests(1, SOON);
    ralph(&session, &["stop"]);
    let ended = running.wait();

    assert_eq!(ended.code, Some(130), "{ended:?}");
    continues(&session, &ended, "ralph run", &[]);
}

#[test]
fn a_run_that_was_stuck_continues_with_its_check() {
    let api = Api::start(then_done(vec![Reply::text("thinking")]));
    let Some(session) = session(&api) else { return };

    let ended = begin(&session, &["--max-stuck", "1"]).wait();

    assert_eq!(ended.code, Some(4), "{ended:?}");
    continues(&session, &ended, "ralph run --reset", &["--reset", "--max-stuck", "0"]);
}

#[test]
fn a_run_that_was_blocked_continues_with_its_check() {
    let api = Api::start(then_done(vec![Reply::text("<promise>BLOCKED:no key</promise>")]));
    let Some(session) = session(&api) else { return };

    let ended = begin(&session, &[]).wait();

    assert_eq!(ended.code, Some(2), "{ended:?}");
    let next = "fix the problem described in ralph/blocked.txt, or tell the agent what to do with `ralph answer TEXT`, then ralph run";
    continues(&session, &ended, next, &[]);
    let prompt = api.requests()[1].text();
    assert!(prompt.contains("no key"), "what is left over is told: {prompt}");
}
