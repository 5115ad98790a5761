//! The selected run: its position, what would end it next, what its agent does, its checks, guidance and constraints.

use super::runs::{Breaker, ProjectView, RunView, Summary};
use super::theme::{Theme, Tone};
use super::{Monitor, strip, text};
use crate::core::circuit::condition::Counter;
use crate::core::decide::breaker;
use crate::core::decide::outlook;
use crate::core::event::timeline::Timeline;
use crate::core::guidance::Entry;
use crate::core::guidance::finding::Severity;
use crate::core::message;
use crate::core::record::Engine;
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use crate::view::paint::bar;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

const LABEL: usize = 12;
/// From here on what a run is held to is beside what it does.
const TWO_COLUMNS: usize = 104;
/// From so many rows on there is room for all of it.
const TALL: usize = 30;
const MAX_LISTED: usize = 8;

/// Lines of this width under titles.
struct Page {
    width: usize,
    theme: Theme,
    /// There is room for a line between two parts.
    is_airy: bool,
    lines: Vec<Line<'static>>,
}

impl Page {
    fn new(width: usize, height: usize, theme: Theme) -> Page {
        Page { width, theme, is_airy: height >= TALL, lines: Vec::new() }
    }

    fn title(&mut self, title: &str) {
        let rule = "─".repeat(self.width.saturating_sub(clean::columns(title) + 1));
        if self.is_airy && !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
        self.lines.push(Line::from(vec![
            Span::styled(title.to_owned(), self.theme.style(Tone::Strong)),
            Span::raw(" "),
            Span::styled(rule, self.theme.style(Tone::Dim)),
        ]));
    }

    /// Adds a text in at most so many rows.
    fn text(&mut self, text: &str, rows: usize, tone: Tone) {
        let lines = text::wrap(text, self.width, rows).into_iter();
        self.lines.extend(lines.map(|line| Line::styled(line, self.theme.style(tone))));
    }

    /// Adds a value behind its label; a long one continues below.
    fn row(&mut self, label: &str, value: &str, rows: usize, tone: Tone) {
        let values = text::wrap(value, self.width.saturating_sub(LABEL).max(8), rows);
        let labels = [label].into_iter().chain(std::iter::repeat(""));
        for (label, value) in labels.zip(values) {
            self.lines.push(Line::from(vec![
                Span::styled(format!("{label:<LABEL$}"), self.theme.style(Tone::Dim)),
                Span::styled(value, self.theme.style(tone)),
            ]));
        }
    }

    /// Adds a text with a remark behind it, on one line if both fit.
    fn item(&mut self, sign: (&str, Tone), text: &str, remark: &str) {
        let room = self.width.saturating_sub(clean::columns(sign.0) + 1);
        let remark = if remark.is_empty() { String::new() } else { text::fit(&format!("({remark})"), room) };
        let left = room.saturating_sub(clean::columns(&remark) + 1);
        let is_split = left < 16 && clean::columns(&text::line(text)) > left;
        let shown = text::fit(text, if is_split { room } else { left });
        let mut spans =
            vec![Span::styled(format!("{} ", sign.0), self.theme.style(sign.1)), Span::raw(shown)];
        let remark = Span::styled(format!(" {remark}"), self.theme.style(Tone::Dim));
        if is_split {
            self.lines.push(Line::from(std::mem::take(&mut spans)));
            spans.push(Span::raw(" "));
        }
        spans.push(remark);
        self.lines.push(Line::from(spans));
    }

    fn more(&mut self, count: usize) {
        if count > 0 {
            self.lines.push(Line::styled(format!("  {count} more"), self.theme.style(Tone::Dim)));
        }
    }
}

