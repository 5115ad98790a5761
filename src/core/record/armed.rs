//! A loop that this user armed.

use super::{LoopState, Session, StoredLoop, Timing};
use crate::core::circuit::Circuit;
use crate::core::time::Stamp;
use serde_json::{Map, Value};
use std::ops::{Deref, DerefMut};

const MAX_INTERRUPTIONS_SEEN: usize = 32;

/// A loop that this user armed, with what belongs to it in the user's data folder. Only the store makes one
/// (`store::user::armed`), so none is ever without its breaker or its commands.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmedLoop {
    stored: StoredLoop,
    pub circuit: Circuit,
    /// Commands given as flags or variables, by setting.
    pub commands: Map<String, Value>,
    /// The limits that the project's file gave at the start, by setting; `None` until it is armed.
    pub limits: Option<Map<String, Value>>,
}

impl ArmedLoop {
    /// Attaches a loop's breaker, commands and limits. For the store only: `tests/architecture.rs` sees to it.
    pub fn attach(
        stored: StoredLoop,
        circuit: Circuit,
        commands: Map<String, Value>,
        limits: Option<Map<String, Value>>,
    ) -> ArmedLoop {
        ArmedLoop { stored, circuit, commands, limits }
    }
}

#[cfg(test)]
impl From<StoredLoop> for ArmedLoop {
    fn from(stored: StoredLoop) -> ArmedLoop {
        ArmedLoop::attach(stored, Circuit::default(), Map::new(), None)
    }
}

impl Deref for ArmedLoop {
    type Target = StoredLoop;

    fn deref(&self) -> &StoredLoop {
        &self.stored
    }
}

impl DerefMut for ArmedLoop {
    fn deref_mut(&mut self) -> &mut StoredLoop {
        &mut self.stored
    }
}

impl ArmedLoop {
    /// Continues after a pause or an ending, with its counts. The time until now was not work.
    pub fn resume(&mut self, now: Stamp) {
        let paused_ms = (now - self.last_seen().max(self.ended_at.unwrap_or_default())).max(0);
        self.timing.paused_ms = self.timing.paused_ms.saturating_add(paused_ms);
        self.circuit.reset();
        self.state = LoopState::Running;
        self.last_hook_timestamp = now.seconds();
        self.stuck_count = 0;
        (self.ended_at, self.outcome, self.reason) = (None, None, None);
        let interrupted_at = self.session.interrupted_at;
        let seen = &mut self.timing.interruptions_seen;
        seen.extend(interrupted_at);
        seen.drain(..seen.len().saturating_sub(MAX_INTERRUPTIONS_SEEN));
        self.timing =
            Timing { armed_at: now, clock: None, slept_mark_ms: None, ..std::mem::take(&mut self.timing) };
        self.session = Session {
            transcript: self.session.transcript.restarted(),
            unscanned: self.session.unscanned,
            work_tree: std::mem::take(&mut self.session.work_tree),
            background: std::mem::take(&mut self.session.background),
            counted_usd: self.session.counted_usd,
            extra: self.session.extra.clone(),
            ..Session::default()
        };
        (self.quota.landing, self.quota.held) = (None, None);
        self.timing.progress_ms = self.runtime_ms();
        (self.told.ending, self.told.no_progress) = (false, false);
        self.pending.repeat_task = true;
        self.pending.question = None;
    }

    /// Takes note of a turn: has it made progress, as the breaker counts it? Returns how long there was none, in
    /// milliseconds of runtime, once it is `idle_ms` or more and the user has not been told.
    pub fn note_progress(&mut self, idle_ms: i64) -> Option<i64> {
        if self.circuit.turns_without_progress() == 0 {
            self.timing.progress_ms = self.runtime_ms();
            self.told.no_progress = false;
            return None;
        }
        let without_ms = self.runtime_ms() - self.timing.progress_ms;
        let is_news = idle_ms > 0 && without_ms >= idle_ms && !self.told.no_progress;
        self.told.no_progress |= is_news;
        is_news.then_some(without_ms)
    }
}
