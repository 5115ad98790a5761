//! Opens a file with the program that the desktop has for it.

use super::{group, lookup};
use crate::store::world::Instant;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const OPENER: (&str, &[&str]) = if cfg!(target_os = "macos") {
    ("open", &[])
} else if cfg!(windows) {
    ("explorer", &[])
} else {
    ("xdg-open", &[])
};
/// An opener that has not failed by then shows the file, and may stay as long as its window is open.
const MAX_WAIT: Duration = Duration::from_millis(1500);
const POLL: Duration = Duration::from_millis(20);

/// Opens a file. The program is left alone once it has not failed at once.
pub fn open(path: &Path) -> Result<(), String> {
    let (name, args) = OPENER;
    let mut command = lookup::command(name);
    command.args(args).arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    group::make_group_leader(&mut command);
    let mut child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
    let began = Instant::now();
    while began.elapsed() < MAX_WAIT {
        match child.try_wait() {
            Ok(Some(status)) if status.success() || cfg!(windows) => return Ok(()),
            Ok(Some(status)) => return Err(format!("{name}: {status}")),
            Ok(None) => std::thread::sleep(POLL),
            Err(error) => return Err(format!("{name}: {error}")),
        }
    }
    Ok(())
}
