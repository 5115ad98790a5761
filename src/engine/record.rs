//! Writing down what a turn decided.

use crate::core::outcome::Outcome;
use crate::core::record::ArmedLoop;
use crate::store::project::Project;
use crate::store::state::ending;
use crate::store::user::circuit;
use crate::store::world::World;

/// Records an ending and the breaker, before the state is saved: if that fails, the loop ends again at its next
/// turn. The caller holds the lock of the state. Returns what could not be written, as notes for the user.
pub fn turn(
    world: &World,
    project: &Project,
    session: &str,
    before: &ArmedLoop,
    after: &ArmedLoop,
) -> Vec<String> {
    let mut notes = ending(world, project, session, before, after);
    let note = |error| format!("could not save the circuit breaker: {error:#}");
    if after.circuit != before.circuit {
        let saved = circuit::save(world, project, session, &after.run_id, &after.circuit);
        notes.extend(saved.err().map(note));
    }
    if before.is_alive() && matches!(after.outcome, Some(Outcome::Stuck | Outcome::Circuit)) {
        notes.extend(circuit::note_trip(world, project, session, after).err().map(note));
    }
    notes
}

/// Records an ending alone, for which no lock is needed.
pub fn ending(
    world: &World,
    project: &Project,
    session: &str,
    before: &ArmedLoop,
    after: &ArmedLoop,
) -> Vec<String> {
    let ends = before.is_alive() && !after.is_alive();
    if ends { ending::record(world, project, session, after) } else { Vec::new() }
}
