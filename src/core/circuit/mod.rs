//! The circuit breaker: notices an agent that makes no headway, warns it once, then ends the loop.
//!
//! Each condition counts consecutive turns; the first one in order that reaches its limit trips. What a turn does
//! not tell is unknown, and unknown neither counts nor resets. A trip is kept: it refuses the next start until
//! `ralph reset`.

pub mod condition;
pub mod progress;
pub mod similar;

use super::outcome::Outcome;
use super::record::{lenient, lenient_list};
use super::signal::{self, StatusBlock};
use crate::core::circuit::progress::Baseline;
use condition::{ConditionInput, Count, PerCondition};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CircuitState {
    #[default]
    Ok,
    Tripped,
}

/// The breaker of one run, with what it must remember between turns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Circuit {
    #[serde(deserialize_with = "lenient")]
    pub state: CircuitState,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How the trip ended the loop.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Consecutive turns of each condition.
    pub counters: PerCondition,
    /// The signature of the last turn's error.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// How many characters the last message had.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// The beginnings of the last messages, newest last.
    #[serde(deserialize_with = "lenient_list", skip_serializing_if = "Vec::is_empty")]
    pub recent: Vec<String>,
    #[serde(deserialize_with = "lenient")]
    pub baseline: Baseline,
    /// The baselines of other checkouts in which the agent worked before, oldest first.
    #[serde(deserialize_with = "lenient_list", skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<Baseline>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What one turn showed, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct TurnFacts<'a> {
    pub message: Option<&'a str>,
    pub status: Option<&'a StatusBlock>,
    pub tools_used: Option<u64>,
    pub progress: Option<bool>,
    /// A commit is all there is of progress, and no file changed with it.
    pub empty_commit: bool,
    /// A commit was made or a task ticked: more than a changed file.
    pub advanced: bool,
    /// A task was ticked in the list.
    pub ticked: bool,
    /// The agent gave a valid signal that it is done, even if the completion was rejected.
    pub gave_signal: bool,
    /// The task is complete and only a minimum keeps the loop running.
    pub waits_for_minimum: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BreakerVerdict {
    Fine,
    /// One more such turn trips it.
    Warn(BreakerWarning),
    Trip(Outcome, String),
}

/// What is said one turn before the breaker trips.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerWarning {
    /// What was found, for the user and for the agent.
    pub found: String,
    /// What to do instead, for the agent.
    advice: String,
}

impl BreakerWarning {
    pub fn new(found: &str, advice: &str) -> BreakerWarning {
        BreakerWarning { found: format!("{found}; one more ends the loop"), advice: advice.to_owned() }
    }

    /// Returns both as one.
    pub fn and(&self, other: &BreakerWarning) -> BreakerWarning {
        let join = |one: &str, two: &str, by: &str| [one, two].join(by);
        BreakerWarning {
            found: join(&self.found, &other.found, " · "),
            advice: join(&self.advice, &other.advice, " "),
        }
    }

    pub fn for_agent(&self) -> String {
        format!("{}. {}", self.found, self.advice)
    }
}

/// A message is compared with this many before it.
const MAX_RECENT_MESSAGES: usize = 5;
/// Checkouts the agent left whose baseline is kept.
const MAX_BASELINES: usize = 8;

impl Circuit {
    /// Counts this turn and judges it.
    pub fn judge(&mut self, turn: &TurnFacts, settings: &PerCondition) -> BreakerVerdict {
        if self.is_tripped() {
            let outcome = self.outcome.unwrap_or(Outcome::Circuit);
            return BreakerVerdict::Trip(outcome, self.reason.clone().unwrap_or_default());
        }
        let before = self.counters;
        self.count(turn, settings);
        let mut warning = None;
        for (condition, setting) in settings.iter() {
            let (limit, count) = (condition.limit(setting), self.counters.get(condition.name()));
            let found = || condition.found(count, setting, &self.error);
            if limit > 0 && count >= limit {
                return self.trip(condition.outcome, found());
            }
            // Told when the count arrives there, and not again while it stays.
            if warning.is_none() && count > before.get(condition.name()) && count.saturating_add(1) == limit {
                warning = Some(BreakerWarning::new(&found(), condition.advice));
            }
        }
        warning.map_or(BreakerVerdict::Fine, BreakerVerdict::Warn)
    }

