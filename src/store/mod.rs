//! The only writer of files, and the only reader of clock and environment.

pub mod armed;
pub mod circuit;
pub mod command;
pub mod config;
pub mod ending;
pub mod file;
pub mod git;
pub mod group;
pub mod handoff;
pub mod history;
pub mod legacy;
pub mod lock;
pub mod notify;
pub mod project;
pub mod question;
pub mod state;
pub mod stop;
pub mod tasks;
pub mod trust;
pub mod verify;
pub mod world;
