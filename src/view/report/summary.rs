//! The top of a report: the sentence, the figures, and the checks that prove it.

use super::words::{Words, code, dollars, listed, plain, quote};
use super::{ReportInput, ReviewSection};
use crate::core::decide::figures::Window;
use crate::core::event;
use crate::core::event::timeline::{CheckHistory, SpanKind, Timeline};
use crate::core::message;
use crate::core::outcome::Outcome;
use crate::core::text::clean;
use crate::core::time::{self, Stamp};

/// The colour of a run or an iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    Good,
    /// It needs a person, or a limit ended it.
    Warn,
    Bad,
    #[default]
    Calm,
}

impl Tone {
    pub fn of(outcome: Outcome) -> Tone {
        match outcome {
            Outcome::Complete => Tone::Good,
            Outcome::MaxIterations | Outcome::MaxRuntime | Outcome::MaxCost | Outcome::UsageLimit => {
                Tone::Warn
            }
            Outcome::Blocked | Outcome::Decide => Tone::Warn,
            Outcome::Stuck | Outcome::Circuit | Outcome::Error => Tone::Bad,
            Outcome::Stopped | Outcome::Killed | Outcome::Interrupted => Tone::Calm,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Tone::Good => "good",
            Tone::Warn => "warn",
            Tone::Bad => "bad",
            Tone::Calm => "calm",
        }
    }
}

/// A check, with the iterations that matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRow {
    pub command: String,
    /// `None` if it never ran.
    pub passed: Option<bool>,
    /// In words: an iteration, `never` or `unknown`.
    pub first_failed: String,
    pub last_passed: String,
    /// The newest result: `passed in 12s`, `failed (exit code 1)`, `never ran`.
    pub last: String,
    pub runs: Option<u64>,
    /// The end of what it printed when it failed last, if that is its newest result.
    pub tail: String,
}

pub fn outcome(facts: &ReportInput) -> (&'static str, Tone) {
    match facts.timeline.outcome() {
        Some(outcome) => (outcome.name(), Tone::of(outcome)),
        None if is_paused(facts) => ("paused", Tone::Warn),
        None if facts.is_alive => ("running", Tone::Calm),
        None => ("not ended", Tone::Warn),
    }
}

fn is_paused(facts: &ReportInput) -> bool {
    let last = facts.timeline.spans.last();
    facts.is_alive && last.is_some_and(|span| span.kind == SpanKind::Pause && span.to == span.from)
}

/// Returns the number of iterations that ended.
pub fn iterations(timeline: &Timeline) -> u64 {
    let last = timeline.last_iteration().map_or(0, |last| last.facts.iteration);
    timeline.ended.as_ref().map_or(last, |(_, ended)| ended.iterations.max(last))
}

/// Returns the first line of the page: outcome, reason, proven by what.
pub fn sentence(facts: &ReportInput) -> Words {
    let timeline = &facts.timeline;
    let after = format!(" after {}", message::iterations(iterations(timeline)));
    let verification = verification(timeline);
    let mut words = match &timeline.ended {
        Some((_, ended)) => {
            let outcome = ended.outcome.unwrap_or(Outcome::Error);
            let mut words = vec![plain(capitalized(outcome.words()) + &after)];
            let reason = ended.reason.trim().trim_end_matches('.');
            // The reason of a completion names the checks that passed: once is enough.
            let is_told =
                is_verified(timeline) && timeline.checks.iter().all(|check| reason.contains(&check.command));
            if is_verified(timeline) {
                words.push(plain(", "));
                words.extend(verification.clone());
            }
            if !reason.is_empty() && !is_told {
                words.extend([plain(": "), quote(reason)]);
            }
            words
        }
        None if is_paused(facts) => vec![plain(format!("Paused{after}"))],
        None if facts.is_alive => vec![plain(format!("Still running{after}"))],
        None => vec![plain(format!("No ending was recorded{after}"))],
    };
    let is_closed = super::words::bare(&words).ends_with(['.', '?', '!']);
    words.push(plain(if is_closed { " " } else { ". " }));
    if !is_verified(timeline) {
        words.extend(verification);
    }
    words
}

/// Returns whether the run is complete and every check passed for it.
fn is_verified(timeline: &Timeline) -> bool {
    timeline.outcome() == Some(Outcome::Complete)
        && !timeline.checks.is_empty()
        && timeline.checks.iter().all(|check| check.passed() == Some(true))
}

fn verification(timeline: &Timeline) -> Words {
    let is_complete = timeline.outcome() == Some(Outcome::Complete);
    let commands = || listed(timeline.checks.iter().map(|check| code(&check.command)).collect());
    if timeline.checks.is_empty() {
        let words = if is_complete { "Not verified: no check was set." } else { "No check was set." };
        return vec![plain(words)];
    }
    if is_verified(timeline) {
        return [vec![plain("verified by ")], commands()].concat();
    }
    let open: Vec<&CheckHistory> =
        timeline.checks.iter().filter(|check| check.passed() != Some(true)).collect();
    if open.is_empty() {
        let begin = "Not complete, but this passed when it last ran: ";
        return [vec![plain(begin)], commands(), vec![plain(".")]].concat();
    }
    let state = |check: &&CheckHistory| match (check.passed(), check.last_failed) {
        (None, _) => "has not run".to_owned(),
        (_, Some(iteration)) => format!("failed last, in iteration {iteration}"),
        _ => "failed last".to_owned(),
    };
    let mut words = vec![plain("Not verified: ")];
    for (index, check) in open.iter().enumerate() {
        words.extend([plain(if index > 0 { "; " } else { "" }), code(&check.command)]);
        words.push(plain(format!(" {}", state(check))));
    }
    words.push(plain("."));
    words
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A figure at the top of the page, and the limit that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    pub name: &'static str,
    pub value: String,
    pub limit: Option<String>,
}

