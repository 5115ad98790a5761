//! Tests that need what a machine may lack say so and pass.
#![allow(dead_code, reason = "each test crate uses its own part of the support")]

use std::io::Write;
use std::{env, io, thread};

/// Tells what the machine lacks for the current test, or fails it where `RALPH_E2E_REQUIRED=1` promises that
/// everything is there.
pub fn skip(reason: &str) {
    let required = env::var_os("RALPH_E2E_REQUIRED").is_some_and(|value| value == "1");
    assert!(!required, "{}: {reason}", test());
    skip_anyhow(reason);
}

/// The same for what no installation would bring, such as being another user.
pub fn skip_anyhow(reason: &str) {
    // Not `eprintln!`: the test harness would swallow the line of a passing test. In one piece: others write too.
    drop(io::stderr().write_all(format!("skipped: {}: {reason}\n", test()).as_bytes()));
}

fn test() -> String {
    thread::current().name().unwrap_or("a test").to_owned()
}
