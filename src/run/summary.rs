//! The words of a run: where it stands, what an iteration came to, and the table at the end.

use super::Runner;
use super::log::Row;
use crate::core::outcome::Outcome;
use crate::core::record::Loop;
use crate::core::settings::Settings;
use crate::core::tasks::Mode;
use crate::core::time::{self, Stamp};
use crate::core::{clean, message};
use crate::store::project::Project;
use crate::store::{git, tasks};
use serde_json::{Value, json};
use std::time::Duration;

/// The exit codes of `ralph run`, in one place.
pub fn exit_code(outcome: Option<Outcome>) -> u8 {
    match outcome {
        Some(Outcome::Complete) => 0,
        Some(Outcome::MaxIterations | Outcome::MaxRuntime | Outcome::MaxCost) => 1,
        Some(Outcome::Blocked) => 2,
        Some(Outcome::Decide) => 3,
        Some(Outcome::Stuck | Outcome::Circuit) => 4,
        Some(Outcome::UsageLimit) => 5,
        Some(Outcome::Stopped | Outcome::Killed | Outcome::Interrupted) => 130,
        Some(Outcome::Error) | None => 70,
    }
}

/// `Ralph 12/50 · Runtime: 3.2h/9.0h · $4.10 · circuit closed`, short enough for what the screen adds to it.
pub fn position(lap: &Loop, settings: &Settings, number: u64) -> String {
    let of = message::of(number, settings.max_iterations);
    let cost = lap.usage.cost_usd.map_or_else(String::new, |cost| format!(" · ${cost:.2}"));
    let circuit = match lap.circuit.counters.stagnation {
        0 => "circuit closed".into(),
        turns => format!("no progress {turns}/{}", settings.circuit.stagnation),
    };
    format!("Ralph {of} · {}{cost} · {circuit}", message::runtime(lap, settings))
}

pub fn iteration_begins(number: u64, settings: &Settings, mode: Mode) -> String {
    let of =
        if settings.max_iterations > 0 { format!(" of {}", settings.max_iterations) } else { String::new() };
    let what = if mode == Mode::Implement { String::new() } else { format!(" · {}", mode.name()) };
    format!("── iteration {number}{of}{what} ──")
}

pub fn iteration_ended(row: &Row) -> String {
    let mut text = format!("── iteration {} {} · {}", row.iteration, row.outcome, span(row.duration_seconds));
    if !row.commit.is_empty() {
        text.push_str(&format!(" · commit {}", row.commit));
    }
    if let Some(cost) = row.cost_usd {
        text.push_str(&format!(" · ${cost:.2}"));
    }
    if row.tokens > 0 {
        text.push_str(&format!(" · {} tokens", message::tokens(row.tokens)));
    }
    text
}

/// The commit that is there now, where it is another than before.
pub fn new_commit(project: &Project, before: Option<&str>) -> String {
    git::head(&project.root)
        .filter(|head| !head.contains('/') && Some(head.as_str()) != before)
        .map_or(String::new(), |head| head.chars().take(7).collect())
}

fn span(seconds: u64) -> String {
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    if minutes > 0 { format!("{minutes}m {seconds}s") } else { format!("{seconds}s") }
}

/// The table at every ending.
pub fn table(runner: &Runner, settings: &Settings, now: Stamp) -> String {
    let lap = &runner.lap;
    let outcome = lap.outcome.unwrap_or(Outcome::Error);
    let wall = runner.began.elapsed();
    let iterations = match settings.max_iterations {
        0 => lap.iteration.to_string(),
        most => format!("{} / {most}", lap.iteration),
    };
    let mut rows = vec![
        ("Exit", format!("{} (code {})", outcome.name().to_uppercase(), exit_code(lap.outcome))),
        ("Reason", clean::excerpt(lap.reason.as_deref().unwrap_or(""), 300)),
        ("Iterations", iterations),
        ("Duration", format!("{} · {}", span(wall.as_secs()), message::times(lap, settings, now))),
    ];
    if let Some(tasks) = tasks::read_reviewed(runner.project, &lap.tasks, runner.order.skip_review) {
        rows.push(("Stories", format!("{}/{} complete", tasks.passing, tasks.total)));
    }
    if let Some(average) = average(wall, lap.iteration) {
        rows.push(("Avg/iter", average));
    }
    rows.push(("Stuck iters", runner.stuck_iterations.to_string()));
    if lap.usage.tokens() > 0 || lap.usage.cost_usd.is_some() {
        let cost = lap.usage.cost_usd.map_or_else(String::new, |cost| format!(" · ${cost:.2}"));
        rows.push(("Usage", format!("{} tokens{cost}", message::tokens(lap.usage.tokens()))));
    }
    rows.push(("Log", "ralph/logs/summary.csv".into()));
    if let Some(next) = message::next_run(outcome) {
        rows.push(("Next", next.into()));
    }
    let mut text = String::from("\nRalph run\n─────────\n");
    for (label, value) in rows {
        text.push_str(&format!("{:<13}{value}\n", format!("{label}:")));
    }
    text.trim_end().to_owned()
}

fn average(wall: Duration, iterations: u64) -> Option<String> {
    Some(span(wall.as_secs().checked_div(iterations)?))
}

pub fn json(runner: &Runner, code: u8) -> Value {
    let lap = &runner.lap;
    json!({
        "outcome": lap.outcome, "reason": lap.reason, "exit_code": code, "iterations": lap.iteration,
        "runtime_seconds": time_of(lap), "usage": lap.usage,
    })
}

fn time_of(lap: &Loop) -> f64 {
    time::Stamp(lap.runtime_ms()).seconds()
}
