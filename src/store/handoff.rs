//! From the hook that saw a slash command's text to the command file that runs a moment later: what the
//! agent is to read. The session id is all the command line has to carry.

use super::file::{self, Privacy};
use super::project::fingerprint;
use super::world::World;
use anyhow::Result;
use std::path::PathBuf;

const LARGEST: u64 = 16 << 20;

fn path(world: &World, session: &str, command: &str) -> Result<PathBuf> {
    let name = format!("{:016x}-{command}.txt", fingerprint(session.as_bytes()));
    Ok(world.data_dir()?.join("handoff").join(name))
}

pub fn leave(world: &World, session: &str, command: &str, text: &str) -> Result<()> {
    let path = path(world, session, command)?;
    file::create_dir(path.parent().unwrap_or(&path))?;
    file::replace(&path, text.as_bytes(), Privacy::Private)
}

/// Takes what was left, so that it is read once.
pub fn take(world: &World, session: &str, command: &str) -> Option<String> {
    let path = path(world, session, command).ok()?;
    let bytes = file::read_bounded(&path, LARGEST).ok()??;
    let _ = std::fs::remove_file(&path);
    String::from_utf8(bytes).ok()
}
