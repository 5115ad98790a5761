//! What every ending needs beside the state: history, the question for the user, the notification.

use super::question;
use crate::core::outcome::Outcome;
use crate::core::record::ArmedLoop;
use crate::core::settings::Resolved;
use crate::store::process::notify;
use crate::store::state::Document;
use crate::store::user::{answers, armed, circuit, history};
use crate::store::{Project, World, config};
use anyhow::Result;

/// Records an ending before the state is saved: if saving fails, the loop ends again at its next turn and is recorded
/// again. Returns what could not be written, as notes for the user.
pub fn record(world: &World, project: &Project, session: &str, run: &ArmedLoop) -> Vec<String> {
    let mut told = Vec::new();
    if let Err(error) = history::record(world, project, session, run) {
        told.push(format!("could not add this run to the history: {error:#}"));
    }
    if let Err(error) = question::ask(project, run, world.now) {
        told.push(format!("could not write the question: {error:#}"));
    }
    if run.outcome == Some(Outcome::Complete) {
        // The answers have served their purpose, and nothing blocks the work any more.
        answers::forget(world, project);
        if let Err(error) = question::clear_blocked(project, world.now) {
            told.push(format!("could not file away ralph/blocked.txt: {error:#}"));
        }
    }
    told
}

/// Runs the user's command, after the state is saved, so that an ending is announced once.
pub fn announce(project: &Project, run: &ArmedLoop, resolved: &Resolved) -> Option<String> {
    let command = resolved.row("notify.command").and_then(|row| row.value.as_str())?;
    let error = notify::ended(command, project, run).err()?;
    Some(format!("could not start the notify command: {error}"))
}

/// Disarms a run whose ending the user has seen. If the history does not have it, the armed record stays: one of the two
/// must show that the loop was this user's.
pub fn settle(world: &World, project: &Project, session: &str, run: &ArmedLoop) {
    if history::contains(world, project, &run.run_id) {
        armed::disarm(world, project, session);
        circuit::forget(world, project, session);
    }
}

/// Ends every loop of this project for its kill switch. Returns them, to be announced.
pub fn kill_all(
    world: &World,
    project: &Project,
    except: Option<&str>,
    document: &mut Document,
) -> Result<Vec<ArmedLoop>> {
    end_others(world, project, except, document, |_| {
        Some((Outcome::Killed, ".claude/STOP_LOOP was found".to_owned()))
    })
}

/// Ends and records the loops of other sessions for which `why` has an outcome and a reason. Returns them.
pub(super) fn end_others(
    world: &World,
    project: &Project,
    session: Option<&str>,
    document: &mut Document,
    why: impl Fn(&ArmedLoop) -> Option<(Outcome, String)>,
) -> Result<Vec<ArmedLoop>> {
    let mut ended = Vec::new();
    for (id, mut run) in armed::load_all(world, project, document) {
        if session == Some(&id) || !run.is_alive() {
            continue;
        }
        let Some((outcome, reason)) = why(&run) else { continue };
        run.end(outcome, reason, world.now);
        record(world, project, &id, &run);
        document.set_loop(&id, &run)?;
        ended.push(run);
    }
    Ok(ended)
}

/// Announces several endings, each by the settings of its own run.
pub fn announce_all(world: &World, project: &Project, ended: &[ArmedLoop]) {
    for run in ended {
        announce(project, run, &config::load_for(world, project, run));
    }
}
