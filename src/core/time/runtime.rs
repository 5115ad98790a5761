//! How long the client was working.
//!
//! Time since the last hook is cut into pieces at hooks and at the transcript's timestamps. A piece between a tool
//! call and its result, or between what was sent to the model and its answer, counts whatever its length; any other
//! piece counts only below the pause threshold.
//!
//! The transcript lags behind the hooks, so the time after its last entry is estimated until later entries arrive.
//! The estimate never exceeds the final figure, so the total does not depend on when each entry became visible.

use crate::core::time::Stamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One entry of the transcript, at its own timestamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedEvent {
    pub at: Stamp,
    pub event: TranscriptEvent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TranscriptEvent {
    /// A tool call, by id.
    Call(String),
    /// Its result, which also goes to the model.
    Result(String),
    /// Anything else the client sent to the model within the same prompt.
    Sent,
    /// A new prompt, which cuts off all work in flight.
    Prompt,
    /// The model answered, and may continue its answer.
    Answer,
    /// The user interrupted.
    Interrupt,
}

/// What the hook itself shows about the time before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookKind {
    /// The client is running.
    Running,
    /// The turn in flight has ended.
    TurnEnded,
    /// The client was closed since the last entry.
    Reopened,
}

/// The runtime so far and the work still in flight. Times are milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clock {
    /// Runtime up to `front`, final.
    settled: i64,
    front: i64,
    /// Hooks after `front`, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    marks: Vec<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    open: Vec<Open>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// Work in flight: a tool by its id, the model by the empty id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Open {
    #[serde(default)]
    id: String,
    since: i64,
    /// Runtime at that moment.
    runtime: i64,
    /// The model has answered; only a later entry proves that it continued.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    answering: bool,
}

impl Open {
    fn worked_until(&self, at: i64) -> i64 {
        self.runtime.saturating_add(at.saturating_sub(self.since))
    }
}

const MODEL: &str = "";
/// With more hooks than this without a new transcript entry, the oldest is settled by the threshold alone.
const MAX_UNSETTLED_HOOKS: usize = 16;
const MAX_OPEN: usize = 64;

impl Clock {
    /// Returns the stored clock if it agrees with the loop's own two figures, else one made from them.
    pub fn restore(stored: Option<Clock>, runtime_ms: i64, last_hook: Stamp) -> Self {
        match stored {
            Some(clock) if clock.latest() == last_hook.0 && clock.settled <= runtime_ms => clock,
            _ => Clock { settled: runtime_ms, front: last_hook.0, ..Clock::default() },
        }
    }

    fn latest(&self) -> i64 {
        self.marks.last().copied().unwrap_or(self.front)
    }

    /// Returns how much of the time up to the last transcript entry was left out. What follows that entry is unknown until
    /// the next ones arrive.
    pub fn left_out_since(&self, before: &Clock) -> i64 {
        match before.front {
            0 => 0,
            front => {
                let passed = self.front.saturating_sub(front);
                passed.saturating_sub(self.settled.saturating_sub(before.settled))
            }
        }
    }

    /// Takes the new transcript entries and the hook at `now`, and returns the runtime known so far. It is less than
    /// before only if an earlier hook counted work that the transcript does not show yet, so the caller keeps the
    /// larger figure.
    pub fn observe(&mut self, gained: &[TimedEvent], now: Stamp, hook: HookKind, threshold: i64) -> i64 {
        if self.front == 0 || now.0 < self.latest() {
            // No mark yet, or the clock was set back: measure from here.
            let known = self.estimate(None, threshold);
            *self = Clock { settled: known, front: now.0, ..Clock::default() };
            return known;
        }
        let mut gained: Vec<&TimedEvent> = gained.iter().collect();
        gained.sort_by_key(|e| e.at);
        for evidence in gained {
            let at = evidence.at.0.min(now.0);
            self.settle_marks_before(at, threshold);
            self.advance(at, threshold);
            self.apply(&evidence.event, at);
        }
        if hook == HookKind::Reopened {
            self.settle_marks_before(now.0, threshold);
            self.open.clear();
            self.front = now.0;
            return self.settled;
        }
        self.marks.push(now.0);
        if self.marks.len() > MAX_UNSETTLED_HOOKS {
            let oldest = self.marks.remove(0);
            self.advance(oldest, threshold);
        }
        self.estimate((hook == HookKind::TurnEnded).then_some(now.0), threshold)
    }

