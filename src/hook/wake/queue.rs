//! What the user queued: a prompt or command for which the Stop hook allowed the stop.
//!
//! Most of them lead to a turn, whose own Stop continues the loop. A command without a turn, such as `/compact`, would
//! leave the loop waiting forever. So the session is watched and, once it is idle, the agent is woken. The same holds for a
//! compaction that the module in the client was asked for.

use super::probe::{SessionActivity, SessionProbe};
use super::{POLL, WOKEN, WakeContext, background, reset};
use crate::core::event::notice::Notice;
use crate::core::message;
use crate::core::record::{ArmedLoop, WaitingFor};
use crate::store::config;
use crate::store::process::notify;
use crate::store::user::handoff;
use crate::store::world::Instant;
use std::time::Duration;

/// A queue that is not empty by then was misread.
const QUEUE_DEADLINE: Duration = Duration::from_secs(10);
/// The longest time a dialogue of the user's may take.
const DEADLINE: Duration = Duration::from_secs(3600);

/// Waits for the Stop hook's decision. Returns the loop if the stop was allowed for the user or for background commands.
pub(super) fn wait_for_decision(watch: &WakeContext) -> Option<ArmedLoop> {
    let began = Instant::now();
    loop {
        std::thread::sleep(POLL);
        let run = watch.running_loop()?;
        let decided = watch.is_decided(&run) || reset::pending_reset(&run).is_some();
        let waiting = run.session.waiting.as_ref().map(|waiting| &waiting.what);
        // A wait for background work that an earlier stop began may still be noted.
        if matches!(waiting, Some(WaitingFor::User(_) | WaitingFor::Compaction))
            || (decided && background::limit(&run).is_some())
        {
            return Some(run);
        }
        // The hook may be running the check commands.
        if decided || began.elapsed() > DEADLINE {
            return None;
        }
    }
}

/// Waits until the queue is empty and the session idle. Returns the prompt that continues the loop.
pub(super) fn wait_for_queue(watch: &WakeContext, run: &ArmedLoop) -> Option<String> {
    let began = Instant::now();
    let mut probe = SessionProbe::start(run);
    while began.elapsed() < DEADLINE {
        std::thread::sleep(POLL);
        let current = watch.running_loop()?;
        if current.session.waiting != run.session.waiting {
            return None;
        }
        let activity = probe.poll(watch, &current);
        let drained = probe.is_queue_empty() || began.elapsed() > QUEUE_DEADLINE;
        match activity {
            SessionActivity::Over => return None,
            SessionActivity::Idle if drained => {
                tell_if_not_compacted(watch, &current);
                return watch.continuation(&current);
            }
            SessionActivity::Idle | SessionActivity::Busy => {}
        }
    }
    None
}

/// Tells the user if the client did not compact the context: a compaction would have cleared the handover. The loop
/// continues in the old context.
fn tell_if_not_compacted(watch: &WakeContext, run: &ArmedLoop) {
    let WakeContext { world, project, session, .. } = *watch;
    let waiting = run.session.waiting.as_ref().map(|waiting| &waiting.what);
    if waiting != Some(&WaitingFor::Compaction) || run.session.handover.is_none() {
        return;
    }
    let _ = handoff::save(world, session, WOKEN, message::TYPE_COMPACT);
    let notice = Notice::full_context(run, &project.root.to_string_lossy(), world.later().now);
    let notice = notice.in_session(session);
    notify::send(project, &notice, &config::load_for(world, project, run).notify());
}
