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
