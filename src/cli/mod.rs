//! The command line: one file per command, named after it.

pub mod command_line;
pub mod failure;
pub mod help;
pub mod loops;
pub mod program;
pub mod run;
pub mod setup;
