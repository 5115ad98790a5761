//! Which lines are errors.

use crate::core::signal::own;

/// The text of an error line without list mark and emphasis, or none where the line is no error.
pub fn error(line: &str) -> Option<&str> {
    let (text, listed) = own::item(line);
    let text = text.trim_start_matches(is_decoration);
    // A heading or the row of a table speaks about errors.
    if text.is_empty() || text.starts_with(['#', '|']) {
        return None;
    }
    let found = sheddings(text).any(|rest| is_error(rest, listed)) || is_tools_complaint(text);
    (found && !sheddings(text).any(is_tally)).then_some(text)
}

/// The last line of a tool that has told its errors before: the same for every cause.
fn is_tally(text: &str) -> bool {
    const OPENINGS: [&str; 7] = [
        "test result: failed",
        "error: could not compile",
        "error: test failed, to rerun",
        "error: build failed",
        "error: aborting due to",
        "*** [",
        "failed (failures=",
    ];
    let counts = |text: &str| {
        let mut words = text.split_whitespace();
        let counted = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
        let noun = words.any(counted).then(|| words.next()).flatten().unwrap_or_default();
        ["failed", "passed", "failures", "errors"].contains(&noun.trim_end_matches([',', ';', '.']))
    };
    OPENINGS.iter().any(|opening| opens_with(text, opening)) || counts(&text.to_lowercase())
}

/// Emphasis and the signs that people and tools put before an error.
fn is_decoration(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '*' | '_' | '❌' | '✗' | '✘' | '✖' | '×' | '⚠' | '🚨' | '🔴' | '\u{fe0f}')
}

/// The text, and what is left of it without a time, a place or a compiler's name before the error.
fn sheddings(text: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(text), |text| shed(text)).take(4)
}

fn shed(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    // A bare number is a count: "0 failed to build".
    let is_time = first.contains([':', '-'])
        && first.bytes().any(|byte| byte.is_ascii_digit())
        && first.trim_matches(['[', ']']).bytes().all(|b| b.is_ascii_digit() || b":.,-+/TZ".contains(&b));
    let is_bracketed = first.starts_with('[') && first.ends_with(']');
    if is_time || is_bracketed {
        return Some(rest);
    }
    // "src/a.rs:3:5: error: …", "src/a.ts:3:5 - error …".
    let (place, rest) = match first.strip_suffix(':') {
        Some(place) => (place, rest),
        None => (first, rest.strip_prefix("- ")?),
    };
    let is_place = place.contains(['/', '\\', '.', '(']) || place.ends_with(|c: char| c.is_ascii_digit());
    (is_place || TOOLS.contains(&place)).then_some(rest)
}

const TOOLS: &[&str] = &[
    "clang", "clang++", "gcc", "g++", "cc", "c++", "ld", "collect2", "cargo", "rustc", "make", "cmake",
    "ninja", "git", "go", "javac", "docker",
];

fn is_error(text: &str, listed: bool) -> bool {
    // "- ParseError: the input is bad" lists what there is; a tool's output is not listed.
    has_label(text)
        || is_shouted(text)
        || (!listed && is_exception(text))
        || OPENINGS.iter().any(|o| opens_with(text, o))
}

const OPENINGS: &[&str] = &[
    "failed to ",
    "cannot find module ",
    "could not connect ",
    "unable to connect ",
    "panicked at ",
    "exception in thread ",
    "segmentation fault",
    "aborted (core dumped",
    "connect econnrefused",
    "npm err! ",
    "npm error ",
];

const LABELS: &[&str] = &[
    "error",
    "err",
    "fatal",
    "fatal error",
    "panic",
    "exception",
    "failure",
    "failed",
    "fail",
    "critical",
    "e",
    "api error",
    "assertion failed",
    "build error",
    "build failed",
    "command failed",
    "compilation error",
    "compilation failed",
    "compile error",
    "internal compiler error",
    "internal error",
    "linker error",
    "network error",
    "parse error",
    "runtime error",
    "syntax error",
    "test failed",
    "tests failed",
    "type error",
    "uncaught error",
    "uncaught exception",
    "unexpected error",
    "unhandled error",
    "unhandled exception",
];

