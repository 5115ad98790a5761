//! Slash commands: the same commands as on the command line, from one line of free text that has never
//! been near a shell.

use super::failure::Failure;
use super::{config, guidance, help, scan, start, status, stop};
use crate::core::finding::Severity;
use crate::core::guidance::List;
use crate::core::request::StartRequest;
use crate::store::handoff;
use crate::store::project::Project;
use crate::store::world::{self, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Start,
    Stop,
    Status,
    Encourage,
    Forbid,
    Config,
    Scan,
    Help,
}

pub const COMMANDS: [Command; 8] = [
    Command::Start,
    Command::Stop,
    Command::Status,
    Command::Encourage,
    Command::Forbid,
    Command::Config,
    Command::Scan,
    Command::Help,
];

impl Command {
    pub fn name(self) -> &'static str {
        match self {
            Command::Start => "start",
            Command::Stop => "stop",
            Command::Status => "status",
            Command::Encourage => "encourage",
            Command::Forbid => "forbid",
            Command::Config => "config",
            Command::Scan => "scan",
            Command::Help => "help",
        }
    }

    pub fn named(name: &str) -> Option<Command> {
        COMMANDS.into_iter().find(|command| command.name() == name)
    }
}

/// What the user is shown, and what the agent is to do where the command asks for work.
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
    command: Command,
    text: &str,
) -> Result<Reply, Failure> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match command {
        Command::Start => {
            let request = StartRequest::from_text(text).map_err(|wrong| {
                Failure::usage(wrong)
                    .hint("/ralph:start TASK [--max-hours N] [--max-iterations N] …; /ralph:help shows all.")
            })?;
            let started = start::start(world, project, session, &request, true)?;
            Ok(Reply { user: started.user, agent: Some(started.agent) })
        }
        Command::Stop => {
            let scope = match words[..] {
                [] => stop::Scope::Session(session.to_owned()),
                ["--all"] => stop::Scope::All,
                _ => return Err(unexpected(text, "/ralph:stop [--all]")),
            };
            Ok(stop::stop(world, project, &scope, Some(session))?.into())
        }
        Command::Status => match words[..] {
            [] => Ok(status::text(world, project, Some(session), false)?.into()),
            _ => Err(unexpected(text, "/ralph:status")),
        },
        Command::Config => {
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
        Command::Encourage | Command::Forbid => {
            let list = if command == Command::Encourage { List::Encouraged } else { List::Forbidden };
            let request = guidance::Request::give(list, text)?;
            Ok(guidance::run(world, project, Some(session), &request, false)?.into())
        }
        Command::Scan => {
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
        Command::Help => Ok(help::text().into()),
    }
}

fn unexpected(text: &str, usage: &str) -> Failure {
    let text = crate::core::clean::excerpt(text, 60);
    Failure::usage(format!("'{text}' is not understood")).hint(format!("Usage: {usage}"))
}

/// What the command file shows the agent: the hook's hand-off, or on a client without that hook how to
/// pass the text on without a shell reading it.
pub fn relay(world: &World, session: &str, command: Command) -> String {
    if let Some(text) = handoff::take(world, session, command.name()) {
        return text;
    }
    let program = std::env::current_exe().map_or_else(|_| "ralph".into(), |path| path.display().to_string());
    let mark = format!("RALPH_{:016X}", world::unique() as u64);
    format!(
        "This client did not pass the command's text to Ralph. Pass it on yourself: run exactly this with the Bash \
         tool, with the text that follows ARGUMENTS below put in, unchanged, between the two marks (nothing between \
         them where there is none):\n\n\
         \"{program}\" slash {} --session {session} <<'{mark}'\n{mark}\n\n\
         Then show the user what it printed and, where it gives you a task, do it.",
        command.name()
    )
}
