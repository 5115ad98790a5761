//! Sessions whose loop ended with a question: the user's next message there may be the answer. It is asked about once,
//! and kept until the user says yes or something else.
//!
//! The mark's name follows from the session alone, so that every other session learns with one look that it has none.

use super::handoff;
use crate::store::project::stable_hash;
use crate::store::{World, file};
use anyhow::Result;
use std::path::PathBuf;
use std::time::Duration;

const MAX_REPLY_BYTES: u64 = 1 << 20;
/// After so long, a reply is no answer.
const EXPIRES_AFTER: Duration = Duration::from_secs(30 * 86_400);

fn path(world: &World, session: &str) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("asked").join(format!("{:016x}", stable_hash(session.as_bytes()))))
}

/// Notes that the session asked a question, or which reply to it was asked about.
pub fn record(world: &World, session: &str, reply: &str) -> Result<()> {
    let path = path(world, session)?;
    handoff::remove_expired(path.parent().unwrap_or(&path), EXPIRES_AFTER);
    file::replace_private(&path, reply.as_bytes())
}

/// Removes the mark of a session and returns the reply in it, which is empty if none was asked about.
pub fn take(world: &World, session: &str) -> Option<String> {
    let path = path(world, session).ok()?;
    let reply = match file::read_bounded(&path, MAX_REPLY_BYTES) {
        Ok(reply) => reply?,
        Err(_) => Vec::new(),
    };
    std::fs::remove_file(path).ok()?;
    Some(String::from_utf8_lossy(&reply).into_owned())
}
