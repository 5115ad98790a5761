//! The status of a project, for people at 80 columns and for scripts.

mod json;

use super::activity::Activity;
use super::guidance;
use super::paint::{Paint, bar};
use crate::core::decide::turn::Tasks;
use crate::core::decide::{figures, limits, outlook};
use crate::core::guidance::Guidance;
use crate::core::guidance::finding::{Finding, Severity};
use crate::core::message;
use crate::core::outcome::Outcome;
use crate::core::record::{ArmedLoop, ClientStatus, Engine, LoopState};
use crate::core::settings::{QuotaSettings, Settings};
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug)]
pub struct StatusView {
    pub project: PathBuf,
    pub now: Stamp,
    pub loops: Vec<LoopView>,
    pub guidance: Guidance,
    pub constraints: Value,
    pub notes: Vec<String>,
}

#[derive(Debug)]
pub struct LoopView {
    pub session_id: String,
    /// It belongs to the session that asks.
    pub own: bool,
    pub run: ArmedLoop,
    pub settings: Settings,
    /// Its tasks as they are now.
    pub tasks: Option<Tasks>,
    /// What its client or its runner's process shows.
    pub client: ClientStatus,
    /// The command that opens its session, if that runs in the background.
    pub attach: Option<String>,
    /// The question with which it ended waits for an answer.
    pub open_question: bool,
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
/// How many entries of a guidance list are shown.
const MAX_GUIDANCE: usize = 10;
/// The columns that the text of an entry gets before its notes move to the next row.
const MIN_TEXT: usize = 24;

impl StatusView {
    /// Returns the status of a project that cannot be read, with the reason.
    pub fn unreadable(project: PathBuf, why: String, now: Stamp) -> StatusView {
        let (guidance, constraints) = (Guidance::default(), json!([]));
        StatusView { project, now, loops: Vec::new(), guidance, constraints, notes: vec![why] }
    }

