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
use crate::claude::hook::answer::Answer;
use crate::claude::hook::input::{self, Event, Input};
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
    print(&answer.with_notes(&state::take_untold(&said)));
    ExitCode::SUCCESS
}

fn answer(assumed: &str) -> Answer {
    let answered = || -> Result<Answer> {
        let bytes = read_stdin().map_err(|error| anyhow!("could not read the hook input: {error}"))?;
        let input = input::parse(&bytes, assumed).map_err(|why| anyhow!(why))?;
        handle(&World::of_hook()?, &input)
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
struct Call<'a> {
    world: &'a World,
    project: &'a Project,
    /// The checkout in which the agent works.
    work_tree: &'a Project,
    session: &'a str,
    input: &'a Input,
}

fn handle(world: &World, input: &Input) -> Result<Answer> {
    let Some(session) = input.session_id.as_deref().filter(|id| state::usable_session_id(id)) else {
        return Ok(Answer::silent());
    };
    // Before anything else is looked at: this is asked at every prompt of every session.
    let concern = match &input.event {
        Event::Prompt { text } => submission::concern(world, session, text),
        _ => None,
    };
    if matches!(input.event, Event::Prompt { .. }) && concern.is_none() {
        return Ok(Answer::silent());
    }
    let project = Project::find(world, input.cwd.as_deref());
    let mut call = Call { world, project: &project, work_tree: &project, session, input };
    if let Event::Expansion { command, arguments } = &input.event {
        return expansion::expand(&call, command, arguments);
    }
    if let Some(concern) = concern {
        return submission::submitted(&call, concern);
    }
    if let Event::ToolBatch { of_subagent } = input.event {
        return Ok(if of_subagent { Answer::silent() } else { news::after_tools(&call) });
    }
    if world.run_id.is_some() && run_lock::drives(world, &project) {
        return runner_guard::stop(&call);
    }
    // Most sessions have no loop: nothing else is read, locked or written for them.
    let kill_switch = stops::kill_switch(&project);
    let started = matches!(input.event, Event::SessionStart { .. });
    if !kill_switch && !started && !armed::exists(world, &project, session)? {
        return Ok(Answer::silent());
    }
    if kill_switch && !matches!(input.event, Event::Stop { .. }) {
        stop::kill(world, &project)?;
    }
    let work_tree = input.cwd.as_deref().map_or_else(|| project.clone(), |cwd| project.work_tree(cwd));
    call.work_tree = &work_tree;
    match &input.event {
        Event::Stop { .. } => stop::stop(&call, kill_switch),
        Event::StopFailure { error, message } => session::turn_failed(&call, error, message),
        Event::SessionStart { source } => session::started(&call, source),
        Event::SessionEnd { reason } => session::ended(&call, reason),
        Event::Notification { kind, message } => notification::notified(&call, kind, message),
        Event::Permission { tool, input, by_subagent } => {
            permission::requested(&call, tool, input, *by_subagent)
        }
        Event::Expansion { .. } | Event::Prompt { .. } | Event::ToolBatch { .. } | Event::Other(_) => {
            Ok(Answer::silent())
        }
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
fn failed_open(why: &str) -> Answer {
    Answer::tell(format!("Ralph failed and allowed the stop: {why}"))
}

fn print(answer: &Answer) {
    // A client that is gone needs no answer.
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(answer.render().as_bytes()).and_then(|()| stdout.flush());
}
