//! A readable account of what an agent said and did. `ralph logs`, the monitor and the report show it.

use crate::core::time::Stamp;

/// One thing that the agent said or did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentLogEntry {
    /// When, as far as its source tells.
    pub at: Option<Stamp>,
    pub kind: EntryKind,
    /// Without controls and bounded; a tool in one line.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// The agent's own words.
    Said,
    /// A tool that the agent called, with what it was called for.
    Tool,
    /// A tool that failed or was denied, with its own words.
    ToolFailed,
    /// What the agent was told: a prompt, guidance, an answer.
    Told,
    /// What the client or its service reported: a retry, a limit, an error, the result of an agent that failed.
    Reported,
    /// The result of an agent that did not fail.
    Finished,
}
