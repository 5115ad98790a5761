//! The messages of a run: its position, the result of an iteration, and the table at the end.

use super::Runner;
use crate::core::decide::breaker;
use crate::core::message;
use crate::core::outcome::{IterationOutcome, Outcome};
use crate::core::record::ArmedLoop;
use crate::core::settings::{RunSettings, Settings};
use crate::core::tasks::Mode;
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use crate::store::runner::summary::SummaryRow;
use crate::store::tasks;

/// Returns `Ralph 12/50 · Runtime: 3.2h/9.0h · $4.10 · circuit ok`, short enough for what the screen adds to it.
pub fn position(run: &ArmedLoop, settings: &Settings, number: u64) -> String {
    let of = message::of(number, settings.max_iterations);
    let cost = run.usage.cost_usd.map_or_else(String::new, |cost| format!(" · ${cost:.2}"));
    let circuit = breaker::brief(run, settings);
    format!("Ralph {of} · {}{cost} · {circuit}", message::runtime(run, settings))
}

pub fn iteration_started(number: u64, settings: &Settings, mode: Mode) -> String {
    let of =
        if settings.max_iterations > 0 { format!(" of {}", settings.max_iterations) } else { String::new() };
    let what = if mode == Mode::Implement { String::new() } else { format!(" · {}", mode.name()) };
    format!("── iteration {number}{of}{what} ──")
}

pub fn iteration_ended(row: &SummaryRow) -> String {
    let outcome = row.outcome.map_or("", IterationOutcome::name);
    let mut text = format!("── iteration {} {outcome} · {}", row.iteration, span(row.duration_seconds));
    if row.attempts > 1 {
        text.push_str(&format!(" · {} attempts", row.attempts));
    }
    if !row.commit_hash.is_empty() {
        text.push_str(&format!(" · commit {}", row.commit_hash));
    }
    if let Some(cost) = row.cost_usd {
        text.push_str(&format!(" · ${cost:.2}"));
    }
    if row.tokens > 0 {
        text.push_str(&format!(" · {} tokens", message::tokens(row.tokens)));
    }
    text
}

/// Returns a note if an iteration ends before a silent tool reaches its own limit.
pub fn timeout_note(run_settings: &RunSettings) -> Option<String> {
    let (timeout, tool_limit) = (run_settings.timeout_ms, run_settings.heartbeat.tool_limit()?);
    let (shorter, longer) = (time::span(timeout), time::span(tool_limit));
    (0 < timeout && timeout < tool_limit).then(|| {
        format!("--timeout ({shorter}) ends an iteration before a tool reaches --tool-limit ({longer})")
    })
}

fn span(seconds: u64) -> String {
    time::span(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000))
}

/// Returns the table shown at every ending.
pub fn table(runner: &Runner, settings: &Settings, now: Stamp) -> String {
    let run = &runner.run;
    let outcome = run.outcome.unwrap_or(Outcome::Error);
    let seconds = run.tally.duration_seconds;
    let iterations = match settings.max_iterations {
        0 => run.iteration.to_string(),
        most => format!("{} / {most}", run.iteration),
    };
    let mut rows = vec![
        ("Exit", format!("{} (code {})", outcome.name().to_uppercase(), outcome.exit().code())),
        ("Reason", clean::excerpt(run.reason.as_deref().unwrap_or(""), 300)),
        ("Iterations", iterations),
        ("Duration", format!("{} · {}", span(seconds), message::times(run, settings, now))),
    ];
    if let Some(tasks) = tasks::read(runner.project, &run.tasks).filter(|tasks| tasks.unusable.is_none()) {
        rows.push(("Stories", format!("{}/{} complete", tasks.passing, tasks.total)));
    }
    if let Some(average) = run.average_seconds() {
        rows.push(("Avg/iter", span(average)));
    }
    rows.extend(message::checks(run, settings).iter().map(|check| ("Check", clean::excerpt(check, 120))));
    rows.push(("Stuck iters", run.tally.stuck_iterations.to_string()));
    if run.usage.tokens() > 0 || run.usage.cost_usd.is_some() {
        let cost = run.usage.cost_usd.map_or_else(String::new, |cost| format!(" · ${cost:.2}"));
        rows.push(("Usage", format!("{} tokens{cost}", message::tokens(run.usage.tokens()))));
    }
    rows.push(("Log", "ralph/logs/summary.csv".into()));
    if let Some(next) = message::next_step(run, outcome) {
        rows.push(("Next", next));
    }
    let mut text = String::from("\nRalph run\n─────────\n");
    for (label, value) in rows {
        text.push_str(&format!("{:<13}{value}\n", format!("{label}:")));
    }
    text.trim_end().to_owned()
}
