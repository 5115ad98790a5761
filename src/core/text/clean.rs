//! Makes untrusted text safe to show: no control or escape characters, bounded length.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns the text as one line: control characters removed, white space folded and trimmed. What is printable in an escape
/// sequence stays: a terminal would hide it, and with it a part of a command that the user is asked about.
pub fn line(text: &str) -> String {
    // Most lines are clean already.
    if is_printable_ascii(text) && !text.contains("  ") {
        return text.trim_matches(' ').to_owned();
    }
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

/// Removes control characters other than line breaks and tabs.
pub fn block(mut text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    while !text.is_empty() {
        let (plain, rest) = text.split_at(plain_length(text));
        out.push_str(plain);
        let mut chars = rest.chars();
        out.extend(chars.next().filter(|c| !is_unsafe(*c)));
        text = chars.as_str();
    }
    out
}

/// Returns what a screen shows after a program printed the text: without escape sequences, and with the last state of
/// each line that was overwritten.
pub fn output(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let plain = without_escapes(text);
    let last = |line: &str| {
        let line = line.trim_end_matches('\r');
        block(line.rsplit('\r').next().unwrap_or(line))
    };
    plain.split('\n').map(last).collect::<Vec<_>>().join("\n")
}

/// Returns whether there is nothing to clean.
pub fn is_plain(text: &str) -> bool {
    plain_length(text) == text.len()
}

/// Returns how many bytes the text begins with in which there is nothing to clean. Works in blocks, which the compiler
/// makes fast.
fn plain_length(text: &str) -> usize {
    let plain = |byte: &u8| matches!(byte, b'\n' | b'\t' | b' '..=b'~');
    let all_plain = |block: &&[u8]| block.iter().fold(true, |all, byte| all & plain(byte));
    let bytes = text.as_bytes();
    let begin = bytes.chunks_exact(16).take_while(all_plain).count() * 16;
    begin + bytes[begin..].iter().take_while(|byte| plain(byte)).count()
}

fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let kind = match c {
            '\u{1b}' => chars.next_if(|c| !c.is_control()),
            '\u{9b}' => Some('['),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => Some(']'),
            _ => {
                out.push(c);
                continue;
            }
        };
        match kind {
            Some('[') => {
                while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
                chars.next_if(|c| ('@'..='~').contains(c));
            }
            // A string for the terminal, up to its terminator or the end of the line.
            Some(']' | 'P' | 'X' | '^' | '_') => {
                while chars.next_if(|c| !matches!(c, '\u{7}' | '\u{1b}' | '\u{9c}' | '\n')).is_some() {}
                if chars.next_if(|c| *c != '\n') == Some('\u{1b}') {
                    chars.next_if_eq(&'\\');
                }
            }
            Some(' '..='/') => {
                while chars.next_if(|c| (' '..='/').contains(c)).is_some() {}
                chars.next_if(|c| ('0'..='~').contains(c));
            }
            _ => {}
        }
    }
    out
}

