//! A report in Markdown, for a pull request or the summary of a CI step. Text of others is never markup in it.

use super::escape::{block, markdown_words, span};
use super::iterations::IterationRow;
use super::words::{count, dollars};
use super::{Report, strip};
use crate::core::message;
use crate::core::text::clean;
use crate::core::time::{self, Stamp};

/// A pull request has room for 65,536 characters: longer parts are cut.
const MAX_FILES: usize = 20;
const MAX_ITERATIONS: usize = 100;
const MAX_COMMITS: usize = 60;
const MAX_MESSAGE_COLUMNS: usize = 110;
const MAX_TASK_CHARS: usize = 600;

pub fn page(report: &Report) -> String {
    let mut out = format!("## Ralph: {}\n\n{}\n\n", report.outcome, markdown_words(&report.sentence));
    if !report.task.is_empty() {
        let task: String = report.task.chars().take(MAX_TASK_CHARS).collect();
        out.push_str(&block(&task));
        out.push('\n');
    }
    let names: Vec<&str> = report.figures.iter().map(|figure| figure.name).collect();
    let value = |figure: &super::Figure| match &figure.limit {
        Some(limit) => format!("{} of {limit}", figure.value),
        None => figure.value.clone(),
    };
    table(&mut out, &names, &[report.figures.iter().map(value).collect()]);
    report.notes.iter().for_each(|note| out.push_str(&format!("{note}\n\n")));
    out.push_str("### What needs you\n\n");
    for need in &report.needs {
        let command =
            need.command.as_ref().map_or_else(String::new, |command| format!(" → {}", span(command)));
        out.push_str(&format!("- {}{command}\n", markdown_words(&need.what)));
    }
    out.push_str(if report.needs.is_empty() { "Nothing.\n\n" } else { "\n" });
    evidence(&mut out, report);
    review(&mut out, report);
    timeline(&mut out, report);
    iterations(&mut out, report);
    out.push_str("### What next\n\n");
    report.steps.iter().for_each(|step| out.push_str(&format!("- {}: {}\n", step.what, span(&step.command))));
    out.push_str(&format!(
        "\nRun {}, {}, made {}.\n",
        span(&report.run_id),
        report.engine,
        report.made_at.minute()
    ));
    out
}

pub fn table(out: &mut String, head: &[&str], rows: &[Vec<String>]) {
    out.push_str(&format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len())));
    rows.iter().for_each(|row| out.push_str(&format!("| {} |\n", row.join(" | "))));
    out.push('\n');
}

fn evidence(out: &mut String, report: &Report) {
    out.push_str("### Evidence\n\n");
    if report.evidence.is_empty() {
        out.push_str("No check was set (`--verify`).\n\n");
    } else {
        let row = |check: &super::CheckRow| {
            let runs = check.runs.map_or_else(|| "unknown".into(), |runs| runs.to_string());
            vec![
                span(&check.command),
                check.last.clone(),
                check.first_failed.clone(),
                check.last_passed.clone(),
                runs,
            ]
        };
        let rows: Vec<_> = report.evidence.iter().map(row).collect();
        table(out, &["check", "newest result", "first failed", "last passed", "runs"], &rows);
    }
    if !report.rejected.is_empty() {
        out.push_str("Rejected claims of completion:\n\n");
        report
            .rejected
            .iter()
            .for_each(|(number, why)| out.push_str(&format!("- iteration {number}: {}\n", span(why))));
        out.push('\n');
    }
}

