//! Untrusted text made safe to show: no control or escape characters, bounded length.

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

/// One cleaned line of at most `width` characters, the cut shown by an ellipsis.
pub fn excerpt(text: &str, width: usize) -> String {
    // Far more than is shown, so that a huge text is not walked to its end for eighty characters.
    let bounded: String = text.chars().take(width * 8 + 64).collect();
    let line = line(&bounded);
    if line.chars().count() <= width {
        return line;
    }
    let mut cut: String = line.chars().take(width.saturating_sub(1)).collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}

/// Controls, and the invisible characters that reorder or hide what a reader sees.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
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
    fn an_excerpt_is_cut_at_characters() {
        assert_eq!(excerpt("grün und größer", 8), "grün un…");
        assert_eq!(excerpt("short", 8), "short");
        assert_eq!(excerpt(&"x".repeat(10_000_000), 5), "xxxx…");
    }
}
