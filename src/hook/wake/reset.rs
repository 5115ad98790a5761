//! The reset of a window of the user's plan, for which the loop waits after its agent has landed. A turn that was cut off
//! by the limit itself brings no Stop: see `service`.

use super::{POLL, WakeContext};
use crate::claude::client::sessions;
use crate::core::decide::quota::CLOCK_MARGIN_MS;
use crate::core::record::{ArmedLoop, ClientStatus, QuotaWait, WaitingFor};
use crate::core::time::Stamp;
use crate::store::user::figures;

/// The client ends this hook after a day, see `hooks/steering.json`. Before that it wakes the agent for a moment: the Stop of
/// that turn brings a new hook.
pub(super) const MAX_WATCH_MS: i64 = 23 * 3_600_000;

/// Returns what the loop waits for, if that is a reset.
pub(super) fn pending_reset(run: &ArmedLoop) -> Option<&QuotaWait> {
    let held = run.quota.held.as_ref()?;
    let waiting = run.session.waiting.as_ref()?;
    (waiting.what == WaitingFor::UsageLimit(held.until)).then_some(held)
}

/// Waits for the reset and returns the prompt that continues the loop; nothing if the loop does not wait for one. The
/// earliest hook of a session watches, also over turns of the user's in between.
pub(super) fn wait_for_reset(watch: &WakeContext) -> Option<String> {
    pending_reset(&watch.running_loop()?)?;
    let _watch = figures::watch(watch.world, watch.session)?;
    let began = watch.world.now;
    loop {
        let run = watch.running_loop()?;
        let QuotaWait { until, words } = pending_reset(&run)?;
        let now = watch.world.later().now;
        // The user may be in the middle of a turn, whose Stop decides.
        if now < wake_time(*until, began)
            || sessions::status(watch.world, watch.session) == ClientStatus::Busy
        {
            std::thread::sleep(POLL);
            continue;
        }
        if now >= *until {
            return watch.continuation(&run);
        }
        let until = until.minute();
        return Some(format!(
            "The loop still waits until {until}: {words}. Do nothing now, and end your turn with one short sentence."
        ));
    }
}

/// Returns when the agent is woken by a watch that began then.
fn wake_time(until: Stamp, began: Stamp) -> Stamp {
    until.plus_ms(CLOCK_MARGIN_MS).min(began.plus_ms(MAX_WATCH_MS))
}
