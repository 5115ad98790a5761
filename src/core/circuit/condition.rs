//! The table of breaker conditions.
//!
//! A row drives counting, thresholds, the `circuit.*` settings, `ralph status`, `ralph history` and the table in
//! `docs/outcomes.md`. To add a condition, add a row and a case to the table test in `circuit/mod.rs`.

use super::{Circuit, TurnFacts, similar};
use crate::core::outcome::Outcome;
use crate::core::record::lenient;
use crate::core::signal::{self, Work};
use crate::core::text::clean;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;

pub struct Condition {
    /// Settings key; the part after `circuit.` names the counter in JSON.
    pub setting: &'static str,
    /// Flag of `ralph start` and `ralph run` for the setting, without dashes.
    pub flag: Option<&'static str>,
    /// Default of the setting in a session.
    pub default: u64,
    /// Default of the setting in the runner.
    pub runner_default: u64,
    /// Help text of the setting.
    pub help: &'static str,
    /// Turns in a row that trip it, where the setting is another quantity.
    pub trips_at: Option<u64>,
    /// Name of the counter in status and history.
    pub label: &'static str,
    /// How a trip ends the loop.
    pub outcome: Outcome,
    pub count: fn(&ConditionInput) -> Count,
    /// What was found, with `{turns}`, `{times}`, `{count}`, `{setting}` and `{error}` to be filled in.
    pub found: &'static str,
    /// What more such turns are, as in `2 more turns without progress`.
    pub again: &'static str,
    /// What the agent is told to do instead, one turn before the trip.
    pub advice: &'static str,
}

/// What a turn does to a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// The turn does not tell.
    Keep,
    Reset,
    /// Counts this turn as the first one.
    Restart,
    Add,
}

impl Count {
    fn when(happened: Option<bool>) -> Count {
        match happened {
            None => Count::Keep,
            Some(false) => Count::Reset,
            Some(true) => Count::Add,
        }
    }
}

/// What a condition counts by.
pub struct ConditionInput<'a> {
    pub turn: &'a TurnFacts<'a>,
    /// Signature of the error in the message; empty without one.
    pub error: &'a str,
    /// The breaker as the turns before left it.
    pub before: &'a Circuit,
    /// Value of the condition's setting.
    pub setting: u64,
}

impl ConditionInput<'_> {
    /// Counts a turn without progress whose message passes the test.
    fn message_without_progress(&self, test: impl Fn(&str) -> bool) -> Count {
        Count::when(self.turn.message.map(|message| self.turn.progress != Some(true) && test(message)))
    }
}

const MIN_SIMILARITY: f64 = 0.99;

/// Every condition, in the order in which they are checked.
#[rustfmt::skip]
pub const CONDITIONS: &[Condition] = &[
    Condition {
        setting: "circuit.same_error", flag: None, default: 5, runner_default: 5, trips_at: None,
        help: "turns in a row with the same error before the breaker trips, 0 = off",
        label: "same error", outcome: Outcome::Circuit,
        count: |facts| match facts.turn.message {
            None => Count::Keep,
            Some(_) if facts.error.is_empty() => Count::Reset,
            // After a commit or a completed task the error is met at a new attempt.
            Some(_) if facts.turn.advanced || facts.error != facts.before.error => Count::Restart,
            Some(_) => Count::Add,
        },
        found: "same error {count} times: {error}",
        again: "with the same error",
        advice: "Find the cause before you try again, or try another approach.",
    },
    Condition {
        setting: "circuit.output_decline", flag: None, default: 70, runner_default: 70, trips_at: Some(2),
        help: "percent by which two messages in a row must shrink before the breaker trips, 0 = off",
        label: "output decline", outcome: Outcome::Circuit,
        count: |facts| facts.message_without_progress(|message| {
            let (length, left) = (message.chars().count() as u64, 100u64.saturating_sub(facts.setting));
            facts.before.length.is_some_and(|before| length.saturating_mul(100) <= before.saturating_mul(left))
        }),
        found: "the message shrank by {setting}% or more ({times})",
        again: "with much less output",
        advice: "Say what you did and what is next, and continue with the work.",
    },
    Condition {
        setting: "circuit.test_only", flag: None, default: 3, runner_default: 3, trips_at: None,
        help: "turns in a row of testing only, without a completed task, before the breaker trips, 0 = off",
        label: "tests only", outcome: Outcome::Circuit,
        count: |facts| Count::when(facts.turn.status.map(|status| {
            let completed = facts.turn.ticked || status.tasks_completed.is_some_and(|count| count > 0);
            status.work == Some(Work::Testing) && !completed
        })),
        found: "{turns} of testing only",
        again: "of testing only",
        advice: "Work on the task itself, or signal that you are done.",
    },
    Condition {
        // Research is fine in a session; an iteration of the runner should leave something behind.
        setting: "circuit.stagnation", flag: None, default: 5, runner_default: 3, trips_at: None,
        help: "turns in a row without progress before the breaker trips, 0 = off",
        label: "no progress", outcome: Outcome::Stuck,
        count: |facts| Count::when(facts.turn.progress.map(|progress| !progress)),
        found: "{turns} without progress (no commit, no changed file)",
        again: "without progress",
        advice: "Try another approach and change something, or signal that you are done or blocked.",
    },
    Condition {
        setting: "circuit.idle", flag: Some("max-idle"), default: 5, runner_default: 5, trips_at: None,
        help: "turns in a row without a tool call before the breaker trips, 0 = off",
        label: "idle", outcome: Outcome::Stuck,
        count: |facts| Count::when(facts.turn.tools_used.map(|tools| tools == 0)),
        found: "{turns} without a tool call",
        again: "without a tool call",
        advice: "Do the next step with a tool, or signal that you are done or blocked.",
    },
    Condition {
        setting: "circuit.repetition", flag: None, default: 3, runner_default: 3, trips_at: None,
        help: "messages in a row, each a repeat of one of the last five, before the breaker trips, 0 = off",
        label: "repeating", outcome: Outcome::Stuck,
        count: |facts| facts.message_without_progress(|message| {
            let head = similar::head(message);
            facts.before.recent.iter().any(|earlier| similar::is_similar(earlier, head, MIN_SIMILARITY))
        }),
        found: "message repeated {times}",
        again: "with the same message",
        advice: "Do something different, or signal that you are done or blocked.",
    },
    Condition {
        setting: "circuit.safety_completion", flag: None, default: 5, runner_default: 5, trips_at: None,
        help: "turns in a row with completion phrases but no signal before the breaker trips, 0 = off",
        label: "claims", outcome: Outcome::Circuit,
        count: |facts| Count::when(facts.turn.message.map(|message| {
            // An agent with nothing left to do may still make empty commits.
            let worked = facts.turn.progress == Some(true) && !facts.turn.empty_commit;
            !worked && !facts.turn.gave_signal && signal::completion_phrases(message) > 0
        })),
        found: "{turns} that mention completion without the signal",
        again: "of claiming completion without the signal",
        advice: "If the task is done, end with the promise alone on the last line; else say what is missing.",
    },
];

