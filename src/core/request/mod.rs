//! What `start` is asked to do: a task and flags, from the text of a slash command or from a shell.

pub mod import;

use super::settings::{self, PRESETS, Preset};
use super::time::duration;
use crate::core::text::nearest::nearest;
use serde_json::{Map, Value, json};

/// A start as it was typed. Its values are valid; files and variables are not taken into account yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StartRequest {
    pub task: String,
    /// Explicit flags, by settings key.
    pub flags: Map<String, Value>,
    /// Values of a preset, by settings key.
    pub preset: Map<String, Value>,
    pub resume: bool,
    /// The run id, or the beginning of it, of the loop to resume.
    pub run: Option<String>,
    /// Import the loop of the official plugin.
    pub import: bool,
    pub reset: bool,
    pub replace: bool,
    pub ignore_open_questions: bool,
    pub skip_constraint_scan: bool,
}

/// The task is part of the state, which is read and written at every turn.
const MAX_TASK_CHARS: usize = 20_000;

/// The switches of `start` that are not settings, with their help.
pub const SWITCHES: [(&str, &str); 6] = [
    ("resume", "Resume a paused, ended or orphaned loop"),
    ("import", "Import a loop of the official ralph-loop plugin"),
    ("reset", "Reset a tripped circuit breaker first"),
    ("replace", "End the loop running in this session first"),
    ("ignore-open-questions", "Start even if a question is unanswered"),
    ("skip-constraint-scan", "Start even if a critical constraint is found"),
];

/// Why a request cannot be carried out.
#[derive(Debug)]
pub struct RequestError {
    pub message: String,
    pub hint: Option<&'static str>,
}

impl<T: Into<String>> From<T> for RequestError {
    fn from(message: T) -> Self {
        RequestError { message: message.into(), hint: None }
    }
}

impl StartRequest {
    /// Sets one flag; `value` is `None` for a switch.
    pub fn set(&mut self, flag: &str, value: Option<&str>) -> Result<(), String> {
        match (takes_value(flag), value) {
            (None, _) => {
                let meant = nearest(flag, flags())
                    .map_or_else(String::new, |flag| format!(", did you mean --{flag}?"));
                return Err(format!("unknown flag: --{flag}{meant}"));
            }
            (Some(true), None) => return Err(format!("--{flag} needs a value")),
            (Some(false), Some(_)) => return Err(format!("--{flag} takes no value")),
            _ => {}
        }
        if let (Some(key), Some(value)) = (settings::find_flag(flag), value) {
            let wrong = |wrong| format!("--{flag}: {wrong}");
            if !key.kind.is_repeatable() {
                self.flags.insert(key.name.to_owned(), key.read(&value.into()).map_err(wrong)?);
                return Ok(());
            }
            // The flag may be given several times; each value is one element.
            let mut given = key.read(&json!([value])).map_err(wrong)?;
            let list = self.flags.entry(key.name).or_insert_with(|| json!([]));
            if let (Value::Array(list), Value::Array(given)) = (list, &mut given) {
                list.append(given);
            }
            return Ok(());
        }
        match flag {
            "run" => self.run = value.map(str::to_owned),
            "resume" => self.resume = true,
            "import" => self.import = true,
            "reset" => self.reset = true,
            "replace" => self.replace = true,
            "ignore-open-questions" => self.ignore_open_questions = true,
            "skip-constraint-scan" => self.skip_constraint_scan = true,
            _ if !self.preset.is_empty() => {
                return Err("--poc and --production cannot be used together".into());
            }
            _ => self.preset = preset(flag).map(Preset::values).unwrap_or_default(),
        }
        Ok(())
    }

    /// Checks the request as a whole.
    pub fn checked(mut self) -> Result<Self, RequestError> {
        self.task = self.task.trim().to_owned();
        if self.import && self.resume {
            return Err("--import and --resume cannot be used together".into());
        }
        if self.task.is_empty() && !self.resume && !self.import {
            return Err(RequestError {
                message: "no task given".into(),
                hint: Some("use /ralph:start TASK"),
            });
        }
        let length = self.task.chars().count();
        if length > MAX_TASK_CHARS {
            return Err(RequestError {
                message: format!("task too long: {length} characters (at most {MAX_TASK_CHARS})"),
                hint: Some("put the task into a file, and name that file in the task"),
            });
        }
        if self.run.is_some() && !self.resume {
            return Err("--run needs --resume".into());
        }
        for what in ["hours", "iterations"] {
            let of = |end: &str| self.flags.get(&format!("loop_limits.{end}_{what}")).and_then(Value::as_f64);
            if let (Some(min), Some(max)) = (of("min"), of("max"))
                && max > 0.0
                && min > max
            {
                return Err(format!("--min-{what} {min} is greater than --max-{what} {max}").into());
            }
        }
        Ok(self)
    }

