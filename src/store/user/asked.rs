//! Sessions whose loop ended with a question: the user's next message there may be the answer. It is asked about once.
//!
//! The mark's name follows from the session alone, so that every other session learns with one look that it has none.

use super::handoff;
use crate::store::project::fingerprint;
use crate::store::{World, file};
use anyhow::Result;
use std::path::PathBuf;
use std::time::Duration;

/// After so long, a reply is no answer.
const EXPIRES_AFTER: Duration = Duration::from_secs(30 * 86_400);

fn path(world: &World, session: &str) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("asked").join(format!("{:016x}", fingerprint(session.as_bytes()))))
}

pub fn mark(world: &World, session: &str) -> Result<()> {
    let path = path(world, session)?;
    handoff::sweep(path.parent().unwrap_or(&path), EXPIRES_AFTER);
    file::replace_private(&path, b"")
}

/// Returns whether the session has a mark, and removes it.
pub fn take(world: &World, session: &str) -> bool {
    path(world, session).is_ok_and(|path| std::fs::remove_file(path).is_ok())
}
