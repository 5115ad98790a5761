//! A session begins, ends, or loses a turn to an error.

use crate::claude::answer::Answer;
use crate::claude::input::Input;
use crate::claude::transcript;
use crate::core::decide::account;
use crate::core::outcome::Outcome;
use crate::core::record::{Loop, LoopState};
use crate::core::runtime::Mark;
use crate::core::settings::Settings;
use crate::core::time::{self, Stamp};
use crate::core::turn::Turn;
use crate::core::{clean, guidance, message, prompt};
use crate::store::ending::finish;
use crate::store::project::Project;
use crate::store::state::{self, Document, Locked, StateError};
use crate::store::world::World;
use crate::store::{armed, config};
use anyhow::Result;

pub fn started(
    world: &World,
    project: &Project,
    session: &str,
    input: &Input,
    source: &str,
) -> Result<Answer> {
    let settings = config::load(world, project, &Default::default()).settings();
    if !anything_to_do(world, project, session, source, &settings)? {
        return Ok(Answer::silent());
    }
    let mut state = Locked::open(project, world.now)?;
    let mut told: Vec<String> = state.moved_aside.iter().cloned().collect();
    let mut guidance = state.document.guidance();
    let purged = guidance.purge(world.now, settings.guidance_max_age_ms);
    if !purged.is_empty() {
        told.extend(guidance::purged(&purged));
        state.document.set_guidance(&guidance)?;
    }
    close_expired(world, project, session, &mut state.document, &settings)?;

    let mut answer = Answer::silent();
    let own = state.document.loop_of(session).filter(Loop::is_alive);
    if let Some(mut lap) = own.filter(|lap| armed::is_armed(world, project, session, lap)) {
        let settings = config::load(world, project, &lap.given).settings();
        let compacted = source == "compact";
        if lap.state == LoopState::Running {
            observe(world, input, &mut lap, if compacted { Mark::Seen } else { Mark::Reopened }, &settings);
        }
        if !compacted {
            // A new process has an empty queue and waits for nothing.
            lap.reading.queue.clear();
            lap.waiting = None;
        }
        lap.orphaned_at = None;
        if lap.state == LoopState::Running {
            answer.context = Some(("SessionStart", prompt::whole(&lap, &guidance, &settings, world.now)));
            if guidance.deliver() {
                state.document.set_guidance(&guidance)?;
            }
            if !compacted {
                told.push(format!(
                    "{} · goes on at the end of the next turn",
                    message::position(&lap, &settings, world.now)
                ));
            }
        } else {
            told.push(message::paused(&lap, &settings, world.now));
        }
        state.document.set_loop(session, &lap)?;
    }
    if source == "clear" {
        told.extend(orphans(world, project, session, &state.document));
    }
    for line in told {
        let line = if line.starts_with("Ralph") { line } else { format!("Ralph: {line}") };
        answer = answer.also(&line);
    }
    state.save()?;
    Ok(answer)
}

/// The look that decides whether the lock is worth taking. A file that cannot be used concerns only
/// whoever has a loop armed; a damaged one is moved aside under the lock.
fn anything_to_do(
    world: &World,
    project: &Project,
    session: &str,
    source: &str,
    settings: &Settings,
) -> Result<bool> {
    let own = armed::run_id(world, project, session).is_some();
    let seen = match state::peek(project) {
        Ok(None) => return Ok(false),
        Ok(Some(document)) if !document.newer_than_us() => document,
        Ok(Some(_)) => return Ok(own),
        Err(StateError::Damaged(..)) => return Ok(true),
        Err(error) if own => return Err(error.into()),
        Err(_) => return Ok(false),
    };
    let others = seen.loops().into_iter().filter(|(id, _)| id != session);
    let concerned = |lap: &Loop| (source == "clear" && lap.is_alive()) || expired(lap, world.now, settings);
    Ok(own
        || others.into_iter().any(|(_, lap)| concerned(&lap))
        || !seen.guidance().purge(world.now, settings.guidance_max_age_ms).is_empty())
}

fn expired(lap: &Loop, now: Stamp, settings: &Settings) -> bool {
    now - lap.last_seen() > settings.session_expiration_ms
}

/// A loop nobody has seen for long is closed, and later forgotten; the history keeps it.
fn close_expired(
    world: &World,
    project: &Project,
    session: &str,
    document: &mut Document,
    settings: &Settings,
) -> Result<()> {
    for (id, mut lap) in document.loops() {
        if id == session || !expired(&lap, world.now, settings) {
            continue;
        }
        if !lap.is_alive() {
            if lap.ended_at.is_none_or(|ended| world.now - ended > settings.session_expiration_ms) {
                document.remove_loop(&id);
                armed::disarm(world, project, &id);
            }
        } else if armed::is_armed(world, project, &id, &lap) {
            let away = time::span(world.now - lap.last_seen());
            lap.end(Outcome::Interrupted, format!("its session was not seen for {away}"), world.now);
            finish(world, project, &id, &lap, &config::load(world, project, &lap.given));
            document.set_loop(&id, &lap)?;
        }
    }
    Ok(())
}

/// Loops of other sessions, shown after `/clear` so that theirs can be taken over.
fn orphans(world: &World, project: &Project, session: &str, document: &Document) -> Vec<String> {
    let others = document
        .loops()
        .into_iter()
        .filter(|(id, lap)| id != session && lap.is_alive() && armed::is_armed(world, project, id, lap));
    others
        .map(|(id, lap)| {
            let whose =
                if lap.orphaned_at.is_some() { "lost its session" } else { "belongs to another session" };
            format!(
                "a loop {whose} ({}): \"{}\", {} iterations. /ralph:start --resume adopts it here",
                clean::excerpt(&id, 8),
                clean::excerpt(&lap.task, 60),
                lap.iteration
            )
        })
        .collect()
}

pub fn ended(world: &World, project: &Project, session: &str, input: &Input, reason: &str) -> Result<Answer> {
    with_own_running_loop(world, project, session, |lap, settings| {
        observe(world, input, lap, Mark::Seen, settings);
        lap.waiting = None;
        if reason == "clear" {
            lap.orphaned_at = Some(world.now);
        }
    })
}

pub fn turn_failed(
    world: &World,
    project: &Project,
    session: &str,
    input: &Input,
    error: &str,
) -> Result<Answer> {
    with_own_running_loop(world, project, session, |lap, settings| {
        observe(world, input, lap, Mark::Seen, settings);
        lap.last_error = Some(clean::excerpt(if error.is_empty() { "unknown" } else { error }, 100));
    })
}

fn with_own_running_loop(
    world: &World,
    project: &Project,
    session: &str,
    change: impl FnOnce(&mut Loop, &Settings),
) -> Result<Answer> {
    if !project.state().exists() {
        return Ok(Answer::silent());
    }
    let mut state = Locked::open(project, world.now)?;
    let own = state.document.loop_of(session).filter(|lap| lap.state == LoopState::Running);
    if let Some(mut lap) = own.filter(|lap| armed::is_armed(world, project, session, lap)) {
        let settings = config::load(world, project, &lap.given).settings();
        change(&mut lap, &settings);
        state.document.set_loop(session, &lap)?;
    }
    state.save()?;
    Ok(Answer::silent())
}

fn observe(world: &World, input: &Input, lap: &mut Loop, mark: Mark, settings: &Settings) {
    let gained = input.transcript.as_deref().and_then(|path| transcript::read(path, lap));
    account(lap, &Turn { mark, gained, ..Turn::default() }, settings, world.now);
}