impl Monitor {
    pub(super) fn draw_detail(&mut self, frame: &mut Frame, area: Rect) {
        let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
        let Some(run) = self.selected() else { return };
        let (width, height) = (usize::from(inner.width), usize::from(inner.height));
        if width < TWO_COLUMNS {
            let mut page = Page::new(width, height, self.theme);
            self.fill_work(&mut page, run, height, if height >= TALL { 8 } else { 4 });
            self.fill_bounds(&mut page, run, height);
            return self.draw_scrolled(frame, inner, page.lines, self.detail_scroll);
        }
        let [left, _, right] =
            Layout::horizontal([Constraint::Fill(3), Constraint::Length(2), Constraint::Fill(2)])
                .areas(inner);
        let [mut work, mut bounds] = [left, right]
            .map(|area| Page::new(usize::from(area.width).saturating_sub(1), height, self.theme));
        self.fill_work(&mut work, run, height, height.saturating_sub(24).clamp(4, 24));
        self.fill_bounds(&mut bounds, run, height);
        // Both columns scroll together, as far as the longer one needs it.
        let longer = work.lines.len().max(bounds.lines.len());
        self.draw_scrolled(frame, left, work.lines, self.detail_scroll);
        self.draw_scrolled(frame, right, bounds.lines, self.detail_scroll);
        self.max_scroll = longer.saturating_sub(height);
    }

    /// Adds the run's position, what would end it, and what its agent does.
    fn fill_work(&self, page: &mut Page, run: &RunView, height: usize, activity_rows: usize) {
        let summary = run.summary(self.now);
        let is_tall = height >= TALL;
        page.text(&format!("{} {}{}", summary.sign, summary.state, self.since(run)), 2, summary.tone);
        page.text(&self.origin(run), 2, Tone::Dim);
        page.row("Task", &run.task, if is_tall { 4 } else { 2 }, Tone::Plain);
        page.row("Iteration", &iterations(&summary, page.width), 1, Tone::Plain);
        page.row("Runtime", &self.times(run, &summary), 1, Tone::Plain);
        if let Some(spent) = spent(run, &summary) {
            let label = if summary.cost_usd.is_some() { "Cost" } else { "Usage" };
            page.row(label, &spent, 1, Tone::Plain);
        }
        if let Some(quota) = run.shown.as_ref().and_then(|shown| shown.quota(self.now)) {
            page.row("Quota", &quota, 2, Tone::Plain);
        }
        self.fill_ends(page, run);
        if let Some(question) = &run.question {
            page.title("Question");
            page.text(question, 6, Tone::Warn);
            page.text("press a to answer", 1, Tone::Strong);
        }
        if let Some(timeline) = run.timeline.as_ref().filter(|timeline| !timeline.iterations.is_empty()) {
            page.title("Iterations");
            let rows = if is_tall { 3 } else { 1 };
            page.lines.extend(strip::lines(timeline, page.width, rows, self.theme));
        }
        if let Some(last) = run.timeline.as_ref().and_then(Timeline::last_iteration)
            && let Some(said) = &last.facts.message
        {
            page.title(&format!(
                "Last message · #{} · {}",
                last.facts.iteration,
                text::ago(last.ended_at, self.now)
            ));
            page.text(said, if is_tall { 8 } else { 2 }, Tone::Plain);
        }
        let activity = self.activity_lines(page.width, activity_rows);
        if !activity.is_empty() && run.is_alive() {
            page.title("Activity");
            page.lines.extend(activity);
        }
    }

    /// Returns how long the iteration takes already, or when the last one ended.
    fn since(&self, run: &RunView) -> String {
        let timeline = run.timeline.as_ref().filter(|_| run.is_alive());
        let Some(timeline) = timeline else { return String::new() };
        match (timeline.current, timeline.last_iteration()) {
            (Some((number, at)), _) => format!(" · iteration {number} for {}", time::span(self.now - at)),
            (None, Some(last)) => format!(" · last turn {}", text::ago(last.ended_at, self.now)),
            (None, None) => String::new(),
        }
    }

