//! Untrusted text made safe to show: no control or escape characters, bounded length.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// One line: control characters removed, white space folded to single spaces, ends trimmed.
pub fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut gap = false;
    for c in text.chars() {
        if c.is_whitespace() {
            gap = !out.is_empty();
        } else if !is_unsafe(c) {
            if gap {
                out.push(' ');
                gap = false;
            }
            out.push(c);
        }
    }
    out
}

/// Several lines: line breaks and tabs stay, other control characters go.
pub fn block(text: &str) -> String {
    text.chars().filter(|&c| matches!(c, '\n' | '\t') || !is_unsafe(c)).collect()
}

/// One cleaned line of at most `width` columns, the cut shown by an ellipsis.
pub fn excerpt(text: &str, width: usize) -> String {
    // Far more than is shown, so that a huge text is not walked to its end for eighty columns.
    let bounded: String = text.chars().take(width * 8 + 64).collect();
    let mut line = line(&bounded);
    if columns(&line) > width {
        let mut used = 1;
        let mut kept = 0;
        for c in line.chars() {
            used += c.width().unwrap_or(0);
            if used > width {
                break;
            }
            kept += c.len_utf8();
        }
        line.truncate(kept);
        line.truncate(line.trim_end().len());
        line.push('…');
    }
    line
}

/// How wide a terminal shows it.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// A cleaned text in lines of at most `width` columns, broken at spaces.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line(text).split(' ') {
        let mut rest = pieces(word, width);
        let first = rest.remove(0);
        let last = lines.len() - 1;
        let current = &mut lines[last];
        let gap = usize::from(!current.is_empty());
        if columns(current) + gap + columns(&first) <= width {
            current.push_str(&" ".repeat(gap));
            current.push_str(&first);
        } else {
            lines.push(first);
        }
        lines.extend(rest);
    }
    lines
}

/// A word cut into pieces that fit.
fn pieces(word: &str, width: usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    for c in word.chars() {
        let last = parts.len() - 1;
        if columns(&parts[last]) + c.width().unwrap_or(0) > width {
            parts.push(c.to_string());
        } else {
            parts[last].push(c);
        }
    }
    parts
}

/// Controls, and the invisible characters that reorder or hide what a reader sees.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_codes_and_direction_marks_never_pass() {
        assert_eq!(line("a\u{1b}[31mred\u{7}\u{202e} b\n\tc "), "a[31mred b c");
        assert_eq!(block("one\r\n\u{9b}two\tx"), "one\ntwo\tx");
        assert_eq!(line("\u{1b}\u{0}"), "");
    }

    #[test]
    fn an_excerpt_fits_its_columns() {
        assert_eq!(excerpt("测试测试测试", 7), "测试测…");
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 5), ["abcde", "fgh", "ij"]);
        assert_eq!(excerpt("grün und größer", 8), "grün un…");
        assert_eq!(excerpt("short", 8), "short");
        assert_eq!(excerpt(&"x".repeat(10_000_000), 5), "xxxx…");
    }
}
