//! The status of a project, for people at 80 columns and for scripts.

use super::guidance;
use super::paint::{Paint, bar};
use crate::core::decide::limits;
use crate::core::decide::turn::Tasks;
use crate::core::guidance::Guidance;
use crate::core::guidance::finding::{Finding, Severity};
use crate::core::message;
use crate::core::record::{ArmedLoop, Engine, LoopState, WaitingFor};
use crate::core::settings::Settings;
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use serde::Serialize;
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
    pub run: ArmedLoop,
    pub settings: Settings,
    /// Its tasks as they are now.
    pub tasks: Option<Tasks>,
    /// Its runner was killed; the next `ralph run` continues it.
    pub runner_gone: bool,
    /// What is left of the runner's calls; nothing without a limit.
    pub calls: Option<Calls>,
}

/// What is left of `run.calls_per_hour`.
#[derive(Debug, Serialize)]
pub struct Calls {
    pub per_hour: u64,
    pub remaining: u64,
    /// When the oldest call leaves the window.
    pub frees_at: Option<Stamp>,
}

const WIDTH: usize = 80;
const MAX_CONSTRAINTS: usize = 10;
const LABEL: usize = 11;
const VALUE: usize = WIDTH - LABEL - 3;

impl Status {
    pub fn human(&self, paint: Paint) -> String {
        let title = clean::excerpt(&format!("Ralph · {}", self.project.display()), WIDTH);
        let mut out = format!("{}\n", paint.bold(title));
        if self.loops.is_empty() {
            out.push_str("\nNo loop in this project. Start one in Claude Code: /ralph:start TASK\n");
        }
        for shown in &self.loops {
            out.push_str(&format!(
                "\n{}\n{}",
                shown.headline(paint),
                table(&shown.rows(self.now, paint), paint)
            ));
        }
        for rows in [self.guidance_rows(paint), self.constraint_rows(paint)] {
            if !rows.is_empty() {
                out.push_str(&format!("\n{}", table(&rows, paint)));
            }
        }
        for note in &self.notes {
            let lines = clean::wrap(note, WIDTH - 6).join("\n      ");
            out.push_str(&format!("\n{} {lines}\n", paint.yellow("Note:")));
        }
        out
    }

    fn guidance_rows(&self, paint: Paint) -> Vec<(&'static str, String)> {
        let mut rows = Vec::new();
        for (title, list) in
            [("Encouraged", &self.guidance.encouraged), ("Forbidden", &self.guidance.forbidden)]
        {
            for (index, entry) in list.iter().enumerate() {
                let tail = format!(" ({})", guidance::notes(entry, self.now));
                let text = clean::excerpt(&entry.text, VALUE.saturating_sub(clean::columns(&tail)));
                rows.push((if index == 0 { title } else { "" }, text + &paint.dim(tail)));
            }
        }
        rows
    }

    fn constraint_rows(&self, paint: Paint) -> Vec<(&'static str, String)> {
        let findings: Vec<Finding> = serde_json::from_value(self.constraints.clone()).unwrap_or_default();
        let shown: Vec<_> = findings.iter().filter(|finding| finding.severity > Severity::Low).collect();
        let waived = self.guidance.waived();
        let row = |finding: &&Finding| {
            let allowed = if waived.contains(&finding.id) { ", allowed" } else { "" };
            let tail = format!(" ({}{allowed})", finding.severity.name());
            let text = format!("{}: {}", finding.place(), finding.description);
            clean::excerpt(text.trim_start_matches(": "), VALUE - tail.len()) + &paint.dim(tail)
        };
        let mut rows: Vec<String> = shown.iter().take(MAX_CONSTRAINTS).map(row).collect();
        if shown.len() > MAX_CONSTRAINTS {
            rows.push(format!("{} more: `ralph scan`", shown.len() - MAX_CONSTRAINTS));
        }
        let labels = ["Constraints"].into_iter().chain(std::iter::repeat(""));
        labels.zip(rows).collect()
    }

    pub fn json(&self) -> Value {
        json!({
            "project": self.project.to_string_lossy(),
            "loops": self.loops.iter().map(|shown| shown.json(self.now)).collect::<Vec<_>>(),
            "guidance": guidance::json(&self.guidance, self.now),
            "constraints": self.constraints,
            "notes": self.notes,
        })
    }
}

/// Formats rows of a label and a value; a longer value continues below.
fn table(rows: &[(&str, String)], paint: Paint) -> String {
    let mut out = String::new();
    for (label, value) in rows {
        out.push_str(&format!("  {} {value}\n", paint.dim(format!("{label:<LABEL$}"))));
    }
    out
}

impl Shown {
    fn headline(&self, paint: Paint) -> String {
        let own = if self.own { paint.dim(" · this session") } else { String::new() };
        let headline = match (self.run.state, self.run.outcome) {
            (LoopState::Running, _) if self.runner_gone => {
                paint.yellow("◌ interrupted: the runner is gone, `ralph run` continues")
            }
            (LoopState::Running, _) => paint.green("● running"),
            (LoopState::Paused, _) => paint.yellow("◐ paused"),
            (LoopState::Stopped, Some(outcome)) => format!("{} ended: {}", paint.dim("■"), outcome.words()),
            (LoopState::Stopped, None) => format!("{} ended", paint.dim("■")),
        };
        headline + &own
    }

