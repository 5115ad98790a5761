//! A turn ended: from bytes to answer.

use super::Call;
use crate::claude::answer::Answer;
use crate::claude::input::{Event, Input};
use crate::claude::transcript;
use crate::core::decide::{Decision, decide};
use crate::core::merge::Lists;
use crate::core::outcome::Outcome;
use crate::core::record::Loop;
use crate::core::runtime::Mark;
use crate::core::settings::Resolved;
use crate::core::turn::{Gained, Turn};
use crate::core::{message, prompt};
use crate::scan::brief::{Look, Reader, brief};
use crate::store::project::Project;
use crate::store::state::{Document, Locked};
use crate::store::world::World;
use crate::store::{armed, config, ending, stop as stops};
use anyhow::Result;

pub fn stop(call: &Call, kill_switch: bool) -> Result<Answer> {
    let Call { world, project, session, .. } = *call;
    let was_armed = armed::any(world, project, session);
    if is_gone(project)? && !(was_armed && project.claude_dir().is_dir()) {
        stops::clear_kill_switch(project);
        return Ok(if was_armed { vanished(call) } else { Answer::silent() });
    }
    let mut state = Locked::open(project, world.now)?;
    let own = state.document.loop_of(session).and_then(|lap| armed::claim(world, project, session, lap));
    let (mut answer, ended) = match own {
        Some(lap) => turn(call, lap, kill_switch, &mut state.document)?,
        None if was_armed => lost(call, &mut state)?,
        None => (Answer::silent(), None),
    };
    let mut killed = Vec::new();
    if kill_switch {
        killed = ending::kill_all(world, project, Some(session), &mut state.document)?;
    }
    if let Some(moved) = &state.moved_aside {
        answer = answer.also(&format!("Ralph: {moved}"));
    }
    if let Err(error) = state.save() {
        // Fails open, and still says what was decided.
        let told = Answer { block: None, ..answer };
        return Ok(told.also(&format!("Ralph could not keep this, so nothing was held up: {error:#}")));
    }
    drop(state);
    if kill_switch {
        stops::clear_kill_switch(project);
    }
    ending::announce_all(world, project, &killed);
    if let Some((lap, resolved)) = ended {
        ending::settle(world, project, session, &lap);
        if let Some(note) = ending::announce(project, &lap, &resolved) {
            answer = answer.also(&format!("Ralph: {note}"));
        }
    }
    Ok(answer)
}

/// The loop is armed but not in the file: that was damaged, replaced or removed. What is known of the loop
/// is its ending.
fn lost(call: &Call, state: &mut Locked) -> Result<(Answer, Option<(Loop, Resolved)>)> {
    let how = if state.moved_aside.is_some() { "was damaged" } else { "no longer holds it" };
    let Some((answer, lap, resolved)) = end_lost(call, how) else { return Ok((Answer::silent(), None)) };
    state.document.set_loop(call.session, &lap)?;
    Ok((answer, Some((lap, resolved))))
}

/// The same where the whole folder is gone, which is not made again for that.
fn vanished(call: &Call) -> Answer {
    let Some((answer, lap, resolved)) = end_lost(call, "is gone") else { return Answer::silent() };
    armed::disarm(call.world, call.project, call.session);
    ending::announce(call.project, &lap, &resolved);
    answer
}

fn end_lost(call: &Call, how: &str) -> Option<(Answer, Loop, Resolved)> {
    let Call { world, project, session, .. } = *call;
    let mut lap = armed::as_armed(world, project, session)?;
    let path = project.state();
    lap.end(Outcome::Error, format!("{} {how}; its count is that of its start", path.display()), world.now);
    lap.announced = true;
    let resolved = config::load(world, project, &lap.given);
    let mut answer = Answer::tell(message::ended(&lap, &resolved.settings(), world.now));
    for note in ending::record(world, project, session, &lap) {
        answer = answer.also(&format!("Ralph: {note}"));
    }
    Some((answer, lap, resolved))
}

