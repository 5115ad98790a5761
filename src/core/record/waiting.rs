//! What a loop waits for.

use super::QueuedPrompt;
use crate::core::time::Stamp;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    #[serde(rename = "for")]
    pub what: WaitingFor,
    pub since: Stamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitingFor {
    /// A prompt or command of the user, which runs first.
    User(QueuedPrompt),
    /// The client compacts the context, from which the agent has handed over.
    Compaction,
    /// Work in the background; the client wakes the session when it ends.
    Background(BackgroundWait),
    /// A permission that the client asks for.
    Permission(BackgroundWait),
    /// The answer to a question in the client's own dialog.
    Question(BackgroundWait),
    /// The loop waits until then: for the usage limit to reset,
    UsageLimit(Stamp),
    /// for the runner's limit of calls,
    Calls(Stamp),
    /// for a service that fails,
    Service(Stamp),
    /// or for the user's answer from a notification service.
    Answer(Stamp),
}

/// What is waited for, in words, and until when at the latest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackgroundWait {
    pub what: String,
    pub until: Option<Stamp>,
}

impl WaitingFor {
    /// Returns the word for scripts.
    pub fn name(&self) -> &'static str {
        match self {
            WaitingFor::User(_) => "user",
            WaitingFor::Compaction => "compaction",
            WaitingFor::Background(_) => "background",
            WaitingFor::UsageLimit(_) => "usage-limit",
            WaitingFor::Calls(_) => "calls",
            WaitingFor::Service(_) => "service",
            WaitingFor::Permission(_) => "permission",
            WaitingFor::Answer(_) | WaitingFor::Question(_) => "answer",
        }
    }

    /// Returns when it ends, if that is known.
    pub fn until(&self) -> Option<Stamp> {
        match self {
            WaitingFor::User(_) | WaitingFor::Compaction => None,
            WaitingFor::Background(awaited)
            | WaitingFor::Permission(awaited)
            | WaitingFor::Question(awaited) => awaited.until,
            WaitingFor::UsageLimit(until)
            | WaitingFor::Calls(until)
            | WaitingFor::Service(until)
            | WaitingFor::Answer(until) => Some(*until),
        }
    }

    /// Returns what is waited for in words, if it has any of its own.
    pub fn what(&self) -> Option<&str> {
        match self {
            WaitingFor::User(queued) => Some(&queued.text),
            WaitingFor::Background(awaited)
            | WaitingFor::Permission(awaited)
            | WaitingFor::Question(awaited) => Some(&awaited.what),
            _ => None,
        }
    }

    /// Returns whether the client shows a dialog for it.
    pub fn is_dialog(&self) -> bool {
        matches!(self, WaitingFor::Permission(_) | WaitingFor::Question(_))
    }
}
