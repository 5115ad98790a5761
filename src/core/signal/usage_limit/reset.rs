//! When a usage limit resets, in the forms agent programs state it.

use crate::core::time::Stamp;
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeDelta, TimeZone, Utc};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reset {
    At(Stamp),
    /// The next such time of day, or the one on `date` (month and day). Without a zone it is the user's own.
    Clock {
        time: NaiveTime,
        date: Option<(u32, u32)>,
        zone: Option<String>,
    },
    /// From the moment of the message.
    In {
        minutes: u64,
    },
}

/// The program states the minute and means any second in it, and some time passes until the message is read: a time
/// this recent is over, and not due again tomorrow.
const JUST_PASSED_MS: i64 = 120_000;
const MAX_PHRASE_BYTES: usize = 120;

/// Parses Unix seconds or milliseconds.
pub fn epoch(text: &str) -> Option<Reset> {
    let number: i64 = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())??;
    match text.len() {
        10 => Some(Reset::At(Stamp(number * 1000))),
        13 => Some(Reset::At(Stamp(number))),
        _ => None,
    }
}

/// Returns what follows "resets", "will reset at", "try again" or "you will regain access", if the text is such a
/// phrase.
pub fn phrase(text: &str) -> Option<&str> {
    const SUBJECT: [&str; 11] =
        ["your", "the", "it", "session", "weekly", "usage", "opus", "limit", "limits", "quota", "will"];
    if text.len() > MAX_PHRASE_BYTES {
        return None;
    }
    if let Some(when) = text.strip_prefix("You will regain access ") {
        return Some(when);
    }
    let mut rest = text;
    loop {
        let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        match word.to_ascii_lowercase().as_str() {
            "reset" | "resets" => return Some(behind),
            "try" if rest == text => return behind.strip_prefix("again "),
            word if SUBJECT.contains(&word) => rest = behind,
            _ => return None,
        }
    }
}

/// Parses "3pm (Europe/Berlin)", "9:30 AM", "Oct 6, 1pm", "Dec 17 at 6am (UTC)", "in 4h 51m", "2026-04-01 at 00:00 UTC".
pub fn when(text: &str) -> Option<Reset> {
    let (text, zone) = match text.split_once('(') {
        Some((time, behind)) => (time, Some(behind.split_once(')')?.0.trim().to_owned())),
        None => (text, None),
    };
    let text = text.to_lowercase();
    let words: Vec<&str> =
        text.split([' ', ',']).filter(|word| !matches!(*word, "" | "at" | "on" | "today")).collect();
    let (date, time) = match words.as_slice() {
        ["in" | "after", span @ ..] => return minutes(&span.concat()).map(|minutes| Reset::In { minutes }),
        [date, time, "utc"] => {
            let moment = NaiveDateTime::parse_from_str(&format!("{date} {time}"), "%Y-%m-%d %H:%M").ok()?;
            return Some(Reset::At(Stamp(moment.and_utc().timestamp_millis())));
        }
        [month, day, time @ ..] if month.starts_with(char::is_alphabetic) => {
            let day = day.trim_end_matches(char::is_alphabetic);
            // Any leap year, to accept 29 February.
            let date = NaiveDate::parse_from_str(&format!("{month} {day} 2000"), "%b %d %Y").ok()?;
            let is_year = |word: &&str| word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit());
            (Some((date.month(), date.day())), &time[usize::from(time.first().is_some_and(is_year))..])
        }
        time => (None, time),
    };
    // A date alone begins at midnight.
    let time = if time.is_empty() && date.is_some() { NaiveTime::MIN } else { clock(&time.concat())? };
    Some(Reset::Clock { time, date, zone: zone.filter(|zone| !zone.is_empty()) })
}

/// Parses "3pm", "3:45pm" and "15:30".
fn clock(text: &str) -> Option<NaiveTime> {
    let text = match text.contains(':') {
        true => text.to_owned(),
        false => text.replace("am", ":00am").replace("pm", ":00pm"),
    };
    ["%I:%M%P", "%H:%M"].iter().find_map(|format| NaiveTime::parse_from_str(&text, format).ok())
}

