//! The completion gate: what a claim of "done" must pass, in order, stopping at the first that fails.

use super::limits;
use super::record::Loop;
use super::settings::Settings;
use super::signal::{self, Promise, State, Status};
use super::tasks::Source;
use super::turn::{Failed, Proof, Turn};

/// What the agent signals about itself with this message, by a promise or by its status.
pub fn word(message: &str, status: Option<&Status>, settings: &Settings) -> Option<(Promise, Claim)> {
    if let Some(promise) = signal::promise(message, &settings.promise) {
        return Some((promise, Claim::Promise));
    }
    let status = status?;
    if status.state == Some(State::Blocked) {
        let reason =
            status.recommendation.clone().unwrap_or("its status says BLOCKED, without a reason".into());
        return Some((Promise::Blocked(reason), Claim::Status));
    }
    let enough = settings.circuit.completion;
    let done = status.exit_signal == Some(true) && enough > 0;
    (done && signal::completion_phrases(message) as u64 >= enough)
        .then_some((Promise::Complete, Claim::Status))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    Promise,
    Status,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Gate {
    /// It is complete, and this is why.
    Passed(String),
    Held(Held),
    /// The user's commands must be run first.
    Unproven,
}

/// What a claim of completion failed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// There is time left to be used.
    Minimum(String),
    Tasks(String),
    Red(Failed),
}

pub fn gate(lap: &Loop, turn: &Turn, claim: Claim, settings: &Settings) -> Gate {
    if let Some(missing) = limits::minimum_missing(lap, settings) {
        return Gate::Held(Held::Minimum(missing));
    }
    if let Some(missing) = tasks_missing(lap, turn) {
        return Gate::Held(Held::Tasks(missing));
    }
    let said = match claim {
        Claim::Promise => format!("the agent promised {}", settings.promise),
        Claim::Status => "the agent's status said EXIT_SIGNAL: true".into(),
    };
    match &turn.proof {
        Proof::Open(0) => Gate::Passed(format!("{said} (not verified)")),
        Proof::Open(_) => Gate::Unproven,
        Proof::Green(1) => Gate::Passed(format!("{said}, and the check passed")),
        Proof::Green(count) => Gate::Passed(format!("{said}, and all {count} checks passed")),
        Proof::Red(failed) => Gate::Held(Held::Red(failed.clone())),
    }
}

