//! `ralph status`: every loop of the project.

use crate::cli::{Failure, Invocation, Project, World};
use crate::core::record::Engine;
use crate::store::runner::{calls, run_lock};
use crate::store::state::{self, Document, StateError};
use crate::store::user::armed;
use crate::store::{config, tasks};
use crate::view::paint::Paint;
use crate::view::status::{Calls, Shown, Status};

pub fn command(call: &Invocation) -> Result<String, Failure> {
    let status = gather(&call.world, &call.project, call.session())?;
    Ok(if call.flag("json") { status.json().to_string() } else { status.human(Paint::for_stdout()) })
}

/// Gathers what is shown; the loop of `session` comes first.
pub fn gather(world: &World, project: &Project, session: Option<&str>) -> Result<Status, Failure> {
    let mut notes = Vec::new();
    let document = match state::peek(project) {
        Ok(document) => document.unwrap_or_default(),
        Err(error @ StateError::Damaged(..)) => {
            notes.push(format!("{error}; the next turn or start moves it aside"));
            Document::default()
        }
        Err(error) => return Err(error.into()),
    };
    if document.newer_than_us() {
        notes.push("the state is from a newer version of Ralph and read-only: upgrade this one".into());
    }
    let mut loops: Vec<Shown> = armed::load_started(world, project, &document)
        .into_iter()
        .map(|(session_id, run)| {
            let resolved = config::load_for(world, project, &run);
            let settings = resolved.settings_for(run.engine);
            let calls = calls_left(world, project, resolved.run_settings().calls_per_hour)
                .filter(|_| run.engine == Engine::Runner);
            // The tasks of a run that ended are of interest too.
            let shows = run.is_alive() || run.engine == Engine::Runner;
            let tasks = tasks::read(project, &run.tasks).filter(|_| shows);
            let runner_gone =
                run.engine == Engine::Runner && run.is_alive() && run_lock::holder(project).is_none();
            let own = session == Some(&session_id);
            Shown { own, session_id, run, settings, tasks, runner_gone, calls }
        })
        .collect();
    loops.sort_by_key(|shown| (!shown.own, !shown.run.is_alive(), std::cmp::Reverse(shown.run.last_seen())));
    notes.extend(config::load(world, project).warnings);
    let (guidance, constraints) = (document.guidance(), document.constraints());
    Ok(Status { project: project.root.clone(), now: world.now, loops, guidance, constraints, notes })
}

fn calls_left(world: &World, project: &Project, per_hour: u64) -> Option<Calls> {
    let rate = calls::load(world, project);
    let (remaining, frees_at) = (rate.remaining(per_hour, world.now), rate.frees_at(world.now));
    (per_hour > 0).then_some(Calls { per_hour, remaining, frees_at })
}
