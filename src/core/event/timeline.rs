//! A run folded from its events: what monitor, report, logs and status show of it.
//!
//! Events are added one by one, so that a reader who follows a growing file folds each of them once. The order of the
//! file is the order of time, but a clock may have been set back: no span is ever negative.

use super::{
    Answered, BreakerStep, Check, Event, EventKind, Findings, GuidanceStep, IterationEnded, Limits, Paused,
    RunEnded, RunStarted, VERSION,
};
use crate::core::outcome::{IterationOutcome, Outcome};
use crate::core::time::Stamp;
use std::collections::BTreeMap;

/// So many constraints are kept.
const MAX_FINDINGS: usize = 200;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// How it was first started.
    pub started: Option<RunStarted>,
    pub started_at: Option<Stamp>,
    /// The last event.
    pub last_at: Option<Stamp>,
    /// How and when it ended; `None` while it has not, or since it continued.
    pub ended: Option<(Stamp, RunEnded)>,
    pub limits: Limits,
    /// By number. A number that came twice is of a turn that was recorded again after a crash: the newer counts.
    pub iterations: BTreeMap<u64, TimelineIteration>,
    /// The iteration that runs now in a runner, and since when.
    pub current: Option<(u64, Stamp)>,
    /// Why the run pauses when that iteration ends.
    ordered_pause: Option<String>,
    /// In the order in which they first ran or were named.
    pub checks: Vec<CheckHistory>,
    /// Those of a turn come before its end.
    pending_checks: Vec<Check>,
    pub guidance: Vec<GuidanceEntry>,
    pub breaker: Vec<(Stamp, BreakerStep)>,
    pub answers: Vec<(Stamp, Answered)>,
    pub findings: Findings,
    /// Every constraint that a scan found, each once, with the iteration in which it came up; 0 is the start.
    pub found: Vec<(u64, String)>,
    /// What the time went to, in order and without gaps.
    pub spans: Vec<Span>,
    /// Events that this version does not know, and whether a newer version wrote any.
    pub unknown: u64,
    pub is_newer: bool,
    /// Bytes between its start and what was read: the file is too large.
    pub skipped_bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimelineIteration {
    pub started_at: Option<Stamp>,
    pub ended_at: Stamp,
    pub facts: IterationEnded,
    pub checks: Vec<Check>,
    /// What the breaker warned of.
    pub warning: Option<String>,
}

/// What one check command proved, and when.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckHistory {
    pub command: String,
    pub runs: u64,
    pub first_failed: Option<u64>,
    pub last_failed: Option<u64>,
    pub first_passed: Option<u64>,
    pub last_passed: Option<u64>,
    /// The newest result, and when it came.
    pub last: Option<(Stamp, Check)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuidanceEntry {
    /// `encouraged`, `forbidden` or `allowed`.
    pub list: String,
    pub text: String,
    pub given_at: Option<Stamp>,
    /// When the agent read it, and after which iteration.
    pub delivered: Option<(Stamp, u64)>,
    pub removed_at: Option<Stamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    Work,
    Wait,
    Pause,
    Failure,
    /// Between an ending and the moment the run was continued.
    Stopped,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub kind: SpanKind,
    pub from: Stamp,
    pub to: Stamp,
    /// Of the iteration that was at work, or failed.
    pub iteration: Option<u64>,
    pub label: String,
}

impl Span {
    pub fn ms(&self) -> i64 {
        (self.to - self.from).max(0)
    }
}

impl TimelineIteration {
    /// Returns whether the agent failed in it.
    pub fn failed(&self) -> bool {
        matches!(
            self.facts.outcome,
            Some(IterationOutcome::Failed | IterationOutcome::Stalled | IterationOutcome::TimedOut)
        ) || self.facts.error.is_some()
    }
}

impl CheckHistory {
    /// Returns whether its newest result is that it passed; `None` if it never ran.
    pub fn passed(&self) -> Option<bool> {
        self.last.as_ref().map(|(_, check)| check.passed)
    }
}

