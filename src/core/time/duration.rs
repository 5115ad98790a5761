//! Durations as people write them: `45s`, `90m`, `4h`, `1h30m`, `1h 30m`, `2D`, or a bare number.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// As in the help of a flag.
    pub name: &'static str,
    ms: u32,
}

pub const SECONDS: Unit = Unit { name: "SECONDS", ms: 1_000 };
pub const MINUTES: Unit = Unit { name: "MINUTES", ms: 60_000 };
pub const HOURS: Unit = Unit { name: "HOURS", ms: 3_600_000 };

impl Unit {
    /// Returns how many milliseconds this number of units is, rounded.
    pub fn to_ms(self, number: f64) -> i64 {
        (number * f64::from(self.ms)).round() as i64
    }

    /// Parses a duration into a number of this unit, which is also what a bare number means. It may be negative or
    /// infinite: the caller knows its range.
    pub fn parse(self, text: &str) -> Option<f64> {
        let mut rest = unquoted(text.trim());
        if let Ok(number) = rest.parse() {
            return Some(number);
        }
        let mut total = 0.0;
        loop {
            let (number, tail) = rest.split_at(rest.find(|c: char| c.is_ascii_alphabetic())?);
            let ms = unit_ms(tail.chars().next()?)?;
            total += number.trim().parse::<f64>().ok().filter(|number| *number >= 0.0)? * ms;
            rest = tail[1..].trim_start();
            if rest.is_empty() {
                return Some(total / f64::from(self.ms));
            }
        }
    }
}

fn unit_ms(letter: char) -> Option<f64> {
    match letter.to_ascii_lowercase() {
        's' => Some(1_000.0),
        'm' => Some(60_000.0),
        'h' => Some(3_600_000.0),
        'd' => Some(86_400_000.0),
        _ => None,
    }
}

/// Removes the quotes that a text which no shell has read may have.
fn unquoted(text: &str) -> &str {
    let inner = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(text).trim()
}

/// Returns whether a word continues a duration that was given without quotes, as `30m` does after `1h`: its units are
/// smaller.
pub fn continues(duration: &str, word: &str) -> bool {
    let is_unit = |letter: &char| letter.is_ascii_alphabetic();
    let (Some(last), Some(first)) = (duration.chars().next_back(), word.chars().find(is_unit)) else {
        return false;
    };
    let ends_in_unit = word.ends_with(|letter| is_unit(&letter));
    let smaller = unit_ms(last).zip(unit_ms(first)).is_some_and(|(last, first)| first < last);
    smaller && ends_in_unit && SECONDS.parse(duration).is_some() && SECONDS.parse(word).is_some()
}

/// Returns how many of the words are the duration at their beginning, in quotes or not; at least one, if there is one.
pub fn leading(words: &[&str]) -> usize {
    let Some((&first, rest)) = words.split_first() else { return 0 };
    if first.starts_with(['"', '\'']) {
        let closed = |count: &usize| SECONDS.parse(&words[..*count].join(" ")).is_some();
        return (1..=words.len()).find(closed).unwrap_or(1);
    }
    let is_number = |word: &&str| word.parse::<f64>().is_ok();
    let is_unit = |word: &&str| word.len() == 1 && word.chars().next().and_then(unit_ms).is_some();
    // `1 h 30 m`, as some people write it.
    let spaced = words
        .chunks(2)
        .take_while(|pair| matches!(pair, [number, unit] if is_number(number) && is_unit(unit)));
    match 2 * spaced.count() {
        0 => {
            let mut last = first;
            1 + rest.iter().take_while(|word| continues(std::mem::replace(&mut last, word), word)).count()
        }
        count => count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, minutes) in [
            ("4h", 240.0),
            ("90m", 90.0),
            ("1h30m", 90.0),
            ("1h 30m", 90.0),
            (" 1h  30m 30s ", 90.5),
            ("1.5h", 90.0),
            ("2d", 2880.0),
            ("45s", 0.75),
            ("2H", 120.0),
            ("1H30M", 90.0),
            ("1h 30M", 90.0),
            ("'1h 30m'", 90.0),
            ("\"1h30m\"", 90.0),
            ("15", 15.0),
            ("08", 8.0),
            ("0", 0.0),
            ("0m", 0.0),
        ] {
            assert_eq!(MINUTES.parse(text), Some(minutes), "{text}");
        }
        assert_eq!(HOURS.parse("90m"), Some(1.5));
        assert_eq!(SECONDS.parse("1h30m"), Some(5400.0));
    }

    #[test]
    fn anything_else_is_no_duration() {
        for text in [
            "", " ", "h", "-2h", "1h -30m", "two", "1w", "NaNh", "1e9h", "1h30", "4 hours", "½h", "'", "'1h",
            "\"1h'", "2K",
        ] {
            assert_eq!(HOURS.parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_duration_without_quotes_ends_where_its_units_stop_getting_smaller() {
        for (words, count) in [
            ("1h 30m do it", 2),
            ("1d 2h 30m 10s do it", 4),
            ("1h30m 10s x", 2),
            ("1H 30M x", 2),
            ("'1h 30m' 10s x", 2),
            ("\"1h\" 30m x", 1),
            ("2h 2d old files", 1),
            ("30m 1h x", 1),
            ("1h 1h x", 1),
            ("1h 30 files", 1),
            ("1h 30m, then", 1),
            ("1h 30min x", 1),
            ("2 30m x", 1),
            ("1 h 30 m x", 4),
            ("90 m x", 2),
            ("2 hours x", 1),
            ("soon 30m x", 1),
            ("'soon 30m x", 1),
            ("1h", 1),
            ("", 0),
        ] {
            let words: Vec<&str> = words.split_whitespace().collect();
            assert_eq!(leading(&words), count, "{words:?}");
        }
    }
}
