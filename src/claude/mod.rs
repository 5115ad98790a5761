//! Everything that knows Claude Code's formats.

pub mod answer;
pub mod client;
pub mod hooks;
pub mod input;
pub mod installed;
pub mod loopback;
pub mod marketplace;
pub mod plugin;
pub mod settings;
pub mod settings_file;
pub mod statusline;
pub mod stream;
pub mod transcript;
pub mod trip;
pub mod version;