fn review(out: &mut String, report: &Report) {
    out.push_str("### Review first\n\n");
    let review = &report.review;
    match &review.commits {
        Err(why) => out.push_str(&format!("Commits and changed files are unknown: {}\n\n", span(why))),
        Ok(0) => out.push_str("No commit was made.\n\n"),
        Ok(_) => {
            let found = &review.weakened;
            for path in &found.deleted {
                out.push_str(&format!("- test file deleted: {}\n", span(path)));
            }
            for (path, line) in &found.skipped {
                out.push_str(&format!("- test skipped: {} in {}\n", span(line), span(path)));
            }
            for (path, fewer) in &found.fewer {
                out.push_str(&format!("- {}: {}\n", count(*fewer, "test fewer", "tests fewer"), span(path)));
            }
            out.push_str(if found.is_empty() {
                "No test was deleted or skipped, as far as the changed lines show.\n\n"
            } else {
                "\n"
            });
            let row = |file: &super::FileChurn| {
                vec![
                    span(&clean::excerpt(&file.path, 120)),
                    format!("+{} −{}", file.added, file.removed),
                    file.commits.to_string(),
                ]
            };
            let rows: Vec<_> = review.files.iter().take(MAX_FILES).map(row).collect();
            table(out, &["file", "lines", "commits"], &rows);
            let more = review.files.len().saturating_sub(MAX_FILES);
            if more > 0 {
                out.push_str(&format!("and {}\n\n", count(more, "file more", "files more")));
            }
        }
    }
    for (how, found) in &review.constraints {
        out.push_str(&format!("- constraint, {how}: {}\n", span(found)));
    }
    if !review.constraints.is_empty() {
        out.push('\n');
    }
    let commits = review
        .by_iteration
        .iter()
        .flat_map(|(number, own)| own.commits.iter().map(move |commit| (number, commit)));
    let commits: Vec<String> = commits
        .map(|(number, (id, subject))| format!("- iteration {number}: {id} {}\n", span(subject)))
        .collect();
    if !commits.is_empty() {
        out.push_str(&format!(
            "<details><summary>{}</summary>\n\n",
            count(commits.len(), "commit", "commits")
        ));
        commits.iter().take(MAX_COMMITS).for_each(|line| out.push_str(line));
        out.push_str("\n</details>\n\n");
    }
}

fn timeline(out: &mut String, report: &Report) {
    out.push_str("### Timeline\n\n");
    let spent = strip::spent(&report.timeline);
    if spent.is_empty() || !report.has_events {
        out.push_str("How the time was spent is unknown.\n\n");
    } else {
        let spent: Vec<String> =
            spent.iter().map(|(_, name, ms)| format!("{name} {}", time::span(*ms))).collect();
        out.push_str(&format!("{}.\n\n", spent.join(", ")));
    }
    let mut lines: Vec<String> = Vec::new();
    for entry in &report.timeline.guidance {
        let state = match entry.delivered {
            Some((_, after)) => format!("delivered after iteration {after}"),
            None => "not delivered".into(),
        };
        lines.push(format!(
            "- {}: {}, {state}\n",
            span(&clean::excerpt(&entry.list, 20)),
            span(&clean::excerpt(&entry.text, 200))
        ));
    }
    for (_, step) in &report.timeline.breaker {
        lines.push(format!(
            "- circuit breaker, iteration {}: {}\n",
            step.iteration,
            span(&clean::excerpt(&step.reason, 200))
        ));
    }
    if !lines.is_empty() {
        lines.truncate(MAX_COMMITS);
        out.push_str(&format!("{}\n", lines.concat()));
    }
    let total = &report.total;
    let cost = total.cost.map_or_else(|| "unknown".into(), dollars);
    let tokens = if total.tokens > 0 { message::tokens(total.tokens) } else { "unknown".into() };
    out.push_str(&format!("### Cost\n\nCost {cost}, tokens {tokens}.\n\n"));
}

fn iterations(out: &mut String, report: &Report) {
    out.push_str("### Iterations\n\n");
    if report.iterations.is_empty() {
        out.push_str(if report.has_events {
            "None has ended.\n\n"
        } else {
            "Unknown: the run has no events.\n\n"
        });
        return;
    }
    let row = |row: &IterationRow| {
        let check = row.checks.iter().find(|check| !check.passed).or(row.checks.last());
        let check = check.map_or("", |check| if check.passed { "passed" } else { "failed" });
        let text = if row.error.is_empty() { &row.message } else { &row.error };
        let commits: Vec<&str> = row.changed.commits.iter().map(|(id, _)| id.as_str()).take(3).collect();
        vec![
            row.number.to_string(),
            row.outcome.to_owned(),
            time::span(Stamp::from_seconds(row.seconds).0),
            row.cost.map_or_else(String::new, dollars),
            row.cost.map_or_else(String::new, |_| dollars(row.cost_so_far)),
            commits.join(" "),
            check.to_owned(),
            span(&clean::excerpt(text, MAX_MESSAGE_COLUMNS)),
        ]
    };
    let skipped = report.iterations.len().saturating_sub(MAX_ITERATIONS);
    if skipped > 0 {
        out.push_str(&format!("The last {MAX_ITERATIONS} of {}.\n\n", report.iterations.len()));
    }
    let rows: Vec<_> = report.iterations[skipped..].iter().map(row).collect();
    table(out, &["", "outcome", "time", "cost", "so far", "commits", "check", "last message"], &rows);
}