/// No label is longer, code and emphasis included.
const LONGEST_LABEL: usize = 80;

/// "error: …", "Error[E0308]: …", "error TS2322: …", "--- FAIL: …".
fn has_label(text: &str) -> bool {
    let text = text.strip_prefix("--- ").unwrap_or(text);
    let Some(colon) = text.bytes().take(LONGEST_LABEL).position(|byte| byte == b':') else { return false };
    let label = without_code(text[..colon].trim_matches(is_decoration));
    LABELS.iter().any(|known| label.eq_ignore_ascii_case(known)) && tells(&text[colon + 1..], label)
}

/// A label without the code of the error behind it.
fn without_code(label: &str) -> &str {
    if let Some(open) = label.find(['[', '(']).filter(|_| label.ends_with([']', ')'])) {
        return label[..open].trim_end();
    }
    match label.rsplit_once(' ') {
        Some((label, code)) if is_code(code) => label,
        _ => label,
    }
}

fn is_code(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_alphanumeric()) && word.bytes().any(|byte| byte.is_ascii_digit())
}

/// What stands behind a label says what is wrong: not "none", not "fixed", not a count.
fn tells(text: &str, label: &str) -> bool {
    let text = text.trim_matches(|c: char| is_decoration(c) || c == '.');
    if text.eq_ignore_ascii_case("no") || NOTHING_WRONG.iter().any(|nothing| starts_with_word(text, nothing))
    {
        return false;
    }
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_count = is_number && (starts_with(label, "fail") || text.bytes().all(|byte| byte == b'0'));
    !text.is_empty() && !is_count
}

const NOTHING_WRONG: &[&str] = &[
    "none",
    "no error",
    "no errors",
    "no failures",
    "no issues",
    "no problems",
    "nothing",
    "n/a",
    "fixed",
    "resolved",
    "solved",
    "handled",
    "gone",
    "0 errors",
    "0 failed",
    "0 failures",
];

fn starts_with_word(text: &str, start: &str) -> bool {
    starts_with(text, start) && !text[start.len()..].starts_with(char::is_alphanumeric)
}

/// "TypeError: …", "java.lang.NullPointerException", "Uncaught RangeError: …".
fn is_exception(text: &str) -> bool {
    let text = text.strip_prefix("Uncaught ").unwrap_or(text);
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let name = first.strip_suffix(':').unwrap_or(first);
    let last = name.rsplit(['.', ':', '$', '\\', '/']).next().unwrap_or(name);
    let stem = last.strip_suffix("Error").or(last.strip_suffix("Exception"));
    let is_name = name.len() <= LONGEST_LABEL
        && stem.is_some_and(|stem| !stem.is_empty() || last.len() < name.len())
        && last.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:$\\/".contains(&byte));
    match first.ends_with(':') {
        true => is_name && tells(rest, "") && !DESCRIBED.iter().any(|word| starts_with_word(rest, word)),
        // Alone it is an error only where nobody would name a type so in prose.
        false => is_name && rest.is_empty() && (name == "AssertionError" || name.contains('.')),
    }
}

/// Behind an exception's name these tell when it occurs.
const DESCRIBED: &[&str] = &["returned", "raised", "thrown", "when", "used", "if"];

/// "ERROR could not open", "[FATAL] …", "FAILED tests/test_a.py::test_b", "E   assert 1 == 2".
fn is_shouted(text: &str) -> bool {
    if let Some(rest) = text.strip_prefix("E   ") {
        return !rest.trim().is_empty();
    }
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let level = first.trim_matches(['[', ']', '(', ')', '<', '>', ':']);
    let is_level =
        matches!(level, "ERROR" | "FATAL" | "CRITICAL" | "SEVERE" | "PANIC" | "FAIL" | "FAILED" | "FAILURE");
    let subject = rest.split_whitespace().next().unwrap_or("").trim_matches(|c: char| !c.is_alphanumeric());
    is_level && tells(rest, level) && !ABOUT.iter().any(|word| word.eq_ignore_ascii_case(subject))
}

