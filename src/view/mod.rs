//! What people look at.

pub mod activity;
pub mod archive;
pub mod config;
pub mod diff;
pub mod doctor;
pub mod guidance;
pub mod monitor;
pub mod paint;
pub mod report;
pub mod runs;
pub mod scan;
pub mod status;
pub mod statusline;
pub mod terminal;
pub mod trust;

pub use runs::{history, logs};
pub use terminal::progress;
