//! The user's own command at an ending. Its words come from the user alone; what we have to say goes
//! through variables, never through the shell's text.

use super::command;
use super::project::Project;
use crate::core::record::Loop;
use std::process::Stdio;

/// Starts the command and does not wait for it.
pub fn ended(command: &str, project: &Project, lap: &Loop) -> std::io::Result<()> {
    let mut shell = command::shell(command, &project.root);
    shell.env("RALPH_OUTCOME", lap.outcome.map_or("", |outcome| outcome.name()));
    shell.env("RALPH_REASON", crate::core::clean::line(lap.reason.as_deref().unwrap_or("")));
    shell.env("RALPH_PROJECT", &project.root).env("RALPH_RUN_ID", &lap.run_id);
    // A child that kept our stdout open would make the client wait for it and drop our answer.
    shell.stdout(Stdio::null()).stderr(Stdio::null());
    shell.spawn().map(drop)
}
