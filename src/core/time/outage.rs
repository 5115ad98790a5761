//! A service that fails: how long to wait before the next attempt, and when to give up.
//!
//! The agent program retries for minutes before it gives up, so the waits begin at ten seconds. Time in which the machine
//! slept is no part of an outage.

use super::{Stamp, span};
use serde::{Deserialize, Serialize};

const MIN_DELAY_MS: i64 = 10_000;
const MAX_DELAY_MS: i64 = 300_000;
/// The user is notified of an outage that lasts this long.
const NEWS_AFTER_MS: i64 = 300_000;
/// Attempts in a row that may fail with an error of which it is unknown whether it passes.
const MAX_UNKNOWN_ERRORS: u32 = 3;

/// Failures of the service in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outage {
    pub since: Stamp,
    /// How long the machine had slept by then.
    pub slept_ms: i64,
    pub failures: u32,
    /// The user was notified.
    pub told: bool,
}

/// What kind of error an attempt failed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// It passes by itself.
    Yes,
    /// It may pass, and a few attempts show that.
    Maybe,
    /// A person must do something.
    No,
}

impl Outage {
    /// Counts one more failure.
    pub fn after(earlier: Option<Outage>, now: Stamp, slept_ms: i64) -> Outage {
        let began = Outage { since: now, slept_ms, ..Outage::default() };
        let outage = earlier.unwrap_or(began);
        Outage { failures: outage.failures.saturating_add(1), ..outage }
    }

    /// Returns how long the service has failed.
    pub fn lasted_ms(&self, now: Stamp, slept_ms: i64) -> i64 {
        let slept = slept_ms.saturating_sub(self.slept_ms).max(0);
        (now - self.since).saturating_sub(slept).max(0)
    }

    /// Returns how long to wait before the next attempt, or `None` if there is none: `max_ms` limits the outage, 0 does
    /// not. The last attempt is made when the limit is reached.
    pub fn wait_ms(&self, passing: Passing, lasted_ms: i64, max_ms: i64, random: f64) -> Option<i64> {
        let given_up = match passing {
            Passing::Yes => false,
            Passing::Maybe => self.failures >= MAX_UNKNOWN_ERRORS,
            Passing::No => true,
        };
        let left = if max_ms > 0 { max_ms.saturating_sub(lasted_ms) } else { i64::MAX };
        (left > 0 && !given_up).then(|| delay_ms(self.failures, random).min(left))
    }

    /// Returns why there is no further attempt, with the words of the service.
    pub fn reason(&self, passing: Passing, lasted_ms: i64, words: &str) -> String {
        match passing {
            Passing::Yes => format!("the API failed for {}: {words}", span(lasted_ms)),
            Passing::Maybe if self.failures >= MAX_UNKNOWN_ERRORS => {
                format!("same error {} times in a row: {words}", self.failures)
            }
            _ => words.to_owned(),
        }
    }

    /// Returns whether the user should be notified now, once for each outage.
    pub fn is_news(&mut self, lasted_ms: i64) -> bool {
        lasted_ms >= NEWS_AFTER_MS && !std::mem::replace(&mut self.told, true)
    }
}

/// Returns the wait after so many failures in a row, the first being 1. Half of it is random (`random` is from 0 to
/// 1), so that many runs do not retry in the same second.
pub fn delay_ms(failures: u32, random: f64) -> i64 {
    let doublings = failures.saturating_sub(1).min(30);
    let whole = MIN_DELAY_MS.saturating_mul(1 << doublings).min(MAX_DELAY_MS);
    let random = if random.is_finite() { random.clamp(0.0, 1.0) } else { 0.5 };
    whole / 2 + (whole as f64 / 2.0 * random) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: i64 = 3_600_000;

    #[test]
    fn waits_double_up_to_a_maximum() {
        let waits: Vec<i64> = (0..8).map(|n| delay_ms(n, 1.0) / 1000).collect();
        assert_eq!(waits, [10, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(delay_ms(1, 0.0), 5000);
        assert_eq!(delay_ms(u32::MAX, 1.0), MAX_DELAY_MS);
        assert_eq!(delay_ms(1, f64::NAN), 7500);
    }

    #[test]
    fn an_outage_is_waited_out_up_to_its_limit_with_a_last_attempt_there() {
        let began = Outage::after(None, Stamp(HOUR), 0);
        assert_eq!((began.failures, began.lasted_ms(Stamp(2 * HOUR), 0)), (1, HOUR));
        let again = Outage::after(Some(began), Stamp(2 * HOUR), 0);
        assert_eq!((again.failures, again.since), (2, Stamp(HOUR)));
        assert_eq!(again.wait_ms(Passing::Yes, HOUR, 12 * HOUR, 1.0), Some(20_000));
        assert_eq!(again.wait_ms(Passing::Yes, 12 * HOUR - 3, 12 * HOUR, 1.0), Some(3));
        assert_eq!(again.wait_ms(Passing::Yes, 12 * HOUR, 12 * HOUR, 1.0), None);
        assert_eq!(again.wait_ms(Passing::Yes, 1000 * HOUR, 0, 1.0), Some(20_000), "0 is no limit");
    }

    #[test]
    fn an_error_that_does_not_pass_is_not_waited_out() {
        let failed = |failures| Outage { failures, ..Outage::default() };
        assert_eq!(failed(1).wait_ms(Passing::No, 0, 0, 0.5), None);
        let unclear = |failures| failed(failures).wait_ms(Passing::Maybe, 0, 0, 0.5).is_some();
        assert_eq!([1, 2, 3, 4].map(unclear), [true, true, false, false]);
    }

    #[test]
    fn sleep_of_the_machine_is_no_part_of_an_outage() {
        let outage = Outage::after(None, Stamp(HOUR), 5 * HOUR);
        assert_eq!(outage.lasted_ms(Stamp(11 * HOUR), 14 * HOUR), HOUR);
        assert_eq!(outage.lasted_ms(Stamp(11 * HOUR), 0), 10 * HOUR, "after a restart of the machine");
        assert_eq!(outage.lasted_ms(Stamp(0), 5 * HOUR), 0, "a clock that was set back");
    }

    #[test]
    fn a_long_outage_is_told_once() {
        let mut outage = Outage::after(None, Stamp(0), 0);
        let told: Vec<bool> = [0, 299_999, 300_000, 900_000].map(|ms| outage.is_news(ms)).into();
        assert_eq!(told, [false, false, true, false]);
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
