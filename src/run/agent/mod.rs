//! The seam between the runner and the agent program.
//!
//! An agent says what to start, how its output reads as [`AgentEvent`]s, what it can do, and what of it a user can
//! allow. Nothing outside this folder knows one by name, but `cli/run/run_args.rs` with the flags that choose it. To add
//! an agent, write a module here with a type that implements [`AgentProgram`], and add a variant to [`Agent`] with its
//! line in each `match` here.

mod claude;
mod command;
mod failure;
mod report;

pub use claude::Claude;
pub use command::ShellCommand;
pub use failure::AgentFailure;
pub use report::AgentReport;

use super::process::target::Target;
use crate::claude::agent_log;
use crate::core::decide::figures::Window;
use crate::core::event::agent_log::{AgentLogEntry, EntryKind};
use crate::core::record::Usage;
use crate::store::process::lookup;
use crate::store::process::program::{self, ProgramEnd};
use crate::store::project::Project;
use crate::store::world::World;
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
    pub fn program(&self) -> &dyn AgentProgram {
        match self {
            Agent::Claude(claude) => claude,
            Agent::Command(command) => command,
        }
    }

    /// Adds rules for tools that are allowed. Returns false for an agent that has only its own permissions.
    pub fn allow(&mut self, rules: &[String]) -> bool {
        match self {
            Agent::Claude(claude) => claude.allow(rules),
            Agent::Command(_) => return false,
        }
        true
    }
}

/// Returns what a line of an iteration's log says, whichever agent wrote it.
pub fn log_entries(line: &[u8]) -> Vec<AgentLogEntry> {
    agent_log::of_stream(line).unwrap_or_else(|| {
        let text = agent_log::text(&String::from_utf8_lossy(line));
        if text.is_empty() {
            Vec::new()
        } else {
            vec![AgentLogEntry { at: None, kind: EntryKind::Said, text }]
        }
    })
}

pub trait AgentProgram {
    /// Returns its name for messages.
    fn name(&self) -> String;

    fn abilities(&self) -> Abilities;

    /// Returns the program and its arguments. `session` is the conversation to continue.
    fn command_line(&self, session: Option<&str>) -> Vec<String>;

    /// Checks, before a run begins, that the program is there and can be used.
    fn check(&self, target: &Target, project: &Path) -> Result<(), Unavailable>;

    /// Returns what the user should know before a run in which the agent may do too little.
    fn warning(&self, _: &World, _: &Project, _: &Target) -> Option<String> {
        None
    }

    /// Returns the flags of `ralph run` that let it use these tools; none if it has only its own permissions.
    fn flags_to_allow(&self, _tools: &[String]) -> String {
        String::new()
    }

    /// Returns the flags with which a run continues that was denied these tools. They replace the run's own.
    fn flags_to_continue(&self, denied: &[String]) -> String {
        self.flags_to_allow(denied)
    }

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

    /// Reads what is left when the output is complete. `failed` says that the program exited with an error.
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
            "run it by hand and see what it waits for",
        )),
        _ => Err(Unavailable::new(format!("{call} failed: {}", output.complaint()), hint)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_of_any_agent_reads_as_what_it_printed() {
        for (line, expected) in [
            ("done, 3 tests pass", Some("done, 3 tests pass")),
            ("\u{1b}[31mred\u{1b}[0m", Some("red")),
            (r#"{"type":"item.completed","item":{}}"#, Some(r#"{"type":"item.completed","item":{}}"#)),
            (r#"{"type":"system","subtype":"init"}"#, None),
            ("{ not JSON", Some("{ not JSON")),
            ("  ", None),
        ] {
            let said = log_entries(line.as_bytes());
            let said: Vec<_> = said.iter().map(|entry| (entry.kind, entry.text.as_str())).collect();
            assert_eq!(
                said,
                expected.into_iter().map(|text| (EntryKind::Said, text)).collect::<Vec<_>>(),
                "{line}"
            );
        }
        assert_eq!(log_entries(br#"{"type":"result","is_error":false}"#)[0].kind, EntryKind::Finished);
        assert_eq!(log_entries(br#"{"type":"result","is_error":true}"#)[0].kind, EntryKind::Reported);
    }

    #[test]
    #[cfg(unix)]
    fn a_program_that_does_not_answer_is_named_with_a_hint() {
        let failure = ask("sleep", &["600"], Duration::from_millis(50), "Install it.").unwrap_err();
        assert!(failure.message.starts_with("sleep 600: no answer within"), "{failure:?}");
        assert!(failure.hint.contains("by hand"), "{failure:?}");
        let failure = ask("/no/such/program", &[], Duration::from_secs(20), "Install it.").unwrap_err();
        assert!(failure.message.starts_with("/no/such/program was not found"), "{failure:?}");
        assert_eq!(failure.hint, "Install it.");
    }
}
