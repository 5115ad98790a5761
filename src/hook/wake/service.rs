//! A turn that ended with an API error, after which no Stop follows. The hook of that event notes until when to wait: until the
//! next attempt, or until the reset of a usage limit. Then the agent is woken, unless the user or the client was faster. Each
//! attempt that fails ends with the same event.

use super::probe::{SessionActivity, SessionProbe};
use super::reset::MAX_WATCH_MS;
use super::{POLL, WakeContext};
use crate::claude::client::sessions;
use crate::claude::hook::input::HookEvent;
use crate::core::decide::quota::UNKNOWN_RESET_MS;
use crate::core::event::notice::Notice;
use crate::core::record::{ArmedLoop, ClientStatus, Waiting, WaitingFor};
use crate::core::signal;
use crate::core::text::clean;
use crate::core::time::Stamp;
use crate::store::process::notify;
use crate::store::state::Locked;
use crate::store::user::armed;
use crate::store::world::Instant;
use crate::store::{config, zone};
use anyhow::Result;
use std::time::Duration;

/// How long the other hook may take to note the failure.
const NOTE_DEADLINE: Duration = Duration::from_secs(60);
/// Many clients continue by themselves after a reset, 55 to 125 seconds later. Others, and all of them if the reset is more
/// than a day away, leave that to the user.
const CLIENT_CONTINUES_MS: i64 = 300_000;

/// Waits for the next attempt. Returns the prompt that continues the loop.
pub(super) fn wait_for_attempt(watch: &WakeContext) -> Option<String> {
    let began = Instant::now();
    let last = watch.world.now.plus_ms(MAX_WATCH_MS);
    let mut probe = None;
    let mut is_told = false;
    loop {
        std::thread::sleep(POLL);
        let run = watch.running_loop()?;
        let Some(until) = next_attempt(&run) else {
            // Noted once, it is gone when a turn has ended or another of us has woken the agent.
            if probe.is_some() || began.elapsed() > NOTE_DEADLINE {
                return None;
            }
            if watch.is_decided(&run) {
                let _ = note_limit(watch, &run);
            }
            continue;
        };
        let probe = probe.get_or_insert_with(|| SessionProbe::start(&run));
        let now = watch.world.later().now;
        match probe.poll(watch, &run) {
            SessionActivity::Over => return None,
            // If the lock is held, say, the attempt is still to be made.
            SessionActivity::Idle if now >= until.min(last) => {
                if let Ok(claimed) = claim(watch, &run) {
                    return claimed;
                }
            }
            // The client takes the prompt once the user has answered its dialog.
            SessionActivity::Busy if now >= last => return claim(watch, &run).ok().flatten(),
            SessionActivity::Busy if is_limit(&run) && !is_told => is_told = tell_of_dialog(watch, &run),
            SessionActivity::Idle | SessionActivity::Busy => {}
        }
    }
}

/// Notes until when a usage limit lasts, if the other hook could not tell: it does not carry the table of time zones.
fn note_limit(watch: &WakeContext, seen: &ArmedLoop) -> Result<()> {
    let WakeContext { world, input, .. } = *watch;
    let HookEvent::StopFailure { message, .. } = &input.event else { return Ok(()) };
    let Some(limit) = signal::usage_limit(message) else { return Ok(()) };
    let until = limit.resets.and_then(|reset| zone::moment(&reset, world.now));
    let what = match until {
        Some(until) => WaitingFor::UsageLimit(until),
        None => WaitingFor::Service(world.now.plus_ms(UNKNOWN_RESET_MS)),
    };
    change(watch, seen, |run| run.session.waiting = Some(Waiting { what, since: world.now }))?;
    Ok(())
}

fn is_limit(run: &ArmedLoop) -> bool {
    matches!(run.session.waiting, Some(Waiting { what: WaitingFor::UsageLimit(_), .. }))
}

/// Notifies the user if the client asks what to do about a usage limit; until that is answered it takes no prompt. Returns
/// whether it asks.
fn tell_of_dialog(watch: &WakeContext, run: &ArmedLoop) -> bool {
    let WakeContext { world, project, session, .. } = *watch;
    if !matches!(sessions::status(world, session), ClientStatus::Asking(_)) {
        return false;
    }
    let error = run.session.last_error.as_deref().unwrap_or_default();
    let notice = Notice::usage_limit(run, &project.root.to_string_lossy(), error, world.later().now);
    let notice = notice.in_session(session);
    notify::send(project, &notice, &config::load_for(world, project, run).notify());
    true
}

fn next_attempt(run: &ArmedLoop) -> Option<Stamp> {
    match run.session.waiting {
        Some(Waiting { what: WaitingFor::Service(until), .. }) => Some(until),
        Some(Waiting { what: WaitingFor::UsageLimit(until), .. }) => Some(until.plus_ms(CLIENT_CONTINUES_MS)),
        _ => None,
    }
}

/// Takes the attempt and returns its prompt. A prompt of the user's that failed too has brought another of us, and one
/// attempt is enough.
fn claim(watch: &WakeContext, seen: &ArmedLoop) -> Result<Option<String>> {
    let Some(run) = change(watch, seen, |run| run.session.waiting = None)? else { return Ok(None) };
    let error = clean::excerpt(seen.session.last_error.as_deref().unwrap_or("unknown"), 100);
    let prompt = watch.continuation(&run);
    Ok(prompt
        .map(|prompt| format!("The last turn ended with an API error ({error}). Try again.\n\n{prompt}")))
}

/// Changes the loop if it still waits for the same; returns it as it is then.
fn change(
    watch: &WakeContext,
    seen: &ArmedLoop,
    change: impl FnOnce(&mut ArmedLoop),
) -> Result<Option<ArmedLoop>> {
    let WakeContext { world, project, session, .. } = *watch;
    let mut state = Locked::open(project, world.later().now)?;
    let run = armed::load_armed(world, project, session, &state.document)?;
    let is_same = |run: &ArmedLoop| run.is_alive() && run.session.waiting == seen.session.waiting;
    let Some(mut run) = run.filter(is_same) else { return Ok(None) };
    change(&mut run);
    state.document.set_loop(session, &run)?;
    state.save()?;
    Ok(Some(run))
}
