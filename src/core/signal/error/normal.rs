//! An error without what changes from run to run.
//!
//! One sign stands for everything that counts, measures or identifies, whatever its form: a date and a
//! count, a hash of digits and one of letters must not look different. A short number inside a name
//! (`u32`, `E0308`) belongs to the name.

const VARIES: &str = "<n>";
const TEMPORARY: &str = "<tmp>";

/// Enough to tell errors apart, little enough to store and to show.
pub const LONGEST: usize = 200;

/// White space folded, numbers, times, addresses and temporary paths replaced, bounded.
pub fn signature(text: &str) -> String {
    let mut out = Bounded { text: String::new(), room: LONGEST };
    let (mut rest, mut before, mut gap) = (text, ' ', false);
    while let Some(c) = rest.chars().next().filter(|_| out.room > 0) {
        if c.is_whitespace() || c.is_control() {
            gap |= c.is_whitespace();
            before = ' ';
            rest = &rest[c.len_utf8()..];
            continue;
        }
        if std::mem::take(&mut gap) && !out.text.is_empty() {
            out.push(" ");
        }
        let piece = piece(rest, before);
        match piece.shown {
            Shown::Itself => out.push(&rest[..piece.length]),
            Shown::As(sign) => out.push(sign),
            Shown::Name => name(&rest[..piece.length], &mut out),
        }
        before = rest[..piece.length].chars().next_back().unwrap_or(c);
        rest = &rest[piece.length..];
    }
    out.text.truncate(out.text.trim_end().len());
    out.text
}

struct Bounded {
    text: String,
    /// Characters still to come.
    room: usize,
}

impl Bounded {
    fn push(&mut self, text: &str) {
        for c in text.chars().take(self.room) {
            self.text.push(c);
            self.room -= 1;
        }
    }
}

enum Shown {
    Itself,
    As(&'static str),
    Name,
}

struct Piece {
    length: usize,
    shown: Shown,
}

/// The next piece of `rest`, which is not empty, and how it is shown.
fn piece(rest: &str, before: char) -> Piece {
    let at_boundary = !before.is_alphanumeric();
    let c = rest.chars().next().unwrap_or(' ');
    if let Some(length) = temporary(rest).filter(|_| at_boundary) {
        return Piece { length, shown: Shown::As(TEMPORARY) };
    }
    if rest.starts_with("**") {
        return Piece { length: 2, shown: Shown::As("") };
    }
    let signed = matches!(c, '-' | '+') && " ('\"`[=:<,".contains(before);
    if let Some(length) = varies(&rest[usize::from(signed)..]).filter(|_| at_boundary) {
        return Piece { length: length + usize::from(signed), shown: Shown::As(VARIES) };
    }
    if c.is_alphanumeric() {
        let length = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        let shown = if is_calendar_word(&rest[..length]) { Shown::As(VARIES) } else { Shown::Name };
        return Piece { length, shown };
    }
    Piece { length: c.len_utf8(), shown: Shown::Itself }
}

/// How long the number, time, hash or identifier is that `text` begins with.
fn varies(text: &str) -> Option<usize> {
    let run = text.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let word = &text.as_bytes()[..run];
    let is_hex = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    let has_digit = word.iter().any(u8::is_ascii_digit);
    if is_uuid(text.as_bytes()) {
        return Some(UUID);
    }
    if run > 2 && word[0] == b'0' && matches!(word[1], b'x' | b'X') && is_hex(&word[2..]) {
        return Some(run);
    }
    if run >= SHORTEST_HASH && is_hex(word) && has_digit && !word.iter().all(u8::is_ascii_digit) {
        return Some(run);
    }
    word.first().is_some_and(u8::is_ascii_digit).then(|| number(text))
}

/// As short as git shows a commit.
const SHORTEST_HASH: usize = 7;
const UUID: usize = 36;

fn is_uuid(text: &[u8]) -> bool {
    text.get(..UUID).is_some_and(|text| {
        text.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    }) && !text.get(UUID).is_some_and(u8::is_ascii_alphanumeric)
}

/// Digits with what joins them in dates, times, positions and addresses, and the unit behind.
fn number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let joins = |at: usize| bytes.get(at).is_some_and(|byte| b".,:-+/_T".contains(byte)) && is_digit(at + 1);
    let mut end = 0;
    while is_digit(end) || joins(end) {
        end += 1;
    }
    let unit = text[end..].chars().take(4).take_while(|c| c.is_alphabetic() || *c == '%');
    let unit: usize = unit.map(char::len_utf8).sum();
    let ends = |at: usize| !text[at..].starts_with(char::is_alphanumeric);
    if text[end..end + unit].chars().count() < 4 && ends(end + unit) {
        end += unit;
    }
    // However many blanks stand before it: the same line may come indented otherwise.
    let half = end + bytes[end..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let is_half = |half: &[u8]| half.eq_ignore_ascii_case(b"am") || half.eq_ignore_ascii_case(b"pm");
    if half > end && bytes.get(half..half + 2).is_some_and(is_half) && ends(half + 2) {
        return half + 2;
    }
    end
}

/// A name keeps short numbers; a long one counts or identifies.
fn name(word: &str, out: &mut Bounded) {
    let mut rest = word;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let other = rest[digits..].find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len() - digits);
        let is_code = word.len() <= LONGEST_CODE && word.starts_with(|c: char| c.is_ascii_uppercase());
        out.push(if digits > 3 && !is_code { VARIES } else { &rest[..digits] });
        out.push(&rest[digits..digits + other]);
        rest = &rest[digits + other..];
        if out.room == 0 {
            return;
        }
    }
}