    pub fn human(&self, paint: Paint) -> String {
        let title = clean::excerpt(&format!("Ralph · {}", self.project.display()), WIDTH);
        let mut out = format!("{}\n", paint.bold(title));
        if self.loops.is_empty() {
            out.push_str("\nNo loop in this project. Start one in Claude Code: /ralph:start TASK\n");
        }
        let (full, brief): (Vec<_>, Vec<_>) = self.loops.iter().partition(|shown| self.is_full(shown));
        for shown in full {
            out.push_str(&format!(
                "\n{}\n{}",
                shown.headline(self.now, paint),
                table(&shown.rows(self.now, paint), paint)
            ));
        }
        if !brief.is_empty() {
            out.push_str(&format!("\n{}", lines(&brief, self.now, paint)));
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

    /// Returns whether a loop is shown in full: this session's own, and those that have not ended. If there is neither,
    /// the one that ended last.
    fn is_full(&self, shown: &LoopView) -> bool {
        let is_current = |shown: &LoopView| shown.own || shown.run.is_alive();
        is_current(shown)
            || self.loops.first().is_some_and(|first| !is_current(first) && std::ptr::eq(first, shown))
    }

    /// Returns a line for each loop: the project is another one than the user's current one.
    pub fn brief(&self, paint: Paint) -> String {
        let title = clean::excerpt(&format!("Ralph · {}", self.project.display()), WIDTH);
        let notes: String = self.notes.iter().map(|note| clean::excerpt(note, WIDTH) + "\n").collect();
        let loops: Vec<&LoopView> = self.loops.iter().collect();
        format!("{}\n{}{notes}", paint.bold(title), lines(&loops, self.now, paint))
    }

    fn guidance_rows(&self, paint: Paint) -> Vec<(&'static str, String)> {
        let mut rows = Vec::new();
        for (title, list) in
            [("Encouraged", &self.guidance.encouraged), ("Forbidden", &self.guidance.forbidden)]
        {
            let mut label = title;
            for entry in list.iter().take(MAX_GUIDANCE) {
                let tail = format!("({})", clean::excerpt(&guidance::notes(entry, self.now), VALUE - 4));
                let left = VALUE.saturating_sub(clean::columns(&tail) + 1);
                if left >= MIN_TEXT || clean::columns(&entry.text) <= left {
                    let text = clean::excerpt(&entry.text, left);
                    rows.push((label, format!("{text} {}", paint.dim(tail))));
                } else {
                    rows.push((label, clean::excerpt(&entry.text, VALUE)));
                    rows.push(("", format!("  {}", paint.dim(tail))));
                }
                label = "";
            }
            if let more @ 1.. = list.len().saturating_sub(MAX_GUIDANCE) {
                rows.push(("", paint.dim(format!("{more} more: `ralph-guidance list`"))));
            }
        }
        rows
    }

    fn constraint_rows(&self, paint: Paint) -> Vec<(&'static str, String)> {
        let findings: Vec<Finding> = serde_json::from_value(self.constraints.clone()).unwrap_or_default();
        let shown: Vec<_> = findings.iter().filter(|finding| finding.severity > Severity::Low).collect();
        let allowed_ids = self.guidance.allowed_findings();
        let row = |finding: &&Finding| {
            let allowed = if allowed_ids.contains(&finding.id) { ", allowed" } else { "" };
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
}

fn lines(loops: &[&LoopView], now: Stamp, paint: Paint) -> String {
    loops.iter().map(|shown| shown.line(now, paint) + "\n").collect()
}

/// Formats rows of a label and a value; a longer value continues below.
fn table(rows: &[(&str, String)], paint: Paint) -> String {
    let mut out = String::new();
    for (label, value) in rows {
        out.push_str(&format!("  {} {value}\n", paint.dim(format!("{label:<LABEL$}"))));
    }
    out
}

impl LoopView {
    fn activity(&self, now: Stamp) -> Activity<'_> {
        Activity::of(&self.run, &self.client, now)
    }

    /// Returns what the loop is doing, behind its sign, within so many columns.
    fn state(&self, now: Stamp, width: usize, paint: Paint) -> String {
        let activity = self.activity(now);
        let line = clean::excerpt(&activity.line(now), width - 2);
        match activity {
            Activity::Working | Activity::Pausing => paint.green(format!("● {line}")),
            Activity::Waiting(_) | Activity::Asking(_) | Activity::Idle(_) => {
                paint.yellow(format!("○ {line}"))
            }
            Activity::Paused(_) => paint.yellow(format!("◐ {line}")),
            Activity::ClientClosed | Activity::Orphaned(_) => paint.yellow(format!("◌ {line}")),
            Activity::Ended(_) => format!("{} {line}", paint.dim("■")),
        }
    }

    fn headline(&self, now: Stamp, paint: Paint) -> String {
        let own = if self.own { " · this session" } else { "" };
        self.state(now, WIDTH - clean::columns(own), paint) + &paint.dim(own)
    }

    /// Returns the loop in one line: `■ ended: complete · 12 iterations · 3h ago · run 1a2b3c4d · TASK`.
    fn line(&self, now: Stamp, paint: Paint) -> String {
        let run = &self.run;
        let ago = time::span(now - run.ended_at.unwrap_or(run.last_seen()));
        let (iterations, id) = (message::iterations(run.iteration), message::short_id(&run.run_id));
        let rest = format!("· {iterations} · {ago} ago · run {id} · {}", clean::line(&run.task));
        let [state, plain] = [paint, Paint::new(false)].map(|paint| self.state(now, WIDTH / 2, paint));
        format!("{state} {}", clean::excerpt(&rest, WIDTH - 1 - clean::columns(&plain)))
    }

    fn rows(&self, now: Stamp, paint: Paint) -> Vec<(&'static str, String)> {
        let LoopView { run, settings, .. } = self;
        let fit = |text: &str| clean::excerpt(text, VALUE);
        let mut rows = vec![("Task", fit(&run.task))];
        if !self.own {
            rows.push(("Session", fit(&self.session_id)));
        }
        rows.extend(self.attach.as_ref().filter(|_| !self.own).map(|attach| ("Attach", fit(attach))));
        if let (Some(outcome), Some(reason)) = (run.outcome, &run.reason) {
            let reason = clean::excerpt(&format!("{}: {reason}", outcome.words()), 3 * VALUE);
            rows.extend(labelled("Reason", &reason));
        }
        if let Some(next) = self.next(now) {
            rows.extend(labelled("Next", &next));
        }
        rows.extend(self.next_ends().map(|ends| ("Ends", ends)));
        rows.push(("Iterations", iterations(run.iteration, settings.max_iterations)));
        rows.push(("Time", message::times(run, settings, now)));
        rows.extend(self.limits(paint).map(|limits| ("Limits", limits)));
        rows.extend(self.tasks.as_ref().map(|tasks| ("Tasks", fit(&self.tasks_text(tasks)))));
        rows.extend(message::checks(run, settings).iter().map(|check| ("Check", fit(check))));
        rows.extend(
            message::listed(&settings.allowed_tools, VALUE).into_iter().map(|rule| ("Allowed", rule)),
        );
        rows.push(("Circuit", self.circuit(paint)));
        rows.extend(self.stuck().map(|stuck| ("Stuck", stuck)));
        if let Some(reported) = self.reported() {
            rows.extend(labelled("Reported", &reported));
        }
        rows.extend(self.recommendation().map(|text| ("Recommends", fit(text))));
        if let Some(length) = run.output_characters {
            let characters = if length == 1 { "character" } else { "characters" };
            rows.push(("Output", format!("{length} {characters} in the last message")));
        }
        rows.extend(self.calls.as_ref().map(|calls| ("Calls", calls.text(now))));
        rows.extend(self.usage().map(|usage| ("Usage", usage)));
        if let Some(quota) = self.quota(now) {
            rows.extend(labelled("Quota", &quota));
        }
        if let Some(error) = &run.session.last_error
            && !matches!(self.activity(now), Activity::Idle(_))
        {
            let width = if run.engine == Engine::Runner { 200 } else { VALUE };
            rows.push(("Last error", clean::excerpt(error, width)));
        }
        let (label, at) = message::newest(run);
        let (ago, id) = (time::span(now - at), message::short_id(&run.run_id));
        rows.push((label, format!("{ago} ago · run {id}")));
        rows
    }

    /// Returns what will end the loop next: the nearest ends that fit into a row.
    fn next_ends(&self) -> Option<String> {
        let fitting = |row: String, next: String| {
            let longer = format!("{row} · {next}");
            if clean::columns(&longer) <= VALUE { longer } else { row }
        };
        outlook::next_ends(&self.run, &self.settings).into_iter().reduce(fitting)
    }

    /// Returns what the user can do for the loop to continue.
    pub(super) fn next(&self, now: Stamp) -> Option<String> {
        let resume = message::resume_command(&self.run);
        Some(match self.activity(now) {
            Activity::Waiting(what) if what.is_dialog() => "answer it in Claude Code".into(),
            Activity::Working | Activity::Waiting(_) => return None,
            Activity::Asking(_) => match &self.attach {
                Some(attach) => format!("{attach}, then answer it"),
                None => "answer it in Claude Code".into(),
            },
            Activity::Idle(_) => {
                let open = self.attach.as_ref().map_or_else(String::new, |attach| format!("{attach}, then "));
                format!("{open}send any prompt; the loop continues at the end of its turn")
            }
            Activity::Pausing => "`ralph pause --resume` cancels the pause".into(),
            Activity::Paused(_) if self.run.engine == Engine::Runner => {
                "`ralph pause --resume`, or `ralph stop`".into()
            }
            Activity::Paused(_) if self.own => format!("{resume}, or /ralph:stop"),
            Activity::Paused(_) => format!("{resume} in its session"),
            Activity::ClientClosed => {
                format!("claude --resume {}, then any prompt", clean::line(&self.session_id))
            }
            Activity::Orphaned(_) => resume.into(),
            Activity::Ended(Some(Outcome::Decide | Outcome::Blocked))
                if !self.open_question && self.run.session.flags_to_allow.is_none() =>
            {
                resume.into()
            }
            Activity::Ended(outcome) => return message::next_step(&self.run, outcome?),
        })
    }

    /// Returns whether the client is there, as far as that is known.
    fn client_word(&self) -> &'static str {
        let run = &self.run;
        let is_hooked = run.engine == Engine::InSession && run.last_seen() > run.timing.armed_at;
        match (&self.client, run.session.closed_at) {
            (ClientStatus::Gone, _) if run.engine == Engine::InSession => "closed",
            (ClientStatus::Unknown, Some(_)) => "closed",
            (ClientStatus::Unknown, None) if run.is_alive() && is_hooked => "open",
            (ClientStatus::Unknown | ClientStatus::Gone, _) => "unknown",
            _ => "open",
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
        if settings.max_tokens > 0 {
            limits.push(format!("max {} tokens", message::tokens(settings.max_tokens)));
        }
        limits.extend(settings.max_context_percent.map(|level| format!("context {level}%")));
        limits.extend(settings.quota.land_at_percent.map(|level| format!("land at {level}%")));
        limits.extend(settings.quota.reserve_percent.map(|left| format!("reserve {left}%")));
        if self.run.state == LoopState::Running && limits::ending_soon(&self.run, settings) {
            limits.push(paint.yellow("ENDING SOON"));
        }
        (!limits.is_empty()).then(|| limits.join(" · "))
    }

    pub(super) fn tasks_text(&self, tasks: &Tasks) -> String {
        let (file, form) = (&self.run.tasks.file, self.run.tasks.form);
        match &tasks.unusable {
            Some(why) => why.clone(),
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
        let counts = counts.map(|one| format!(" · {} {}/{}", one.label, one.count, one.limit));
        clean::excerpt(&format!("ok{}", counts.collect::<String>()), VALUE)
    }

    /// Returns how many iterations of a runner went by without a commit, or outside git without a changed file. In a
    /// session the breaker counts them.
    fn stuck(&self) -> Option<String> {
        let (count, max) = (self.run.stuck_count, self.settings.max_stuck);
        let shown = self.run.engine == Engine::Runner && count > 0;
        let what = if self.run.circuit.baseline.head.is_some() { "a commit" } else { "a changed file" };
        shown.then(|| format!("{} iterations in a row without {what}", message::of(count, max)))
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
            text.push_str(&format!(" · context {} tokens", message::tokens(usage.context_tokens)));
        }
        if let Some(level) = usage.context_percent {
            let level = figures::percent(level);
            let is_shown = usage.context_tokens > 0;
            text.push_str(&if is_shown { format!(" ({level})") } else { format!(" · context {level}") });
        }
        if let Some(cost) = usage.cost_usd {
            let source = usage.cost_source.map(|source| format!(" ({})", source.words()));
            text.push_str(&format!(" · ${cost:.2}{}", source.unwrap_or_default()));
        }
        (usage.tokens() > 0 || usage.cost_usd.is_some()).then_some(text)
    }

    /// Returns the level of the plan; that it is unknown, if the loop acts by it.
    pub(super) fn quota(&self, now: Stamp) -> Option<String> {
        let QuotaSettings { land_at_percent, reserve_percent, .. } = self.settings.quota;
        let is_limited = land_at_percent.is_some() || reserve_percent.is_some();
        let unknown = || (is_limited && self.run.is_alive()).then(|| "unknown".to_owned());
        self.run.quota.line(now).or_else(unknown)
    }
}

/// Returns a text of several lines as rows, the first one with a label.
fn labelled(label: &'static str, text: &str) -> impl Iterator<Item = (&'static str, String)> {
    [label].into_iter().chain(std::iter::repeat("")).zip(clean::wrap(text, VALUE))
}

impl Calls {
    fn text(&self, now: Stamp) -> String {
        let left = format!("{} of {} left this hour", self.remaining, self.per_hour);
        self.frees_at
            .map_or(left.clone(), |at| format!("{left} · the next frees up in {}", time::span(at - now)))
    }
}

fn iterations(count: u64, limit: u64) -> String {
    match limit {
        0 => format!("{count} (no limit)"),
        _ => format!("{count}/{limit}  {}", bar(count as f64 / limit as f64, 20)),
    }
}
