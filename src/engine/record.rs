//! Writing down what a turn decided.

use crate::core::record::ArmedLoop;
use crate::store::state::ending;
use crate::store::user::circuit;
use crate::store::{Project, World};

/// Records an ending and the breaker, before the state is saved: if that fails, the loop ends again at its next
/// turn. Returns what could not be written, as notes for the user.
pub fn turn(
    world: &World,
    project: &Project,
    session: &str,
    before: &ArmedLoop,
    after: &ArmedLoop,
) -> Vec<String> {
    let mut notes = Vec::new();
    if before.is_alive() && !after.is_alive() {
        notes = ending::record(world, project, session, after);
    }
    if after.circuit != before.circuit {
        let saved = circuit::save(world, project, session, &after.run_id, &after.circuit);
        let note = |error| format!("could not save the circuit breaker: {error:#}");
        notes.extend(saved.err().map(note));
    }
    notes
}
