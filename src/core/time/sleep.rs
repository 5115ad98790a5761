//! Sleep of the machine, which is no runtime. The system tells how long it was, not when: nothing is written while the machine
//! sleeps, so it is taken out of the longest gaps between two entries. What remains is a line of time on which the machine
//! never slept.
//!
//! The system counts from its start. After a restart the figure is smaller than the truth, so that too little is left out and
//! never too much.

use super::Stamp;
use super::runtime::TimedEvent;
use std::borrow::Cow;
use std::cmp::Reverse;

/// How long the machine slept between two hooks, and in the loop before the first of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sleep {
    pub ms: i64,
    pub earlier_ms: i64,
}

impl Sleep {
    /// Returns the sleep between two moments, each with the system's figure then. A figure that is unknown tells nothing.
    pub fn between((from, mark): (Stamp, Option<i64>), (to, figure): (Stamp, Option<i64>)) -> Sleep {
        let ms = figure.zip(mark).map_or(0, |(figure, mark)| figure.saturating_sub(mark));
        Sleep { ms: ms.clamp(0, (to - from).max(0)), earlier_ms: 0 }
    }

    pub fn total_ms(&self) -> i64 {
        self.earlier_ms.saturating_add(self.ms)
    }

    /// Returns a moment up to the first of the two hooks; no mark stays none.
    pub fn awake_before(&self, at: Stamp) -> Stamp {
        if at == Stamp(0) { at } else { at.plus_ms(-self.earlier_ms) }
    }

    /// Returns the entries and `now` without the sleep.
    pub fn leave_out<'a>(
        &self,
        entries: &'a [TimedEvent],
        mark: Stamp,
        now: Stamp,
    ) -> (Cow<'a, [TimedEvent]>, Stamp) {
        if self.total_ms() == 0 {
            return (Cow::Borrowed(entries), now);
        }
        let steps = self.steps(entries, mark, now);
        let slept_by = |at: Stamp| {
            let passed = steps.partition_point(|(end, _)| *end <= at);
            passed.checked_sub(1).map_or(0, |last| steps[last].1)
        };
        let awake = |at: Stamp| at.plus_ms(-self.earlier_ms.saturating_add(slept_by(at)));
        let moved = entries.iter().map(|entry| TimedEvent { at: awake(entry.at), ..entry.clone() });
        (moved.collect(), now.plus_ms(-self.total_ms()))
    }

    /// Returns the ends of the gaps in which the machine slept, oldest first, with what it had slept by then.
    fn steps(&self, entries: &[TimedEvent], mark: Stamp, now: Stamp) -> Vec<(Stamp, i64)> {
        if self.ms == 0 {
            return Vec::new();
        }
        let mut times: Vec<Stamp> = entries.iter().map(|entry| entry.at.clamp(mark, now)).collect();
        times.extend([mark, now]);
        times.sort_unstable();
        let mut gaps: Vec<(Stamp, i64)> =
            times.windows(2).map(|pair| (pair[1], pair[1] - pair[0])).filter(|(_, gap)| *gap > 0).collect();
        gaps.sort_by_key(|(_, gap)| Reverse(*gap));
        let mut left = self.ms;
        let mut steps: Vec<(Stamp, i64)> = Vec::new();
        for (end, gap) in gaps {
            let part = gap.min(left);
            left -= part;
            steps.push((end, part));
            if left == 0 {
                break;
            }
        }
        steps.sort_by_key(|(end, _)| *end);
        let mut total = 0;
        for (_, slept) in &mut steps {
            total += *slept;
            *slept = total;
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::runtime::TranscriptEvent;
    use proptest::prelude::*;

    fn at(seconds: i64) -> Stamp {
        Stamp(1_000_000_000 + seconds * 1000)
    }

    fn entries(seconds: &[i64]) -> Vec<TimedEvent> {
        seconds.iter().map(|&second| TimedEvent { at: at(second), event: TranscriptEvent::Sent }).collect()
    }

    fn seconds(of: &[TimedEvent]) -> Vec<i64> {
        of.iter().map(|entry| (entry.at - at(0)) / 1000).collect()
    }

    #[test]
    fn sleep_is_what_the_systems_figure_grew_by() {
        let between = |mark, figure| Sleep::between((at(0), mark), (at(100), figure)).ms;
        assert_eq!(between(Some(5_000), Some(25_000)), 20_000);
        assert_eq!(between(Some(0), Some(500_000)), 100_000, "no more than the time that passed");
        assert_eq!(between(Some(25_000), Some(5_000)), 0, "the machine was restarted");
        assert_eq!((between(None, Some(5)), between(Some(5), None)), (0, 0), "unknown");
        let set_back = Sleep::between((at(100), Some(0)), (at(0), Some(9_000)));
        assert_eq!(set_back.ms, 0, "a clock that was set back");
    }

    #[test]
    fn a_night_falls_into_the_longest_gap() {
        let night = Sleep { ms: 28_000_000, earlier_ms: 0 };
        let told = entries(&[10, 20, 28_100, 28_110]);
        let (awake, now) = night.leave_out(&told, at(0), at(28_200));
        assert_eq!((seconds(&awake), now), (vec![10, 20, 100, 110], at(200)));
        let (none, now) = night.leave_out(&[], at(0), at(28_200));
        assert_eq!((none.len(), now), (0, at(200)));
    }

    #[test]
    fn two_nights_fall_into_two_gaps_and_earlier_ones_move_everything() {
        let nights = Sleep { ms: 1_500_000, earlier_ms: 7_000 };
        let told = entries(&[-5, 10, 1010, 1020, 1620]);
        let (awake, now) = nights.leave_out(&told, at(0), at(1630));
        assert_eq!((seconds(&awake), now), (vec![-12, 3, 3, 13, 113], at(123)));
    }

    proptest! {
        #[test]
        fn no_two_entries_change_places_and_no_time_is_added(
            told in prop::collection::vec(0i64..5000, 0..20), slept in 0i64..5000, earlier in 0i64..100,
        ) {
            let sleep = Sleep { ms: slept * 1000, earlier_ms: earlier * 1000 };
            let mut told = entries(&told);
            told.sort_by_key(|entry| entry.at);
            let (awake, now) = sleep.leave_out(&told, at(0), at(5000));
            prop_assert_eq!(now, at(5000 - slept - earlier));
            prop_assert!(awake.is_sorted_by_key(|entry| entry.at) && awake.iter().all(|entry| entry.at <= now));
            for (pair, before) in awake.windows(2).zip(told.windows(2)) {
                prop_assert!(pair[1].at - pair[0].at <= before[1].at - before[0].at);
            }
        }
    }
}