/// `TS2322`, `ORA12154`.
const LONGEST_CODE: usize = 8;

fn is_calendar_word(word: &str) -> bool {
    const WORDS: &[&str] = &[
        "Jan",
        "Feb",
        "Mar",
        "Apr",
        "May",
        "Jun",
        "Jul",
        "Aug",
        "Sep",
        "Sept",
        "Oct",
        "Nov",
        "Dec",
        "Mon",
        "Tue",
        "Wed",
        "Thu",
        "Fri",
        "Sat",
        "Sun",
        "January",
        "February",
        "March",
        "April",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
    ];
    WORDS.contains(&word)
}

/// How long the temporary path is that `text` begins with.
fn temporary(text: &str) -> Option<usize> {
    const FOLDERS: &[&str] = &[
        "/tmp/",
        "/var/tmp/",
        "/var/folders/",
        "/private/tmp/",
        "/private/var/tmp/",
        "/private/var/folders/",
        "/dev/shm/",
    ];
    let is_unix = FOLDERS.iter().any(|folder| text.starts_with(folder));
    let is_windows = || {
        let drive = text.as_bytes();
        drive.len() > 3 && drive[0].is_ascii_alphabetic() && drive[1] == b':' && drive[2] == b'\\'
    };
    if !is_unix && !is_windows() {
        return None;
    }
    // A drive's colon is part of the path, any other ends it.
    let start = if is_unix { 0 } else { 3 };
    let ends = |c: char| c.is_whitespace() || c.is_control() || "'\"`<>|()[]{},;:*".contains(c);
    let end = text[start..].find(ends).map_or(text.len(), |at| start + at);
    let path = text[..end].trim_end_matches('.');
    (is_unix || is_windows_temporary(path)).then_some(path.len())
}