/// Behind "ERROR" these make it the subject of a heading.
const ABOUT: &[&str] = &[
    "handling",
    "handler",
    "handlers",
    "message",
    "messages",
    "code",
    "codes",
    "kind",
    "kinds",
    "type",
    "types",
    "case",
    "cases",
    "path",
    "paths",
    "recovery",
    "reporting",
    "logging",
    "log",
    "logs",
    "state",
    "states",
    "response",
    "responses",
    "rate",
    "free",
    "count",
    "page",
    "pages",
    "checks",
    "propagation",
    "boundary",
    "boundaries",
    "errors",
    "error",
    "tests",
    "test",
    "and",
    "or",
    "is",
    "was",
    "are",
    "were",
    "has",
    "have",
];

/// What operating systems say, as tools pass it on.
const COMPLAINTS: &[&str] = &[
    "access denied",
    "address already in use",
    "broken pipe",
    "cannot allocate memory",
    "command not found",
    "connection refused",
    "connection reset by peer",
    "connection timed out",
    "module not found",
    "no space left on device",
    "no such file or directory",
    "operation not permitted",
    "operation timed out",
    "out of memory",
    "permission denied",
    "too many open files",
];

/// Not an error by its first word, but by what a tool says at its end.
fn is_tools_complaint(text: &str) -> bool {
    if text.ends_with("... FAILED") || (text.starts_with("thread '") && text.contains(" panicked at ")) {
        return true;
    }
    if starts_with(text, "make") && text.contains("*** [") {
        return true;
    }
    if starts_with(text, "assertion ") && text.contains(" failed") {
        return true;
    }
    if complains(text) {
        return true;
    }
    // "cat: a.txt: No such file or directory" begins with the tool; "Risk: permission denied" is prose.
    let is_tool = |word: &str| word.ends_with(':') && !word.starts_with(char::is_uppercase);
    text.split_whitespace().next().is_some_and(is_tool) && text.split(": ").skip(1).any(complains)
}

fn complains(text: &str) -> bool {
    let found = COMPLAINTS.iter().find(|complaint| starts_with_word(text, complaint));
    found.is_some_and(|complaint| {
        let rest = &text[complaint.len()..];
        // "Permission denied is handled" goes on as prose.
        !rest.trim_start().starts_with(|c: char| c.is_alphanumeric() || c == '-')
            || ["to", "on", "at", "by", "for", "from", "while"]
                .iter()
                .any(|word| starts_with_word(rest.trim_start(), word))
    })
}

/// An opening and something behind it.
fn opens_with(text: &str, opening: &str) -> bool {
    starts_with(text, opening) && (!opening.ends_with(' ') || !text[opening.len()..].trim().is_empty())
}

