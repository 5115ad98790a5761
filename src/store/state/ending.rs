//! What every ending needs beside the state: history, the question for the user, the notification.

use super::{Locked, question, stop};
use crate::core::decide::KILLED;
use crate::core::event::notice::{Notice, ReplyTo};
use crate::core::event::{EventKind, RunEnded};
use crate::core::outcome::{IterationOutcome, Outcome};
use crate::core::record::{ArmedLoop, Engine, WaitingFor};
use crate::core::settings::{NotifySettings, Resolved};
use crate::store::process::notify;
use crate::store::runner::{run_lock, summary};
use crate::store::state::Document;
use crate::store::user::{answers, armed, circuit, given_guidance, history, open_question, reply};
use crate::store::{Project, World, config, events};
use anyhow::Result;

/// Records an ending before the state is saved: if saving fails, the loop ends again at its next turn and is recorded
/// again. Returns what could not be written, as notes for the user.
pub fn record(world: &World, project: &Project, session: &str, run: &ArmedLoop) -> Vec<String> {
    let mut notes = Vec::new();
    if !is_ended_by_its_runner(world, project, run) {
        let failed = events::note(world, run, &[EventKind::Ended(RunEnded::of(run, world.now))]);
        notes.extend(failed.filter(|_| !run.told.events_failed));
    }
    notes.extend(ask(world, project, session, run));
    if run.engine == Engine::InSession
        && matches!(run.outcome, Some(Outcome::Blocked | Outcome::Decide))
        && let Err(error) = open_question::record(world, session, "")
    {
        notes.push(format!("could not note that this session asked a question: {error:#}"));
    }
    if run.outcome == Some(Outcome::Complete) {
        // The answers have served their purpose, and nothing blocks the work any more.
        answers::forget(world, project);
        if let Err(error) = question::clear_blocked(world, project) {
            notes.push(format!("could not move ralph/blocked.txt to ralph/answered: {error:#}"));
        }
    }
    notes
}

/// Returns whether the runner of this run is alive in another process: it has still an iteration to add to the events, and
/// then adds the ending.
fn is_ended_by_its_runner(world: &World, project: &Project, run: &ArmedLoop) -> bool {
    run.engine == Engine::Runner
        && run_lock::holder(world, project)
            .is_some_and(|holder| holder.run_id == run.run_id && holder.pid != std::process::id())
}

/// Records the question with which a run ended or for whose answer it waits, and opens it for an answer from elsewhere.
/// The history shows that this user's run asked it. Returns what could not be written.
pub fn ask(world: &World, project: &Project, session: &str, run: &ArmedLoop) -> Vec<String> {
    let mut notes = Vec::new();
    if let Err(error) = history::record(world, project, session, run) {
        notes.push(format!("could not add this run to the history: {error:#}"));
    }
    if let Err(error) = question::ask(project, run, world.now) {
        notes.push(format!("could not write the question: {error:#}"));
    }
    if takes_answer(run)
        && config::load_for(world, project, run).notify().answers.is_some()
        && let Err(error) = reply::open(world, project, session, run)
    {
        notes.push(format!("the question cannot be answered from elsewhere: {error:#}"));
    }
    notes
}

/// Returns whether an answer helps a loop that ended: it asked, or is blocked by something else than denied tools.
pub fn takes_answer(run: &ArmedLoop) -> bool {
    match run.outcome {
        Some(Outcome::Decide) => true,
        Some(Outcome::Blocked) => run.session.flags_to_allow.is_none(),
        _ => false,
    }
}

/// Records the ended loop of a session if the history or its events lack it, before another takes its place: that may have
/// failed when it ended.
pub fn record_missing(world: &World, project: &Project, session: &str, document: &Document) -> Result<()> {
    let ended = armed::load_armed(world, project, session, document)?.filter(|run| !run.is_alive());
    let Some(run) = ended else { return Ok(()) };
    add_missing_event(world, project, &run);
    match history::contains(world, project, &run.run_id)? {
        true => Ok(()),
        false => history::record(world, project, session, &run),
    }
}

