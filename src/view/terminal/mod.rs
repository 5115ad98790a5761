//! What only a terminal shows: a screen of our own, and how far something is.

pub mod progress;
#[cfg(unix)]
pub mod screen;
