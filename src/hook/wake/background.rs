//! Background commands that the loop waits for: once their time is up, the agent is woken and told what still runs.
//!
//! A command that ends in time brings a turn of its own. In the terminal's interface the session is idle meanwhile. With `-p`
//! the client waits for this hook, which then is what keeps the session from waiting for a server forever; there the
//! transcript shows when a command has ended.

use super::probe::{SessionActivity, SessionProbe};
use super::{POLL, WakeContext};
use crate::core::decide::background;
use crate::core::record::{ArmedLoop, Waiting, WaitingFor};
use crate::core::time::Stamp;
use crate::store::state::Locked;
use crate::store::user::armed;

/// Waits until the time for background commands is up. Returns the prompt that continues the loop.
pub(super) fn wait_for_limit(watch: &WakeContext, run: &ArmedLoop, until: Stamp) -> Option<String> {
    let mut probe = SessionProbe::start(run);
    loop {
        std::thread::sleep(POLL);
        let current = watch.running_loop()?;
        if current.session.waiting != run.session.waiting {
            return None;
        }
        let is_up = watch.world.later().now >= until;
        match probe.poll(watch, &current) {
            SessionActivity::Over => return None,
            // What the client queued leads to a turn as soon as this hook ends.
            _ if !watch.is_interactive && !probe.is_queue_empty() => return None,
            SessionActivity::Busy if watch.is_interactive => {}
            SessionActivity::Idle | SessionActivity::Busy if is_up => return woken(watch, &current),
            SessionActivity::Idle | SessionActivity::Busy => {}
        }
    }
}

/// Returns until when the loop waits for background commands.
pub(super) fn limit(run: &ArmedLoop) -> Option<Stamp> {
    match &run.session.waiting {
        Some(Waiting { what: WaitingFor::Background(work), .. }) => work.until,
        _ => None,
    }
}

/// Takes the end of the wait and returns the prompt: the agent is told of each command once.
fn woken(watch: &WakeContext, seen: &ArmedLoop) -> Option<String> {
    let WakeContext { world, project, session, input, .. } = *watch;
    let mut state = Locked::open(project, world.later().now).ok()?;
    let mut run = armed::load_armed(world, project, session, &state.document).ok()??;
    (run.is_alive() && run.session.waiting == seen.session.waiting).then_some(())?;
    run.session.waiting = None;
    let names = background::take_news(&mut run, input.background());
    state.document.set_loop(session, &run).ok()?;
    state.save().ok()?;
    drop(state);
    Some(format!("{}\n\n{}", background::advice(&names), watch.continuation(&run)?))
}
