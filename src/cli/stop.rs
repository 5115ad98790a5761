//! `ralph stop`: ends loops, by the binary, from any terminal, and wins every race.

use super::failure::Failure;
use crate::core::{clean, message, outcome::Outcome};
use crate::store::project::Project;
use crate::store::state::{self, Locked};
use crate::store::world::World;
use crate::store::{armed, config, ending, stop as stops};

/// Which loops are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Session(String),
    Project,
    /// Every loop of this user, in every project.
    All,
}

/// Ends the loops meant; `shown_in` is the session whose user reads the answer, and need not be told again.
pub fn stop(
    world: &World,
    project: &Project,
    scope: &Scope,
    shown_in: Option<&str>,
) -> Result<String, Failure> {
    let mut told = Vec::new();
    match scope {
        Scope::All => {
            // The record first: it reaches loops whose file cannot be written now.
            stops::stop_all(world)?;
            for project in armed::projects(world) {
                match stop_in(world, &project, None, shown_in) {
                    Ok(lines) => told.extend(lines),
                    Err(failure) => told.push(format!(
                        "{}: stops at its next turn ({})",
                        project.root.display(),
                        failure.message
                    )),
                }
            }
            if told.is_empty() {
                told.push("No loop is running.".into());
            }
        }
        Scope::Session(id) => {
            told = stop_in(world, project, Some(id), shown_in)?;
            if told.is_empty() {
                return Err(none_running(world, project, id));
            }
        }
        Scope::Project => {
            told = stop_in(world, project, None, shown_in)?;
            if told.is_empty() {
                told.push(format!("No loop is running in {}.", project.root.display()));
            }
        }
    }
    Ok(told.join("\n"))
}

fn stop_in(
    world: &World,
    project: &Project,
    only: Option<&str>,
    shown_in: Option<&str>,
) -> Result<Vec<String>, Failure> {
    if state::peek(project).is_ok_and(|document| document.is_none()) {
        return Ok(Vec::new());
    }
    let mut state = Locked::open(project, world.now)?;
    let mut told: Vec<String> = state.moved_aside.iter().cloned().collect();
    let mut ended = Vec::new();
    for (id, lap) in state.document.loops() {
        if only.is_some_and(|only| only != id) || !lap.is_alive() {
            continue;
        }
        let Some(mut lap) = armed::claim(world, project, &id, lap) else { continue };
        lap.end(Outcome::Stopped, "`ralph stop` was given", world.now);
        lap.announced = shown_in == Some(&id);
        let notes = ending::record(world, project, &id, &lap);
        told.push(format!("\"{}\"", clean::excerpt(&lap.task, 60)));
        told.push(message::ended(&lap, &config::load(world, project, &lap.given).settings(), world.now));
        told.extend(notes);
        state.document.set_loop(&id, &lap)?;
        ended.push((id, lap));
    }
    state.save()?;
    drop(state);
    for (id, lap) in ended {
        if lap.announced {
            ending::settle(world, project, &id, &lap);
        }
        told.extend(ending::announce(project, &lap, &config::load(world, project, &lap.given)));
    }
    Ok(told)
}

fn none_running(world: &World, project: &Project, session: &str) -> Failure {
    let failure = Failure::refused("no loop is running in this session");
    let Ok(Some(document)) = state::peek(project) else { return failure };
    let others: Vec<_> = document
        .loops()
        .into_iter()
        .filter(|(id, lap)| id != session && lap.is_alive() && armed::is_armed(world, project, id, lap))
        .map(|(id, lap)| format!("  --session {}  {}", clean::line(&id), clean::excerpt(&lap.task, 40)))
        .collect();
    if others.is_empty() {
        failure
    } else {
        failure.hint(format!("Others run in this project:\n{}", others.join("\n")))
    }
}
