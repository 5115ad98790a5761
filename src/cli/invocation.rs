//! A command as it was typed: where, in which session, and with which arguments.

use super::{Failure, Project, World};
use crate::core::outcome::Exit;
use crate::core::request::StartRequest;
use crate::core::settings::KEYS;
use crate::core::time::duration;
use crate::store::project::git;
use crate::store::state;
use crate::store::user::{armed, history};
use crate::store::world::Relative;
use clap::ArgMatches;
use std::ffi::OsString;
use std::io::Read;

const MAX_STDIN_BYTES: u64 = 16 << 20;

/// What a command prints, and its exit code.
pub type CommandOutput = Result<(String, Exit), Failure>;

pub struct Invocation<'m> {
    pub world: World,
    pub project: Project,
    pub command: &'m str,
    matches: &'m ArgMatches,
}

impl<'m> Invocation<'m> {
    pub fn new(matches: &'m ArgMatches) -> Result<Self, Failure> {
        let world = World::from_env().map_err(bad_environment)?;
        let (command, matches) = matches.subcommand().unwrap_or(("help", matches));
        let project = Project::find(&world, None);
        let mut invocation = Invocation { world, project, command, matches };
        if let Some(session) = invocation.value("session") {
            invocation.world.session_id = Some(session.to_owned());
        }
        // These work on the files of the checkout.
        if !matches!(command, "run" | "init" | "archive")
            && let Some(project) = project_of_loop(&invocation.world, &invocation.project)
        {
            invocation.project = project;
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

fn bad_environment(error: anyhow::Error) -> Failure {
    match error.is::<Relative>() {
        true => Failure::usage(error).hint("give the whole path, or unset the variable"),
        false => Failure::from(error).exit(Exit::Usage),
    }
}

/// Returns the project of this session's loop, if the agent has moved from there into a linked worktree. Claude Code
/// tells its hooks where it was launched, but not the programs that the agent runs. In a terminal it is the project of
/// the loop whose agent works in this worktree.
fn project_of_loop(world: &World, here: &Project) -> Option<Project> {
    let folder = &world.working_dir;
    if world.launch_dir.is_some() || !git::top(folder).is_some_and(git::is_linked_worktree) {
        return None;
    }
    let is_left = |project: &Project| project.work_tree(folder) != *project;
    let Some(session) = world.session_id.as_deref() else {
        let works_here = |project: &Project| {
            let name = project.name_of(&project.work_tree(folder));
            let document = state::peek(project).ok().flatten().unwrap_or_default();
            let loops = armed::load_all(world, project, &document).loops;
            loops.iter().any(|(_, run)| run.is_alive() && run.session.work_tree == name)
        };
        return armed::projects(world).into_iter().filter(is_left).find(works_here);
    };
    let is_armed = |project: &Project| armed::exists(world, project, session).unwrap_or(false);
    if let Some(project) = armed::projects(world).into_iter().filter(is_left).find(is_armed) {
        return Some(project);
    }
    let has_ended = |project: &Project| {
        let run = state::peek(project).ok().flatten().and_then(|document| document.loop_of(session));
        run.is_some_and(|run| history::contains(world, project, &run.run_id).unwrap_or(false))
    };
    let mut others = history::projects(world).into_iter().filter(is_left);
    if is_armed(here) { None } else { others.find(has_ended) }
}

/// Returns the arguments as they were meant: a duration that the shell made several words of is one value
/// (`--max-hours 1h 30m`).
pub fn arguments(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let flags = || KEYS.iter().filter(|key| key.kind.is_duration()).flat_map(|key| [key.flag, key.run_flag]);
    let takes_duration = |name: &str| name == "for" || flags().flatten().any(|flag| flag == name);
    let mut arguments: Vec<OsString> = Vec::new();
    // The last word of a duration, while the next word may continue it.
    let mut last = String::new();
    for argument in given {
        let word = argument.to_string_lossy().into_owned();
        if let Some(value) = arguments.last_mut().filter(|_| duration::continues(&last, &word)) {
            value.push(&word);
            last = word;
            continue;
        }
        let is_text = arguments.iter().any(|argument| argument == "--");
        let flag = arguments.last().and_then(|before| before.to_str()?.strip_prefix("--"));
        let is_value = flag.is_some_and(takes_duration)
            || (arguments.len() == 3 && arguments[1] == "config" && flag.is_none());
        last = match word.split_once('=') {
            _ if is_text => String::new(),
            _ if is_value => word,
            Some((flag, value)) if flag.strip_prefix("--").is_some_and(takes_duration) => value.to_owned(),
            _ => String::new(),
        };
        arguments.push(argument);
    }
    arguments
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_of_several_words_is_one_value() {
        for (line, expected) in [
            ("ralph start --max-hours 1h 30m do x", "ralph start --max-hours 1h30m do x"),
            ("ralph start do x --max-hours=1h 30m 10s", "ralph start do x --max-hours=1h30m10s"),
            ("ralph run --timeout 1H 30M x", "ralph run --timeout 1H30M x"),
            ("ralph run --heartbeat-interval 1m 30s x", "ralph run --heartbeat-interval 1m30s x"),
            ("ralph-guidance forbid --for 1h 30m do x", "ralph-guidance forbid --for 1h30m do x"),
            ("ralph config loop_limits.max_hours 1h 30m", "ralph config loop_limits.max_hours 1h30m"),
            ("ralph start --max-hours 1h 2d old", "ralph start --max-hours 1h 2d old"),
            ("ralph start --max-iterations 1h 30m x", "ralph start --max-iterations 1h 30m x"),
            ("ralph start -- --max-hours 1h 30m", "ralph start -- --max-hours 1h 30m"),
            ("ralph start wait 1h 30m", "ralph start wait 1h 30m"),
        ] {
            let given = line.split(' ').map(OsString::from);
            let expected: Vec<OsString> = expected.split(' ').map(OsString::from).collect();
            assert_eq!(arguments(given), expected, "{line}");
        }
    }
}
