//! Each program of a plugin that was laid out, run once: what does not start here would be silent in a session.

use super::{VERSION, program};
use crate::store::program::{self as programs, Said};
use anyhow::{Result, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A hook answers within milliseconds; a machine may be busy, and look at a new program first.
const LIMIT: Duration = Duration::from_secs(20);
/// No session has this id, so there is no loop to act on and nothing to write.
const NOBODY: &str = "ralph-install-proof";

/// Runs each program with an input that concerns nobody. Returns how long the slowest hook took.
pub fn run(folder: &Path) -> Result<Duration> {
    let mut slowest = Duration::ZERO;
    for (name, event) in [("ralph-stop-hook", "Stop"), ("ralph-session-start-hook", "UserPromptExpansion")] {
        let input = serde_json::json!({"session_id": NOBODY, "hook_event_name": event, "cwd": folder});
        let answer = call(folder, name, &[], input.to_string().as_bytes());
        let quiet = answer.is_green() && answer.stdout.is_empty();
        ensure!(
            quiet,
            "{} does not answer as a hook: {}",
            program(folder, name).display(),
            answer.complaint()
        );
        // A hook that cannot read its input says so: silence alone could be anything.
        let broken = call(folder, name, &[], b"{");
        let says = broken.stdout.contains("systemMessage");
        let named = program(folder, name);
        ensure!(broken.is_green() && says, "{} is no hook of ours: {}", named.display(), broken.complaint());
        slowest = slowest.max(answer.took);
    }
    for name in ["ralph", "ralph-guidance"] {
        let answer = call(folder, name, &["--version"], b"");
        let says = answer.stdout.contains(VERSION);
        let named = program(folder, name);
        ensure!(answer.is_green() && says, "{} does not run: {}", named.display(), answer.complaint());
    }
    Ok(slowest)
}

fn call(folder: &Path, name: &str, args: &[&str], input: &[u8]) -> Said {
    let mut command = Command::new(program(folder, name));
    command.args(args).current_dir(folder);
    // Whatever surrounds us must not lead the hooks to somebody's project.
    for name in ["CLAUDE_PROJECT_DIR", "CLAUDE_CODE_SESSION_ID", "RALPH_RUN_ID"] {
        command.env_remove(name);
    }
    programs::run(command, input, LIMIT)
}