/// Parses "30h", "4h51m", "8h44m7s" and "2days17hours14minutes". Seconds are a minute begun.
fn minutes(mut text: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut sum = 0;
    while !text.is_empty() {
        let (count, rest) = text.split_at(text.find(char::is_alphabetic)?);
        let (unit, behind) = rest.split_at(rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len()));
        let count: u64 = count.parse().ok().filter(|count| *count < 100_000)?;
        sum += match unit {
            "s" | "second" | "seconds" => count.div_ceil(60),
            "m" | "minute" | "minutes" => count,
            "h" | "hour" | "hours" => count * 60,
            "d" | "day" | "days" => count * 24 * 60,
            _ => return None,
        };
        text = behind;
    }
    Some(sum.max(1))
}

impl Reset {
    /// Returns the name of the zone the time was stated in.
    pub fn zone(&self) -> Option<&str> {
        match self {
            Reset::Clock { zone, .. } => zone.as_deref(),
            _ => None,
        }
    }

    /// Returns the moment this means if no table of time zones is needed to tell.
    pub fn without_zones(&self, now: Stamp) -> Option<Stamp> {
        let is_plain = match self {
            Reset::Clock { zone, .. } => matches!(zone.as_deref(), Some("UTC" | "Etc/UTC" | "GMT")),
            Reset::At(_) | Reset::In { .. } => true,
        };
        is_plain.then(|| self.resolve(now, &Utc)).flatten()
    }

