//! The state file of the official ralph-loop plugin, `.claude/ralph-loop.local.md`: front matter between two lines of
//! dashes, then the prompt. Newer versions of the plugin also name the session.

use crate::core::text::clean;
use crate::core::time::Stamp;
use std::fmt;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfficialLoop {
    pub active: bool,
    /// Finished turns; the plugin's own count includes the current one.
    pub done: u64,
    /// 0 means no limit.
    pub max_iterations: u64,
    pub promise: Option<String>,
    pub session_id: Option<String>,
    pub started_at: Option<Stamp>,
    pub prompt: String,
    /// Names of fields that we do not know.
    pub unknown: Vec<String>,
}

/// An error in the file, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub line: usize,
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

const DASHES: &str = "---";

/// Parses the file.
pub fn official(text: &str) -> Result<OfficialLoop, Fault> {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text.split('\n').map(|line| line.trim_end_matches('\r')).zip(1..);
    let first = lines.next().map_or("", |(line, _)| line);
    if first.trim_end() != DASHES {
        let what = format!("expected {DASHES}, found \"{}\"", clean::excerpt(first, 40));
        return Err(Fault { line: 1, what });
    }
    let mut found = OfficialLoop { active: true, ..OfficialLoop::default() };
    let mut names: Vec<&str> = Vec::new();
    let mut last = 1;
    for (text, line) in lines.by_ref() {
        last = line;
        if text.trim_end() == DASHES {
            let missing = ["iteration", "max_iterations"].into_iter().find(|name| !names.contains(name));
            if let Some(name) = missing {
                return Err(Fault { line, what: format!("the front matter has no {name}") });
            }
            let rest: Vec<&str> = lines.map(|(line, _)| line).collect();
            rest.join("\n").trim().clone_into(&mut found.prompt);
            return Ok(found);
        }
        if !text.trim().is_empty() && !text.trim_start().starts_with('#') {
            found.read_field(text, &mut names).map_err(|what| Fault { line, what })?;
        }
    }
    Err(Fault { line: last, what: format!("the front matter has no end: expected {DASHES}") })
}

impl OfficialLoop {
    fn read_field<'a>(&mut self, line: &'a str, names: &mut Vec<&'a str>) -> Result<(), String> {
        let Some((name, value)) = line.split_once(':').filter(|(name, _)| is_name(name)) else {
            return Err(format!("\"{}\" is not a field: expected \"name: value\"", clean::excerpt(line, 60)));
        };
        if names.contains(&name) {
            return Err(format!("{name} is given twice"));
        }
        names.push(name);
        let value = value.trim();
        self.set(name, value)
            .map_err(|wanted| format!("{name} is \"{}\", not {wanted}", clean::excerpt(value, 40)))
    }

    /// Sets a field, or returns what kind of value it needs.
    fn set(&mut self, name: &str, value: &str) -> Result<(), &'static str> {
        match name {
            "active" => {
                let value = scalar(value).and_then(|value| value.parse().ok());
                self.active = value.ok_or("true or false")?;
            }
            "iteration" => self.done = number(value).ok_or("a whole number")?.saturating_sub(1),
            "max_iterations" => {
                self.max_iterations = number(value).ok_or("a whole number, 0 for no limit")?;
            }
            "completion_promise" => self.promise = scalar(value),
            "session_id" => self.session_id = scalar(value),
            "started_at" => {
                let parse =
                    |value: String| Stamp::parse(&value).ok_or("a time like \"2026-01-31T08:00:00Z\"");
                self.started_at = scalar(value).map(parse).transpose()?;
            }
            other => self.unknown.push(other.to_owned()),
        }
        Ok(())
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Parses digits, quoted or not; `08` is eight.
fn number(value: &str) -> Option<u64> {
    let value = scalar(value)?;
    value.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.parse().ok())?
}

/// Returns a value without its quotes; `None` if it is empty or `null`.
///
/// The plugin puts double quotes around a text without escaping it, and removes the outermost ones again. So a
/// backslash is an escape only where the whole value is valid YAML.
fn scalar(value: &str) -> Option<String> {
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    let text = match (inner('"'), inner('\'')) {
        (Some(text), _) => unescaped(text).unwrap_or_else(|| text.to_owned()),
        (_, Some(text)) => text.replace("''", "'"),
        _ => value.to_owned(),
    };
    let text = text.trim();
    (!text.is_empty() && text != "null" && text != "~").then(|| text.to_owned())
}

