//! A session begins, ends, or loses a turn to an error.

use super::Call;
use crate::claude::answer::Answer;
use crate::claude::transcript;
use crate::core::decide::account;
use crate::core::outcome::Outcome;
use crate::core::record::{Carried, Loop, LoopState};
use crate::core::runtime::Mark;
use crate::core::settings::Settings;
use crate::core::time::{self, Stamp};
use crate::core::turn::Turn;
use crate::core::{clean, guidance, message, prompt};
use crate::scan::brief::{Look, Reader, brief};
use crate::scan::{self, Patience};
use crate::store::state::{self, Document, Locked, StateError};
use crate::store::{armed, config, ending, history};
use anyhow::Result;

pub fn started(call: &Call, source: &str) -> Result<Answer> {
    let Call { world, project, session, .. } = *call;
    let settings = config::load(world, project, &Default::default()).settings();
    if !anything_to_do(call, source, &settings)? {
        return Ok(Answer::silent());
    }
    let mut state = Locked::open(project, world.now)?;
    let mut told: Vec<String> = state.moved_aside.iter().cloned().collect();
    let mut guidance = state.document.guidance();
    guidance.bring_back_to(world.now);
    let purged = guidance.purge_over_age(world.now, settings.guidance_max_age_ms);
    if !purged.is_empty() {
        told.extend(guidance::purged(&purged));
        state.document.set_guidance(&guidance)?;
    }
    let expired = close_expired(call, &mut state.document, &settings)?;

    let mut answer = Answer::silent();
    let own = state.document.loop_of(session).and_then(|lap| armed::claim(world, project, session, lap));
    if let Some(mut lap) = own.clone().filter(Loop::is_alive) {
        let settings = config::load(world, project, &lap.given).settings();
        let compacted = source == "compact";
        if lap.state == LoopState::Running {
            observe(call, &mut lap, if compacted { Mark::Seen } else { Mark::Reopened }, &settings);
        }
        if !compacted {
            // A new process has an empty queue and waits for nothing.
            lap.reading.queue.clear();
            lap.waiting = None;
        }
        lap.orphaned_at = None;
        if lap.state == LoopState::Running {
            let resolved = config::load(world, project, &lap.given);
            let reader = Reader { world, project, session, lap: &lap, resolved: &resolved, told: true };
            let look = match resolved.is_on("scan.enabled") {
                true => Look::Made(scan::scan(world, project, &resolved, Patience::Hook, None)),
                false => Look::Remembered,
            };
            let brief = brief(&reader, &mut state.document, look)?;
            told.extend(brief.notes);
            answer.context = Some(("SessionStart", prompt::whole(&lap, &brief.lists, &settings, world.now)));
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
    if let Some(mut lap) = own.filter(|lap| !lap.is_alive() && !lap.announced) {
        let settings = config::load(world, project, &lap.given).settings();
        told.push(message::ended(&lap, &settings, world.now));
        lap.announced = true;
        state.document.set_loop(session, &lap)?;
    }
    if source == "clear" {
        told.extend(orphans(call, &state.document));
    }
    for line in told {
        let line = if line.starts_with("Ralph") { line } else { format!("Ralph: {line}") };
        answer = answer.also(&line);
    }
    state.save()?;
    drop(state);
    ending::announce_all(world, project, &expired);
    Ok(answer)
}

/// The look that decides whether the lock is worth taking. A file that cannot be used concerns only
/// whoever has a loop armed; a damaged one is moved aside under the lock.
fn anything_to_do(call: &Call, source: &str, settings: &Settings) -> Result<bool> {
    let Call { world, project, session, .. } = *call;
    let own = armed::any(world, project, session);
    let seen = match state::peek(project) {
        Ok(None) => return Ok(false),
        Ok(Some(document)) if !document.newer_than_us() => document,
        Ok(Some(_)) => return Ok(own),
        Err(StateError::Damaged(..)) => return Ok(true),
        Err(error) if own => return Err(error.into()),
        Err(_) => return Ok(false),
    };
    // What a repository brought along is none of our business.
    let ours = |id: &str, lap: &Loop| {
        armed::is_armed(world, project, id, lap) || history::contains(world, project, &lap.run_id)
    };
    let concerned = |lap: &Loop| (source == "clear" && lap.is_alive()) || expired(lap, world.now, settings);
    let mut others = seen.loops().into_iter().filter(|(id, _)| id != session);
    Ok(own
        || others.any(|(id, lap)| concerned(&lap) && ours(&id, &lap))
        || !seen.guidance().purge_over_age(world.now, settings.guidance_max_age_ms).is_empty())
}

fn expired(lap: &Loop, now: Stamp, settings: &Settings) -> bool {
    now - lap.last_seen() > settings.session_expiration_ms
}

/// A loop nobody has seen for long is closed, and later forgotten; the history keeps it.
fn close_expired(call: &Call, document: &mut Document, settings: &Settings) -> Result<Vec<Loop>> {
    let Call { world, project, session, .. } = *call;
    let mut closed = Vec::new();
    for (id, lap) in document.loops() {
        if id == session || !expired(&lap, world.now, settings) {
            continue;
        }
        if !lap.is_alive() {
            if lap.ended_at.is_none_or(|ended| world.now - ended > settings.session_expiration_ms) {
                document.remove_loop(&id);
                armed::disarm(world, project, &id);
            }
        } else if let Some(mut lap) = armed::claim(world, project, &id, lap) {
            let away = time::span(world.now - lap.last_seen());
            lap.end(Outcome::Interrupted, format!("its session was not seen for {away}"), world.now);
            ending::record(world, project, &id, &lap);
            document.set_loop(&id, &lap)?;
            closed.push(lap);
        }
    }
    Ok(closed)
}

/// Loops of other sessions, shown after `/clear` so that the cleared one's can be taken over.
fn orphans(call: &Call, document: &Document) -> Vec<String> {
    let Call { world, project, session, .. } = *call;
    let mut told = Vec::new();
    for (id, lap) in document.loops() {
        if id == session || !lap.is_alive() || !armed::is_armed(world, project, &id, &lap) {
            continue;
        }
        let orphaned = lap.orphaned_at.is_some();
        let whose = if orphaned { "lost its session" } else { "belongs to another session" };
        let run = if orphaned {
            String::new()
        } else {
            format!(" --run {}", clean::excerpt(&lap.run_id, 9).replace('…', ""))
        };
        let times = if lap.iteration == 1 { "iteration" } else { "iterations" };
        told.push(format!(
            "a loop {whose} ({}): \"{}\", {} {times}. /ralph:start --resume{run} adopts it here",
            clean::excerpt(&id, 8),
            clean::excerpt(&lap.task, 60),
            lap.iteration
        ));
    }
    told
}

pub fn ended(call: &Call, reason: &str) -> Result<Answer> {
    with_own_running_loop(call, |lap, settings| {
        observe(call, lap, Mark::Seen, settings);
        lap.waiting = None;
        lap.closed_at = Some(call.world.now);
        if reason == "clear" {
            lap.orphaned_at = Some(call.world.now);
        }
    })
}

pub fn turn_failed(call: &Call, error: &str) -> Result<Answer> {
    with_own_running_loop(call, |lap, settings| {
        observe(call, lap, Mark::Seen, settings);
        lap.last_error = Some(clean::excerpt(if error.is_empty() { "unknown" } else { error }, 100));
    })
}

fn with_own_running_loop(call: &Call, change: impl FnOnce(&mut Loop, &Settings)) -> Result<Answer> {
    let Call { world, project, session, .. } = *call;
    let seen = state::peek(project).ok().flatten();
    if seen.is_none_or(|document| document.loop_of(session).is_none_or(|lap| lap.state != LoopState::Running))
    {
        return Ok(Answer::silent());
    }
    let mut state = Locked::open(project, world.now)?;
    let own = state.document.loop_of(session).filter(|lap| lap.state == LoopState::Running);
    if let Some(mut lap) = own.and_then(|lap| armed::claim(world, project, session, lap)) {
        let settings = config::load(world, project, &lap.given).settings();
        change(&mut lap, &settings);
        state.document.set_loop(session, &lap)?;
    }
    state.save()?;
    Ok(Answer::silent())
}

fn observe(call: &Call, lap: &mut Loop, mark: Mark, settings: &Settings) {
    let gained = call.input.transcript.as_deref().and_then(|path| transcript::read(path, lap));
    let carried = gained.as_ref().map(|gained| Carried {
        tools_used: gained.tools_used,
        tools_that_write: gained.tools_that_write,
        edits: gained.edits,
    });
    account(lap, &Turn { mark, gained, ..Turn::default() }, settings, call.world.now);
    lap.reading.carried = carried.unwrap_or(lap.reading.carried);
    lap.pause_if_interrupted();
}
