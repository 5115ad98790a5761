//! `ralph run` with the real client that fails, is limited or may do nothing: what the user is told.

use std::fs;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::client::Session;
use crate::messages_api::{Api, Reply};
use crate::ralph::{plugin, ralph, the_loop};
use crate::run::{Output, Running};
use crate::runner::{DONE, bash, column, git, in_an_hour, limited_by, session, shell};

/// The row of the table at the end of a run.
fn told<'o>(output: &'o Output, label: &str) -> &'o str {
    let label = format!("{label}:");
    let row = output.stdout.lines().rfind(|line| line.starts_with(&label));
    row.unwrap_or_else(|| panic!("{output:?}"))[label.len()..].trim()
}

fn write(name: &str) -> Reply {
    Reply::tool("Write", json!({"file_path": name, "content": "text\n"}))
}

/// Starts `ralph run` as a new user types it, with a client that nothing was set up for.
fn start(session: &Session, flags: &str) -> Running {
    let bin = session.root().join("bin");
    fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(session.program(), bin.join("claude")).unwrap();
    shell(session, &bin, &format!("ralph run 'make it' --delay 0 {flags}"))
}

fn run(session: &Session, flags: &str) -> Output {
    start(session, flags).wait()
}

#[test]
fn a_stock_client_edits_nothing_and_the_run_says_so_before_and_after() {
    let path = |session: &Session| session.project().join("made.txt").display().to_string();
    let api = Api::start(vec![bash("git commit -q --allow-empty -m x"), Reply::text("I may not.")]);
    let Some(session) = session(&api) else { return };
    drop(api);
    let step = [write(&path(&session)), bash("echo x > made.txt"), Reply::text("I may not.")];
    let api = Api::start([step.clone(), step.clone(), step].concat());
    let session = session.env("ANTHROPIC_BASE_URL", api.url());

    let output = run(&session, "");

    assert_eq!(output.code, Some(2), "{output:?}");
    let before = output.stdout.split("── iteration 1").next().unwrap();
    let flags = "to allow them: --permission-mode acceptEdits --allowed-tools Bash";
    assert!(
        before.contains("in permission mode default, Claude Code denies edits") && before.contains(flags),
        "{before}"
    );
    assert_eq!(output.stdout.matches("Ralph: Claude Code denied Write and Bash; ").count(), 1, "{output:?}");
    assert_eq!(column(&session, "outcome"), ["denied", "denied", "blocked"]);
    let reason = format!("Claude Code denied Write and Bash in 3 iterations in a row; {flags}");
    assert_eq!((told(&output, "Reason"), &the_loop(&session)["reason"]), (reason.as_str(), &json!(reason)));
    assert!(!session.project().join("made.txt").exists());
}

