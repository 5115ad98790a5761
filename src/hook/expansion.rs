//! A slash command of ours, with the user's exact text, before it expands.
//!
//! Without a loop in this session the answer is given at once and no model is called. Within a loop a
//! command that ends without a turn would also end the loop's turn, so the user is shown the answer and
//! the agent is sent on by the command itself.

use super::Call;
use crate::claude::answer::Answer;
use crate::claude::transcript;
use crate::cli::slash;
use crate::core::prompt;
use crate::core::record::LoopState;
use crate::scan::brief::{Look, Reader, brief};
use crate::store::project::Project;
use crate::store::state::Locked;
use crate::store::world::World;
use crate::store::{armed, config, handoff};
use anyhow::Result;

pub fn expand(call: &Call, command: &str, text: &str) -> Result<Answer> {
    let Call { world, project, session, .. } = *call;
    let Some(command) = command.strip_prefix("ralph:").and_then(slash::Command::named) else {
        return Ok(Answer::silent());
    };
    if armed::any(world, project, session) {
        note_interruption(call)?;
    }
    let (told, for_agent) = match slash::run(world, project, session, command, text) {
        Ok(reply) => (reply.user, reply.agent),
        Err(failure) => (failure.to_string(), None),
    };
    let for_agent = match for_agent {
        Some(text) => text,
        None => match sent_on(world, project, session) {
            Some(text) => format!(
                "The user gave Ralph a command and has been shown its answer. Nothing to reply.\n{text}"
            ),
            None => return Ok(Answer::block(told)),
        },
    };
    let mut answer = Answer::tell(told);
    if handoff::leave(world, session, command.name(), &for_agent).is_err() {
        // The command has been carried out: the agent must learn of it one way or the other.
        answer.context = Some(("UserPromptExpansion", for_agent));
    }
    Ok(answer)
}

/// Esc fires no hook: what the transcript says of it counts before the command does.
fn note_interruption(call: &Call) -> Result<()> {
    let Call { world, project, session, input } = *call;
    let mut state = Locked::open(project, world.now)?;
    let lap = state.document.loop_of(session).and_then(|lap| armed::claim(world, project, session, lap));
    let (Some(mut lap), Some(path)) = (lap, input.transcript.as_deref()) else { return Ok(()) };
    let seen = transcript::read(path, &lap).and_then(|gained| gained.interrupted_at);
    lap.interrupted_at = lap.interrupted_at.max(seen);
    if lap.pause_if_interrupted() {
        state.document.set_loop(session, &lap)?;
        state.save()?;
    }
    Ok(())
}

/// The prompt that keeps the session's running loop going, if there is one, with what was just said in it.
fn sent_on(world: &World, project: &Project, session: &str) -> Option<String> {
    if !armed::any(world, project, session) {
        return None;
    }
    let mut state = Locked::open(project, world.now).ok()?;
    let lap = state.document.loop_of(session).filter(|lap| lap.state == LoopState::Running)?;
    let lap = armed::claim(world, project, session, lap)?;
    let resolved = config::load(world, project, &lap.given);
    let reader = Reader { world, project, session, lap: &lap, resolved: &resolved, told: true };
    let brief = brief(&reader, &mut state.document, Look::Remembered).ok()?;
    state.save().ok()?;
    Some(prompt::go_on(&lap, &Default::default(), &brief.lists, &resolved.settings(), world.now))
}
