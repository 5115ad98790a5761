//! Past runs as a table, or one JSON object per line.

use crate::core::message;
use crate::core::outcome::Outcome;
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use crate::store::user::circuit::{Event, What};
use crate::store::user::history::Run;
use crate::store::user::stalls::{self, Stall};
use crate::view::paint::Paint;
use anyhow::Result;
use serde::Serialize;

pub fn run(run: &Run, now: Stamp, paint: Paint) -> String {
    let outcome = format!("{:<15}", run.outcome.name());
    let outcome = match run.outcome {
        Outcome::Complete => paint.green(outcome),
        Outcome::Stopped | Outcome::Killed => paint.dim(outcome),
        _ => paint.yellow(outcome),
    };
    let iterations = message::iterations(run.iterations);
    let [runtime, wall] =
        [run.runtime_seconds, run.wall_seconds].map(|seconds| time::span(Stamp::from_seconds(seconds).0));
    let ago = time::span(now - run.ended_at);
    let id = paint.dim(message::short_id(&run.run_id));
    let task = clean::excerpt(&run.task, 68);
    let mut out =
        format!("{outcome} {iterations:>13} · runtime {runtime} · wall {wall} · {ago} ago\n  {id} {task}\n");
    let reason = clean::excerpt(&format!("{}: {}", run.outcome.words(), run.reason), 400);
    clean::wrap(&reason, 78).iter().for_each(|line| out.push_str(&format!("  {line}\n")));
    for check in &run.checks {
        out.push_str(&format!("  {}\n", clean::excerpt(&format!("check {}", check.line()), 78)));
    }
    if run.usage.tokens() > 0 {
        let cost = run.usage.cost_usd.map_or_else(String::new, |cost| format!(" · ${cost:.2}"));
        out.push_str(&format!("  {} tokens{cost}\n", message::tokens(run.usage.tokens())));
    }
    out
}

/// Returns a trip or reset of the circuit breaker.
pub fn event(event: &Event, now: Stamp, paint: Paint) -> String {
    let what = match event.event {
        What::Trip => paint.red("trip "),
        What::Reset => paint.green("reset"),
    };
    let (ago, session) = (time::span(now - event.at), clean::excerpt(&event.session_id, 36));
    let mut out = format!("{what} {ago} ago · session {session}\n");
    if !event.reason.is_empty() {
        out.push_str(&format!("  {}\n", clean::excerpt(&event.reason, 78)));
    }
    let counts = event.counters.iter().filter(|(_, count)| *count > 0);
    let counts: Vec<_> = counts.map(|(condition, count)| format!("{} {count}", condition.label)).collect();
    if !counts.is_empty() {
        out.push_str(&format!("  {}\n", paint.dim(clean::excerpt(&counts.join(" · "), 78))));
    }
    out
}

/// Returns how often agents were silent for long, and for how long.
pub fn stall_counts(stalls: &[Stall]) -> String {
    let mut out = String::new();
    for (event, one, many) in [
        (stalls::What::Stall, "stall, after", "stalls, after"),
        (
            stalls::What::Resumed,
            "warning without a stall: output after",
            "warnings without a stall: output after",
        ),
    ] {
        let seconds =
            || stalls.iter().filter(|stall| stall.event == event).map(|stall| stall.silence_seconds);
        let (Some(least), Some(most)) = (seconds().min(), seconds().max()) else { continue };
        let count = seconds().count();
        let range = if least < most { format!("{least}s to {most}s") } else { format!("{least}s") };
        out.push_str(&format!("{count} {} {range} of silence\n", if count == 1 { one } else { many }));
    }
    out
}

/// Returns one long silence of an agent.
pub fn stall(stall: &Stall, now: Stamp, paint: Paint) -> String {
    let what = match stall.event {
        stalls::What::Stall => paint.red("stall  "),
        stalls::What::Resumed => paint.green("resumed"),
    };
    let tool = if stall.in_tool { " in a tool" } else { "" };
    let (silence, limit, ago) = (stall.silence_seconds, stall.limit_seconds, time::span(now - stall.at));
    let (id, iteration) = (message::short_id(&stall.run_id), stall.iteration);
    format!("{what} {silence}s silent{tool} (limit {limit}s) · {ago} ago · run {id}, iteration {iteration}\n")
}

pub fn json(records: &[impl Serialize]) -> Result<String> {
    let lines: Result<Vec<String>, _> = records.iter().map(serde_json::to_string).collect();
    Ok(lines?.into_iter().map(|line| line + "\n").collect())
}
