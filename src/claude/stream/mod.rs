//! What Claude Code prints with `-p --output-format stream-json --verbose`: one JSON object a line.
//!
//! [`Lines`] cuts the pipe into lines, [`events`] reads one of them, [`Tally`] adds them up. Every field may
//! be absent, null or of an odd type, and new types come with every version: what is not known is
//! [`Event::Other`], and still a sign of life. Tool results may be megabytes and are passed over unread.

use crate::core::record::Usage;
use crate::core::time::Stamp;

mod lines;
mod parse;
mod tally;

pub use lines::{LONGEST, Line, Lines};
pub use parse::events;
pub use tally::{Failure, Tally, Tool};

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A turn begins. Where background work wakes the agent there are several in one run.
    Init {
        session_id: String,
        model: String,
        tools: usize,
        plugin_errors: Vec<String>,
    },
    /// What the agent itself says: not its sub-agents, and not the client in its place. As it came.
    Text(String),
    /// The agent or one of its sub-agents called a tool. Name and summary may be shown.
    ToolStarted {
        id: String,
        name: String,
        summary: String,
    },
    ToolEnded {
        id: String,
        failed: bool,
    },
    /// So many tasks go on in the background. The client waits for them, silent, also after a result.
    Background {
        running: usize,
    },
    /// The client could not reach the model and will try again after the delay.
    Retry {
        attempt: u64,
        delay_ms: i64,
        error_status: Option<u16>,
    },
    RateLimit {
        status: Limit,
        resets_at: Option<Stamp>,
    },
    /// The client gave up: its own word for why, such as `billing_error`.
    ApiError {
        kind: String,
        status: Option<u16>,
    },
    Result(Box<Outcome>),
    /// A line that was too long to be read.
    Dropped,
    Other,
}

/// The state of the subscription's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Allowed,
    /// Near the limit, or beyond it at extra cost: the agent goes on.
    Warning,
    Rejected,
}

/// The client's account of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Also true where `subtype` says `success`: an error of the API is no error of the program.
    pub is_error: bool,
    pub subtype: String,
    pub api_error_status: Option<u16>,
    /// The client's own word for the error, such as `usage_limit_reached`.
    pub api_error: Option<String>,
    /// The agent's last message, or what went wrong.
    pub text: String,
    /// Of the whole session so far: earlier results and, where it was resumed, earlier runs included.
    pub cost_usd: Option<f64>,
    /// Of this turn alone.
    pub usage: Usage,
    pub turns: u64,
    pub session_id: Option<String>,
    pub permission_denials: usize,
}

impl Line<'_> {
    pub fn events(&self) -> Vec<Event> {
        match self {
            Line::Whole(text) => events(text),
            Line::Dropped => vec![Event::Dropped],
        }
    }
}
