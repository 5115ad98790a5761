//! Which lines are errors.

use crate::core::signal::{is_one_of, prose};

/// Returns the text of an error line without list mark and emphasis, or `None` if the line is no error.
pub fn error(line: &str) -> Option<&str> {
    let (text, is_item) = prose::item(line);
    let text = text.trim_start_matches(is_decoration);
    // A heading or a table row is about errors.
    if text.starts_with(['#', '|']) {
        return None;
    }
    let found = std::iter::successors(Some(text), |text| without_prefix(text)).take(4).any(|text| {
        // "- ParseError: the input is bad" describes a type.
        has_label(text)
            || has_level(text)
            || (!is_item && is_exception(text))
            || after_one_of(text, OPENINGS.iter().copied()).is_some()
    });
    (found || is_complaint(text) || (!is_item && is_build_error(text))).then_some(text)
}

/// The line before an indented list of causes.
pub const CAUSES: &str = "Caused by:";

/// Every line is compared with these and with [`COMPLAINTS`]; other lists are separated by `|`.
#[rustfmt::skip]
const OPENINGS: &[&str] = &[
    "failed to ", "cannot find module ", "could not connect ", "unable to connect ", "panicked at ",
    "exception in thread ", "segmentation fault", "aborted (core dumped", "connect econnrefused", "npm err! ",
    "npm error ",
];
const LABELS: &str = "error|err|fatal|panic|exception|failure|failed|fail|critical|e";
const LABEL_QUALIFIERS: &str = "api|assertion|build|command|compilation|compile|compiler|fatal|internal|linker|network|\
    parse|runtime|syntax|test|tests|type|uncaught|unexpected|unhandled";
const LEVELS: &str = "ERROR|FATAL|CRITICAL|SEVERE|PANIC|FAIL|FAILED|FAILURE";
/// After a level these make it a heading or a sentence about errors.
const LEVEL_TOPICS: &str = "handling|handler|handlers|message|messages|code|codes|type|types|case|cases|path|paths|\
    test|tests|and|or|is|was|are|were";
/// After a label these say that nothing is wrong, or only sum up errors that were printed before.
const NO_CAUSE: &str = "none|no error|no errors|no failures|no issues|no problems|nothing|n/a|fixed|resolved|solved|\
    handled|gone|0|could not compile|test failed, to rerun|build failed|aborting due to|(failures";
/// After the name of an exception these say when it occurs.
const DESCRIPTIONS: &str = "returned|raised|thrown|when|used|if";
/// Messages of operating systems.
#[rustfmt::skip]
const COMPLAINTS: &[&str] = &[
    "access denied", "address already in use", "broken pipe", "cannot allocate memory", "command not found",
    "connection refused", "connection reset by peer", "connection timed out", "module not found",
    "no space left on device", "no such file or directory", "operation not permitted", "operation timed out",
    "out of memory", "permission denied", "too many open files",
];
/// What compilers say after a position; the last ones may have a name before them.
const COMPILER_OPENINGS: &str = "undefined:|undeclared |syntax error|cannot use |cannot find |cannot infer |missing return|\
    expected |unexpected |not enough arguments|too many arguments|assignment mismatch|no required module provides|\
    mismatched types|unresolved |unknown field|invalid operation|redefinition of|declared and not used|\
    imported and not used";
const COMPILER_ENDINGS: &str =
    "undefined|declared and not used|imported and not used|redeclared in this block";
/// Before the label of a tagged line these say that nothing is wrong now.
const NO_LABEL: &str =
    "no|0|zero|without|fixed|handled|resolved|solved|ignored|expected|the|a|an|this|any|each|every";
const MAX_LABEL_BYTES: usize = 80;

/// Returns whether a character is emphasis, or a sign that people and tools put before an error.
fn is_decoration(c: char) -> bool {
    c.is_whitespace() || "*_❌✗✘✖×⚠🚨🔴\u{fe0f}".contains(c)
}