fn is_windows_temporary(path: &str) -> bool {
    path.split('\\').any(|part| part.eq_ignore_ascii_case("temp") || part.eq_ignore_ascii_case("tmp"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_changes_is_replaced() {
        for (text, expected) in [
            ("error: test 12 failed", "error: test <n> failed"),
            ("error:   a \t b ", "error: a b"),
            ("**Error:** a", "Error: a"),
            ("error[E0308]: mismatched `u32`", "error[E0308]: mismatched `u32`"),
            ("src/a.ts(3,5): error TS2322: x", "src/a.ts(<n>): error TS2322: x"),
            ("src/main.rs:12:5: error: x", "src/main.rs:<n>: error: x"),
            ("2026-11-16T08:00:00.123Z ERROR x", "<n> ERROR x"),
            ("[2026-11-16 08:00:00] ERROR x", "[<n> <n>] ERROR x"),
            ("error: at Mon Nov 16 08:00:00 2026", "error: at <n> <n> <n> <n> <n>"),
            ("error: at 3:45 PM", "error: at <n>"),
            ("error: at 11pm", "error: at <n>"),
            ("error: took 1.5s", "error: took <n>"),
            ("error: took 300ms", "error: took <n>"),
            ("error: 97% full", "error: <n> full"),
            ("error: exit code -1", "error: exit code <n>"),
            ("error: x=-1", "error: x=<n>"),
            ("error: 1,234 rows", "error: <n> rows"),
            ("error: at 0x7ffdc0de", "error: at <n>"),
            ("error: commit a1b2c3d", "error: commit <n>"),
            ("error: commit 1234567", "error: commit <n>"),
            ("error: id 550e8400-e29b-41d4-a716-446655440000.", "error: id <n>."),
            ("error: worker-3 and test_12", "error: worker-<n> and test_<n>"),
            ("error: tmp123456", "error: tmp<n>"),
            ("error: sha256 of utf8", "error: sha256 of utf8"),
            ("connect ECONNREFUSED 127.0.0.1:5432", "connect ECONNREFUSED <n>"),
            ("error: /tmp/x1/a.rs:3:5: bad", "error: <tmp>:<n>: bad"),
            ("error: '/var/folders/zz/T/x y' bad", "error: '<tmp> y' bad"),
            ("error: file:///tmp/abc bad", "error: file://<tmp> bad"),
            ("error: /tmp/abc.", "error: <tmp>."),
            ("error: C:\\Users\\x\\AppData\\Local\\Temp\\a.txt bad", "error: <tmp> bad"),
            ("error: C:\\src\\a.txt bad", "error: C:\\src\\a.txt bad"),
            ("error: src/tmp/a bad", "error: src/tmp/a bad"),
            ("error: größe 3 测试", "error: größe <n> 测试"),
            ("error: defaced facade", "error: defaced facade"),
            ("error: a\u{1b}b", "error: ab"),
        ] {
            assert_eq!(signature(text), expected, "{text}");
        }
    }

    #[test]
    fn different_errors_stay_different() {
        let lines = [
            "error[E0308]: x",
            "error[E0425]: x",
            "error: expected u32",
            "error: expected u64",
            "src/a.rs: x",
            "src/b.rs: x",
        ];
        let mut signatures: Vec<_> = lines.iter().map(|line| signature(line)).collect();
        signatures.dedup();
        assert_eq!(signatures, lines);
    }

    #[test]
    fn it_is_bounded() {
        for unit in ["word ", "é", "1 ", "/tmp/a ", "a1"] {
            let text = signature(&unit.repeat(100_000));
            assert!(text.chars().count() <= LONGEST, "{unit}");
        }
    }

    /// What may differ between two runs of the same error, by kind.
    fn varying() -> impl Strategy<Value = (String, String)> {
        fn twice<S: Strategy<Value = String> + Clone>(
            strategy: S,
        ) -> impl Strategy<Value = (String, String)> {
            (strategy.clone(), strategy)
        }
        prop_oneof![
            twice(any::<u64>().prop_map(|n| n.to_string())),
            twice(any::<i32>().prop_map(|n| n.to_string())),
            twice("[0-9]{1,3}\\.[0-9]{1,6}(ms|s|MB|%)?"),
            twice("0x[0-9a-f]{1,16}"),
            twice("[0-9][0-9a-f]{6,39}"),
            twice("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
            twice(
                "20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|\\+02:00)?"
            ),
            twice("[01]?[0-9]:[0-5][0-9] ?(am|pm|AM|PM)"),
            twice("/tmp/[a-zA-Z0-9_./-]{1,30}[a-z]"),
            twice("/var/folders/[a-zA-Z0-9_/-]{1,30}[a-z]"),
            twice("C:\\\\Users\\\\[a-z]{1,8}\\\\AppData\\\\Local\\\\Temp\\\\[a-zA-Z0-9]{1,12}"),
            twice("(1?[0-9]{1,2}\\.){3}1?[0-9]{1,2}(:[0-9]{1,5})?"),
        ]
    }

    proptest! {
        #[test]
        fn the_same_error_has_the_same_signature(
            parts in prop::collection::vec(("[a-zé]{1,6}( |: | \\(| '|=)", varying()), 1..6),
            gaps in "[ \t]{1,4}",
        ) {
            let (mut one, mut other) = ("error: ".to_owned(), format!("error:{gaps}"));
            for (text, (a, b)) in &parts {
                one += &format!("{text}{a} ");
                other += &format!("{text}{b}{gaps}");
            }
            prop_assert_eq!(signature(&one), signature(&other));
        }

        #[test]
        fn any_text_gives_one_bounded_line(text in any::<String>()) {
            let text = signature(&text);
            prop_assert!(text.chars().count() <= LONGEST);
            prop_assert!(!text.contains(char::is_control) && !text.contains("  "), "{:?}", text);
        }
    }
}
