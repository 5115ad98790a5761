//! The process of an agent: where it runs, how it is watched, and how it ends.

#[cfg(unix)]
pub mod pipes;
pub mod reaper;
pub mod supervisor;
pub mod target;
