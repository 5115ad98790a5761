//! The waker: a second, asynchronous Stop hook that brings a loop back after it made way for the user.
//!
//! When a prompt or command waits, the Stop hook allows that one stop. Most of what was waiting leads to
//! a turn, whose own Stop carries the loop on. A command without a turn (`/compact`, say) would leave the
//! loop asleep, so this hook watches the transcript and, once it is quiet, wakes the agent: with
//! `asyncRewake` the client does that for exit code 2 and the text on stderr.

use crate::claude::input;
use crate::claude::transcript;
use crate::core::decide::Note;
use crate::core::prompt;
use crate::core::record::{Loop, LoopState, WaitingFor};
use crate::core::runtime::Event;
use crate::scan::brief;
use crate::store::project::Project;
use crate::store::world::{self, World};
use crate::store::{armed, config, state};
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const WAKE: u8 = 2;
const MOST_INPUT: u64 = 512 << 20;
const POLL: Duration = Duration::from_millis(200);
/// A queue that is not drained by then was misread.
const DRAINED: Duration = Duration::from_secs(10);
/// So long nothing may happen before the session counts as asleep.
const QUIET: Duration = Duration::from_secs(2);
/// Even a long dialogue of the user's ends.
const GIVE_UP: Duration = Duration::from_secs(3600);

pub fn main() -> ExitCode {
    // Whatever goes wrong here, the session sleeps on as if there were no waker.
    std::panic::set_hook(Box::new(|_| std::process::exit(0)));
    match watch() {
        Some(text) => {
            let _ = std::io::stderr().lock().write_all(text.as_bytes());
            ExitCode::from(WAKE)
        }
        None => ExitCode::SUCCESS,
    }
}

/// Returns the text to wake the agent with, or nothing where it is not asleep.
fn watch() -> Option<String> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(MOST_INPUT).read_to_end(&mut bytes).ok()?;
    // Outside the terminal's own interface the client waits for this hook, and no queue is typed into.
    world::text("CLAUDE_CODE_ENTRYPOINT").filter(|entry| entry == "cli")?;
    let input = input::parse(&bytes, "Stop").ok()?;
    let session = input.session_id.as_deref()?;
    let world = World::from_env().ok()?;
    let project = Project::find(&world, input.cwd.as_deref());
    // As in every hook: a session without a loop is found out by one look at a file that is not there.
    if !armed::any(&world, &project, session) {
        return None;
    }
    let transcript = input.transcript.as_deref()?;
    let began = Instant::now();
    let lap = made_way(&world, &project, session, began)?;
    let mut quiet_since = Instant::now();
    let mut lap = lap;
    while began.elapsed() < GIVE_UP {
        std::thread::sleep(POLL);
        let current = waiting_loop(&world, &project, session)?;
        if current.waiting != lap.waiting {
            return None;
        }
        match look(transcript, &mut lap) {
            Look::Turn => return None,
            Look::Busy => quiet_since = Instant::now(),
            Look::Quiet => {}
        }
        let drained = lap.reading.queue.is_empty() || began.elapsed() > DRAINED;
        if drained && quiet_since.elapsed() >= QUIET {
            let document = state::peek(&project).ok()??;
            let settings = config::load(&world, &project, &current.given).settings();
            return Some(prompt::go_on(
                &current,
                &Note { unsaid: current.unsaid.clone(), ..Note::default() },
                &brief::remembered(&document),
                &settings,
                world.now,
            ));
        }
    }
    None
}

/// Waits for the Stop hook's decision; the loop where it made way for the user.
fn made_way(world: &World, project: &Project, session: &str, began: Instant) -> Option<Loop> {
    let first = alive(project, session)?;
    if !armed::is_armed(world, project, session, &first) {
        return None;
    }
    loop {
        std::thread::sleep(POLL);
        let lap = alive(project, session)?;
        if matches!(lap.waiting.as_ref().map(|waiting| &waiting.what), Some(WaitingFor::User(_))) {
            return Some(lap);
        }
        let decided = lap.last_hook_timestamp >= world.now.seconds() - 0.1;
        // It may be running the user's checks.
        if decided || began.elapsed() > GIVE_UP {
            return None;
        }
    }
}

fn alive(project: &Project, session: &str) -> Option<Loop> {
    state::peek(project).ok()??.loop_of(session).filter(|lap| lap.state == LoopState::Running)
}

fn waiting_loop(world: &World, project: &Project, session: &str) -> Option<Loop> {
    alive(project, session).filter(|lap| armed::is_armed(world, project, session, lap))
}

enum Look {
    Quiet,
    Busy,
    /// Something was sent to the model: its own Stop will come.
    Turn,
}

fn look(path: &Path, lap: &mut Loop) -> Look {
    let before = lap.reading.offset;
    let Some(gained) = transcript::read(path, lap) else { return Look::Quiet };
    let sent = |event: &Event| matches!(event, Event::Prompt | Event::Sent | Event::Result(_));
    let turn = gained.evidence.iter().any(|evidence| sent(&evidence.event));
    lap.reading = gained.reading;
    if turn && gained.interrupted_at.is_none() {
        return Look::Turn;
    }
    if lap.reading.offset == before { Look::Quiet } else { Look::Busy }
}
