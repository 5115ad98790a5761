//! Each iteration, with its details on demand.

use super::timeline::clock;
use super::{none, state};
use crate::core::event;
use crate::core::event::agent_log::{AgentLogEntry, EntryKind};
use crate::core::message;
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use crate::view::report::escape::{html, html_with_code};
use crate::view::report::summary::Tone;
use crate::view::report::words::{count, dollars};
use crate::view::report::{IterationRow, Report};

/// A browser opens a page of so many in a moment.
pub const MAX_ITERATIONS: usize = 500;
const FILES_OF_ITERATION: usize = 12;

pub fn all(report: &Report) -> String {
    if report.iterations.is_empty() {
        return none(if report.has_events { "None has ended." } else { "Unknown: the run has no events." });
    }
    let shown = shown(report);
    let mut out = left_out(report);
    shown.iter().for_each(|row| out.push_str(&iteration(row)));
    out
}

/// Returns the iterations that the page shows one by one.
pub fn shown(report: &Report) -> &[IterationRow] {
    &report.iterations[report.iterations.len().saturating_sub(MAX_ITERATIONS)..]
}

/// Says that earlier ones are left out, if they are.
pub fn left_out(report: &Report) -> String {
    match report.iterations.len() {
        ..=MAX_ITERATIONS => String::new(),
        count => none(&format!("The last {MAX_ITERATIONS} of {count}; `ralph history RUN` lists all.")),
    }
}

fn iteration(row: &IterationRow) -> String {
    let brief = clean::excerpt(if row.error.is_empty() { &row.message } else { &row.error }, 160);
    let cost = match (row.cost, row.tokens) {
        (Some(cost), _) => dollars(cost),
        (None, 0) => String::new(),
        (None, tokens) => message::tokens(tokens),
    };
    let mut out = format!(
        "<details class=\"it\"><summary><span class=\"num\">{}</span>{}<span class=\"r\">{}</span><span class=\"r\">{cost}</span>\
         <span class=\"what\">{}</span></summary>\n<div class=\"body\">\n",
        row.number,
        state(row.tone, row.outcome),
        time::span(Stamp::from_seconds(row.seconds).0),
        html(&brief)
    );
    out.push_str(&format!("<p class=\"soft small\">{}</p>\n", html(&facts(row).join(" · "))));
    for (what, text) in [
        ("Failed", &row.error),
        ("Completion rejected", &row.rejected),
        ("The circuit breaker warned", &row.warning),
    ] {
        if !text.is_empty() {
            out.push_str(&format!(
                "<p><b>{what}:</b> <span class=\"q\">{}</span></p>\n",
                html_with_code(&clean::excerpt(text, 600))
            ));
        }
    }
    if !row.message.is_empty() {
        out.push_str(&format!("<h3>Last message</h3>\n<pre class=\"said\">{}</pre>\n", html(&row.message)));
    }
    out.push_str(&changes(row));
    for check in &row.checks {
        let (tone, how) = match (check.passed, check.exit_code) {
            (true, _) => (Tone::Good, "passed".to_owned()),
            (false, Some(code)) => (Tone::Bad, format!("failed (exit code {code})")),
            (false, None) => (Tone::Bad, "failed".to_owned()),
        };
        out.push_str(&format!(
            "<h3>Check</h3>\n<p>{} <code>{}</code></p>\n",
            state(tone, &how),
            html(&check.command)
        ));
        if !check.tail.trim().is_empty() {
            out.push_str(&format!("<pre>{}</pre>\n", html(&check.tail)));
        }
    }
    out.push_str(&log(&row.agent_log));
    out.push_str("</div></details>\n");
    out
}

fn facts(row: &IterationRow) -> Vec<String> {
    let mut facts = vec![format!("ended {}", row.ended_at.minute())];
    facts.extend((!row.mode.is_empty()).then(|| row.mode.clone()));
    facts.extend(row.tools.map(|tools| count(tools as usize, "tool call", "tool calls")));
    facts.extend(row.edits.map(|edits| count(edits as usize, "edit", "edits")));
    facts.extend((row.tokens > 0).then(|| format!("{} tokens", message::tokens(row.tokens))));
    facts.extend(row.remarks.iter().map(|remark| clean::excerpt(remark, 200)));
    facts
}

fn changes(row: &IterationRow) -> String {
    if row.changed.commits.is_empty() {
        let words = if row.knows_changes { "No commit." } else { "Unknown." };
        return format!("<h3>What changed</h3>\n<p class=\"none small\">{words}</p>\n");
    }
    let commits = row.changed.commits.iter().map(|(id, subject)| {
        format!("<li><code>{}</code> <span class=\"q\">{}</span></li>\n", html(id), html(subject))
    });
    let mut out =
        format!("<h3>What changed</h3>\n<ul class=\"plain small\">\n{}", commits.collect::<String>());
    for file in row.changed.files.iter().take(FILES_OF_ITERATION) {
        out.push_str(&format!(
            "<li><code>{}</code> <span class=\"plus\">+{}</span> <span class=\"minus\">−{}</span></li>\n",
            html(&clean::excerpt(&file.path, 160)),
            file.added,
            file.removed
        ));
    }
    let more = row.changed.files.len().saturating_sub(FILES_OF_ITERATION);
    if more > 0 {
        out.push_str(&format!("<li class=\"none\">and {more} more</li>\n"));
    }
    out + "</ul>\n"
}

fn log(entries: &[AgentLogEntry]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let one = |entry: &AgentLogEntry| {
        let (class, word) = match entry.kind {
            EntryKind::Said => ("", "agent"),
            EntryKind::Tool => ("tool", "tool"),
            EntryKind::ToolFailed => ("fail", "failed"),
            EntryKind::Told => ("", "input"),
            EntryKind::Reported => ("", "reported"),
            EntryKind::Finished => ("", "ended"),
        };
        let at = entry.at.map(clock).unwrap_or_default();
        format!(
            "<li class=\"{class}\"><span>{at}</span><span>{word}</span><div>{}</div></li>\n",
            html(&event::text(&entry.text))
        )
    };
    format!(
        "<details class=\"log\"><summary>end of the log</summary>\n<ol>\n{}</ol></details>\n",
        entries.iter().map(one).collect::<String>()
    )
}