    /// Takes up the baseline of the checkout in which the agent works: one checkout is never compared with another,
    /// and the one it leaves is kept for its return.
    pub fn move_to(&mut self, work_tree: &str) {
        if self.baseline.work_tree == work_tree {
            return;
        }
        let known = self.elsewhere.iter().position(|baseline| baseline.work_tree == work_tree);
        let fresh = || Baseline { work_tree: work_tree.to_owned(), ..Baseline::default() };
        let next = known.map_or_else(fresh, |at| self.elsewhere.remove(at));
        self.elsewhere.push(std::mem::replace(&mut self.baseline, next));
        let surplus = self.elsewhere.len().saturating_sub(MAX_BASELINES);
        self.elsewhere.drain(..surplus);
    }

    /// Returns whether the task list was there at an earlier turn, in this checkout or in another.
    pub fn tasks_were_there(&self) -> bool {
        self.elsewhere.iter().chain([&self.baseline]).any(|baseline| baseline.tasks_passing.is_some())
    }

    /// Trips the breaker, which refuses the next start until it is reset.
    pub fn trip(&mut self, outcome: Outcome, reason: String) -> BreakerVerdict {
        self.state = CircuitState::Tripped;
        self.outcome = Some(outcome);
        self.reason = Some(reason.clone());
        BreakerVerdict::Trip(outcome, reason)
    }

    fn count(&mut self, turn: &TurnFacts, settings: &PerCondition) {
        // While only a minimum keeps the loop running, nothing but idleness counts: the rest is left unknown.
        let turn = match turn.waits_for_minimum {
            true => TurnFacts { tools_used: turn.tools_used, ..TurnFacts::default() },
            false => TurnFacts { message: turn.message.filter(|text| !text.trim().is_empty()), ..*turn },
        };
        let error = turn.message.and_then(signal::error_signature).unwrap_or_default();
        self.counters = PerCondition::new(|condition| {
            let (name, count) = (condition.name(), self.counters.get(condition.name()));
            let facts =
                ConditionInput { turn: &turn, error: &error, before: self, setting: settings.get(name) };
            match (condition.count)(&facts) {
                Count::Keep => count,
                Count::Reset => 0,
                Count::Restart => 1,
                Count::Add => count.saturating_add(1),
            }
        });
        if let Some(message) = turn.message {
            self.error = error;
            self.length = Some(message.chars().count() as u64);
            self.recent.push(similar::head(message).to_owned());
            let surplus = self.recent.len().saturating_sub(MAX_RECENT_MESSAGES);
            self.recent.drain(..surplus);
        }
    }

    /// Returns for how many turns in a row there was no progress.
    pub fn turns_without_progress(&self) -> u64 {
        self.counters.get("stagnation")
    }

    pub fn is_tripped(&self) -> bool {
        self.state == CircuitState::Tripped
    }

