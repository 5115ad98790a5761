//! What people look at.

pub mod activity;
pub mod diff;
pub mod guidance;
pub mod monitor;
pub mod paint;
pub mod report;
pub mod runs;
pub mod scan;
pub mod setup;
pub mod status;
pub mod statusline;
pub mod terminal;

pub use runs::{history, logs};
pub use terminal::progress;