    /// Returns the moment this means as of `now`, in `zone`.
    pub fn resolve<Z: TimeZone>(&self, now: Stamp, zone: &Z) -> Option<Stamp> {
        let (time, date) = match self {
            Reset::At(at) => return Some(*at),
            Reset::In { minutes } => {
                let ms = i64::try_from(*minutes).unwrap_or(i64::MAX).saturating_mul(60_000);
                return Some(now.plus_ms(ms));
            }
            Reset::Clock { time, date, .. } => (*time, *date),
        };
        let utc = DateTime::from_timestamp_millis(now.0)?.naive_utc();
        let today = utc.checked_add_offset(zone.offset_from_utc_datetime(&utc).fix())?.date();
        let at = |date: NaiveDate| {
            let local = date.and_time(time);
            // Of a time that occurs twice the later is meant: better to wait an hour too long than to try too early.
            // One that the clocks skip is an hour later.
            let moment = zone.from_local_datetime(&local).latest().or_else(|| {
                zone.from_local_datetime(&local.checked_add_signed(TimeDelta::hours(1))?).latest()
            })?;
            Some(Stamp(moment.timestamp_millis()))
        };
        match date {
            None => {
                let days = (-1..=2).filter_map(|ahead| today.checked_add_signed(TimeDelta::days(ahead)));
                days.filter_map(at).find(|at| now - *at <= JUST_PASSED_MS)
            }
            // No limit lasts half a year, so the nearest such date is meant, also if it is over.
            Some((month, day)) => {
                let years = (-1..=1).filter_map(|ahead| today.year().checked_add(ahead));
                let dates = years.filter_map(|year| NaiveDate::from_ymd_opt(year, month, day));
                dates.filter_map(at).min_by_key(|at| (*at - now).saturating_abs())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{FixedOffset, Timelike};
    use chrono_tz::Tz;
    use proptest::prelude::*;

    fn clock(hour: u32, minute: u32, date: Option<(u32, u32)>) -> Reset {
        Reset::Clock { time: NaiveTime::from_hms_opt(hour, minute, 0).unwrap(), date, zone: None }
    }

    #[test]
    fn a_stated_time_becomes_a_moment() {
        let (utc, berlin, kolkata) = (Tz::UTC, Tz::Europe__Berlin, Tz::Asia__Kolkata);
        let cases = [
            ("later today", clock(15, 0, None), utc, "2026-11-16T08:00:00Z", "2026-11-16T15:00:00Z"),
            ("past today", clock(15, 0, None), utc, "2026-11-16T16:00:00Z", "2026-11-17T15:00:00Z"),
            ("this minute", clock(15, 0, None), utc, "2026-11-16T15:00:14Z", "2026-11-16T15:00:00Z"),
            ("a while ago", clock(15, 0, None), utc, "2026-11-16T15:02:01Z", "2026-11-17T15:00:00Z"),
            ("over midnight", clock(23, 59, None), utc, "2026-11-17T00:00:30Z", "2026-11-16T23:59:00Z"),
            ("midnight", clock(0, 0, None), utc, "2026-11-16T08:00:00Z", "2026-11-17T00:00:00Z"),
            ("a zone", clock(15, 0, None), berlin, "2026-11-16T08:00:00Z", "2026-11-16T14:00:00Z"),
            ("in summer", clock(15, 0, None), berlin, "2026-07-16T08:00:00Z", "2026-07-16T13:00:00Z"),
            ("tomorrow there", clock(0, 30, None), berlin, "2026-07-16T22:10:00Z", "2026-07-16T22:30:00Z"),
            ("far east", clock(1, 0, None), kolkata, "2026-11-16T18:00:00Z", "2026-11-16T19:30:00Z"),
            (
                "skipped by the clocks",
                clock(2, 30, None),
                berlin,
                "2026-03-29T00:00:00Z",
                "2026-03-29T01:30:00Z",
            ),
            ("after the change", clock(4, 0, None), berlin, "2026-03-28T23:30:00Z", "2026-03-29T02:00:00Z"),
            ("twice: the later", clock(2, 30, None), berlin, "2026-10-24T23:30:00Z", "2026-10-25T01:30:00Z"),
            ("a date", clock(13, 0, Some((11, 20))), utc, "2026-11-16T08:00:00Z", "2026-11-20T13:00:00Z"),
            ("next year", clock(13, 0, Some((1, 2))), utc, "2026-12-30T08:00:00Z", "2027-01-02T13:00:00Z"),
            (
                "a date just over",
                clock(13, 0, Some((11, 16))),
                utc,
                "2026-11-16T18:00:00Z",
                "2026-11-16T13:00:00Z",
            ),
            (
                "last year's",
                clock(13, 0, Some((12, 31))),
                utc,
                "2027-01-01T08:00:00Z",
                "2026-12-31T13:00:00Z",
            ),
            ("a leap day", clock(0, 0, Some((2, 29))), utc, "2028-02-20T08:00:00Z", "2028-02-29T00:00:00Z"),
            (
                "a moment",
                Reset::At(Stamp(1_794_816_000_000)),
                utc,
                "2027-01-01T00:00:00Z",
                "2026-11-16T08:00:00Z",
            ),
            ("a span", Reset::In { minutes: 291 }, utc, "2026-11-16T08:00:00Z", "2026-11-16T12:51:00Z"),
        ];
        for (name, reset, zone, now, expected) in cases {
            let moment = reset.resolve(Stamp::parse(now).unwrap(), &zone);
            assert_eq!(moment, Stamp::parse(expected), "{name}");
        }
    }

    #[test]
    fn a_time_that_does_not_exist_is_no_moment() {
        let now = Stamp(1_794_816_000_000);
        assert_eq!(clock(1, 0, Some((2, 30))).resolve(now, &Tz::UTC), None, "no such day");
        assert_eq!(clock(1, 0, Some((2, 29))).resolve(now, &Tz::UTC), None, "no leap day near");
        assert_eq!(clock(1, 0, None).resolve(Stamp(i64::MAX), &Tz::UTC), None, "the end of the calendar");
        assert_eq!(Reset::In { minutes: u64::MAX }.resolve(now, &Tz::UTC), Some(Stamp(i64::MAX)));
    }

    proptest! {
        #[test]
        fn a_time_of_day_is_within_a_day(hour in 0u32..24, minute in 0u32..60, now in 0i64..4_000_000_000_000, east in -50_400i32..50_400) {
            let zone = FixedOffset::east_opt(east).unwrap();
            let moment = clock(hour, minute, None).resolve(Stamp(now), &zone).unwrap();
            prop_assert!(moment - Stamp(now) >= -JUST_PASSED_MS && moment - Stamp(now) <= 86_400_000 - JUST_PASSED_MS);
            let shown = DateTime::from_timestamp_millis(moment.0).unwrap().with_timezone(&zone);
            prop_assert_eq!((shown.hour(), shown.minute(), shown.second()), (hour, minute, 0));
        }

        #[test]
        fn no_moment_or_date_panics(now in any::<i64>(), month in any::<u32>(), day in any::<u32>(), east in -86_399i32..86_400) {
            let zone = FixedOffset::east_opt(east).unwrap();
            for now in [now, 8_210_266_876_799_999 - now.rem_euclid(100_000_000), -8_334_601_228_800_000 + now.rem_euclid(100_000_000)] {
                for date in [None, Some((month, day)), Some((month % 13, day % 32))] {
                    clock(0, 0, date).resolve(Stamp(now), &zone);
                    clock(0, 0, date).resolve(Stamp(now), &Tz::Europe__Berlin);
                }
            }
        }
    }
}
