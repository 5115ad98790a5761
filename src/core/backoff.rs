//! How long to wait where the agent could not reach its model, and when that counts.
//!
//! The agent program has tried again by itself, ten times over some minutes, before it gives up. So the
//! waits begin at ten seconds and not at one.

const FIRST: i64 = 10_000;
const LONGEST: i64 = 300_000;
/// With the waits between them and the agent program's own, five failures are some twenty minutes without a
/// model: no longer a hiccup, and worth an iteration, so that limits and breaker come to see it.
const COUNTED: u32 = 5;

/// The wait in milliseconds after so many failures in a row, the first being 1. Half of it is chance
/// (`random` is from 0 to 1), so that many runs do not come back in the same second.
pub fn delay_ms(failures: u32, random: f64) -> i64 {
    let doublings = failures.saturating_sub(1).min(30);
    let whole = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    let random = if random.is_finite() { random.clamp(0.0, 1.0) } else { 0.5 };
    whole / 2 + (whole as f64 / 2.0 * random) as i64
}

/// Whether this failure, the nth in a row, is counted as an iteration: each fifth. A hiccup costs the run
/// nothing, and a night without a model does not use up a night's iterations.
pub fn persisted(failures: u32) -> bool {
    failures > 0 && failures.is_multiple_of(COUNTED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        let waits: Vec<i64> = (0..8).map(|n| delay_ms(n, 1.0) / 1000).collect();
        assert_eq!(waits, [10, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(delay_ms(1, 0.0), 5000);
        assert_eq!(delay_ms(u32::MAX, 1.0), LONGEST);
        assert_eq!(delay_ms(1, f64::NAN), 7500);
    }

    #[test]
    fn each_fifth_failure_in_a_row_is_an_iteration() {
        assert_eq!((0..=11).filter(|n| persisted(*n)).collect::<Vec<_>>(), [5, 10]);
    }

    proptest! {
        #[test]
        fn a_wait_is_bounded_and_never_shrinks_with_failures(n in any::<u32>(), random in any::<f64>()) {
            let wait = delay_ms(n, random);
            prop_assert!((FIRST / 2..=LONGEST).contains(&wait));
            prop_assert!(delay_ms(n.saturating_add(1), random) >= wait);
        }
    }
}
