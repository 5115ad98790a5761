//! The status block: what the agent reports about its turn, field by field.
//!
//! Bold names, list marks and indentation are ignored. A block without its end does not count: a message that was cut
//! off must not end a loop, and an earlier whole block stays valid.

use super::prose;
use crate::core::record::lenient;
use crate::core::text::clean;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    InProgress,
    Complete,
    Blocked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Tests {
    Passing,
    Failing,
    NotRun,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Work {
    Implementation,
    Testing,
    Documentation,
    Refactoring,
}

/// Every field may be missing; an empty or unknown value counts as missing. `TESTS_STATUS` is shown and decides nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusBlock {
    #[serde(rename = "status", deserialize_with = "lenient")]
    pub state: Option<State>,
    #[serde(deserialize_with = "lenient")]
    pub tasks_completed: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub files_modified: Option<u64>,
    #[serde(rename = "tests_status", deserialize_with = "lenient")]
    pub tests: Option<Tests>,
    #[serde(rename = "work_type", deserialize_with = "lenient")]
    pub work: Option<Work>,
    #[serde(deserialize_with = "lenient")]
    pub exit_signal: Option<bool>,
    /// One line, cleaned.
    #[serde(deserialize_with = "lenient")]
    pub recommendation: Option<String>,
}

pub const NAME: &str = "RALPH_STATUS";
pub const END: &str = "END_RALPH_STATUS";
pub const MAX_RECOMMENDATION_COLUMNS: usize = 500;

/// Returns the last whole status block in the agent's prose.
pub fn status(message: &str) -> Option<StatusBlock> {
    // Most messages have none, and are then not read line by line.
    message.contains(NAME).then_some(())?;
    let (mut open, mut last) = (None, None);
    for line in prose::lines(message) {
        let (line, _) = prose::item(line);
        match marker(line) {
            Some(NAME) => open = Some(StatusBlock::default()),
            Some(END) => last = open.take().or(last),
            _ => {
                if let Some(status) = &mut open {
                    status.read(line);
                }
            }
        }
    }
    last
}

impl StatusBlock {
    fn read(&mut self, line: &str) {
        let Some((key, value)) = line.split_once(':') else { return };
        let word = name(value);
        match name(key).as_str() {
            "STATUS" => {
                self.state = match word.as_str() {
                    "IN_PROGRESS" => Some(State::InProgress),
                    "COMPLETE" => Some(State::Complete),
                    "BLOCKED" => Some(State::Blocked),
                    _ => None,
                }
            }
            "TASKS_COMPLETED_THIS_LOOP" => self.tasks_completed = number(&word),
            "FILES_MODIFIED" => self.files_modified = number(&word),
            "TESTS_STATUS" => {
                self.tests = match word.as_str() {
                    "PASSING" => Some(Tests::Passing),
                    "FAILING" => Some(Tests::Failing),
                    "NOT_RUN" => Some(Tests::NotRun),
                    _ => None,
                }
            }
            "WORK_TYPE" => {
                self.work = match word.as_str() {
                    "IMPLEMENTATION" => Some(Work::Implementation),
                    "TESTING" => Some(Work::Testing),
                    "DOCUMENTATION" => Some(Work::Documentation),
                    "REFACTORING" => Some(Work::Refactoring),
                    _ => None,
                }
            }
            "EXIT_SIGNAL" => {
                self.exit_signal = match word.as_str() {
                    "TRUE" => Some(true),
                    "FALSE" => Some(false),
                    _ => None,
                }
            }
            "RECOMMENDATION" => {
                let text = clean::excerpt(value.trim().trim_matches('*'), MAX_RECOMMENDATION_COLUMNS);
                self.recommendation = Some(text).filter(|text| !text.is_empty());
            }
            _ => {}
        }
    }
}

/// Returns the name between the dashes of a marker line.
pub fn marker(line: &str) -> Option<&str> {
    let line = line.trim_matches(|c: char| c == '*' || c.is_whitespace());
    let name = line.strip_prefix("---")?.strip_suffix("---")?;
    Some(name.trim_matches(|c: char| c == '-' || c.is_whitespace()))
}

/// Returns a key or value in upper case, without emphasis and final dot, and with underscores for spaces and hyphens.
fn name(text: &str) -> String {
    let text = text.trim_matches(|c: char| matches!(c, '*' | '_' | '`') || c.is_whitespace());
    text.trim_end_matches('.').to_ascii_uppercase().replace([' ', '-'], "_")
}

