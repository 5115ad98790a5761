//! The circuit breaker at the end of a turn, and the runner's own count: iterations without a commit (`--max-stuck`).
//!
//! That count is no row of the breaker's table: the record and `summary.csv` keep it as `stuck_count`, also where the limit
//! is off. What shows counters takes both from [`counters`].

use super::Note;
use super::completion::Rejection;
use crate::core::circuit::condition::Counter;
use crate::core::circuit::{self, BreakerVerdict, BreakerWarning};
use crate::core::decide::turn::Turn;
use crate::core::message;
use crate::core::outcome::Outcome;
use crate::core::record::{ArmedLoop, Engine};
use crate::core::settings::Settings;
use crate::core::signal::StatusBlock;

/// Returns the counters of a loop whose limits are on.
pub fn counters(run: &ArmedLoop, settings: &Settings) -> Vec<Counter> {
    let mut counters = run.circuit.counters.limited(&settings.circuit);
    if run.engine == Engine::Runner && settings.max_stuck > 0 {
        let (count, limit) = (run.stuck_count, settings.max_stuck);
        counters.push(Counter { label: "no commit", again: "without a commit", count, limit });
    }
    counters
}

/// Returns `circuit ok`, `circuit TRIPPED`, or the counter that is nearest to its limit: `idle 2/5`.
pub fn brief(run: &ArmedLoop, settings: &Settings) -> String {
    if run.circuit.is_tripped() {
        return "circuit TRIPPED".into();
    }
    Counter::nearest(counters(run, settings))
        .map_or_else(|| "circuit ok".into(), |counter| counter.to_string())
}

/// Counts the runner's iterations without a commit, or outside git without a changed file.
pub fn count_stuck(run: &mut ArmedLoop, turn: &Turn, status: Option<&StatusBlock>) {
    let baseline = &run.circuit.baseline;
    let moved = baseline.committed(turn).or_else(|| baseline.progress(turn, status));
    run.stuck_count = if moved == Some(true) { 0 } else { run.stuck_count.saturating_add(1) };
}

/// Asks the breaker, and takes this turn as the one the next is compared with.
pub fn judge(
    run: &mut ArmedLoop,
    turn: &Turn,
    status: Option<&StatusBlock>,
    gave_signal: bool,
    note: &Note,
    settings: &Settings,
) -> BreakerVerdict {
    let baseline = &run.circuit.baseline;
    let committed = baseline.committed(turn);
    let ticked = baseline.ticked(turn);
    let progress = baseline.progress(turn, status);
    let files_changed = baseline.files_changed(turn);
    let evidence = circuit::TurnFacts {
        message: turn.message.as_deref(),
        status,
        tools_used: turn.gained.as_ref().map(|gained| gained.tools_used),
        progress,
        empty_commit: baseline.only_committed(turn, status),
        advanced: committed == Some(true) || ticked,
        ticked,
        gave_signal,
        waits_for_minimum: matches!(note.rejected, Some(Rejection::Minimum(_))),
    };
    let verdict = run.circuit.judge(&evidence, &settings.circuit);
    run.circuit.baseline.move_to(turn);
    if run.engine == Engine::InSession {
        run.stuck_count = run.circuit.turns_without_progress();
        return verdict;
    }
    let stuck = judge_stuck(run.stuck_count, settings.max_stuck, committed, files_changed);
    match (verdict, stuck) {
        (_, BreakerVerdict::Trip(outcome, reason)) => run.circuit.trip(outcome, reason),
        (trip @ BreakerVerdict::Trip(..), _) => trip,
        // Files changed as well as not committed: the breaker's warning does not say that.
        (BreakerVerdict::Warn(first), BreakerVerdict::Warn(second)) if progress != Some(false) => {
            BreakerVerdict::Warn(first.and(&second))
        }
        (BreakerVerdict::Fine, verdict) | (verdict, _) => verdict,
    }
}

/// Judges the runner's iterations without a commit by `--max-stuck`.
fn judge_stuck(count: u64, max: u64, committed: Option<bool>, files_changed: bool) -> BreakerVerdict {
    let what = if committed.is_some() { "a commit" } else { "a changed file" };
    let in_a_row = if count == 1 { "" } else { " in a row" };
    let mut found = format!("{}{in_a_row} without {what}", message::iterations(count));
    if committed.is_some() && files_changed {
        found.push_str(" (files changed, nothing was committed)");
    }
    match max {
        0 => BreakerVerdict::Fine,
        max if count >= max => BreakerVerdict::Trip(Outcome::Stuck, found),
        max if count > 0 && count + 1 == max => {
            let advice = match committed {
                Some(_) => "Commit each verified step, or signal that you are done or blocked.",
                None => "Change something, or signal that you are done or blocked.",
            };
            BreakerVerdict::Warn(BreakerWarning::new(&found, advice))
        }
        _ => BreakerVerdict::Fine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_stuck_warns_one_iteration_before_and_names_files_without_a_commit() {
        let warn = |count, max, committed, changed| match judge_stuck(count, max, committed, changed) {
            BreakerVerdict::Warn(warning) => warning.found,
            verdict => format!("{verdict:?}"),
        };
        for (count, max) in [(0, 3), (1, 3), (0, 1), (2, 0), (99, 0)] {
            assert_eq!(judge_stuck(count, max, Some(false), true), BreakerVerdict::Fine, "{count} of {max}");
        }
        let warning = warn(2, 3, Some(false), true);
        for part in [
            "2 iterations in a row without a commit",
            "files changed, nothing was committed",
            "one more ends",
        ] {
            assert!(warning.contains(part), "{part}: {warning}");
        }
        assert!(!warn(2, 3, Some(false), false).contains("files changed"));
        assert!(warn(2, 3, None, true).contains("without a changed file;"));
        assert!(warn(1, 2, Some(false), false).starts_with("1 iteration without a commit;"));
        let trip = "3 iterations in a row without a commit (files changed, nothing was committed)";
        assert_eq!(judge_stuck(3, 3, Some(false), true), BreakerVerdict::Trip(Outcome::Stuck, trip.into()));
    }
}
