//! Past runs as a table, or one JSON object a line.

use super::paint::Paint;
use crate::core::outcome::Outcome;
use crate::core::time::{self, Stamp};
use crate::core::{clean, message};
use crate::store::circuit::{Event, What};
use crate::store::history::Run;
use anyhow::Result;
use serde::Serialize;

pub fn table(runs: &[Run], now: Stamp, paint: Paint) -> String {
    if runs.is_empty() {
        return "No run has ended in this project yet.\n".into();
    }
    let mut out = String::new();
    for run in runs {
        let outcome = format!("{:<15}", run.outcome.name());
        let outcome = match run.outcome {
            Outcome::Complete => paint.green(outcome),
            Outcome::Stopped | Outcome::Killed => paint.dim(outcome),
            _ => paint.yellow(outcome),
        };
        let what = format!(
            "{:>4} iterations · runtime {} · wall {} · {} ago",
            run.iterations,
            time::span(Stamp::from_seconds(run.runtime_seconds).0),
            time::span(Stamp::from_seconds(run.wall_seconds).0),
            time::span(now - run.ended_at)
        );
        out.push_str(&format!("{outcome} {what}\n"));
        let id = clean::excerpt(&run.run_id, 9).replace('…', "");
        out.push_str(&format!("  {} {}\n", paint.dim(id), clean::excerpt(&run.task, 68)));
        out.push_str(&format!(
            "  {}\n",
            clean::excerpt(&format!("{}: {}", run.outcome.words(), run.reason), 78)
        ));
        if run.usage.tokens() > 0 {
            let cost = run.usage.cost_usd.map_or_else(String::new, |cost| format!(" · ${cost:.2}"));
            out.push_str(&format!("  {} tokens{cost}\n", message::tokens(run.usage.tokens())));
        }
    }
    out
}

/// The circuit breaker's trips and resets.
pub fn events(events: &[Event], now: Stamp, paint: Paint) -> String {
    if events.is_empty() {
        return "The circuit breaker has never tripped in this project.\n".into();
    }
    let mut out = String::new();
    for event in events {
        let what = match event.event {
            What::Trip => paint.red("trip "),
            What::Reset => paint.green("reset"),
        };
        let ago = time::span(now - event.at);
        out.push_str(&format!("{what} {ago} ago · session {}\n", clean::excerpt(&event.session_id, 36)));
        if !event.reason.is_empty() {
            out.push_str(&format!("  {}\n", clean::excerpt(&event.reason, 78)));
        }
        let counters = &event.counters;
        let counts = [
            ("same error", counters.same_error),
            ("output decline", counters.output_decline),
            ("tests only", counters.test_only),
            ("no progress", counters.stagnation),
            ("idle", counters.idle),
            ("repeating", counters.repetition),
            ("claims", counters.safety_completion),
        ];
        let counts: Vec<_> =
            counts.iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{what} {n}")).collect();
        if !counts.is_empty() {
            out.push_str(&format!("  {}\n", paint.dim(clean::excerpt(&counts.join(" · "), 78))));
        }
    }
    out
}

pub fn json(records: &[impl Serialize]) -> Result<String> {
    let lines: Result<Vec<String>, _> = records.iter().map(serde_json::to_string).collect();
    Ok(lines?.into_iter().map(|line| line + "\n").collect())
}
