//! A run as the monitor knows it, and the line that sums it up.

use super::theme::Tone;
use crate::core::circuit::condition::Counter;
use crate::core::decide::breaker;
use crate::core::event::BreakerAction;
use crate::core::event::timeline::Timeline;
use crate::core::guidance::Guidance;
use crate::core::guidance::finding::Finding;
use crate::core::outcome::Outcome;
use crate::core::record::{Engine, LoopState};
use crate::core::time::Stamp;
use crate::store::user::history;
use crate::view::activity::Activity;
use crate::view::status::LoopView;
use std::path::{Path, PathBuf};

/// One run, from the project's state, its events and the user's history, as far as each has it.
#[derive(Debug)]
pub struct RunView {
    pub run_id: String,
    pub project: PathBuf,
    pub session_id: String,
    pub engine: Engine,
    pub task: String,
    pub started_at: Stamp,
    /// Its loop in the project's state.
    pub shown: Option<LoopView>,
    /// The question it ended with, while that waits for an answer.
    pub question: Option<String>,
    /// Folded from its events; `None` until they are read, or if it has none.
    pub timeline: Option<Timeline>,
    /// Its events were looked for.
    pub is_read: bool,
    /// Its ending in the history, if it has no events.
    pub past: Option<history::Run>,
    /// What is wrong with its files.
    pub fault: Option<String>,
}

impl RunView {
    /// Returns a run of which only its beginning is known.
    pub fn new(
        run_id: &str,
        project: &Path,
        session: &str,
        engine: Engine,
        task: &str,
        started_at: Stamp,
    ) -> RunView {
        RunView {
            run_id: run_id.to_owned(),
            project: project.to_owned(),
            session_id: session.to_owned(),
            engine,
            task: task.to_owned(),
            started_at,
            shown: None,
            question: None,
            timeline: None,
            is_read: false,
            past: None,
            fault: None,
        }
    }
}

/// What all runs of a project share.
#[derive(Debug, Default)]
pub struct ProjectView {
    pub guidance: Guidance,
    pub constraints: Vec<Finding>,
    pub notes: Vec<String>,
}

/// What a row of the list says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    pub sign: &'static str,
    pub tone: Tone,
    /// One word for its state.
    pub word: String,
    /// Its state with the reason.
    pub state: String,
    pub is_alive: bool,
    pub iteration: u64,
    /// 0 means no limit.
    pub max_iterations: u64,
    pub runtime_ms: i64,
    pub max_runtime_ms: i64,
    pub cost_usd: Option<f64>,
    pub tokens: u64,
    pub breaker: Breaker,
    /// When something last happened to it.
    pub at: Stamp,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Breaker {
    #[default]
    Ok,
    /// The condition that is nearest to its limit.
    Counting(Counter),
    Tripped(String),
}

impl Breaker {
    /// Returns `ok`, `3/5` or `tripped`.
    pub fn brief(&self) -> String {
        match self {
            Breaker::Ok => "ok".into(),
            Breaker::Counting(Counter { count, limit, .. }) => format!("! {count}/{limit}"),
            Breaker::Tripped(_) => "tripped".into(),
        }
    }

    pub fn tone(&self) -> Tone {
        match self {
            Breaker::Ok => Tone::Dim,
            Breaker::Counting(Counter { count, limit, .. }) if count + 1 >= *limit => Tone::Warn,
            Breaker::Counting(_) => Tone::Plain,
            Breaker::Tripped(_) => Tone::Bad,
        }
    }
}

impl RunView {
    /// Returns whether it has not ended, as far as is known.
    pub fn is_alive(&self) -> bool {
        self.shown.as_ref().is_some_and(|shown| shown.run.is_alive())
    }

    pub fn state(&self) -> Option<LoopState> {
        self.shown.as_ref().map(|shown| shown.run.state)
    }

    /// Returns when something last happened to it, for the order of the list.
    pub fn last_at(&self) -> Stamp {
        let shown = self.shown.as_ref().map(|shown| shown.run.ended_at.unwrap_or(shown.run.last_seen()));
        let past = self.past.as_ref().map(|past| past.ended_at);
        let told = self.timeline.as_ref().and_then(|timeline| timeline.last_at);
        shown.or(past).or(told).unwrap_or(self.started_at)
    }

