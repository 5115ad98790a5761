//! The limits of a loop: which one is reached, and how near the next one is.

use crate::core::message;
use crate::core::outcome::Outcome;
use crate::core::record::{Spent, StoredLoop};
use crate::core::settings::Settings;
use crate::core::time;

const SOON_MS: i64 = 3_600_000;
const SOON_ITERATIONS: u64 = 5;

/// Returns the first limit that is reached, and the reason for the user.
pub fn reached(run: &StoredLoop, settings: &Settings) -> Option<(Outcome, String)> {
    let (iteration, runtime) = (run.iteration, run.runtime_ms());
    if settings.max_iterations > 0 && iteration >= settings.max_iterations {
        return Some((
            Outcome::MaxIterations,
            format!("{iteration} of {} iterations done", settings.max_iterations),
        ));
    }
    if settings.max_runtime_ms > 0 && runtime >= settings.max_runtime_ms {
        let (spent, limit) = (time::span(runtime), time::span(settings.max_runtime_ms));
        return Some((Outcome::MaxRuntime, format!("{spent} of {limit} runtime used")));
    }
    if let (Some(limit), Some(cost)) = (settings.max_cost_usd, run.usage.cost_usd)
        && cost >= limit
    {
        return Some((Outcome::MaxCost, format!("${cost:.2} of ${limit:.2} spent")));
    }
    let tokens = run.usage.tokens();
    if settings.max_tokens > 0 && tokens >= settings.max_tokens {
        let limit = message::tokens(settings.max_tokens);
        return Some((Outcome::MaxCost, format!("{} of {limit} tokens used", message::tokens(tokens))));
    }
    None
}

/// Returns the reason if all loops of this user have spent what a day allows.
pub fn reached_today(spent: Spent, settings: &Settings) -> Option<(Outcome, String)> {
    let Spent { usd, tokens } = spent;
    if let Some(limit) = settings.daily_usd.filter(|limit| usd >= *limit) {
        let reason = format!("{TODAY} (UTC): ${usd:.2} of ${limit:.2} spent by all your loops");
        return Some((Outcome::MaxCost, reason));
    }
    let limit = settings.daily_tokens;
    (limit > 0 && tokens >= limit).then(|| {
        let (tokens, limit) = (message::tokens(tokens), message::tokens(limit));
        (Outcome::MaxCost, format!("{TODAY} (UTC): {tokens} of {limit} tokens used by all your loops"))
    })
}

/// How the reason of a daily limit begins.
const TODAY: &str = "today";

/// Returns what raises the limit by which a loop ended for this reason, after the command that resumes it.
pub fn raise(outcome: Outcome, reason: &str) -> Option<&'static str> {
    match outcome {
        Outcome::MaxIterations => Some("--max-iterations N"),
        Outcome::MaxRuntime => Some("--max-hours N"),
        Outcome::MaxCost if reason.starts_with(TODAY) => {
            Some("(after 00:00 UTC, or with a higher budget.daily_* setting)")
        }
        Outcome::MaxCost if reason.contains(" tokens used") => Some("--max-tokens N"),
        Outcome::MaxCost => Some("--max-cost N"),
        _ => None,
    }
}

/// Returns the limits beside the number of iterations: `2h limit`, `$5.00 limit`.
pub fn words(settings: &Settings) -> Vec<String> {
    let runtime = Some(settings.max_runtime_ms).filter(|limit| *limit > 0);
    let runtime = runtime.map(|limit| format!("{} limit", time::span(limit)));
    let cost = settings.max_cost_usd.map(|limit| format!("${limit:.2} limit"));
    let tokens = Some(settings.max_tokens).filter(|limit| *limit > 0);
    let tokens = tokens.map(|limit| format!("{} token limit", message::tokens(limit)));
    runtime.into_iter().chain(cost).chain(tokens).collect()
}

/// Returns whether less than one hour or fewer than five iterations are left.
pub fn ending_soon(run: &StoredLoop, settings: &Settings) -> bool {
    let hours = settings.max_runtime_ms > 0 && settings.max_runtime_ms - run.runtime_ms() < SOON_MS;
    let iterations = settings.max_iterations > 0
        && settings.max_iterations.saturating_sub(run.iteration) < SOON_ITERATIONS;
    hours || iterations
}