/// Removes one leading time, `[tag]`, position ("src/a.rs:3:5:", "src/a.ts:3:5 -") or program name ("clang:").
fn without_prefix(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let has_digit = first.bytes().any(|byte| byte.is_ascii_digit());
    // A bare number is a count: "0 failed to build".
    let is_time = has_digit
        && first.contains([':', '-'])
        && first.bytes().all(|byte| byte.is_ascii_digit() || b"[]:.,-+/TZ".contains(&byte));
    if is_time || (first.starts_with('[') && first.ends_with(']')) {
        return Some(rest);
    }
    let is_place = first.contains(['/', '\\', '.', '(']) || has_digit;
    match first.strip_suffix(':') {
        Some("note" | "warning" | "help" | "hint" | "info") => None,
        Some(_) => (is_place || !first.starts_with(char::is_uppercase)).then_some(rest),
        None => rest.strip_prefix("- ").filter(|_| is_place),
    }
}

/// Recognises "error: …", "Error[E0308]: …", "error TS2322: …", "--- FAIL: …".
fn has_label(text: &str) -> bool {
    let text = text.strip_prefix("--- ").unwrap_or(text);
    let Some(colon) = text.bytes().take(MAX_LABEL_BYTES).position(|byte| byte == b':') else { return false };
    let label = text[..colon].trim_matches(is_decoration).to_ascii_lowercase();
    let label = label.split(['[', '(']).next().unwrap_or_default();
    let is_code = |word: &&str| word.bytes().any(|byte| byte.is_ascii_digit());
    let mut words = label.split_whitespace().rev().skip_while(is_code);
    let Some(last) = words.next().filter(|word| is_one_of(word, LABELS)) else { return false };
    words.all(|word| is_one_of(word, LABEL_QUALIFIERS)) && has_cause(&text[colon + 1..], last)
}

/// Recognises "ERROR could not open", "[FATAL] …", "FAILED tests/test_a.py::test_b", "E   assert 1 == 2".
fn has_level(text: &str) -> bool {
    if let Some(rest) = text.strip_prefix("E   ") {
        return !rest.trim().is_empty();
    }
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let level = first.trim_matches(|c: char| !c.is_alphanumeric());
    let topic =
        rest.split_whitespace().next().unwrap_or_default().trim_matches(|c: char| !c.is_alphanumeric());
    is_one_of(level, LEVELS)
        && !is_one_of(&topic.to_ascii_lowercase(), LEVEL_TOPICS)
        && has_cause(rest, level)
}

/// Recognises "TypeError: …", "java.lang.NullPointerException", "Uncaught RangeError: …".
fn is_exception(text: &str) -> bool {
    let text = text.strip_prefix("Uncaught ").unwrap_or(text);
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let name = first.strip_suffix(':').unwrap_or(first);
    let last = name.rsplit(['.', ':', '$', '\\', '/']).next().unwrap_or(name);
    let is_name = name.len() <= MAX_LABEL_BYTES
        && last.starts_with(|c: char| c.is_ascii_uppercase())
        && (last.ends_with("Error") || last.ends_with("Exception"))
        && !matches!(name, "Error" | "Exception")
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:$\\/".contains(&byte));
    match first.ends_with(':') {
        true => is_name && has_cause(rest, "") && !starts_with_any(rest, DESCRIPTIONS),
        // Without a colon it is an error only in a form that prose does not use.
        false => is_name && rest.is_empty() && (name == "AssertionError" || name.contains('.')),
    }
}

/// Returns whether the text after a label says what is wrong.
fn has_cause(text: &str, label: &str) -> bool {
    let text = text.trim_matches(|c: char| is_decoration(c) || c == '.');
    let mut words = text.split_whitespace();
    let is_number = words.next().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    let is_count = is_number
        && match words.next() {
            Some(noun) => is_one_of(noun.trim_end_matches([',', ';']), "failed|passed|failures|errors"),
            None => label.to_ascii_lowercase().starts_with("fail"),
        };
    !text.is_empty() && !text.eq_ignore_ascii_case("no") && !is_count && !starts_with_any(text, NO_CAUSE)
}

