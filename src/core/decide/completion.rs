//! The completion gate: what a claim of completion must pass, in order, up to the first failure.

use super::limits;
use super::turn::{CheckFailure, Checks, Tasks, Turn};
use crate::core::record::ArmedLoop;
use crate::core::settings::Settings;
use crate::core::signal::{self, Ignored, Promise, State, StatusBlock};
use crate::core::tasks::TaskSource;
use crate::core::text::clean;
use std::borrow::Cow;

/// Returns what the agent signals with this message, by a promise or by its status block, or why that does not count.
pub fn signal(
    message: &str,
    status: Option<&StatusBlock>,
    settings: &Settings,
) -> Option<Result<(Promise, Claim), Ignored>> {
    let ignored = match signal::promise(message, &settings.promise) {
        Some(Ok(promise)) => return Some(Ok((promise, Claim::Promise))),
        Some(Err(ignored)) => Some(ignored),
        None => None,
    };
    match status.and_then(|status| status_signal(message, status, settings)) {
        Some(Err(of_status)) => Some(Err(ignored.unwrap_or(of_status))),
        Some(Ok(promise)) => Some(Ok((promise, Claim::Status))),
        None => ignored.map(Err),
    }
}

fn status_signal(
    message: &str,
    status: &StatusBlock,
    settings: &Settings,
) -> Option<Result<Promise, Ignored>> {
    if status.state == Some(State::Blocked) {
        let reason =
            status.recommendation.clone().unwrap_or("the status block says BLOCKED without a reason".into());
        return Some(Ok(Promise::Blocked(reason)));
    }
    match status.exit_signal {
        Some(true) => {
            let (phrases, needed) = (signal::completion_phrases(message) as u64, settings.completion_phrases);
            let enough = needed > 0 && phrases >= needed;
            Some(if enough { Ok(Promise::Complete) } else { Err(Ignored::ExitSignal { phrases, needed }) })
        }
        // The agent says itself that it is not done.
        Some(false) => None,
        None => (status.state == Some(State::Complete)).then_some(Err(Ignored::StatusComplete)),
    }
}

/// Returns whether the agent asks for a person.
pub fn asks_for_person(message: &str, settings: &Settings) -> bool {
    let status = signal::status(message);
    let signal = signal(message, status.as_ref(), settings);
    matches!(signal, Some(Ok((Promise::Blocked(_) | Promise::Decide(_), _))))
}

/// Returns the turn with the message that counts, and why a signal in it does not. Nothing that a failed agent said is
/// believed, except that it needs a person; the breaker counts the failure as an error.
pub fn believed<'a>(turn: &'a Turn, settings: &Settings) -> (Cow<'a, Turn>, Option<Ignored>) {
    let Some(failure) = &turn.failure else { return (Cow::Borrowed(turn), None) };
    let message = turn.message.as_deref().unwrap_or_default();
    if asks_for_person(message, settings) {
        return (Cow::Borrowed(turn), None);
    }
    let signal = signal(message, signal::status(message).as_ref(), settings);
    let claims = matches!(signal, Some(Ok((Promise::Complete, _))));
    let message = Some(format!("{}{failure}", signal::AGENT_FAILED));
    (Cow::Owned(Turn { message, ..turn.clone() }), claims.then_some(Ignored::AgentFailed))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    Promise,
    Status,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Gate {
    /// The task is complete, for this reason.
    Passed(String),
    Rejected(Rejection),
    /// The check commands must be run first.
    NeedsChecks,
}

/// Why a claim of completion was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    Minimum(String),
    Tasks(String),
    CheckFailed(CheckFailure),
    ChecksOutdated,
}

pub fn gate(run: &ArmedLoop, turn: &Turn, claim: Claim, settings: &Settings) -> Gate {
    if let Some(missing) = limits::minimum_missing(run, settings) {
        return Gate::Rejected(Rejection::Minimum(missing));
    }
    if let Some(missing) = tasks_missing(run, turn) {
        return Gate::Rejected(Rejection::Tasks(missing));
    }
    let said = match claim {
        Claim::Promise => format!("the agent promised {}", settings.promise),
        Claim::Status => "the agent reported EXIT_SIGNAL: true".into(),
    };
    match &turn.checks {
        Checks::NotRun(0) => Gate::Passed(match turn.tasks.as_ref().filter(|tasks| tasks.total > 0) {
            Some(tasks) => format!("{said}, and {}", all_done(run, tasks)),
            None => format!("{said} (not verified)"),
        }),
        Checks::NotRun(_) => Gate::NeedsChecks,
        Checks::Passed(1) => Gate::Passed(match turn.check_results.first() {
            Some(check) => format!("{said}, and `{}` passed", clean::excerpt(&check.command, 100)),
            None => format!("{said}, and the check passed"),
        }),
        Checks::Passed(count) => Gate::Passed(format!("{said}, and all {count} checks passed")),
        Checks::Failed(failed) => Gate::Rejected(Rejection::CheckFailed(failed.clone())),
        Checks::Outdated => Gate::Rejected(Rejection::ChecksOutdated),
    }
}