    fn rows(&self, now: Stamp, paint: Paint) -> Vec<(&'static str, String)> {
        let Shown { run, settings, .. } = self;
        let fit = |text: &str| clean::excerpt(text, VALUE);
        let mut rows = vec![("Task", fit(&run.task))];
        if !self.own {
            rows.push(("Session", fit(&self.session_id)));
        }
        rows.extend(run.reason.as_ref().map(|reason| ("Reason", fit(reason))));
        rows.push(("Iterations", iterations(run.iteration, settings.max_iterations)));
        rows.push(("Time", message::times(run, settings, now)));
        rows.extend(self.limits(paint).map(|limits| ("Limits", limits)));
        rows.extend(self.tasks.as_ref().map(|tasks| ("Tasks", fit(&self.tasks_text(tasks)))));
        rows.extend(message::checks(run, settings).iter().map(|check| ("Check", fit(check))));
        rows.push(("Circuit", self.circuit(paint)));
        rows.extend(self.stuck().map(|stuck| ("Stuck", stuck)));
        if let Some(reported) = self.reported() {
            let labels = ["Reported"].into_iter().chain(std::iter::repeat(""));
            rows.extend(labels.zip(clean::wrap(&reported, VALUE)));
        }
        rows.extend(self.recommendation().map(|text| ("Recommends", fit(text))));
        if let Some(length) = run.output_characters {
            let characters = if length == 1 { "character" } else { "characters" };
            rows.push(("Output", format!("{length} {characters} in the last message")));
        }
        rows.extend(self.calls.as_ref().map(|calls| ("Calls", calls.text(now))));
        rows.extend(self.usage().map(|usage| ("Usage", usage)));
        rows.extend(self.waiting().map(|what| ("Waiting", waiting_text(what, now))));
        if let Some(error) = &run.session.last_error {
            rows.push((
                "Last error",
                match run.engine {
                    Engine::InSession => {
                        format!("{} (send any prompt to continue)", clean::excerpt(error, 34))
                    }
                    Engine::Runner => clean::excerpt(error, 200),
                },
            ));
        }
        if run.session.orphaned_at.is_some() && run.is_alive() {
            rows.push(("Orphaned", "the session was cleared; adopt it with /ralph:start --resume".into()));
        }
        let (label, at) = run.ended_at.map_or(("Last turn", run.last_seen()), |ended| ("Ended", ended));
        let id = message::short_id(&run.run_id);
        rows.push((label, format!("{} ago · run {id}", time::span(now - at))));
        if let Some(next) = run.outcome.and_then(|outcome| message::next_step(run, outcome)) {
            let labels = ["Next"].into_iter().chain(std::iter::repeat(""));
            rows.extend(labels.zip(clean::wrap(&next, VALUE)));
        }
        rows
    }

    /// Returns what it waits for. A runner that is gone waits for nothing.
    fn waiting(&self) -> Option<&WaitingFor> {
        let waiting = self.run.session.waiting.as_ref().filter(|_| !self.runner_gone);
        waiting.map(|waiting| &waiting.what)
    }

