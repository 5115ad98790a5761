//! The command line: one file per command, named after it.

pub mod command_line;
pub mod failure;
pub mod help;
pub mod invocation;
pub mod loops;
pub mod program;
pub mod run;
pub mod setup;
pub mod views;

// What nearly every command is written with.
use crate::store::project::Project;
use crate::store::world::World;
use failure::Failure;
use invocation::{CommandOutput, Invocation};
