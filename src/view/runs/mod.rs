//! Runs as they were: the list of them, and the account of one.

pub mod history;
pub mod logs;