    /// Returns whether the client is there, as far as that is known.
    fn client(&self) -> &'static str {
        let Shown { run, runner_gone, .. } = self;
        let seen = match run.engine {
            Engine::InSession => run.last_seen() > run.timing.armed_at,
            Engine::Runner => !runner_gone,
        };
        match run.session.closed_at {
            Some(_) => "closed",
            None if run.is_alive() && seen => "open",
            None => "unknown",
        }
    }

    fn limits(&self, paint: Paint) -> Option<String> {
        let settings = &self.settings;
        let mut limits = Vec::new();
        if settings.min_iterations > 0 {
            limits.push(format!("min {}", message::iterations(settings.min_iterations)));
        }
        if settings.min_runtime_ms > 0 {
            limits.push(format!("min {}", time::span(settings.min_runtime_ms)));
        }
        limits.extend(settings.max_cost_usd.map(|cost| format!("max ${cost:.2}")));
        if self.run.state == LoopState::Running && limits::ending_soon(&self.run, settings) {
            limits.push(paint.yellow("ENDING SOON"));
        }
        (!limits.is_empty()).then(|| limits.join(" · "))
    }

    fn tasks_text(&self, tasks: &Tasks) -> String {
        let (file, form) = (&self.run.tasks.file, self.run.tasks.form);
        match &tasks.unusable {
            Some(why) => format!("{file} {why}"),
            None => format!("{} of {} {} {} · {file}", tasks.passing, tasks.total, form.nouns(), form.done()),
        }
    }

    fn circuit(&self, paint: Paint) -> String {
        let circuit = &self.run.circuit;
        if circuit.is_tripped() {
            let reason = clean::excerpt(circuit.reason.as_deref().unwrap_or(""), VALUE - 9);
            return format!("{} {reason}", paint.red("tripped:"));
        }
        let counts = circuit.counters.counting(&self.settings.circuit).into_iter();
        let counts = counts.map(|(what, count, limit)| format!(" · {what} {count}/{limit}"));
        clean::excerpt(&format!("ok{}", counts.collect::<String>()), VALUE)
    }

    /// Returns how many iterations of a runner went by without a commit. In a session the breaker counts them.
    fn stuck(&self) -> Option<String> {
        let (count, max) = (self.run.stuck_count, self.settings.max_stuck);
        let shown = self.run.engine == Engine::Runner && count > 0;
        shown.then(|| format!("{} in a row without a commit", message::of(count, max)))
    }

    /// Returns the fields of the agent's last status block.
    fn reported(&self) -> Option<String> {
        let Value::Object(fields) = json!(self.run.status_block.as_ref()?) else { return None };
        let fields = fields.iter().filter(|(key, value)| *key != "recommendation" && !value.is_null());
        let fields: Vec<String> = fields
            .map(|(key, value)| {
                let what = key.split('_').next().unwrap_or_default();
                match value.as_str().map(|word| word.to_lowercase().replace('_', " ")) {
                    // `in progress` and `testing` say what they are.
                    Some(word) if what != "tests" => word,
                    Some(word) => format!("{what} {word}"),
                    None => format!("{what} {value}"),
                }
            })
            .collect();
        (!fields.is_empty()).then(|| fields.join(" · "))
    }

    fn recommendation(&self) -> Option<&str> {
        self.run.status_block.as_ref()?.recommendation.as_deref()
    }

    fn usage(&self) -> Option<String> {
        let usage = &self.run.usage;
        let mut text = format!("{} tokens", message::tokens(usage.tokens()));
        if usage.context_tokens > 0 {
            text.push_str(&format!(" · context {}", message::tokens(usage.context_tokens)));
        }
        if let Some(cost) = usage.cost_usd {
            text.push_str(&format!(" · ${cost:.2}"));
        }
        (usage.tokens() > 0 || usage.cost_usd.is_some()).then_some(text)
    }

    fn json(&self, now: Stamp) -> Value {
        let run = &self.run;
        json!({
            "session_id": self.session_id,
            "run_id": run.run_id,
            "engine": run.engine,
            "state": run.state,
            "task": run.task,
            "iteration": run.iteration,
            "max_iterations": self.settings.max_iterations,
            "runtime_seconds": run.accumulated_runtime_seconds,
            "max_runtime_seconds": Stamp(self.settings.max_runtime_ms).seconds(),
            "wall_seconds": Stamp(run.wall_ms(now)).seconds(),
            "started_at": run.started_at,
            "ended_at": run.ended_at,
            "last_seen_at": run.last_seen(),
            "outcome": run.outcome,
            "reason": run.reason,
            "tasks": self.tasks.as_ref().map(|tasks| json!({
                "file": run.tasks.file, "total": tasks.total, "passing": tasks.passing, "unusable": tasks.unusable,
            })),
            "checks": self.settings.checks.iter().map(|command| {
                let last = run.checks.iter().find(|result| result.command == *command);
                json!({
                    "command": command,
                    "passed": last.map(|last| last.passed),
                    "exit_code": last.and_then(|last| last.exit_code),
                    "at": last.map(|last| last.at),
                })
            }).collect::<Vec<_>>(),
            "circuit": {
                "state": run.circuit.state, "reason": run.circuit.reason, "counters": run.circuit.counters,
            },
            "stuck_count": run.stuck_count,
            "max_stuck": (run.engine == Engine::Runner).then_some(self.settings.max_stuck),
            "status_block": run.status_block,
            "output_characters": run.output_characters,
            "calls": self.calls,
            "usage": run.usage,
            "orphaned": run.session.orphaned_at.is_some() || self.runner_gone,
            "last_error": run.session.last_error,
            "waiting": self.waiting().map(|what| json!({"for": what.name(), "until": what.until()})),
            "client": self.client(),
        })
    }
}

impl Calls {
    fn text(&self, now: Stamp) -> String {
        let left = format!("{} of {} left this hour", self.remaining, self.per_hour);
        self.frees_at
            .map_or(left.clone(), |at| format!("{left} · the next frees up in {}", time::span(at - now)))
    }
}

fn waiting_text(what: &WaitingFor, now: Stamp) -> String {
    let until = |what: &str, until: Stamp| {
        format!("for the {what} until {}, {} left", until.minute(), time::span(until - now))
    };
    match what {
        WaitingFor::User(queued) => format!("for your \"{}\"", clean::excerpt(&queued.text, 50)),
        WaitingFor::Background(work) => format!("for background work: {}", clean::excerpt(work, 40)),
        WaitingFor::UsageLimit(at) => until("usage limit", *at),
        WaitingFor::Calls(at) => until("limit of calls", *at),
        WaitingFor::Service(at) => until("service", *at),
    }
}

fn iterations(count: u64, limit: u64) -> String {
    match limit {
        0 => format!("{count} (no limit)"),
        _ => format!("{count}/{limit}  {}", bar(count as f64 / limit as f64, 20)),
    }
}