/// Resolves escapes; `None` if the text is not valid between double quotes.
fn unescaped(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '"' => return None,
            '\\' => chars.next().filter(|c| matches!(c, '"' | '\\' | '/'))?,
            c => c,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file of the plugin, with more fields.
    fn file(fields: &str, prompt: &str) -> String {
        format!("---\nactive: true\niteration: 7\nmax_iterations: 20\n{fields}---\n\n{prompt}\n")
    }

    fn promise(value: &str) -> Option<String> {
        official(&file(&format!("completion_promise: {value}\n"), "x")).unwrap().promise
    }

    #[test]
    fn every_version_of_the_plugin_is_read() {
        let first = "---\nactive: true\niteration: 1\nmax_iterations: 0\ncompletion_promise: null\nstarted_at: \"2026-01-31T08:00:00Z\"\n---\n\nBuild it.\n";
        let with_session = "---\nactive: true\niteration: 7\nsession_id: 0f8c-1\nmax_iterations: 20\ncompletion_promise: \"ALL DONE\"\nstarted_at: \"2026-01-31T08:00:00Z\"\n---\n\nBuild\n---\nit.\n";
        let at = Stamp::parse("2026-01-31T08:00:00Z");
        let expected = OfficialLoop {
            active: true,
            started_at: at,
            prompt: "Build it.".into(),
            ..OfficialLoop::default()
        };
        assert_eq!(official(first).unwrap(), expected);
        let expected = OfficialLoop {
            done: 6,
            max_iterations: 20,
            promise: Some("ALL DONE".into()),
            session_id: Some("0f8c-1".into()),
            prompt: "Build\n---\nit.".into(),
            ..expected
        };
        assert_eq!(official(with_session).unwrap(), expected);
        assert_eq!(official(&with_session.replace('\n', "\r\n")).unwrap().done, 6, "carriage returns");
        assert_eq!(official(&format!("\u{feff}{with_session}")).unwrap(), expected, "a byte order mark");
        let empty = with_session.replace("0f8c-1", "");
        assert_eq!(official(&empty).unwrap().session_id, None, "a file without a session");
    }

    #[test]
    fn a_promise_is_what_the_plugin_compares_with() {
        for (value, expected) in [
            ("null", None),
            ("~", None),
            ("", None),
            ("\"\"", None),
            ("\"null\"", None),
            ("\"DONE\"", Some("DONE")),
            ("DONE", Some("DONE")),
            ("'DONE'", Some("DONE")),
            ("'it''s done'", Some("it's done")),
            ("\"All tests pass\"", Some("All tests pass")),
            ("\"it's \"really\" done\"", Some("it's \"really\" done")),
            ("\"it's \\\"really\\\" done\"", Some("it's \"really\" done")),
            ("\"C:\\dir\"", Some("C:\\dir")),
            ("\"a: b # c\"", Some("a: b # c")),
            ("\"", Some("\"")),
            ("\"ganz fertig ✓\"", Some("ganz fertig ✓")),
        ] {
            assert_eq!(promise(value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn errors_name_the_line() {
        let numbers = |iteration: &str, most: &str| {
            format!("---\niteration: {iteration}\nmax_iterations: {most}\n---\nx")
        };
        for (name, text, expected) in [
            ("empty", String::new(), "line 1: expected ---, found \"\""),
            ("no front matter", "Build it".into(), "line 1: expected ---, found \"Build it\""),
            ("no end", "---\nactive: true\niteration: 1\n".into(), "line 4: the front matter has no end"),
            ("no field", file("what?\n", "x"), "line 5: \"what?\" is not a field"),
            (
                "a promise over two lines",
                file("completion_promise: \"a\nb\"\n", "x"),
                "line 6: \"b\"\" is not a field",
            ),
            ("active", file("", "x").replace("true", "yes"), "line 2: active is \"yes\", not true or false"),
            ("iteration", numbers("seven", "0"), "line 2: iteration is \"seven\", not a whole number"),
            (
                "negative",
                numbers("1", "-5"),
                "line 3: max_iterations is \"-5\", not a whole number, 0 for no limit",
            ),
            ("fraction", numbers("1", "2.5"), "line 3: max_iterations is \"2.5\""),
            ("nothing", numbers("", "0"), "line 2: iteration is \"\""),
            ("too large", numbers("99999999999999999999999", "0"), "line 2: iteration is"),
            ("twice", file("iteration: 3\n", "x"), "line 5: iteration is given twice"),
            (
                "time",
                file("started_at: yesterday\n", "x"),
                "line 5: started_at is \"yesterday\", not a time like",
            ),
            (
                "no iteration",
                "---\nmax_iterations: 1\n---\nx".into(),
                "line 3: the front matter has no iteration",
            ),
            (
                "no limit",
                "---\niteration: 1\n---\nx".into(),
                "line 3: the front matter has no max_iterations",
            ),
        ] {
            let fault = official(&text).unwrap_err().to_string();
            assert!(fault.starts_with(expected), "{name}: {fault}");
        }
    }

    #[test]
    fn unusual_but_clear_files_are_read() {
        let read = official("---\n\n# by hand\niteration: \"08\"\nmax_iterations: 010\nmodel: opus\n--- \nx")
            .unwrap();
        assert_eq!((read.done, read.max_iterations, read.active), (7, 10, true));
        assert_eq!(read.unknown, ["model"]);
        assert!(!official(&file("", "x").replace("true", "false")).unwrap().active);
        let none = official("---\niteration: 0\nmax_iterations: 0\n---\n").unwrap();
        assert_eq!((none.done, none.prompt.as_str()), (0, ""));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(---\n)?([a-z_]{0,12}:? ?[\"'\\\\a-z0-9 ]{0,12}\r?\n){0,6}(---)?\\PC{0,20}") {
            let _ = official(&text);
        }

        #[test]
        fn what_the_plugin_writes_is_read_back(words in "[ -~é]{1,40}", prompt in "[a-z\\-\n]{1,60}", iteration in 1..1000_u64) {
            let text = format!("---\nactive: true\niteration: {iteration}\nmax_iterations: 0\ncompletion_promise: \"{words}\"\n---\n\n{prompt}\n");
            let read = official(&text).unwrap();
            prop_assert_eq!(read.done, iteration - 1);
            prop_assert_eq!(read.prompt, prompt.trim());
            // A backslash may be an escape.
            if !words.contains('\\') && !matches!(words.trim(), "" | "null" | "~") {
                prop_assert_eq!(read.promise.as_deref(), Some(words.trim()));
            }
        }
    }
}
