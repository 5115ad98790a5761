//! A readable account of a run: what the agent said and did, and what Ralph noted beside it.

use crate::core::event::agent_log::{AgentLogEntry, EntryKind};
use crate::core::event::{
    BreakerAction, BreakerStep, Check, Event, EventKind, Findings, GuidanceChange, GuidanceStep,
    IterationEnded, Limits, Permission, PermissionDecision, RunEnded, RunStarted, WaitEvent,
};
use crate::core::message;
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use crate::store::zone;
use crate::view::paint::Paint;

/// What the agent was told is shown with so many lines; `--raw` has the rest.
const MAX_TOLD_LINES: usize = 6;
/// The last lines of what a failed check printed.
const MAX_CHECK_LINES: usize = 5;
/// The time and a space.
const MARGIN: &str = "         ";
const RULE_COLUMNS: usize = 72;

/// Returns the heading of a run.
pub fn title(run_id: &str, started: &RunStarted, at: Stamp, paint: Paint) -> String {
    let agent = started.agent.as_deref().map(|agent| format!(" · {}", clean::excerpt(agent, 40)));
    let place = clean::visible(&started.project);
    let line = format!(
        "Ralph run {} · {}{} · {place}",
        message::short_id(run_id),
        zone::minute(at),
        agent.unwrap_or_default()
    );
    format!("{}\n{MARGIN}{}\n", paint.bold(line), clean::excerpt(&started.task, 200))
}

/// Returns the heading of an iteration.
pub fn heading(iteration: u64, mode: &str, is_again: bool, at: Stamp, paint: Paint) -> String {
    let mode = if mode.is_empty() { String::new() } else { format!(" · {}", clean::excerpt(mode, 20)) };
    let again = if is_again { " · again" } else { "" };
    let line = format!("── iteration {iteration}{mode}{again} · {} ", zone::minute(at));
    let rule = "─".repeat(RULE_COLUMNS.saturating_sub(clean::columns(&line)));
    format!("\n{}\n", paint.bold(format!("{line}{rule}")))
}

pub fn entry(entry: &AgentLogEntry, paint: Paint) -> String {
    let text = &entry.text;
    match entry.kind {
        EntryKind::Said => lines(entry.at, text, |line| line.to_owned()),
        EntryKind::Tool => lines(entry.at, text, |line| paint.dim(format!("  > {line}"))),
        EntryKind::ToolFailed => lines(entry.at, text, |line| paint.red(format!("  x {line}"))),
        EntryKind::Reported => lines(entry.at, text, |line| paint.yellow(format!("  ! {line}"))),
        EntryKind::Finished => lines(entry.at, text, |line| paint.dim(format!("  - {line}"))),
        EntryKind::Told => {
            let all: Vec<&str> = text.lines().collect();
            let mut shown = all[..all.len().min(MAX_TOLD_LINES)].join("\n");
            if let more @ 1.. = all.len().saturating_sub(MAX_TOLD_LINES) {
                shown.push_str(&format!("\n… {more} more lines"));
            }
            lines(entry.at, &shown, |line| paint.dim(format!("  < {line}")))
        }
    }
}

/// Returns the lines of a text, the first one behind the time.
fn lines(at: Option<Stamp>, text: &str, paint: impl Fn(&str) -> String) -> String {
    let mut margin = at.map_or_else(|| MARGIN.to_owned(), |at| format!("{} ", zone::clock(at)));
    let mut out = String::new();
    for line in text.lines() {
        out.push_str(format!("{margin}{}", paint(line)).trim_end());
        out.push('\n');
        MARGIN.clone_into(&mut margin);
    }
    out
}

/// Returns what an event says; nothing for one that is shown otherwise or not known.
pub fn event(event: &Event, paint: Paint) -> Option<String> {
    let (words, is_bad) = match &event.what {
        EventKind::Started(started) => (started_words(started), false),
        EventKind::IterationStarted(_) | EventKind::Unknown => return None,
        EventKind::IterationEnded(facts) => {
            (iteration_words(facts), facts.error.is_some() || facts.rejected.is_some())
        }
        EventKind::Check(check) => (check_words(check), !check.passed),
        EventKind::Guidance(change) => (guidance_words(change), false),
        EventKind::Findings(findings) => (findings_words(findings), false),
        EventKind::Breaker(step) => (breaker_words(step), step.step != BreakerAction::Reset),
        EventKind::Waiting(wait) => (wait_words(wait), false),
        EventKind::Permission(permission) => {
            (permission_words(permission), permission.decision == PermissionDecision::Denied)
        }
        EventKind::Paused(paused) => match paused.seconds {
            Some(seconds) => {
                (format!("paused {}, not counted", time::span(Stamp::from_seconds(seconds).0)), false)
            }
            None => (format!("paused: {}", paused.reason), false),
        },
        EventKind::Limits(limits) => (format!("limits: {}", limit_words(limits)), false),
        EventKind::Warning(warning) => (format!("warning: {}", warning.message), true),
        EventKind::Answered(answered) => {
            let from = if answered.from.is_empty() { "you" } else { answered.from.as_str() };
            (format!("answered ({from}): {} → {}", answered.question, answered.answer), false)
        }
        EventKind::Ended(ended) => (ended_words(ended), false),
    };
    let words = clean::block(&words);
    Some(lines(Some(event.timestamp), &words, |line| match is_bad {
        true => paint.yellow(format!("  = {line}")),
        false => paint.bold(format!("  = {line}")),
    }))
}