    /// Parses the text of a slash command. Flags may be anywhere among the words of the task; a quoted or back-quoted
    /// part is task, and so is everything after a `--` before the task's first word.
    pub fn from_text(text: &str) -> Result<Self, RequestError> {
        let mut request = StartRequest::default();
        let mut rest = text;
        while let Some((before, flag, after)) = next_flag(rest, request.task.is_empty()) {
            push_task(&mut request.task, before);
            rest = after;
            let Some(flag) = flag else { break };
            let name = flag.split('=').next().unwrap_or(flag);
            rest = &rest[2 + name.len()..];
            let mut value = None;
            if let Some(inline) = rest.strip_prefix('=') {
                let (taken, after) = take_value(name, inline);
                (value, rest) = (Some(taken), after);
            } else if takes_value(name) == Some(true) && !is_flag(rest.trim_start()) {
                let (taken, after) = take_value(name, rest.trim_start());
                (value, rest) = (Some(taken).filter(|value| !value.is_empty()), after);
            }
            request.set(name, value.as_deref()).map_err(|wrong| match takes_value(name) {
                Some(_) => wrong,
                None => format!(
                    "{wrong} (to keep it in the task, quote it: \"--{name}\", or put -- before the task)"
                ),
            })?;
        }
        push_task(&mut request.task, rest);
        request.checked()
    }
}

fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// Returns every flag of a start.
fn flags() -> impl Iterator<Item = &'static str> {
    let settings = settings::KEYS.iter().filter_map(|key| key.flag);
    let switches = SWITCHES.iter().map(|(name, _)| *name);
    settings.chain(switches).chain(PRESETS.iter().map(|preset| preset.name)).chain(["run"])
}

/// Returns whether a flag takes a value; `None` if there is no such flag.
fn takes_value(flag: &str) -> Option<bool> {
    if settings::find_flag(flag).is_some() || flag == "run" {
        return Some(true);
    }
    let switch = SWITCHES.iter().any(|(name, _)| *name == flag) || preset(flag).is_some();
    switch.then_some(false)
}

fn push_task(task: &mut String, piece: &str) {
    let piece = piece.trim();
    if !piece.is_empty() {
        if !task.is_empty() {
            task.push(' ');
        }
        task.push_str(piece);
    }
}

fn is_flag(text: &str) -> bool {
    text.strip_prefix("--").is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// Splits at the first flag outside quotes: the text before it, its word without dashes (`None` for a lone `--`), and
/// the rest, from the flag on (after a lone `--`). Once the task has begun, a lone `--` is text.
fn next_flag(text: &str, task_is_empty: bool) -> Option<(&str, Option<&str>, &str)> {
    let mut word_start = true;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if word_start {
            let rest = &text[at..];
            if is_flag(rest) {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                return Some((&text[..at], Some(&rest[2..end]), rest));
            }
            if let Some(after) = rest.strip_prefix("--")
                && task_is_empty
                && text[..at].trim().is_empty()
                && (after.is_empty() || after.starts_with(char::is_whitespace))
            {
                return Some((&text[..at], None, after));
            }
        }
        // A quotation begins at the start of a word; an apostrophe within a word does not begin one.
        if word_start
            && matches!(c, '"' | '`')
            && let Some(length) = text[at + 1..].find(c)
        {
            at += 1 + length + 1;
            word_start = false;
            continue;
        }
        word_start = c.is_whitespace();
        at += c.len_utf8();
    }
    None
}