/// Returns the exact text on one line, with invisible and control characters escaped.
pub fn visible(text: &str) -> String {
    let hidden =
        |c: char| is_unsafe(c) || (!c.is_ascii() && (c.is_whitespace() || c.width().unwrap_or(0) == 0));
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if hidden(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// Returns one cleaned line of at most `width` columns; a cut is shown by an ellipsis.
pub fn excerpt(text: &str, width: usize) -> String {
    // Far more than is shown, so that a huge text is not read to its end.
    let max = width * 8 + 64;
    let cut = if text.len() > max { text.char_indices().nth(max) } else { None };
    let mut line = line(cut.map_or(text, |(end, _)| &text[..end]));
    if columns(&line) > width {
        line.truncate(fitting(&line, width.saturating_sub(1)));
        line.truncate(line.trim_end().len());
        line.push('…');
    }
    line
}

/// Returns a message as a person reads it: cleaned, with a bound for each line and for their number. What is left out
/// is counted.
pub fn message(text: &str) -> String {
    const MAX_LINES: usize = 120;
    const MAX_COLUMNS: usize = 2000;
    let text = block(text);
    if text.len() <= MAX_COLUMNS {
        return text;
    }
    let cut = |line: &str| match fitting(line, MAX_COLUMNS) {
        end if end < line.len() => format!("{}…", &line[..end]),
        _ => line.to_owned(),
    };
    let lines = text.lines().count();
    let shown: Vec<String> = text.lines().take(MAX_LINES).map(cut).collect();
    let left = lines.saturating_sub(MAX_LINES);
    let end = match left {
        0 if text.ends_with('\n') => "\n".to_owned(),
        0 => String::new(),
        _ => format!("\n… {left} more lines"),
    };
    shown.join("\n") + &end
}

/// Returns how wide a terminal shows the text.
pub fn columns(text: &str) -> usize {
    if is_printable_ascii(text) { text.len() } else { text.width() }
}

fn is_printable_ascii(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Returns the cleaned text in lines of at most `width` columns, broken at spaces where possible.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let text = line(text);
    let (mut lines, mut rest) = (Vec::new(), text.as_str());
    loop {
        let end = fitting(rest, width).max(rest.chars().next().map_or(0, char::len_utf8));
        if end == rest.len() {
            lines.push(rest.to_owned());
            return lines;
        }
        let cut = if rest[end..].starts_with(' ') { end } else { rest[..end].rfind(' ').unwrap_or(end) };
        lines.push(rest[..cut].to_owned());
        rest = rest[cut..].trim_start();
    }
}

/// Returns how many bytes of the text fit into `width` columns.
pub fn fitting(text: &str, width: usize) -> usize {
    let mut used = 0;
    let mut is_beyond = |c: char| {
        used += c.width().unwrap_or(0);
        used > width
    };
    text.find(&mut is_beyond).unwrap_or(text.len())
}

/// Returns whether a character is a control, or invisible and able to reorder or hide text.
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
    fn a_programs_output_reads_as_on_a_screen() {
        for (raw, shown) in [
            ("\u{1b}[1;31mred\u{1b}[0m plain", "red plain"),
            ("\u{1b}]0;title\u{7}a \u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "a link"),
            ("\u{9b}2Jx\u{9d}t\u{9c}y", "xy"),
            ("10%\r50%\r100%\r\ndone\r\n", "100%\ndone\n"),
            ("\u{1b}(B\u{1b}=\u{1b}7text\u{1b}", "text"),
            ("\u{1b}]never ended\nthe next line", "\nthe next line"),
            ("\u{1b}[31\nnext", "\nnext"),
            ("\u{1b}\nnext\u{202e}\u{0}\u{8}", "\nnext"),
            ("tab\tstays", "tab\tstays"),
        ] {
            assert_eq!(output(raw), shown, "{raw:?}");
        }
    }

    #[test]
    fn what_is_hidden_is_spelled_out() {
        assert_eq!(visible("cargo test -- 'ä\\n' 测试"), "cargo test -- 'ä\\n' 测试");
        assert_eq!(visible("a\nb\tc\r\u{1b}[2J"), "a\\nb\\tc\\r\\u{1b}[2J");
        assert_eq!(visible("x\u{202e}y\u{200b}z\u{e0041}\u{a0}"), "x\\u{202e}y\\u{200b}z\\u{e0041}\\u{a0}");
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

    #[test]
    fn a_text_is_cut_only_where_it_does_not_fit() {
        for (name, text, width, expected) in [
            ("fits to the column", "abcde".to_owned(), 5, "abcde"),
            ("one too many", "abcdef".to_owned(), 5, "abcd…"),
            ("a space at the cut", "abc def".to_owned(), 5, "abc…"),
            ("behind much white space", format!("{}word", " ".repeat(100)), 20, "word"),
        ] {
            assert_eq!(excerpt(&text, width), expected, "{name}");
        }
        for (name, text, width, expected) in [
            ("nothing", "", 5, vec![""]),
            ("one column short", "one two", 6, vec!["one", "two"]),
            ("a word of two lines", "abcdefghij", 5, vec!["abcde", "fghij"]),
            ("a long word behind a short one", "a bcdefg", 5, vec!["a", "bcdef", "g"]),
            ("wide letters", "测试测", 5, vec!["测试", "测"]),
        ] {
            assert_eq!(wrap(text, width), expected, "{name}");
        }
    }
}
