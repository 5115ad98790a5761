//! The agent enters and leaves a git worktree in the real client, and a check follows it.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::client::Session;
use crate::messages_api::{Api, Reply};
use crate::ralph::{SOON, session, the_loop};
use crate::tmux::{SIZES, Screen};

const DONE: &str = "All of it is there.\n\n<promise>COMPLETE</promise>";
const START: &str = "/ralph:start make it --verify 'test -f marker'";
const TREE: &str = ".claude/worktrees/side";

fn bash(command: &str) -> Reply {
    Reply::tool("Bash", json!({"command": command, "description": "a step"}))
}

fn enter() -> Reply {
    Reply::tool("EnterWorktree", json!({"name": "side"}))
}

fn leave() -> Reply {
    Reply::tool("ExitWorktree", json!({"action": "keep"}))
}

/// A session whose project is a repository with one commit.
fn repository(api: &Api) -> Option<Session> {
    let session = session(api)?.allow("EnterWorktree ExitWorktree");
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@example.com"]).args(args);
        let done = git.current_dir(session.project()).env("GIT_CONFIG_GLOBAL", "/dev/null").status();
        assert!(done.is_ok_and(|status| status.success()), "git {args:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    fs::write(session.project().join("a.txt"), "one\n").unwrap();
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "one"]);
    Some(session)
}

/// Enters a worktree, makes the marker there, claims completion outside and inside.
fn script() -> Vec<Reply> {
    vec![
        enter(),
        Reply::text("Entered the worktree."),
        bash("touch marker"),
        leave(),
        Reply::text(DONE),
        enter_again(),
        Reply::text(DONE),
    ]
}

fn enter_again() -> Reply {
    Reply::tool("EnterWorktree", json!({"path": TREE}))
}

fn check(session: &Session, told: &str) {
    let place = format!("now in worktree {TREE}");
    let flat = told.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        format!("h · {place}"),
        "h · back in the project · completion rejected: `test -f marker`".into(),
        "and `test -f marker` passed".into(),
    ] {
        assert!(flat.contains(&part), "{part}:\n{told}");
    }
    assert_eq!(flat.matches(&place).count(), 2, "once for each move:\n{told}");
    let record = the_loop(session);
    assert_eq!((&record["outcome"], &record["iteration"]), (&json!("complete"), &json!(3)), "{record}");
    assert!(
        !session.project().join("marker").exists() && session.project().join(TREE).join("marker").exists()
    );
    assert!(
        !session.project().join(TREE).join(".claude/ralph-state.json").exists(),
        "one loop, in the project"
    );
    let state = fs::read_to_string(session.project().join(".claude/ralph-state.json")).unwrap();
    let state: Value = serde_json::from_str(&state).unwrap();
    let usage = state["loops"].as_object().unwrap().values().next().unwrap()["usage"].clone();
    // Seven requests of ten tokens each, however often the transcript moved; the last may not be in it yet.
    assert!((50..=70).contains(&usage["input_tokens"].as_u64().unwrap()), "{usage}");
}

#[test]
fn printed_a_check_follows_the_agent_into_a_worktree_and_out_again() {
    let api = Api::start(script());
    let Some(session) = repository(&api) else { return };

    let output = session.print(START);

    check(&session, &output.system_messages().join("\n"));
}

#[test]
fn on_the_screen_a_check_follows_the_agent_into_a_worktree_and_out_again() {
    for size in SIZES {
        let api = Api::start(script());
        let Some(session) = repository(&api) else { return };
        if !Screen::available() {
            return;
        }
        let screen = Screen::start_sized(&session, &[], size);
        screen.type_line(START);
        let text = screen.wait_for("Ralph ended (complete)", SOON);
        check(&session, &text);
    }
}

#[test]
fn a_marker_in_the_project_proves_nothing_for_the_worktree() {
    let api = Api::start(vec![enter(), Reply::text(DONE), leave(), Reply::text(DONE)]);
    let Some(session) = repository(&api) else { return };
    fs::write(session.project().join("marker"), "").unwrap();

    let output = session.print(START);

    let told = output.system_messages().join("\n");
    assert!(told.contains("Ralph 1/50") && told.contains("completion rejected: `test -f marker`"), "{told}");
    assert!(told.contains("Ralph ended (complete)") && told.contains("back in the project"), "{told}");
    assert_eq!(the_loop(&session)["iteration"], 2);
}

#[test]
fn a_loop_started_inside_a_worktree_is_measured_there() {
    let api = Api::start(vec![enter(), Reply::text("Entered it."), bash("touch marker"), Reply::text(DONE)]);
    let Some(session) = repository(&api) else { return };

    let entered = session.print("enter a worktree");
    let output = session.resume(entered.session_id(), START);

    let told = output.system_messages().join("\n");
    let record = the_loop(&session);
    assert_eq!(record["outcome"], "complete", "{told}\n{record}");
}

/// The client tells its Bash tool the session, and not where it was launched.
#[test]
fn a_command_that_the_agent_runs_in_the_worktree_is_for_its_loop() {
    let forbid = format!("'{}' forbid touching the quokka", env!("CARGO_BIN_EXE_ralph-guidance"));
    let api = Api::start(vec![enter(), bash(&forbid), Reply::text("Forbidden."), Reply::text(DONE)]);
    let Some(session) = repository(&api) else { return };

    session.print("/ralph:start make it");

    let requests = api.requests();
    assert!(requests[2].text().contains("1 active; for this session's loop"), "{}", requests[2].text());
    let next = requests[3].last_user_text();
    assert!(next.contains("FORBIDDEN:\n- touching the quokka"), "{next}");
    assert!(!session.project().join(TREE).join(".claude/ralph-state.json").exists());
}
