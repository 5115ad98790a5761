//! A loop of the official ralph-loop plugin, as it stands in `.claude/ralph-loop.local.md`: front matter between two
//! lines of dashes, then the prompt. Every version of the plugin writes these fields; newer ones name the session.

use super::clean;
use super::time::Stamp;
use std::fmt;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfficialLoop {
    pub active: bool,
    /// Turns that have ended: the plugin counts the one that is under way.
    pub done: u64,
    /// 0 is no limit.
    pub max_iterations: u64,
    pub promise: Option<String>,
    pub session_id: Option<String>,
    pub started_at: Option<Stamp>,
    pub prompt: String,
    /// Fields we do not know, by name.
    pub unknown: Vec<String>,
    /// Where the promise and the limit stand, for whoever finds fault with them.
    pub promise_line: usize,
    pub limit_line: usize,
}

/// What cannot be understood, and in which line.
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

pub fn official(text: &str) -> Result<OfficialLoop, Fault> {
    let text = text.trim_start_matches('\u{feff}');
    let fault = |line: usize, what: String| Fault { line, what };
    let mut lines = text.split('\n').map(|line| line.trim_end_matches('\r')).enumerate();
    match lines.next() {
        Some((_, line)) if line.trim_end() == DASHES => {}
        other => {
            let is = clean::excerpt(other.map_or("", |(_, line)| line), 40);
            return Err(fault(1, format!("it begins with \"{is}\", not with the front matter's {DASHES}")));
        }
    }
    let mut read = Reading::default();
    let mut last = 1;
    for (at, line) in lines.by_ref() {
        last = at + 1;
        if line.trim_end() == DASHES {
            let rest: Vec<&str> = lines.map(|(_, line)| line).collect();
            return read.finish(rest.join("\n").trim().to_owned(), last);
        }
        read.field(line).map_err(|what| fault(last, what))?;
    }
    Err(fault(last, format!("the front matter has no end: a line with {DASHES} is missing")))
}

#[derive(Default)]
struct Reading {
    at: usize,
    iteration: Option<u64>,
    seen: Vec<String>,
    found: OfficialLoop,
}

impl Reading {
    fn field(&mut self, line: &str) -> Result<(), String> {
        self.at += 1;
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            return Ok(());
        }
        let shown = clean::excerpt(line, 60);
        let Some((name, value)) = line.split_once(':').filter(|(name, _)| is_name(name)) else {
            return Err(format!("\"{shown}\" is no field: one is written \"name: value\""));
        };
        if self.seen.iter().any(|seen| seen == name) {
            return Err(format!("{name} is given twice"));
        }
        self.seen.push(name.to_owned());
        let value = value.trim();
        let wrong = |wanted: &str| format!("{name} is \"{}\", not {wanted}", clean::excerpt(value, 40));
        match name {
            "active" => match scalar(value).as_deref() {
                Some("true") => self.found.active = true,
                Some("false") => self.found.active = false,
                _ => return Err(wrong("true or false")),
            },
            "iteration" => self.iteration = Some(number(value).ok_or_else(|| wrong("a whole number"))?),
            "max_iterations" => {
                self.found.max_iterations =
                    number(value).ok_or_else(|| wrong("a whole number, 0 for no limit"))?;
                self.found.limit_line = self.at + 1;
            }
            "completion_promise" => {
                self.found.promise = scalar(value);
                self.found.promise_line = self.at + 1;
            }
            "session_id" => self.found.session_id = scalar(value),
            "started_at" => {
                let at = scalar(value);
                self.found.started_at = at.as_deref().and_then(Stamp::parse);
                if at.is_some() && self.found.started_at.is_none() {
                    return Err(wrong("a time like \"2026-01-31T08:00:00Z\""));
                }
            }
            other => self.found.unknown.push(other.to_owned()),
        }
        Ok(())
    }

    fn finish(mut self, prompt: String, line: usize) -> Result<OfficialLoop, Fault> {
        let missing = |name: &str| Fault { line, what: format!("the front matter ends without {name}") };
        let iteration = self.iteration.ok_or_else(|| missing("iteration"))?;
        if !self.seen.iter().any(|name| name == "max_iterations") {
            return Err(missing("max_iterations"));
        }
        if !self.seen.iter().any(|name| name == "active") {
            self.found.active = true;
        }
        self.found.done = iteration.saturating_sub(1);
        self.found.prompt = prompt;
        Ok(self.found)
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Digits, quoted or not; `08` is eight.
fn number(value: &str) -> Option<u64> {
    let value = scalar(value)?;
    value.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.parse().ok())?
}

