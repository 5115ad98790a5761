//! Each iteration of a run, and what it cost.

use super::summary::Tone;
use super::{OfIteration, ReportInput, ReviewSection};
use crate::core::event::agent_log::AgentLogEntry;
use crate::core::event::timeline::TimelineIteration;
use crate::core::event::{self, Check};
use crate::core::outcome::IterationOutcome;
use crate::core::text::clean;
use crate::core::time::Stamp;

#[derive(Clone, Debug, Default)]
pub struct Total {
    pub cost: Option<f64>,
    pub max_cost: Option<f64>,
    /// Of it, what no iteration has: attempts that were repeated.
    pub repeated_cost: f64,
    pub tokens: u64,
    /// Tokens by kind, as far as the ending told.
    pub kinds: Vec<(&'static str, u64)>,
}

#[derive(Clone, Debug, Default)]
pub struct IterationRow {
    pub number: u64,
    pub mode: String,
    pub outcome: &'static str,
    pub tone: Tone,
    pub ended_at: Stamp,
    pub seconds: f64,
    pub cost: Option<f64>,
    pub tokens: u64,
    /// Of this iteration and all before it.
    pub cost_so_far: f64,
    pub tokens_so_far: u64,
    pub tools: Option<u64>,
    pub edits: Option<u64>,
    pub message: String,
    pub error: String,
    pub rejected: String,
    pub warning: String,
    pub remarks: Vec<String>,
    pub checks: Vec<Check>,
    pub changed: OfIteration,
    /// False if no commit of this run is known at all.
    pub knows_changes: bool,
    pub agent_log: Vec<AgentLogEntry>,
}

/// Returns cost and tokens of the run: as its ending says, or else the sum of its iterations.
pub fn spent(facts: &ReportInput) -> (Option<f64>, u64) {
    let (cost, tokens) = facts.timeline.spent();
    let usage = facts.timeline.ended.as_ref().map(|(_, ended)| &ended.usage);
    let cost = usage.and_then(|usage| usage.cost_usd).or(cost);
    (cost, usage.map_or(0, |usage| usage.tokens()).max(tokens))
}

pub fn total(facts: &ReportInput) -> Total {
    let (cost, tokens) = spent(facts);
    let kinds = facts.timeline.ended.as_ref().map(|(_, ended)| {
        let usage = &ended.usage;
        [
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
            ("cache read", usage.cache_read_tokens),
            ("cache write", usage.cache_write_tokens),
        ]
    });
    let kinds = kinds.into_iter().flatten().filter(|(_, count)| *count > 0).collect();
    let repeated_cost =
        cost.zip(facts.timeline.spent().0).map_or(0.0, |(all, counted)| (all - counted).max(0.0));
    Total { cost, repeated_cost, max_cost: facts.timeline.limits.max_cost_usd, tokens, kinds }
}

pub fn rows(facts: &ReportInput, review: &ReviewSection) -> Vec<IterationRow> {
    let (mut cost_so_far, mut tokens_so_far) = (0.0, 0u64);
    let seconds = seconds(facts);
    let row = |(number, iteration): (&u64, &TimelineIteration)| {
        let own = &iteration.facts;
        cost_so_far += own.cost_usd.unwrap_or_default();
        tokens_so_far = tokens_so_far.saturating_add(own.tokens);
        let text = |text: &Option<String>| text.as_deref().map(event::text).unwrap_or_default();
        let rejected = text(&own.rejected);
        // The rejection and the breaker's warning have their own places.
        let warning = iteration.warning.as_deref().unwrap_or("\0");
        let is_told = |remark: &str| remark.starts_with("completion rejected") || remark.contains(warning);
        let remarks = own.remarks.iter().filter(|remark| !is_told(remark));
        IterationRow {
            number: *number,
            mode: clean::excerpt(&own.mode, 20),
            outcome: own.outcome.map_or("unknown", IterationOutcome::name),
            tone: tone(iteration),
            ended_at: iteration.ended_at,
            seconds: own.duration_seconds.or_else(|| seconds.get(number).copied()).unwrap_or_default(),
            cost: own.cost_usd,
            tokens: own.tokens,
            cost_so_far,
            tokens_so_far,
            tools: own.tools,
            edits: own.edits,
            message: text(&own.message),
            error: [text(&own.error), text(&own.how).replace("exit code 0", "")]
                .into_iter()
                .find(|text| !text.is_empty() && iteration.failed())
                .unwrap_or_default(),
            rejected,
            warning: text(&iteration.warning),
            remarks: remarks.map(|remark| clean::excerpt(remark, 300)).collect(),
            checks: iteration.checks.iter().map(shown).collect(),
            changed: review.by_iteration.get(number).cloned().unwrap_or_default(),
            knows_changes: review.commits.is_ok(),
            agent_log: facts.agent_logs.get(number).cloned().unwrap_or_default(),
        }
    };
    facts.timeline.iterations.iter().map(row).collect()
}

/// Returns a check with its output as a screen shows it.
fn shown(check: &Check) -> Check {
    let command = clean::excerpt(&check.command, 300);
    Check { command, tail: event::tail(&clean::output(&check.tail)), ..check.clone() }
}

/// Returns the time of each iteration's spans, in one pass.
fn seconds(facts: &ReportInput) -> std::collections::HashMap<u64, f64> {
    let mut seconds = std::collections::HashMap::new();
    for span in &facts.timeline.spans {
        if let Some(number) = span.iteration {
            *seconds.entry(number).or_default() += Stamp(span.ms()).seconds();
        }
    }
    seconds
}

fn tone(iteration: &TimelineIteration) -> Tone {
    match iteration.facts.outcome {
        _ if iteration.failed() => Tone::Bad,
        Some(IterationOutcome::Run(outcome)) => Tone::of(outcome),
        Some(IterationOutcome::Rejected | IterationOutcome::Denied) => Tone::Warn,
        _ if iteration.warning.is_some() => Tone::Warn,
        _ => Tone::Calm,
    }
}
