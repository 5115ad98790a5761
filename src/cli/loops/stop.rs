//! `ralph stop`: ends loops, from any terminal.

use super::alive;
use crate::cli::{Failure, Invocation, Project, World};
use crate::core::message;
use crate::core::outcome::Outcome;
use crate::core::record::{ArmedLoop, Engine, StoredLoop};
use crate::core::text::clean;
use crate::run::{self, saved};
use crate::store::config;
use crate::store::runner::run_lock::{self, HeldProject, RunLock};
use crate::store::state::{self, Locked, ending, stop as stops};
use crate::store::user::armed;
use crate::store::world::Instant;
use std::time::Duration;

/// How long a runner may take to end its agent. The client ends the hook of a slash command after 30 s.
const MAX_END_WAIT: Duration = Duration::from_secs(25);
const END_POLL: Duration = Duration::from_millis(20);

/// Which loops a command is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopScope {
    Session(String),
    Project,
    /// Every loop of this user, in every project.
    All,
}

/// Returns which loops `stop` and `reset` are for.
pub fn scope(call: &Invocation) -> StopScope {
    match call.session() {
        _ if call.flag("all") => StopScope::All,
        Some(session) => StopScope::Session(session.to_owned()),
        None => StopScope::Project,
    }
}

/// Ends loops. `shown_in` is the session whose user reads the answer and is not told again.
pub fn stop(
    world: &World,
    project: &Project,
    scope: &StopScope,
    shown_in: Option<&str>,
) -> Result<String, Failure> {
    let mut unended = Vec::new();
    let lines = match scope {
        StopScope::Session(id) => stop_in(world, project, Some(id), shown_in, &mut unended)?,
        StopScope::Project => stop_in(world, project, None, shown_in, &mut unended)?,
        StopScope::All => stop_everywhere(world, shown_in, &mut unended)?,
    };
    // They name files of the project, whose folder may have any name.
    let lines: Vec<String> = lines.iter().map(|line| clean::block(line)).collect();
    match scope {
        _ if !unended.is_empty() => {
            Err(Failure::internal([unended, lines].concat().join("\n")).hint(
                "the loop starts no further iteration; run `ralph stop` again to end the agent, or see `ralph doctor` for leftover processes",
            ))
        }
        _ if !lines.is_empty() => Ok(lines.join("\n")),
        StopScope::Session(id) => Err(none_running(world, project, id)),
        StopScope::Project => Ok(format!("No loop is running in {}.", shown(project))),
        StopScope::All => Ok("No loop is running.".into()),
    }
}

