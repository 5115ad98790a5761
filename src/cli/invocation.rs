//! A command as it was typed: where, in which session, and with which arguments.

use super::{Failure, Project, World};
use crate::core::outcome::Exit;
use crate::core::request::StartRequest;
use clap::ArgMatches;
use std::io::Read;

const MAX_STDIN_BYTES: u64 = 16 << 20;

/// What a command prints, and its exit code.
pub type Answer = Result<(String, Exit), Failure>;

pub struct Invocation<'m> {
    pub world: World,
    pub project: Project,
    pub command: &'m str,
    matches: &'m ArgMatches,
}

impl<'m> Invocation<'m> {
    pub fn new(matches: &'m ArgMatches) -> Result<Self, Failure> {
        let world = World::from_env().map_err(Failure::usage)?;
        let (command, matches) = matches.subcommand().unwrap_or(("help", matches));
        let project = Project::find(&world, None);
        let mut invocation = Invocation { world, project, command, matches };
        if let Some(session) = invocation.value("session") {
            invocation.world.session_id = Some(session.to_owned());
        }
        Ok(invocation)
    }

    /// Returns the session that was named, or the one that this process runs in.
    pub fn session(&self) -> Option<&str> {
        self.world.session_id.as_deref()
    }

    /// Returns whether a flag was given; a command without this flag was not given it.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.matches.try_get_one::<bool>(name), Ok(Some(true)))
    }

    pub fn value(&self, name: &str) -> Option<&'m str> {
        self.matches.try_get_one::<String>(name).ok().flatten().map(String::as_str)
    }

    /// Returns a value of another type than text, which clap has parsed.
    pub fn parsed<T: Clone + Send + Sync + 'static>(&self, name: &str) -> Option<T> {
        self.matches.get_one::<T>(name).cloned()
    }

    /// Returns the words given for an argument.
    pub fn words(&self, name: &str) -> Vec<String> {
        self.matches.get_many::<String>(name).unwrap_or_default().cloned().collect()
    }

    /// Returns the words given for an argument as one text; `-` alone reads stdin.
    pub fn text_or_stdin(&self, name: &str) -> Result<String, Failure> {
        let words = self.words(name);
        if words == ["-"] { stdin() } else { Ok(words.join(" ")) }
    }

    /// Returns a start with the values and switches that were given.
    pub fn start_request(
        &self,
        flags: impl Iterator<Item = &'static str>,
        switches: impl Iterator<Item = &'static str>,
    ) -> Result<StartRequest, Failure> {
        let mut request = StartRequest::default();
        for flag in flags {
            for value in self.words(flag) {
                request.set(flag, Some(&value)).map_err(Failure::usage)?;
            }
        }
        for switch in switches.filter(|switch| self.flag(switch)) {
            request.set(switch, None).map_err(Failure::usage)?;
        }
        Ok(request)
    }
}

pub fn stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MAX_STDIN_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::usage(format!("could not read stdin: {error}")))?;
    if bytes.len() as u64 > MAX_STDIN_BYTES {
        return Err(Failure::usage(format!("stdin is larger than {} MB", MAX_STDIN_BYTES >> 20)));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
