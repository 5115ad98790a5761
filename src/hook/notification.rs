//! The client waits for the user, and no turn ends meanwhile: in a session with a running loop the user is told elsewhere.

use super::HookCall;
use crate::claude::hook::answer::HookOutput;
use crate::core::event::notice::Notice;
use crate::core::event::{self, EventKind, WaitEvent};
use crate::core::record::{LoopState, Waiting};
use crate::store::process::notify;
use crate::store::user::armed;
use crate::store::{config, events, state};
use anyhow::Result;

/// The kinds of notification that wait for the user, as in `hooks/hooks.json`.
const WAITING: [&str; 3] = ["permission_prompt", "elicitation_dialog", "agent_needs_input"];

/// Tells of a prompt of the client; `kind` is empty in an old client, whose words alone say what it is.
pub fn notified(call: &HookCall, kind: &str, words: &str) -> Result<HookOutput> {
    let HookCall { world, project, session, .. } = *call;
    if !(WAITING.contains(&kind) || (kind.is_empty() && words.contains("permission"))) {
        return Ok(HookOutput::silent());
    }
    let Ok(Some(document)) = state::peek(project) else { return Ok(HookOutput::silent()) };
    let own = armed::load_armed(world, project, session, &document)?;
    let Some(run) = own.filter(|run| run.state == LoopState::Running) else {
        return Ok(HookOutput::silent());
    };
    let is_told = |waiting: &Waiting| {
        waiting.what.is_dialog() && waiting.what.until().is_some_and(|until| until > world.now)
    };
    if kind != "agent_needs_input" && run.session.waiting.as_ref().is_some_and(is_told) {
        // The hook that waits for this prompt tells the user, and says more about it.
        return Ok(HookOutput::silent());
    }
    let reason = event::text(words);
    events::note(
        world,
        &run,
        &[EventKind::Waiting(WaitEvent { what: "permission".into(), reason, ..WaitEvent::default() })],
    );
    let notice = Notice::permission(&run, &project.root.to_string_lossy(), words, world.now);
    let notice = notice.in_session(session);
    notify::send(project, &notice, &config::load_for(world, project, &run).notify());
    Ok(HookOutput::silent())
}
