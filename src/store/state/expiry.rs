//! Loops leave the state file when they are long over, so that it stays small. The history keeps them.

use super::{Document, ending};
use crate::core::outcome::Outcome;
use crate::core::record::{ArmedLoop, StoredLoop};
use crate::core::time::{self, Stamp};
use crate::store::user::armed;
use crate::store::{Project, World};
use anyhow::Result;

/// Returns whether the loop's session was not seen for longer than `session_expiration_hours`.
pub fn is_expired(run: &StoredLoop, now: Stamp, expiration_ms: i64) -> bool {
    now - run.last_seen() > expiration_ms
}

/// Ends the expired loops of other sessions and returns them, to be announced once the state is saved.
pub fn end_expired(
    world: &World,
    project: &Project,
    session: &str,
    document: &mut Document,
    expiration_ms: i64,
) -> Result<Vec<ArmedLoop>> {
    ending::end_others(world, project, Some(session), document, |run| {
        let away = time::span(world.now - run.last_seen());
        let reason = format!("no activity in its session for {away}");
        is_expired(run, world.now, expiration_ms).then_some((Outcome::Interrupted, reason))
    })
}

/// Removes the loops of other sessions that ended more than `session_expiration_hours` ago.
pub fn remove_ended(
    world: &World,
    project: &Project,
    session: &str,
    document: &mut Document,
    expiration_ms: i64,
) {
    let over = |run: &StoredLoop| {
        let long_ago = |ended_at: Stamp| world.now - ended_at > expiration_ms;
        !run.is_alive() && is_expired(run, world.now, expiration_ms) && run.ended_at.is_none_or(long_ago)
    };
    for (id, _) in document.loops().iter().filter(|(id, run)| id != session && over(run)) {
        document.remove_loop(id);
        armed::disarm(world, project, id);
    }
}