    fn settle_marks_before(&mut self, at: i64, threshold: i64) {
        let settled = self.marks.iter().take_while(|&&mark| mark <= at).count();
        for mark in self.marks.drain(..settled).collect::<Vec<_>>() {
            self.advance(mark, threshold);
        }
    }

    fn advance(&mut self, to: i64, threshold: i64) {
        let piece = to.saturating_sub(self.front);
        if piece > 0 {
            if piece < threshold {
                self.settled = self.settled.saturating_add(piece);
            }
            self.front = to;
        }
    }

    fn apply(&mut self, event: &TranscriptEvent, at: i64) {
        match event {
            TranscriptEvent::Call(id) => self.begin(id, at),
            TranscriptEvent::Result(id) => {
                self.end(id, at);
                self.begin(MODEL, at);
            }
            TranscriptEvent::Sent => self.begin(MODEL, at),
            TranscriptEvent::Prompt => {
                self.open.clear();
                self.begin(MODEL, at);
            }
            TranscriptEvent::Answer => {
                self.end(MODEL, at);
                self.begin(MODEL, at);
                self.open.iter_mut().filter(|open| open.id == MODEL).for_each(|open| open.answering = true);
            }
            TranscriptEvent::Interrupt => self.open.clear(),
        }
    }

    fn begin(&mut self, id: &str, at: i64) {
        self.open.retain(|open| open.id != id);
        if self.open.len() == MAX_OPEN {
            self.open.remove(0);
        }
        // A late entry does not get time that is already settled.
        let since = at.max(self.front);
        self.open.push(Open { id: id.to_owned(), since, runtime: self.settled, answering: false });
    }

    fn end(&mut self, id: &str, at: i64) {
        if let Some(index) = self.open.iter().position(|open| open.id == id) {
            let open = self.open.remove(index);
            self.settled = self.settled.max(open.worked_until(at));
        }
    }