fn tasks_missing(lap: &Loop, turn: &Turn) -> Option<String> {
    let Source { file, form } = &lap.tasks;
    let Some(tasks) = &turn.tasks else {
        let were_there = lap.circuit.baseline.tasks_passing.is_some();
        return were_there.then(|| format!("{file} is gone: put it back"));
    };
    if let Some(unusable) = &tasks.unusable {
        return Some(format!("{file} {unusable}"));
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

impl Held {
    /// In a few words, for the user's line.
    pub fn brief(&self) -> String {
        match self {
            Held::Minimum(missing) | Held::Tasks(missing) => missing.clone(),
            Held::Red(Failed { command, how, .. }) => format!("`{command}` failed ({how})"),
        }
    }

    /// What the agent is told.
    pub fn advice(&self) -> String {
        match self {
            Held::Minimum(missing) => format!(
                "Your finish is not accepted yet: {missing}. Put the time to use: prove the work, test its edges, \
                 review your own diff, simplify."
            ),
            Held::Tasks(missing) => {
                format!("Your finish is not accepted: {missing}. Finish them, or mend the file.")
            }
            Held::Red(Failed { command, how, tail }) => {
                let tail = if tail.is_empty() {
                    "It printed nothing.".into()
                } else {
                    format!("Its last lines:\n{tail}")
                };
                format!("Your finish is not accepted: `{command}` failed, {how}. Make it pass. {tail}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::settings::Thresholds;
    use crate::core::turn::Tasks;

    fn block(fields: &str) -> String {
        format!("---RALPH_STATUS---\n{fields}\n---END_RALPH_STATUS---")
    }

    #[test]
    fn the_agent_speaks_by_promise_or_status() {
        let settings = Settings::default();
        let said = "All tasks are complete. The implementation is complete.\n";
        let cases = [
            ("a promise", "ok\n<promise>COMPLETE</promise>".to_owned(), Some(Promise::Complete)),
            ("exit and phrases", format!("{said}{}", block("EXIT_SIGNAL: true")), Some(Promise::Complete)),
            ("exit without phrases", block("STATUS: COMPLETE\nEXIT_SIGNAL: true"), None),
            (
                "phrases without exit",
                format!("{said}{}", block("STATUS: COMPLETE\nEXIT_SIGNAL: false")),
                None,
            ),
            ("phrases alone", said.to_owned(), None),
            (
                "blocked",
                block("STATUS: BLOCKED\nRECOMMENDATION: give me a key"),
                Some(Promise::Blocked("give me a key".into())),
            ),
            ("in progress", block("STATUS: IN_PROGRESS"), None),
        ];
        for (name, message, expected) in cases {
            let status = signal::status(&message);
            let word = word(&message, status.as_ref(), &settings).map(|(word, _)| word);
            assert_eq!(word, expected, "{name}");
        }
    }

    #[test]
    fn a_claim_passes_every_gate_in_order() {
        let tasks = |passing, total| Some(Tasks { passing, total, open: vec!["S2".into()], unusable: None });
        let minimum = Settings { min_iterations: 9, ..Settings::default() };
        let red =
            Proof::Red(Failed { command: "make".into(), how: "exit code 2".into(), tail: "no rule".into() });
        let turn = |tasks, proof| Turn { tasks, proof, ..Turn::default() };
        let gate = |turn: &Turn, settings: &Settings| gate(&Loop::default(), turn, Claim::Promise, settings);
        let settings = Settings::default();

        let held = gate(&turn(tasks(1, 3), red.clone()), &minimum);
        assert!(matches!(&held, Gate::Held(Held::Minimum(_))), "{held:?}");
        let held = gate(&turn(tasks(1, 3), red.clone()), &settings);
        let expected = "1 of 3 tasks in ralph/tasks.json pass; open: S2 and 1 more";
        assert_eq!(held, Gate::Held(Held::Tasks(expected.into())));
        let held = gate(&turn(tasks(3, 3), red), &settings);
        let Gate::Held(held) = held else { panic!("{held:?}") };
        assert_eq!(held.brief(), "`make` failed (exit code 2)");
        assert!(held.advice().ends_with("no rule"), "{}", held.advice());

        assert_eq!(gate(&turn(None, Proof::Open(2)), &settings), Gate::Unproven);
        for (proof, expected) in [
            (Proof::Open(0), "the agent promised COMPLETE (not verified)"),
            (Proof::Green(1), "the agent promised COMPLETE, and the check passed"),
            (Proof::Green(3), "the agent promised COMPLETE, and all 3 checks passed"),
        ] {
            assert_eq!(gate(&turn(tasks(0, 0), proof), &settings), Gate::Passed(expected.into()));
        }
        let broken = Tasks { unusable: Some("is not valid JSON".into()), ..Tasks::default() };
        let held = gate(&turn(Some(broken), Proof::Green(1)), &settings);
        assert_eq!(held, Gate::Held(Held::Tasks("ralph/tasks.json is not valid JSON".into())));
    }

    #[test]
    fn a_threshold_of_no_phrases_leaves_only_the_promise() {
        let settings = |completion| Settings {
            circuit: Thresholds { completion, ..Thresholds::default() },
            ..Settings::default()
        };
        let message = format!("All tasks are complete.\n{}", block("EXIT_SIGNAL: true"));
        let status = signal::status(&message);
        for (phrases, expected) in [(0, None), (1, Some((Promise::Complete, Claim::Status))), (2, None)] {
            assert_eq!(word(&message, status.as_ref(), &settings(phrases)), expected, "{phrases}");
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
            let tasks = Some(Tasks { passing, total, open: named(open), unusable: None });
            let missing = tasks_missing(&Loop::default(), &Turn { tasks, ..Turn::default() });
            assert_eq!(missing.as_deref(), expected, "{name}");
        }
    }
}
