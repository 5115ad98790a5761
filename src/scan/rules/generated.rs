//! Finds the comment at the head of a file that says it is generated.

/// Lines of code that may precede the marker: a package, an include guard, a mode.
const MAX_CODE_LINES: usize = 3;
const MAX_LINES: usize = 40;
/// Lines between the two halves of a marker, "generated" and "do not edit".
const MAX_DISTANCE_LINES: usize = 3;

#[rustfmt::skip]
const FORBIDS_EDITS: [&str; 20] = [
    "do not edit", "don't edit", "never edit", "do not modify", "don't modify", "do not change", "don't change",
    "do not alter", "do not touch", "do not hand-edit", "do not hand edit", "do not manually edit",
    "do not directly edit", "not be edited", "not be modified", "not edit by hand", "manual changes",
    "changes will be", "changes made to this file", "edits will be",
];

/// A line with these words is about files that this one makes or uses.
const ABOUT_OTHERS: [&str; 3] = ["generated files", "the generated", "generated code in "];

/// Where a line has these words, only a part of the file is generated.
#[rustfmt::skip]
const ABOUT_A_PART: [&str; 8] = [
    "begin generated", "begin auto", "start generated", "start of generated", "end generated",
    "generated section", "generated region", "generated block",
];

struct Comment {
    number: u64,
    /// In lower case.
    line: String,
    /// After an import, a comment may be about the next item rather than the file.
    after_import: bool,
}

/// Returns the number, from 1, of the line with the marker, and that line in lower case.
pub fn marker(head: &[u8]) -> Option<(u64, String)> {
    memchr::memmem::find(head, b"enerated").or_else(|| memchr::memmem::find(head, b"ENERATED"))?;
    let text = String::from_utf8_lossy(head);
    let comments = preamble(&text);
    comments.iter().enumerate().find_map(|(index, Comment { number, line, after_import })| {
        if !line.contains("generated") || has_any(line, &ABOUT_A_PART) {
            return None;
        }
        let near = &comments
            [index.saturating_sub(MAX_DISTANCE_LINES)..(index + MAX_DISTANCE_LINES + 1).min(comments.len())];
        let near = near.iter().map(|comment| bare(&comment.line)).collect::<Vec<_>>().join(" ");
        let found = is_tagged(line)
            || (is_clear(bare(line)) && !is_scaffold(line) && (!after_import || line.contains("this file ")))
            || (says_generated(line) && has_any(&near, &FORBIDS_EDITS))
            || (has_any(line, &FORBIDS_EDITS) && !has_any(line, &ABOUT_OTHERS));
        found.then(|| (*number, line.clone()))
    })
}

/// Returns the comments before the code.
fn preamble(text: &str) -> Vec<Comment> {
    let (mut comments, mut code, mut after_import) = (Vec::new(), 0, false);
    let mut closing: Option<&str> = None;
    for (number, line) in (1..).zip(text.lines().take(MAX_LINES)) {
        let trimmed = line.trim();
        after_import |= is_import(trimmed);
        if closing.is_none() && !trimmed.is_empty() && !is_comment(trimmed) {
            code += 1;
            if code > MAX_CODE_LINES || opens_text(trimmed) {
                break;
            }
            continue;
        }
        let inside = code > 0 && closing.is_none() && line.starts_with([' ', '\t']);
        if inside {
            break;
        }
        comments.push(Comment { number, line: line.to_lowercase(), after_import });
        closing = open_after(trimmed, closing);
    }
    comments
}

/// Returns whether a literal begins here: text that this file writes to another one.
fn opens_text(line: &str) -> bool {
    ["\"\"\"", "'''", "`"].iter().any(|mark| line.matches(mark).count() % 2 == 1) || line.contains("<<")
}

fn is_import(line: &str) -> bool {
    ["#include", "#import", "import ", "use "].iter().any(|word| line.starts_with(word))
}

/// Returns what closes the comment that is open after this line.
fn open_after<'a>(line: &str, closing: Option<&'a str>) -> Option<&'a str> {
    const BLOCKS: [(&str, &str); 6] =
        [("/*", "*/"), ("<!--", "-->"), ("\"\"\"", "\"\"\""), ("{-", "-}"), ("(*", "*)"), ("'''", "'''")];
    if let Some(end) = closing {
        return closing.filter(|_| !line.contains(end));
    }
    let (open, close) = BLOCKS.into_iter().find(|(open, _)| line.starts_with(open))?;
    (!line[open.len()..].contains(close)).then_some(close)
}

fn is_comment(line: &str) -> bool {
    const MARKS: [&str; 15] =
        ["//", "#", "/*", "*", "--", ";", "%", "<!--", "\"\"\"", "'''", "{-", "(*", "..", "@rem", "REM "];
    MARKS.iter().any(|mark| line.starts_with(mark))
}

/// Strips the characters that make a line a comment.
fn bare(line: &str) -> &str {
    line.trim_matches(|c: char| c.is_whitespace() || "/#*-;%<!>\"'{(.".contains(c))
}

/// Returns whether a line is tagged `@generated`, and not about that tag.
fn is_tagged(line: &str) -> bool {
    line.match_indices("@generated").any(|(at, tag)| {
        let apart = |c: Option<char>| c.is_none_or(|c| !(c.is_alphanumeric() || "`\"'_-".contains(c)));
        apart(line[..at].chars().next_back()) && apart(line[at + tag.len()..].chars().next())
    })
}

/// Returns whether a sentence leaves no doubt, even where nothing is said about editing.
fn is_clear(line: &str) -> bool {
    let line = line.strip_prefix("note: ").unwrap_or(line);
    let what = ["this file ", "this code ", "this module ", "this header "];
    let begins = |parts: &[&str], line: &str| parts.iter().any(|part| line.starts_with(part));
    let said = what
        .iter()
        .find_map(|what| line.strip_prefix(what))
        .and_then(|rest| ["is ", "was ", "has been "].into_iter().find_map(|verb| rest.strip_prefix(verb)));
    const BY_ITSELF: [&str; 3] = ["automatically generated", "auto-generated", "autogenerated"];
    match said {
        Some(rest) => rest.starts_with("generated by ") || begins(&BY_ITSELF, rest),
        None => {
            begins(&["generated automatically by ", "autogenerated: "], line)
                || BY_ITSELF
                    .iter()
                    .any(|words| line.strip_prefix(words).is_some_and(|rest| rest.starts_with(" by ")))
        }
    }
}

/// Returns whether a tool made only the first version: `'init' task`, `` `qlty init` ``.
fn is_scaffold(line: &str) -> bool {
    line.split(|c: char| !(c.is_alphanumeric() || "_-".contains(c))).any(|word| word == "init")
}

fn says_generated(line: &str) -> bool {
    #[rustfmt::skip]
    const WORDS: [&str; 10] = [
        "generated by", "generated from", "automatically generated", "auto-generated", "autogenerated",
        "generated file", "generated code", "code generated", "file is generated", "was generated",
    ];
    has_any(line, &WORDS) && !has_any(line, &ABOUT_OTHERS)
}

fn has_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|words| text.contains(words))
}
