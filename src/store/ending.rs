//! What belongs to every ending beside the state: history, the question for the human, the notification.

use super::project::Project;
use super::world::World;
use super::{history, notify, question};
use crate::core::record::Loop;
use crate::core::settings::Resolved;

/// Does what an ending asks for; what fails is returned as lines to be told, never as a lost ending.
pub fn finish(
    world: &World,
    project: &Project,
    session: &str,
    lap: &Loop,
    resolved: &Resolved,
) -> Vec<String> {
    let mut told = Vec::new();
    if let Err(error) = history::record(world, project, session, lap) {
        told.push(format!("this run is not in the history: {error:#}"));
    }
    if let Err(error) = question::ask(project, lap, world.now) {
        told.push(format!("the question could not be written down: {error:#}"));
    }
    let command = resolved.row("notify.command").and_then(|row| row.value.as_str());
    if let Some(Err(error)) = command.map(|command| notify::ended(command, project, lap)) {
        told.push(format!("the notification could not be started: {error}"));
    }
    told
}