/// Whatever the case. `start` is ASCII, so what it matches is too.
fn starts_with(text: &str, start: &str) -> bool {
    text.as_bytes().get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_errors() {
        let lines = [
            "error: cannot find `x`",
            "error[E0308]: mismatched types",
            "Error[E0308]: mismatched types",
            "Error: something broke",
            "ERROR: something broke",
            "Error: 404",
            "Error: 404 Not Found",
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'",
            "  error: indented",
            "**Error:** bold",
            "**Error**: bold",
            "- Error: in a list",
            "❌ Error: with a sign",
            "⚠️ error: with a sign",
            "err: short",
            "fatal: not a git repository",
            "Fatal error: out of range",
            "panic: runtime error: index out of range [3]",
            "API Error: 500 Internal server error",
            "src/main.rs:12:5: error: expected `;`",
            "src/a.ts(3,5): error TS2322: Type 'a' is not assignable",
            "src/a.ts:3:5 - error TS2322: Type",
            "clang: error: linker command failed with exit code 1",
            "make[1]: *** [all] Error 2",
            "thread 'main' panicked at src/main.rs:3:5:",
            "thread 'main' (1234) panicked at src/main.rs:3:5:",
            "panicked at src/main.rs:3:5",
            "assertion `left == right` failed",
            "assertion failed: x > 3",
            "FAILED tests/test_a.py::test_b - assert 1 == 2",
            "FAIL src/a.test.ts",
            "--- FAIL: TestParse (0.00s)",
            "test parser::tests::empty ... FAILED",
            "E   AssertionError: assert 1 == 2",
            "TypeError: x is not a function",
            "Uncaught TypeError: x is not a function",
            "ModuleNotFoundError: No module named 'x'",
            "requests.exceptions.ConnectionError: refused",
            "java.lang.NullPointerException",
            "Exception in thread \"main\" java.lang.NullPointerException",
            "std::io::Error: broken",
            "AssertionError",
            "npm ERR! code ELIFECYCLE",
            "npm error code ENOENT",
            "[ERROR] could not open the file",
            "2026-11-16T08:00:00Z ERROR could not open the file",
            "[12:00:01] ERROR: could not open the file",
            "2026-11-16 12:00:01,123 CRITICAL down",
            "ERROR in ./src/index.js",
            "ERROR 1045 (28000): Access denied for user",
            "Segmentation fault (core dumped)",
            "Failed to compile.",
            "connection refused",
            "Connection refused (os error 111)",
            "connect ECONNREFUSED 127.0.0.1:5432",
            "Unable to connect to API (ECONNREFUSED)",
            "curl: (7) Failed to connect to localhost port 80: Connection refused",
            "Permission denied",
            "Permission denied (publickey).",
            "cat: a.txt: No such file or directory",
            "bash: foo: command not found",
            "/bin/sh: 1: foo: Permission denied",
            "E: Unable to locate package x",
        ];
        let missed: Vec<_> = lines.iter().filter(|line| error(line).is_none()).collect();
        assert!(missed.is_empty(), "{missed:#?}");
    }

    #[test]
    fn lines_that_only_speak_of_errors() {
        let lines = [
            "Build failed: 3 errors",
            "make: *** [Makefile:3: all] Error 2",
            "test result: FAILED. 3 passed; 1 failed",
            "",
            "0 failed",
            "0 errors",
            "no errors",
            "No errors were found.",
            "12 passed, 0 failed",
            "0 failed to build",
            "0 FAILED in the suite",
            "1. 0 failed to build",
            "test result: ok. 12 passed; 0 failed; 0 ignored",
            "error handling",
            "Error handling is in place.",
            "Error handling: done",
            "**Error handling:** retries were added",
            "ERROR HANDLING",
            "ERROR HANDLING is done",
            "## Error handling",
            "# Error: what it means",
            "| Error: | none |",
            "errors were fixed",
            "Errors: 0",
            "Errors: none",
            "Error: none",
            "Error: None.",
            "Errors: 3",
            "Failed: 0",
            "Failed: 2",
            "FAILED: 0",
            "FAILED TESTS: 0",
            "Failures: 0",
            "fixed the error",
            "Fixed error: mismatched types",
            "I fixed the error: it was a typo",
            "The error: a typo",
            "The error was: connection refused",
            "error-free",
            "It runs without error",
            "without error: all good",
            "ErrorKind",
            "ErrorKind: an enum",
            "ErrorKind::NotFound is mapped",
            "Error",
            "Error:",
            "**Error:**",
            "Errors are now typed",
            "Error messages name the path",
            "error codes: 1 and 2",
            "The failing test passes now",
            "failed",
            "FAILED",
            "TypeError is handled",
            "TypeError: fixed by a cast",
            "ParseError: returned when the input is bad",
            "- ParseError: the input is bad",
            "- ParseError",
            "ParseError",
            "I added a ParseError: it names the line",
            "Connection refused errors are retried",
            "Permission denied is handled",
            "permission denied-style answers are tested",
            "Risk: permission denied on the server",
            "It handles permission denied",
            "I got: connection refused",
            "Two things remain: permission denied handling and the docs",
            "panic-free code",
            "It never panicked at all",
            "The panic: hook prints the answer",
            "warning: unused variable",
            "note: error codes are listed",
            "fatal errors end the loop",
            "An exception: the first line",
            "make test passes",
            "assertion style is uniform",
            "Traceback (most recent call last):",
            "E2E tests pass",
            "I ran e: nothing",
        ];
        let wrong: Vec<_> = lines.iter().filter(|line| error(line).is_some()).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