impl Timeline {
    /// Folds all of these events.
    pub fn of(events: impl IntoIterator<Item = Event>) -> Timeline {
        let mut timeline = Timeline::default();
        events.into_iter().for_each(|event| timeline.add(event));
        timeline
    }

    pub fn add(&mut self, event: Event) {
        let at = self.last_at.map_or(event.timestamp, |last| last.max(event.timestamp));
        self.is_newer |= event.v > VERSION;
        self.started_at.get_or_insert(at);
        let before = self.last_at.replace(at).unwrap_or(at);
        match event.what {
            EventKind::Started(started) => self.start(started, before, at),
            EventKind::IterationStarted(begun) => {
                self.spend(SpanKind::Work, at, None, "");
                self.current = Some((begun.iteration, at));
            }
            EventKind::IterationEnded(facts) => self.end_iteration(*facts, at),
            EventKind::Check(check) => self.add_check(check, at),
            EventKind::Guidance(change) => {
                for text in change.texts {
                    self.change_guidance(change.change, &change.list, text, at, change.iteration);
                }
            }
            EventKind::Findings(findings) => self.find(findings, at),
            EventKind::Breaker(step) => {
                if let Some(iteration) = self.iterations.get_mut(&step.iteration) {
                    iteration.warning = Some(step.reason.clone());
                }
                self.breaker.push((at, step));
            }
            EventKind::Waiting(wait) => {
                let reason = if wait.reason.is_empty() { wait.what } else { wait.reason };
                self.begin(SpanKind::Wait, at, &reason);
            }
            EventKind::Paused(Paused { reason, seconds: None }) if self.current.is_some() => {
                self.ordered_pause = Some(reason);
            }
            EventKind::Paused(Paused { reason, seconds: None }) => self.begin(SpanKind::Pause, at, &reason),
            EventKind::Paused(Paused { reason, seconds: Some(seconds) }) => {
                self.insert_pause(Stamp::from_seconds(seconds).0, at, &reason);
            }
            EventKind::Limits(limits) => self.limits = limits,
            EventKind::Answered(answered) => self.answers.push((at, answered)),
            EventKind::Ended(ended) => {
                self.spend(SpanKind::Work, at, None, "");
                (self.current, self.ordered_pause) = (None, None);
                self.ended = Some((at, ended));
            }
            // After it the agent works again.
            EventKind::Permission(_) if self.is_open(SpanKind::Wait) => self.close(at),
            EventKind::Permission(_) | EventKind::Warning(_) => {}
            EventKind::Unknown => self.unknown += 1,
        }
    }

    fn start(&mut self, started: RunStarted, before: Stamp, at: Stamp) {
        if self.ordered_pause.take().is_some() {
            // It is resumed before its iteration ended, so it never paused.
            self.limits = started.limits;
            return;
        }
        if self.ended.take().is_some() || started.continued {
            if self.is_open(SpanKind::Pause) || self.is_open(SpanKind::Wait) {
                self.close(at);
            } else {
                self.push(SpanKind::Stopped, before, at, None, "");
            }
        }
        self.current = None;
        self.limits = started.limits.clone();
        for command in &started.checks {
            self.check_of(command);
        }
        self.started.get_or_insert(started);
    }

