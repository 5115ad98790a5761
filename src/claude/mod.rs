//! Everything that knows Claude Code's formats.

pub mod answer;
pub mod input;
pub mod plugin;
pub mod stream;
pub mod transcript;
