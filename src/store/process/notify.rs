//! The user's command at an ending. Its text comes from the user alone; what Ralph has to say is in variables, never
//! in the shell's text.

use super::command;
use crate::core::decide::turn::CheckResult;
use crate::core::record::StoredLoop;
use crate::core::text::clean;
use crate::store::project::Project;
use std::process::Stdio;

/// Starts the command and does not wait for it.
pub fn ended(command: &str, project: &Project, run: &StoredLoop) -> std::io::Result<()> {
    let mut shell = command::shell(command, &project.root);
    shell.env("RALPH_OUTCOME", run.outcome.map_or("", |outcome| outcome.name()));
    shell.env("RALPH_REASON", clean::line(run.reason.as_deref().unwrap_or("")));
    let checks = run.checks.iter().map(CheckResult::line);
    shell.env("RALPH_CHECKS", checks.collect::<Vec<_>>().join("\n"));
    shell.env("RALPH_PROJECT", &project.root).env("RALPH_RUN_ID", &run.run_id);
    // A child that kept our stdout open would make the client wait for it and drop our answer.
    shell.stdout(Stdio::null()).stderr(Stdio::null());
    shell.spawn().map(drop)
}
