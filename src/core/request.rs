//! What somebody asked `start` to do: words and flags, from a slash command's raw text or from a shell.

use super::settings::{self, Kind, PRESETS};
use serde_json::{Map, Value, json};

/// A start as it was typed. Values are checked, but not yet weighed against files and variables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StartRequest {
    pub task: String,
    /// Explicit flags, by settings key.
    pub flags: Map<String, Value>,
    /// What a preset stands for, by settings key.
    pub preset: Map<String, Value>,
    pub resume: bool,
    /// Which loop to resume, where there are several: its run id or the beginning of it.
    pub run: Option<String>,
    /// Take over the loop of the official plugin.
    pub import: bool,
    pub reset: bool,
    pub replace: bool,
    pub ignore_open_questions: bool,
    pub skip_constraint_scan: bool,
}

/// The task is stored with the loop, and that is read and written at every turn.
const LONGEST_TASK: usize = 20_000;

/// The switches of `start` that are not settings, with their help.
pub const SWITCHES: [(&str, &str); 6] = [
    ("resume", "go on with a paused, ended or orphaned loop"),
    ("import", "take over a loop of the official ralph-loop plugin"),
    ("reset", "close a tripped circuit breaker first, as `ralph reset` does"),
    ("replace", "end the loop that runs in this session first"),
    ("ignore-open-questions", "start although a question in ralph/ waits for an answer"),
    ("skip-constraint-scan", "start although a critical constraint was found"),
];

impl StartRequest {
    /// Sets one flag; `value` is `None` for a switch.
    pub fn set(&mut self, flag: &str, value: Option<&str>) -> Result<(), String> {
        if let Some(key) = settings::find_flag(flag) {
            let value = value.ok_or_else(|| format!("--{flag} needs a value"))?;
            let wrong = |wrong| format!("--{flag}: {wrong}");
            if key.kind == Kind::Commands {
                // Each time the flag is given it is one more command, to the letter.
                let mut given = key.read(&json!([value])).map_err(wrong)?;
                let list = self.flags.entry(key.name).or_insert_with(|| json!([]));
                if let (Value::Array(list), Value::Array(given)) = (list, &mut given) {
                    list.append(given);
                }
                return Ok(());
            }
            self.flags.insert(key.name.to_owned(), key.read(&Value::from(value)).map_err(wrong)?);
            return Ok(());
        }
        if flag == "run" {
            self.run = Some(value.ok_or("--run needs a value")?.to_owned());
            return Ok(());
        }
        if value.is_some() {
            return Err(if takes_value(flag).is_some() {
                format!("--{flag} takes no value")
            } else {
                format!("unknown flag --{flag}")
            });
        }
        match flag {
            "resume" => self.resume = true,
            "import" => self.import = true,
            "reset" => self.reset = true,
            "replace" => self.replace = true,
            "ignore-open-questions" => self.ignore_open_questions = true,
            "skip-constraint-scan" => self.skip_constraint_scan = true,
            _ => {
                let preset = PRESETS.iter().find(|preset| preset.name == flag);
                let preset = preset.ok_or_else(|| format!("unknown flag --{flag}"))?;
                if !self.preset.is_empty() {
                    return Err("only one preset can be given: --poc or --production".into());
                }
                self.preset = preset.values();
            }
        }
        Ok(())
    }

    /// Checks what only the whole can tell.
    pub fn checked(mut self) -> Result<Self, String> {
        self.task = self.task.trim().to_owned();
        if self.import && self.resume {
            return Err(
                "--import takes over a loop of the official plugin, --resume goes on with ours: give one"
                    .into(),
            );
        }
        if self.task.is_empty() && !self.resume && !self.import {
            return Err("no task given".into());
        }
        let length = self.task.chars().count();
        if length > LONGEST_TASK {
            return Err(format!(
                "the task has {length} characters, at most {LONGEST_TASK} are kept: put it into a file and name the file"
            ));
        }
        if self.run.is_some() && !self.resume {
            return Err("--run goes with --resume".into());
        }
        for what in ["hours", "iterations"] {
            let of = |end: &str| self.flags.get(&format!("loop_limits.{end}_{what}")).and_then(Value::as_f64);
            if let (Some(min), Some(max)) = (of("min"), of("max"))
                && max > 0.0
                && min > max
            {
                return Err(format!("--min-{what} {min} is over --max-{what} {max}"));
            }
        }
        Ok(self)
    }

