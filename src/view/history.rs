//! Past runs as a table, or one JSON object per line.

use super::paint::Paint;
use crate::core::message;
use crate::core::outcome::Outcome;
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use crate::store::user::circuit::{Event, What};
use crate::store::user::history::Run;
use anyhow::Result;
use serde::Serialize;

pub fn table(runs: &[Run], now: Stamp, paint: Paint) -> String {
    if runs.is_empty() {
        return "No past runs in this project.\n".into();
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
            "{:>13} · runtime {} · wall {} · {} ago",
            message::iterations(run.iterations),
            time::span(Stamp::from_seconds(run.runtime_seconds).0),
            time::span(Stamp::from_seconds(run.wall_seconds).0),
            time::span(now - run.ended_at)
        );
        out.push_str(&format!("{outcome} {what}\n"));
        let id = paint.dim(message::short_id(&run.run_id));
        out.push_str(&format!("  {id} {}\n", clean::excerpt(&run.task, 68)));
        let reason = format!("{}: {}", run.outcome.words(), run.reason);
        for line in clean::wrap(&clean::excerpt(&reason, 400), 78) {
            out.push_str(&format!("  {line}\n"));
        }
        if run.usage.tokens() > 0 {
            let cost = run.usage.cost_usd.map_or_else(String::new, |cost| format!(" · ${cost:.2}"));
            out.push_str(&format!("  {} tokens{cost}\n", message::tokens(run.usage.tokens())));
        }
    }
    out
}

/// Returns the trips and resets of the circuit breaker.
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
        let counts = event.counters.iter().filter(|(_, count)| *count > 0);
        let counts: Vec<_> =
            counts.map(|(condition, count)| format!("{} {count}", condition.label)).collect();
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
