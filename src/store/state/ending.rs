//! What every ending needs beside the state: history, the question for the user, the notification.

use super::{question, stop};
use crate::core::event::{Ended, What};
use crate::core::outcome::{IterationOutcome, Outcome};
use crate::core::record::{ArmedLoop, Engine};
use crate::core::settings::Resolved;
use crate::store::process::notify;
use crate::store::runner::{run_lock, summary};
use crate::store::state::Document;
use crate::store::user::{answers, armed, asked, circuit, history};
use crate::store::{Project, World, config, events};
use anyhow::Result;

/// Records an ending before the state is saved: if saving fails, the loop ends again at its next turn and is recorded
/// again. Returns what could not be written, as notes for the user.
pub fn record(world: &World, project: &Project, session: &str, run: &ArmedLoop) -> Vec<String> {
    let ended = What::Ended(Ended::of(run, world.now));
    let mut told: Vec<String> = events::note(world, run, &[ended]).into_iter().collect();
    if let Err(error) = history::record(world, project, session, run) {
        told.push(format!("could not add this run to the history: {error:#}"));
    }
    if let Err(error) = question::ask(project, run, world.now) {
        told.push(format!("could not write the question: {error:#}"));
    }
    if run.engine == Engine::InSession
        && matches!(run.outcome, Some(Outcome::Blocked | Outcome::Decide))
        && let Err(error) = asked::mark(world, session)
    {
        told.push(format!("could not note that this session asked a question: {error:#}"));
    }
    if run.outcome == Some(Outcome::Complete) {
        // The answers have served their purpose, and nothing blocks the work any more.
        answers::forget(world, project);
        if let Err(error) = question::clear_blocked(world, project) {
            told.push(format!("could not file away ralph/blocked.txt: {error:#}"));
        }
    }
    told
}

/// Records the ended loop of a session if the history lacks it, before another takes its place: that may have failed when it
/// ended.
pub fn record_missing(world: &World, project: &Project, session: &str, document: &Document) -> Result<()> {
    let ended = armed::load_armed(world, project, session, document)?.filter(|run| !run.is_alive());
    match ended {
        Some(run) if !history::contains(world, project, &run.run_id)? => {
            history::record(world, project, session, &run)
        }
        _ => Ok(()),
    }
}

/// Ends a run whose runner died while it ended: the history says how, or else its last iteration. Returns it, to be
/// announced.
///
/// The agent can write the project's `summary.csv`, so a last row that claims an ending counts only if the events in the
/// user's own folder say the same.
pub fn end_dead_run(world: &World, project: &Project, document: &mut Document) -> Result<Option<ArmedLoop>> {
    let died = |run: &ArmedLoop| run.engine == Engine::Runner && run.is_alive();
    let loops = armed::load_all(world, project, document).loops;
    let Some((session, mut run)) = loops.into_iter().find(|(_, run)| died(run)) else { return Ok(None) };
    if run_lock::holder(world, project).is_some() {
        return Ok(None);
    }
    let is_newer =
        |entry: &history::Run| entry.ended_at > run.timing.armed_at || entry.iterations > run.iteration;
    let recorded = history::runs(world, project)?
        .into_iter()
        .find(|entry| entry.run_id == run.run_id && is_newer(entry));
    // A row that the state has counted was not the last.
    let row = summary::read(project).pop().filter(|row| row.iteration > run.iteration);
    match (recorded, row.as_ref().and_then(|row| row.outcome)) {
        (Some(entry), _) => {
            run.iteration = entry.iterations;
            run.usage = entry.usage;
            run.end(entry.outcome, entry.reason, entry.ended_at);
        }
        (None, Some(claimed @ IterationOutcome::Run(outcome))) => {
            let row = row.unwrap_or_default();
            let timeline = events::load(world, &run.run_id)?;
            let confirmed = timeline.as_ref().and_then(|timeline| timeline.iterations.get(&row.iteration));
            match confirmed.filter(|iteration| iteration.facts.outcome == Some(claimed)) {
                Some(iteration) => {
                    run.iteration = row.iteration;
                    if let Some(cost) = iteration.facts.cost_usd {
                        run.usage.cost_usd = Some(run.usage.cost_usd.unwrap_or_default() + cost);
                    }
                    let reason = "its runner was killed before it could record the ending";
                    run.end(outcome, reason, iteration.ended_at);
                }
                None => {
                    let reason = format!(
                        "its runner was killed; ralph/logs/summary.csv says {}, which no record of Ralph confirms",
                        outcome.name()
                    );
                    run.end(Outcome::Interrupted, reason, world.now);
                }
            }
            record(world, project, &session, &run);
        }
        _ => return Ok(None),
    }
    document.set_loop(&session, &run)?;
    Ok(Some(run))
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
    if history::contains(world, project, &run.run_id).unwrap_or(false) {
        armed::disarm(world, project, session);
        circuit::forget(world, project, session);
    }
}

/// Ends every loop of this project for its kill switch. Returns them, to be announced. A loop whose record cannot be read
/// is left as it is; then the switch must stay too.
pub fn kill_all(
    world: &World,
    project: &Project,
    except: Option<&str>,
    document: &mut Document,
) -> Result<Killed> {
    let (ended, faults) = end_others(world, project, except, document, |_| {
        Some((Outcome::Killed, ".claude/STOP_LOOP was found".to_owned()))
    })?;
    Ok(Killed { ended, faults })
}

/// What a kill switch did.
#[derive(Default)]
pub struct Killed {
    pub ended: Vec<ArmedLoop>,
    /// What could not be read.
    pub faults: Vec<String>,
}

impl Killed {
    /// Removes the kill switch, once every loop that it is for has ended.
    pub fn clear_switch(&self, project: &Project) {
        if self.faults.is_empty() {
            stop::clear_kill_switch(project);
        }
    }
}

/// Ends and records the loops of other sessions for which `why` has an outcome and a reason. Returns them, and what could
/// not be read.
pub(super) fn end_others(
    world: &World,
    project: &Project,
    session: Option<&str>,
    document: &mut Document,
    why: impl Fn(&ArmedLoop) -> Option<(Outcome, String)>,
) -> Result<(Vec<ArmedLoop>, Vec<String>)> {
    let mut ended = Vec::new();
    let armed::Loaded { loops, faults } = armed::load_all(world, project, document);
    for (id, mut run) in loops {
        if session == Some(&id) || !run.is_alive() {
            continue;
        }
        let Some((outcome, reason)) = why(&run) else { continue };
        run.end(outcome, reason, world.now);
        record(world, project, &id, &run);
        document.set_loop(&id, &run)?;
        ended.push(run);
    }
    Ok((ended, faults))
}

/// Announces several endings, each by the settings of its own run.
pub fn announce_all(world: &World, project: &Project, ended: &[ArmedLoop]) {
    for run in ended {
        announce(project, run, &config::load_for(world, project, run));
    }
}
