//! The only writer of files, and the only reader of clock and environment.

pub mod armed;
pub mod config;
pub mod ending;
pub mod file;
pub mod git;
pub mod handoff;
pub mod history;
pub mod legacy;
pub mod lock;
pub mod notify;
pub mod project;
pub mod question;
pub mod state;
pub mod stop;
pub mod world;