    fn end_iteration(&mut self, facts: IterationEnded, at: Stamp) {
        let number = facts.iteration;
        let begun = self.current.take().filter(|(current, _)| *current == number).map(|(_, at)| at);
        let checks = std::mem::take(&mut self.pending_checks);
        let iteration = TimelineIteration { started_at: begun, ended_at: at, facts, checks, warning: None };
        let (kind, label) = match iteration.failed() {
            true => (SpanKind::Failure, iteration.facts.error.clone().unwrap_or_default()),
            false => (SpanKind::Work, String::new()),
        };
        self.spend(kind, at, Some(number), &label);
        // In a session the ending is written before the turn that brought it, and took its time.
        if self.ended.as_ref().is_some_and(|(ended_at, _)| *ended_at == at)
            && let Some(last) = self.spans.last_mut()
            && (last.kind, last.iteration, last.to) == (SpanKind::Work, None, at)
        {
            (last.kind, last.iteration, last.label) = (kind, Some(number), label);
        }
        self.iterations.insert(number, iteration);
        if let Some(reason) = self.ordered_pause.take() {
            self.begin(SpanKind::Pause, at, &reason);
        }
    }

    fn add_check(&mut self, check: Check, at: Stamp) {
        let number = check.iteration;
        let history = self.check_of(&check.command);
        history.runs += 1;
        let (first, last) = match check.passed {
            true => (&mut history.first_passed, &mut history.last_passed),
            false => (&mut history.first_failed, &mut history.last_failed),
        };
        first.get_or_insert(number);
        *last = Some(number);
        history.last = Some((at, check.clone()));
        self.pending_checks.push(check);
    }

    fn find(&mut self, findings: Findings, at: Stamp) {
        let iteration = match self.started_at == Some(at) {
            true => 0,
            false => self.last_iteration().map_or(0, |last| last.facts.iteration) + 1,
        };
        for new in &findings.new {
            if self.found.len() < MAX_FINDINGS && !self.found.iter().any(|(_, known)| known == new) {
                self.found.push((iteration, new.clone()));
            }
        }
        self.findings = findings;
    }

    fn check_of(&mut self, command: &str) -> &mut CheckHistory {
        let known = self.checks.iter().position(|check| check.command == command);
        let index = known.unwrap_or_else(|| {
            self.checks.push(CheckHistory { command: command.to_owned(), ..CheckHistory::default() });
            self.checks.len() - 1
        });
        &mut self.checks[index]
    }

    fn change_guidance(&mut self, change: GuidanceStep, list: &str, text: String, at: Stamp, iteration: u64) {
        let is_open = |entry: &&mut GuidanceEntry| {
            entry.list == list && entry.text == text && entry.removed_at.is_none()
        };
        let known = self.guidance.iter_mut().rev().find(is_open);
        match (change, known) {
            (GuidanceStep::Given, None) => self.guidance.push(GuidanceEntry {
                list: list.to_owned(),
                text,
                given_at: Some(at),
                ..GuidanceEntry::default()
            }),
            (GuidanceStep::Given, Some(_)) => {}
            (GuidanceStep::Delivered, Some(entry)) => {
                entry.delivered.get_or_insert((at, iteration));
            }
            // It was given before the run started.
            (GuidanceStep::Delivered, None) => self.guidance.push(GuidanceEntry {
                list: list.to_owned(),
                text,
                delivered: Some((at, iteration)),
                ..GuidanceEntry::default()
            }),
            (GuidanceStep::Removed, Some(entry)) => entry.removed_at = Some(at),
            (GuidanceStep::Removed, None) => {}
        }
    }

    /// Returns whether the newest span is of this kind and lasts until the next event.
    fn is_open(&self, kind: SpanKind) -> bool {
        self.spans.last().is_some_and(|span| span.kind == kind && span.to == span.from)
    }

    /// Ends the open span, if there is one, now.
    fn close(&mut self, at: Stamp) {
        if let Some(span) = self.spans.last_mut()
            && span.to == span.from
        {
            span.to = at.max(span.from);
        }
    }

    /// Adds the time since the newest span ended; an open one, a wait or a pause, takes it instead.
    fn spend(&mut self, kind: SpanKind, at: Stamp, iteration: Option<u64>, label: &str) {
        if self.is_open(SpanKind::Wait) || self.is_open(SpanKind::Pause) {
            return self.close(at);
        }
        let from = self.spans.last().map_or(self.started_at, |span| Some(span.to)).unwrap_or(at);
        if kind == SpanKind::Failure || from < at {
            self.push(kind, from, at, iteration, label);
        }
    }