/// Recognises errors by how a tool words them rather than by a label.
fn is_complaint(text: &str) -> bool {
    let complains = |text: &str| {
        after_one_of(text, COMPLAINTS.iter().copied()).is_some_and(|rest| {
            // "Permission denied is handled" continues as prose.
            let rest = rest.trim_start();
            !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-')
                || starts_with_any(rest, "to|on|at|by|for|from|while")
        })
    };
    // "cat: a.txt: No such file or directory" begins with the tool; "Risk: permission denied" is prose.
    let is_tool = |word: &str| word.ends_with(':') && !word.starts_with(char::is_uppercase);
    text.ends_with("... FAILED")
        || (text.starts_with("thread '") && text.contains(" panicked at "))
        || (starts_with_any(text, "assertion ") && text.contains(" failed"))
        || complains(text)
        || (text.split_whitespace().next().is_some_and(is_tool) && text.split(": ").skip(1).any(complains))
}

/// Recognises the lines of build tools that have neither a label nor a level at their beginning.
fn is_build_error(text: &str) -> bool {
    is_make(text) || is_cmake(text) || is_cause(text) || is_tagged(text) || is_position(text)
}

/// Recognises "make[1]: *** [all] Error 2". An error that make ignores has no stars.
fn is_make(text: &str) -> bool {
    let Some((program, rest)) = text.split_once(": *** ") else { return false };
    let program = program.split('[').next().unwrap_or(program);
    let is_make = program.rsplit(['/', '-']).next().is_some_and(|name| matches!(name, "make" | "gmake"));
    is_make && !program.contains(' ') && !rest.trim().is_empty() && !rest.starts_with("Waiting for ")
}

/// Recognises "CMake Error at CMakeLists.txt:3 (message):" and "CMake Error in src/CMakeLists.txt:".
fn is_cmake(text: &str) -> bool {
    let place = text.strip_prefix("CMake Error at ").or_else(|| text.strip_prefix("CMake Error in "));
    place.and_then(|place| place.split_whitespace().next()).is_some_and(|place| place.contains(':'))
        || text.strip_prefix("CMake Error: ").is_some_and(|cause| has_cause(cause, "error"))
}

/// Recognises "Caused by: …", and the line before a list of causes.
fn is_cause(text: &str) -> bool {
    text.strip_prefix(CAUSES).is_some_and(|cause| cause.is_empty() || has_cause(cause, "error"))
}

/// Recognises "[BUILD] step 3 of 5 error: …".
fn is_tagged(text: &str) -> bool {
    let Some((tag, rest)) = text.strip_prefix('[').and_then(|text| text.split_once("] ")) else {
        return false;
    };
    let is_tag = !tag.is_empty() && tag.chars().all(|c| c.is_ascii_uppercase() || "_- ".contains(c));
    let Some((before, cause)) = rest.split_once(" error: ").filter(|_| is_tag) else { return false };
    let word = before.split_whitespace().next_back().unwrap_or_default().to_ascii_lowercase();
    !is_one_of(tag, "INFO|DEBUG|TRACE|NOTE|WARN|WARNING|OK|PASS|DONE|FIXED|X")
        && !is_one_of(&word, NO_LABEL)
        && has_cause(cause, "error")
}

/// Recognises "x.go:3:2: undefined: y": a file, a line, and what a compiler says.
fn is_position(text: &str) -> bool {
    let Some((place, said)) = text.split_once(": ").or_else(|| Some((text.strip_suffix(':')?, ""))) else {
        return false;
    };
    let mut parts = place.split(':');
    let is_file = parts.next().is_some_and(|file| file.contains('.') && !file.contains(char::is_whitespace));
    let mut numbers = 0;
    let are_numbers = parts.all(|part| {
        numbers += 1;
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
    });
    let said = said.trim_end();
    let ends =
        |ending: &str| said.strip_suffix(ending).is_some_and(|name| name.is_empty() || name.ends_with(' '));
    is_file
        && are_numbers
        && (1..=2).contains(&numbers)
        && !starts_with_any(said, "note:|warning:|info:|help:")
        && (starts_with_any(said, COMPILER_OPENINGS) || COMPILER_ENDINGS.split('|').any(ends))
}

