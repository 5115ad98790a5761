//! `ralph reset`: resets tripped circuit breakers.

use super::stop::StopScope;
use crate::cli::{Failure, Project, World};
use crate::core::event::{self, BreakerAction, BreakerStep, EventKind};
use crate::core::text::clean;
use crate::store::events;
use crate::store::state::{self, Locked};
use crate::store::user::circuit::{self, BreakerRecord};

pub fn reset(world: &World, project: &Project, scope: &StopScope) -> Result<String, Failure> {
    let records = match scope {
        StopScope::All => circuit::records(world, None),
        StopScope::Project => circuit::records(world, Some(project)),
        StopScope::Session(id) => {
            let record = circuit::record(world, project, id);
            let unknown = || {
                Failure::refused(format!(
                    "no circuit breaker for session {} in this project",
                    clean::excerpt(id, 60)
                ))
                .hint("`ralph status` shows the loops of this project")
            };
            vec![record?.ok_or_else(unknown)?]
        }
    };
    let mut lines = Vec::new();
    for record in records {
        let place = clean::visible(&record.project);
        match reset_one(world, project, record) {
            Ok(line) => lines.push(line),
            // A project that cannot be written does not prevent the others from being reset.
            Err(failure) if *scope == StopScope::All => {
                lines.push(format!("{place}: {}", clean::visible(&failure.message)))
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(if lines.is_empty() { "No circuit breaker to reset.".into() } else { lines.join("\n") })
}

fn reset_one(world: &World, here: &Project, record: BreakerRecord) -> Result<String, Failure> {
    // A record has its project as text, and not every path is valid text.
    let own = record.project == here.real_root().to_string_lossy();
    let project = if own { here.clone() } else { record.project() };
    let session = record.session_id.clone();
    // A hook that is counting a turn must not overwrite this.
    let has_state = state::peek(&project).is_ok_and(|document| document.is_some());
    let _lock = if has_state { Some(Locked::open(&project, world.now)?) } else { None };
    let record = circuit::record(world, &project, &session)?.unwrap_or(record);
    let reason = record.circuit.reason.clone().unwrap_or_default();
    let step = BreakerStep { step: BreakerAction::Reset, iteration: 0, reason: event::text(&reason) };
    let run_id = record.run_id.clone();
    let reset = record.reset(world, &project)?;
    if reset.is_some() {
        // The breaker is reset, whether or not that can be noted.
        let _ = events::append(world, &run_id, &[EventKind::Breaker(step)]);
    }
    let tripped = match reset {
        Some(reason) => format!("It had tripped: {}", clean::excerpt(&reason, 200)),
        None => "It was ok.".into(),
    };
    let (session, root) = (clean::excerpt(&session, 36), clean::visible(&project.root.display().to_string()));
    Ok(format!("Reset the circuit breaker of session {session} in {root}. {tripped}"))
}
