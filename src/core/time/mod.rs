//! Points in time as whole milliseconds, and durations as people read them.
//!
//! Integers keep sums exact: the same work gives the same runtime however many hooks measured it.

pub mod duration;
pub mod heartbeat;
pub mod outage;
pub mod rate;
pub mod runtime;
pub mod sleep;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::fmt;
use std::ops::Sub;

/// The years 0 to 9999, which RFC 3339 can write.
const CALENDAR_MS: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_300_799_999;

/// Milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub i64);

impl Stamp {
    pub fn from_seconds(seconds: f64) -> Self {
        Stamp((seconds * 1000.0).round() as i64)
    }

    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// Parses RFC 3339 with any offset, or Unix seconds.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(time) = DateTime::parse_from_rfc3339(text) {
            return Stamp(time.timestamp_millis()).in_calendar();
        }
        text.parse::<f64>().ok().filter(|s| s.is_finite()).and_then(|s| Stamp::from_seconds(s).in_calendar())
    }

    /// Reads a moment as Claude Code writes it: seconds or milliseconds since 1970, or RFC 3339.
    pub fn of_client(value: &Value) -> Option<Self> {
        /// A larger number cannot be seconds.
        const MAX_SECONDS: f64 = 1e11;
        let number = |at: f64| if at > MAX_SECONDS { Stamp(at as i64) } else { Stamp::from_seconds(at) };
        match value {
            Value::String(text) => Stamp::parse(text),
            value => value.as_f64().filter(|at| *at > 0.0).map(number).and_then(Stamp::in_calendar),
        }
    }

    fn in_calendar(self) -> Option<Self> {
        Some(self).filter(|stamp| CALENDAR_MS.contains(&stamp.0))
    }

    pub fn rfc3339(self) -> String {
        self.utc().to_rfc3339_opts(SecondsFormat::Millis, true)
    }

    /// Returns `2026-11-16 08:05 UTC`, for people.
    pub fn minute(self) -> String {
        self.utc().format("%Y-%m-%d %H:%M UTC").to_string()
    }

    /// Returns `2026-11-16`, in UTC.
    pub fn date(self) -> String {
        self.utc().format("%Y-%m-%d").to_string()
    }

    /// Returns `20261116T080512345`, for file names.
    pub fn compact(self) -> String {
        self.utc().format("%Y%m%dT%H%M%S%3f").to_string()
    }

    pub fn plus_ms(self, ms: i64) -> Self {
        Stamp(self.0.saturating_add(ms))
    }

    fn utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0).unwrap_or_default()
    }
}

/// Returns the milliseconds from `rhs` to `self`; negative if the clock was set back.
impl Sub for Stamp {
    type Output = i64;

    fn sub(self, rhs: Stamp) -> i64 {
        self.0.saturating_sub(rhs.0)
    }
}

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.rfc3339())
    }
}

impl<'de> Deserialize<'de> for Stamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Time;
        impl Visitor<'_> for Time {
            type Value = Option<Stamp>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("RFC 3339 or Unix seconds")
            }

            fn visit_str<E>(self, text: &str) -> Result<Option<Stamp>, E> {
                Ok(Stamp::parse(text))
            }

            fn visit_f64<E>(self, seconds: f64) -> Result<Option<Stamp>, E> {
                Ok(Stamp::from_seconds(seconds).in_calendar())
            }

            fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Option<Stamp>, E> {
                self.visit_f64(seconds as f64)
            }

            fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Option<Stamp>, E> {
                self.visit_f64(seconds as f64)
            }
        }
        let stamp = deserializer.deserialize_any(Time)?;
        stamp.ok_or_else(|| de::Error::custom("not a time: expected RFC 3339 or Unix seconds"))
    }
}

/// Formats hours with one decimal, as in `Runtime: 3.2h/9.0h`.
pub fn hours(ms: i64) -> String {
    format!("{:.1}h", ms.max(0) as f64 / 3_600_000.0)
}

/// Formats a duration as people say it: `45s`, `12m`, `3h 12m`, `2d 5h`.
pub fn span(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    let (large, small) = match seconds {
        0..60 => (format!("{seconds}s"), String::new()),
        60..3600 => (format!("{}m", seconds / 60), String::new()),
        3600..172_800 => (format!("{}h", seconds / 3600), format!(" {}m", seconds / 60 % 60)),
        _ => (format!("{}d", seconds / 86_400), format!(" {}h", seconds / 3600 % 24)),
    };
    if small.starts_with(" 0") { large } else { large + &small }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_offset_and_unix_seconds_are_parsed() {
        let expected = Some(Stamp(1_794_816_000_000));
        for text in [
            "2026-11-16T08:00:00Z",
            "2026-11-16T10:00:00+02:00",
            "2026-11-16T08:00:00.000Z",
            "1794816000",
            " 1794816000.0 ",
        ] {
            assert_eq!(Stamp::parse(text), expected, "{text}");
        }
        for text in [
            "",
            "yesterday",
            "NaN",
            "inf",
            "2026-13-01T00:00:00Z",
            "1794816000000",
            "-1e11",
            "9999-12-31T23:59:59-01:00",
        ] {
            assert_eq!(Stamp::parse(text), None, "{text}");
        }
    }

    #[test]
    fn durations_read_as_people_say_them() {
        for (ms, expected) in [
            (-5, "0s"),
            (45_900, "45s"),
            (59_999, "59s"),
            (60_000, "1m"),
            (12 * 60_000, "12m"),
            (3_599_999, "59m"),
            (3_600_000, "1h"),
            (11_520_000, "3h 12m"),
            (172_799_999, "47h 59m"),
            (172_800_000, "2d"),
            (5 * 86_400_000 + 4 * 3_600_000, "5d 4h"),
        ] {
            assert_eq!(span(ms), expected, "{ms}");
        }
        assert_eq!((hours(11_520_000), hours(-5)), ("3.2h".into(), "0.0h".into()));
    }

    #[test]
    fn a_moment_is_written_for_machines_people_and_file_names() {
        let moment = Stamp(1_794_816_312_345);
        assert_eq!(moment.rfc3339(), "2026-11-16T08:05:12.345Z");
        assert_eq!(moment.minute(), "2026-11-16 08:05 UTC");
        assert_eq!(moment.compact(), "20261116T080512345");
        assert_eq!(moment.seconds(), 1_794_816_312.345);
        assert_eq!(Stamp::from_seconds(moment.seconds()), moment);
    }

    #[test]
    fn moments_differ_by_milliseconds_and_never_overflow() {
        let (early, late) = (Stamp(5_000), Stamp(7_500));
        assert_eq!((late - early, early - late, early.plus_ms(2_500)), (2_500, -2_500, late));
        assert_eq!((Stamp(i64::MAX) - Stamp(-1), Stamp(i64::MAX).plus_ms(1)), (i64::MAX, Stamp(i64::MAX)));
    }

    #[test]
    fn json_holds_a_moment_as_text_or_seconds() {
        let moment = Stamp(1_794_816_000_000);
        assert_eq!(serde_json::to_string(&moment).unwrap(), "\"2026-11-16T08:00:00.000Z\"");
        for json in ["1794816000", "\"2026-11-16T08:00:00Z\"", "\"2026-11-16T08:00:00\\u005a\""] {
            assert_eq!(serde_json::from_str::<Stamp>(json).unwrap(), moment, "{json}");
        }
        let wrong = serde_json::from_str::<Stamp>("\"soon\"").unwrap_err().to_string();
        assert!(wrong.contains("expected RFC 3339 or Unix seconds"), "{wrong}");
    }
}