    fn push(&mut self, kind: SpanKind, from: Stamp, to: Stamp, iteration: Option<u64>, label: &str) {
        if from < to {
            self.spans.push(Span { kind, from, to, iteration, label: label.to_owned() });
        }
    }

    /// Begins a span that ends with the next event that shows work.
    fn begin(&mut self, kind: SpanKind, at: Stamp, label: &str) {
        self.spend(SpanKind::Work, at, None, "");
        self.spans.push(Span { kind, from: at, to: at, iteration: None, label: label.to_owned() });
    }

    /// Takes a pause that is over out of the work before it.
    fn insert_pause(&mut self, ms: i64, at: Stamp, label: &str) {
        let Some(work) = self.spans.pop_if(|span| span.kind == SpanKind::Work) else { return };
        // When exactly it began is not known: the pause is put before the work of the turn.
        let until = work.from.plus_ms(ms).min(at).min(work.to);
        self.push(SpanKind::Pause, work.from, until, None, label);
        self.push(SpanKind::Work, until, work.to, work.iteration, &work.label);
    }

    /// Returns why the run ended.
    pub fn reason(&self) -> &str {
        self.ended.as_ref().map_or("", |(_, ended)| &ended.reason)
    }

    /// Returns the outcome, if the run has ended.
    pub fn outcome(&self) -> Option<Outcome> {
        self.ended.as_ref().and_then(|(_, ended)| ended.outcome)
    }

    /// Returns the newest iteration that ended.
    pub fn last_iteration(&self) -> Option<&TimelineIteration> {
        self.iterations.values().next_back()
    }

    /// Returns how long an iteration took: as measured, or since the event before it.
    pub fn seconds_of(&self, number: u64) -> f64 {
        let Some(iteration) = self.iterations.get(&number) else { return 0.0 };
        let measured = iteration.facts.duration_seconds;
        measured.unwrap_or_else(|| {
            let spans = self.spans.iter().filter(|span| span.iteration == Some(number));
            Stamp(spans.map(Span::ms).sum()).seconds()
        })
    }

    /// Returns the time that went to this, in milliseconds.
    pub fn spent_ms(&self, kind: SpanKind) -> i64 {
        self.spans.iter().filter(|span| span.kind == kind).map(Span::ms).sum()
    }