fn number(word: &str) -> Option<u64> {
    // `parse` would accept a sign.
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block(fields: &str) -> String {
        format!("Work done.\n\n---RALPH_STATUS---\n{fields}\n---END_RALPH_STATUS---\n")
    }

    fn whole() -> StatusBlock {
        StatusBlock {
            state: Some(State::InProgress),
            tasks_completed: Some(2),
            files_modified: Some(5),
            tests: Some(Tests::Passing),
            work: Some(Work::Implementation),
            exit_signal: Some(false),
            recommendation: Some("Write the parser next: it is small".into()),
        }
    }

    #[test]
    fn decoration_does_not_change_a_block() {
        let fields = [
            ("STATUS", "IN_PROGRESS"),
            ("TASKS_COMPLETED_THIS_LOOP", "2"),
            ("FILES_MODIFIED", "5"),
            ("TESTS_STATUS", "PASSING"),
            ("WORK_TYPE", "IMPLEMENTATION"),
            ("EXIT_SIGNAL", "false"),
            ("RECOMMENDATION", "Write the parser next: it is small"),
        ];
        type Form = fn(&str, &str) -> String;
        let forms: &[(&str, Form)] = &[
            ("plain", |key, value| format!("{key}: {value}")),
            ("no space", |key, value| format!("{key}:{value}")),
            ("indented", |key, value| format!("    {key}:   {value}   ")),
            ("tab", |key, value| format!("\t{key}:\t{value}")),
            ("bold with colon", |key, value| format!("**{key}:** {value}")),
            ("bold before colon", |key, value| format!("**{key}**: {value}")),
            ("all bold", |key, value| format!("**{key}: {value}**")),
            ("bold value", |key, value| format!("{key}: **{value}**")),
            ("emphasis", |key, value| format!("*{key}:* {value}")),
            ("list", |key, value| format!("- {key}: {value}")),
            ("star list", |key, value| format!("  * {key}: {value}")),
            ("numbered bold list", |key, value| format!("1. **{key}:** {value}")),
            ("carriage return", |key, value| format!("{key}: {value}\r")),
            ("lower-case key", |key, value| format!("{}: {value}", key.to_lowercase())),
            ("spaces in the key", |key, value| format!("{}: {value}", key.replace('_', " "))),
            ("blank lines", |key, value| format!("\n{key}: {value}\n")),
            ("unknown keys between", |key, value| {
                format!("{key}: {value}\nMOOD: {value}\nSTATUS_OF: COMPLETE")
            }),
        ];
        for (name, form) in forms {
            let text: Vec<_> = fields.iter().map(|(key, value)| form(key, value)).collect();
            assert_eq!(status(&block(&text.join("\n"))), Some(whole()), "{name}");
        }
    }

    #[test]
    fn each_field_is_read_alone() {
        let none = StatusBlock::default();
        let state = |state| StatusBlock { state: Some(state), ..StatusBlock::default() };
        let tests = |tests| StatusBlock { tests: Some(tests), ..StatusBlock::default() };
        let work = |work| StatusBlock { work: Some(work), ..StatusBlock::default() };
        let exit = |exit| StatusBlock { exit_signal: Some(exit), ..StatusBlock::default() };
        let advice = |text: &str| StatusBlock { recommendation: Some(text.into()), ..StatusBlock::default() };
        let cases: &[(&str, StatusBlock)] = &[
            ("", none.clone()),
            ("STATUS: complete", state(State::Complete)),
            ("STATUS: Blocked", state(State::Blocked)),
            ("STATUS: in progress", state(State::InProgress)),
            ("STATUS: In-Progress.", state(State::InProgress)),
            ("STATUS: `COMPLETE`", state(State::Complete)),
            ("STATUS: COMPLETED", none.clone()),
            ("STATUS: INCOMPLETE", none.clone()),
            ("STATUS: NOT COMPLETE", none.clone()),
            ("STATUS: COMPLETE?", none.clone()),
            ("STATUS: COMP-ETE", none.clone()),
            ("STATUS: IN/PROGRESS", none.clone()),
            ("STATUS: IN_PROGRESS | COMPLETE | BLOCKED", none.clone()),
            ("STATUS: COMPLETE | BLOCKED", none.clone()),
            ("STATUS:", none.clone()),
            ("STATUS: COMPLETE\nSTATUS: BLOCKED", state(State::Blocked)),
            ("STATUS", none.clone()),
            ("STATUS COMPLETE", none.clone()),
            ("TESTS_STATUS: failing", tests(Tests::Failing)),
            ("TESTS_STATUS: not run", tests(Tests::NotRun)),
            ("TESTS_STATUS: 3 failing", none.clone()),
            ("WORK_TYPE: testing", work(Work::Testing)),
            ("WORK_TYPE: Documentation", work(Work::Documentation)),
            ("WORK_TYPE: REFACTORING", work(Work::Refactoring)),
            ("WORK_TYPE: MAGIC", none.clone()),
            ("EXIT_SIGNAL: TRUE", exit(true)),
            ("EXIT_SIGNAL: **true**", exit(true)),
            ("EXIT_SIGNAL: False", exit(false)),
            ("EXIT_SIGNAL: false | true", none.clone()),
            ("EXIT_SIGNAL: yes", none.clone()),
            ("EXIT_SIGNAL: untrue", none.clone()),
            ("FILES_MODIFIED: 08", StatusBlock { files_modified: Some(8), ..none.clone() }),
            ("FILES_MODIFIED: +5", none.clone()),
            ("FILES_MODIFIED: -5", none.clone()),
            ("FILES_MODIFIED: five", none.clone()),
            ("FILES_MODIFIED: 3 of 5", none.clone()),
            ("FILES_MODIFIED: 99999999999999999999999", none.clone()),
            ("FILES_MODIFIED:", none.clone()),
            ("RECOMMENDATION: run `cargo test`", advice("run `cargo test`")),
            ("RECOMMENDATION:  a\u{1b}[31m  b\u{7}", advice("a[31m b")),
            ("RECOMMENDATION: **", none.clone()),
            ("RECOMMENDATION:\nThe line after it", none.clone()),
            ("RECOMMENDATION: a\nb", advice("a")),
            ("> STATUS: COMPLETE", none.clone()),
            ("```\nSTATUS: COMPLETE\n```", none),
        ];
        for (fields, expected) in cases {
            assert_eq!(status(&block(fields)).as_ref(), Some(expected), "{fields}");
        }
    }

    #[test]
    fn an_empty_value_does_not_swallow_the_next_line() {
        let expected = StatusBlock { files_modified: Some(3), ..StatusBlock::default() };
        for empty in [
            "STATUS:",
            "STATUS: ",
            "**STATUS:**",
            "STATUS: \t\r",
            "TASKS_COMPLETED_THIS_LOOP:",
            "RECOMMENDATION:",
        ] {
            assert_eq!(
                status(&block(&format!("{empty}\nFILES_MODIFIED: 3"))),
                Some(expected.clone()),
                "{empty}"
            );
        }
    }

    #[test]
    fn the_last_whole_block_counts() {
        let (open, close) = ("---RALPH_STATUS---", "---END_RALPH_STATUS---");
        let state = |state| Some(StatusBlock { state: Some(state), ..StatusBlock::default() });
        let done = "STATUS: COMPLETE";
        let cases: &[(&str, String, Option<StatusBlock>)] = &[
            (
                "the last of two",
                format!("{open}\n{done}\n{close}\nand\n{open}\nSTATUS: BLOCKED\n{close}"),
                state(State::Blocked),
            ),
            (
                "the last says nothing",
                format!("{open}\n{done}\n{close}\n{open}\n{close}"),
                Some(StatusBlock::default()),
            ),
            ("text behind it", format!("{open}\n{done}\n{close}\nGood night."), state(State::Complete)),
            (
                "one line of prose within",
                format!("{open}\n{done}\nI am happy: yes\n{close}"),
                state(State::Complete),
            ),
            ("decorated markers", format!("  **{open}**\n{done}\n- {close}"), state(State::Complete)),
            (
                "spaced markers",
                format!("--- RALPH_STATUS ---\n{done}\n----END_RALPH_STATUS----"),
                state(State::Complete),
            ),
            ("cut off", format!("{open}\n{done}\nEXIT_SIGNAL: tr"), None),
            (
                "cut off behind a whole one",
                format!("{open}\n{done}\n{close}\n{open}\nSTATUS: BLO"),
                state(State::Complete),
            ),
            (
                "begun again",
                format!("{open}\nSTATUS: BLOCKED\nFILES_MODIFIED: 1\n{open}\n{done}\n{close}"),
                state(State::Complete),
            ),
            ("fenced", format!("```\n{open}\n{done}\n{close}\n```"), None),
            ("fenced with a language", format!("~~~text\n{open}\n{done}\n{close}\n~~~"), None),
            ("behind a fence", format!("```\nls\n```\n{open}\n{done}\n{close}"), state(State::Complete)),
            ("end within a fence", format!("{open}\n{done}\n```\n{close}\n```"), None),
            ("quoted", format!("> {open}\n> {done}\n> {close}"), None),
            ("markers as code", format!("`{open}`\n{done}\n`{close}`"), None),
            ("mentioned", format!("I end with {open} as told.\n{done}\n{close}"), None),
            ("on one line", format!("{open} {done} {close}"), None),
            ("only the end", format!("{done}\n{close}"), None),
            ("ends the wrong way round", format!("{close}\n{done}\n{open}"), None),
            ("fields alone", format!("{done}\nEXIT_SIGNAL: true"), None),
            ("no dashes", format!("RALPH_STATUS\n{done}\nEND_RALPH_STATUS"), None),
            ("other name", format!("---RALPH_STATUS_2---\n{done}\n{close}"), None),
            ("empty", String::new(), None),
        ];
        for (name, message, expected) in cases {
            assert_eq!(&status(message), expected, "{name}");
        }
    }

    #[test]
    fn a_recommendation_is_bounded() {
        let status = status(&block(&format!("RECOMMENDATION: {}", "word ".repeat(100_000)))).unwrap();
        let text = status.recommendation.unwrap();
        assert!(text.chars().count() <= MAX_RECOMMENDATION_COLUMNS && text.ends_with('…'));
    }

    proptest! {
        #[test]
        fn text_around_a_block_changes_nothing(
            before in "[a-zA-Z :\n*.-]{0,80}",
            after in "[a-zA-Z :\n*.-]{0,80}",
            tasks in any::<u64>(),
        ) {
            let message = format!("{before}\n{}{after}", block(&format!("TASKS_COMPLETED_THIS_LOOP: {tasks}")));
            prop_assert_eq!(status(&message).and_then(|status| status.tasks_completed), Some(tasks));
        }
    }
}
