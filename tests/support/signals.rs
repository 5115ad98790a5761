//! How a program under test begins.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Returns a command that starts with the signal handling of an ordinary terminal. A test run under `nohup` or in
/// the background of a script ignores some signals, and the programs it starts would inherit that.
pub fn with_default_signals(program: impl AsRef<Path>) -> Command {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // SIGHUP is 1, SIGINT 2, SIGQUIT 3.
    if ignored & 0b111 == 0 {
        return Command::new(program.as_ref());
    }
    let mut command = Command::new("/usr/bin/env");
    command.arg("--default-signal=HUP,INT,QUIT").arg(program.as_ref());
    command
}
