//! Past runs as a table, or one JSON object per line.

use super::paint::Paint;
use crate::core::message;
use crate::core::outcome::Outcome;
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use crate::store::user::circuit::{self, Event};
use crate::store::user::history::Run;
use crate::store::user::stalls::{Stall, What};
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
        out.push_str(&format!("  {}\n", clean::excerpt(&reason, 78)));
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
            circuit::What::Trip => paint.red("trip "),
            circuit::What::Reset => paint.green("reset"),
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

/// Returns how often agents were silent for long, and for how long each time.
pub fn stalls(stalls: &[Stall], now: Stamp, paint: Paint) -> String {
    if stalls.is_empty() {
        return "No agent of this project was silent long enough for a warning.\n".into();
    }
    let mut out = String::new();
    for (event, one, many) in [
        (What::Stall, "stall, after", "stalls, after"),
        (What::Resumed, "warning without a stall: output after", "warnings without a stall: output after"),
    ] {
        let seconds =
            || stalls.iter().filter(|stall| stall.event == event).map(|stall| stall.silence_seconds);
        let (Some(least), Some(most)) = (seconds().min(), seconds().max()) else { continue };
        let count = seconds().count();
        let range = if least < most { format!("{least}s to {most}s") } else { format!("{least}s") };
        out.push_str(&format!("{count} {} {range} of silence\n", if count == 1 { one } else { many }));
    }
    for stall in stalls {
        let what = match stall.event {
            What::Stall => paint.red("stall  "),
            What::Resumed => paint.green("resumed"),
        };
        let tool = if stall.in_tool { " in a tool" } else { "" };
        let (silence, limit, ago) = (stall.silence_seconds, stall.limit_seconds, time::span(now - stall.at));
        let (id, iteration) = (message::short_id(&stall.run_id), stall.iteration);
        out.push_str(&format!(
            "{what} {silence}s silent{tool} (limit {limit}s) · {ago} ago · run {id}, iteration {iteration}\n"
        ));
    }
    out
}

pub fn json(records: &[impl Serialize]) -> Result<String> {
    let lines: Result<Vec<String>, _> = records.iter().map(serde_json::to_string).collect();
    Ok(lines?.into_iter().map(|line| line + "\n").collect())
}
