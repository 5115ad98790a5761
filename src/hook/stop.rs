//! A turn ended: from bytes to answer.

use super::Call;
use crate::claude::answer::Answer;
use crate::claude::input::{Event, Input};
use crate::claude::transcript;
use crate::core::decide::{Decision, decide};
use crate::core::record::Loop;
use crate::core::runtime::Mark;
use crate::core::settings::Resolved;
use crate::core::turn::{Gained, Turn};
use crate::core::{guidance, message, prompt};
use crate::store::project::Project;
use crate::store::state::{Document, Locked};
use crate::store::world::World;
use crate::store::{armed, config, ending, stop as stops};
use anyhow::Result;

pub fn stop(call: &Call, kill_switch: bool) -> Result<Answer> {
    let Call { world, project, session, .. } = *call;
    if is_gone(project)? {
        let was_armed = armed::any(world, project, session);
        armed::disarm(world, project, session);
        let gone = format!("Ralph: {} is gone, and this session's loop with it", project.state().display());
        return Ok(if was_armed { Answer::tell(gone) } else { Answer::silent() });
    }
    let mut state = Locked::open(project, world.now)?;
    let own = state.document.loop_of(session).and_then(|lap| armed::claim(world, project, session, lap));
    let (mut answer, ended) = match own {
        Some(lap) => turn(call, lap, kill_switch, &mut state.document)?,
        None => (Answer::silent(), None),
    };
    let mut killed = Vec::new();
    if kill_switch {
        killed = ending::kill_all(world, project, Some(session), &mut state.document)?;
    }
    if let Some(moved) = &state.moved_aside {
        armed::disarm(world, project, session);
        answer =
            answer.also(&format!("Ralph: {moved}. A loop of this session is lost with it: start it again"));
    }
    state.save()?;
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
    let was_alive = lap.is_alive();
    let (mut lap, decision) = decide(lap, &facts, &settings, now);

    let mut notes = Vec::new();
    let ends_now = was_alive && !lap.is_alive();
    if ends_now {
        notes = ending::record(world, project, session, &lap);
    }
    let warnings = resolved.warnings.join("\n");
    if lap.is_alive() && warnings != lap.warned {
        notes.extend(resolved.warnings.iter().map(|warning| format!("settings: {warning}")));
        lap.warned = warnings;
    }
    let mut guidance = document.guidance();
    let purged = guidance.purge(now, settings.guidance_max_age_ms);
    notes.extend(guidance::purged(&purged));

    let mut answer = match &decision {
        Decision::Silent => Answer::silent(),
        Decision::Ended => Answer::tell(message::ended(&lap, &settings, now)),
        Decision::Paused => Answer::tell(message::paused(&lap, &settings, now)),
        Decision::Yield => Answer::tell(message::making_way(&lap, &settings, now)),
        Decision::Continue(note) => Answer {
            block: Some(prompt::go_on(&lap, note, &guidance, &settings, now)),
            message: Some(message::going_on(&lap, note, &settings, now)),
            context: None,
        },
    };
    for note in &notes {
        answer = answer.also(&format!("Ralph: {note}"));
    }
    let delivered = matches!(decision, Decision::Continue(_)) && guidance.deliver();
    if delivered || !purged.is_empty() {
        document.set_guidance(&guidance)?;
    }
    document.set_loop(session, &lap)?;
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
        _ => continued || gained.prompted,
    };
    if shown { Mark::Answered } else { Mark::Seen }
}