#[test]
fn the_commands_of_the_readme_work_as_printed_with_a_stock_client() {
    let readme = include_str!("../../README.md");
    let commands = readme.lines().filter_map(|line| line.strip_prefix("| `ralph run ")?.split_once('`'));
    let commands: Vec<&str> = commands.map(|(command, _)| command).collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    for command in commands {
        let api = Api::start(vec![Reply::text("x")]);
        let Some(session) = session(&api) else { return };
        drop(api);
        let made = session.project().join("made.txt").display().to_string();
        let passes = r#"printf '{"userStories":[{"id":"US-1","title":"t","passes":true}]}' > prd.json"#;
        let commit = bash(&format!("{passes}; git add -A && git commit -q -m work"));
        let api = Api::start(vec![write(&made), commit, Reply::text(DONE)]);
        let session = session.env("ANTHROPIC_BASE_URL", api.url());
        // The test's project is no Rust project; the check is that of the README all the same.
        let bin = session.root().join("bin");
        fs::create_dir_all(&bin).unwrap();
        let cargo = "#!/bin/sh\ntest \"$1\" = test && test -f made.txt\n";
        fs::write(bin.join("cargo"), cargo).unwrap();
        std::os::unix::fs::symlink(session.program(), bin.join("claude")).unwrap();
        fs::set_permissions(bin.join("cargo"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let list = r#"{"userStories":[{"id":"US-1","title":"t","passes":false}]}"#;
        fs::write(session.project().join("prd.json"), list).unwrap();
        git(&session, &["add", "-A"]);
        git(&session, &["commit", "-q", "-m", "tasks"]);

        let output = shell(&session, &bin, &format!("ralph run {command}")).wait();

        assert_eq!(output.code, Some(0), "{command}: {output:?}");
        assert!(
            !output.stdout.contains("permission mode") && !output.stdout.contains("denied"),
            "{output:?}"
        );
        assert!(session.project().join("made.txt").exists(), "{command}");
    }
}

#[test]
fn an_unknown_model_ends_the_run_with_the_clients_words() {
    let api = Api::start(vec![Reply::error(404)]);
    let Some(session) = session(&api) else { return };

    let output = run(&session, "--model claude-nope --allowed-tools Bash");

    assert_eq!(output.code, Some(70), "{output:?}");
    let words = "There's an issue with the selected model (claude-nope)";
    let line = output.stdout.lines().find(|line| line.starts_with("── iteration 1 failed")).unwrap();
    assert!(line.contains(words) && line.ends_with("log: ralph/logs/iteration-001.log"), "{line}");
    let reason = format!("same error 3 times in a row: {words}");
    assert!(told(&output, "Reason").starts_with(&reason), "{output:?}");
    assert!(the_loop(&session)["reason"].as_str().unwrap().starts_with(&reason));
    let history = ralph(&session, &["history", "--json"]);
    assert!(history.contains(words), "{history}");
    assert_eq!(column(&session, "outcome"), ["failed", "failed", "error"]);
}

#[test]
fn an_option_that_the_client_does_not_know_is_quoted() {
    let api = Api::start(vec![Reply::text(DONE)]);
    let Some(session) = session(&api) else { return };

    let output = run(&session, "--claude-arg=--frob");

    assert_eq!(output.code, Some(70), "{output:?}");
    assert_eq!(told(&output, "Reason"), "same error 3 times in a row: unknown option '--frob'");
    assert_eq!(api.requests().len(), 0);
}

#[test]
fn a_request_that_is_too_large_ends_the_run_with_the_clients_words() {
    let api = Api::start(vec![Reply::error(413)]);
    let Some(session) = session(&api) else { return };

    let output = run(&session, "--allowed-tools Bash");

    assert_eq!(output.code, Some(70), "{output:?}");
    assert!(
        told(&output, "Reason").starts_with("same error 3 times in a row: Request too large"),
        "{output:?}"
    );
}

#[test]
fn each_kind_of_usage_limit_is_told_with_its_reset() {
    for claim in ["five_hour", "seven_day"] {
        let (resets, moment) = in_an_hour();
        let (_api, Some(session)) = limited_by(claim, Some(resets)) else { return };
        let output = run(&session, "--on-limit stop");
        assert_eq!(output.code, Some(5), "{output:?}");
        let reason = told(&output, "Reason");
        assert!(reason.starts_with(&format!("usage limit reached, resets at {moment}")), "{reason}");
        assert!(reason.contains(" · You've hit your limit · resets "), "{reason}");
    }
}

#[test]
fn the_limit_of_an_api_key_is_a_usage_limit_with_its_date() {
    let in_days = SystemTime::now() + Duration::from_secs(20 * 24 * 3600);
    let date = chrono::DateTime::<chrono::Utc>::from(in_days).format("%Y-%m-%d");
    let message = format!(
        "You have reached your specified API usage limits. You will regain access on {date} at 00:00 UTC."
    );
    let api = Api::start(vec![Reply::error(400).message(&message)]);
    let Some(session) = session(&api) else { return };

    let output = run(&session, "--on-limit stop");

    assert_eq!(output.code, Some(5), "{output:?}");
    let reason = told(&output, "Reason");
    assert!(
        reason.starts_with(&format!("usage limit reached, resets at {date} 00:00 UTC"))
            && reason.ends_with(&message),
        "{reason}"
    );
}

#[test]
fn a_429_without_a_reset_time_is_a_throttle_also_if_the_client_calls_it_a_limit() {
    let (_api, Some(session)) = limited_by("five_hour", None) else { return };
    let mut running = start(&session, "--on-limit stop");
    running
        .wait_until(|output| output.stdout.contains("Ralph: the API limits requests (429); continuing in "));
    ralph(&session, &["stop"]);
    assert_eq!(running.wait().code, Some(130));
}

#[test]
fn a_text_agent_of_the_same_client_is_limited_alike() {
    let (resets, moment) = in_an_hour();
    let (_api, Some(session)) = limited_by("five_hour", Some(resets)) else { return };
    let claude = format!("{} -p", session.program().display());
    let session = session.env("TZ", "UTC");

    let output = run(&session, &format!("--agent-command '{claude}' --on-limit stop"));

    assert_eq!(output.code, Some(5), "{output:?}");
    let reason = told(&output, "Reason");
    assert!(reason.starts_with(&format!("usage limit reached, resets at {moment}")), "{reason} for {moment}");
}

#[test]
fn a_start_in_a_session_tells_of_the_permission_mode() {
    let api = Api::start(vec![Reply::text("<promise>COMPLETE</promise>")]);
    let Some(session) = session(&api) else { return };
    let session = session.plugin(plugin()).arg("--permission-mode").arg("plan");

    let output = session.print("/ralph:start make it");

    let told = output.system_messages().join("\n");
    assert!(told.contains("in permission mode plan the agent cannot edit files"), "{output:?}");
}
