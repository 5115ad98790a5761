//! When a limit ends, in the forms the agent program has used for it.

use crate::core::time::Stamp;
use chrono::Weekday;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reset {
    At(Stamp),
    /// A time on a clock: the next such time, or the one on `day`. Without a zone it is the user's own.
    Clock {
        hour: u8,
        minute: u8,
        zone: Option<String>,
        day: Option<Day>,
    },
    /// From the moment of the message.
    In {
        minutes: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Day {
    Tomorrow,
    Weekday(Weekday),
    Date { year: Option<i32>, month: u8, day: u8 },
}

/// Unix seconds, or milliseconds, as they stand alone behind the headline.
pub fn epoch(text: &str) -> Option<Reset> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i64 = text.parse().ok()?;
    match text.len() {
        10 => Some(Reset::At(Stamp(number * 1000))),
        13 => Some(Reset::At(Stamp(number))),
        _ => None,
    }
}

/// Longer than any time is written.
const LONGEST: usize = 120;

/// What stands behind "resets" or its like, where the text is such a phrase.
pub fn phrase(text: &str) -> Option<&str> {
    if text.len() > LONGEST {
        return None;
    }
    for opening in ["try again ", "you will regain access "] {
        if text.get(..opening.len()).is_some_and(|head| head.eq_ignore_ascii_case(opening)) {
            return Some(&text[opening.len()..]);
        }
    }
    let mut rest = text;
    loop {
        let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        let word = word.to_ascii_lowercase();
        if matches!(word.as_str(), "reset" | "resets") {
            return Some(behind);
        }
        matches!(
            word.as_str(),
            "your"
                | "the"
                | "it"
                | "session"
                | "weekly"
                | "usage"
                | "opus"
                | "limit"
                | "limits"
                | "will"
                | "now"
        )
        .then_some(())?;
        rest = behind;
    }
}

/// Reads "3pm (Europe/Berlin)", "Oct 6, 1pm", "Mon 12:00am", "in 4h 51m".
pub fn when(text: &str) -> Option<Reset> {
    let (text, mut zone) = match text.split_once('(') {
        Some((time, behind)) => (time, Some(behind.split_once(')')?.0.trim().to_owned())),
        None => (text, None),
    };
    let text = text.replace(',', " ").to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    if let ["in", span @ ..] = words.as_slice() {
        return minutes(span).map(|minutes| Reset::In { minutes });
    }
    let (mut day, mut time) = (None, None);
    let mut at = 0;
    while let Some(&word) = words.get(at) {
        let next = words.get(at + 1).copied().unwrap_or("");
        at += 1;
        if matches!(word, "at" | "on" | "today") {
            continue;
        }
        if let Some(found) = clock(word, next) {
            at += usize::from(found.takes_next);
            time = Some((found.hour, found.minute));
        } else if let Some(month) = month(word) {
            day = Some(Day::Date { year: None, month, day: number(next, 1..=31)? as u8 });
            at += 1;
        } else if let Some(Day::Date { year: year @ None, .. }) = &mut day
            && let Some(found) = number(word, 2000..=2999)
        {
            *year = Some(found as i32);
        } else if let Some(found) = named_day(word).or_else(|| iso_date(word)) {
            day = Some(found);
        } else if matches!(word, "utc" | "gmt") && zone.is_none() {
            zone = Some(word.to_uppercase());
        } else {
            return None;
        }
    }
    // A day alone begins at midnight.
    let (hour, minute) = time.or(day.map(|_| (0, 0)))?;
    Some(Reset::Clock { hour, minute, zone: zone.filter(|zone| !zone.is_empty()), day })
}

struct Clock {
    hour: u8,
    minute: u8,
    takes_next: bool,
}

/// "3pm", "3:45pm", "3:45" and "pm", "15:30", "18:55:29".
fn clock(word: &str, next: &str) -> Option<Clock> {
    let takes_next = matches!(next, "am" | "pm");
    let half =
        if takes_next { Some(next) } else { ["am", "pm"].into_iter().find(|half| word.ends_with(half)) };
    let digits = match half {
        Some(half) if !takes_next => word.strip_suffix(half)?,
        _ => word,
    };
    let mut parts = digits.split(':');
    let hour = number(parts.next()?, 0..=23)? as u8;
    let minute = match parts.next() {
        Some(minute) => number(minute, 0..=59)? as u8,
        // "15" alone may be anything.
        None => half.map(|_| 0)?,
    };
    let hour = match half {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some("pm") => hour % 12 + 12,
        Some(_) => hour % 12,
        None => hour,
    };
    Some(Clock { hour, minute, takes_next })
}

fn month(word: &str) -> Option<u8> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let word = word.trim_end_matches('.');
    let found = MONTHS.iter().position(|month| word.len() >= 3 && month.starts_with(word));
    found.map(|index| index as u8 + 1)
}

fn named_day(word: &str) -> Option<Day> {
    if word == "tomorrow" {
        return Some(Day::Tomorrow);
    }
    // The crate knows both the short and the long names.
    word.parse().ok().map(Day::Weekday)
}

fn iso_date(word: &str) -> Option<Day> {
    let mut parts = word.split('-');
    let year = number(parts.next()?, 2000..=2999)?;
    let month = number(parts.next()?, 1..=12)?;
    let day = number(parts.next()?, 1..=31)?;
    parts.next().is_none().then_some(Day::Date {
        year: Some(year as i32),
        month: month as u8,
        day: day as u8,
    })
}

/// "30h", "4h51m", "3 days 2 hours".
fn minutes(words: &[&str]) -> Option<u64> {
    let text = words.concat();
    let mut rest = text.as_str();
    let mut total = 0;
    while !rest.is_empty() {
        let unit = rest.find(|c: char| !c.is_ascii_digit())?;
        let count: u64 = number(&rest[..unit], 0..=99_999)?;
        let end = rest[unit..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| unit + at);
        total += count
            * match &rest[unit..end] {
                "m" | "min" | "mins" | "minute" | "minutes" => 1,
                "h" | "hr" | "hrs" | "hour" | "hours" => 60,
                "d" | "day" | "days" => 24 * 60,
                _ => return None,
            };
        rest = &rest[end..];
    }
    (!words.is_empty()).then_some(total)
}

fn number(text: &str, range: std::ops::RangeInclusive<u64>) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?.filter(|number| range.contains(number))
}