    pub fn summary(&self, now: Stamp) -> Summary {
        let at = self.last_at();
        match (&self.shown, &self.timeline, &self.past) {
            (Some(shown), ..) => Summary { at, ..of_loop(shown, now) },
            (None, Some(timeline), _) => Summary { at, ..of_timeline(timeline) },
            (None, None, Some(past)) => Summary { at, ..of_past(past) },
            (None, None, None) => {
                let word = if self.is_read { "unknown" } else { "…" }.to_owned();
                Summary { sign: "·", tone: Tone::Dim, state: word.clone(), word, at, ..Summary::default() }
            }
        }
    }
}

fn of_loop(shown: &LoopView, now: Stamp) -> Summary {
    let LoopView { run, settings, client, .. } = shown;
    let activity = Activity::of(run, client, now);
    let (sign, tone) = match activity {
        Activity::Working | Activity::Pausing => ("●", Tone::Good),
        Activity::Waiting(_) => ("○", Tone::Info),
        Activity::Asking(_) | Activity::Idle(_) => ("○", Tone::Warn),
        Activity::Paused(_) => ("◐", Tone::Warn),
        Activity::ClientClosed | Activity::Orphaned(_) => ("◌", Tone::Warn),
        Activity::Ended(outcome) => ("■", ended_tone(outcome)),
    };
    let word = match (&activity, run.outcome) {
        (Activity::Ended(_), Some(outcome)) => outcome.name(),
        (Activity::ClientClosed, _) => "closed",
        _ => activity.name(),
    };
    Summary {
        sign,
        tone,
        word: word.to_owned(),
        state: activity.line(now),
        is_alive: run.is_alive(),
        iteration: run.iteration,
        max_iterations: settings.max_iterations,
        runtime_ms: run.runtime_ms(),
        max_runtime_ms: settings.max_runtime_ms,
        cost_usd: run.usage.cost_usd,
        tokens: run.usage.tokens(),
        breaker: match run.circuit.is_tripped() {
            true => Breaker::Tripped(run.circuit.reason.clone().unwrap_or_default()),
            false => {
                let counters = breaker::counters(run, settings);
                Counter::nearest(counters).map_or(Breaker::Ok, Breaker::Counting)
            }
        },
        ..Summary::default()
    }
}

fn of_timeline(timeline: &Timeline) -> Summary {
    let last = timeline.last_iteration();
    let (cost, tokens) = timeline.spent();
    let seconds = last.map_or(0.0, |last| last.facts.runtime_seconds);
    let tripped = timeline.breaker.last().filter(|(_, step)| step.step == BreakerAction::Tripped);
    let told = Summary {
        sign: "■",
        tone: Tone::Dim,
        word: "unknown".into(),
        state: "unknown: no ending is recorded".into(),
        iteration: last.map_or(0, |last| last.facts.iteration),
        max_iterations: timeline.limits.max_iterations,
        runtime_ms: Stamp::from_seconds(seconds).0,
        max_runtime_ms: Stamp::from_seconds(timeline.limits.max_runtime_seconds).0,
        cost_usd: cost,
        tokens,
        breaker: tripped.map_or(Breaker::Ok, |(_, step)| Breaker::Tripped(step.reason.clone())),
        ..Summary::default()
    };
    let Some((_, ended)) = &timeline.ended else { return told };
    Summary {
        tone: ended_tone(ended.outcome),
        word: ended.outcome.map_or("ended", Outcome::name).to_owned(),
        state: format!("ended: {}", ended.outcome.map_or("outcome unknown", Outcome::name)),
        iteration: ended.iterations,
        runtime_ms: Stamp::from_seconds(ended.runtime_seconds).0,
        cost_usd: ended.usage.cost_usd.or(cost),
        tokens: ended.usage.tokens().max(tokens),
        ..told
    }
}

fn of_past(past: &history::Run) -> Summary {
    Summary {
        sign: "■",
        tone: ended_tone(Some(past.outcome)),
        word: past.outcome.name().to_owned(),
        state: format!("ended: {}", past.outcome),
        iteration: past.iterations,
        runtime_ms: Stamp::from_seconds(past.runtime_seconds).0,
        cost_usd: past.usage.cost_usd,
        tokens: past.usage.tokens(),
        ..Summary::default()
    }
}

pub fn ended_tone(outcome: Option<Outcome>) -> Tone {
    match outcome {
        Some(Outcome::Complete) => Tone::Good,
        Some(Outcome::Blocked | Outcome::Decide | Outcome::UsageLimit) => Tone::Warn,
        Some(Outcome::Stuck | Outcome::Circuit | Outcome::Error) => Tone::Bad,
        _ => Tone::Dim,
    }
}
