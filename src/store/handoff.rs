//! From the hook that saw a slash command's text to the command file that runs a moment later: what the
//! agent is to read. The session id is all the command line has to carry.

use super::file::{self, Privacy};
use super::project::fingerprint;
use super::world::World;
use anyhow::Result;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LARGEST: u64 = 16 << 20;
const UNTAKEN: Duration = Duration::from_secs(3600);

fn path(world: &World, session: &str, command: &str) -> Result<PathBuf> {
    let name = format!("{:016x}-{command}.txt", fingerprint(session.as_bytes()));
    Ok(world.data_dir()?.join("handoff").join(name))
}

pub fn leave(world: &World, session: &str, command: &str, text: &str) -> Result<()> {
    let path = path(world, session, command)?;
    let dir = path.parent().unwrap_or(&path);
    file::create_dir(dir)?;
    sweep(dir);
    file::replace(&path, text.as_bytes(), Privacy::Private)
}

/// Removes what nobody took: a command that was cut off right after its hook.
fn sweep(dir: &Path) {
    let old = |entry: &DirEntry| {
        entry
            .metadata()
            .and_then(|meta| meta.modified())
            .is_ok_and(|at| at.elapsed().is_ok_and(|age| age > UNTAKEN))
    };
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten().filter(old) {
        let _ = std::fs::remove_file(entry.path());
    }
}

/// Takes what was left, so that it is read once.
pub fn take(world: &World, session: &str, command: &str) -> Option<String> {
    let path = path(world, session, command).ok()?;
    let bytes = file::read_bounded(&path, LARGEST).ok()??;
    let _ = std::fs::remove_file(&path);
    String::from_utf8(bytes).ok()
}