    /// The text behind a slash command. Flags may stand anywhere among the words of the task; a quoted
    /// or back-quoted stretch is task, and so is all that follows a `--` before the task's first word.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let mut request = StartRequest::default();
        let mut rest = text;
        while let Some((before, flag, after)) = next_flag(rest, request.task.is_empty()) {
            push_task(&mut request.task, before);
            rest = after;
            let Some(flag) = flag else {
                push_task(&mut request.task, rest);
                return request.checked();
            };
            let (name, mut value) = match flag.split_once('=') {
                Some((name, _)) => {
                    let inline = &rest[name.len() + 2 + 1..];
                    let (value, after) = take_value(inline);
                    rest = after;
                    (name, Some(value))
                }
                None => {
                    rest = &rest[flag.len() + 2..];
                    (flag, None)
                }
            };
            if value.is_none() && takes_value(name) == Some(true) {
                let (taken, after) = take_value(rest.trim_start());
                if taken.is_empty() || is_flag(rest.trim_start()) {
                    return Err(format!("--{name} needs a value"));
                }
                value = Some(taken);
                rest = after;
            }
            request.set(name, value.as_deref()).map_err(|wrong| {
                if wrong.starts_with("unknown flag") { format!("{wrong}{}", hint(name)) } else { wrong }
            })?;
        }
        push_task(&mut request.task, rest);
        request.checked()
    }
}

/// Whether a flag takes a value; `None` where there is no such flag.
fn takes_value(flag: &str) -> Option<bool> {
    if settings::find_flag(flag).is_some() || flag == "run" {
        return Some(true);
    }
    let switch =
        SWITCHES.iter().any(|(name, _)| *name == flag) || PRESETS.iter().any(|preset| preset.name == flag);
    switch.then_some(false)
}

fn hint(flag: &str) -> String {
    format!(" (to keep it in the task, quote it: \"--{flag}\", or write -- before the task)")
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

/// Splits at the first flag outside quotes: what stands before it, its word without dashes (`None` for
/// the lone `--`), and the rest, beginning at the flag itself (behind the lone `--`). Once the task has
/// begun, a lone `--` is a dash like any other.
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
        // A quotation begins at a word and ends at its mark; an apostrophe within a word is no quotation.
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

/// A flag's value: one word, or a quotation without its quotes (`\"` and `\\` inside double ones).
fn take_value(text: &str) -> (String, &str) {
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
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (text[..end].to_owned(), &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> (String, Value) {
        let request = StartRequest::from_text(text).unwrap_or_else(|wrong| panic!("{text}: {wrong}"));
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
            assert!(wrong.contains(part), "{text}: {wrong}");
        }
    }

    #[test]
    fn mistakes_are_errors_and_say_which() {
        for (text, part) in [
            ("x --bogus", "unknown flag --bogus (to keep it in the task"),
            ("x --max-iteration=3", "unknown flag --max-iteration"),
            ("x --max-hours", "--max-hours needs a value"),
            ("x --max-hours --poc", "--max-hours needs a value"),
            ("x --max-hours four", "--max-hours: 'four' is not a number"),
            ("x --max-iterations=-3", "is not a whole number"),
            ("x --resume=yes", "--resume takes no value"),
            ("x --poc --production", "only one preset"),
            ("--max-hours 4", "no task given"),
            ("", "no task given"),
            ("x --run abc", "--run goes with --resume"),
            (&"x".repeat(20_001), "put it into a file"),
            ("x --min-hours 5 --max-hours 4", "--min-hours 5 is over --max-hours 4"),
        ] {
            let wrong = StartRequest::from_text(text).unwrap_err();
            assert!(wrong.contains(part), "{text}: {wrong}");
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
