//! A slash command of ours, with the user's exact text, before it expands.
//!
//! Without a loop in this session the command is answered at once, without a model call. In a loop that would end the
//! loop's turn, so the user is shown the answer and the command itself prompts the agent to continue.

use super::HookCall;
use super::submission::{self, EXPANDED, SUBMITTED};
use crate::claude::hook::answer::HookOutput;
use crate::claude::settings::{self, ClientSettings, permissions};
use crate::claude::transcript;
use crate::cli::loops::slash;
use crate::core::record::{ArmedLoop, LoopState};
use crate::core::time::Stamp;
use crate::core::{event, message, prompt};
use crate::scan::briefing::{self, BriefingContext};
use crate::scan::{self, ScanBudget};
use crate::store::state::Locked;
use crate::store::user::{armed, given_guidance, handoff};
use crate::store::{Project, World, config, events};
use anyhow::Result;

pub fn expand(call: &HookCall, command: &str, text: &str) -> Result<HookOutput> {
    let HookCall { world, session, .. } = *call;
    let Some(command) = command.strip_prefix("ralph:").and_then(slash::find) else {
        return Ok(HookOutput::silent());
    };
    // The text of the other event may be longer, so this one's length says nothing.
    if submission::was_run(call, SUBMITTED, text) {
        let _ = handoff::save(
            world,
            session,
            command,
            "Ralph has run this command; its result is in the context of the hook.",
        );
        return Ok(HookOutput::silent());
    }
    let SlashResult { told, for_agent, .. } = run(call, command, text)?;
    // A prompt that is blocked has no other event.
    let Some(for_agent) = for_agent else { return Ok(HookOutput::block(told)) };
    submission::note_run(call, EXPANDED, text);
    let mut answer = HookOutput::message(told);
    if handoff::save(world, session, command, &for_agent).is_err() {
        // The command has taken effect, so the agent must still be told.
        answer.context = Some(("UserPromptExpansion", in_context(call, for_agent)));
    }
    Ok(answer)
}

/// Returns what a command has for the agent as context, which the client would cut without regard to its guidance.
pub fn in_context(call: &HookCall, for_agent: String) -> String {
    let HookCall { project, session, .. } = *call;
    let state = project.state();
    let place = format!("the user's message, or {}, the loop of session {session}", state.display());
    prompt::in_context(for_agent, &place)
}

/// What a slash command did.
pub struct SlashResult {
    /// What the user is told.
    pub told: String,
    /// What the agent is told, if there is something for it to do.
    pub for_agent: Option<String>,
    pub failed: bool,
}

pub fn run(call: &HookCall, command: &str, text: &str) -> Result<SlashResult> {
    let HookCall { world, project, session, .. } = *call;
    if armed::exists(world, project, session)? {
        note_interruption(call)?;
    }
    // A command works where the agent does.
    let mut world = world.clone();
    world.working_dir = call.input.cwd.clone().unwrap_or(world.working_dir);
    let world = &world;
    let (mut told, for_agent, failed) = match slash::run(world, project, session, command, text) {
        Ok(reply) if command == "start" => (reply.user + &permission_note(call), reply.agent, false),
        Ok(reply) => (reply.user, reply.agent, false),
        Err(failure) => (failure.to_string(), None, true),
    };
    let for_agent = for_agent.or_else(|| {
        let (text, notes) = continuation(world, project, session)?;
        notes.iter().for_each(|note| told.push_str(&format!("\n{note}")));
        Some(format!("The user ran a Ralph command and has seen its output. Do not reply to it.\n{text}"))
    });
    Ok(SlashResult { told, for_agent, failed })
}

/// Returns what to add if the agent of this session may edit nothing without an answer.
fn permission_note(call: &HookCall) -> String {
    let Some(mode) = call.input.permission_mode.as_deref() else { return String::new() };
    let settings = ClientSettings::read(call.world, call.project, settings::managed_folder());
    match permissions::mode_without_edits(&settings, Some(mode)).as_deref() {
        None => String::new(),
        Some("plan") => {
            "\nNote: in permission mode plan the agent cannot edit files; Shift+Tab changes the mode.".into()
        }
        Some(mode) => format!(
            "\nNote: in permission mode {mode}, edits and commands that no rule allows need your permission, and Ralph \
             denies them if you do not answer; Shift+Tab changes the mode, --allow-tool or /permissions adds rules."
        ),
    }
}

/// Pauses the loop if the transcript shows that the user pressed Esc, for which the client runs no hook.
fn note_interruption(call: &HookCall) -> Result<()> {
    let HookCall { world, project, session, input, .. } = *call;
    let Some(path) = input.transcript.as_deref() else { return Ok(()) };
    let seen = |run: &ArmedLoop| transcript::read(path, run).and_then(|gained| gained.interrupted_at);
    pause_if_interrupted(world, project, session, seen).map(drop)
}

/// Pauses the session's loop if the user pressed Esc at the time that `seen` returns. Returns what the user is told.
pub fn pause_if_interrupted(
    world: &World,
    project: &Project,
    session: &str,
    seen: impl FnOnce(&ArmedLoop) -> Option<Stamp>,
) -> Result<Option<String>> {
    let mut state = Locked::open(project, world.now)?;
    let run = armed::load_armed(world, project, session, &state.document)?;
    let Some(mut run) = run else { return Ok(None) };
    let before = run.clone();
    run.note_interruption(seen(&before));
    if !run.pause_if_interrupted() {
        return Ok(None);
    }
    let settings = config::load_for(world, project, &run).settings();
    let happened = event::turn::state_change_events(&before, &run, None, &settings);
    events::note_once(world, &mut run, &happened);
    state.document.set_loop(session, &run)?;
    state.save()?;
    Ok(Some(message::paused(&run, &settings, world.now)))
}

/// Returns the prompt that continues the session's running loop, with the newest guidance, and notes for the user.
fn continuation(world: &World, project: &Project, session: &str) -> Option<(String, Vec<String>)> {
    if !armed::exists(world, project, session).ok()? {
        return None;
    }
    let mut state = Locked::open(project, world.now).ok()?;
    let mut run = armed::load_armed(world, project, session, &state.document)
        .ok()?
        .filter(|run| run.state == LoopState::Running)?;
    let resolved = config::load_for(world, project, &run);
    // The turn before may have written, and the last findings may be those of another checkout.
    let work_tree = project.work_tree(&world.working_dir);
    run.session.work_tree = project.name_of(&work_tree);
    let enabled = resolved.is_on("scan.enabled");
    let scan = enabled.then(|| scan::scan(world, &work_tree, &resolved, ScanBudget::Hook));
    let context = BriefingContext { world, project, session, run: &run, resolved: &resolved, told: true };
    let brief = briefing::prepare(&context, &mut state.document, scan).ok()?;
    state.save().ok()?;
    given_guidance::prune(world, project, &state.document);
    events::note(world, &run, &brief.events);
    let settings = resolved.settings();
    let prompt = prompt::continuation(&run, &Default::default(), &brief.lists, &settings, world.now);
    Some((prompt, brief.notes))
}
