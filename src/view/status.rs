//! The status of a project, for people at 80 columns and for scripts.

use super::paint::{Paint, bar};
use super::scan::place;
use crate::core::circuit::CircuitState;
use crate::core::finding::{Finding, Severity};
use crate::core::guidance::{Entry, Guidance};
use crate::core::record::{Engine, Loop, LoopState, WaitingFor};
use crate::core::settings::Settings;
use crate::core::tasks::Source;
use crate::core::time::{self, Stamp};
use crate::core::turn::Tasks;
use crate::core::{clean, limits, message};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug)]
pub struct Status {
    pub project: PathBuf,
    pub now: Stamp,
    pub loops: Vec<Shown>,
    pub guidance: Guidance,
    pub constraints: Value,
    pub notes: Vec<String>,
}

#[derive(Debug)]
pub struct Shown {
    pub session_id: String,
    /// It belongs to the session that asks.
    pub own: bool,
    pub lap: Loop,
    pub settings: Settings,
    /// Its tasks as they are now, where there are any.
    pub tasks: Option<Tasks>,
    /// A run that nobody drives any more: its runner was killed, and the next one goes on.
    pub runner_gone: bool,
}

const WIDTH: usize = 80;
const MOST_CONSTRAINTS: usize = 10;
const LABEL: usize = 12;
const VALUE: usize = WIDTH - LABEL - 2;

impl Status {
    pub fn human(&self, paint: Paint) -> String {
        let mut out = format!(
            "{}\n",
            paint.bold(clean::excerpt(&format!("Ralph · {}", self.project.display()), WIDTH))
        );
        if self.loops.is_empty() {
            out.push_str("\nNo loop here. In Claude Code: /ralph:start TASK\n");
        }
        for shown in &self.loops {
            out.push('\n');
            out.push_str(&shown.human(self.now, paint));
        }
        if !self.guidance.is_empty() {
            out.push('\n');
            for (title, list) in
                [("Encouraged", &self.guidance.encouraged), ("Forbidden", &self.guidance.forbidden)]
            {
                for (index, entry) in list.iter().enumerate() {
                    let label = if index == 0 { title } else { "" };
                    let age = entry.age_ms(self.now).map_or("undated".into(), time::span);
                    let pinned = if entry.pinned { ", pinned" } else { "" };
                    let delivered = if entry.delivered { "delivered" } else { "not delivered yet" };
                    let tail = format!(" ({age}{pinned}, {delivered})");
                    let text = clean::excerpt(&entry.text, VALUE.saturating_sub(tail.chars().count()));
                    row(&mut out, paint, label, &format!("{text}{}", paint.dim(tail)));
                }
            }
        }
        let constraints: Vec<Finding> = serde_json::from_value(self.constraints.clone()).unwrap_or_default();
        let shown: Vec<_> = constraints.iter().filter(|finding| finding.severity > Severity::Low).collect();
        if !shown.is_empty() {
            out.push('\n');
        }
        for (index, finding) in shown.iter().take(MOST_CONSTRAINTS).enumerate() {
            let label = if index == 0 { "Constraints" } else { "" };
            let allowed = if self.guidance.waived().contains(&finding.id) { ", allowed" } else { "" };
            let tail = format!(" ({}{allowed})", finding.severity.name());
            let text = format!("{}: {}", place(finding), finding.description);
            let text = clean::excerpt(text.trim_start_matches(": "), VALUE - 1 - tail.len());
            row(&mut out, paint, label, &format!("{text}{}", paint.dim(tail)));
        }
        if shown.len() > MOST_CONSTRAINTS {
            row(&mut out, paint, "", &format!("and {} more: `ralph scan`", shown.len() - MOST_CONSTRAINTS));
        }
        for note in &self.notes {
            let mut label = paint.yellow("Note:");
            out.push('\n');
            for line in clean::wrap(note, WIDTH - 6) {
                out.push_str(&format!("{label} {line}\n"));
                label = "     ".into();
            }
        }
        out
    }

