//! A turn ended: from bytes to answer.

use crate::claude::answer::Answer;
use crate::claude::input::{Event, Input};
use crate::claude::transcript;
use crate::core::decide::{Decision, decide};
use crate::core::outcome::Outcome;
use crate::core::record::Loop;
use crate::core::runtime::Mark;
use crate::core::turn::{Gained, Turn};
use crate::core::{guidance, message, prompt};
use crate::store::ending::finish;
use crate::store::project::Project;
use crate::store::state::Locked;
use crate::store::world::World;
use crate::store::{armed, config, stop as stops};
use anyhow::Result;

pub fn stop(
    world: &World,
    project: &Project,
    session: &str,
    input: &Input,
    kill_switch: bool,
) -> Result<Answer> {
    let path = project.resolve(&project.state())?;
    if !path.exists() {
        let was_armed = armed::run_id(world, project, session).is_some();
        armed::disarm(world, project, session);
        let gone = format!("Ralph: {} is gone, and this session's loop with it", path.display());
        return Ok(if was_armed { Answer::tell(gone) } else { Answer::silent() });
    }
    let mut state = Locked::open(project, world.now)?;
    let own = state.document.loop_of(session).filter(|lap| armed::is_armed(world, project, session, lap));
    let mut answer = match own {
        Some(lap) => turn(world, project, session, input, lap, kill_switch, &mut state)?,
        None => Answer::silent(),
    };
    if kill_switch {
        end_the_others(world, project, session, &mut state)?;
    }
    if let Some(moved) = &state.moved_aside {
        answer = answer.also(&format!("Ralph: {moved}"));
    }
    state.save()?;
    if kill_switch {
        stops::clear_kill_switch(project);
    }
    Ok(answer)
}

fn turn(
    world: &World,
    project: &Project,
    session: &str,
    input: &Input,
    lap: Loop,
    kill_switch: bool,
    state: &mut Locked,
) -> Result<Answer> {
    let now = world.now;
    let resolved = config::load(world, project, &lap.given);
    let settings = resolved.settings();
    let facts = gather(world, input, &lap, kill_switch);
    let was_alive = lap.is_alive();
    let (mut lap, decision) = decide(lap, &facts, &settings, now);

    let mut notes = Vec::new();
    if was_alive && !lap.is_alive() {
        notes = finish(world, project, session, &lap, &resolved);
    }
    let warnings = resolved.warnings.join("\n");
    if lap.is_alive() && warnings != lap.warned {
        notes.extend(resolved.warnings.iter().map(|warning| format!("settings: {warning}")));
        lap.warned = warnings;
    }
    let mut guidance = state.document.guidance();
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
        state.document.set_guidance(&guidance)?;
    }
    state.document.set_loop(session, &lap)?;
    if !lap.is_alive() && lap.announced {
        // The ending is told and kept: nothing of this run is armed any more.
        state.save()?;
        armed::disarm(world, project, session);
    }
    Ok(answer)
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

/// The kill switch means every loop of this project.
fn end_the_others(world: &World, project: &Project, session: &str, state: &mut Locked) -> Result<()> {
    for (id, mut lap) in state.document.loops() {
        if id != session && lap.is_alive() && armed::is_armed(world, project, &id, &lap) {
            lap.end(Outcome::Killed, "the file .claude/STOP_LOOP was there", world.now);
            finish(world, project, &id, &lap, &config::load(world, project, &lap.given));
            state.document.set_loop(&id, &lap)?;
        }
    }
    Ok(())
}
