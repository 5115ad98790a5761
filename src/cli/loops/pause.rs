//! `ralph pause`: pauses loops from any terminal, and resumes them.
//!
//! A loop in a session pauses when its turn ends: the Stop hook finds the state paused, allows the stop and says so. A
//! runner lets its iteration end and holds before the next one. Nothing is cut off; `ralph stop` does that.

use super::stop::StopScope;
use crate::cli::{Failure, Invocation, Project, World};
use crate::core::event::{EventKind, Paused, RunStarted};
use crate::core::record::{ArmedLoop, Engine, LoopState, PAUSED_BY_USER};
use crate::core::text::clean;
use crate::store::runner::run_lock;
use crate::store::state::{self, Locked};
use crate::store::user::armed;
use crate::store::{config, events};

pub fn command(call: &Invocation) -> Result<String, Failure> {
    let scope = call.session().map_or(StopScope::Project, |session| StopScope::Session(session.to_owned()));
    match call.flag("resume") {
        true => resume(&call.world, &call.project, &scope),
        false => pause(&call.world, &call.project, &scope),
    }
}

/// Pauses the loops that run.
pub fn pause(world: &World, project: &Project, scope: &StopScope) -> Result<String, Failure> {
    let mut refused = None;
    let lines = change(world, project, scope, |session, run| {
        if run.engine == Engine::Runner && run_lock::holder(world, project).is_none() {
            refused = Some(runner_gone(run));
            return Ok(None);
        }
        if run.state != LoopState::Running {
            refused = Some(already_paused(scope, run));
            return Ok(None);
        }
        let in_turn = run.session.waiting.is_none();
        run.pause(PAUSED_BY_USER);
        // No turn or iteration has to end before the pause takes effect.
        run.told.ending = !in_turn;
        let paused = EventKind::Paused(Paused { reason: PAUSED_BY_USER.into(), seconds: None });
        events::note(world, run, &[paused]);
        Ok(Some(format!("{} {}", quoted(run), how_it_pauses(session, run.engine, in_turn))))
    })?;
    match lines.is_empty() {
        true => Err(refused.unwrap_or_else(|| none(scope, "running"))),
        false => Ok(lines.join("\n")),
    }
}

/// Returns the failure of pausing a loop that is paused.
fn already_paused(scope: &StopScope, run: &ArmedLoop) -> Failure {
    let which = match scope {
        StopScope::Session(_) => "the loop of this session".to_owned(),
        _ => quoted(run),
    };
    Failure::refused(format!("{which} is already paused")).hint(match run.engine {
        Engine::Runner => "resume it with `ralph pause --resume`",
        Engine::InSession => "resume it with /ralph:start --resume in its session",
    })
}

fn runner_gone(run: &ArmedLoop) -> Failure {
    Failure::refused(format!("the runner of {} has exited", quoted(run)))
        .hint("resume it with `ralph run`, or end it with `ralph stop`")
}

fn how_it_pauses(session: &str, engine: Engine, in_turn: bool) -> String {
    let when = if in_turn { "pauses at the end of this turn" } else { "is paused" };
    match engine {
        Engine::Runner => "pauses before its next iteration. Resume it with `ralph pause --resume`.".into(),
        Engine::InSession => {
            let session = clean::excerpt(session, 36);
            format!("{when}. Resume it with /ralph:start --resume in session {session}.")
        }
    }
}

/// Resumes what `ralph pause` paused: a runner that holds, or a session whose turn has not ended yet.
pub fn resume(world: &World, project: &Project, scope: &StopScope) -> Result<String, Failure> {
    let mut refused = None;
    let lines = change(world, project, scope, |session, run| {
        if run.state != LoopState::Paused {
            return Ok(None);
        }
        refused = match run.engine {
            Engine::Runner if run_lock::holder(world, project).is_none() => Some(runner_gone(run)),
            // No hook runs in a session that waits for its user, so nothing would continue it.
            Engine::InSession if run.told.ending || run.reason.as_deref() != Some(PAUSED_BY_USER) => {
                let why = format!("{} is paused, and its session waits for you", quoted(run));
                Some(Failure::refused(why).hint("resume it with /ralph:start --resume in its session"))
            }
            _ => None,
        };
        if refused.is_some() {
            return Ok(None);
        }
        (run.state, run.reason) = (LoopState::Running, None);
        let settings = config::load_for(world, project, run).settings_for(run.engine);
        let root = project.real_root();
        let started = RunStarted::of(run, session, &root.to_string_lossy(), &settings);
        events::note(world, run, &[EventKind::Started(RunStarted { continued: true, ..started })]);
        Ok(Some(format!("{} continues.", quoted(run))))
    })?;
    match (lines.is_empty(), refused) {
        (false, _) => Ok(lines.join("\n")),
        (true, Some(refused)) => Err(refused),
        (true, None) => Err(none(scope, "paused")),
    }
}

/// Changes the loops in this scope under the lock of the state. Returns what was said about those that changed.
fn change(
    world: &World,
    project: &Project,
    scope: &StopScope,
    mut one: impl FnMut(&str, &mut ArmedLoop) -> Result<Option<String>, Failure>,
) -> Result<Vec<String>, Failure> {
    if state::peek(project).is_ok_and(|document| document.is_none()) {
        return Ok(Vec::new());
    }
    let mut state = Locked::open(project, world.now)?;
    let armed::Loaded { loops, faults } = armed::load_all(world, project, &state.document);
    let mut lines = Vec::new();
    for (id, mut run) in loops {
        if matches!(scope, StopScope::Session(only) if *only != id) || !run.is_alive() {
            continue;
        }
        if let Some(line) = one(&id, &mut run)? {
            state.document.set_loop(&id, &run)?;
            lines.push(line);
        }
    }
    if !lines.is_empty() {
        state.save()?;
        lines.extend(faults);
    }
    Ok(lines)
}

fn quoted(run: &ArmedLoop) -> String {
    format!("\"{}\"", clean::excerpt(&run.task, 60))
}

fn none(scope: &StopScope, state: &str) -> Failure {
    let place = if matches!(scope, StopScope::Session(_)) { "session" } else { "project" };
    Failure::refused(format!("no loop is {state} in this {place}"))
        .hint("`ralph status` shows the loops of this project")
}
