//! Runs `ralph` as one of the other programs if it is started under their name, through a link or a copy.
//!
//! `cargo run` builds only `ralph`. Started under the name of one of the other programs, through a link or a copy,
//! `ralph` acts as that program; so `ralph demo` works without the others being built.

use crate::store::process::names::{GUIDANCE, SESSION_START_HOOK, STOP_HOOK};
use crate::store::process::notify::DELIVER;
use crate::{cli, hook, notify};
use std::path::Path;
use std::process::ExitCode;

/// A subcommand that is a hook: it runs at every turn, so it does not pay for an argument parser.
const WAKE: &str = "wake";
/// What the module in Claude Code calls, see `hooks/register.js`.
const MODULE: &str = "module";

pub fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_default();
    match Path::new(&name).file_stem().and_then(|name| name.to_str()) {
        Some(STOP_HOOK) => hook::main("Stop"),
        Some(SESSION_START_HOOK) => hook::main("SessionStart"),
        Some(GUIDANCE) => cli::loops::guidance_program::main(),
        _ => match args.next().as_deref().and_then(|word| word.to_str()) {
            Some(WAKE) => hook::wake::main(),
            Some(MODULE) => hook::module::main(),
            Some(DELIVER) => notify::deliver::main(),
            _ => cli::program::main(),
        },
    }
}
