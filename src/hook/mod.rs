//! What each hook event does: gather facts, decide, save, answer.
//!
//! A hook fails open. Whatever goes wrong, it exits 0 with one JSON object or nothing, the user's session continues, and
//! an armed loop stays armed.

mod expansion;
pub mod module;
mod news;
mod notification;
mod permission;
mod runner_guard;
mod session;
mod stop;
mod submission;
pub mod wake;

use crate::claude::client::version::{OLDEST_WITH_STOP_CONTEXT, Version};
use crate::claude::hook::answer::HookOutput;
use crate::claude::hook::input::{self, HookEvent, HookInput};
use crate::store::runner::run_lock;
use crate::store::state::stop as stops;
use crate::store::user::armed;
use crate::store::{Project, World, state, world};
use anyhow::{Result, anyhow};
use std::io::{Read, Write};
use std::process::ExitCode;

/// Far above any real input.
const MAX_INPUT_BYTES: u64 = 64 << 20;

/// Runs a hook program, from stdin to stdout. `assumed` is the event if the input does not name one.
pub fn main(assumed: &str) -> ExitCode {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
        print(&failed_open(&format!("internal error{place}, please report it")));
        std::process::exit(0);
    }));
    let answer = answer(assumed);
    let said = [&answer.message, &answer.block].map(|text| text.as_deref().unwrap_or_default()).concat();
    print(&answer.with_notes(&state::take_damage_notices(&said)));
    ExitCode::SUCCESS
}

fn answer(assumed: &str) -> HookOutput {
    let answered = || -> Result<HookOutput> {
        let bytes = read_stdin().map_err(|error| anyhow!("could not read the hook input: {error}"))?;
        let input = input::parse(&bytes, assumed).map_err(|why| anyhow!(why))?;
        handle(&World::for_hook()?, &input)
    };
    answered().unwrap_or_else(|error| failed_open(&format!("{error:#}")))
}

fn read_stdin() -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(MAX_INPUT_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// One hook call, with its project and session.
#[derive(Clone, Copy)]
struct HookCall<'a> {
    world: &'a World,
    project: &'a Project,
    /// The checkout in which the agent works.
    work_tree: &'a Project,
    session: &'a str,
    input: &'a HookInput,
}

fn handle(world: &World, input: &HookInput) -> Result<HookOutput> {
    let Some(session) = input.session_id.as_deref().filter(|id| state::usable_session_id(id)) else {
        return Ok(HookOutput::silent());
    };
    // Before anything else is looked at: this is asked at every prompt of every session.
    let concern = match &input.event {
        HookEvent::Prompt { text } => submission::classify_prompt(world, session, text),
        _ => None,
    };
    if matches!(input.event, HookEvent::Prompt { .. }) && concern.is_none() {
        return Ok(HookOutput::silent());
    }
    let project = Project::find(world, input.cwd.as_deref());
    let mut call = HookCall { world, project: &project, work_tree: &project, session, input };
    if let HookEvent::Expansion { command, arguments } = &input.event {
        return expansion::expand(&call, command, arguments);
    }
    if let Some(concern) = concern {
        return submission::submitted(&call, concern);
    }
    if let HookEvent::ToolBatch { of_subagent } = input.event {
        return Ok(if of_subagent { HookOutput::silent() } else { news::after_tools(&call) });
    }
    if world.run_id.is_some() && run_lock::is_runner_child(world, &project) {
        return runner_guard::stop(&call);
    }
    // Most sessions have no loop: nothing else is read, locked or written for them.
    let kill_switch = stops::kill_switch(&project);
    let started = matches!(input.event, HookEvent::SessionStart { .. });
    if !kill_switch && !started && !armed::exists(world, &project, session)? {
        return Ok(HookOutput::silent());
    }
    if kill_switch && !matches!(input.event, HookEvent::Stop { .. }) {
        stop::kill(world, &project)?;
    }
    let work_tree = input.cwd.as_deref().map_or_else(|| project.clone(), |cwd| project.work_tree(cwd));
    call.work_tree = &work_tree;
    match &input.event {
        HookEvent::Stop { .. } => stop::stop(&call, kill_switch),
        HookEvent::StopFailure { error, message } => session::turn_failed(&call, error, message),
        HookEvent::SessionStart { source } => session::started(&call, source),
        HookEvent::SessionEnd { reason } => session::ended(&call, reason),
        HookEvent::Notification { kind, message } => notification::notified(&call, kind, message),
        HookEvent::Permission { tool, input, by_subagent } => {
            permission::requested(&call, tool, input, *by_subagent)
        }
        HookEvent::Expansion { .. }
        | HookEvent::Prompt { .. }
        | HookEvent::ToolBatch { .. }
        | HookEvent::Other(_) => Ok(HookOutput::silent()),
    }
}

/// Returns whether the client says that it continues a turn by context.
fn takes_stop_context() -> bool {
    let version = world::text("AI_AGENT").and_then(|agent| Version::of_agent(&agent));
    version.is_some_and(|version| version >= OLDEST_WITH_STOP_CONTEXT)
}

/// Returns whether the client shows its interface in a terminal, so that it has dialogs and can be woken.
fn is_interactive() -> bool {
    world::text("CLAUDE_CODE_ENTRYPOINT").is_some_and(|entry| entry == "cli")
}

/// Returns the answer of a hook that failed.
fn failed_open(why: &str) -> HookOutput {
    HookOutput::message(format!("Ralph failed and allowed the stop: {why}"))
}

fn print(answer: &HookOutput) {
    // A client that is gone needs no answer.
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(answer.render().as_bytes()).and_then(|()| stdout.flush());
}