/// Returns which minimum is not reached yet, for the user and the agent.
pub fn minimum_missing(run: &StoredLoop, settings: &Settings) -> Option<String> {
    let mut missing = Vec::new();
    if run.runtime_ms() < settings.min_runtime_ms {
        let (spent, minimum) = (time::span(run.runtime_ms()), time::span(settings.min_runtime_ms));
        missing.push(format!("minimum runtime not reached ({spent} of {minimum})"));
    }
    if run.iteration < settings.min_iterations {
        missing.push(format!(
            "minimum iterations not reached ({} of {})",
            run.iteration, settings.min_iterations
        ));
    }
    (!missing.is_empty()).then(|| missing.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::record::Usage;

    const HOUR: i64 = 3_600_000;

    fn run(iteration: u64, runtime_ms: i64, cost_usd: Option<f64>) -> StoredLoop {
        let accumulated_runtime_seconds = time::Stamp(runtime_ms).seconds();
        let usage = Usage { cost_usd, ..Usage::default() };
        StoredLoop { iteration, accumulated_runtime_seconds, usage, ..StoredLoop::default() }
    }

    fn unlimited() -> Settings {
        Settings { max_iterations: 0, max_runtime_ms: 0, ..Settings::default() }
    }

    #[test]
    fn a_limit_is_reached_at_its_figure_and_not_before() {
        let settings = Settings { max_cost_usd: Some(2.0), ..Settings::default() };
        let cases = [
            ("at the start", run(0, 0, None), &settings, None),
            ("short of each", run(49, 9 * HOUR - 1, Some(1.99)), &settings, None),
            ("iterations", run(50, 0, None), &settings, Some("50 of 50 iterations done")),
            ("runtime", run(0, 9 * HOUR, None), &settings, Some("9h of 9h runtime used")),
            ("cost", run(0, 0, Some(2.0)), &settings, Some("$2.00 of $2.00 spent")),
            ("all of them", run(51, 10 * HOUR, Some(3.0)), &settings, Some("51 of 50 iterations done")),
            ("none is set", run(1_000, 1_000 * HOUR, Some(1e6)), &unlimited(), None),
        ];
        for (name, run, settings, expected) in cases {
            let reason = reached(&run, settings).map(|(_, reason)| reason);
            assert_eq!(reason.as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn tokens_and_the_budget_of_a_day_are_limits_too() {
        let settings = Settings { max_tokens: 1000, daily_usd: Some(5.0), daily_tokens: 9000, ..unlimited() };
        let used = |tokens: u64| StoredLoop {
            usage: Usage { input_tokens: tokens - 1, cache_read_tokens: 1, ..Usage::default() },
            ..StoredLoop::default()
        };
        assert_eq!(reached(&used(999), &settings), None);
        let (outcome, reason) = reached(&used(1000), &settings).unwrap();
        assert_eq!((outcome, reason.as_str()), (Outcome::MaxCost, "1k of 1k tokens used"));
        assert_eq!(raise(outcome, &reason), Some("--max-tokens N"));
        for (usd, tokens, expected) in [
            (4.99, 8999, None),
            (5.0, 0, Some("today (UTC): $5.00 of $5.00 spent by all your loops")),
            (0.0, 9000, Some("today (UTC): 9k of 9k tokens used by all your loops")),
        ] {
            let reason = reached_today(Spent { usd, tokens }, &settings).map(|(_, reason)| reason);
            assert_eq!(reason.as_deref(), expected);
            assert!(reason.is_none_or(|reason| raise(outcome, &reason).unwrap().contains("budget.daily")));
        }
        assert_eq!(reached_today(Spent { usd: 1e9, tokens: u64::MAX }, &unlimited()), None);
    }

    #[test]
    fn the_last_hour_and_the_last_iterations_are_near_the_end() {
        let cases = [
            ("at the start", run(0, 0, None), Settings::default(), false),
            ("an hour left", run(0, 8 * HOUR, None), Settings::default(), false),
            ("less than an hour left", run(0, 8 * HOUR + 1, None), Settings::default(), true),
            ("five iterations left", run(45, 0, None), Settings::default(), false),
            ("four iterations left", run(46, 0, None), Settings::default(), true),
            ("beyond its limits", run(60, 10 * HOUR, None), Settings::default(), true),
            ("without limits", run(60, 10 * HOUR, None), unlimited(), false),
            ("at the start without limits", run(0, 0, None), unlimited(), false),
        ];
        for (name, run, settings, expected) in cases {
            assert_eq!(ending_soon(&run, &settings), expected, "{name}");
        }
    }

    #[test]
    fn a_minimum_is_met_at_its_figure() {
        let settings = Settings { min_iterations: 3, min_runtime_ms: HOUR, ..Settings::default() };
        let cases = [
            ("both met", run(3, HOUR, None), None),
            ("one iteration short", run(2, HOUR, None), Some("minimum iterations not reached (2 of 3)")),
            ("a moment short", run(3, HOUR - 1, None), Some("minimum runtime not reached (59m of 1h)")),
            (
                "both short",
                run(0, 0, None),
                Some("minimum runtime not reached (0s of 1h), minimum iterations not reached (0 of 3)"),
            ),
        ];
        for (name, run, expected) in cases {
            assert_eq!(minimum_missing(&run, &settings).as_deref(), expected, "{name}");
        }
    }
}
