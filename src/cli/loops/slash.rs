//! Slash commands: the commands of the command line, from free text that no shell has read.

use super::{guidance, scan, start, status, stop};
use crate::cli::failure::Failure;
use crate::cli::help;
use crate::cli::setup::config;
use crate::core::guidance::List;
use crate::core::guidance::finding::Severity;
use crate::core::request::StartRequest;
use crate::core::text::clean;
use crate::store::project::Project;
use crate::store::user::handoff;
use crate::store::world::{self, World};
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
            let request = match words[..] {
                [] => config::Request::Show,
                [key] => config::Request::ShowOne(key.into()),
                [key, "--unset"] => config::Request::Unset { key: key.into(), user: false },
                [key, ..] => {
                    let value = text.trim_start().strip_prefix(key).unwrap_or("").trim();
                    config::Request::Set { key: key.into(), value: value.into(), user: false }
                }
            };
            Ok(config::run(world, project, &request, false)?.into())
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
            Ok(scan::run(world, project, least, scan::Format::Human, false)?.0.into())
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
pub fn relay(world: &World, session: &str, command: &str) -> String {
    if let Some(text) = handoff::take(world, session, command) {
        return text;
    }
    let program = std::env::current_exe().map_or_else(|_| "ralph".into(), |path| path.display().to_string());
    let marker = format!("RALPH_{:016X}", world::unique() as u64);
    format!(
        "Claude Code did not pass the command's text to Ralph. Pass it yourself: run exactly this with the Bash tool, \
         with the text after ARGUMENTS below inserted unchanged between the two markers (or nothing, if there is \
         none):\n\n\
         \"{program}\" slash {command} --session {session} <<'{marker}'\n{marker}\n\n\
         Then show the user the output. If it gives you a task, do it."
    )
}
