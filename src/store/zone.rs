//! Time zones: by name from the system's database or the one built in, and the user's own.
//!
//! `jiff` for it: it reads the system's database, finds the local zone on every platform, and brings its own
//! data for where there is none (slim containers, Windows), in a quarter of a megabyte. `chrono-tz` would be
//! two, and does not know the local zone. Only `ralph run` calls this, so the hooks do not carry it.

use crate::core::signal::Reset;
use crate::core::time::Stamp;
use chrono::{Datelike, NaiveDateTime, Timelike};
use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// When a limit ends; nothing where that cannot be told.
pub fn moment(reset: &Reset, now: Stamp) -> Option<Stamp> {
    reset.resolve(now, offset)
}

/// Seconds east of UTC at a local time in the zone of that name, without a name in the user's own.
///
/// A time that the clocks skip has the offset before the change. Of one that comes twice the later is
/// meant: to wait an hour too long is better than to come too early and take the next for tomorrow's.
pub fn offset(zone: Option<&str>, local: NaiveDateTime) -> Option<i32> {
    let zone = match zone {
        Some(name) => named(name.trim())?,
        None => TimeZone::system(),
    };
    let small = |number: u32| i8::try_from(number).ok();
    let (year, month, day) = (i16::try_from(local.year()).ok()?, small(local.month())?, small(local.day())?);
    let (hour, minute, second) = (small(local.hour())?, small(local.minute())?, small(local.second())?);
    let civil = DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    let moment = zone.to_ambiguous_timestamp(civil).later().ok()?;
    i32::try_from(local.and_utc().timestamp() - moment.as_second()).ok()
}

/// The system's data are newer than ours, but may lack names that programs still say: Debian packs the old ones
/// (Asia/Calcutta) apart.
fn named(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).or_else(|_| TimeZoneDatabase::bundled().get(name)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::signal::usage_limit;

    fn at(zone: Option<&str>, local: &str) -> Option<i32> {
        offset(zone, local.parse().unwrap())
    }

    #[test]
    fn offsets() {
        for (zone, local, expected) in [
            ("Europe/Berlin", "2026-01-16T12:00:00", Some(3600)),
            ("Europe/Berlin", "2026-07-16T12:00:00", Some(7200)),
            ("europe/berlin", "2026-07-16T12:00:00", Some(7200)),
            ("Asia/Calcutta", "2026-07-16T12:00:00", Some(19_800)),
            ("America/New_York", "2026-03-08T02:30:00", Some(-18_000)),
            ("America/New_York", "2026-03-08T03:00:00", Some(-14_400)),
            ("America/New_York", "2026-11-01T01:30:00", Some(-18_000)),
            ("America/New_York", "2060-07-01T00:00:00", Some(-14_400)),
            ("UTC", "2026-07-16T12:00:00", Some(0)),
            ("GMT", "2026-07-16T12:00:00", Some(0)),
            ("Etc/GMT+5", "2026-07-16T12:00:00", Some(-18_000)),
            ("Mars/Olympus", "2026-07-16T12:00:00", None),
            ("../../etc/passwd", "2026-07-16T12:00:00", None),
            ("/etc/localtime", "2026-07-16T12:00:00", None),
            ("", "2026-07-16T12:00:00", None),
            ("UTC", "+99999-01-01T00:00:00", None),
        ] {
            assert_eq!(at(Some(zone), local), expected, "{zone} {local}");
        }
        let own = at(None, "2026-07-16T12:00:00").expect("there is always a zone, be it UTC");
        assert!(own.abs() <= 14 * 3600);
    }

    #[test]
    fn from_the_programs_message_to_the_moment() {
        for (text, now, expected) in [
            (
                "You've hit your 5-hour limit · resets 1pm (UTC)",
                "2026-11-16T12:00:43Z",
                "2026-11-16T13:00:00Z",
            ),
            (
                "You've hit your session limit · resets 3:45pm (Europe/Berlin)",
                "2026-07-16T20:00:00Z",
                "2026-07-17T13:45:00Z",
            ),
            (
                "You've hit your session limit · resets 2:30am (America/New_York)",
                "2026-03-08T05:00:00Z",
                "2026-03-08T07:30:00Z",
            ),
            (
                "You've hit your session limit · resets 1:30am (America/New_York)",
                "2026-11-01T05:45:00Z",
                "2026-11-01T06:30:00Z",
            ),
            (
                "You've hit your weekly limit · resets Nov 21, 6pm (America/Toronto)",
                "2026-11-16T12:00:00Z",
                "2026-11-21T23:00:00Z",
            ),
        ] {
            let reset = usage_limit(text).unwrap().resets.unwrap();
            assert_eq!(moment(&reset, Stamp::parse(now).unwrap()), Stamp::parse(expected), "{text}");
        }
    }
}
