//! The names of our programs.

pub const RALPH: &str = "ralph";
pub const STOP_HOOK: &str = "ralph-stop-hook";
pub const SESSION_START_HOOK: &str = "ralph-session-start-hook";
pub const GUIDANCE: &str = "ralph-guidance";