    /// Returns `run 1a2b3c4d · session 0f8c1a9e · started 3h ago`.
    fn origin(&self, run: &RunView) -> String {
        let engine = match run.engine {
            Engine::Runner => "ralph run".to_owned(),
            Engine::InSession => format!("session {}", message::short_id(&run.session_id)),
        };
        let started = text::ago(run.started_at, self.now);
        let mut parts =
            vec![format!("run {}", message::short_id(&run.run_id)), engine, format!("started {started}")];
        if self.project.is_none() {
            parts.push(run.project.display().to_string());
        }
        parts.join(" · ")
    }

    fn times(&self, run: &RunView, summary: &Summary) -> String {
        if let Some(shown) = &run.shown {
            return message::times(&shown.run, &shown.settings, self.now).replacen("Runtime: ", "", 1);
        }
        let wall = self.past_of(run).map(|past| past.wall_seconds);
        let wall =
            wall.or(run.timeline.as_ref().and_then(|timeline| Some(timeline.ended.as_ref()?.1.wall_seconds)));
        let (runtime, limit) = (summary.runtime_ms, summary.max_runtime_ms);
        match wall {
            Some(wall) => text::times(runtime, limit, Stamp::from_seconds(wall).0),
            None => text::runtime(runtime, limit),
        }
    }

    /// Fills in what would end the run next, or why it ended and what to do then.
    fn fill_ends(&self, page: &mut Page, run: &RunView) {
        if let Some(shown) = &run.shown {
            if shown.run.is_alive() {
                let ends = outlook::next_ends(&shown.run, &shown.settings);
                let is_near = ends.first().is_some_and(|end| end.starts_with("1 ") || end.starts_with("0 "));
                let ends = match ends.is_empty() {
                    true => "when the agent signals completion; no limit".to_owned(),
                    false => ends.join(" · "),
                };
                page.row("Ends", &ends, 3, if is_near { Tone::Warn } else { Tone::Plain });
            } else if let (Some(outcome), Some(reason)) = (shown.run.outcome, &shown.run.reason) {
                page.row("Ended", &format!("{}: {reason}", outcome.words()), 4, Tone::Plain);
            }
            if let Some(tasks) = &shown.tasks {
                page.row("Tasks", &shown.tasks_text(tasks), 2, Tone::Plain);
            }
            if let Some(error) = &shown.run.session.last_error {
                page.row("Last error", error, 2, Tone::Bad);
            }
            if let Some(next) = shown.next(self.now) {
                page.row("Next", &next, 3, Tone::Strong);
            }
            return;
        }
        let told = run.timeline.as_ref().and_then(|timeline| {
            let ended = &timeline.ended.as_ref()?.1;
            Some((ended.outcome?, ended.reason.as_str()))
        });
        let past = self.past_of(run).map(|past| (past.outcome, past.reason.as_str()));
        if let Some((outcome, reason)) = told.or(past) {
            page.row("Ended", &format!("{}: {reason}", outcome.words()), 4, Tone::Plain);
        }
    }

    /// Fills in what the run is held to: checks, guidance, constraints, the breaker.
    fn fill_bounds(&self, page: &mut Page, run: &RunView, height: usize) {
        page.title("Checks");
        let checks = self.checks(run);
        if checks.is_empty() {
            page.text("none: not verified (--verify adds a check)", 2, Tone::Dim);
        }
        for (passed, command, remark) in checks.iter().take(MAX_LISTED) {
            let sign = match passed {
                Some(true) => ("passed", Tone::Good),
                Some(false) => ("failed", Tone::Bad),
                None => ("not run", Tone::Dim),
            };
            page.item(sign, command, remark);
        }
        page.more(checks.len().saturating_sub(MAX_LISTED));
        let nothing = ProjectView::default();
        let project = self.projects.get(&run.project).unwrap_or(&nothing);
        self.fill_guidance(page, run, project);
        self.fill_constraints(page, run, project);
        self.fill_breaker(page, run, height);
        self.fill_notes(page, run, project);
    }