/// Adds the ending to the events of a run whose runner was killed after `ralph stop` and before it could add it.
pub fn add_missing_event(world: &World, project: &Project, run: &ArmedLoop) {
    if !is_ended_by_its_runner(world, project, run) {
        events::add_missing_ending(world, run);
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
    // A run that waits for an answer recorded its question as an ending.
    let asked =
        run.session.waiting.as_ref().is_some_and(|waiting| matches!(waiting.what, WaitingFor::Answer(_)));
    let is_newer = |entry: &history::Run| {
        asked || entry.ended_at > run.timing.armed_at || entry.iterations > run.iteration
    };
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
            if asked {
                // The runner would have recorded the ending after its wait for an answer.
                events::note(world, &run, &[EventKind::Ended(RunEnded::of(&run, world.now))]);
            }
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
                        "its runner was killed; ralph/logs/summary.csv says {}, but Ralph has no record of that",
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

/// Returns what the user is told of an ending outside the session.
pub fn notice(
    world: &World,
    project: &Project,
    session: &str,
    run: &ArmedLoop,
    settings: &NotifySettings,
) -> Notice {
    let root = project.root.to_string_lossy();
    let notice = match run.outcome {
        Some(Outcome::Decide | Outcome::Blocked) => {
            let open = reply::load(world, project, session).filter(|open| open.run_id == run.run_id);
            let reply_to = |open: reply::OpenReply| {
                Some(ReplyTo { topic: settings.answers.clone()?, token: open.token })
            };
            Notice::question(run, &root, open.and_then(reply_to), world.now)
        }
        _ => Notice::ended(run, &root, world.now),
    };
    notice.in_session(session)
}

/// Notifies the user, after the state is saved, so that an ending is announced once. Returns what could not be started.
pub fn announce(
    world: &World,
    project: &Project,
    session: &str,
    run: &ArmedLoop,
    resolved: &Resolved,
) -> Vec<String> {
    let settings = resolved.notify();
    notify::send(project, &notice(world, project, session, run, &settings), &settings)
}

/// Disarms a run whose ending the user has seen. If the history does not have it, the armed record stays: one of the two
/// must show that the loop was this user's.
pub fn disarm_recorded(world: &World, project: &Project, session: &str, run: &ArmedLoop) {
    if history::contains(world, project, &run.run_id).unwrap_or(false) {
        armed::disarm(world, project, session);
        circuit::forget(world, project, session);
    }
}

/// Obeys the kill switch: ends every loop of this project but that of `except`, saves the state, removes the switch and
/// announces the endings.
pub fn obey_kill_switch(
    world: &World,
    project: &Project,
    except: Option<&str>,
    mut state: Locked,
) -> Result<()> {
    let killed = kill_all(world, project, except, &mut state.document)?;
    state.save()?;
    given_guidance::prune(world, project, &state.document);
    drop(state);
    killed.clear_switch(project);
    announce_all(world, project, &killed.ended);
    Ok(())
}

/// Ends every loop of this project for its kill switch. Returns them, to be announced. A loop whose record cannot be read
/// is left as it is; then the switch must stay too.
pub fn kill_all(
    world: &World,
    project: &Project,
    except: Option<&str>,
    document: &mut Document,
) -> Result<KillSwitchResult> {
    let (ended, faults) =
        end_others(world, project, except, document, |_| Some((KILLED.0, KILLED.1.to_owned())))?;
    Ok(KillSwitchResult { ended, faults })
}

/// What a kill switch did.
#[derive(Default)]
pub struct KillSwitchResult {
    pub ended: Vec<ArmedLoop>,
    /// What could not be read.
    pub faults: Vec<String>,
}

impl KillSwitchResult {
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
        announce(world, project, "", run, &config::load_for(world, project, run));
    }
}
