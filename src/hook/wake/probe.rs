//! What a session does while it is watched: its transcript, and what the client says about itself.

use super::WakeContext;
use crate::claude::client::sessions;
use crate::claude::hook::input::HookEvent;
use crate::claude::transcript;
use crate::core::record::{ArmedLoop, ClientStatus, TranscriptPosition};
use crate::core::time::runtime::TranscriptEvent;
use crate::store::world::Instant;
use std::time::Duration;

/// The session counts as idle after this time without a change.
const IDLE_AFTER: Duration = Duration::from_secs(2);
/// A client that does not say whether it works may think for so long about what was sent to it.
const MAX_THINKING_TIME: Duration = Duration::from_secs(600);

pub(super) enum SessionActivity {
    /// Nothing happens, and nothing will by itself.
    Idle,
    Busy,
    /// The model has answered, so another end of a turn will come; or the user pressed Esc, which pauses the loop.
    Over,
}

/// The session as it was last seen.
pub(super) struct SessionProbe {
    reading: TranscriptPosition,
    quiet_since: Instant,
    /// Something may have been sent to the model since.
    sent: bool,
}

impl SessionProbe {
    pub(super) fn start(run: &ArmedLoop) -> SessionProbe {
        SessionProbe { reading: run.session.transcript.clone(), quiet_since: Instant::now(), sent: false }
    }

    /// Returns whether what the user had queued has left the queue.
    pub(super) fn is_queue_empty(&self) -> bool {
        self.reading.queue.is_empty()
    }

    /// Polls it again. A prompt alone is no turn: a command that the client answers itself may leave one.
    pub(super) fn poll(&mut self, watch: &WakeContext, run: &ArmedLoop) -> SessionActivity {
        let has_failed = matches!(watch.input.event, HookEvent::StopFailure { .. });
        let path = watch.input.transcript.as_deref().filter(|path| path.symlink_metadata().is_ok());
        // The agent took it along into another checkout, so it is at work. After a failure nothing is at work.
        if path.is_none() && !has_failed {
            return SessionActivity::Over;
        }
        let mut seen = run.clone();
        seen.session.transcript = self.reading.clone();
        if let Some(gained) = path.and_then(|path| transcript::read(path, &seen)) {
            // The transcript lags: what the turn ended with may come after the hook that saw its end.
            let since = run.session.waiting.as_ref().map_or(run.timing.armed_at, |waiting| waiting.since);
            let is_over = gained.answered_at.max(gained.interrupted_at).is_some_and(|at| at > since);
            // A usage limit has a waker of its own.
            if is_over || (gained.limit_resets_at.is_some() && !has_failed) {
                return SessionActivity::Over;
            }
            let sends =
                |event: &TranscriptEvent| matches!(event, TranscriptEvent::Prompt | TranscriptEvent::Sent);
            self.sent |= gained.evidence.iter().any(|evidence| sends(&evidence.event));
            if gained.reading.offset != self.reading.offset {
                self.quiet_since = Instant::now();
            }
            self.reading = gained.reading;
        }
        let limit = match sessions::status(watch.world, watch.session) {
            ClientStatus::Busy | ClientStatus::Asking(_) => {
                self.quiet_since = Instant::now();
                return SessionActivity::Busy;
            }
            ClientStatus::Idle => IDLE_AFTER,
            _ if self.sent => MAX_THINKING_TIME,
            _ => IDLE_AFTER,
        };
        if self.quiet_since.elapsed() >= limit { SessionActivity::Idle } else { SessionActivity::Busy }
    }
}
