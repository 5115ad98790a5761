//! The events of a turn, from the loop before it, the loop after it, what is known of the turn, and the decision.

use super::{
    BreakerAction, BreakerStep, Check, EventKind, IterationEnded, Limits, Paused, WaitEvent, tail, text,
};
use crate::core::decide::turn::{Checks, Turn};
use crate::core::decide::{Decision, Note};
use crate::core::message;
use crate::core::outcome::IterationOutcome;
use crate::core::record::{ArmedLoop, LoopState};
use crate::core::settings::Settings;
use crate::core::time::Stamp;

/// Returns what a turn in a session brought.
pub fn in_session(
    before: &ArmedLoop,
    after: &ArmedLoop,
    turn: &Turn,
    decision: &Decision,
    settings: &Settings,
) -> Vec<EventKind> {
    let note = decision.note();
    let mut events: Vec<EventKind> = checks(after.iteration, turn).map(EventKind::Check).collect();
    if after.iteration > before.iteration {
        events.push(EventKind::IterationEnded(Box::new(iteration(before, after, turn, note))));
    }
    events.extend(state_change_events(before, after, note, settings));
    events
}

/// Returns what follows from a turn beside the iteration itself: steps of the breaker, a wait, a pause, new limits.
pub fn state_change_events(
    before: &ArmedLoop,
    after: &ArmedLoop,
    note: Option<&Note>,
    settings: &Settings,
) -> Vec<EventKind> {
    let iteration = after.iteration;
    let breaker =
        |step, reason: &str| EventKind::Breaker(BreakerStep { step, iteration, reason: text(reason) });
    let mut events = Vec::new();
    if let Some(warning) = note.and_then(|note| note.warning.as_ref()) {
        events.push(breaker(BreakerAction::Warned, &warning.found));
    }
    if after.circuit.is_tripped() && !before.circuit.is_tripped() {
        events.push(breaker(BreakerAction::Tripped, after.circuit.reason.as_deref().unwrap_or_default()));
    }
    if let Some(paused_ms) = note.map(|note| note.paused_ms).filter(|ms| *ms > 0) {
        let seconds = Some(Stamp(paused_ms).seconds());
        events.push(EventKind::Paused(Paused { reason: "not at work".into(), seconds }));
    }
    if after.state == LoopState::Paused && before.state == LoopState::Running {
        let reason = after.reason.as_deref().map(text).unwrap_or_default();
        events.push(EventKind::Paused(Paused { reason, seconds: None }));
    }
    if let Some(waiting) = after.session.waiting.as_ref().filter(|_| after.is_alive())
        && before.session.waiting.as_ref().is_none_or(|earlier| earlier.what != waiting.what)
    {
        events.push(EventKind::Waiting(WaitEvent::of(&waiting.what)));
    }
    if note.is_some_and(|note| note.limits_changed) {
        events.push(EventKind::Limits(Limits::of(settings)));
    }
    events
}

/// Returns the checks that ran for the claim of this turn.
fn checks(iteration: u64, turn: &Turn) -> impl Iterator<Item = Check> {
    turn.check_results.iter().map(move |result| Check {
        iteration,
        command: text(&result.command),
        passed: result.passed,
        exit_code: result.exit_code,
        seconds: result.seconds,
        tail: match &turn.checks {
            Checks::Failed(failure) if !result.passed => tail(&failure.tail),
            _ => String::new(),
        },
    })
}

fn iteration(before: &ArmedLoop, after: &ArmedLoop, turn: &Turn, note: Option<&Note>) -> IterationEnded {
    let gained = turn.gained.as_ref();
    let rejected = note.and_then(|note| note.rejected.as_ref()).map(|rejection| text(&rejection.brief()));
    let outcome = match after.outcome {
        Some(outcome) => IterationOutcome::Run(outcome),
        None if rejected.is_some() => IterationOutcome::Rejected,
        None => IterationOutcome::Ok,
    };
    let (spent, cost) = (after.usage.tokens().saturating_sub(before.usage.tokens()), after.usage.cost_usd);
    let moved = before.circuit.baseline.committed(turn) == Some(true);
    let path = Some(&after.session.transcript.path).filter(|path| !path.is_empty());
    let work_tree = Some(&after.session.work_tree).filter(|path| !path.is_empty());
    IterationEnded {
        iteration: after.iteration,
        outcome: Some(outcome),
        attempts: 1,
        commit: turn.head.as_ref().filter(|_| moved).map(|head| head.chars().take(7).collect()),
        stuck_count: after.stuck_count,
        counters: after.circuit.counters,
        stories_complete: turn.tasks.as_ref().map_or(0, |tasks| tasks.passing),
        stories_total: turn.tasks.as_ref().map_or(0, |tasks| tasks.total),
        cost_usd: cost.map(|cost| (cost - before.usage.cost_usd.unwrap_or_default()).max(0.0)),
        tokens: spent,
        check: message::checked(&turn.check_results),
        remarks: note.map(message::remarks).unwrap_or_default(),
        runtime_seconds: Stamp(after.runtime_ms()).seconds(),
        head: turn.head.clone(),
        tools: gained.map(|gained| gained.tools_used),
        edits: gained.map(|gained| gained.edits),
        message: turn.message.as_deref().map(text),
        rejected,
        transcript: path.map(|path| text(path)),
        work_tree: work_tree.map(|path| text(path)),
        quota: after.quota.windows.clone(),
        ..IterationEnded::default()
    }
}