impl Condition {
    /// Returns the name of its counter.
    pub fn name(&self) -> &'static str {
        self.setting.strip_prefix("circuit.").unwrap_or(self.setting)
    }

    /// Says what was found in so many turns.
    pub fn found(&self, count: u64, setting: u64, error: &str) -> String {
        let some = |one: &str, many: &str| if count == 1 { one.into() } else { format!("{count} {many}") };
        let text = self.found.replace("{turns}", &some("1 turn", "turns in a row"));
        let text = text.replace("{times}", &some("once", "times in a row"));
        let text = text.replace("{count}", &count.to_string()).replace("{setting}", &setting.to_string());
        text.replace("{error}", &clean::excerpt(signal::without_label(error), 160))
    }

    /// Returns the number of turns in a row that trip it; 0 where it is off.
    pub fn limit(&self, setting: u64) -> u64 {
        if setting == 0 { 0 } else { self.trips_at.unwrap_or(setting) }
    }
}

/// Something that is counted in a row of turns and ends the loop at a limit. Displayed as `idle 2/5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    pub label: &'static str,
    /// The words after `2 more turns`, such as `without progress`.
    pub again: &'static str,
    pub count: u64,
    pub limit: u64,
}

impl Counter {
    /// Returns the counter that is nearest to its limit, of those above zero.
    pub fn nearest(counters: Vec<Counter>) -> Option<Counter> {
        let counting = counters.into_iter().filter(|counter| counter.count > 0);
        counting.min_by_key(|counter| counter.limit.saturating_sub(counter.count))
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} {}/{}", self.label, self.count, self.limit)
    }
}

/// A number for each condition: its counter, or its setting. In JSON an object by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerCondition([u64; CONDITIONS.len()]);

impl PerCondition {
    pub fn new(number: impl Fn(&'static Condition) -> u64) -> Self {
        PerCondition(std::array::from_fn(|at| number(&CONDITIONS[at])))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static Condition, u64)> {
        CONDITIONS.iter().zip(self.0)
    }

    /// Returns the number of the condition with this name.
    pub fn get(&self, name: &str) -> u64 {
        debug_assert!(CONDITIONS.iter().any(|condition| condition.name() == name), "no condition {name}");
        self.iter().find(|(condition, _)| condition.name() == name).map_or(0, |(_, number)| number)
    }

    #[cfg(test)]
    pub fn with(&self, name: &str, number: u64) -> Self {
        PerCondition::new(|condition| match condition.name() {
            same if same == name => number,
            other => self.get(other),
        })
    }

    /// Returns the counters with their limits. A condition that is switched off is left out.
    pub fn limited(&self, settings: &PerCondition) -> Vec<Counter> {
        let limit = |condition: &Condition| condition.limit(settings.get(condition.name()));
        let counter = |(condition, count): (&'static Condition, u64)| {
            let Condition { label, again, .. } = *condition;
            Counter { label, again, count, limit: limit(condition) }
        };
        self.iter().map(counter).filter(|counter| counter.limit > 0).collect()
    }

    /// Returns the counters above zero.
    pub fn counting(&self, settings: &PerCondition) -> Vec<Counter> {
        let mut counters = self.limited(settings);
        counters.retain(|counter| counter.count > 0);
        counters
    }
}

impl Serialize for PerCondition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(condition, number)| (condition.name(), number)))
    }
}

impl<'de> Deserialize<'de> for PerCondition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields: Map<String, Value> = lenient(deserializer)?;
        let number = |name: &str| fields.get(name).and_then(Value::as_u64);
        Ok(PerCondition::new(|condition| number(condition.name()).unwrap_or(0)))
    }
}