fn starts_with_any(text: &str, list: &str) -> bool {
    after_one_of(text, list.split('|')).is_some()
}

/// Returns the text after one of these beginnings, ignoring case. A beginning ends with its word; after one that ends
/// with a space something must follow.
fn after_one_of<'a, 'b>(text: &'a str, mut beginnings: impl Iterator<Item = &'b str>) -> Option<&'a str> {
    let first = text.bytes().next()?.to_ascii_lowercase();
    beginnings.find_map(|start| {
        if start.as_bytes().first() != Some(&first) {
            return None;
        }
        let head = text.as_bytes().get(..start.len())?;
        let rest = text.get(start.len()..).filter(|_| head.eq_ignore_ascii_case(start.as_bytes()))?;
        let ends = if start.ends_with(' ') {
            !rest.trim().is_empty()
        } else {
            !rest.starts_with(char::is_alphanumeric)
        };
        ends.then_some(rest)
    })
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
            "make: *** [x] Error 2",
            "make: *** [Makefile:3: all] Error 2",
            "make[1]: *** [all] Error 2",
            "/usr/bin/gmake: *** No rule to make target 'x'.  Stop.",
            "CMake Error at CMakeLists.txt:3 (add_executable):",
            "CMake Error in src/CMakeLists.txt:",
            "CMake Error: The source directory does not exist.",
            "Caused by:",
            "Caused by: java.io.IOException: closed",
            "Caused by: could not read the file",
            "[BUILD] error: linking failed",
            "[BUILD] src/main.c:3: error: expected ';'",
            "[BUILD] step 3 of 5 error: linking failed",
            "[BUILD TOOLS] compiling x.c error: linking failed",
            "x.go:3:2: undefined",
            "x.go:3:2: undefined: y",
            "./x.go:3:2: undefined: pkg.Y",
            "x.go:3:2: y declared and not used",
            "x.go:3: declared and not used: y",
            "x.go:3:2: \"os\" imported and not used",
            "x.go:3:2: syntax error: unexpected newline",
            "x.go:3:2: cannot use y (variable of type int) as string value",
            "x.go:3:2: missing return",
        ];
        let missed: Vec<_> = lines.iter().filter(|line| error(line).is_none()).collect();
        assert!(missed.is_empty(), "{missed:#?}");
    }

    #[test]
    fn lines_about_errors_are_no_errors() {
        let lines = [
            "Build failed: 3 errors",
            "error: could not compile `x` due to 2 errors",
            "FAILED (failures=1)",
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
            "fatal errors end the run",
            "An exception: the first line",
            "make test passes",
            "assertion style is uniform",
            "Traceback (most recent call last):",
            "E2E tests pass",
            "make: [Makefile:3: clean] Error 1 (ignored)",
            "make: *** ",
            "make: *** Waiting for unfinished jobs....",
            "make: Nothing to be done for 'all'.",
            "I make: *** a joke",
            "remake: *** [x] Error 2",
            "CMake Error at configure time is gone",
            "CMake Error handling was added",
            "CMake Error: none",
            "CMake Warning at CMakeLists.txt:3 (message):",
            "Caused by a typo",
            "caused by: a typo",
            "It was Caused by: a typo",
            "- Caused by: a typo",
            "Caused by: nothing",
            "Caused by: fixed",
            "[BUILD] finished with no error: good",
            "[BUILD] fixed error: a typo",
            "[BUILD] step 3 error: none",
            "[BUILD] step 3 error: 0",
            "[INFO] the last error: a typo",
            "[x] Fixed the error: a typo",
            "[BUILD] done",
            "x.go:3:2: renamed to y",
            "x.go:3:2: undefined behaviour is avoided",
            "x.go:3:2: warning: undefined",
            "x.go:3:2: note: undefined: y",
            "x.go: undefined",
            "Line 3:2: undefined",
            "The variable was undefined",
            "see x.go:3:2: undefined",
            "I ran e: nothing",
        ];
        let wrong: Vec<_> = lines.iter().filter(|line| error(line).is_some()).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