pub fn figures(facts: &ReportInput, review: &ReviewSection) -> Vec<Figure> {
    let Timeline { limits, ended, started_at, .. } = &facts.timeline;
    let figure = |name, value: Option<String>, limit| Figure {
        name,
        value: value.unwrap_or_else(|| "unknown".into()),
        limit,
    };
    let last = facts.timeline.last_iteration().map(|last| &last.facts);
    let runtime = ended.as_ref().map(|(_, ended)| ended.runtime_seconds);
    let runtime = runtime.or_else(|| last.map(|last| last.runtime_seconds)).unwrap_or_default();
    let until = ended.as_ref().map_or(facts.timeline.last_at, |(at, _)| Some(*at));
    let wall = started_at.zip(until).map(|(from, to)| time::span(to - from));
    let (cost, tokens) = super::iterations::spent(facts);
    let max_iterations = (limits.max_iterations > 0).then(|| limits.max_iterations.to_string());
    let max_runtime = (limits.max_runtime_seconds > 0.0).then(|| span(limits.max_runtime_seconds));
    let max_tokens = (limits.max_tokens > 0).then(|| message::tokens(limits.max_tokens));
    let mut figures = vec![
        figure("iterations", Some(iterations(&facts.timeline).to_string()), max_iterations),
        figure("runtime", Some(span(runtime)), max_runtime),
        figure("wall clock", wall, None),
        figure("cost", cost.map(dollars), limits.max_cost_usd.map(dollars)),
        figure("tokens", (tokens > 0).then(|| message::tokens(tokens)), max_tokens),
        figure("commits", review.commits.as_ref().ok().map(ToString::to_string), None),
    ];
    // The levels of its last iteration.
    let windows = last.map_or(&[][..], |last| &last.quota);
    let quota: Vec<String> = windows.iter().map(Window::level).collect();
    if !quota.is_empty() {
        figures.push(figure("plan used", Some(quota.join(", ")), None));
    }
    let stories = last.filter(|last| last.stories_total > 0);
    figures.extend(stories.map(|last| {
        let [done, total] = [last.stories_complete, last.stories_total].map(|count| count.to_string());
        figure("stories", Some(done), Some(total))
    }));
    figures
}

fn span(seconds: f64) -> String {
    time::span(Stamp::from_seconds(seconds).0)
}

pub fn evidence(facts: &ReportInput) -> Vec<CheckRow> {
    let iteration = |number: Option<u64>| match number {
        Some(number) => format!("iteration {number}"),
        None if facts.has_events => "never".into(),
        None => "unknown".into(),
    };
    let one = |check: &CheckHistory| {
        let last = match &check.last {
            Some((_, last)) if last.passed && last.seconds < 1.0 => "passed".into(),
            Some((_, last)) if last.passed => format!("passed in {}", span(last.seconds)),
            Some((_, last)) => {
                last.exit_code.map_or("failed".into(), |code| format!("failed (exit code {code})"))
            }
            None => "never ran".into(),
        };
        let tail = check
            .last
            .as_ref()
            .filter(|(_, last)| !last.passed)
            .map(|(_, last)| event::tail(&clean::output(&last.tail)));
        CheckRow {
            command: clean::excerpt(&check.command, 300),
            passed: check.passed(),
            first_failed: iteration(check.first_failed),
            last_passed: iteration(check.last_passed),
            last,
            runs: facts.has_events.then_some(check.runs),
            tail: tail.unwrap_or_default(),
        }
    };
    facts.timeline.checks.iter().map(one).collect()
}

pub fn notes(facts: &ReportInput) -> Vec<String> {
    let mut notes = Vec::new();
    if !facts.has_events {
        notes.push("This run has no events (an older version ran it, or they were removed): only its ending is known.".into());
    }
    if facts.timeline.skipped_bytes > 0 {
        let skipped = facts.timeline.skipped_bytes >> 20;
        notes.push(format!("Its events are too large: {skipped} MB after the start were skipped."));
    }
    if facts.timeline.is_newer {
        notes.push(
            "A newer version of Ralph wrote some of the events; those that this version does not know are skipped."
                .into(),
        );
    } else if facts.timeline.unknown > 0 {
        notes.push(format!("{} events are unknown to this version and skipped.", facts.timeline.unknown));
    }
    if facts.commits.as_ref().is_ok_and(|commits| commits.is_cut) {
        notes.push("There are too many changes to read them all: files and tests are incomplete.".into());
    }
    notes
}