    pub fn json(&self) -> Value {
        json!({
            "project": self.project.to_string_lossy(),
            "loops": self.loops.iter().map(|shown| shown.json(self.now)).collect::<Vec<_>>(),
            "guidance": guidance_json(&self.guidance, self.now),
            "constraints": self.constraints,
            "notes": self.notes,
        })
    }
}

pub fn guidance_json(guidance: &Guidance, now: Stamp) -> Value {
    let entry = |entry: &Entry| {
        json!({
            "text": entry.text,
            "timestamp": entry.timestamp,
            "age_seconds": entry.age_ms(now).map(|age| Stamp(age).seconds()),
            "pinned": entry.pinned,
            "for_seconds": entry.for_seconds,
            "delivered": entry.delivered,
        })
    };
    let list = |entries: &[Entry]| entries.iter().map(entry).collect::<Vec<_>>();
    json!({
        "encouraged": list(&guidance.encouraged),
        "forbidden": list(&guidance.forbidden),
        "allowed": list(&guidance.allowed),
    })
}

fn row(out: &mut String, paint: Paint, label: &str, value: &str) {
    out.push_str(&format!("  {} {value}\n", paint.dim(format!("{label:<LABEL$}", LABEL = LABEL - 1))));
}

impl Shown {
    fn human(&self, now: Stamp, paint: Paint) -> String {
        let (lap, settings) = (&self.lap, &self.settings);
        let (mark, state) = match (lap.state, lap.outcome) {
            (LoopState::Running, _) if self.runner_gone => {
                (paint.yellow("◌"), paint.yellow("cut off: its runner is gone, `ralph run` goes on"))
            }
            (LoopState::Running, _) => (paint.green("●"), paint.green("running")),
            (LoopState::Paused, _) => (paint.yellow("◐"), paint.yellow("paused")),
            (LoopState::Stopped, Some(outcome)) => (paint.dim("■"), format!("ended: {}", outcome.words())),
            (LoopState::Stopped, None) => (paint.dim("■"), "ended".into()),
        };
        let own = if self.own { paint.dim(" · this session") } else { String::new() };
        let mut out = format!("{mark} {state}{own}\n");
        let mut add = |label: &str, value: String| row(&mut out, paint, label, &value);
        add("Task", clean::excerpt(&lap.task, VALUE));
        if !self.own {
            add("Session", clean::excerpt(&self.session_id, VALUE));
        }
        if let Some(reason) = &lap.reason {
            add("Why", clean::excerpt(reason, VALUE));
        }
        add(
            "Iterations",
            progress(lap.iteration as f64, settings.max_iterations as f64, |n| format!("{n:.0}")),
        );
        add("Time", message::times(lap, settings, now));
        let mut limits_text = Vec::new();
        if settings.min_iterations > 0 {
            limits_text.push(format!("at least {} iterations", settings.min_iterations));
        }
        if settings.min_runtime_ms > 0 {
            limits_text.push(format!("at least {}", time::span(settings.min_runtime_ms)));
        }
        if let Some(cost) = settings.max_cost_usd {
            limits_text.push(format!("at most ${cost:.2}"));
        }
        if lap.state == LoopState::Running && limits::ending_soon(lap, settings) {
            limits_text.push(paint.yellow("ENDING SOON"));
        }
        if !limits_text.is_empty() {
            add("Limits", limits_text.join(" · "));
        }
        if let Some(tasks) = &self.tasks {
            add("Tasks", tasks_text(tasks, &lap.tasks));
        }
        add("Circuit", circuit_text(lap, settings, paint));
        if lap.usage.tokens() > 0 || lap.usage.cost_usd.is_some() {
            let mut usage = format!("{} tokens", message::tokens(lap.usage.tokens()));
            if lap.usage.context_tokens > 0 {
                usage.push_str(&format!(" · context {}", message::tokens(lap.usage.context_tokens)));
            }
            if let Some(cost) = lap.usage.cost_usd {
                usage.push_str(&format!(" · ${cost:.2}"));
            }
            add("Usage", usage);
        }
        match lap.waiting.as_ref().map(|waiting| &waiting.what) {
            Some(WaitingFor::User(queued)) => {
                add("Waiting", format!("for your \"{}\"", clean::excerpt(&queued.text, 50)))
            }
            Some(WaitingFor::Background(work)) => {
                add("Waiting", format!("for background work: {}", clean::excerpt(work, 40)))
            }
            None => {}
        }
        if let Some(error) = &lap.last_error {
            add("Last error", format!("{} (any prompt in the session goes on)", clean::excerpt(error, 29)));
        }
        if lap.orphaned_at.is_some() && lap.is_alive() {
            add("Orphaned", "its session was cleared; /ralph:start --resume adopts it".into());
        }
        let seen = match lap.ended_at {
            Some(ended) => format!("{} ago", time::span(now - ended)),
            None => format!("{} ago", time::span(now - lap.last_seen())),
        };
        add(
            if lap.ended_at.is_some() { "Ended" } else { "Last turn" },
            format!("{seen} · run {}", clean::excerpt(&lap.run_id, 8).replace('…', "")),
        );
        let next = |outcome| match lap.engine {
            Engine::Runner => message::next_run(outcome).map(str::to_owned),
            Engine::InSession => message::next_step(lap.engine, outcome),
        };
        if let (false, Some(next)) = (lap.is_alive(), lap.outcome.and_then(next)) {
            for (index, line) in clean::wrap(&next, VALUE).into_iter().enumerate() {
                add(if index == 0 { "Next" } else { "" }, line);
            }
        }
        out
    }