    /// Sets the breaker to ok and every counter to zero. The baseline of progress stays.
    pub fn reset(&mut self) {
        let (baseline, elsewhere) = (std::mem::take(&mut self.baseline), std::mem::take(&mut self.elsewhere));
        *self = Circuit { baseline, elsewhere, extra: std::mem::take(&mut self.extra), ..Circuit::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::settings::Settings;
    use proptest::prelude::*;

    fn defaults() -> PerCondition {
        Settings::default().circuit
    }

    /// A turn as a test tells it; what it leaves out is unknown.
    #[derive(Clone, Debug, Default)]
    struct Told {
        message: Option<String>,
        tools: Option<u64>,
        progress: Option<bool>,
        empty_commit: bool,
        advanced: bool,
        gave_signal: bool,
        waits_for_minimum: bool,
    }

    impl Told {
        fn worked(self) -> Told {
            Told { progress: Some(true), tools: Some(3), ..self }
        }
    }

    fn says(message: impl Into<String>) -> Told {
        Told { message: Some(message.into()), ..Told::default() }
    }

    fn status(fields: &str) -> String {
        format!("---RALPH_STATUS---\n{fields}\n---END_RALPH_STATUS---")
    }

    fn judge_one(circuit: &mut Circuit, told: &Told, thresholds: &PerCondition) -> BreakerVerdict {
        let status = told.message.as_deref().and_then(signal::status);
        let evidence = TurnFacts {
            message: told.message.as_deref(),
            status: status.as_ref(),
            tools_used: told.tools,
            progress: told.progress,
            empty_commit: told.empty_commit,
            advanced: told.advanced,
            ticked: told.advanced,
            gave_signal: told.gave_signal,
            waits_for_minimum: told.waits_for_minimum,
        };
        circuit.judge(&evidence, thresholds)
    }

    fn judge(turns: &[Told], thresholds: &PerCondition) -> (Circuit, Vec<BreakerVerdict>) {
        let mut circuit = Circuit::default();
        let verdicts = turns.iter().map(|told| judge_one(&mut circuit, told, thresholds)).collect();
        (circuit, verdicts)
    }

    /// The turn, counted from one, at which it trips, and the reason.
    fn trips(turns: &[Told], thresholds: &PerCondition) -> Option<(usize, String)> {
        let (_, verdicts) = judge(turns, thresholds);
        verdicts.into_iter().enumerate().find_map(|(at, verdict)| match verdict {
            BreakerVerdict::Trip(_, reason) => Some((at + 1, reason)),
            _ => None,
        })
    }

    fn each(count: usize, turn: impl Fn(usize) -> Told) -> Vec<Told> {
        (0..count).map(turn).collect()
    }

    /// Different words of the same length, so that nothing repeats or shrinks.
    fn prose(n: usize) -> String {
        let letter = char::from(b'a' + (n % 26) as u8);
        format!("Looked into part {:02}. {}", n, letter.to_string().repeat(40))
    }

    #[test]
    fn every_condition_trips_at_its_turn_and_says_what_it_saw() {
        let error = |n| says(format!("{}\nerror: connection refused to 10.0.0.{n}:80", prose(n)));
        let shrinking = [says("x".repeat(1000)), says("y".repeat(300)), says("z".repeat(90))];
        let gently = [says("x".repeat(1000)), says("y".repeat(301)), says("z".repeat(90))];
        let tests = |n| says(format!("{}\n{}", prose(n), status("WORK_TYPE: TESTING")));
        let ticks = |n| {
            let fields = "WORK_TYPE: TESTING\nTASKS_COMPLETED_THIS_LOOP: 1";
            says(format!("{}\n{}", prose(n), status(fields)))
        };
        let still = |n| Told { progress: Some(false), tools: Some(1), ..says(prose(n)) };
        let idle = |n| Told { tools: Some(0), ..says(prose(n)) };
        let claims = |n| says(format!("{} All tasks are complete.", prose(n)));
        let bides = |tools| Told {
            waits_for_minimum: true,
            tools: Some(tools),
            progress: Some(false),
            ..says("Done.")
        };
        type Case = (&'static str, Vec<Told>, Option<(usize, &'static str)>);
        let cases: Vec<Case> = vec![
            ("same error", each(9, error), Some((5, "same error 5 times: connection refused"))),
            ("same error, though files change", each(9, |n| error(n).worked()), Some((5, "same error"))),
            (
                "same error, and a commit each time",
                each(9, |n| Told { advanced: true, ..error(n).worked() }),
                None,
            ),
            ("errors that differ", each(9, |n| says(format!("error: {} is wrong", prose(n)))), None),
            (
                "shrinking",
                shrinking.to_vec(),
                Some((3, "the message shrank by 70% or more (2 times in a row)")),
            ),
            ("shrinking by less", gently.to_vec(), None),
            ("shrinking while working", shrinking.map(Told::worked).to_vec(), None),
            ("testing only", each(9, tests), Some((3, "3 turns in a row of testing only"))),
            ("testing only, with new test files", each(9, |n| tests(n).worked()), Some((3, "testing only"))),
            ("testing that completes tasks", each(9, ticks), None),
            ("testing that ticks tasks", each(9, |n| Told { advanced: true, ..tests(n) }), None),
            ("no progress", each(9, still), Some((5, "5 turns in a row without progress"))),
            ("idle", each(9, idle), Some((5, "5 turns in a row without a tool call"))),
            ("the same words", each(9, |_| says("At it.")), Some((4, "message repeated 3 times in a row"))),
            ("the same words while working", each(9, |_| says("At it.").worked()), None),
            ("claims", each(9, claims), Some((5, "5 turns in a row that mention completion"))),
            ("claims while working", each(9, |n| claims(n).worked()), None),
            (
                "claims beside empty commits",
                each(9, |n| Told { empty_commit: true, advanced: true, ..claims(n).worked() }),
                Some((5, "5 turns in a row that mention completion")),
            ),
            ("claims with a signal", each(9, |n| Told { gave_signal: true, ..claims(n) }), None),
            ("nothing known", each(40, |_| Told::default()), None),
            ("work", each(40, |n| says(prose(n)).worked()), None),
            ("biding time", each(40, |_| bides(1)), None),
            ("biding time idly", each(9, |_| bides(0)), Some((5, "without a tool call"))),
        ];
        for (name, turns, expected) in cases {
            let tripped = trips(&turns, &defaults());
            match (&tripped, expected) {
                (Some((at, reason)), Some((expected, part))) => {
                    assert_eq!(*at, expected, "{name}: {reason}");
                    assert!(reason.contains(part), "{name}: {reason}");
                }
                (None, None) => {}
                _ => panic!("{name}: {tripped:?}"),
            }
            assert_eq!(trips(&turns, &PerCondition::default()), None, "{name}: all switched off");
        }
    }

    #[test]
    fn one_warning_before_a_trip_and_not_again_while_nothing_is_known() {
        let still = Told { progress: Some(false), tools: Some(1), ..Told::default() };
        let turns = [vec![still.clone(); 4], vec![Told::default(); 3], vec![still]].concat();
        let (circuit, verdicts) = judge(&turns, &defaults());
        let warned: Vec<_> =
            (0..turns.len()).filter(|&at| matches!(verdicts[at], BreakerVerdict::Warn(_))).collect();
        assert_eq!(warned, [3]);
        let BreakerVerdict::Warn(warning) = &verdicts[3] else { panic!() };
        let found = "4 turns in a row without progress (no commit, no changed file); one more ends the loop";
        assert_eq!(warning.found, found);
        assert!(warning.for_agent().starts_with(&format!("{found}. Try another approach")), "{warning:?}");
        assert!(matches!(&verdicts[7], BreakerVerdict::Trip(Outcome::Stuck, _)) && circuit.is_tripped());
    }

    #[test]
    fn the_first_condition_in_order_gives_the_reason() {
        let stuck = Told { tools: Some(0), progress: Some(false), ..says("error: no route to host") };
        let (at, reason) = trips(&vec![stuck; 9], &defaults().with("repetition", 0)).unwrap();
        assert!(at == 5 && reason.starts_with("same error"), "{reason}");
    }

    #[test]
    fn a_reset_keeps_what_the_work_is_compared_with() {
        let stuck = Told { tools: Some(0), progress: Some(false), ..says("error: no route to host") };
        let (mut circuit, _) = judge(&vec![stuck; 9], &defaults());
        circuit.baseline.head = Some("a".into());
        circuit.extra.insert("colour".into(), 1.into());
        let (baseline, extra) = (circuit.baseline.clone(), circuit.extra.clone());
        circuit.reset();
        assert_eq!(circuit, Circuit { baseline, extra, ..Circuit::default() });
    }

    #[test]
    fn counters_are_written_by_name() {
        let counters = PerCondition::default().with("idle", 3);
        let json = serde_json::to_value(counters).unwrap();
        assert_eq!(json["idle"], 3);
        for name in
            ["same_error", "output_decline", "test_only", "stagnation", "repetition", "safety_completion"]
        {
            assert_eq!(json[name], 0, "{name}");
        }
        assert_eq!(serde_json::from_value::<PerCondition>(json).unwrap(), counters);
    }

    #[test]
    fn only_what_counts_and_is_switched_on_is_shown_with_its_limit() {
        let counters =
            PerCondition::default().with("output_decline", 1).with("idle", 2).with("repetition", 2);
        let shown = counters.counting(&defaults().with("repetition", 0));
        let shown: Vec<_> =
            shown.iter().map(|counter| (counter.label, counter.count, counter.limit)).collect();
        assert_eq!(shown, [("output decline", 1, 2), ("idle", 2, 5)]);
    }

    #[test]
    fn unknown_fields_and_odd_values_cost_nothing() {
        let counters = serde_json::json!({"idle": -1, "stagnation": 2});
        let odd = serde_json::json!({"state": 7, "counters": counters, "recent": ["a", 5], "colour": 1});
        let circuit: Circuit = serde_json::from_value(odd).unwrap();
        assert_eq!((circuit.state, circuit.recent.len()), (CircuitState::Ok, 1));
        assert_eq!((circuit.counters.get("idle"), circuit.counters.get("stagnation")), (0, 2));
        assert_eq!(serde_json::to_value(&circuit).unwrap()["colour"], 1);
    }

    fn turns() -> impl Strategy<Value = Vec<Told>> {
        let message = prop::option::of(prop::sample::select(vec![
            "Still at it.".to_owned(),
            "error: connection refused".into(),
            "All tasks are complete.".into(),
            prose(1),
            prose(2).repeat(20),
            status("WORK_TYPE: TESTING"),
            String::new(),
        ]));
        let told = (message, prop::option::of(0..3u64), prop::option::of(any::<bool>()), any::<bool>());
        let told = told.prop_map(|(message, tools, progress, gave_signal)| Told {
            message,
            tools,
            progress,
            gave_signal,
            ..Told::default()
        });
        prop::collection::vec(told, 0..40)
    }

    proptest! {
        #[test]
        fn a_tripped_breaker_stays_tripped_until_it_is_reset(turns in turns()) {
            let (mut circuit, verdicts) = judge(&turns, &defaults());
            let first = verdicts.iter().position(|verdict| matches!(verdict, BreakerVerdict::Trip(..)));
            prop_assert_eq!(circuit.is_tripped(), first.is_some());
            if let Some(first) = first {
                prop_assert!(verdicts[first..].iter().all(|verdict| matches!(verdict, BreakerVerdict::Trip(..))));
            }
            circuit.reset();
            prop_assert_eq!((circuit.state, circuit.reason.clone()), (CircuitState::Ok, None));
            prop_assert_eq!(circuit.counters, PerCondition::default());
            prop_assert_eq!(judge_one(&mut circuit, &Told::default(), &defaults()), BreakerVerdict::Fine);
        }

        #[test]
        fn counters_survive_a_restart_at_any_turn(turns in turns(), at in 0..40usize) {
            let (whole, _) = judge(&turns, &defaults());
            let at = at.min(turns.len());
            let (first, _) = judge(&turns[..at], &defaults());
            let mut second: Circuit = serde_json::from_str(&serde_json::to_string(&first).unwrap()).unwrap();
            turns[at..].iter().for_each(|told| drop(judge_one(&mut second, told, &defaults())));
            prop_assert_eq!(whole, second);
        }

        #[test]
        fn progress_resets_what_it_should_and_only_that(turns in turns()) {
            let (mut circuit, _) = judge(&turns, &defaults());
            prop_assume!(!circuit.is_tripped());
            let before = circuit.counters;
            judge_one(&mut circuit, &Told { progress: Some(true), ..says(prose(7)) }, &defaults());
            let after = circuit.counters;
            for reset in ["stagnation", "repetition", "output_decline"] {
                prop_assert_eq!(after.get(reset), 0, "{}", reset);
            }
            for kept in ["idle", "test_only"] {
                prop_assert_eq!(after.get(kept), before.get(kept), "{}", kept);
            }
        }

        #[test]
        fn what_is_unknown_changes_no_counter(turns in turns()) {
            let (mut circuit, _) = judge(&turns, &defaults());
            prop_assume!(!circuit.is_tripped());
            let before = circuit.clone();
            prop_assert_eq!(judge_one(&mut circuit, &Told::default(), &defaults()), BreakerVerdict::Fine);
            prop_assert_eq!(circuit, before);
        }
    }
}