/// A value without its quotes; nothing where it is empty or `null`.
///
/// The plugin puts double quotes around whatever it was given, without escaping, and takes the outermost off again. So
/// a backslash is one of YAML's only where the whole would be valid YAML.
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

fn unescaped(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return None,
            '\\' => match chars.next()? {
                c @ ('"' | '\\' | '/') => out.push(c),
                _ => return None,
            },
            c => out.push(c),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As the plugin writes it, with one field put in.
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
            promise_line: 5,
            limit_line: 4,
            ..OfficialLoop::default()
        };
        assert_eq!(official(first).unwrap(), expected);
        let expected = OfficialLoop {
            done: 6,
            max_iterations: 20,
            promise: Some("ALL DONE".into()),
            session_id: Some("0f8c-1".into()),
            prompt: "Build\n---\nit.".into(),
            promise_line: 6,
            limit_line: 5,
            ..expected
        };
        assert_eq!(official(with_session).unwrap(), expected);
        assert_eq!(official(&with_session.replace('\n', "\r\n")).unwrap().done, 6, "carriage returns");
        assert_eq!(official(&format!("\u{feff}{with_session}")).unwrap(), expected, "a mark of bytes");
        let empty = with_session.replace("0f8c-1", "");
        assert_eq!(official(&empty).unwrap().session_id, None, "a client that named no session");
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
    fn what_is_wrong_is_told_by_line() {
        let numbers = |iteration: &str, most: &str| {
            format!("---\niteration: {iteration}\nmax_iterations: {most}\n---\nx")
        };
        for (name, text, expected) in [
            ("empty", String::new(), "line 1: it begins with \"\", not with the front matter's ---"),
            ("no front matter", "Build it".into(), "line 1: it begins with \"Build it\""),
            ("no end", "---\nactive: true\niteration: 1\n".into(), "line 4: the front matter has no end"),
            ("no field", file("what?\n", "x"), "line 5: \"what?\" is no field"),
            (
                "a promise over two lines",
                file("completion_promise: \"a\nb\"\n", "x"),
                "line 6: \"b\"\" is no field",
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
                "line 3: the front matter ends without iteration",
            ),
            (
                "no limit",
                "---\niteration: 1\n---\nx".into(),
                "line 3: the front matter ends without max_iterations",
            ),
        ] {
            let fault = official(&text).unwrap_err().to_string();
            assert!(fault.starts_with(expected), "{name}: {fault}");
        }
    }

    #[test]
    fn what_is_odd_but_clear_is_taken() {
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
        fn what_the_plugin_writes_comes_back(words in "[ -~é]{1,40}", prompt in "[a-z\\-\n]{1,60}", iteration in 1..1000_u64) {
            let text = format!("---\nactive: true\niteration: {iteration}\nmax_iterations: 0\ncompletion_promise: \"{words}\"\n---\n\n{prompt}\n");
            let read = official(&text).unwrap();
            prop_assert_eq!(read.done, iteration - 1);
            prop_assert_eq!(read.prompt, prompt.trim());
            // A backslash before a quotation mark or another is read as YAML's, where the rest allows it.
            if !words.contains('\\') && !matches!(words.trim(), "" | "null" | "~") {
                prop_assert_eq!(read.promise.as_deref(), Some(words.trim()));
            }
        }
    }
}
