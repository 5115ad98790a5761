//! A slash command of ours, with the user's exact text, before it expands.
//!
//! Without a loop in this session the command is answered at once, without a model call. In a loop that would end the
//! loop's turn, so the user is shown the answer and the command itself prompts the agent to continue.

use super::Call;
use crate::claude::hook::answer::Answer;
use crate::claude::settings::{self, Settings, permissions};
use crate::claude::transcript;
use crate::cli::loops::slash;
use crate::core::prompt;
use crate::core::record::LoopState;
use crate::scan::briefing::{self, BriefingContext};
use crate::store::state::Locked;
use crate::store::user::{armed, handoff};
use crate::store::{Project, World, config};
use anyhow::Result;

pub fn expand(call: &Call, command: &str, text: &str) -> Result<Answer> {
    let Call { world, project, session, .. } = *call;
    let Some(command) = command.strip_prefix("ralph:").and_then(slash::find) else {
        return Ok(Answer::silent());
    };
    if armed::exists(world, project, session) {
        note_interruption(call)?;
    }
    let (told, for_agent) = match slash::run(world, project, session, command, text) {
        Ok(reply) if command == "start" => (reply.user + &permission_note(call), reply.agent),
        Ok(reply) => (reply.user, reply.agent),
        Err(failure) => (failure.to_string(), None),
    };
    let for_agent = match for_agent {
        Some(text) => text,
        None => match continuation(world, project, session) {
            Some(text) => {
                format!("The user ran a Ralph command and has seen its output. Do not reply to it.\n{text}")
            }
            None => return Ok(Answer::block(told)),
        },
    };
    let mut answer = Answer::tell(told);
    if handoff::leave(world, session, command, &for_agent).is_err() {
        // The command has taken effect, so the agent must still be told.
        answer.context = Some(("UserPromptExpansion", for_agent));
    }
    Ok(answer)
}

/// Returns what to add if the agent of this session may edit nothing without an answer.
fn permission_note(call: &Call) -> String {
    let Some(mode) = call.input.permission_mode.as_deref() else { return String::new() };
    let settings = Settings::read(call.world, call.project, settings::managed_folder());
    match permissions::mode_without_edits(&settings, Some(mode)).as_deref() {
        None => String::new(),
        Some("plan") => {
            "\nNote: in permission mode plan the agent may edit nothing; Shift+Tab changes the mode.".into()
        }
        Some(mode) => format!(
            "\nNote: in permission mode {mode} edits and commands that no rule allows wait for your permission, and with \
             -p they are denied; Shift+Tab changes the mode, /permissions adds rules."
        ),
    }
}

/// Pauses the loop if the transcript shows that the user pressed Esc, for which the client runs no hook.
fn note_interruption(call: &Call) -> Result<()> {
    let Call { world, project, session, input } = *call;
    let mut state = Locked::open(project, world.now)?;
    let run = armed::load_armed(world, project, session, &state.document);
    let (Some(mut run), Some(path)) = (run, input.transcript.as_deref()) else { return Ok(()) };
    let seen = transcript::read(path, &run).and_then(|gained| gained.interrupted_at);
    run.session.interrupted_at = run.session.interrupted_at.max(seen);
    if run.pause_if_interrupted() {
        state.document.set_loop(session, &run)?;
        state.save()?;
    }
    Ok(())
}

/// Returns the prompt that continues the session's running loop, with the newest guidance.
fn continuation(world: &World, project: &Project, session: &str) -> Option<String> {
    if !armed::exists(world, project, session) {
        return None;
    }
    let mut state = Locked::open(project, world.now).ok()?;
    let run = armed::load_armed(world, project, session, &state.document)
        .filter(|run| run.state == LoopState::Running)?;
    let resolved = config::load_for(world, project, &run);
    let context = BriefingContext { world, project, session, run: &run, resolved: &resolved, told: true };
    let brief = briefing::prepare(&context, &mut state.document, None).ok()?;
    state.save().ok()?;
    Some(prompt::continuation(&run, &Default::default(), &brief.lists, &resolved.settings(), world.now))
}
