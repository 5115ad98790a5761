//! How a command fails: what failed, what to do about it, and the exit code.

use crate::core::outcome::Exit;
use crate::core::text::clean;
use std::fmt::{self, Display};

#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    pub message: String,
    pub hint: Option<String>,
}

impl Failure {
    /// Takes a text, or an error with all its causes.
    fn new(exit: Exit, message: impl Display) -> Self {
        Failure { exit, message: format!("{message:#}"), hint: None }
    }

    pub fn usage(message: impl Display) -> Self {
        Failure::new(Exit::Usage, message)
    }

    pub fn refused(message: impl Display) -> Self {
        Failure::new(Exit::Failed, message)
    }

    pub fn internal(message: impl Display) -> Self {
        Failure::new(Exit::Internal, message)
    }

    pub fn unavailable(message: impl Display) -> Self {
        Failure::new(Exit::Unavailable, message)
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

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Messages may quote untrusted text.
        write!(f, "error: {}", clean::block(&self.message))?;
        self.hint.iter().try_for_each(|hint| write!(f, "\nhint: {}", clean::block(hint)))
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure::internal(error)
    }
}

impl From<crate::store::state::StateError> for Failure {
    fn from(error: crate::store::state::StateError) -> Self {
        Failure::internal(error)
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