fn started_words(started: &RunStarted) -> String {
    let verb = if started.continued {
        format!("continued at iteration {}", started.iteration)
    } else {
        "started".to_owned()
    };
    format!("{verb}: {}", limit_words(&started.limits))
}

fn limit_words(limits: &Limits) -> String {
    let iterations = (limits.max_iterations > 0).then(|| message::iterations(limits.max_iterations));
    let runtime = Stamp::from_seconds(limits.max_runtime_seconds).0;
    let runtime = (runtime > 0).then(|| format!("{} runtime", time::span(runtime)));
    let cost = limits.max_cost_usd.map(|cost| format!("${cost:.2}"));
    let words: Vec<String> = [iterations, runtime, cost].into_iter().flatten().collect();
    if words.is_empty() { "no limits".to_owned() } else { format!("at most {}", words.join(", ")) }
}

fn iteration_words(facts: &IterationEnded) -> String {
    let some = |count: Option<u64>, one: &str, many: &str| match count {
        None | Some(0) => None,
        Some(1) => Some(format!("1 {one}")),
        Some(count) => Some(format!("{count} {many}")),
    };
    let took = facts.duration_seconds.map(|seconds| time::span(Stamp::from_seconds(seconds).0));
    let commit = facts.commit.as_ref().map(|commit| format!("commit {}", clean::excerpt(commit, 40)));
    let tokens = (facts.tokens > 0).then(|| format!("{} tokens", message::tokens(facts.tokens)));
    let cost = facts.cost_usd.map(|cost| format!("${cost:.2}"));
    let check = (!facts.check.is_empty()).then(|| format!("check {}", clean::line(&facts.check)));
    let outcome = facts.outcome.map_or("ended", |outcome| outcome.name()).to_owned();
    let parts: Vec<String> = [
        Some(outcome),
        took,
        some(facts.tools, "tool", "tools"),
        some(facts.edits, "edit", "edits"),
        commit,
        tokens,
        cost,
        check,
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut words = format!("iteration {}: {}", facts.iteration, parts.join(" · "));
    let rejected = facts.rejected.as_ref().map(|why| format!("completion rejected: {}", clean::line(why)));
    let denied =
        (!facts.denied_tools.is_empty()).then(|| format!("denied: {}", facts.denied_tools.join(", ")));
    let error = facts.error.as_ref().map(|error| clean::line(error));
    for part in [error, denied, rejected].into_iter().flatten() {
        words.push_str(&format!("\n{part}"));
    }
    words
}

fn check_words(check: &Check) -> String {
    let took = time::span(Stamp::from_seconds(check.seconds).0);
    let command = clean::excerpt(&check.command, 200);
    if check.passed {
        return format!("check passed: {command} · {took}");
    }
    let code = check.exit_code.map(|code| format!(" (exit code {code})")).unwrap_or_default();
    let tail: Vec<&str> = check.tail.lines().collect();
    let tail = tail[tail.len().saturating_sub(MAX_CHECK_LINES)..].iter();
    let tail: String = tail.map(|line| format!("\n  {}", clean::excerpt(line, 200))).collect();
    format!("check failed{code}: {command} · {took}{tail}")
}

fn guidance_words(change: &GuidanceChange) -> String {
    let how = match change.change {
        GuidanceStep::Given => "given",
        GuidanceStep::Delivered => "delivered",
        GuidanceStep::Removed => "removed",
    };
    let texts: String =
        change.texts.iter().map(|text| format!("\n  {}", clean::excerpt(text, 200))).collect();
    format!("guidance {how} ({}):{texts}", clean::excerpt(&change.list, 20))
}

fn findings_words(findings: &Findings) -> String {
    let new: String =
        findings.new.iter().map(|finding| format!("\n  {}", clean::excerpt(finding, 200))).collect();
    format!("constraints: {}, {} new, {} resolved{new}", findings.count, findings.new.len(), findings.gone)
}

fn breaker_words(step: &BreakerStep) -> String {
    let what = match step.step {
        BreakerAction::Warned => "warning",
        BreakerAction::Tripped => "tripped",
        BreakerAction::Reset => "reset",
    };
    format!("circuit breaker {what}: {}", clean::line(&step.reason))
}

fn wait_words(wait: &WaitEvent) -> String {
    let reason =
        if wait.reason.is_empty() { String::new() } else { format!(": {}", clean::line(&wait.reason)) };
    let until = wait.until.map(|until| format!(" until {}", zone::minute(until))).unwrap_or_default();
    let error = wait.error.as_ref().map(|error| format!("\n{}", clean::line(error))).unwrap_or_default();
    format!("waiting ({}){reason}{until}{error}", clean::excerpt(&wait.what, 40))
}

fn permission_words(permission: &Permission) -> String {
    let Permission { call, decision, rule, reason, denials } = permission;
    let call = clean::line(call);
    match decision {
        PermissionDecision::Allowed => format!("allowed by your rule {}: {call}", clean::line(rule)),
        PermissionDecision::Answered => format!("you answered the prompt for {call}"),
        PermissionDecision::Denied => {
            let times = if *denials > 1 { format!(", {denials} times") } else { String::new() };
            format!("denied{times}: {call}: {}", clean::line(reason))
        }
    }
}

fn ended_words(ended: &RunEnded) -> String {
    let outcome = ended.outcome.map_or("unknown", |outcome| outcome.name());
    let runtime = time::span(Stamp::from_seconds(ended.runtime_seconds).0);
    let (reason, count) = (clean::line(&ended.reason), message::iterations(ended.iterations));
    format!("ended: {outcome}: {reason}\n{count} · runtime {runtime}")
}
