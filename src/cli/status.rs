//! `ralph status`: every loop of the project.

use super::failure::Failure;
use super::start::genuine_loops;
use crate::core::record::{Engine, Given};
use crate::run::lock;
use crate::store::project::Project;
use crate::store::state::{self, Document, StateError};
use crate::store::world::World;
use crate::store::{circuit, config, tasks};
use crate::view::paint::Paint;
use crate::view::status::{Shown, Status};

/// What there is to show; `session` puts its own loop first.
pub fn gather(world: &World, project: &Project, session: Option<&str>) -> Result<Status, Failure> {
    let mut notes = Vec::new();
    let document = match state::peek(project) {
        Ok(document) => document.unwrap_or_default(),
        Err(error @ StateError::Damaged(..)) => {
            notes.push(format!("{error}; the next hook or start moves it aside"));
            Document::default()
        }
        Err(error) => return Err(error.into()),
    };
    if document.newer_than_us() {
        notes.push("the state was written by a newer Ralph: read only, upgrade this one".into());
    }
    let mut loops: Vec<Shown> = genuine_loops(world, project, &document)
        .into_iter()
        .map(|(session_id, mut lap)| {
            lap.circuit = circuit::load(world, project, &session_id, &lap.run_id);
            let settings = config::load(world, project, &lap.given).settings_for(lap.engine);
            // An ended run still owes its tasks to whoever looks in the morning.
            let shows = lap.is_alive() || lap.engine == Engine::Runner;
            let tasks = tasks::read(project, &lap.tasks).filter(|_| shows);
            let runner_gone = lap.engine == Engine::Runner && lap.is_alive() && !lock::is_held(project);
            Shown { own: session == Some(&session_id), session_id, lap, settings, tasks, runner_gone }
        })
        .collect();
    loops.sort_by_key(|shown| (!shown.own, !shown.lap.is_alive(), std::cmp::Reverse(shown.lap.last_seen())));
    notes.extend(config::load(world, project, &Given::default()).warnings);
    let constraints = document.constraints();
    Ok(Status {
        project: project.root.clone(),
        now: world.now,
        loops,
        guidance: document.guidance(),
        constraints,
        notes,
    })
}

pub fn text(
    world: &World,
    project: &Project,
    session: Option<&str>,
    colour: bool,
) -> Result<String, Failure> {
    Ok(gather(world, project, session)?.human(Paint::new(colour)))
}

pub fn json(world: &World, project: &Project, session: Option<&str>) -> Result<String, Failure> {
    Ok(format!("{}\n", gather(world, project, session)?.json()))
}
