//! The agent's prose: the lines of a message outside code fences and quotations, without inline code and quoted
//! words.

/// Tracks code fences line by line. A fence closes with at least as many of the same mark, so a longer fence may
/// contain a shorter one.
#[derive(Default)]
pub struct Fence {
    open: Option<(char, usize)>,
    /// The column where the text of the enclosing list item begins; a line left of it ends the item.
    item_column: usize,
    /// Outside a list, a mark indented by more than three columns is no fence.
    outside_lists: bool,
}

impl Fence {
    pub fn outside_lists() -> Fence {
        Fence { outside_lists: true, ..Fence::default() }
    }

    /// Takes the next line and returns whether it belongs to a fence, marks included.
    pub fn covers(&mut self, line: &str) -> bool {
        let whole = line;
        let line = line.trim_start_matches([' ', '\t']);
        let indent = whole.len() - line.len();
        if self.outside_lists {
            if indent < self.item_column && !line.trim().is_empty() {
                (self.open, self.item_column) = (None, 0);
            }
            if self.item_column == 0 && (indent > 3 || whole[..indent].contains('\t')) {
                return self.is_open();
            }
        }
        // A fence may open after a list mark, and closes without one.
        let (line, item_column) = match item(whole) {
            (text, true) if !self.is_open() => (text, whole.trim_end().len() - text.len()),
            _ => (line, 0),
        };
        let Some(mark) = line.chars().next().filter(|c| matches!(c, '`' | '~')) else {
            return self.is_open();
        };
        let length = line.chars().take_while(|&c| c == mark).count();
        if length < 3 {
            return self.is_open();
        }
        match self.open {
            // Back-quotes after the mark make it code within a line, not a fence.
            None if mark == '`' && line[length..].contains('`') => return false,
            None => (self.open, self.item_column) = (Some((mark, length)), item_column),
            Some((m, n))
                if m == mark && length >= n && line[length..].trim_matches([' ', '\t']).is_empty() =>
            {
                (self.open, self.item_column) = (None, 0);
            }
            Some(_) => {}
        }
        true
    }

    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

/// Returns the lines outside code fences and quotations.
pub fn lines(message: &str) -> impl Iterator<Item = &str> {
    let mut fence = Fence::default();
    message.lines().filter(move |line| !fence.covers(line) && !is_quotation(line))
}

pub fn is_quotation(line: &str) -> bool {
    line.trim_start().starts_with('>')
}

/// Returns a line without its indentation and list mark, and whether it had a mark.
pub fn item(line: &str) -> (&str, bool) {
    let line = line.trim();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = match digits {
        0 => line.strip_prefix(['-', '*', '+', '•']),
        1..4 => line[digits..].strip_prefix(['.', ')']),
        _ => None,
    };
    match rest {
        Some(rest) if rest.starts_with(char::is_whitespace) => (rest.trim_start(), true),
        _ => (line, false),
    }
}

/// Stands for inline code or quoted words in [`unquoted`] text.
pub const QUOTED: &str = "`";

/// Returns a line with each span of inline code or double-quoted words replaced by [`QUOTED`].
pub fn unquoted(line: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(line.len()), line);
    while let Some(at) = rest.find(['`', '"', '“']) {
        let from = &rest[at..];
        let open = match from.len() - from.trim_start_matches('`').len() {
            0 => &from[..from.chars().next().map_or(1, char::len_utf8)],
            back_quotes => &from[..back_quotes],
        };
        let close = if open == "“" { "”" } else { open };
        let inner = &from[open.len()..];
        // Without a closing mark the rest is read as prose, so that no search is repeated.
        let Some(end) = inner.find(close) else { break };
        text.extend([&rest[..at], " ", QUOTED, " "]);
        rest = &inner[end + close.len()..];
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fences_and_quotations_are_left_out() {
        let cases: &[(&str, &str, &[&str])] = &[
            ("plain", "a\nb", &["a", "b"]),
            ("fence", "a\n```\nb\n```\nc", &["a", "c"]),
            ("fence with a language", "```rust\nb\n```\nc", &["c"]),
            ("tilde fence holds back-quotes", "~~~\n```\nb\n~~~\nc", &["c"]),
            ("longer fence quotes a shorter", "````\n```\nb\n```\n````\nc", &["c"]),
            ("a mark with text does not close", "```\nb\n``` c\nd", &[]),
            ("unclosed", "a\n```\nb", &["a"]),
            ("indented", "a\n   ```\nb\n   ```\nc", &["a", "c"]),
            ("code within a line", "```x``` a\nb", &["```x``` a", "b"]),
            ("quotation", "> a\n  > b\n>c\nd", &["d"]),
            ("carriage returns", "a\r\n```\r\nb\r\n```\r\nc\r\n", &["a", "c"]),
        ];
        for (name, message, expected) in cases {
            assert_eq!(&lines(message).collect::<Vec<_>>(), expected, "{name}");
        }
    }

    #[test]
    fn list_marks_are_taken_off() {
        for (line, expected) in [
            ("  - a", ("a", true)),
            ("* a", ("a", true)),
            ("12. a", ("a", true)),
            ("3) a", ("a", true)),
            ("---a", ("---a", false)),
            ("**a**", ("**a**", false)),
            ("2026. a", ("2026. a", false)),
            ("1.5 a", ("1.5 a", false)),
            ("-", ("-", false)),
            ("", ("", false)),
        ] {
            assert_eq!(item(line), expected, "{line}");
        }
    }

    #[test]
    fn inline_code_and_quoted_words_are_replaced() {
        for (line, expected) in [
            ("a `b` c", "a  `  c"),
            ("`a`", " ` "),
            ("``a`b`` c", " `  c"),
            ("a ` b", "a ` b"),
            ("say \"x\" now", "say  `  now"),
            ("3\" wide", "3\" wide"),
            ("say “x” now", "say  `  now"),
            ("” “x", "” “x"),
            ("\"a `b\" c", " `  c"),
            ("", ""),
        ] {
            assert_eq!(unquoted(line), expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn a_line_without_marks_is_unchanged(line in "[ ab.]{0,40}") {
            prop_assert_eq!(unquoted(&line), line);
        }

        #[test]
        fn any_line_is_read(line in "[`\"“” ab]{0,40}") {
            prop_assert!(unquoted(&line).chars().filter(|c| c.is_alphabetic()).count() <= line.len());
        }
    }
}
