//! What a command can fail with: the message, the way out, and the exit code.

use crate::core::clean;
use std::fmt;

/// Exit codes, in one place. 2 is free for BLOCKED and for the client's "block", so it is no error here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command was understood and refused.
    Refused = 1,
    Usage = 64,
    /// A program we need is not there.
    Unavailable = 69,
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

    pub fn unavailable(message: impl Into<String>) -> Self {
        Failure { exit: Exit::Unavailable, message: message.into(), hint: None }
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
        Failure { exit: Exit::Internal, message: format!("{error:#}"), hint: None }
    }
}

impl From<crate::store::state::StateError> for Failure {
    fn from(error: crate::store::state::StateError) -> Self {
        Failure { exit: Exit::Internal, message: error.to_string(), hint: None }
    }
}
