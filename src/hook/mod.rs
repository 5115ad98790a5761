//! What each hook event does: gather facts, decide, save, answer.
//!
//! A hook is never in the way. Whatever goes wrong, it exits 0 with one JSON object or nothing, the
//! user's session goes on, and an armed loop stays armed.

mod driven;
mod expansion;
mod session;
mod stop;
pub mod wake;

use crate::claude::answer::Answer;
use crate::claude::input::{self, Event, Input};
use crate::store::project::Project;
use crate::store::state;
use crate::store::world::World;
use crate::store::{armed, run_lock, stop as stops};
use anyhow::Result;
use std::io::{Read, Write};

/// Far above any real input; what is longer is not a hook call.
const MOST_INPUT: u64 = 512 << 20;

/// The whole hook program: stdin to stdout. `assumed` is the event where the input names none.
pub fn main(assumed: &str) {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
        print(&failed_open(&format!("an internal error{place}: please report it")));
        std::process::exit(0);
    }));
    print(&answer(assumed));
}

fn answer(assumed: &str) -> Answer {
    let mut bytes = Vec::new();
    if let Err(error) = std::io::stdin().lock().take(MOST_INPUT).read_to_end(&mut bytes) {
        return failed_open(&format!("the hook's input could not be read: {error}"));
    }
    let input = match input::parse(&bytes, assumed) {
        Ok(input) => input,
        Err(error) => return failed_open(&error),
    };
    match World::from_env() {
        Ok(world) => handle(&world, &input).unwrap_or_else(|error| failed_open(&format!("{error:#}"))),
        Err(error) => failed_open(&format!("{error:#}")),
    }
}

/// One hook call and where it belongs.
#[derive(Clone, Copy)]
struct Call<'a> {
    world: &'a World,
    project: &'a Project,
    session: &'a str,
    input: &'a Input,
}

fn handle(world: &World, input: &Input) -> Result<Answer> {
    let Some(session) = input.session_id.as_deref().filter(|id| state::usable_session_id(id)) else {
        return Ok(Answer::silent());
    };
    let project = Project::find(world, input.cwd.as_deref());
    let call = Call { world, project: &project, session, input };
    if let Event::Expansion { command, arguments } = &input.event {
        return expansion::expand(&call, command, arguments);
    }
    if world.run_id.is_some() && run_lock::drives(world, &project) {
        return Ok(driven::stop(&call));
    }
    // The cheapest look: most sessions have no loop, and for them nothing is read, locked, written or said.
    let kill_switch = stops::kill_switch(&project);
    let started = matches!(input.event, Event::SessionStart { .. });
    if !kill_switch && !started && !armed::any(world, &project, session) {
        return Ok(Answer::silent());
    }
    if kill_switch && !matches!(input.event, Event::Stop { .. }) {
        stop::kill(world, &project)?;
    }
    match &input.event {
        Event::Stop { .. } => stop::stop(&call, kill_switch),
        Event::StopFailure { error } => session::turn_failed(&call, error),
        Event::SessionStart { source } => session::started(&call, source),
        Event::SessionEnd { reason } => session::ended(&call, reason),
        Event::Expansion { .. } | Event::Other(_) => Ok(Answer::silent()),
    }
}

/// The one answer of a hook that could not do its work.
fn failed_open(why: &str) -> Answer {
    Answer::tell(format!("Ralph could not do its work, so nothing was held up: {why}"))
}

fn print(answer: &Answer) {
    // A client that went away needs no answer.
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(answer.render().as_bytes()).and_then(|()| stdout.flush());
}