fn stop_everywhere(
    world: &World,
    shown_in: Option<&str>,
    unended: &mut Vec<String>,
) -> Result<Vec<String>, Failure> {
    // Recorded first: this also reaches loops whose state cannot be written now.
    stops::stop_all(world)?;
    let unreadable = |fault: String| format!("{fault}; if its loop is running, it stops when its turn ends");
    let mut lines: Vec<String> = armed::unreadable(world).into_iter().map(unreadable).collect();
    for project in armed::projects(world) {
        match stop_in(world, &project, None, shown_in, unended) {
            Ok(stopped) => lines.extend(stopped),
            Err(Failure { message, .. }) => {
                lines.push(format!("{}: stops when its turn ends ({message})", shown(&project)));
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
    unended: &mut Vec<String>,
) -> Result<Vec<String>, Failure> {
    let is_held =
        || run_lock::holder(world, project).or_else(|| run_lock::left_behind(world, project)).is_some();
    if state::peek(project).is_ok_and(|document| document.is_none()) && !is_held() {
        return Ok(Vec::new());
    }
    let mut state = Locked::open(project, world.now)?;
    let mut told: Vec<String> = state.moved_aside.iter().cloned().collect();
    let mut ended = Vec::new();
    // It ended before this command: the last row of its summary says how.
    let dead = ending::end_dead_run(world, project, &mut state.document)?;
    told.extend(dead.iter().map(|run| say_ended(world, project, run)));
    let armed::Loaded { mut loops, faults } = armed::load_all(world, project, &state.document);
    let unreadable = |fault: String| format!("{fault}; its loop was not stopped");
    told.extend(faults.into_iter().map(unreadable));
    // Its runner looks for the ending in the state, where it is written below.
    let lost = saved::lost(world, project, &state.document)?;
    loops.extend(lost.map(|run| (run::SESSION.to_owned(), run)));
    for (id, mut run) in loops {
        if only.is_some_and(|only| only != id) || !run.is_alive() {
            continue;
        }
        let reason = if shown_in.is_some() {
            "the stop command was typed in Claude Code"
        } else {
            "`ralph stop` was run"
        };
        run.end(Outcome::Stopped, reason, world.now);
        run.told.ending = shown_in == Some(&id);
        let notes = ending::record(world, project, &id, &run);
        state.document.set_loop(&id, &run)?;
        ended.push((id, run, notes));
    }
    let is_meant = ended.is_empty() && only.is_none_or(|only| only == run::SESSION);
    let stopped_before = state.document.loop_of(run::SESSION);
    state.save()?;
    drop(state);
    ending::announce_all(world, project, dead.as_slice());
    if is_meant && is_ending(world, project, stopped_before.as_ref()) {
        match end_agent(world, project) {
            Ok(()) => told.push("The agent of the last run has ended.".into()),
            Err(why) => unended.push(format!("the last run has not ended yet: {why}")),
        }
    } else if is_meant && let Some(holder) = unrecorded(world, project, stopped_before.as_ref()) {
        let (id, pid) = (message::short_id(&holder.run_id), holder.pid);
        unended
            .push(format!("the record of run {id} is missing; `kill {pid}` ends its runner and its agent"));
    }
    for (id, run, notes) in ended {
        let task = format!("\"{}\"", clean::excerpt(&run.task, 60));
        // An agent that stops its own run would wait for itself.
        let is_own = world.run_id.as_ref() == Some(&run.run_id);
        let end = if run.engine == Engine::Runner && !is_own { end_agent(world, project) } else { Ok(()) };
        ending::add_missing_event(world, project, &run);
        match end {
            Ok(()) => told.extend([task, say_ended(world, project, &run)]),
            Err(why) => unended.push(format!("{task} has not ended yet: {why}")),
        }
        told.extend(notes);
        if run.told.ending {
            ending::disarm_recorded(world, project, &id, &run);
        }
        told.extend(ending::announce(world, project, &id, &run, &config::load_for(world, project, &run)));
    }
    Ok(told)
}

/// Says how a loop ended.
fn say_ended(world: &World, project: &Project, run: &ArmedLoop) -> String {
    let settings = config::load_for(world, project, run).settings_for(run.engine);
    message::ended(run, &settings, world.now)
}

/// Returns whether something of a run that was stopped before may still be running.
fn is_ending(world: &World, project: &Project, stopped: Option<&StoredLoop>) -> bool {
    match run_lock::holder(world, project) {
        Some(holder) => stopped.is_some_and(|run| !run.is_alive() && run.run_id == holder.run_id),
        None => run_lock::left_behind(world, project).is_some(),
    }
}

/// Returns a runner that works here on a run of which neither the project nor the data folder has a record.
fn unrecorded(world: &World, project: &Project, stored: Option<&StoredLoop>) -> Option<RunLock> {
    let is_unrecorded =
        |holder: &RunLock| !holder.run_id.is_empty() && stored.is_none_or(|run| run.run_id != holder.run_id);
    run_lock::holder(world, project).filter(is_unrecorded)
}

/// Waits until the runner has ended its agent; if the runner is dead, ends it here. An error says why the agent may
/// still be running.
fn end_agent(world: &World, project: &Project) -> Result<(), String> {
    let began = Instant::now();
    while let Some(holder) = run_lock::holder(world, project) {
        if began.elapsed() >= MAX_END_WAIT {
            let (pid, waited) = (holder.pid, MAX_END_WAIT.as_secs());
            return Err(format!("its runner (process {pid}) is still ending the agent after {waited}s"));
        }
        std::thread::sleep(END_POLL);
    }
    // Another runner that has the project by now has seen to it.
    let Ok(Ok(held)) = HeldProject::take(world, project) else { return Ok(()) };
    match run::reap_left_behind(&held).unended {
        Some(why) => Err(why),
        None => {
            held.forget_left_behind();
            Ok(())
        }
    }
}

fn none_running(world: &World, project: &Project, session: &str) -> Failure {
    let failure = Failure::refused("no loop is running in this session");
    let others = alive(world, project).loops.into_iter().filter(|(id, _)| id != session);
    let others: String = others
        .map(|(id, run)| format!("\n  --session {}  {}", clean::line(&id), clean::excerpt(&run.task, 40)))
        .collect();
    match others.is_empty() {
        true => failure.hint("`ralph status` shows the loops of this project"),
        false => failure.hint(format!("these are running in this project:{others}")),
    }
}

/// Returns the project's folder: its name may hold escape codes.
fn shown(project: &Project) -> String {
    clean::visible(&project.root.display().to_string())
}