/// Splits off a flag's value: one word, all words of a duration, or a quotation without its quotes (`\"` and `\\` inside
/// double ones).
fn take_value<'a>(flag: &str, text: &'a str) -> (String, &'a str) {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    if let Some(quote) = quote {
        let mut value = String::new();
        let mut escaped = false;
        for (index, c) in text.char_indices().skip(1) {
            if escaped {
                if !matches!(c, '"' | '\\') {
                    value.push('\\');
                }
                value.push(c);
                escaped = false;
            } else if c == '\\' && quote == '"' {
                escaped = true;
            } else if c == quote {
                return (value, &text[index + 1..]);
            } else {
                value.push(c);
            }
        }
    }
    let word = |text: &'a str| text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    let (mut last, mut rest) = word(text);
    let mut value = last.to_owned();
    while settings::find_flag(flag).is_some_and(|key| key.kind.is_duration())
        && let (next, after) = word(rest.trim_start())
        && duration::continues(last, next)
    {
        value.push_str(next);
        (last, rest) = (next, after);
    }
    (value, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> (String, Value) {
        let request = StartRequest::from_text(text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
        (request.task, Value::Object(request.flags))
    }

    #[test]
    fn both_flag_forms_anywhere_among_the_words() {
        let hours = json!({"loop_limits.max_hours": 4});
        for text in [
            "make the suite green --max-hours 4",
            "make the suite green --max-hours=4",
            "--max-hours 4 make the suite green",
            "make the --max-hours=\"4\" suite green",
            "make the suite green --max-hours 04",
        ] {
            assert_eq!(parse(text), ("make the suite green".into(), hours.clone()), "{text}");
        }
        assert_eq!(parse("x --max-iterations=08").1, json!({"loop_limits.max_iterations": 8}));
    }

    #[test]
    fn a_duration_means_the_same_in_every_form() {
        let hours = json!({"loop_limits.max_hours": 1.5});
        for text in [
            "--max-hours '1h 30m' do x",
            "--max-hours=\"1h 30m\" do x",
            "--max-hours 1h 30m do x",
            "--max-hours=1h 30m do x",
            "do --max-hours 1h 30m x",
            "do x --max-hours 1H 30M",
            "do x --max-hours 1h\n30m",
        ] {
            assert_eq!(parse(text), ("do x".into(), hours.clone()), "{text}");
        }
        let two = json!({"loop_limits.max_hours": 2});
        assert_eq!(parse("--max-hours 2H 30 files"), ("30 files".into(), two.clone()));
        assert_eq!(parse("--max-hours '2h' 30m x"), ("30m x".into(), two));
        assert_eq!(parse("--max-iterations 3 30m x").0, "30m x", "no duration");
    }

    #[test]
    fn free_text_arrives_whole() {
        for text in [
            "it's \"quoted\" $(rm -rf /) `date` 'single' \\ back",
            "first line\nsecond  line\n\ttabbed",
            "a - b -- not a flag, it's",
            "make `cargo build --release` pass",
            "keep \"--verbose\" working",
            "a ---\ntitle: x\n---\nb",
            "x=--y and foo--bar -x -",
            "🦀 ünï",
        ] {
            assert_eq!(parse(text), (text.to_owned(), json!({})), "{text}");
        }
        assert_eq!(parse("fix -- it's red --max-hours 2").1, json!({"loop_limits.max_hours": 2}));
        assert_eq!(
            parse("--max-hours 2 -- fix --bogus and --max-hours 9"),
            ("fix --bogus and --max-hours 9".into(), json!({"loop_limits.max_hours": 2}))
        );
    }

    #[test]
    fn values_may_be_quoted() {
        for (text, promise) in [
            (r#"x --promise "ALL DONE""#, "ALL DONE"),
            (r#"x --promise="it's \"done\"""#, r#"it's "done""#),
            ("x --promise 'a b'", "a b"),
            ("x --completion-promise DONE", "DONE"),
            (r#"x --promise "open"#, "\"open"),
        ] {
            assert_eq!(parse(text).1, json!({"completion.promise": promise}), "{text}");
        }
    }

    #[test]
    fn a_flag_for_commands_is_one_more_each_time_to_the_letter() {
        let text = r#"x --verify "cargo test" y --verify='[ -f done ]' --verify make --verify '["a"]'"#;
        let commands = json!(["cargo test", "[ -f done ]", "make", "[\"a\"]"]);
        assert_eq!(parse(text), ("x y".into(), json!({"completion.verify": commands})));
        for (text, part) in
            [("x --verify", "needs a value"), ("x --verify ' '", "--verify: \" \" is not a command")]
        {
            let wrong = StartRequest::from_text(text).unwrap_err();
            assert!(wrong.message.contains(part), "{text}: {wrong:?}");
        }
    }

    #[test]
    fn mistakes_are_errors_and_say_which() {
        for (text, part) in [
            ("x --bogus", "unknown flag: --bogus (to keep it in the task"),
            ("x --max-iteration=3", "unknown flag: --max-iteration, did you mean --max-iterations? (to keep"),
            ("x --verfy y", "did you mean --verify?"),
            ("x --pco", "did you mean --poc?"),
            ("x --max-hours", "--max-hours needs a value"),
            ("x --max-hours --poc", "--max-hours needs a value"),
            ("x --max-hours four", "--max-hours: 'four' is not a duration"),
            ("x --max-iterations=-3", "is not a whole number"),
            ("x --resume=yes", "--resume takes no value"),
            ("x --poc --production", "--poc and --production cannot be used together"),
            ("--max-hours 4", "no task given"),
            ("", "no task given"),
            ("x --run abc", "--run needs --resume"),
            (&"x".repeat(20_001), "task too long: 20001 characters (at most 20000)"),
            ("x --min-hours 5 --max-hours 4", "--min-hours 5 is greater than --max-hours 4"),
        ] {
            let wrong = StartRequest::from_text(text).unwrap_err();
            assert!(wrong.message.contains(part), "{text}: {wrong:?}");
        }
    }

    #[test]
    fn presets_and_switches() {
        let request = StartRequest::from_text("try it --poc --max-iterations 3 --replace").unwrap();
        assert_eq!(request.preset["loop_limits.max_iterations"], json!("20"));
        assert_eq!(request.flags["loop_limits.max_iterations"], json!(3));
        assert!(request.replace && !request.resume);
        let resume = StartRequest::from_text("--resume --run 1a2b").unwrap();
        assert_eq!((resume.task.as_str(), resume.resume, resume.run.as_deref()), ("", true, Some("1a2b")));
    }

    proptest! {
        #[test]
        fn any_text_is_taken_or_refused_but_never_a_panic(text in "\\PC*|[-= \"'`a-z\\n\\\\]*") {
            let _ = StartRequest::from_text(&text);
        }

        #[test]
        fn text_without_dashes_is_kept_to_the_letter(text in "[^-]*") {
            if let Ok(request) = StartRequest::from_text(&text) {
                prop_assert_eq!(request.task, text.trim());
            }
        }
    }
}
