//! Why a loop ended: one enum for hook, history, status and exit codes.

use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Complete,
    MaxIterations,
    MaxRuntime,
    MaxCost,
    Blocked,
    Decide,
    Stuck,
    Circuit,
    Stopped,
    Killed,
    UsageLimit,
    Interrupted,
    Error,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Complete => "complete",
            Outcome::MaxIterations => "max-iterations",
            Outcome::MaxRuntime => "max-runtime",
            Outcome::MaxCost => "max-cost",
            Outcome::Blocked => "blocked",
            Outcome::Decide => "decide",
            Outcome::Stuck => "stuck",
            Outcome::Circuit => "circuit",
            Outcome::Stopped => "stopped",
            Outcome::Killed => "killed",
            Outcome::UsageLimit => "usage-limit",
            Outcome::Interrupted => "interrupted",
            Outcome::Error => "error",
        }
    }

    /// The ending in a person's words, to stand before its reason.
    pub fn words(self) -> &'static str {
        match self {
            Outcome::Complete => "task complete",
            Outcome::MaxIterations => "iteration limit reached",
            Outcome::MaxRuntime => "runtime limit reached",
            Outcome::MaxCost => "cost limit reached",
            Outcome::Blocked => "blocked, a person is needed",
            Outcome::Decide => "waiting for a decision",
            Outcome::Stuck => "stuck",
            Outcome::Circuit => "circuit breaker tripped",
            Outcome::Stopped => "stopped by you",
            Outcome::Killed => "stopped by the kill switch",
            Outcome::UsageLimit => "usage limit reached",
            Outcome::Interrupted => "interrupted",
            Outcome::Error => "ended by an error",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
