//! Telling the user outside the session: the user's command, and a request to the user's notification service.
//!
//! Nothing here waits: the command is only started, and a process of our own sends the request. What Ralph has to say
//! never meets a shell: the command gets it in variables, our process as JSON on its stdin.

use super::{command, group, lookup};
use crate::core::event::notice::{Notice, body};
use crate::core::settings::NotifySettings;
use crate::core::text::clean;
use crate::store::project::Project;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::env::consts::EXE_SUFFIX;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The word with which `ralph` sends a request, see `notify::deliver`.
pub const DELIVER: &str = "deliver";
/// What a pipe holds on every system, so that handing it over does not wait.
const MAX_JOB_BYTES: usize = 16 << 10;

/// A request to send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    pub url: String,
    pub host: String,
    pub event: String,
    pub timeout_ms: u64,
    pub body: Value,
}

impl Delivery {
    pub fn of(notice: &Notice, settings: &NotifySettings, url: &str) -> Result<Delivery, &'static str> {
        let body::HttpRequest { url, host, body, .. } = body::request(notice, url, &settings.format)?;
        let timeout_ms = u64::try_from(settings.timeout_ms).unwrap_or(1).max(1);
        Ok(Delivery { url, host, event: notice.event.name().to_owned(), timeout_ms, body })
    }
}

/// Starts the user's command and sends the notice to the user's service. Returns what could not be started.
pub fn send(project: &Project, notice: &Notice, settings: &NotifySettings) -> Vec<String> {
    let mut failed = Vec::new();
    if let Some(command) = &settings.command
        && let Err(error) = user_command(command, project, notice).spawn()
    {
        failed.push(format!("could not start the notify command: {error}"));
    }
    if let Some(url) = &settings.url {
        let delivery = Delivery::of(notice, settings, url).map_err(|why| anyhow::anyhow!("notify.url {why}"));
        if let Err(error) = delivery.and_then(|delivery| start(&delivery)) {
            failed.push(format!("could not send the notification: {error:#}"));
        }
    }
    failed
}

/// Returns the user's command, with what it is told in its variables.
pub fn user_command(command: &str, project: &Project, notice: &Notice) -> Command {
    let mut shell = command::shell(command, &project.root);
    shell.env("RALPH_EVENT", notice.event.name());
    shell.env("RALPH_TITLE", &notice.title).env("RALPH_MESSAGE", &notice.message);
    shell.env("RALPH_OUTCOME", notice.outcome.map_or("", |outcome| outcome.name()));
    shell.env("RALPH_REASON", clean::line(&notice.reason));
    shell.env("RALPH_CHECKS", notice.checks.join("\n"));
    shell.env("RALPH_PROJECT", &project.root).env("RALPH_RUN_ID", &notice.run_id);
    // A child that kept our stdout open would make the client wait for it and drop our answer.
    shell.stdout(Stdio::null()).stderr(Stdio::null());
    shell
}

/// Starts a process that sends the request, and does not wait for it.
fn start(delivery: &Delivery) -> Result<()> {
    let job = serde_json::to_vec(delivery)?;
    ensure!(job.len() <= MAX_JOB_BYTES, "it is too long");
    let mut program = lookup::command(program()?);
    program.arg(DELIVER).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    group::make_group_leader(&mut program);
    let mut child = program.spawn().context("could not start ralph")?;
    child.stdin.take().context("its stdin is closed")?.write_all(&job)?;
    Ok(())
}

/// Returns the `ralph` beside this program, which may be one of its hooks, or else the one in `PATH`.
fn program() -> Result<PathBuf> {
    let beside = std::env::current_exe().map(|path| path.with_file_name(format!("ralph{EXE_SUFFIX}")));
    if let Ok(path) = beside
        && path.is_file()
    {
        return Ok(path);
    }
    lookup::find("ralph", &[]).context("the program ralph was not found beside this one or in PATH")
}
