//! The status block: what the agent reports about its turn, field by field.
//!
//! Agents decorate what they were shown: bold names, list marks and indentation are seen through. A
//! block without its end is none: a message that was cut off must not end a loop, and an earlier whole
//! block stands.

use super::own;
use crate::core::clean;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    InProgress,
    Complete,
    Blocked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tests {
    Passing,
    Failing,
    NotRun,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Implementation,
    Testing,
    Documentation,
    Refactoring,
}

/// Every field may be missing; what is empty or not understood counts as missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub state: Option<State>,
    pub tasks_completed: Option<u64>,
    pub files_modified: Option<u64>,
    pub tests: Option<Tests>,
    pub work: Option<Work>,
    pub exit_signal: Option<bool>,
    /// One line, cleaned.
    pub recommendation: Option<String>,
}

const NAME: &str = "RALPH_STATUS";
const END: &str = "END_RALPH_STATUS";
const RECOMMENDATION_COLUMNS: usize = 500;

/// The last whole status block among the agent's own words.
pub fn status(message: &str) -> Option<Status> {
    // Most messages have none, and then nothing is read line by line.
    message.contains(NAME).then_some(())?;
    let (mut open, mut last) = (None, None);
    for line in own::lines(message) {
        let (line, _) = own::item(line);
        match marker(line) {
            Some(NAME) => open = Some(Status::default()),
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

impl Status {
    fn read(&mut self, line: &str) {
        let Some((key, value)) = line.split_once(':') else { return };
        let (key, word) = (bare(key), bare(value));
        let is = |name: &str| same(key, name);
        if is("STATUS") {
            self.state = State::parse(word);
        } else if is("TASKS_COMPLETED_THIS_LOOP") {
            self.tasks_completed = number(word);
        } else if is("FILES_MODIFIED") {
            self.files_modified = number(word);
        } else if is("TESTS_STATUS") {
            self.tests = Tests::parse(word);
        } else if is("WORK_TYPE") {
            self.work = Work::parse(word);
        } else if is("EXIT_SIGNAL") {
            self.exit_signal = choose(word, &[("true", true), ("false", false)]);
        } else if is("RECOMMENDATION") {
            let text = value.trim().trim_matches('*');
            let text = clean::excerpt(text, RECOMMENDATION_COLUMNS);
            self.recommendation = Some(text).filter(|text| !text.is_empty());
        }
    }
}

impl State {
    fn parse(word: &str) -> Option<Self> {
        choose(
            word,
            &[("IN_PROGRESS", State::InProgress), ("COMPLETE", State::Complete), ("BLOCKED", State::Blocked)],
        )
    }
}

impl Tests {
    fn parse(word: &str) -> Option<Self> {
        choose(word, &[("PASSING", Tests::Passing), ("FAILING", Tests::Failing), ("NOT_RUN", Tests::NotRun)])
    }
}

impl Work {
    fn parse(word: &str) -> Option<Self> {
        choose(
            word,
            &[
                ("IMPLEMENTATION", Work::Implementation),
                ("TESTING", Work::Testing),
                ("DOCUMENTATION", Work::Documentation),
                ("REFACTORING", Work::Refactoring),
            ],
        )
    }
}

/// The name between the dashes of a marker line.
fn marker(line: &str) -> Option<&str> {
    let line = line.trim_matches(|c: char| c == '*' || c.is_whitespace());
    let name = line.strip_prefix("---")?.strip_suffix("---")?;
    Some(name.trim_matches(|c: char| c == '-' || c.is_whitespace()))
}

/// A name or word without emphasis around it. Back-quotes go too: in a block that is the agent's own,
/// they are decoration like bold.
fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| matches!(c, '*' | '_' | '`') || c.is_whitespace())
}

fn choose<T: Copy>(word: &str, values: &[(&str, T)]) -> Option<T> {
    let word = word.trim_end_matches('.');
    values.iter().find(|(name, _)| same(word, name)).map(|&(_, value)| value)
}

/// Equal but for case, and for a space or hyphen where the name has an underscore.
fn same(text: &str, name: &str) -> bool {
    text.len() == name.len()
        && text
            .bytes()
            .zip(name.bytes())
            .all(|(a, b)| a.eq_ignore_ascii_case(&b) || (b == b'_' && matches!(a, b' ' | b'-')))
}

fn number(word: &str) -> Option<u64> {
    // `parse` would take a sign too.
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block(fields: &str) -> String {
        format!("Work done.\n\n---RALPH_STATUS---\n{fields}\n---END_RALPH_STATUS---\n")
    }

    fn whole() -> Status {
        Status {
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
    fn the_same_block_however_it_is_decorated() {
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
    fn each_field_alone() {
        let none = Status::default();
        let state = |state| Status { state: Some(state), ..Status::default() };
        let tests = |tests| Status { tests: Some(tests), ..Status::default() };
        let work = |work| Status { work: Some(work), ..Status::default() };
        let exit = |exit| Status { exit_signal: Some(exit), ..Status::default() };
        let advice = |text: &str| Status { recommendation: Some(text.into()), ..Status::default() };
        let cases: &[(&str, Status)] = &[
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
            ("TESTS_STATUS: not_run", tests(Tests::NotRun)),
            ("TESTS_STATUS: Not run", tests(Tests::NotRun)),
            ("TESTS_STATUS: PASSING | FAILING | NOT_RUN", none.clone()),
            ("TESTS_STATUS: NOT_PASSING", none.clone()),
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
            ("FILES_MODIFIED: 08", Status { files_modified: Some(8), ..none.clone() }),
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
        let expected = Status { files_modified: Some(3), ..Status::default() };
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
    fn which_block_counts() {
        let (open, close) = ("---RALPH_STATUS---", "---END_RALPH_STATUS---");
        let state = |state| Some(Status { state: Some(state), ..Status::default() });
        let done = "STATUS: COMPLETE";
        let cases: &[(&str, String, Option<Status>)] = &[
            (
                "the last of two",
                format!("{open}\n{done}\n{close}\nand\n{open}\nSTATUS: BLOCKED\n{close}"),
                state(State::Blocked),
            ),
            (
                "the last says nothing",
                format!("{open}\n{done}\n{close}\n{open}\n{close}"),
                Some(Status::default()),
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
        assert!(text.chars().count() <= RECOMMENDATION_COLUMNS && text.ends_with('…'));
    }

    proptest! {
        #[test]
        fn whatever_stands_around_a_block_changes_nothing(
            before in "[a-zA-Z :\n*.-]{0,80}",
            after in "[a-zA-Z :\n*.-]{0,80}",
            tasks in any::<u64>(),
        ) {
            let message = format!("{before}\n{}{after}", block(&format!("TASKS_COMPLETED_THIS_LOOP: {tasks}")));
            prop_assert_eq!(status(&message).and_then(|status| status.tasks_completed), Some(tasks));
        }
    }
}
