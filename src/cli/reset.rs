//! `ralph reset`: closes circuit breakers, so that a loop may be started again.

use super::failure::Failure;
use super::stop::Scope;
use crate::core::clean;
use crate::store::circuit::{self, Record};
use crate::store::project::Project;
use crate::store::state::{self, Locked};
use crate::store::world::World;

pub fn reset(world: &World, project: &Project, scope: &Scope) -> Result<String, Failure> {
    let records = match scope {
        Scope::All => circuit::records(world, None),
        Scope::Project => circuit::records(world, Some(project)),
        Scope::Session(id) => {
            let record = circuit::record(world, project, id);
            let unknown = || Failure::refused(format!("session {id} has no circuit breaker in this project"));
            vec![record.ok_or_else(|| unknown().hint("`ralph status` shows the loops of this project."))?]
        }
    };
    let mut told = Vec::new();
    for record in records {
        let place = record.project.clone();
        match close(world, project, record) {
            Ok(line) => told.push(line),
            // One project that cannot be written keeps no other from its reset.
            Err(failure) if *scope == Scope::All => told.push(format!("{place}: {}", failure.message)),
            Err(failure) => return Err(failure),
        }
    }
    Ok(if told.is_empty() { "No circuit breaker to reset.".into() } else { told.join("\n") })
}

fn close(world: &World, here: &Project, record: Record) -> Result<String, Failure> {
    // A record names its project in text, which not every path is.
    let own = record.project == here.real_root().to_string_lossy();
    let project = if own { here.clone() } else { record.project() };
    let session = record.session_id.clone();
    // A hook that counts a turn holds the lock; what it writes must not undo this.
    let held = state::peek(&project).is_ok_and(|document| document.is_some());
    let _lock = if held { Some(Locked::open(&project, world.now)?) } else { None };
    let record = circuit::record(world, &project, &session).unwrap_or(record);
    let whose = format!("session {} in {}", clean::excerpt(&session, 36), project.root.display());
    Ok(match record.reset(world, &project)? {
        Some(reason) => {
            format!("Reset: {whose}. It had tripped: {}", clean::excerpt(&reason, 200))
        }
        None => format!("Reset: {whose}. It had not tripped; its counters are at zero."),
    })
}
