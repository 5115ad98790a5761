//! When a stated reset is, on the calendar of the zone it was stated in.

use super::reset::{Day, Reset};
use crate::core::time::Stamp;
use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};

/// The program states the minute and means any second in it, and some time passes until it is read: what
/// was stated for this long ago is over, and not due again tomorrow.
const JUST_PASSED: i64 = 120_000;

impl Reset {
    /// The moment meant by it, as of `now`. `zone_offset` gives the seconds east of UTC of a zone, or of
    /// the user's own, at a local time; for a time that the clocks skip, the offset before they did.
    pub fn resolve(
        &self,
        now: Stamp,
        zone_offset: impl Fn(Option<&str>, NaiveDateTime) -> Option<i32>,
    ) -> Option<Stamp> {
        let (hour, minute, zone, day) = match self {
            Reset::At(at) => return Some(*at),
            Reset::In { minutes } => {
                let ms = i64::try_from(*minutes).unwrap_or(i64::MAX).saturating_mul(60_000);
                return Some(now.plus_ms(ms));
            }
            Reset::Clock { hour, minute, zone, day } => (*hour, *minute, zone.as_deref(), *day),
        };
        let time = NaiveTime::from_hms_opt(hour.into(), minute.into(), 0)?;
        let offset = |local| zone_offset(zone, local).map(|seconds| TimeDelta::seconds(seconds.into()));
        let at = |date: NaiveDate| {
            let local = date.and_time(time);
            Some(Stamp(local.checked_sub_signed(offset(local)?)?.and_utc().timestamp_millis()))
        };
        let utc = DateTime::from_timestamp_millis(now.0)?.naive_utc();
        // The offset is asked for by local time, which is known only with the offset: the second answer is
        // right but within an hour of a change.
        let near = utc.checked_add_signed(offset(utc)?)?;
        let today = utc.checked_add_signed(offset(near)?)?.date();
        let coming = |mut days: std::ops::Range<u64>, wanted: &dyn Fn(NaiveDate) -> bool| {
            let yesterday = today.pred_opt()?;
            let dates = |ahead| yesterday.checked_add_days(Days::new(ahead)).filter(|date| wanted(*date));
            days.find_map(|ahead| dates(ahead).and_then(at).filter(|at| now - *at <= JUST_PASSED))
        };
        match day {
            None => coming(0..4, &|_| true),
            Some(Day::Tomorrow) => at(today.succ_opt()?),
            Some(Day::Weekday(weekday)) => coming(0..10, &|date| date.weekday() == weekday),
            Some(Day::Date { year: Some(year), month, day }) => {
                at(NaiveDate::from_ymd_opt(year, month.into(), day.into())?)
            }
            // No limit lasts for half a year: of the days with that name the nearest is meant, also where
            // it is over.
            Some(Day::Date { year: None, month, day }) => (-1..=1)
                .filter_map(|ahead| {
                    NaiveDate::from_ymd_opt(today.year().checked_add(ahead)?, month.into(), day.into())
                })
                .filter_map(at)
                .min_by_key(|at| (*at - now).saturating_abs()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{Timelike, Weekday};
    use proptest::prelude::*;

    /// Summer time from 29 March 2026 02:00 to 25 October 2026 03:00, as in Berlin; Kolkata; UTC.
    fn offset(zone: Option<&str>, local: NaiveDateTime) -> Option<i32> {
        let time = |text: &str| text.parse::<NaiveDateTime>().unwrap();
        match zone {
            None => Some(5 * 3600 + 1800),
            Some("UTC") => Some(0),
            Some("Berlin") => {
                let summer = local >= time("2026-03-29T03:00:00") && local < time("2026-10-25T02:00:00");
                Some(if summer { 7200 } else { 3600 })
            }
            Some(_) => None,
        }
    }

    fn clock(hour: u8, minute: u8, zone: &str, day: Option<Day>) -> Reset {
        let zone = Some(zone.to_owned()).filter(|zone| !zone.is_empty());
        Reset::Clock { hour, minute, zone, day }
    }

    fn date(year: Option<i32>, month: u8, day: u8) -> Option<Day> {
        Some(Day::Date { year, month, day })
    }

    #[test]
    fn moments() {
        let monday = Some(Day::Weekday(Weekday::Mon));
        let cases = [
            ("later today", clock(15, 0, "UTC", None), "2026-11-16T08:00:00Z", "2026-11-16T15:00:00Z"),
            ("past today", clock(15, 0, "UTC", None), "2026-11-16T16:00:00Z", "2026-11-17T15:00:00Z"),
            ("this minute", clock(15, 0, "UTC", None), "2026-11-16T15:00:14Z", "2026-11-16T15:00:00Z"),
            ("a while ago", clock(15, 0, "UTC", None), "2026-11-16T15:02:01Z", "2026-11-17T15:00:00Z"),
            ("over midnight", clock(23, 59, "UTC", None), "2026-11-17T00:00:30Z", "2026-11-16T23:59:00Z"),
            ("midnight", clock(0, 0, "UTC", None), "2026-11-16T08:00:00Z", "2026-11-17T00:00:00Z"),
            ("a zone", clock(15, 0, "Berlin", None), "2026-11-16T08:00:00Z", "2026-11-16T14:00:00Z"),
            ("in summer", clock(15, 0, "Berlin", None), "2026-07-16T08:00:00Z", "2026-07-16T13:00:00Z"),
            ("tomorrow there", clock(0, 30, "Berlin", None), "2026-07-16T22:10:00Z", "2026-07-16T22:30:00Z"),
            ("the user's own", clock(1, 0, "", None), "2026-11-16T18:00:00Z", "2026-11-16T19:30:00Z"),
            (
                "skipped by the clocks",
                clock(2, 30, "Berlin", None),
                "2026-03-29T00:00:00Z",
                "2026-03-29T01:30:00Z",
            ),
            ("after the change", clock(4, 0, "Berlin", None), "2026-03-28T23:30:00Z", "2026-03-29T02:00:00Z"),
            (
                "twice: the later",
                clock(2, 30, "Berlin", None),
                "2026-10-24T23:30:00Z",
                "2026-10-25T01:30:00Z",
            ),
            (
                "tomorrow",
                clock(6, 0, "UTC", Some(Day::Tomorrow)),
                "2026-12-31T03:00:00Z",
                "2027-01-01T06:00:00Z",
            ),
            (
                "tomorrow as seen there",
                clock(6, 0, "", Some(Day::Tomorrow)),
                "2026-11-16T20:00:00Z",
                "2026-11-18T00:30:00Z",
            ),
            ("a weekday", clock(9, 0, "UTC", monday), "2026-11-17T08:00:00Z", "2026-11-23T09:00:00Z"),
            ("the same weekday", clock(9, 0, "UTC", monday), "2026-11-16T08:00:00Z", "2026-11-16T09:00:00Z"),
            ("a week on", clock(9, 0, "UTC", monday), "2026-11-16T10:00:00Z", "2026-11-23T09:00:00Z"),
            (
                "a date",
                clock(13, 0, "UTC", date(None, 11, 20)),
                "2026-11-16T08:00:00Z",
                "2026-11-20T13:00:00Z",
            ),
            (
                "next year",
                clock(13, 0, "UTC", date(None, 1, 2)),
                "2026-12-30T08:00:00Z",
                "2027-01-02T13:00:00Z",
            ),
            (
                "a date just over",
                clock(13, 0, "UTC", date(None, 11, 16)),
                "2026-11-16T18:00:00Z",
                "2026-11-16T13:00:00Z",
            ),
            (
                "last year's",
                clock(13, 0, "UTC", date(None, 12, 31)),
                "2027-01-01T08:00:00Z",
                "2026-12-31T13:00:00Z",
            ),
            (
                "a leap day",
                clock(0, 0, "UTC", date(None, 2, 29)),
                "2028-02-20T08:00:00Z",
                "2028-02-29T00:00:00Z",
            ),
            (
                "a whole date",
                clock(0, 0, "UTC", date(Some(2027), 6, 1)),
                "2026-11-16T08:00:00Z",
                "2027-06-01T00:00:00Z",
            ),
            ("a moment", Reset::At(Stamp(1_794_816_000_000)), "2027-01-01T00:00:00Z", "2026-11-16T08:00:00Z"),
            ("a span", Reset::In { minutes: 291 }, "2026-11-16T08:00:00Z", "2026-11-16T12:51:00Z"),
        ];
        for (name, reset, now, expected) in cases {
            let moment = reset.resolve(Stamp::parse(now).unwrap(), offset);
            assert_eq!(moment, Stamp::parse(expected), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_told() {
        let now = Stamp(1_794_816_000_000);
        for (name, reset, now) in [
            ("an unknown zone", clock(15, 0, "Mars/Olympus", None), now),
            ("no such hour", clock(24, 0, "UTC", None), now),
            ("no such day", clock(1, 0, "UTC", date(None, 2, 30)), now),
            ("no leap day near", clock(1, 0, "UTC", date(None, 2, 29)), now),
            ("the end of time", clock(1, 0, "UTC", None), Stamp(i64::MAX)),
        ] {
            assert_eq!(reset.resolve(now, offset), None, "{name}");
        }
        assert_eq!(Reset::In { minutes: u64::MAX }.resolve(now, offset), Some(Stamp(i64::MAX)));
    }

    proptest! {
        #[test]
        fn a_time_of_day_is_within_a_day(hour in 0u8..24, minute in 0u8..60, now in 0i64..4_000_000_000_000, east in -50_400i32..50_400) {
            let now = Stamp(now);
            let moment = clock(hour, minute, "UTC", None).resolve(now, |_, _| Some(east)).unwrap();
            prop_assert!(moment - now >= -JUST_PASSED && moment - now <= 86_400_000 - JUST_PASSED);
            let shown = DateTime::from_timestamp_millis(moment.0 + i64::from(east) * 1000).unwrap();
            prop_assert_eq!((shown.hour(), shown.minute(), shown.second()), (hour.into(), minute.into(), 0));
        }

        #[test]
        fn any_clock_and_offset_are_survived(hour in any::<u8>(), minute in any::<u8>(), now in any::<i64>(), east in any::<i32>(), month in any::<u8>(), day in any::<u8>(), year in any::<i32>()) {
            for day in [None, Some(Day::Tomorrow), Some(Day::Weekday(Weekday::Sun)), date(None, month, day), date(Some(year), month, day)] {
                clock(hour, minute, "UTC", day).resolve(Stamp(now), |_, _| Some(east));
            }
        }
    }
}
