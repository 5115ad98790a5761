//! The limit of calls per hour: a sliding window, not a counter that is reset.

use crate::core::record::lenient_list;
use crate::core::time::Stamp;
use serde::{Deserialize, Serialize};

const HOUR_MS: i64 = 3_600_000;

/// The calls of the last hour, oldest first. Stored, so that a restart does not evade the limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rate {
    #[serde(deserialize_with = "lenient_list")]
    calls: Vec<Stamp>,
}

impl Rate {
    /// Returns when the next call may be made, or `None` for now. A limit of 0 is off.
    pub fn next_allowed(&self, per_hour: u64, now: Stamp) -> Option<Stamp> {
        let per_hour = usize::try_from(per_hour).unwrap_or(usize::MAX);
        if per_hour == 0 {
            return None;
        }
        let calls = self.within(now);
        let oldest = calls.len().checked_sub(per_hour)?;
        Some(calls[oldest].plus_ms(HOUR_MS))
    }

    /// Returns how many calls may still be made now.
    pub fn remaining(&self, per_hour: u64, now: Stamp) -> u64 {
        per_hour.saturating_sub(self.within(now).len() as u64)
    }

    /// Returns when the oldest call leaves the window, so that one more may be made.
    pub fn frees_at(&self, now: Stamp) -> Option<Stamp> {
        Some(self.within(now).first()?.plus_ms(HOUR_MS))
    }

    /// Records a call made now.
    pub fn record(&mut self, per_hour: u64, now: Stamp) {
        self.calls = self.within(now);
        self.calls.push(now);
        let keep = usize::try_from(per_hour).unwrap_or(usize::MAX);
        self.calls.drain(..self.calls.len().saturating_sub(keep));
    }

    /// Returns the calls of the hour before now. Those after it were made before the clock was set back and are
    /// dropped: waiting for them could take forever.
    fn within(&self, now: Stamp) -> Vec<Stamp> {
        let mut calls: Vec<Stamp> =
            self.calls.iter().copied().filter(|at| *at <= now && now - *at < HOUR_MS).collect();
        calls.sort_unstable();
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const NOW: Stamp = Stamp(1_794_816_000_000);

    fn minutes(minutes: i64) -> Stamp {
        NOW.plus_ms(minutes * 60_000)
    }

    fn made(limit: u64, calls: &[i64]) -> Rate {
        let mut rate = Rate::default();
        for call in calls {
            rate.record(limit, minutes(*call));
        }
        rate
    }

    #[test]
    fn the_window_slides() {
        type Case<'a> = (&'a str, u64, &'a [i64], i64, Option<i64>);
        let cases: &[Case] = &[
            ("nothing made", 2, &[], 0, None),
            ("room left", 2, &[0], 1, None),
            ("full until the oldest is an hour old", 2, &[0, 10], 11, Some(60)),
            ("just short of it", 2, &[0, 10], 59, Some(60)),
            ("open exactly then", 2, &[0, 10], 60, None),
            ("no burst at the full hour", 2, &[0, 50, 60], 61, Some(110)),
            ("one an hour", 1, &[0], 1, Some(60)),
            ("off", 0, &[0, 0, 0], 0, None),
            ("clock set back", 2, &[600, 600], 0, None),
        ];
        for (name, limit, calls, now, expected) in cases {
            let next = made(*limit, calls).next_allowed(*limit, minutes(*now));
            assert_eq!(next, expected.map(minutes), "{name}");
        }
    }

    #[test]
    fn what_is_left_of_the_window_is_known() {
        for (name, calls, now, remaining, frees_at) in [
            ("nothing made", &[][..], 0, 3, None),
            ("room left", &[0, 10], 11, 1, Some(60)),
            ("full", &[0, 10, 20], 21, 0, Some(60)),
            ("the oldest has left", &[0, 10, 20], 60, 1, Some(70)),
        ] {
            let rate = made(3, calls);
            let left = (rate.remaining(3, minutes(now)), rate.frees_at(minutes(now)));
            assert_eq!(left, (remaining, frees_at.map(minutes)), "{name}");
        }
        assert_eq!(made(3, &[0, 1, 2]).remaining(2, minutes(3)), 0, "a lower limit");
    }

    #[test]
    fn a_lower_limit_counts_the_calls_made_under_a_higher_one() {
        let rate = made(5, &[0, 10, 20, 30]);
        assert_eq!(rate.next_allowed(2, minutes(31)), Some(minutes(80)));
        assert_eq!(rate.next_allowed(5, minutes(31)), None);
    }

    #[test]
    fn it_is_stored_and_read_leniently() {
        let rate = made(3, &[0, 1]);
        let stored = serde_json::to_value(&rate).unwrap();
        assert_eq!(stored, json!({"calls": ["2026-11-16T08:00:00.000Z", "2026-11-16T08:01:00.000Z"]}));
        assert_eq!(serde_json::from_value::<Rate>(stored).unwrap(), rate);
        for (odd, calls) in [
            (json!({}), vec![]),
            (json!({"calls": null}), vec![]),
            (json!({"calls": 7, "colour": "red"}), vec![]),
            (
                json!({"calls": [null, "soon", "2026-11-16T08:00:00Z", 1_794_816_001]}),
                vec![NOW, NOW.plus_ms(1000)],
            ),
        ] {
            assert_eq!(serde_json::from_value::<Rate>(odd.clone()).unwrap().calls, calls, "{odd}");
        }
    }

    proptest! {
        #[test]
        fn never_more_than_allowed_in_any_hour(limit in 1u64..6, steps in proptest::collection::vec(0i64..40, 1..60)) {
            let (mut rate, mut now, mut calls) = (Rate::default(), NOW, Vec::new());
            for step in steps {
                now = now.plus_ms(step * 60_000);
                let restarted = serde_json::to_string(&rate).unwrap();
                rate = serde_json::from_str(&restarted).unwrap();
                if let Some(next) = rate.next_allowed(limit, now) {
                    prop_assert!(next > now && next - now <= HOUR_MS);
                    prop_assert!(rate.next_allowed(limit, next.plus_ms(-1)).is_some());
                    now = next;
                }
                prop_assert_eq!(rate.next_allowed(limit, now), None);
                rate.record(limit, now);
                calls.push(now);
                let recent = calls.iter().filter(|at| now - **at < HOUR_MS).count() as u64;
                prop_assert!(recent <= limit);
                prop_assert!(rate.calls.len() as u64 <= limit);
            }
        }

        #[test]
        fn no_clock_blocks_longer_than_an_hour(limit in 0u64..4, calls in proptest::collection::vec(any::<i64>(), 0..8), now in any::<i64>()) {
            let mut rate = Rate { calls: calls.into_iter().map(Stamp).collect() };
            if let Some(next) = rate.next_allowed(limit, Stamp(now)) {
                prop_assert!(next - Stamp(now) <= HOUR_MS);
            }
            rate.record(limit, Stamp(now));
            prop_assert!(rate.calls.len() as u64 <= limit);
        }
    }
}
