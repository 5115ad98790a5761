//! Everything that knows Claude Code's formats.

pub mod answer;
pub mod hooks;
pub mod input;
pub mod installed;
pub mod loopback;
pub mod plugin;
pub mod settings;
pub mod stream;
pub mod transcript;
pub mod trip;
pub mod version;