/// Returns `5 of 5 stories in ralph/tasks.json pass`.
fn all_done(run: &ArmedLoop, tasks: &Tasks) -> String {
    let TaskSource { file, form } = &run.tasks;
    format!("{0} of {0} {1} in {file} {2}", tasks.total, form.nouns(), form.done())
}

fn tasks_missing(run: &ArmedLoop, turn: &Turn) -> Option<String> {
    if run.tasks.is_none() {
        return None;
    }
    let TaskSource { file, form } = &run.tasks;
    let Some(tasks) = &turn.tasks else {
        let were_there = run.circuit.tasks_were_there();
        return were_there.then(|| format!("{file} is missing"));
    };
    if let Some(unusable) = &tasks.unusable {
        return Some(unusable.clone());
    }
    if !tasks.violations.is_empty() {
        return Some(tasks.violations.join("; "));
    }
    if tasks.passing == tasks.total {
        return None;
    }
    let more = tasks.total - tasks.passing - (tasks.open.len() as u64).min(tasks.total - tasks.passing);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!(
        "{} of {} tasks in {file} {}; open: {}{more}",
        tasks.passing,
        tasks.total,
        form.done(),
        tasks.open.join(", ")
    ))
}

impl Rejection {
    /// Returns the reason in a few words, for the user's line.
    pub fn brief(&self) -> String {
        match self {
            Rejection::Minimum(missing) | Rejection::Tasks(missing) => missing.clone(),
            Rejection::CheckFailed(CheckFailure { command, how, .. }) => {
                format!("`{command}` failed ({how})")
            }
            Rejection::ChecksOutdated => "the checks changed while they ran".into(),
        }
    }