    fn estimate(&self, answered: Option<i64>, threshold: i64) -> i64 {
        let mut ahead = self.clone();
        for mark in std::mem::take(&mut ahead.marks) {
            ahead.advance(mark, threshold);
        }
        let asked = ahead.open.iter().filter(|open| !open.answering);
        let worked = asked.filter_map(|open| Some(open.worked_until(answered?))).max();
        ahead.settled.max(worked.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const THRESHOLD: i64 = 300_000;
    const T0: i64 = 1_000_000_000;

    fn at(seconds: i64, event: TranscriptEvent) -> TimedEvent {
        TimedEvent { at: Stamp(T0 + seconds * 1000), event }
    }

    fn starting() -> Clock {
        Clock::restore(None, 0, Stamp(T0))
    }

    /// Runtime in seconds after hooks at the given times, each with what the transcript gained before it.
    fn run(hooks: &[(i64, HookKind, Vec<TimedEvent>)]) -> i64 {
        let mut clock = starting();
        let mut runtime = 0;
        for (seconds, mark, gained) in hooks {
            runtime = clock.observe(gained, Stamp(T0 + seconds * 1000), *mark, THRESHOLD);
        }
        runtime / 1000
    }

    fn call(s: i64) -> TimedEvent {
        at(s, TranscriptEvent::Call("t1".into()))
    }

    fn result(s: i64) -> TimedEvent {
        at(s, TranscriptEvent::Result("t1".into()))
    }

    #[test]
    fn the_base_rule_without_a_transcript() {
        use HookKind::Running;
        assert_eq!(run(&[(299, Running, vec![])]), 299);
        assert_eq!(run(&[(300, Running, vec![])]), 0, "at the threshold it is a pause");
        assert_eq!(run(&[(100, Running, vec![]), (50_000, Running, vec![]), (50_010, Running, vec![])]), 110);
        assert_eq!(
            run(&[(100, Running, vec![]), (40, Running, vec![]), (60, Running, vec![])]),
            120,
            "clock set back"
        );
        let mut unmarked = Clock::default();
        assert_eq!(unmarked.observe(&[], Stamp(T0), Running, THRESHOLD), 0);
        assert_eq!(unmarked.observe(&[], Stamp(T0 + 5000), Running, THRESHOLD), 5000);
    }

    #[test]
    fn twenty_turns_of_six_minutes_are_two_hours() {
        let hooks: Vec<_> = (0..20)
            .map(|turn| {
                let from = turn * 360;
                (
                    from + 360,
                    HookKind::Running,
                    vec![at(from, TranscriptEvent::Sent), at(from + 359, TranscriptEvent::Answer)],
                )
            })
            .collect();
        assert_eq!(run(&hooks), 7200);
    }

    #[test]
    fn a_long_tool_counts_and_a_long_silence_does_not() {
        assert_eq!(
            run(&[(
                2000,
                HookKind::Running,
                vec![call(10), result(1990), at(1999, TranscriptEvent::Answer)]
            )]),
            2000
        );
        let idle = vec![
            at(1, TranscriptEvent::Prompt),
            at(5, TranscriptEvent::Answer),
            at(4000, TranscriptEvent::Prompt),
            at(4010, TranscriptEvent::Answer),
        ];
        assert_eq!(run(&[(4011, HookKind::Running, idle)]), 16);
    }

    #[test]
    fn closing_the_client_overnight_is_a_pause_even_in_a_tool_call() {
        let night = vec![call(10), at(43_210, TranscriptEvent::Prompt), at(43_220, TranscriptEvent::Answer)];
        assert_eq!(run(&[(43_221, HookKind::Running, night)]), 21);
        let reopened = [
            (20, HookKind::Running, vec![call(10)]),
            (43_200, HookKind::Reopened, vec![]),
            (43_230, HookKind::TurnEnded, vec![at(43_210, TranscriptEvent::Prompt)]),
        ];
        assert_eq!(run(&reopened), 50);
    }

    #[test]
    fn an_entry_between_call_and_result_does_not_break_the_piece() {
        let typed_meanwhile = vec![call(0), at(400, TranscriptEvent::Call("t2".into())), result(1200)];
        assert_eq!(run(&[(1201, HookKind::Running, typed_meanwhile)]), 1201);
    }

    #[test]
    fn a_lagging_answer_counts_at_once_at_the_end_of_its_turn_and_later_otherwise() {
        assert_eq!(run(&[(900, HookKind::TurnEnded, vec![at(0, TranscriptEvent::Sent)])]), 900);
        assert_eq!(run(&[(900, HookKind::Running, vec![at(0, TranscriptEvent::Sent)])]), 0);
        let answered_long_ago = vec![at(1, TranscriptEvent::Prompt), at(10, TranscriptEvent::Answer)];
        assert_eq!(
            run(&[(3600, HookKind::TurnEnded, answered_long_ago)]),
            10,
            "an answer is no proof of more work"
        );
        let later = [
            (900, HookKind::Running, vec![at(0, TranscriptEvent::Sent)]),
            (910, HookKind::Running, vec![at(899, TranscriptEvent::Answer)]),
        ];
        assert_eq!(run(&later), 910);
    }

    #[test]
    fn an_edited_state_restarts_the_clock_from_its_figures() {
        let mut clock = starting();
        clock.observe(&[call(1)], Stamp(T0 + 10_000), HookKind::Running, THRESHOLD);
        let kept = Clock::restore(Some(clock.clone()), 10_000, Stamp(T0 + 10_000));
        assert_eq!(kept, clock);
        let edited = Clock::restore(Some(clock), 99_000, Stamp(T0 + 11_000));
        assert_eq!(edited, Clock { settled: 99_000, front: T0 + 11_000, ..Clock::default() });
    }

    /// Turns as the client writes them: a prompt or feedback, tools, an answer, then a Stop.
    fn turns() -> impl Strategy<Value = (Vec<TimedEvent>, Vec<(i64, HookKind)>)> {
        let tool = (1i64..2000, 1i64..4000);
        let turn = (0i64..5000, any::<bool>(), prop::collection::vec(tool, 0..4), 1i64..2000, 0i64..5);
        prop::collection::vec(turn, 1..8).prop_map(|turns| {
            let (mut now, mut entries, mut hooks) = (0, vec![], vec![]);
            for (number, (idle, prompted, tools, answer, stop)) in turns.into_iter().enumerate() {
                now += if prompted { idle } else { 0 };
                entries.push(at(now, if prompted { TranscriptEvent::Prompt } else { TranscriptEvent::Sent }));
                for (index, (think, work)) in tools.into_iter().enumerate() {
                    let id = format!("{number}-{index}");
                    now += think;
                    entries.push(at(now, TranscriptEvent::Answer));
                    entries.push(at(now, TranscriptEvent::Call(id.clone())));
                    now += work;
                    entries.push(at(now, TranscriptEvent::Result(id)));
                }
                now += answer;
                entries.push(at(now, TranscriptEvent::Answer));
                now += stop;
                hooks.push((now, if number % 2 == 0 { HookKind::Running } else { HookKind::TurnEnded }));
            }
            (entries, hooks)
        })
    }

    proptest! {
        #[test]
        fn runtime_is_the_same_however_the_transcript_is_split(
            (entries, hooks) in turns(),
            lags in prop::collection::vec(0usize..6, 8),
        ) {
            let visible_at = |seconds: i64| entries.iter().filter(|e| e.at.0 <= T0 + seconds * 1000).count();
            let end = hooks.last().map_or(0, |(s, _)| s + 1);
            let mut total = vec![];
            for lag in [false, true] {
                let (mut clock, mut read, mut before, mut vouched) = (starting(), 0, 0, false);
                for (index, (seconds, mark)) in hooks.iter().chain([&(end, HookKind::Running)]).enumerate() {
                    let held = if lag && index < hooks.len() { lags[index] } else { 0 };
                    let upto = visible_at(*seconds).saturating_sub(held).max(read);
                    let now = Stamp(T0 + seconds * 1000);
                    // The hook knows the prompt it belongs to: it does not vouch across one that is hidden.
                    let hidden = &entries[upto..visible_at(*seconds).max(upto)];
                    let mark = if hidden.iter().any(|e| e.event == TranscriptEvent::Prompt) { HookKind::Running } else { *mark };
                    let known = clock.observe(&entries[read..upto], now, mark, THRESHOLD);
                    prop_assert!(mark == HookKind::TurnEnded || vouched || known >= before, "runtime shrank");
                    // What a hook vouched for is not taken back while its entries are still to come.
                    let runtime = known.max(before);
                    vouched |= mark == HookKind::TurnEnded;
                    prop_assert!(runtime <= now.0 - T0, "runtime exceeds wall time");
                    (read, before) = (upto, runtime);
                }
                total.push(before);
            }
            prop_assert_eq!(total[0], total[1]);
        }

        #[test]
        fn no_input_shrinks_runtime_or_exceeds_wall_time(
            hooks in prop::collection::vec(
                (0i64..5000, 0..3u8, prop::collection::vec((-100i64..6000, 0..6u8, 0..3u8), 0..6)), 1..12),
        ) {
            let (mut clock, mut now, mut before) = (starting(), 0, 0);
            for (gap, mark, entries) in hooks {
                let gained: Vec<_> = entries.iter().map(|(offset, kind, id)| {
                    let id = id.to_string();
                    at(now + offset, match kind {
                        0 => TranscriptEvent::Call(id), 1 => TranscriptEvent::Result(id), 2 => TranscriptEvent::Sent,
                        3 => TranscriptEvent::Prompt, 4 => TranscriptEvent::Answer, _ => TranscriptEvent::Interrupt,
                    })
                }).collect();
                now += gap;
                let mark = [HookKind::Running, HookKind::TurnEnded, HookKind::Reopened][mark as usize];
                let runtime = before.max(clock.observe(&gained, Stamp(T0 + now * 1000), mark, THRESHOLD));
                prop_assert!(runtime <= now * 1000, "runtime {} exceeds wall {}", runtime, now * 1000);
                before = runtime;
            }
        }
    }
}
