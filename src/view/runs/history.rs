//! Past runs as a table, or one JSON object per line.

use crate::core::event::BreakerAction;
use crate::core::event::timeline::{Timeline, TimelineIteration};
use crate::core::message;
use crate::core::outcome::Outcome;
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use crate::store::user::circuit::{BreakerEvent, BreakerEventKind};
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

/// Returns everything about one run: its ending, its iterations, and what happened around them.
pub fn detail(run_id: &str, timeline: &Timeline, now: Stamp, paint: Paint) -> String {
    let mut out = head(run_id, timeline, now, paint);
    if !timeline.iterations.is_empty() {
        let titles = ["iteration", "outcome", "took", "tools", "commit", "tokens", "cost"];
        out.push_str(&format!("\n{}\n", paint.dim(columns(titles.map(str::to_owned)))));
        for (number, iteration) in &timeline.iterations {
            out.push_str(&iteration_row(*number, iteration, timeline));
        }
    }
    let around = detail_rows(timeline);
    if !around.is_empty() {
        out.push('\n');
    }
    for (label, text) in around {
        let text = clean::wrap(&clean::excerpt(&text, 3 * 66), 66);
        for (at, line) in text.iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            out.push_str(&format!("  {} {line}\n", paint.dim(format!("{label:<10}"))));
        }
    }
    out
}

fn head(run_id: &str, timeline: &Timeline, now: Stamp, paint: Paint) -> String {
    let started = timeline.started.clone().unwrap_or_default();
    let (id, task) = (paint.dim(message::short_id(run_id)), clean::excerpt(&started.task, 68));
    let began = timeline.started_at.map(|at| format!("started {} ago", time::span(now - at)));
    match &timeline.ended {
        Some((at, ended)) => {
            let outcome = ended.outcome.map_or("ended", |outcome| outcome.name());
            let [runtime, wall] = [ended.runtime_seconds, ended.wall_seconds]
                .map(|seconds| time::span(Stamp::from_seconds(seconds).0));
            let (count, ago) = (message::iterations(ended.iterations), time::span(now - *at));
            let mut out = format!(
                "{} · {count} · runtime {runtime} · wall {wall} · {ago} ago\n  {id} {task}\n",
                paint.bold(outcome)
            );
            let words = ended.outcome.map_or("", |outcome| outcome.words());
            let reason = clean::excerpt(&format!("{words}: {}", ended.reason), 400);
            clean::wrap(&reason, 78).iter().for_each(|line| out.push_str(&format!("  {line}\n")));
            out
        }
        None => {
            let count = message::iterations(timeline.iterations.len() as u64);
            let began = began.unwrap_or_default();
            format!("{} · {count} · {began}\n  {id} {task}\n", paint.bold("not ended"))
        }
    }
}

/// Returns the cells of a row, the figures to the right.
fn columns(cells: [String; 7]) -> String {
    let [number, outcome, took, tools, commit, tokens, cost] = cells;
    format!("  {number:>9}  {outcome:<14} {took:>8} {tools:>6}  {commit:<8} {tokens:>7} {cost:>8}")
        .trim_end()
        .to_owned()
}

fn iteration_row(number: u64, iteration: &TimelineIteration, timeline: &Timeline) -> String {
    let facts = &iteration.facts;
    let outcome = facts.outcome.map_or("ended", |outcome| outcome.name()).to_owned();
    let took = time::span(Stamp::from_seconds(timeline.seconds_of(number)).0);
    let tools = facts.tools.map_or_else(String::new, |tools| tools.to_string());
    let commit = facts.commit.as_deref().map_or_else(String::new, |commit| clean::excerpt(commit, 8));
    let tokens = if facts.tokens > 0 { message::tokens(facts.tokens) } else { String::new() };
    let cost = facts.cost_usd.map_or_else(String::new, |cost| format!("${cost:.2}"));
    let mut out = columns([number.to_string(), outcome, took, tools, commit, tokens, cost]) + "\n";
    let rejected = facts.rejected.as_ref().map(|why| format!("completion rejected: {why}"));
    for text in facts.error.iter().chain(&rejected).chain(&iteration.warning) {
        out.push_str(&format!("             {}\n", clean::excerpt(text, 66)));
    }
    out
}

