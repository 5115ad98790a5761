//! A service that failed: the turn ended with an API error, and no Stop follows. The hook of that event notes when to try again;
//! then the agent is woken, unless the user was faster. Each attempt that fails ends with the same event.

use super::look::{Activity, Look};
use super::{POLL, Watch};
use crate::core::record::{ArmedLoop, Waiting, WaitingFor};
use crate::core::text::clean;
use crate::core::time::Stamp;
use crate::store::state::Locked;
use crate::store::user::armed;
use crate::store::world::Instant;
use anyhow::Result;
use std::time::Duration;

/// How long the other hook may take to note the failure.
const NOTE_DEADLINE: Duration = Duration::from_secs(60);

/// Waits for the next attempt. Returns the prompt that continues the loop.
pub(super) fn tried_again(watch: &Watch) -> Option<String> {
    let began = Instant::now();
    let mut look = None;
    loop {
        std::thread::sleep(POLL);
        let run = watch.running_loop()?;
        let Some(until) = next_attempt(&run) else {
            // Noted once, it is gone when a turn has ended or another of us has woken the agent.
            if look.is_some() || began.elapsed() > NOTE_DEADLINE {
                return None;
            }
            continue;
        };
        let look = look.get_or_insert_with(|| Look::first(&run));
        match look.again(watch, &run) {
            Activity::Over => return None,
            Activity::Idle if watch.world.later().now >= until => {
                // If the lock is held, say, the attempt is still to be made.
                if let Ok(claimed) = claim(watch, &run) {
                    return claimed;
                }
            }
            Activity::Idle | Activity::Busy => {}
        }
    }
}

fn next_attempt(run: &ArmedLoop) -> Option<Stamp> {
    match run.session.waiting {
        Some(Waiting { what: WaitingFor::Service(until), .. }) => Some(until),
        _ => None,
    }
}

/// Takes the attempt and returns its prompt. A prompt of the user's that failed too has brought another of us, and one
/// attempt is enough.
fn claim(watch: &Watch, seen: &ArmedLoop) -> Result<Option<String>> {
    let Watch { world, project, session, .. } = *watch;
    let mut state = Locked::open(project, world.later().now)?;
    let run = armed::load_armed(world, project, session, &state.document)?;
    let Some(mut run) = run.filter(|run| run.is_alive() && run.session.waiting == seen.session.waiting)
    else {
        return Ok(None);
    };
    run.session.waiting = None;
    state.document.set_loop(session, &run)?;
    state.save()?;
    drop(state);
    let error = clean::excerpt(seen.session.last_error.as_deref().unwrap_or("unknown"), 100);
    let prompt = watch.continuation(&run);
    Ok(prompt.map(|prompt| {
        format!("The last turn ended with an API error ({error}) and is tried again.\n\n{prompt}")
    }))
}
