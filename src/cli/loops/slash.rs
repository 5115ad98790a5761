//! Slash commands: the commands of the command line, from free text that no shell has read.

use super::{guidance, scan, start, status, stop};
use crate::cli::invocation::stdin;
use crate::cli::setup::config;
use crate::cli::{Failure, Invocation, Project, World, help};
use crate::core::guidance::List;
use crate::core::guidance::finding::Severity;
use crate::core::request::StartRequest;
use crate::core::text::clean;
use crate::store::user::handoff;
use crate::store::world;
use crate::view;
use crate::view::paint::Paint;

pub const COMMANDS: [&str; 8] = ["start", "stop", "status", "encourage", "forbid", "config", "scan", "help"];

/// Finds a slash command by its name.
pub fn find(name: &str) -> Option<&'static str> {
    COMMANDS.into_iter().find(|command| *command == name)
}

/// What a command tells the user, and the agent if there is work for it.
#[derive(Clone, Debug)]
pub struct Reply {
    pub user: String,
    pub agent: Option<String>,
}

impl From<String> for Reply {
    fn from(user: String) -> Self {
        Reply { user, agent: None }
    }
}

/// Runs a slash command whose text is on stdin.
pub fn command(call: &Invocation) -> Result<String, Failure> {
    let text = stdin()?;
    let session = call.session().unwrap_or_default();
    let reply = run(&call.world, &call.project, session, named(call)?, text.trim_end_matches('\n'))?;
    Ok(reply.agent.map_or(reply.user.clone(), |agent| format!("{}\n\n{agent}", reply.user)))
}

fn named(call: &Invocation) -> Result<&'static str, Failure> {
    let name = call.value("command").unwrap_or_default();
    find(name).ok_or_else(|| Failure::usage(format!("no such slash command: {name}")))
}

pub fn run(
    world: &World,
    project: &Project,
    session: &str,
    command: &str,
    text: &str,
) -> Result<Reply, Failure> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match command {
        "start" => {
            let hint =
                "/ralph:start TASK [--max-hours N] [--max-iterations N] …; /ralph:help shows all flags";
            let request = StartRequest::from_text(text).map_err(|wrong| Failure::usage(wrong).hint(hint))?;
            start::start(world, project, session, &request, true)
        }
        "stop" => {
            let scope = match words[..] {
                [] => stop::Scope::Session(session.to_owned()),
                ["--all"] => stop::Scope::All,
                _ => return Err(unexpected(text, "/ralph:stop [--all]")),
            };
            Ok(stop::stop(world, project, &scope, Some(session))?.into())
        }
        "status" => match words[..] {
            [] => Ok(status::gather(world, project, Some(session))?.human(Paint::new(false)).into()),
            _ => Err(unexpected(text, "/ralph:status")),
        },
        "config" => {
            let key = words.first().copied();
            let value = text.trim().strip_prefix(key.unwrap_or_default()).map(str::trim);
            let value = value.filter(|value| !value.is_empty());
            let unset = value == Some("--unset");
            Ok(config::run(world, project, config::Request { key, value, unset, ..Default::default() })?
                .into())
        }
        "encourage" | "forbid" => {
            let list = if command == "encourage" { List::Encouraged } else { List::Forbidden };
            let request = guidance::Request::from_text(list, text)?;
            Ok(guidance::run(world, project, Some(session), &request, false)?.into())
        }
        "scan" => {
            let least = match words[..] {
                [] => Some(Severity::Low),
                ["--severity", name] => Severity::named(name),
                [flag] => flag.strip_prefix("--severity=").and_then(Severity::named),
                _ => None,
            };
            let least =
                least.ok_or_else(|| unexpected(text, "/ralph:scan [--severity low|medium|high|critical]"))?;
            let plain = |scan: &_, waived: &[String]| view::scan::human(scan, waived, Paint::new(false));
            Ok(scan::run(world, project, least, plain).0.into())
        }
        _ => Ok(help::text().into()),
    }
}

fn unexpected(text: &str, usage: &str) -> Failure {
    Failure::usage(format!("unexpected argument: '{}'", clean::excerpt(text, 60)))
        .hint(format!("use {usage}"))
}

/// Returns what the command file shows the agent: what the hook left for it or, if the client has no such hook, how to
/// pass the text to us without a shell reading it.
pub fn relay(call: &Invocation) -> Result<String, Failure> {
    let (command, session) = (named(call)?, call.session().unwrap_or_default());
    if let Some(text) = handoff::take(&call.world, session, command) {
        return Ok(text);
    }
    let program = std::env::current_exe().map_or_else(|_| "ralph".into(), |path| path.display().to_string());
    let marker = format!("RALPH_{:016X}", world::unique() as u64);
    Ok(format!(
        "Claude Code did not pass the command's text to Ralph. Pass it yourself: run exactly this with the Bash tool, \
         with the text after ARGUMENTS below inserted unchanged between the two markers (or nothing, if there is \
         none):\n\n\
         \"{program}\" slash {command} --session {session} <<'{marker}'\n{marker}\n\n\
         Then show the user the output. If it gives you a task, do it."
    ))
}
