//! What a slash command has for the agent: left by the hook that saw the command's text, taken by the command file that
//! runs a moment later. Its command line only carries the session id.

use crate::store::project::stable_hash;
use crate::store::{World, file};
use anyhow::Result;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::time::Duration;

const MAX_BYTES: u64 = 16 << 20;
const EXPIRES_AFTER: Duration = Duration::from_secs(3600);
/// Longer than sessions are used.
const SERVED_EXPIRES_AFTER: Duration = Duration::from_secs(90 * 24 * 3600);

fn path(world: &World, session: &str, command: &str) -> Result<PathBuf> {
    let name = format!("{:016x}-{command}.txt", stable_hash(session.as_bytes()));
    Ok(world.data_dir()?.join("handoff").join(name))
}

pub fn save(world: &World, session: &str, command: &str, text: &str) -> Result<()> {
    let path = path(world, session, command)?;
    remove_expired(path.parent().unwrap_or(&path), EXPIRES_AFTER);
    file::replace_private(&path, text.as_bytes())
}

/// Removes what was never taken, because a command was cancelled right after its hook.
pub(super) fn remove_expired(dir: &Path, after: Duration) {
    // A lock that was removed would keep none out who opens it anew.
    let old = |entry: &DirEntry| entry.file_name() != "lock" && file::is_older(entry, after);
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten().filter(old) {
        let _ = std::fs::remove_file(entry.path());
    }
}

/// Returns what was left and removes it, so that it is read once.
pub fn take(world: &World, session: &str, command: &str) -> Option<String> {
    let path = path(world, session, command).ok()?;
    let bytes = file::read_bounded(&path, MAX_BYTES).ok()??;
    let _ = std::fs::remove_file(&path);
    String::from_utf8(bytes).ok()
}

/// Notes that the client passes this session's commands to the hook.
pub fn note_served(world: &World, session: &str) {
    let Ok(path) = served(world, session) else { return };
    remove_expired(path.parent().unwrap_or(&path), SERVED_EXPIRES_AFTER);
    let _ = file::replace_private(&path, b"");
}

/// Returns whether the hook has served a command of this session.
pub fn was_served(world: &World, session: &str) -> bool {
    served(world, session).is_ok_and(|path| path.exists())
}

fn served(world: &World, session: &str) -> Result<PathBuf> {
    Ok(world
        .data_dir()?
        .join("handoff")
        .join("served")
        .join(format!("{:016x}", stable_hash(session.as_bytes()))))
}
