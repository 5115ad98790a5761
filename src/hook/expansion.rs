//! A slash command of ours, with the user's exact text, before it expands.
//!
//! Without a loop in this session the answer is given at once and no model is called. Within a loop a
//! command that ends without a turn would also end the loop's turn, so the user is shown the answer and
//! the agent is sent on by the command itself.

use crate::claude::answer::Answer;
use crate::cli::slash;
use crate::core::prompt;
use crate::core::record::LoopState;
use crate::store::project::Project;
use crate::store::world::World;
use crate::store::{armed, config, handoff, state};
use anyhow::Result;

pub fn expand(world: &World, project: &Project, session: &str, command: &str, text: &str) -> Result<Answer> {
    let Some(command) = command.strip_prefix("ralph:").and_then(slash::Command::named) else {
        return Ok(Answer::silent());
    };
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

/// The prompt that keeps the session's running loop going, if there is one.
fn sent_on(world: &World, project: &Project, session: &str) -> Option<String> {
    let document = state::peek(project).ok()??;
    let lap = document.loop_of(session).filter(|lap| lap.state == LoopState::Running)?;
    if !armed::is_armed(world, project, session, &lap) {
        return None;
    }
    let settings = config::load(world, project, &lap.given).settings();
    Some(prompt::go_on(&lap, &Default::default(), &document.guidance(), &settings, world.now))
}
