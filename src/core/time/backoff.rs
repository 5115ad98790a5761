//! How long to wait when the agent cannot reach its model, and when such a failure counts as an iteration.
//!
//! The agent program retries for minutes before it gives up, so the waits begin at ten seconds.

const MIN_DELAY_MS: i64 = 10_000;
const MAX_DELAY_MS: i64 = 300_000;
/// About twenty minutes without a model, the waits included: long enough for limits and breaker to see it.
const FAILURES_PER_ITERATION: u32 = 5;

/// Returns the wait after so many failures in a row, the first being 1. Half of it is random (`random` is from 0 to
/// 1), so that many runs do not retry in the same second.
pub fn delay_ms(failures: u32, random: f64) -> i64 {
    let doublings = failures.saturating_sub(1).min(30);
    let whole = MIN_DELAY_MS.saturating_mul(1 << doublings).min(MAX_DELAY_MS);
    let random = if random.is_finite() { random.clamp(0.0, 1.0) } else { 0.5 };
    whole / 2 + (whole as f64 / 2.0 * random) as i64
}

/// Returns whether this failure, the nth in a row, counts as an iteration: every fifth does, so that a short outage
/// costs nothing and a night without a model does not use up a night's iterations.
pub fn is_counted(failures: u32) -> bool {
    failures > 0 && failures.is_multiple_of(FAILURES_PER_ITERATION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn waits_double_up_to_a_maximum() {
        let waits: Vec<i64> = (0..8).map(|n| delay_ms(n, 1.0) / 1000).collect();
        assert_eq!(waits, [10, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(delay_ms(1, 0.0), 5000);
        assert_eq!(delay_ms(u32::MAX, 1.0), MAX_DELAY_MS);
        assert_eq!(delay_ms(1, f64::NAN), 7500);
    }

    #[test]
    fn every_fifth_failure_in_a_row_is_an_iteration() {
        assert_eq!((0..=11).filter(|n| is_counted(*n)).collect::<Vec<_>>(), [5, 10]);
    }

    proptest! {
        #[test]
        fn a_wait_is_bounded_and_never_shrinks_with_failures(n in any::<u32>(), random in any::<f64>()) {
            let wait = delay_ms(n, random);
            prop_assert!((MIN_DELAY_MS / 2..=MAX_DELAY_MS).contains(&wait));
            prop_assert!(delay_ms(n.saturating_add(1), random) >= wait);
        }
    }
}
