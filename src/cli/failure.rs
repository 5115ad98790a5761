//! How a command fails: what failed, what to do about it, and the exit code.

use crate::core::outcome::Exit;
use crate::core::request::RequestError;
use crate::core::text::clean;
use crate::core::text::nearest::nearest;
use crate::store::hinted::Hinted;
use crate::store::state::{self, StateError};
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

    /// Adds what a mistyped word was probably meant to be, or else another hint.
    pub fn did_you_mean(self, meant: Option<&str>, otherwise: impl Into<String>) -> Self {
        match meant {
            Some(meant) => self.hint(format!("did you mean {meant}?")),
            None => self.hint(otherwise),
        }
    }

    /// Returns the failure of a flag that a command does not have.
    pub fn unknown_flag(flag: &str, flags: &[&'static str], otherwise: impl Into<String>) -> Self {
        Failure::usage(format!("unknown flag: {}", clean::excerpt(flag, 60)))
            .did_you_mean(nearest(flag, flags.iter().copied()), otherwise)
    }

    /// Returns the failure of a flag or an argument with a wrong value.
    pub fn invalid_value(of: &str, value: &str) -> Self {
        Failure::usage(format!("invalid value for {of}: '{}'", clean::excerpt(value, 60)))
    }

    /// Moves the hint with which the message ends to its own place.
    fn with_hint_of(mut self, hint: Option<String>) -> Self {
        let Some(hint) = hint else { return self };
        if let Some(message) = self.message.strip_suffix(&format!("; {hint}")) {
            self.message = message.to_owned();
        }
        self.hint(hint)
    }

    /// Adds a hint to a failure that has none.
    pub fn or_hint(self, hint: &str) -> Self {
        if self.hint.is_some() { self } else { self.hint(hint) }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Messages may quote untrusted text of any length.
        write!(f, "error: {}", clean::message(&self.message))?;
        self.hint.iter().try_for_each(|hint| write!(f, "\nhint: {}", clean::message(hint)))
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        let hinted = error.downcast_ref::<Hinted>().map(|hinted| hinted.hint.clone());
        let hint = hinted.or_else(|| hint_of(error.downcast_ref()?));
        Failure::internal(error).with_hint_of(hint)
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        Failure::usage(error.message).with_hint_of(error.hint.map(str::to_owned))
    }
}

impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        let hint = hint_of(&error);
        Failure::internal(error).with_hint_of(hint)
    }
}

fn hint_of(error: &StateError) -> Option<String> {
    match error {
        StateError::Newer(..) => Some(state::UPGRADE.into()),
        StateError::Other(error) => error.downcast_ref().map(|hinted: &Hinted| hinted.hint.clone()),
        StateError::Damaged(..) => None,
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
