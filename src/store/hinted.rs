//! An error that says what to do about it. A command shows the hint apart from the error.

use std::fmt;

#[derive(Debug)]
pub struct Hinted {
    what: String,
    pub hint: String,
}

impl Hinted {
    pub fn error(what: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Hinted { what: what.into(), hint: hint.into() })
    }
}

impl fmt::Display for Hinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.hint)
    }
}

impl std::error::Error for Hinted {}
