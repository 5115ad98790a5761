//! One program under several names.
//!
//! `cargo run` builds `ralph` alone, and `ralph demo` is to work then too: started by the name of one of the other
//! programs (through a link or a copy), `ralph` is that program. Each of them is a line that calls this library, so
//! it is the same code either way.

use crate::{cli, hook};
use std::path::Path;
use std::process::ExitCode;

/// The other programs, by the name they are called.
pub const STOP_HOOK: &str = "ralph-stop-hook";
pub const SESSION_START_HOOK: &str = "ralph-session-start-hook";
pub const GUIDANCE: &str = "ralph-guidance";

pub fn main() -> ExitCode {
    let called = std::env::args_os().next().unwrap_or_default();
    match Path::new(&called).file_stem().and_then(|name| name.to_str()) {
        Some(STOP_HOOK) => stop_hook(),
        Some(SESSION_START_HOOK) => session_start_hook(),
        Some(GUIDANCE) => cli::guidance_program::main(),
        _ => cli::program::main(),
    }
}

fn stop_hook() -> ExitCode {
    hook::main("Stop");
    ExitCode::SUCCESS
}

fn session_start_hook() -> ExitCode {
    hook::main("SessionStart");
    ExitCode::SUCCESS
}
