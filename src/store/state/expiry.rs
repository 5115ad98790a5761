//! What `run.session_expiration_hours` means, in both engines: at the next start or run, and when a session opens, the
//! loops of other sessions that were not active for so long end, and those that ended so long ago leave the state file.
//! The history keeps them.

use super::{Document, ending};
use crate::core::outcome::Outcome;
use crate::core::record::{ArmedLoop, Engine, StoredLoop};
use crate::core::time::{self, Stamp};
use crate::store::runner::run_lock;
use crate::store::user::{armed, circuit};
use crate::store::{Project, World};
use anyhow::Result;
use std::collections::HashSet;

/// Loops that one call looks at, the oldest first; a state file may hold any number.
const MAX_CHECKED_LOOPS: usize = 1000;

/// Returns whether the loop's session was not seen for longer than `session_expiration_hours`. One that waits for a time still
/// to come, such as a weekly reset, is not expected to be seen before.
pub fn is_expired(run: &StoredLoop, now: Stamp, expiration_ms: i64) -> bool {
    let until =
        run.session.waiting.as_ref().filter(|_| run.is_alive()).and_then(|waiting| waiting.what.until());
    now - until.map_or(run.last_seen(), |until| run.last_seen().max(until)) > expiration_ms
}

/// Closes what is too old, and returns the loops that ended with it, to be announced once the state is saved.
pub fn close(
    world: &World,
    project: &Project,
    session: &str,
    document: &mut Document,
    expiration_ms: i64,
) -> Result<Vec<ArmedLoop>> {
    remove_ended(world, project, session, document, expiration_ms);
    circuit::expire(world, project, session, expiration_ms);
    let dead = ending::end_dead_run(world, project, document)?;
    let mut ended = end_expired(world, project, session, document, expiration_ms)?;
    ended.extend(dead);
    Ok(ended)
}

/// Ends the expired loops of other sessions. A runner that is alive may wait for days, and its run is not expired.
fn end_expired(
    world: &World,
    project: &Project,
    session: &str,
    document: &mut Document,
    expiration_ms: i64,
) -> Result<Vec<ArmedLoop>> {
    let (ended, _) = ending::end_others(world, project, Some(session), document, |run| {
        let runs = run.engine == Engine::Runner
            && run_lock::holder(world, project).is_some_and(|lock| lock.run_id == run.run_id);
        let away = time::span(world.now - run.last_seen());
        let reason = format!("no activity in its session for {away}");
        (!runs && is_expired(run, world.now, expiration_ms)).then_some((Outcome::Interrupted, reason))
    })?;
    Ok(ended)
}

/// Removes the loops of other sessions that ended more than `session_expiration_hours` ago.
fn remove_ended(
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
    let looked_at = document.loops().take(MAX_CHECKED_LOOPS).filter(|(id, run)| id != session && over(run));
    // What the history cannot take stays in the state.
    let is_recorded = |id: &String| ending::record_missing(world, project, id, document).is_ok();
    let gone: HashSet<String> = looked_at.map(|(id, _)| id).filter(is_recorded).collect();
    document.remove_loops(&gone);
    for id in gone {
        armed::disarm(world, project, &id);
        circuit::forget(world, project, &id);
    }
}