    /// Returns each check with its last result.
    fn checks(&self, run: &RunView) -> Vec<(Option<bool>, String, String)> {
        let took = |seconds: f64| time::span(Stamp::from_seconds(seconds).0);
        if let Some(shown) = &run.shown {
            let one = |command: &String| {
                let last = shown.run.checks.iter().find(|result| result.command == *command);
                let remark = last.map_or_else(String::new, |last| {
                    let code =
                        last.exit_code.filter(|_| !last.passed).map(|code| format!("exit code {code}, "));
                    format!(
                        "{}{}, took {}",
                        code.unwrap_or_default(),
                        text::ago(last.at, self.now),
                        took(last.seconds)
                    )
                });
                (last.map(|last| last.passed), command.clone(), remark)
            };
            return shown.settings.checks.iter().map(one).collect();
        }
        let told = run.timeline.iter().flat_map(|timeline| &timeline.checks).map(|check| {
            let remark = check.last.as_ref().map_or_else(String::new, |(_, last)| {
                format!("in iteration {}, took {}", last.iteration, took(last.seconds))
            });
            (check.passed(), check.command.clone(), remark)
        });
        let past = self.past_of(run).into_iter().flat_map(|past| &past.checks);
        told.chain(past.map(|check| (Some(check.passed), check.command.clone(), String::new()))).collect()
    }

    fn fill_guidance(&self, page: &mut Page, run: &RunView, project: &ProjectView) {
        page.title("Guidance");
        let mut items: Vec<(&str, &str, String)> = Vec::new();
        if run.is_alive() {
            let is_own =
                |entry: &&Entry| entry.session_id.as_ref().is_none_or(|session| *session == run.session_id);
            for (word, list) in
                [("encouraged", &project.guidance.encouraged), ("forbidden", &project.guidance.forbidden)]
            {
                for entry in list.iter().filter(is_own) {
                    let age =
                        entry.timestamp.map_or_else(|| "age unknown".into(), |at| text::ago(at, self.now));
                    let pinned = if entry.pinned { ", pinned" } else { "" };
                    let is_told = entry.delivered_to.contains(&run.session_id);
                    let told = if is_told { "delivered" } else { "not delivered yet" };
                    items.push((word, &entry.text, format!("{age}{pinned}, {told}")));
                }
            }
        } else {
            for entry in run.timeline.iter().flat_map(|timeline| &timeline.guidance) {
                let told = match entry.delivered {
                    Some((_, iteration)) => format!("delivered after iteration {iteration}"),
                    None => "not delivered".into(),
                };
                items.push((&entry.list, &entry.text, told));
            }
        }
        if items.is_empty() {
            page.text("none", 1, Tone::Dim);
        }
        for (word, text, remark) in items.iter().take(MAX_LISTED) {
            let sign = match *word {
                "forbidden" => ("−", Tone::Warn),
                "encouraged" => ("+", Tone::Good),
                _ => ("=", Tone::Plain),
            };
            page.item(sign, text, remark);
        }
        page.more(items.len().saturating_sub(MAX_LISTED));
    }

    fn fill_constraints(&self, page: &mut Page, run: &RunView, project: &ProjectView) {
        page.title("Constraints");
        if !run.is_alive() && run.timeline.is_some() {
            let count = run.timeline.as_ref().map_or(0, |timeline| timeline.findings.count);
            return page.text(&format!("{count} in the last scan"), 1, Tone::Dim);
        }
        let shown = || project.constraints.iter().filter(|finding| finding.severity > Severity::Low);
        if shown().next().is_none() {
            page.text("none", 1, Tone::Dim);
        }
        let allowed_ids = project.guidance.allowed_findings();
        for finding in shown().take(MAX_LISTED) {
            let tone = if finding.severity >= Severity::High { Tone::Warn } else { Tone::Plain };
            let remark = if allowed_ids.contains(&finding.id) { "allowed" } else { "" };
            let place = finding.place();
            let text = format!("{place}: {}", finding.description);
            page.item((finding.severity.name(), tone), text.trim_start_matches(": "), remark);
        }
        page.more(shown().count().saturating_sub(MAX_LISTED));
    }

