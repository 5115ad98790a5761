//! The seam between the runner and the agent program.
//!
//! An agent says what to start, how its output reads as [`AgentEvent`]s, and what it can do. Everything else in the
//! runner knows only this module. To add an agent, write a module here with a type that implements [`AgentProgram`],
//! and add a variant to [`Agent`] with its line in [`Agent::program`]. The flags that choose it are in
//! `cli/run/run_args.rs`.

mod claude;
mod command;
mod failure;
mod report;

pub use claude::{Claude, flags_that_allow};
pub use command::ShellCommand;
pub use failure::AgentFailure;
pub use report::AgentReport;

use super::process::target::Target;
use crate::core::decide::figures::Window;
use crate::core::record::Usage;
use crate::store::process::lookup;
use crate::store::process::program::{self, ProgramEnd};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

/// The agents a run can use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Agent {
    Claude(Claude),
    Command(ShellCommand),
}

impl Agent {
    /// Returns the flags with which a run continues that was denied these tools. They replace the run's own.
    pub fn flags_to_allow(&self, denied: &[String]) -> String {
        let allowed = match self {
            Agent::Claude(claude) => &claude.allowed_tools[..],
            Agent::Command(_) => &[],
        };
        let allowed = allowed.iter().map(|tool| claude::flag_that_allows(tool));
        allowed.chain([flags_that_allow(denied)]).collect::<Vec<_>>().join(" ")
    }

    pub fn program(&self) -> &dyn AgentProgram {
        match self {
            Agent::Claude(claude) => claude,
            Agent::Command(command) => command,
        }
    }
}

pub trait AgentProgram {
    /// Returns its name for messages.
    fn name(&self) -> String;

    fn abilities(&self) -> Abilities;

    /// Returns the program and its arguments. `session` is the conversation to continue.
    fn command_line(&self, session: Option<&str>) -> Vec<String>;

    /// Checks, before a run begins, that the program is there and can be used.
    fn check(&self, target: &Target, project: &Path) -> Result<(), Unavailable>;

    /// Returns how lines begin that are only signs of life: they are not logged, because what they say comes again.
    fn unlogged(&self) -> &'static [u8] {
        b""
    }

    /// Returns a reader for the output of one iteration. Output that will not be `shown` need not be read.
    fn reader(&self, shown: bool) -> Box<dyn OutputReader>;
}

/// What an agent can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Continues a conversation by its id.
    pub resumes: bool,
    /// Reports its tool calls. An agent that does not is never taken for idle.
    pub reports_tools: bool,
}

/// Reads the output of one iteration, in bounded memory.
pub trait OutputReader {
    fn stdout(&mut self, chunk: &[u8], emit: &mut dyn FnMut(AgentEvent<'_>));

    fn stderr(&mut self, chunk: &[u8], emit: &mut dyn FnMut(AgentEvent<'_>));

    /// The output is complete. `failed` says that the program exited with an error.
    fn finish(&mut self, failed: bool, emit: &mut dyn FnMut(AgentEvent<'_>));
}

/// Something an agent's output says.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent<'a> {
    /// The id by which the conversation can be continued; `None` if it can no longer be.
    Session(Option<String>),
    /// A message of the agent.
    Text(String),
    /// Printed lines that are not known to be a message.
    Output(Cow<'a, str>),
    ToolStarted {
        id: String,
        name: String,
        summary: String,
        /// Its success is an edit of a file.
        edits: bool,
    },
    ToolEnded {
        id: String,
        failed: bool,
    },
    /// This many tasks run in the background.
    Background(usize),
    /// The agent could not reach its model and tries again.
    Retry {
        attempt: u64,
        status: Option<u16>,
    },
    /// Tokens of one turn, and the cost of the conversation so far.
    Usage(Usage),
    /// How much of the user's plan is used.
    Quota(Vec<Window>),
    /// How many tokens were in the context of an answer, or how many it holds.
    Context {
        tokens: Option<u64>,
        window: Option<u64>,
    },
    /// Calls of these tools were denied.
    Denied(Vec<String>),
    /// The turn is over, with this as its last message if it went well.
    Result(Option<String>),
    /// The agent could not work, for this reason and in these words of its own.
    Failed(AgentFailure, String),
}

/// A program that a run needs and cannot use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    pub message: String,
    pub hint: String,
}

impl Unavailable {
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Unavailable {
        Unavailable { message: message.into(), hint: hint.into() }
    }
}

/// How long a program may take to answer a question about itself on a slow machine.
pub const MAX_ANSWER_WAIT: Duration = Duration::from_secs(60);

/// Returns what a program prints about itself. `hint` says what to do if it is not installed or fails.
pub fn ask(program: &str, args: &[&str], limit: Duration, hint: &str) -> Result<String, Unavailable> {
    let mut command = lookup::command(program);
    command.args(args);
    let output = program::run(command, b"", limit);
    let call = format!("{program} {}", args.join(" "));
    match &output.ended {
        ProgramEnd::Exit(0) => Ok(output.stdout),
        ProgramEnd::NotStarted(why) => Err(Unavailable::new(format!("{program} was not found: {why}"), hint)),
        ProgramEnd::TimedOut(limit) => Err(Unavailable::new(
            format!("{call}: no answer within {} s", limit.as_secs()),
            "Run it by hand and see what it waits for.",
        )),
        _ => Err(Unavailable::new(format!("{call} failed: {}", output.complaint()), hint)),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_answer_is_named_with_a_hint() {
        let failure = ask("sleep", &["600"], Duration::from_millis(50), "Install it.").unwrap_err();
        assert!(failure.message.starts_with("sleep 600: no answer within"), "{failure:?}");
        assert!(failure.hint.contains("by hand"), "{failure:?}");
        let failure = ask("/no/such/program", &[], Duration::from_secs(20), "Install it.").unwrap_err();
        assert!(failure.message.starts_with("/no/such/program was not found"), "{failure:?}");
        assert_eq!(failure.hint, "Install it.");
    }
}
