//! Everything that knows Claude Code's formats.

pub mod agent_log;
pub mod client;
pub mod hook;
mod object;
pub mod plugin;
pub mod round_trip;
pub mod settings;
pub mod stream;
pub mod transcript;