    fn fill_breaker(&self, page: &mut Page, run: &RunView, height: usize) {
        page.title("Breaker");
        if let Breaker::Tripped(reason) = run.summary(self.now).breaker {
            page.text(&format!("tripped: {reason}"), 3, Tone::Bad);
        }
        let Some(shown) = &run.shown else {
            let last = run.timeline.as_ref().and_then(Timeline::last_iteration);
            let counters = last.map(|last| last.facts.counters).unwrap_or_default();
            let counts = counters.iter().filter(|(_, count)| *count > 0);
            let counts: Vec<String> =
                counts.map(|(condition, count)| format!("{} {count}", condition.label)).collect();
            let text = if counts.is_empty() {
                "no condition was counting at its end".into()
            } else {
                counts.join(" · ")
            };
            return page.text(&text, 2, Tone::Dim);
        };
        let rows = breaker::counters(&shown.run, &shown.settings);
        // A screen without much room shows those that count.
        let wanted = |counter: &&Counter| height >= TALL || counter.count > 0;
        let mut rows = rows.iter().filter(wanted).peekable();
        if rows.peek().is_none() {
            page.text("ok: no condition is counting", 1, Tone::Dim);
        }
        for &Counter { label, count, limit, .. } in rows {
            let tone = match limit.saturating_sub(count) {
                0 => Tone::Bad,
                1 if count > 0 => Tone::Warn,
                _ if count == 0 => Tone::Dim,
                _ => Tone::Plain,
            };
            let cells = usize::try_from(limit).unwrap_or(10).min(10);
            let bar = bar(count as f64 / limit as f64, cells);
            // Not cut by `fit`, which would fold the column.
            let text = format!("{label:<16}{:>5}  {bar}", format!("{count}/{limit}"));
            page.lines.push(Line::styled(text, page.theme.style(tone)));
        }
    }

    fn fill_notes(&self, page: &mut Page, run: &RunView, project: &ProjectView) {
        let mut notes: Vec<String> = run.fault.iter().cloned().collect();
        if let Some(timeline) = &run.timeline {
            if timeline.is_newer {
                notes.push(
                    "a newer version of Ralph wrote these events; upgrade Ralph to see all of them".into(),
                );
            }
            if timeline.unknown > 0 {
                notes.push(format!(
                    "{} of a kind unknown to this version",
                    crate::view::paint::plural(
                        usize::try_from(timeline.unknown).unwrap_or(usize::MAX),
                        "event"
                    )
                ));
            }
        }
        if run.shown.is_some() {
            notes.extend(project.notes.iter().cloned());
        }
        if run.is_read && run.timeline.is_none() && run.fault.is_none() {
            notes.push(
                "this run has no events: an older version of Ralph wrote it, or they were removed".into(),
            );
        }
        if notes.is_empty() {
            return;
        }
        page.title("Notes");
        notes.iter().take(MAX_LISTED).for_each(|note| page.text(note, 3, Tone::Warn));
    }
}

/// Returns `12/50 ██████░░░░`.
fn iterations(summary: &Summary, width: usize) -> String {
    match summary.max_iterations {
        0 => format!("{} (no limit)", summary.iteration),
        limit => {
            let cells = width.saturating_sub(LABEL + 10).clamp(5, 30);
            format!("{}/{limit} {}", summary.iteration, bar(summary.iteration as f64 / limit as f64, cells))
        }
    }
}

fn spent(run: &RunView, summary: &Summary) -> Option<String> {
    let limit = run.shown.as_ref().and_then(|shown| shown.settings.max_cost_usd);
    let limit = limit.or(run.timeline.as_ref().and_then(|timeline| timeline.limits.max_cost_usd));
    let cost = summary.cost_usd.map(|cost| match limit {
        Some(limit) => format!("${cost:.2} of ${limit:.2}"),
        None => format!("${cost:.2}"),
    });
    let tokens = (summary.tokens > 0).then(|| format!("{} tokens", message::tokens(summary.tokens)));
    let parts: Vec<String> = cost.into_iter().chain(tokens).collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}
