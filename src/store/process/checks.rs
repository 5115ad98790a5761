//! The check commands that a claim of completion has to pass. They come from the user or from a trusted project.

use super::command::{self, CommandResult, ProgramEnd};
use crate::core::decide::turn::{CheckFailure, CheckResult, Checks};
use crate::core::settings::{CHECKS, Resolved};
use crate::core::text::clean;
use crate::core::time::Stamp;
use crate::store::world::Instant;
use std::path::Path;
use std::time::Duration;

/// The time limit of all commands together. The client ends the Stop hook after an hour (`hooks/hooks.json`) and
/// takes no answer from it then.
pub const BUDGET: Duration = Duration::from_secs(3500);

/// The commands that may run, in order, and their time limit.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckCommands {
    pub commands: Vec<String>,
    /// Commands of the project's file that the user has not trusted: not run, so they prove nothing. A warning
    /// in [`Resolved::warnings`] says so.
    pub withheld: Vec<String>,
    /// The time limit of each command.
    pub limit: Duration,
}

/// One command and how it ran.
#[derive(Clone, Debug)]
pub struct CheckRun {
    pub command: String,
    pub run: CommandResult,
}

impl CheckRun {
    /// Returns what is remembered of it.
    pub fn result(&self, at: Stamp) -> CheckResult {
        CheckResult {
            command: self.command.clone(),
            passed: self.run.passed(),
            exit_code: if let ProgramEnd::Exit(code) = self.run.ended { Some(code) } else { None },
            seconds: self.run.took.as_secs_f64(),
            at,
        }
    }
}

impl CheckCommands {
    pub fn of(resolved: &Resolved) -> CheckCommands {
        let seconds = resolved.number("completion.verify_timeout_seconds");
        let withheld = resolved.withheld.iter().filter(|row| row.key.name == CHECKS);
        CheckCommands {
            commands: resolved.commands(CHECKS),
            withheld: withheld.flat_map(|row| row.key.commands(&row.value)).collect(),
            limit: Duration::try_from_secs_f64(seconds).unwrap_or(BUDGET).min(BUDGET),
        }
    }

    /// Runs the commands in order and stops at the first that fails, so only the last result can be a failure.
    /// Each result is passed to `report` as soon as it is there.
    pub fn run(
        &self,
        dir: &Path,
        cancelled: &dyn Fn() -> bool,
        report: &mut dyn FnMut(&CheckRun),
    ) -> Vec<CheckRun> {
        self.run_within(dir, BUDGET, cancelled, report)
    }

    fn run_within(
        &self,
        dir: &Path,
        budget: Duration,
        cancelled: &dyn Fn() -> bool,
        report: &mut dyn FnMut(&CheckRun),
    ) -> Vec<CheckRun> {
        let began = Instant::now();
        let mut checked = Vec::new();
        for command in &self.commands {
            let left = budget.saturating_sub(began.elapsed());
            let run = if left.is_zero() {
                CommandResult::not_started("the commands before it used up the time limit")
            } else {
                command::run_unless(command, dir, self.limit.min(left), cancelled)
            };
            let checked_one = CheckRun { command: command.clone(), run };
            report(&checked_one);
            let passed = checked_one.run.passed();
            checked.push(checked_one);
            if !passed {
                break;
            }
        }
        checked
    }

    /// Summarizes results as a fact for the decision. If these are no longer the commands that ran, the results do not
    /// count.
    pub fn summarize(&self, results: &[CheckRun]) -> Checks {
        let ran = results.iter().map(|result| &result.command);
        let failed = results.iter().find(|result| !result.run.passed());
        let all_ran = results.len() == self.commands.len();
        let are_first = results.len() <= self.commands.len() && ran.zip(&self.commands).all(|(a, b)| a == b);
        match failed {
            Some(CheckRun { command, run }) if are_first => Checks::Failed(CheckFailure {
                command: clean::excerpt(command, 200),
                how: run.ended.to_string(),
                tail: run.tail.clone(),
            }),
            None if are_first && all_ran => Checks::Passed(results.len()),
            _ => Checks::Outdated,
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::core::settings::{self, Layer, SettingSource};
    use crate::store::process::command::ProgramEnd;
    use serde_json::{Value, json};

    fn verification(values: Value) -> CheckCommands {
        let Value::Object(values) = values else { panic!("an object") };
        let layer = Layer { source: SettingSource::User, place: "u.json".into(), values };
        CheckCommands::of(&settings::resolve(&[layer]))
    }

    #[test]
    fn by_default_nothing_is_verified() {
        let none = verification(json!({}));
        assert!(none.commands.is_empty() && none.run(Path::new("/"), &|| false, &mut |_| {}).is_empty());
        assert_eq!(none.limit, Duration::from_secs(600));
    }

    #[test]
    fn they_run_in_order_until_one_fails() {
        let checked = verification(json!({"completion.verify": ["true", "exit 7", "true"]})).run(
            Path::new("/"),
            &|| false,
            &mut |_| {},
        );
        let ends: Vec<_> = checked.iter().map(|one| (one.command.as_str(), one.run.ended.clone())).collect();
        assert_eq!(ends, [("true", ProgramEnd::Exit(0)), ("exit 7", ProgramEnd::Exit(7))]);
    }

    #[test]
    fn results_count_only_for_the_commands_that_ran() {
        let result = |(command, code): &(&str, i32)| {
            let (ended, tail) = (ProgramEnd::Exit(*code), String::new());
            let run = CommandResult { ended, tail, took: Duration::ZERO };
            CheckRun { command: (*command).into(), run }
        };
        let cases = [
            (vec![("a", 0), ("b", 0)], vec!["a", "b"], "passed"),
            (vec![("a", 0), ("b", 1)], vec!["a", "b"], "failed"),
            (vec![("a", 1)], vec!["a", "b"], "failed"),
            (vec![("a", 0)], vec!["a", "b"], "outdated"),
            (vec![("a", 0)], vec!["b"], "outdated"),
            (vec![("a", 1)], vec!["b"], "outdated"),
            (vec![("a", 0)], vec![], "outdated"),
            (vec![("a", 1)], vec![], "outdated"),
        ];
        for (ran, now, expected) in cases {
            let results: Vec<_> = ran.iter().map(result).collect();
            let found = match verification(json!({"completion.verify": now})).summarize(&results) {
                Checks::Passed(_) => "passed",
                Checks::Failed(_) => "failed",
                Checks::Outdated => "outdated",
                Checks::NotRun(_) => "not run",
            };
            assert_eq!(found, expected, "{ran:?} with {now:?}");
        }
    }

    #[test]
    fn without_time_left_no_check_is_started() {
        let all = verification(json!({"completion.verify": ["true", "true"]}));
        let checked = all.run_within(Path::new("/"), Duration::ZERO, &|| false, &mut |_| {});
        assert!(matches!(
            checked[..],
            [CheckRun { run: CommandResult { ended: ProgramEnd::NotStarted(_), .. }, .. }]
        ));
    }

    #[test]
    fn the_hook_lives_longer_than_the_budget() {
        let most = verification(json!({"completion.verify_timeout_seconds": 999_999_999}));
        assert_eq!(most.limit, BUDGET);
        let hooks: Value = serde_json::from_str(include_str!("../../../hooks/hooks.json")).unwrap();
        let limit = hooks["hooks"]["Stop"][0]["hooks"][0]["timeout"].as_u64().unwrap();
        assert!(
            BUDGET + Duration::from_secs(60) <= Duration::from_secs(limit),
            "the hook could no longer answer"
        );
    }
}