    /// Returns cost and tokens of all iterations. The cost is `None` if no iteration told any.
    pub fn spent(&self) -> (Option<f64>, u64) {
        let facts = || self.iterations.values().map(|iteration| &iteration.facts);
        let costs: Vec<f64> = facts().filter_map(|facts| facts.cost_usd).collect();
        let tokens = facts().fold(0u64, |sum, facts| sum.saturating_add(facts.tokens));
        ((!costs.is_empty()).then(|| costs.iter().sum()), tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BreakerAction, GuidanceChange, IterationStarted, WaitEvent};
    use super::*;

    fn at(seconds: i64) -> Stamp {
        Stamp(seconds * 1000)
    }

    fn event(seconds: i64, what: EventKind) -> Event {
        Event::new(at(seconds), what)
    }

    fn started() -> EventKind {
        EventKind::Started(RunStarted { checks: vec!["make".into()], ..RunStarted::default() })
    }

    fn ended_iteration(iteration: u64, error: Option<&str>) -> EventKind {
        let facts = IterationEnded {
            iteration,
            error: error.map(str::to_owned),
            cost_usd: Some(0.5),
            tokens: 10,
            ..IterationEnded::default()
        };
        EventKind::IterationEnded(Box::new(facts))
    }

    fn check(iteration: u64, passed: bool) -> EventKind {
        EventKind::Check(Check { iteration, command: "make".into(), passed, ..Check::default() })
    }

    fn kinds(timeline: &Timeline) -> Vec<(SpanKind, i64)> {
        timeline.spans.iter().map(|span| (span.kind, span.ms() / 1000)).collect()
    }

    #[test]
    fn time_goes_to_work_waits_pauses_and_failures_without_gaps() {
        let wait = WaitEvent { what: "usage-limit".into(), ..WaitEvent::default() };
        let began =
            |iteration| EventKind::IterationStarted(IterationStarted { iteration, ..Default::default() });
        let pause = |seconds| EventKind::Paused(Paused { reason: "esc".into(), seconds });
        let timeline = Timeline::of([
            event(0, started()),
            event(1, began(1)),
            event(11, ended_iteration(1, None)),
            event(11, EventKind::Waiting(wait)),
            event(41, began(2)),
            event(46, ended_iteration(2, Some("529"))),
            event(146, ended_iteration(3, None)),
            event(146, pause(Some(60.0))),
            event(150, pause(None)),
            event(250, EventKind::Started(RunStarted { continued: true, ..RunStarted::default() })),
            event(260, EventKind::Ended(RunEnded::default())),
        ]);
        let [work, wait, pause, failure] =
            [SpanKind::Work, SpanKind::Wait, SpanKind::Pause, SpanKind::Failure];
        let spans = [(work, 1), (work, 10), (wait, 30), (failure, 5), (pause, 60), (work, 40), (work, 4)];
        assert_eq!(kinds(&timeline), [&spans[..], &[(pause, 100), (work, 10)]].concat());
        let total: i64 = timeline.spans.iter().map(Span::ms).sum();
        assert_eq!(total, 260_000, "every second is told once");
        assert_eq!(timeline.seconds_of(3), 40.0);
        assert_eq!(timeline.spent(), (Some(1.5), 30));
    }

    #[test]
    fn a_pause_ordered_in_the_middle_of_an_iteration_begins_when_it_ends() {
        let began =
            |iteration| EventKind::IterationStarted(IterationStarted { iteration, ..Default::default() });
        let pause = || EventKind::Paused(Paused { reason: "by you".into(), seconds: None });
        let resumed = || EventKind::Started(RunStarted { continued: true, ..RunStarted::default() });
        let (work, paused) = (SpanKind::Work, SpanKind::Pause);
        let mut timeline = Timeline::of([event(0, started()), event(0, began(1)), event(10, pause())]);
        assert!(timeline.spans.is_empty() && timeline.current.is_some(), "{timeline:?}");
        for next in [
            event(100, ended_iteration(1, None)),
            event(400, resumed()),
            event(400, began(2)),
            event(410, pause()),
            event(420, resumed()),
            event(500, ended_iteration(2, None)),
            event(500, began(3)),
        ] {
            timeline.add(next);
        }
        assert_eq!(kinds(&timeline), [(work, 100), (paused, 300), (work, 100)], "taken back, it is no pause");
        assert_eq!((timeline.seconds_of(1), timeline.seconds_of(2)), (100.0, 100.0));
    }

    #[test]
    fn a_check_knows_its_first_failure_and_its_last_success() {
        let timeline = Timeline::of([
            event(0, started()),
            event(1, check(2, false)),
            event(2, check(3, true)),
            event(3, check(5, false)),
            event(4, check(6, true)),
        ]);
        let [history] = &timeline.checks[..] else { panic!("one check: {:?}", timeline.checks) };
        assert_eq!((history.first_failed, history.last_passed, history.runs), (Some(2), Some(6), 4));
        assert_eq!((history.first_passed, history.last_failed), (Some(3), Some(5)));
        assert_eq!(history.passed(), Some(true));
        assert_eq!(Timeline::of([event(0, started())]).checks[0].passed(), None, "it never ran");
    }

    #[test]
    fn guidance_is_followed_from_given_to_delivered_to_removed() {
        let change = |change, iteration| {
            let (list, texts) = ("forbidden".to_owned(), vec!["touch x".to_owned()]);
            EventKind::Guidance(GuidanceChange { change, list, texts, iteration })
        };
        let timeline = Timeline::of([
            event(0, started()),
            event(5, change(GuidanceStep::Given, 0)),
            event(9, change(GuidanceStep::Delivered, 1)),
            event(12, change(GuidanceStep::Delivered, 2)),
            event(20, change(GuidanceStep::Removed, 0)),
            event(30, change(GuidanceStep::Delivered, 4)),
        ]);
        let first = &timeline.guidance[0];
        assert_eq!(
            (first.given_at, first.delivered, first.removed_at),
            (Some(at(5)), Some((at(9), 1)), Some(at(20)))
        );
        assert_eq!((timeline.guidance.len(), timeline.guidance[1].given_at), (2, None));
    }

    #[test]
    fn a_turn_recorded_twice_counts_once_and_a_clock_set_back_shortens_nothing() {
        let timeline = Timeline::of([
            event(100, started()),
            event(110, check(1, true)),
            event(120, ended_iteration(1, None)),
            event(50, ended_iteration(1, None)),
            event(
                130,
                EventKind::Breaker(BreakerStep {
                    step: BreakerAction::Warned,
                    iteration: 1,
                    reason: "idle".into(),
                }),
            ),
        ]);
        assert_eq!((timeline.iterations.len(), timeline.spent().1), (1, 10));
        assert_eq!(timeline.iterations[&1].warning.as_deref(), Some("idle"));
        assert!(timeline.spans.iter().all(|span| span.ms() >= 0));
        assert_eq!(timeline.last_at, Some(at(130)));
    }

    #[test]
    fn a_run_that_continued_has_not_ended() {
        let ended = || EventKind::Ended(RunEnded { outcome: Some(Outcome::Stopped), ..RunEnded::default() });
        let mut timeline = Timeline::of([event(0, started()), event(10, ended())]);
        assert_eq!(timeline.outcome(), Some(Outcome::Stopped));
        timeline.add(event(70, EventKind::Started(RunStarted { continued: true, ..RunStarted::default() })));
        assert_eq!(timeline.outcome(), None);
        assert_eq!(kinds(&timeline), [(SpanKind::Work, 10), (SpanKind::Stopped, 60)]);
    }

    #[test]
    fn the_last_iteration_has_its_time_whether_it_or_the_ending_is_written_first() {
        let ended = || EventKind::Ended(RunEnded { outcome: Some(Outcome::Complete), ..RunEnded::default() });
        for last in [[ended_iteration(2, None), ended()], [ended(), ended_iteration(2, None)]] {
            let mut timeline = Timeline::of([event(0, started()), event(60, ended_iteration(1, None))]);
            last.into_iter().for_each(|what| timeline.add(event(90, what)));
            assert_eq!((timeline.seconds_of(1), timeline.seconds_of(2)), (60.0, 30.0));
        }
    }

    #[test]
    fn constraints_are_kept_with_the_iteration_in_which_they_came_up() {
        let found =
            |new: &str| EventKind::Findings(Findings { new: vec![new.into()], ..Findings::default() });
        let timeline = Timeline::of([
            event(0, started()),
            event(0, found("at the start")),
            event(50, found("in the first turn")),
            event(60, ended_iteration(1, None)),
            event(70, found("later")),
            event(80, found("at the start")),
        ]);
        let found = [(0, "at the start"), (1, "in the first turn"), (2, "later")];
        assert_eq!(timeline.found, found.map(|(iteration, text)| (iteration, text.to_owned())));
    }

    #[test]
    fn what_is_unknown_is_counted_and_a_newer_writer_is_named() {
        let line = br#"{"v":7,"timestamp":"2026-01-01T00:00:00Z","event":"dreamt"}"#;
        let timeline = Timeline::of(Event::parse(line));
        assert_eq!((timeline.unknown, timeline.is_newer), (1, true));
    }
}
