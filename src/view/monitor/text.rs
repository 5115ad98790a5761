//! Untrusted text for cells of a screen, and the words for figures.

use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use unicode_width::UnicodeWidthChar;

/// A letter of any script takes fewer; more only blot the lines around it.
const MAX_COMBINING_MARKS: usize = 2;

/// Returns one line that a terminal shows cell by cell as we count them: no controls, nothing invisible, and only so many
/// marks on a letter.
pub fn line(text: &str) -> String {
    cells(&clean::line(text))
}

/// Returns one line of at most `width` columns.
pub fn fit(text: &str, width: usize) -> String {
    // A text may be megabytes long; what is cut here is far more than a screen shows.
    let bounded: String = text.chars().take(width.saturating_mul(8) + 64).collect();
    clean::excerpt(&line(&bounded), width)
}

/// Returns at most `rows` lines of at most `width` columns; a cut is shown.
pub fn wrap(text: &str, width: usize, rows: usize) -> Vec<String> {
    let (width, max) = (width.max(1), width.max(1).saturating_mul(rows + 1) * 4 + 64);
    let bounded: String = text.chars().take(max).collect();
    let mut lines = clean::wrap(&line(&bounded), width);
    let is_cut = lines.len() > rows || bounded.len() < text.len();
    lines.truncate(rows);
    if is_cut && let Some(last) = lines.last_mut() {
        *last = fit(&format!("{last} …"), width);
    }
    lines.retain(|line| !line.is_empty());
    lines
}

fn cells(text: &str) -> String {
    let mut marks = 0;
    let shown = |c: &char| {
        if is_invisible(*c) {
            return false;
        }
        marks = if c.width() == Some(0) { marks + 1 } else { 0 };
        marks <= MAX_COMBINING_MARKS
    };
    text.chars().filter(shown).collect()
}

/// Returns whether a character takes no cell, and joins, directs or hides others.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns `3m ago`, or `now`.
pub fn ago(at: Stamp, now: Stamp) -> String {
    match now - at {
        ..1000 => "now".into(),
        ms => format!("{} ago", time::span(ms)),
    }
}

/// Returns how times are written beside a limit: in hours, or in minutes below an hour.
fn time_format(spent_ms: i64, limit_ms: i64) -> fn(i64) -> String {
    const HOUR_MS: i64 = 3_600_000;
    match limit_ms {
        1..HOUR_MS => time::span,
        0 if spent_ms < HOUR_MS => time::span,
        _ => time::hours,
    }
}

/// Returns `0.5h/2.0h | Wall: 0.7h`: both times are written alike.
pub fn times(runtime_ms: i64, limit_ms: i64, wall_ms: i64) -> String {
    let wall = time_format(runtime_ms, limit_ms)(wall_ms);
    format!("{} | Wall: {wall}", runtime(runtime_ms, limit_ms))
}

/// Returns `3.2h/9.0h`, or in minutes below an hour.
pub fn runtime(spent_ms: i64, limit_ms: i64) -> String {
    let format = time_format(spent_ms, limit_ms);
    match limit_ms {
        0 => format(spent_ms),
        limit => format!("{}/{}", format(spent_ms), format(limit)),
    }
}

/// Returns the last part of a path, as people name a project.
pub fn project(path: &std::path::Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    line(&name.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_invisible_moves_a_cell() {
        assert_eq!(line("a\u{200d}b\u{fe0f}c\u{e0041}d\u{61c}e\u{202e}f\u{1b}[2Jg"), "abcdef[2Jg");
        assert_eq!(line("e\u{301}\u{302}\u{303}\u{304}x"), "e\u{301}\u{302}x");
        assert_eq!(fit("测试测试", 5), "测试…");
    }

    #[test]
    fn a_long_text_is_cut_with_a_sign() {
        assert_eq!(wrap("one two three four", 9, 2), ["one two", "three …"]);
        assert_eq!(wrap("one two", 9, 2), ["one two"]);
        assert_eq!(wrap("", 9, 2), [""; 0]);
        assert_eq!(wrap(&"x".repeat(10_000_000), 4, 1), ["xxx…"]);
        assert_eq!(wrap("abc", 0, 3), ["a", "b", "c"]);
    }

    #[test]
    fn runtime_reads_in_hours_where_its_limit_does() {
        assert_eq!(runtime(11_520_000, 32_400_000), "3.2h/9.0h");
        assert_eq!(runtime(540_000, 600_000), "9m/10m");
        assert_eq!((runtime(540_000, 0), runtime(7_200_000, 0)), ("9m".into(), "2.0h".into()));
    }
}
