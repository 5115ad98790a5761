//! The token with which the user's answer to a question comes back from a notification service. It is random, kept in
//! the user's folder, good for one question, and gone once an answer was taken.

use super::handoff;
use crate::core::record::StoredLoop;
use crate::core::time::Stamp;
use crate::store::file;
use crate::store::file::lock::Lock;
use crate::store::project::{Project, stable_hash};
use crate::store::world::{self, World};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

const MAX_BYTES: u64 = 64 << 10;
/// After so long, no question is open any more.
const EXPIRES_AFTER: Duration = Duration::from_secs(30 * 86_400);
/// Without the letters and digits that people take for one another.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// Fifty bits, and short enough to type.
const TOKEN_CHARS: u32 = 10;

/// A question that can be answered from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenReply {
    pub run_id: String,
    pub token: String,
    pub asked_at: Stamp,
}

fn path(world: &World, project: &Project, session: &str) -> Result<PathBuf> {
    let name = format!("{}-{:016x}.json", project.key(), stable_hash(session.as_bytes()));
    Ok(world.data_dir()?.join("replies").join(name))
}

/// Opens the question with which a loop ended for an answer from elsewhere, in place of an earlier one of its session.
pub fn open(world: &World, project: &Project, session: &str, run: &StoredLoop) -> Result<()> {
    let path = path(world, project, session)?;
    handoff::remove_expired(path.parent().unwrap_or(&path), EXPIRES_AFTER);
    let random = world::unique();
    let letter = |at: u32| char::from(ALPHABET[usize::try_from((random >> (5 * at)) & 31).unwrap_or(0)]);
    let token = (0..TOKEN_CHARS).map(letter).collect();
    let asked_at = run.ended_at.unwrap_or(world.now);
    let reply = OpenReply { run_id: run.run_id.clone(), token, asked_at };
    file::replace_private(&path, &serde_json::to_vec(&reply)?)
}

/// Returns the question of this session that can be answered from elsewhere.
pub fn load(world: &World, project: &Project, session: &str) -> Option<OpenReply> {
    file::read_record(&path(world, project, session).ok()?, MAX_BYTES).ok()?
}

/// Closes the question. Returns whether it was still open: one caller only is told so.
pub fn take(world: &World, project: &Project, session: &str, reply: &OpenReply) -> bool {
    load(world, project, session).as_ref() == Some(reply) && close(world, project, session)
}

/// Closes the question of a session, if it has one.
pub fn close(world: &World, project: &Project, session: &str) -> bool {
    path(world, project, session).is_ok_and(|path| std::fs::remove_file(path).is_ok())
}

/// Returns the right to watch for the answer, unless another process has it.
pub fn watch(world: &World, project: &Project, session: &str) -> Option<Lock> {
    let path = path(world, project, session).ok()?.with_extension("lock");
    Lock::acquire_unless(&path, || true).ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_open_once_and_its_token_is_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let (world, project) = (World::at(dir.path(), dir.path()), Project { root: dir.path().to_owned() });
        let run = StoredLoop { run_id: "r".into(), ..StoredLoop::default() };
        assert_eq!(load(&world, &project, "s"), None);
        open(&world, &project, "s", &run).unwrap();
        let first = load(&world, &project, "s").unwrap();
        assert_eq!((first.run_id.as_str(), first.token.len()), ("r", TOKEN_CHARS as usize));
        assert_eq!(load(&world, &project, "other"), None);
        open(&world, &project, "s", &run).unwrap();
        let second = load(&world, &project, "s").unwrap();
        assert_ne!(first.token, second.token);
        assert!(!take(&world, &project, "s", &first), "an earlier one is closed");
        assert!(take(&world, &project, "s", &second) && !take(&world, &project, "s", &second), "once");
    }

    #[test]
    fn one_process_watches() {
        let dir = tempfile::tempdir().unwrap();
        let (world, project) = (World::at(dir.path(), dir.path()), Project { root: dir.path().to_owned() });
        open(&world, &project, "s", &StoredLoop::default()).unwrap();
        let first = watch(&world, &project, "s");
        assert!(first.is_some() && watch(&world, &project, "s").is_none());
        drop(first);
        assert!(watch(&world, &project, "s").is_some());
    }
}
