//! The limits of a loop: which one is reached, and how near the next one is.

use super::outcome::Outcome;
use super::record::Loop;
use super::settings::Settings;
use super::time;

const SOON_MS: i64 = 3_600_000;
const SOON_ITERATIONS: u64 = 5;

/// The first limit that is reached, with the reason in words.
pub fn reached(lap: &Loop, settings: &Settings) -> Option<(Outcome, String)> {
    let (iteration, runtime) = (lap.iteration, lap.runtime_ms());
    if settings.max_iterations > 0 && iteration >= settings.max_iterations {
        return Some((
            Outcome::MaxIterations,
            format!("{iteration} of {} iterations done", settings.max_iterations),
        ));
    }
    if settings.max_runtime_ms > 0 && runtime >= settings.max_runtime_ms {
        let (spent, limit) = (time::hours(runtime), time::hours(settings.max_runtime_ms));
        return Some((Outcome::MaxRuntime, format!("{spent} of {limit} runtime used")));
    }
    match (settings.max_cost_usd, lap.usage.cost_usd) {
        (Some(limit), Some(cost)) if cost >= limit => {
            Some((Outcome::MaxCost, format!("${cost:.2} of ${limit:.2} spent")))
        }
        _ => None,
    }
}

/// Below one hour or five iterations left.
pub fn ending_soon(lap: &Loop, settings: &Settings) -> bool {
    let hours = settings.max_runtime_ms > 0 && settings.max_runtime_ms - lap.runtime_ms() < SOON_MS;
    let iterations = settings.max_iterations > 0
        && settings.max_iterations.saturating_sub(lap.iteration) < SOON_ITERATIONS;
    hours || iterations
}

/// What still holds a finish back, in words.
pub fn minimum_missing(lap: &Loop, settings: &Settings) -> Option<String> {
    let mut missing = Vec::new();
    if lap.runtime_ms() < settings.min_runtime_ms {
        missing.push(format!(
            "runtime is {} of at least {}",
            time::span(lap.runtime_ms()),
            time::span(settings.min_runtime_ms)
        ));
    }
    if lap.iteration < settings.min_iterations {
        missing.push(format!("iteration {} of at least {}", lap.iteration, settings.min_iterations));
    }
    (!missing.is_empty()).then(|| missing.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::record::Usage;

    const HOUR: i64 = 3_600_000;

    fn lap(iteration: u64, runtime_ms: i64, cost_usd: Option<f64>) -> Loop {
        let accumulated_runtime_seconds = time::Stamp(runtime_ms).seconds();
        let usage = Usage { cost_usd, ..Usage::default() };
        Loop { iteration, accumulated_runtime_seconds, usage, ..Loop::default() }
    }

    fn unlimited() -> Settings {
        Settings { max_iterations: 0, max_runtime_ms: 0, ..Settings::default() }
    }

    #[test]
    fn a_limit_is_reached_at_its_figure_and_not_before() {
        let settings = Settings { max_cost_usd: Some(2.0), ..Settings::default() };
        let cases = [
            ("at the start", lap(0, 0, None), &settings, None),
            ("short of each", lap(49, 9 * HOUR - 1, Some(1.99)), &settings, None),
            ("iterations", lap(50, 0, None), &settings, Some("50 of 50 iterations done")),
            ("runtime", lap(0, 9 * HOUR, None), &settings, Some("9.0h of 9.0h runtime used")),
            ("cost", lap(0, 0, Some(2.0)), &settings, Some("$2.00 of $2.00 spent")),
            ("all of them", lap(51, 10 * HOUR, Some(3.0)), &settings, Some("51 of 50 iterations done")),
            ("none is set", lap(1_000, 1_000 * HOUR, Some(1e6)), &unlimited(), None),
        ];
        for (name, lap, settings, expected) in cases {
            let reason = reached(&lap, settings).map(|(_, reason)| reason);
            assert_eq!(reason.as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn the_last_hour_and_the_last_iterations_are_near_the_end() {
        let cases = [
            ("at the start", lap(0, 0, None), Settings::default(), false),
            ("an hour left", lap(0, 8 * HOUR, None), Settings::default(), false),
            ("less than an hour left", lap(0, 8 * HOUR + 1, None), Settings::default(), true),
            ("five iterations left", lap(45, 0, None), Settings::default(), false),
            ("four iterations left", lap(46, 0, None), Settings::default(), true),
            ("beyond its limits", lap(60, 10 * HOUR, None), Settings::default(), true),
            ("without limits", lap(60, 10 * HOUR, None), unlimited(), false),
            ("at the start without limits", lap(0, 0, None), unlimited(), false),
        ];
        for (name, lap, settings, expected) in cases {
            assert_eq!(ending_soon(&lap, &settings), expected, "{name}");
        }
    }

    #[test]
    fn a_minimum_is_met_at_its_figure() {
        let settings = Settings { min_iterations: 3, min_runtime_ms: HOUR, ..Settings::default() };
        let cases = [
            ("both met", lap(3, HOUR, None), None),
            ("one iteration short", lap(2, HOUR, None), Some("iteration 2 of at least 3")),
            ("a moment short", lap(3, HOUR - 1, None), Some("runtime is 59m of at least 1.0h")),
            (
                "both short",
                lap(0, 0, None),
                Some("runtime is 0s of at least 1.0h, iteration 0 of at least 3"),
            ),
        ];
        for (name, lap, expected) in cases {
            assert_eq!(minimum_missing(&lap, &settings).as_deref(), expected, "{name}");
        }
    }
}
