//! What Claude Code prints with `-p --output-format stream-json --verbose`: one JSON object a line.
//!
//! [`Lines`] cuts the pipe into lines, [`events`] reads one of them. Every field may be absent, null or of an odd
//! type, and new types come with every version: what is not known is [`Event::Other`]. Tool results may be
//! megabytes and are skipped unread. Only `run::agent::claude` and `agent_log` know this module.

use crate::core::decide::figures::Window;
use crate::core::record::Usage;
use crate::core::time::Stamp;

mod lines;
mod parse;

pub use lines::Lines;
pub use parse::events;
pub(super) use parse::{rate_limit, summary};

/// Stands for a tool whose name is not usable.
pub const UNKNOWN_TOOL: &str = "an unknown tool";
/// How a line begins that holds a piece of a message (`--include-partial-messages`). The message follows as a whole.
pub const PARTIAL_LINE: &[u8] = br#"{"type":"stream_event","#;

#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// A turn begins. If background work wakes the agent there are several in one run.
    Init {
        session_id: Option<String>,
    },
    /// The agent's own words: not its sub-agents' and not the client's in its place.
    Text(String),
    /// The agent or one of its sub-agents called a tool. Name and summary are safe to show.
    ToolStarted {
        id: String,
        name: String,
        summary: String,
    },
    ToolEnded {
        id: String,
        failed: bool,
    },
    /// This many tasks run in the background. The client waits for them in silence, also after a result.
    Background {
        running: usize,
    },
    /// The client could not reach the model and will try again.
    Retry {
        attempt: u64,
        error_status: Option<u16>,
    },
    RateLimit {
        status: Limit,
        resets_at: Option<Stamp>,
    },
    /// How much of the user's plan is used.
    Quota(Vec<Window>),
    /// This many tokens were in the context of an answer.
    Context {
        tokens: u64,
    },
    /// The client gave up: its own word for why, such as `billing_error`.
    ApiError {
        kind: String,
        status: Option<u16>,
    },
    Result(Box<StreamResult>),
    Other,
}

/// The state of the subscription's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Allowed,
    /// Near the limit, or beyond it at extra cost: the agent continues.
    Warning,
    Rejected,
}

/// The client's account of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamResult {
    /// Also true if `subtype` is `success`: an error of the API is not an error of the program.
    pub is_error: bool,
    pub subtype: String,
    pub api_error_status: Option<u16>,
    /// The client's own word for the error, such as `usage_limit_reached`.
    pub api_error: Option<String>,
    /// The agent's last message, or what went wrong.
    pub text: String,
    /// Tokens of this turn; the cost is that of the whole session so far, earlier runs included.
    pub usage: Usage,
    pub session_id: Option<String>,
    /// How many tokens the context holds, if the client says so.
    pub context_window: Option<u64>,
    /// The tools whose calls were denied, each once.
    pub denied_tools: Vec<String>,
}
