//! What a command can fail with: the message, the way out, and the exit code.

use crate::core::clean;
use std::fmt;

/// Exit codes, in one place. 2 is free for BLOCKED and for the client's "block", so it is no error here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command was understood and refused. `ralph run` says so where a limit is reached.
    Refused = 1,
    /// `ralph run` was refused because a question waits for its answer.
    Undecided = 3,
    /// `ralph run` was refused because the circuit breaker has tripped.
    Tripped = 4,
    Usage = 64,
    /// A program we need is not there.
    Unavailable = 69,
    /// An error, or something in the way of a run.
    Internal = 70,
}

#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    pub message: String,
    pub hint: Option<String>,
}

impl Failure {
    pub fn usage(message: impl Into<String>) -> Self {
        Failure { exit: Exit::Usage, message: message.into(), hint: None }
    }

    pub fn refused(message: impl Into<String>) -> Self {
        Failure { exit: Exit::Refused, message: message.into(), hint: None }
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Failure { exit: Exit::Internal, message: message.into(), hint: None }
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Failure { exit: Exit::Unavailable, message: message.into(), hint: None }
    }

    pub fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Messages may quote what a file or a session says.
        write!(f, "ralph: {}", clean::block(&self.message))?;
        match &self.hint {
            Some(hint) => write!(f, "\n{}", clean::block(hint)),
            None => Ok(()),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure::internal(format!("{error:#}"))
    }
}

impl From<crate::store::state::StateError> for Failure {
    fn from(error: crate::store::state::StateError) -> Self {
        Failure::internal(error.to_string())
    }
}
