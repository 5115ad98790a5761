//! Time zones, by name and the user's own. The hooks do not need them, so they do not carry the table.

use crate::core::signal::Reset;
use crate::core::time::Stamp;
use chrono_tz::Tz;
use std::io::ErrorKind;
use std::sync::OnceLock;
use std::{env, fs};

/// Returns when a usage limit ends, or `None` if its zone is unknown.
pub fn moment(reset: &Reset, now: Stamp) -> Option<Stamp> {
    let zone = match reset.zone() {
        Some(name) => name.parse().ok()?,
        None => local()?,
    };
    reset.resolve(now, &zone)
}

/// Returns `09:12:33` in the user's zone, or in UTC if it is unknown.
pub fn clock(at: Stamp) -> String {
    shown(at, "%H:%M:%S")
}

/// Returns `2026-11-16 09:12 CET` in the user's zone.
pub fn minute(at: Stamp) -> String {
    shown(at, "%Y-%m-%d %H:%M %Z")
}

fn shown(at: Stamp, format: &str) -> String {
    let utc = chrono::DateTime::from_timestamp_millis(at.0).unwrap_or_default();
    static LOCAL: OnceLock<Tz> = OnceLock::new();
    let zone = LOCAL.get_or_init(|| local().unwrap_or(Tz::UTC));
    utc.with_timezone(zone).format(format).to_string()
}

/// Returns the user's zone: `TZ`, else what `/etc/localtime` links to. Without either it is UTC, as in most containers.
fn local() -> Option<Tz> {
    let name = match env::var("TZ") {
        Ok(name) => name,
        Err(_) => match fs::read_link("/etc/localtime") {
            Ok(path) => path.to_str()?.to_owned(),
            Err(error) => return (error.kind() == ErrorKind::NotFound).then_some(Tz::UTC),
        },
    };
    named(&name)
}

/// Parses "Europe/Berlin", ":Europe/Berlin" and "/usr/share/zoneinfo/Europe/Berlin"; an empty name is UTC.
fn named(name: &str) -> Option<Tz> {
    let name = name.rsplit("zoneinfo/").next()?.trim_start_matches(':');
    if name.is_empty() { Some(Tz::UTC) } else { name.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::signal::usage_limit;

    #[test]
    fn a_zone_is_found_by_the_name_or_path_that_systems_use() {
        for (name, expected) in [
            ("Europe/Berlin", Some(Tz::Europe__Berlin)),
            (":Europe/Berlin", Some(Tz::Europe__Berlin)),
            ("/usr/share/zoneinfo/Europe/Berlin", Some(Tz::Europe__Berlin)),
            ("../usr/share/zoneinfo/Etc/UTC", Some(Tz::Etc__UTC)),
            ("/var/db/timezone/zoneinfo/America/New_York", Some(Tz::America__New_York)),
            ("", Some(Tz::UTC)),
            ("UTC", Some(Tz::UTC)),
            ("Asia/Calcutta", Some(Tz::Asia__Calcutta)),
            ("Etc/GMT+5", Some(Tz::Etc__GMTPlus5)),
            ("Mars/Olympus", None),
            ("../../etc/passwd", None),
        ] {
            assert_eq!(named(name), expected, "{name}");
        }
    }

    #[test]
    fn a_message_becomes_a_moment() {
        for (text, now, expected) in [
            (
                "You've hit your 5-hour limit · resets 1pm (UTC)",
                "2026-11-16T12:00:43Z",
                Some("2026-11-16T13:00:00Z"),
            ),
            (
                "You've hit your session limit · resets 3:45pm (Europe/Berlin)",
                "2026-07-16T20:00:00Z",
                Some("2026-07-17T13:45:00Z"),
            ),
            (
                "You've hit your session limit · resets 2:30am (America/New_York)",
                "2026-03-08T05:00:00Z",
                Some("2026-03-08T07:30:00Z"),
            ),
            (
                "You've hit your session limit · resets 1:30am (America/New_York)",
                "2026-11-01T05:45:00Z",
                Some("2026-11-01T06:30:00Z"),
            ),
            (
                "You've hit your session limit · resets 7:30pm (Asia/Calcutta)",
                "2026-11-01T05:45:00Z",
                Some("2026-11-01T14:00:00Z"),
            ),
            (
                "You've hit your weekly limit · resets Nov 21, 6pm (America/Toronto)",
                "2026-11-16T12:00:00Z",
                Some("2026-11-21T23:00:00Z"),
            ),
            ("You've hit your session limit · resets 1pm (Mars/Olympus)", "2026-11-16T12:00:43Z", None),
        ] {
            let reset = usage_limit(text).unwrap().resets.unwrap();
            assert_eq!(moment(&reset, Stamp::parse(now).unwrap()), expected.and_then(Stamp::parse), "{text}");
        }
    }
}
