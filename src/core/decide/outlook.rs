//! What will end a loop next, as far as its counts tell.

use crate::core::decide::breaker;
use crate::core::message::{self, iterations};
use crate::core::record::{ArmedLoop, Engine};
use crate::core::settings::Settings;
use crate::core::time;

/// Returns what would end the loop, the nearest first: `3 iterations left`, `1 more turn without progress`. How near a limit
/// of time or cost is follows from what an iteration has taken so far. A loop that has ended has none.
pub fn next_ends(run: &ArmedLoop, settings: &Settings) -> Vec<String> {
    if !run.is_alive() {
        return Vec::new();
    }
    let mut ends: Vec<(f64, String)> = Vec::new();
    if settings.max_iterations > 0 {
        let left = settings.max_iterations.saturating_sub(run.iteration);
        ends.push((left as f64, format!("{} left", iterations(left))));
    }
    if settings.max_runtime_ms > 0 {
        let left = (settings.max_runtime_ms - run.runtime_ms()).max(0);
        let turns = turns_until(left as f64, run.runtime_ms() as f64, run.iteration);
        ends.push((turns, format!("{} of runtime left", time::span(left))));
    }
    if let (Some(limit), Some(cost)) = (settings.max_cost_usd, run.usage.cost_usd) {
        let left = (limit - cost).max(0.0);
        ends.push((turns_until(left, cost, run.iteration), format!("${left:.2} left")));
    }
    if settings.max_tokens > 0 {
        let used = run.usage.tokens();
        let left = settings.max_tokens.saturating_sub(used);
        let turns = turns_until(left as f64, used as f64, run.iteration);
        ends.push((turns, format!("{} tokens left", message::tokens(left))));
    }
    ends.extend(counting(run, settings));
    ends.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    ends.into_iter().map(|(_, words)| words).collect()
}

/// Returns in how many turns a limit is reached if each takes as much as those before.
fn turns_until(left: f64, spent: f64, turns: u64) -> f64 {
    if spent > 0.0 && turns > 0 { left * turns as f64 / spent } else { f64::INFINITY }
}

/// Returns the breaker's conditions that have begun to count.
fn counting(run: &ArmedLoop, settings: &Settings) -> Vec<(f64, String)> {
    let (turn, turns) = match run.engine {
        Engine::InSession => ("turn", "turns"),
        Engine::Runner => ("iteration", "iterations"),
    };
    let more = |left: u64, what: &str| {
        let words = if left == 1 { turn } else { turns };
        (left as f64, format!("{left} more {words} {what}"))
    };
    let counting = breaker::counters(run, settings).into_iter().filter(|counter| counter.count > 0);
    counting.map(|counter| more(counter.limit.saturating_sub(counter.count).max(1), counter.again)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::circuit::Circuit;
    use crate::core::circuit::condition::PerCondition;
    use crate::core::outcome::Outcome;
    use crate::core::record::{LoopState, StoredLoop, Usage};
    use crate::core::time::Stamp;
    use serde_json::Map;

    const HOUR: i64 = 3_600_000;

    fn run(iteration: u64, runtime_ms: i64, counts: &[(&str, u64)]) -> ArmedLoop {
        let stored = StoredLoop {
            state: LoopState::Running,
            iteration,
            accumulated_runtime_seconds: Stamp(runtime_ms).seconds(),
            ..StoredLoop::default()
        };
        let zero = PerCondition::default();
        let counters = counts.iter().fold(zero, |counters, (name, count)| counters.with(name, *count));
        ArmedLoop::attach(stored, Circuit { counters, ..Circuit::default() }, Map::new(), None)
    }

    #[test]
    fn the_nearest_end_comes_first() {
        let settings = Settings::default();
        let cases = [
            ("at the start", run(0, 0, &[]), &["50 iterations left", "9h of runtime left"][..]),
            ("one iteration", run(49, HOUR, &[]), &["1 iteration left", "8h of runtime left"]),
            ("time by its use", run(10, 8 * HOUR, &[]), &["1h of runtime left", "40 iterations left"]),
            (
                "the breaker",
                run(10, HOUR, &[("stagnation", 4), ("same_error", 1)]),
                &[
                    "1 more turn without progress",
                    "4 more turns with the same error",
                    "40 iterations left",
                    "8h of runtime left",
                ],
            ),
            ("beyond a limit", run(60, 10 * HOUR, &[]), &["0 iterations left", "0s of runtime left"]),
        ];
        for (name, run, expected) in cases {
            assert_eq!(next_ends(&run, &settings), expected, "{name}");
        }
    }

    #[test]
    fn cost_counts_where_it_is_known_and_limited() {
        let settings = Settings { max_runtime_ms: 0, max_cost_usd: Some(2.0), ..Settings::default() };
        let mut run = run(10, 0, &[]);
        assert_eq!(next_ends(&run, &settings), ["40 iterations left"]);
        run.usage = Usage { cost_usd: Some(1.5), ..Usage::default() };
        assert_eq!(next_ends(&run, &settings), ["$0.50 left", "40 iterations left"]);
        let settings = Settings { max_tokens: 30_000, max_cost_usd: None, ..settings };
        run.usage = Usage { input_tokens: 20_000, ..Usage::default() };
        assert_eq!(next_ends(&run, &settings), ["10k tokens left", "40 iterations left"]);
    }

    #[test]
    fn a_runner_counts_commits_and_what_has_ended_has_no_next_end() {
        let settings = Settings { max_stuck: 3, max_iterations: 0, max_runtime_ms: 0, ..Settings::default() };
        let mut run = run(4, 0, &[("idle", 0)]);
        run.engine = Engine::Runner;
        run.stuck_count = 1;
        assert_eq!(next_ends(&run, &settings), ["2 more iterations without a commit"]);
        run.end(Outcome::Stopped, "", Stamp(0));
        assert!(next_ends(&run, &settings).is_empty());
    }

    #[test]
    fn a_condition_that_is_off_ends_nothing() {
        let mut settings = Settings { max_iterations: 0, max_runtime_ms: 0, ..Settings::default() };
        settings.circuit = settings.circuit.with("idle", 0);
        assert!(next_ends(&run(4, 0, &[("idle", 3)]), &settings).is_empty());
    }
}