    /// Returns what the agent is told.
    pub fn advice(&self) -> String {
        let next = match self {
            Rejection::Minimum(_) => {
                "Use the remaining time: verify the work, test edge cases, review your diff, simplify.".into()
            }
            Rejection::Tasks(_) => "Complete the open tasks, or fix the file.".into(),
            Rejection::CheckFailed(CheckFailure { tail, .. }) if tail.is_empty() => {
                "Make it pass. It printed nothing.".into()
            }
            Rejection::CheckFailed(CheckFailure { tail, .. }) => {
                format!("Make it pass. Its last lines:\n{tail}")
            }
            Rejection::ChecksOutdated => "If the task is complete, say so again.".into(),
        };
        format!("Completion rejected: {}. {next}", self.brief())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::decide::turn::Tasks;
    use crate::core::record::StoredLoop;

    fn block(fields: &str) -> String {
        format!("---RALPH_STATUS---\n{fields}\n---END_RALPH_STATUS---")
    }

    #[test]
    fn a_failed_agent_is_believed_only_that_it_needs_a_person() {
        let failed = "error: the agent failed: exit code 1";
        let cases = [
            (None, failed, None),
            (Some("half done"), failed, None),
            (Some("Done.\n<promise>COMPLETE</promise>"), failed, Some(Ignored::AgentFailed)),
            (Some("<promise>BLOCKED:no key</promise>"), "<promise>BLOCKED:no key</promise>", None),
            (Some("<promise>DECIDE:tabs?</promise>"), "<promise>DECIDE:tabs?</promise>", None),
        ];
        for (message, counts, ignored) in cases {
            let message = message.map(str::to_owned);
            let turn =
                Turn { message: message.clone(), failure: Some("exit code 1".into()), ..Turn::default() };
            let (found, why) = believed(&turn, &Settings::default());
            assert_eq!((found.message.as_deref(), why), (Some(counts), ignored), "{message:?}");
            let turn = Turn { failure: None, ..turn };
            let (found, why) = believed(&turn, &Settings::default());
            assert_eq!((&found.message, why), (&message, None), "an agent that did not fail: {message:?}");
        }
    }

    #[test]
    fn the_agent_speaks_by_promise_or_status() {
        let settings = Settings::default();
        let said = "All tasks are complete. The implementation is complete.\n";
        let complete = Some(Ok(Promise::Complete));
        let exit = |phrases| Some(Err(Ignored::ExitSignal { phrases, needed: 2 }));
        let cases = [
            ("a promise", "ok\n<promise>COMPLETE</promise>".to_owned(), complete.clone()),
            ("exit and phrases", format!("{said}{}", block("EXIT_SIGNAL: true")), complete.clone()),
            ("exit without phrases", block("STATUS: COMPLETE\nEXIT_SIGNAL: true"), exit(0)),
            ("one phrase", format!("All tasks are complete.\n{}", block("EXIT_SIGNAL: true")), exit(1)),
            ("complete alone", block("STATUS: COMPLETE"), Some(Err(Ignored::StatusComplete))),
            (
                "a tag that does not count, and a status that does",
                format!("{said}<promise>COMPLETE</promise> it is\n{}", block("EXIT_SIGNAL: true")),
                complete,
            ),
            (
                "a tag and a status that do not count",
                format!("<promise>COMPLETE</promise> it is\n{}", block("EXIT_SIGNAL: true")),
                Some(Err(Ignored::TagNotAlone)),
            ),
            (
                "phrases without exit",
                format!("{said}{}", block("STATUS: COMPLETE\nEXIT_SIGNAL: false")),
                None,
            ),
            ("phrases alone", said.to_owned(), None),
            (
                "blocked",
                block("STATUS: BLOCKED\nRECOMMENDATION: give me a key"),
                Some(Ok(Promise::Blocked("give me a key".into()))),
            ),
            ("in progress", block("STATUS: IN_PROGRESS"), None),
        ];
        for (name, message, expected) in cases {
            let status = signal::status(&message);
            let signal = super::signal(&message, status.as_ref(), &settings);
            assert_eq!(signal.map(|signal| signal.map(|(promise, _)| promise)), expected, "{name}");
        }
    }

    #[test]
    fn a_claim_passes_every_gate_in_order() {
        let tasks =
            |passing, total| Some(Tasks { passing, total, open: vec!["S2".into()], ..Tasks::default() });
        let minimum = Settings { min_iterations: 9, ..Settings::default() };
        let failed = Checks::Failed(CheckFailure {
            command: "make".into(),
            how: "exit code 2".into(),
            tail: "no rule".into(),
        });
        let turn = |tasks, checks| Turn { tasks, checks, ..Turn::default() };
        let gate = |turn: &Turn, settings: &Settings| {
            gate(&ArmedLoop::from(StoredLoop::default()), turn, Claim::Promise, settings)
        };
        let settings = Settings::default();

        let rejected = gate(&turn(tasks(1, 3), failed.clone()), &minimum);
        assert!(matches!(&rejected, Gate::Rejected(Rejection::Minimum(_))), "{rejected:?}");
        let rejected = gate(&turn(tasks(1, 3), failed.clone()), &settings);
        let expected = "1 of 3 tasks in ralph/tasks.json pass; open: S2 and 1 more";
        assert_eq!(rejected, Gate::Rejected(Rejection::Tasks(expected.into())));
        let rejected = gate(&turn(tasks(3, 3), failed), &settings);
        let Gate::Rejected(reason) = rejected else { panic!("{rejected:?}") };
        assert_eq!(reason.brief(), "`make` failed (exit code 2)");
        assert!(reason.advice().ends_with("no rule"), "{}", reason.advice());

        assert_eq!(gate(&turn(None, Checks::NotRun(2)), &settings), Gate::NeedsChecks);
        for (checks, expected) in [
            (Checks::NotRun(0), "the agent promised COMPLETE (not verified)"),
            (Checks::Passed(1), "the agent promised COMPLETE, and the check passed"),
            (Checks::Passed(3), "the agent promised COMPLETE, and all 3 checks passed"),
        ] {
            assert_eq!(gate(&turn(tasks(0, 0), checks), &settings), Gate::Passed(expected.into()));
        }
        let broken =
            Tasks { unusable: Some("ralph/tasks.json is not valid JSON".into()), ..Tasks::default() };
        let rejected = gate(&turn(Some(broken), Checks::Passed(1)), &settings);
        assert_eq!(rejected, Gate::Rejected(Rejection::Tasks("ralph/tasks.json is not valid JSON".into())));
    }

    #[test]
    fn a_threshold_of_no_phrases_leaves_only_the_promise() {
        let settings = |completion_phrases| Settings { completion_phrases, ..Settings::default() };
        let message = format!("All tasks are complete.\n{}", block("EXIT_SIGNAL: true"));
        let status = signal::status(&message);
        let ignored = |needed| Err(Ignored::ExitSignal { phrases: 1, needed });
        for (needed, expected) in
            [(0, ignored(0)), (1, Ok((Promise::Complete, Claim::Status))), (2, ignored(2))]
        {
            let signal = super::signal(&message, status.as_ref(), &settings(needed));
            assert_eq!(signal, Some(expected), "{needed}");
        }
    }

    #[test]
    fn open_tasks_are_named_and_the_rest_is_counted() {
        let named = |count: usize| (1..=count).map(|n| format!("S{n}")).collect::<Vec<_>>();
        for (name, passing, total, open, expected) in [
            ("all of them", 3, 5, 2, Some("3 of 5 tasks in ralph/tasks.json pass; open: S1, S2")),
            ("the first", 1, 5, 2, Some("1 of 5 tasks in ralph/tasks.json pass; open: S1, S2 and 2 more")),
            ("more names than tasks", 4, 5, 2, Some("4 of 5 tasks in ralph/tasks.json pass; open: S1, S2")),
            ("none is open", 5, 5, 0, None),
        ] {
            let tasks = Some(Tasks { passing, total, open: named(open), ..Tasks::default() });
            let missing =
                tasks_missing(&ArmedLoop::from(StoredLoop::default()), &Turn { tasks, ..Turn::default() });
            assert_eq!(missing.as_deref(), expected, "{name}");
        }
    }
}
