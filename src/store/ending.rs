//! What belongs to every ending beside the state: history, the question for the human, the notification.

use super::project::Project;
use super::state::Document;
use super::world::World;
use super::{armed, circuit, config, history, notify, question};
use crate::core::outcome::Outcome;
use crate::core::record::Loop;
use crate::core::settings::Resolved;
use anyhow::Result;

/// Writes an ending down, before the state is saved: should that fail, the loop ends again at its next turn
/// and is written down again. What fails here is returned as lines to be told, never as a lost ending.
pub fn record(world: &World, project: &Project, session: &str, lap: &Loop) -> Vec<String> {
    let mut told = Vec::new();
    if let Err(error) = history::record(world, project, session, lap) {
        told.push(format!("this run is not in the history: {error:#}"));
    }
    if let Err(error) = question::ask(project, lap, world.now) {
        told.push(format!("the question could not be written down: {error:#}"));
    }
    told
}

/// Runs the user's command, after the state is saved, so that an ending is announced once.
pub fn announce(project: &Project, lap: &Loop, resolved: &Resolved) -> Option<String> {
    let command = resolved.row("notify.command").and_then(|row| row.value.as_str())?;
    let error = notify::ended(command, project, lap).err()?;
    Some(format!("the notification could not be started: {error}"))
}

/// After an ending was told: nothing of the run is armed any more. Where the history could not take it, the
/// record of the arming stays, for without either nobody would believe that the loop was this user's.
pub fn settle(world: &World, project: &Project, session: &str, lap: &Loop) {
    if history::contains(world, project, &lap.run_id) {
        armed::disarm(world, project, session);
        circuit::forget(world, project, session);
    }
}

/// The kill switch means every loop of this project. Returns those that ended, to be announced.
pub fn kill_all(
    world: &World,
    project: &Project,
    except: Option<&str>,
    document: &mut Document,
) -> Result<Vec<Loop>> {
    let mut killed = Vec::new();
    for (session, lap) in document.loops() {
        if except == Some(&session) || !lap.is_alive() {
            continue;
        }
        let Some(mut lap) = armed::claim(world, project, &session, lap) else { continue };
        lap.end(Outcome::Killed, "the file .claude/STOP_LOOP was there", world.now);
        record(world, project, &session, &lap);
        document.set_loop(&session, &lap)?;
        killed.push(lap);
    }
    Ok(killed)
}

/// Announces several endings, each by the settings of its own run.
pub fn announce_all(world: &World, project: &Project, ended: &[Loop]) {
    for lap in ended {
        announce(project, lap, &config::load(world, project, &lap.given));
    }
}