    fn json(&self, now: Stamp) -> Value {
        let lap = &self.lap;
        json!({
            "session_id": self.session_id,
            "run_id": lap.run_id,
            "engine": lap.engine,
            "state": lap.state,
            "task": lap.task,
            "iteration": lap.iteration,
            "max_iterations": self.settings.max_iterations,
            "runtime_seconds": lap.accumulated_runtime_seconds,
            "max_runtime_seconds": Stamp(self.settings.max_runtime_ms).seconds(),
            "wall_seconds": Stamp(lap.wall_ms(now)).seconds(),
            "started_at": lap.started_at,
            "ended_at": lap.ended_at,
            "last_seen_at": lap.last_seen(),
            "outcome": lap.outcome,
            "reason": lap.reason,
            "tasks": self.tasks.as_ref().map(|tasks| json!({
                "file": lap.tasks.file, "total": tasks.total, "passing": tasks.passing, "unusable": tasks.unusable,
            })),
            "circuit": {"state": lap.circuit.state, "reason": lap.circuit.reason},
            "usage": lap.usage,
            "orphaned": lap.orphaned_at.is_some() || self.runner_gone,
            "last_error": lap.last_error,
        })
    }
}

fn tasks_text(tasks: &Tasks, source: &Source) -> String {
    let Source { file, form } = source;
    let (nouns, done) = (form.nouns(), form.done());
    clean::excerpt(
        &match &tasks.unusable {
            Some(why) => format!("{file} {why}"),
            None => format!("{} of {} {nouns} {done} · {file}", tasks.passing, tasks.total),
        },
        VALUE,
    )
}

fn progress(count: f64, limit: f64, show: impl Fn(f64) -> String) -> String {
    if limit == 0.0 {
        return format!("{} (no limit)", show(count));
    }
    format!("{}/{}  {}", show(count), show(limit), bar(count / limit, 20))
}

fn circuit_text(lap: &Loop, settings: &Settings, paint: Paint) -> String {
    match lap.circuit.state {
        CircuitState::Tripped => {
            let reason = clean::excerpt(lap.circuit.reason.as_deref().unwrap_or(""), VALUE - 10);
            format!("{} {reason}", paint.red("tripped:"))
        }
        CircuitState::Closed => {
            let counts = lap.circuit.counters.counting(&settings.circuit).into_iter();
            let counts = counts.map(|(what, count, most)| format!("{what} {count}/{most}"));
            clean::excerpt(
                &["closed".to_owned()].into_iter().chain(counts).collect::<Vec<_>>().join(" · "),
                VALUE,
            )
        }
    }
}