/// The kill switch, seen by a hook that is no end of a turn.
pub fn kill(world: &World, project: &Project) -> Result<()> {
    if !is_gone(project)? {
        let mut state = Locked::open(project, world.now)?;
        let killed = ending::kill_all(world, project, None, &mut state.document)?;
        state.save()?;
        drop(state);
        ending::announce_all(world, project, &killed);
    }
    stops::clear_kill_switch(project);
    Ok(())
}

/// Whether there is no state file; a file that merely cannot be looked at is there.
fn is_gone(project: &Project) -> Result<bool> {
    Ok(project.resolve(&project.state())?.try_exists().is_ok_and(|exists| !exists))
}

/// Decides one turn of this session's loop; returns the loop and its settings too where it ends here.
fn turn(
    call: &Call,
    lap: Loop,
    kill_switch: bool,
    document: &mut Document,
) -> Result<(Answer, Option<(Loop, Resolved)>)> {
    let Call { world, project, session, input } = *call;
    let now = world.now;
    let resolved = config::load(world, project, &lap.given);
    let settings = resolved.settings();
    let facts = gather(world, input, &lap, kill_switch);
    let (before, was_alive) = (lap.clone(), lap.is_alive());
    let (mut lap, decision) = decide(lap, &facts, &settings, now);

    let mut notes = Vec::new();
    let ends_now = was_alive && !lap.is_alive();
    if ends_now {
        notes = ending::record(world, project, session, &lap);
    }
    let mut warnings = resolved.warnings.clone();
    lap.given.files = resolved.files.clone();
    let mut lists = Lists::default();
    if matches!(decision, Decision::Continue(_)) {
        let look = if std::mem::take(&mut lap.unscanned) { Look::Now } else { Look::Remembered };
        let reader = Reader { world, project, session, lap: &lap, resolved: &resolved, told: true };
        let brief = brief(&reader, document, look)?;
        notes.extend(brief.notes);
        warnings.extend(brief.warnings);
        lists = brief.lists;
    }
    let joined = warnings.join("\n");
    if joined != lap.warned {
        notes.extend(warnings.iter().map(|warning| format!("settings: {warning}")));
        lap.warned = joined;
    }

    let mut answer = match &decision {
        Decision::Silent => Answer::silent(),
        Decision::Ended => Answer::tell(message::ended(&lap, &settings, now)),
        Decision::Paused => Answer::tell(message::paused(&lap, &settings, now)),
        Decision::Yield => Answer::tell(message::making_way(&lap, &settings, now)),
        Decision::Continue(note) => Answer {
            block: Some(prompt::go_on(&lap, note, &lists, &settings, now)),
            message: Some(message::going_on(&lap, note, &settings, now)),
            // Beside the prompt, which is replayed with every later one and stays short.
            context: note.repeat_task.then(|| ("Stop", prompt::whole(&lap, &lists, &settings, now))),
        },
    };
    for note in &notes {
        answer = answer.also(&format!("Ralph: {note}"));
    }
    if lap != before {
        document.set_loop(session, &lap)?;
    }
    if !ends_now && !lap.is_alive() && decision == Decision::Ended {
        ending::settle(world, project, session, &lap);
    }
    Ok((answer, ends_now.then_some((lap, resolved))))
}

fn gather(world: &World, input: &Input, lap: &Loop, kill_switch: bool) -> Turn {
    let Event::Stop { message, continued, background } = &input.event else { return Turn::default() };
    let gained = input.transcript.as_deref().and_then(|path| transcript::read(path, lap));
    let message = message.clone().or_else(|| gained.as_ref()?.last_text.clone());
    Turn {
        message,
        kill_switch,
        stopped_all_at: stops::stopped_all_at(world),
        background: background.clone(),
        mark: mark(input, gained.as_ref(), *continued),
        gained,
    }
}

/// A Stop means that the model has answered, also where the transcript does not show it yet; but only
/// the prompt it shows. If a newer prompt is still missing there, the time between is not ours to judge.
fn mark(input: &Input, gained: Option<&Gained>, continued: bool) -> Mark {
    let Some(gained) = gained else { return Mark::Seen };
    let shown = match &input.prompt_id {
        Some(id) if !gained.reading.prompt_id.is_empty() => *id == gained.reading.prompt_id,
        _ => continued,
    };
    if shown { Mark::Answered } else { Mark::Seen }
}
