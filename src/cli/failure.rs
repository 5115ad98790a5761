//! How a command fails: what failed, what to do about it, and the exit code.

use crate::core::outcome::Exit;
use crate::core::text::clean;
use std::fmt;

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
        Failure { exit: Exit::Failed, message: message.into(), hint: None }
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
        // Messages may quote untrusted text.
        write!(f, "error: {}", clean::block(&self.message))?;
        self.hint.iter().try_for_each(|hint| write!(f, "\nhint: {}", clean::block(hint)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_failed_and_then_what_to_do() {
        let failure = Failure::usage("unknown setting: \u{1b}[2Jx").hint("see `ralph config`");
        assert_eq!(failure.to_string(), "error: unknown setting: [2Jx\nhint: see `ralph config`");
        assert_eq!(Failure::refused("no loop").to_string(), "error: no loop");
    }
}
