//! Which parts of a message are the agent's own words: not what it fences as code, quotes from others
//! or puts in quotation marks.

/// Follows code fences line by line. A fence closes with at least as many of the same mark, so a longer
/// fence may quote a shorter one.
#[derive(Default)]
pub struct Fence {
    open: Option<(char, usize)>,
    /// Where the text of the list item begins that it was opened in; a line before that ends the item.
    item_at: usize,
    /// Outside lists a mark more than three columns in is no fence.
    outside_lists: bool,
}

impl Fence {
    pub fn outside_lists() -> Fence {
        Fence { outside_lists: true, ..Fence::default() }
    }

    /// Takes the next line and tells whether it belongs to a fence, marks included.
    pub fn covers(&mut self, line: &str) -> bool {
        let whole = line;
        let line = line.trim_start_matches([' ', '\t']);
        let indent = whole.len() - line.len();
        if self.outside_lists {
            if indent < self.item_at && !line.trim().is_empty() {
                (self.open, self.item_at) = (None, 0);
            }
            if self.item_at == 0 && (indent > 3 || whole[..indent].contains('\t')) {
                return self.is_open();
            }
        }
        // A fence may open behind a list mark, and closes without one.
        let (line, item_at) = match item(whole) {
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
            // Back-quotes behind the mark make it code within a line, not a fence.
            None if mark == '`' && line[length..].contains('`') => return false,
            None => (self.open, self.item_at) = (Some((mark, length)), item_at),
            Some((m, n))
                if m == mark && length >= n && line[length..].trim_matches([' ', '\t']).is_empty() =>
            {
                (self.open, self.item_at) = (None, 0);
            }
            Some(_) => {}
        }
        true
    }

    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

/// The lines outside code fences and quotations.
pub fn lines(message: &str) -> impl Iterator<Item = &str> {
    let mut fence = Fence::default();
    message.lines().filter(move |line| !fence.covers(line) && !line.trim_start().starts_with('>'))
}

/// A line without its indentation and list mark, and whether it had a mark.
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

/// The parts of a line in order; `None` stands for `code` or words in double quotation marks.
pub fn said(line: &str) -> Said<'_> {
    Said {
        line,
        at: 0,
        last_straight: line.rfind('"').unwrap_or(0),
        last_curly: line.rfind('”').unwrap_or(0),
        unclosed: 0,
    }
}

/// A longer run of back-quotes opens no code: nobody writes it, and one bit for each length has to do.
const LONGEST_MARK: usize = 31;

/// Every search below either succeeds and consumes what it passed, or is not made twice: a line of a
/// megabyte is still read in linear time.
pub struct Said<'a> {
    line: &'a str,
    at: usize,
    last_straight: usize,
    last_curly: usize,
    /// Lengths of back-quote runs known to have no partner, one bit each.
    unclosed: u32,
}

impl Said<'_> {
    /// Where what opens at `open` ends, or how far to go on because nothing opens there.
    fn close(&mut self, open: usize) -> Result<usize, usize> {
        let rest = &self.line[open..];
        if rest.starts_with('`') {
            let length = run(rest);
            return self.close_code(open, length).ok_or(open + length);
        }
        let (mark, last) = match rest.starts_with('"') {
            true => ('"', self.last_straight),
            false => ('”', self.last_curly),
        };
        let start = open + rest.chars().next().map_or(1, char::len_utf8);
        match self.line.get(start..).filter(|_| open < last).and_then(|rest| rest.find(mark)) {
            Some(at) => Ok(start + at + mark.len_utf8()),
            None => Err(start),
        }
    }

    fn close_code(&mut self, open: usize, length: usize) -> Option<usize> {
        if length > LONGEST_MARK || self.unclosed & (1 << length) != 0 {
            return None;
        }
        let mut at = open + length;
        while let Some(found) = self.line[at..].find('`') {
            let next = run(&self.line[at + found..]);
            at += found + next;
            if next == length {
                return Some(at);
            }
        }
        self.unclosed |= 1 << length;
        None
    }
}

fn run(text: &str) -> usize {
    text.bytes().take_while(|&byte| byte == b'`').count()
}

impl<'a> Iterator for Said<'a> {
    type Item = Option<&'a str>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at;
        let mut from = start;
        while let Some(found) = self.line[from..].find(['`', '"', '“']) {
            let open = from + found;
            match self.close(open) {
                Ok(end) if open == start => {
                    self.at = end;
                    return Some(None);
                }
                Ok(_) => {
                    self.at = open;
                    return Some(Some(&self.line[start..open]));
                }
                Err(next) => from = next,
            }
        }
        self.at = self.line.len();
        (start < self.at).then(|| Some(&self.line[start..]))
    }
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
    fn code_and_quoted_words_are_blanked() {
        let cases: &[(&str, &[Option<&str>])] = &[
            ("a `b` c", &[Some("a "), None, Some(" c")]),
            ("`a`", &[None]),
            ("``a`b`` c", &[None, Some(" c")]),
            ("a ` b", &[Some("a ` b")]),
            ("`a``b` c", &[None, Some(" c")]),
            ("`` a ` b ` c", &[Some("`` a "), None, Some(" c")]),
            ("say \"x\" now", &[Some("say "), None, Some(" now")]),
            ("3\" wide", &[Some("3\" wide")]),
            ("say “x” now", &[Some("say "), None, Some(" now")]),
            ("” “x", &[Some("” “x")]),
            ("\"a `b\" c` d", &[None, Some(" c` d")]),
            ("", &[]),
        ];
        for (line, expected) in cases {
            assert_eq!(&said(line).collect::<Vec<_>>(), expected, "{line}");
        }
    }

    #[test]
    fn a_run_of_back_quotes_opens_code_up_to_the_longest() {
        for (length, is_code) in [(1, true), (LONGEST_MARK, true), (LONGEST_MARK + 1, false), (100, false)] {
            let mark = "`".repeat(length);
            let line = format!("{mark}a{mark}");
            let expected = if is_code { None } else { Some(line.as_str()) };
            assert_eq!(said(&line).collect::<Vec<_>>(), [expected], "{length}");
        }
    }

    proptest! {
        #[test]
        fn what_is_said_is_part_of_the_line_in_order(line in "[`\"“” ab]{0,40}") {
            let mut at = 0;
            for part in said(&line).flatten() {
                prop_assert!(!part.is_empty());
                at += line[at..].find(part).expect("in order") + part.len();
            }
            let without_marks = line.replace(['`', '"', '“', '”'], "");
            if without_marks == line {
                prop_assert_eq!(said(&line).flatten().collect::<String>(), line);
            }
        }
    }
}
