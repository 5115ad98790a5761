//! What will end a loop next, as far as its limits and its breaker tell.

use crate::core::message;
use crate::core::record::{ArmedLoop, Engine};
use crate::core::settings::Settings;
use crate::core::time;

/// Returns what would end a running loop, the nearest first: `3 iterations left`, `1 more turn without progress`. Nothing
/// if it has no limit and the breaker counts nothing: then only the agent's signal ends it.
pub fn next_ends(run: &ArmedLoop, settings: &Settings) -> Vec<String> {
    let mut ends: Vec<(f64, String)> = Vec::new();
    let mut add = |left: f64, limit: f64, text: String| ends.push(((left / limit).max(0.0), text));
    if let limit @ 1.. = settings.max_iterations {
        let left = limit.saturating_sub(run.iteration);
        add(left as f64, limit as f64, format!("{} left", message::iterations(left)));
    }
    if let limit @ 1.. = settings.max_runtime_ms {
        let left = (limit - run.runtime_ms()).max(0);
        add(left as f64, limit as f64, format!("{} of runtime left", time::span(left)));
    }
    if let (Some(limit), Some(cost)) = (settings.max_cost_usd, run.usage.cost_usd) {
        let left = (limit - cost).max(0.0);
        add(left, limit, format!("${left:.2} left"));
    }
    for (condition, count) in run.circuit.counters.iter() {
        let limit = condition.limit(settings.circuit.get(condition.name()));
        if count > 0 && limit > 0 {
            let left = limit.saturating_sub(count);
            add(left as f64, limit as f64, format!("{} {}", more("turn", left), such(condition.name())));
        }
    }
    if run.engine == Engine::Runner && run.stuck_count > 0 && settings.max_stuck > 0 {
        let left = settings.max_stuck.saturating_sub(run.stuck_count);
        let text = format!("{} without a commit", more("iteration", left));
        add(left as f64, settings.max_stuck as f64, text);
    }
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    ends.into_iter().map(|(_, text)| text).collect()
}

fn more(what: &str, count: u64) -> String {
    format!("{count} more {what}{}", if count == 1 { "" } else { "s" })
}

/// Returns which turns a condition counts.
fn such(condition: &str) -> &'static str {
    match condition {
        "same_error" => "with the same error",
        "output_decline" => "with a much shorter message",
        "test_only" => "of testing only",
        "stagnation" => "without progress",
        "idle" => "without a tool call",
        "repetition" => "with a repeated message",
        "safety_completion" => "claiming completion without the signal",
        _ => "like the last",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::circuit::condition::CONDITIONS;
    use crate::core::record::{StoredLoop, Usage};

    fn run(iteration: u64, hours: f64) -> ArmedLoop {
        let stored =
            StoredLoop { iteration, accumulated_runtime_seconds: hours * 3600.0, ..StoredLoop::default() };
        stored.into()
    }

    #[test]
    fn the_nearest_end_comes_first() {
        let settings = Settings::default();
        assert_eq!(next_ends(&run(10, 1.0), &settings), ["40 iterations left", "8h of runtime left"]);
        assert_eq!(next_ends(&run(10, 8.5), &settings), ["30m of runtime left", "40 iterations left"]);
        let mut stuck = run(49, 0.0);
        stuck.circuit.counters = stuck.circuit.counters.with("stagnation", 4).with("idle", 1);
        assert_eq!(
            next_ends(&stuck, &settings),
            [
                "1 iteration left",
                "1 more turn without progress",
                "4 more turns without a tool call",
                "9h of runtime left"
            ]
        );
    }

    #[test]
    fn a_limit_that_is_off_or_unknown_ends_nothing() {
        let settings = Settings { max_iterations: 0, max_runtime_ms: 0, ..Settings::default() };
        assert_eq!(next_ends(&run(1000, 100.0), &settings), [""; 0]);
        let costly = Settings { max_cost_usd: Some(5.0), ..settings };
        assert_eq!(next_ends(&run(1, 1.0), &costly), [""; 0], "no cost is known");
        let mut spent = run(1, 1.0);
        spent.usage = Usage { cost_usd: Some(3.5), ..Usage::default() };
        assert_eq!(next_ends(&spent, &costly), ["$1.50 left"]);
    }

    #[test]
    fn a_runner_is_ended_by_iterations_without_a_commit() {
        let mut run = run(3, 0.0);
        (run.engine, run.stuck_count) = (Engine::Runner, 2);
        let settings = Settings { max_stuck: 3, ..Settings::default() };
        assert_eq!(next_ends(&run, &settings)[0], "1 more iteration without a commit");
    }

    #[test]
    fn every_condition_has_words() {
        for condition in CONDITIONS {
            assert_ne!(such(condition.name()), such(""), "{}", condition.name());
        }
    }
}
