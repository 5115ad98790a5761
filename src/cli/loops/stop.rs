//! `ralph stop`: ends loops, from any terminal.

use super::alive;
use crate::cli::{Failure, Invocation, Project, World};
use crate::core::message;
use crate::core::outcome::Outcome;
use crate::core::text::clean;
use crate::store::config;
use crate::store::state::{self, Locked, ending, stop as stops};
use crate::store::user::armed;

/// Which loops a command is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Session(String),
    Project,
    /// Every loop of this user, in every project.
    All,
}

/// Returns which loops `stop` and `reset` are for.
pub fn scope(call: &Invocation) -> Scope {
    match call.session() {
        _ if call.flag("all") => Scope::All,
        Some(session) => Scope::Session(session.to_owned()),
        None => Scope::Project,
    }
}

/// Ends loops. `shown_in` is the session whose user reads the answer and is not told again.
pub fn stop(
    world: &World,
    project: &Project,
    scope: &Scope,
    shown_in: Option<&str>,
) -> Result<String, Failure> {
    let lines = match scope {
        Scope::Session(id) => stop_in(world, project, Some(id), shown_in)?,
        Scope::Project => stop_in(world, project, None, shown_in)?,
        Scope::All => stop_everywhere(world, shown_in)?,
    };
    match scope {
        _ if !lines.is_empty() => Ok(lines.join("\n")),
        Scope::Session(id) => Err(none_running(world, project, id)),
        Scope::Project => Ok(format!("No loop is running in {}.", project.root.display())),
        Scope::All => Ok("No loop is running.".into()),
    }
}

fn stop_everywhere(world: &World, shown_in: Option<&str>) -> Result<Vec<String>, Failure> {
    // Recorded first: this also reaches loops whose state cannot be written now.
    stops::stop_all(world)?;
    let mut lines = Vec::new();
    for project in armed::projects(world) {
        match stop_in(world, &project, None, shown_in) {
            Ok(stopped) => lines.extend(stopped),
            Err(Failure { message, .. }) => {
                lines.push(format!("{}: stops at its next turn ({message})", project.root.display()));
            }
        }
    }
    Ok(lines)
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
    for (id, mut run) in armed::load_all(world, project, &state.document) {
        if only.is_some_and(|only| only != id) || !run.is_alive() {
            continue;
        }
        run.end(Outcome::Stopped, "`ralph stop` was run", world.now);
        run.told.ending = shown_in == Some(&id);
        let notes = ending::record(world, project, &id, &run);
        told.push(format!("\"{}\"", clean::excerpt(&run.task, 60)));
        told.push(message::ended(&run, &config::load_for(world, project, &run).settings(), world.now));
        told.extend(notes);
        state.document.set_loop(&id, &run)?;
        ended.push((id, run));
    }
    state.save()?;
    drop(state);
    for (id, run) in ended {
        if run.told.ending {
            ending::settle(world, project, &id, &run);
        }
        told.extend(ending::announce(project, &run, &config::load_for(world, project, &run)));
    }
    Ok(told)
}

fn none_running(world: &World, project: &Project, session: &str) -> Failure {
    let failure = Failure::refused("no loop is running in this session");
    let others = alive(world, project).into_iter().filter(|(id, _)| id != session);
    let others: String = others
        .map(|(id, run)| format!("\n  --session {}  {}", clean::line(&id), clean::excerpt(&run.task, 40)))
        .collect();
    match others.is_empty() {
        true => failure,
        false => failure.hint(format!("these are running in this project:{others}")),
    }
}
