//! An error without what changes from run to run.
//!
//! One placeholder stands for every number, time, address and hash, so that a date and a count, or a hash of digits
//! and one of letters, look the same. A short number inside a name (`u32`, `E0308`) belongs to the name.

use crate::core::text::clean;

const VARYING: &str = "<n>";
const TEMPORARY: &str = "<tmp>";
const TEMPORARY_FOLDERS: [&str; 7] = [
    "/tmp/",
    "/var/tmp/",
    "/var/folders/",
    "/private/tmp/",
    "/private/var/tmp/",
    "/private/var/folders/",
    "/dev/shm/",
];

/// Enough to tell errors apart, short enough to store and to show.
pub const MAX_SIGNATURE_CHARS: usize = 200;
/// More than a signature needs, so that a huge line is not read to its end.
const MAX_READ_CHARS: usize = 2_000;
/// As short as git shows a commit.
const MIN_HASH_BYTES: usize = 7;
/// `TS2322`, `ORA12154`.
const MAX_CODE_BYTES: usize = 8;

/// Returns one line of at most [`MAX_SIGNATURE_CHARS`] in which numbers, times, addresses and temporary paths are
/// replaced.
pub fn signature(text: &str) -> String {
    let text: String = text.chars().take(MAX_READ_CHARS).collect();
    let text = clean::line(&text).replace("**", "");
    let (mut out, mut rest) = (String::new(), text.as_str());
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let at_start = !before.is_alphanumeric();
        let word = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        let length = if let Some(length) = temporary_path(rest).filter(|_| at_start) {
            out.push_str(TEMPORARY);
            length
        } else if let Some(length) = hash(rest).or_else(|| number(rest)).filter(|_| at_start) {
            out.push_str(VARYING);
            length
        } else if word > 0 {
            push_name(&rest[..word], &mut out);
            word
        } else {
            out.push(c);
            c.len_utf8()
        };
        before = rest[..length].chars().next_back().unwrap_or(c);
        rest = &rest[length..];
    }
    out.chars().take(MAX_SIGNATURE_CHARS).collect::<String>().trim_end().to_owned()
}

/// Returns the length of the hash or UUID that `text` begins with: hexadecimal, with at least one digit.
fn hash(text: &str) -> Option<usize> {
    let length = text.bytes().take_while(|byte| byte.is_ascii_hexdigit() || *byte == b'-').count();
    let run = text[..length].trim_end_matches('-');
    let is_whole = !text[run.len()..].starts_with(char::is_alphanumeric);
    let has_digit = run.bytes().any(|byte| byte.is_ascii_digit());
    (run.len() >= MIN_HASH_BYTES && has_digit && is_whole).then_some(run.len())
}

/// Returns the length of the number that `text` begins with: its sign, what joins digits in dates, times, positions
/// and addresses, and the unit.
fn number(text: &str) -> Option<usize> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit()).then_some(())?;
    let bytes = digits.as_bytes();
    let is_joined =
        |at: usize| b".,:-+/_".contains(&bytes[at]) && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
    let end = (0..bytes.len()).find(|&at| !bytes[at].is_ascii_alphanumeric() && !is_joined(at));
    Some(text.len() - digits.len() + end.unwrap_or(bytes.len()))
}

/// Keeps the short numbers of a name and the code of an error; a longer number varies.
fn push_name(word: &str, out: &mut String) {
    let is_code = word.len() <= MAX_CODE_BYTES && word.starts_with(|c: char| c.is_ascii_uppercase());
    let mut rest = word;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        out.push_str(if digits > 3 && !is_code { VARYING } else { &rest[..digits] });
        let end = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| digits + at);
        out.push_str(&rest[digits..end]);
        rest = &rest[end..];
    }
}

/// Returns the length of the temporary path that `text` begins with.
fn temporary_path(text: &str) -> Option<usize> {
    let is_unix = TEMPORARY_FOLDERS.iter().any(|folder| text.starts_with(folder));
    let is_windows = text.get(1..3) == Some(":\\");
    // The colon of a drive is part of the path, any other ends it.
    let start = if is_windows { 3 } else { 0 };
    let ends = |c: char| c.is_whitespace() || "'\"`<>|()[]{},;:*".contains(c);
    let end = text.get(start..)?.find(ends).map_or(text.len(), |at| start + at);
    let path = text[..end].trim_end_matches('.');
    let is_temporary = is_unix || (is_windows && path.to_ascii_lowercase().contains("\\temp\\"));
    is_temporary.then_some(path.len())
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
            ("error: at Nov 16 08:00:00 2026", "error: at Nov <n> <n> <n>"),
            ("error: at 3:45 PM", "error: at <n> PM"),
            ("error: at 11pm", "error: at <n>"),
            ("error: took 1.5s", "error: took <n>"),
            ("error: took 300ms", "error: took <n>"),
            ("error: 97% full", "error: <n>% full"),
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
            assert!(text.chars().count() <= MAX_SIGNATURE_CHARS, "{unit}");
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
            twice("[0-9]{1,3}\\.[0-9]{1,6}(ms|s|MB)?"),
            twice("0x[0-9a-f]{1,16}"),
            twice("[0-9][0-9a-f]{6,39}"),
            twice("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
            twice(
                "20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|\\+02:00)?"
            ),
            twice("[01]?[0-9]:[0-5][0-9](am|pm|AM|PM)"),
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
            prop_assert!(text.chars().count() <= MAX_SIGNATURE_CHARS);
            prop_assert!(!text.contains(char::is_control) && !text.contains("  "), "{:?}", text);
        }
    }
}