/// Returns the checks, the guidance, the breaker and the answers, each with a label.
fn detail_rows(timeline: &Timeline) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    for check in &timeline.checks {
        let how = match check.passed() {
            None => "never ran".to_owned(),
            Some(passed) => {
                let word = if passed { "passed" } else { "failed" };
                let at = if passed { check.last_passed } else { check.last_failed }.unwrap_or_default();
                let first_failed = check.first_failed.map(|first| format!(", first failed in {first}"));
                format!("{word} in iteration {at}{}", first_failed.unwrap_or_default())
            }
        };
        rows.push(("check", format!("{}: {how}", clean::line(&check.command))));
    }
    for entry in &timeline.guidance {
        let delivered = entry.delivered.map_or_else(
            || "not delivered yet".to_owned(),
            |(_, iteration)| format!("delivered after iteration {iteration}"),
        );
        let removed = if entry.removed_at.is_some() { ", removed" } else { "" };
        rows.push(("guidance", format!("{}: {} ({delivered}{removed})", entry.list, entry.text)));
    }
    for (_, step) in &timeline.breaker {
        let what = match step.step {
            BreakerAction::Warned => "warned",
            BreakerAction::Tripped => "tripped",
            BreakerAction::Reset => "reset",
        };
        let at = if step.iteration > 0 { format!(" in iteration {}", step.iteration) } else { String::new() };
        rows.push(("breaker", format!("{what}{at}: {}", step.reason)));
    }
    for (_, answered) in &timeline.answers {
        rows.push(("answer", format!("{} → {}", answered.question, answered.answer)));
    }
    rows
}

/// Returns a trip or reset of the circuit breaker.
pub fn event(event: &BreakerEvent, now: Stamp, paint: Paint) -> String {
    let what = match event.event {
        BreakerEventKind::Trip => paint.red("trip "),
        BreakerEventKind::Reset => paint.green("reset"),
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
        (stalls::StallEventKind::Stall, "stall, after", "stalls, after"),
        (
            stalls::StallEventKind::Resumed,
            "warning without a stall: output after",
            "warnings without a stall: output after",
        ),
    ] {
        let seconds =
            || stalls.iter().filter(|stall| stall.event == event).map(|stall| stall.silence_seconds);
        let (Some(least), Some(most)) = (seconds().min(), seconds().max()) else { continue };
        let count = seconds().count();
        let (least, most) = (time::span(least * 1000), time::span(most * 1000));
        let range = if least == most { least } else { format!("{least} to {most}") };
        out.push_str(&format!("{count} {} {range} of silence\n", if count == 1 { one } else { many }));
    }
    out
}

/// Returns one long silence of an agent.
pub fn stall(stall: &Stall, now: Stamp, paint: Paint) -> String {
    let what = match stall.event {
        stalls::StallEventKind::Stall => paint.red("stall  "),
        stalls::StallEventKind::Resumed => paint.green("resumed"),
    };
    let tool = if stall.in_tool { " in a tool" } else { "" };
    let [silence, limit] =
        [stall.silence_seconds, stall.limit_seconds].map(|seconds| time::span(seconds * 1000));
    let ago = time::span(now - stall.at);
    let (id, iteration) = (message::short_id(&stall.run_id), stall.iteration);
    format!(
        "{what} silent for {silence}{tool} (limit {limit}) · {ago} ago · run {id}, iteration {iteration}\n"
    )
}

pub fn json(records: &[impl Serialize]) -> Result<String> {
    let lines: Result<Vec<String>, _> = records.iter().map(serde_json::to_string).collect();
    Ok(lines?.into_iter().map(|line| line + "\n").collect())
}
