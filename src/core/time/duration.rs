//! Durations as people write them: `45s`, `90m`, `4h`, `1h30m`, `1h 30m`, `2d`, or a bare number.

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
        let mut rest = text.trim();
        if let Ok(number) = rest.parse() {
            return Some(number);
        }
        let mut total = 0.0;
        loop {
            let (number, tail) = rest.split_at(rest.find(|c: char| c.is_ascii_alphabetic())?);
            let ms = match &tail[..1] {
                "s" => 1_000.0,
                "m" => 60_000.0,
                "h" => 3_600_000.0,
                "d" => 86_400_000.0,
                _ => return None,
            };
            total += number.trim().parse::<f64>().ok().filter(|number| *number >= 0.0)? * ms;
            rest = tail[1..].trim_start();
            if rest.is_empty() {
                return Some(total / f64::from(self.ms));
            }
        }
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
        for text in ["", " ", "h", "-2h", "1h -30m", "two", "1w", "NaNh", "1e9h", "1h30", "4 hours", "½h"] {
            assert_eq!(HOURS.parse(text), None, "{text:?}");
        }
    }
}
