//! The circuit breaker: notices an agent that goes nowhere, warns it once, then ends the loop.
//!
//! Each condition counts consecutive turns and says what it found; the first that trips decides. What a
//! turn does not tell is unknown, and unknown neither counts nor resets. A trip is kept: it refuses the next
//! start until somebody resets it.

use super::clean;
use super::outcome::Outcome;
use super::progress::Baseline;
use super::record::{lenient, lenient_list};
use super::settings::Thresholds;
use super::signal::{self, Status, Work};
use super::similar;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CircuitState {
    #[default]
    Closed,
    Tripped,
}

/// Consecutive turns of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    #[serde(deserialize_with = "lenient")]
    pub same_error: u64,
    #[serde(deserialize_with = "lenient")]
    pub output_decline: u64,
    #[serde(deserialize_with = "lenient")]
    pub test_only: u64,
    #[serde(deserialize_with = "lenient")]
    pub stagnation: u64,
    #[serde(deserialize_with = "lenient")]
    pub idle: u64,
    #[serde(deserialize_with = "lenient")]
    pub repetition: u64,
    #[serde(deserialize_with = "lenient")]
    pub safety_completion: u64,
}

impl Counters {
    /// What is counting now, in a word each, with its limit. What stands at zero, or is switched off, is no news.
    pub fn counting(&self, most: &Thresholds) -> Vec<(&'static str, u64, u64)> {
        let mut counts = vec![
            ("no progress", self.stagnation, most.stagnation),
            ("idle", self.idle, most.idle),
            ("same error", self.same_error, most.same_error),
            ("repeating", self.repetition, most.repetition),
            ("tests only", self.test_only, most.test_only),
            ("claims", self.safety_completion, most.safety_completion),
        ];
        counts.retain(|(_, count, most)| *count > 0 && *most > 0);
        counts
    }
}

/// The breaker of one run, with what it must remember between turns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Circuit {
    #[serde(deserialize_with = "lenient")]
    pub state: CircuitState,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the trip ended the loop as.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    #[serde(deserialize_with = "lenient")]
    pub counters: Counters,
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
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What one turn showed, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence<'a> {
    pub message: Option<&'a str>,
    pub status: Option<&'a Status>,
    pub tools_used: Option<u64>,
    pub progress: Option<bool>,
    /// A commit was made or a task ticked: more than a changed file.
    pub advanced: bool,
    /// A task was ticked in the list.
    pub ticked: bool,
    /// The agent gave a valid signal that it is done, whatever became of it.
    pub signalled: bool,
    /// It is done as far as it can be, and only a minimum keeps the loop running.
    pub biding_time: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Fine,
    /// One more such turn trips it: the agent is told.
    Pivot(String),
    Trip(Outcome, String),
}

struct Condition {
    before: u64,
    count: u64,
    threshold: u64,
    outcome: Outcome,
    /// What happened so many times, for people.
    found: String,
    /// What the agent should do instead.
    advice: &'static str,
}

/// A message is compared with so many before it.
const REMEMBERED: usize = 5;
const SIMILAR: f64 = 0.99;
/// Output that shrinks trips the second time running.
const DECLINES: u64 = 2;

impl Circuit {
    /// Counts this turn and judges it.
    pub fn judge(&mut self, turn: &Evidence, thresholds: &Thresholds) -> Verdict {
        if self.is_tripped() {
            let outcome = self.outcome.unwrap_or(Outcome::Circuit);
            return Verdict::Trip(outcome, self.reason.clone().unwrap_or_default());
        }
        let before = self.counters;
        self.count(turn, thresholds);
        let conditions = self.conditions(&before, thresholds);
        for condition in &conditions {
            if condition.threshold > 0 && condition.count >= condition.threshold {
                self.state = CircuitState::Tripped;
                self.outcome = Some(condition.outcome);
                self.reason = Some(condition.found.clone());
                return Verdict::Trip(condition.outcome, condition.found.clone());
            }
        }
        // Told when the count arrives there, and not again while it stays.
        let close =
            conditions.iter().find(|c| c.count > c.before && c.count.saturating_add(1) == c.threshold);
        close.map_or(Verdict::Fine, |condition| {
            let Condition { found, advice, .. } = condition;
            Verdict::Pivot(format!("{found}: one more ends the loop. {advice}"))
        })
    }

    fn count(&mut self, turn: &Evidence, thresholds: &Thresholds) {
        match turn.tools_used {
            Some(0) => self.counters.idle = self.counters.idle.saturating_add(1),
            Some(_) => self.counters.idle = 0,
            None => {}
        }
        // Nothing is left to do but to wait well: only idleness is still worth an ending.
        if turn.biding_time {
            return;
        }
        match turn.progress {
            Some(false) => self.counters.stagnation = self.counters.stagnation.saturating_add(1),
            Some(true) => self.counters.stagnation = 0,
            None => {}
        }
        if let Some(status) = turn.status {
            let completed = turn.ticked || status.tasks_completed.is_some_and(|count| count > 0);
            let only_tests = status.work == Some(Work::Testing) && !completed;
            self.counters.test_only = if only_tests { self.counters.test_only.saturating_add(1) } else { 0 };
        }
        if let Some(message) = turn.message.filter(|message| !message.trim().is_empty()) {
            self.hear(message, turn, thresholds);
        }
    }

    fn hear(&mut self, message: &str, turn: &Evidence, thresholds: &Thresholds) {
        let progress = turn.progress == Some(true);
        let counters = &mut self.counters;

        let error = signal::error_signature(message).unwrap_or_default();
        counters.same_error = match error.is_empty() {
            true => 0,
            // Something was finished in between: the error is met on the way, not where it ends.
            false if turn.advanced => 1,
            false if error == self.error => counters.same_error.saturating_add(1),
            false => 1,
        };
        self.error = error;

        let length = message.chars().count() as u64;
        let left = 100u64.saturating_sub(thresholds.output_decline);
        let shrank = self.length.is_some_and(|before| length * 100 <= before * left);
        counters.output_decline =
            if shrank && !progress { counters.output_decline.saturating_add(1) } else { 0 };
        self.length = Some(length);

        let beginning = similar::head(message);
        let repeats = self.recent.iter().any(|earlier| similar::is_similar(earlier, &beginning, SIMILAR));
        counters.repetition = if repeats && !progress { counters.repetition.saturating_add(1) } else { 0 };
        self.recent.push(beginning.to_owned());
        let surplus = self.recent.len().saturating_sub(REMEMBERED);
        self.recent.drain(..surplus);

        let claims = !turn.signalled && !progress && signal::completion_phrases(message) > 0;
        counters.safety_completion = if claims { counters.safety_completion.saturating_add(1) } else { 0 };
    }

    /// In the order in which they are checked.
    fn conditions(&self, before: &Counters, thresholds: &Thresholds) -> [Condition; 7] {
        let now = &self.counters;
        let decline = if thresholds.output_decline > 0 { DECLINES } else { 0 };
        let error = clean::excerpt(&self.error, 160);
        [
            Condition {
                before: before.same_error,
                count: now.same_error,
                threshold: thresholds.same_error,
                outcome: Outcome::Circuit,
                found: format!("same error {} times: {error}", now.same_error),
                advice: "Find the cause before you try again, or take another way.",
            },
            Condition {
                before: before.output_decline,
                count: now.output_decline,
                threshold: decline,
                outcome: Outcome::Circuit,
                found: format!(
                    "output smaller by {} % or more, {}",
                    thresholds.output_decline,
                    times(now.output_decline)
                ),
                advice: "Say what you did and what is next, and go on with the work.",
            },
            Condition {
                before: before.test_only,
                count: now.test_only,
                threshold: thresholds.test_only,
                outcome: Outcome::Circuit,
                found: format!("{} of testing only", turns(now.test_only)),
                advice: "Work on the task itself, or signal that you are done.",
            },
            Condition {
                before: before.stagnation,
                count: now.stagnation,
                threshold: thresholds.stagnation,
                outcome: Outcome::Stuck,
                found: format!("{} without progress (no commit, no changed file)", turns(now.stagnation)),
                advice: "Try another approach and change something, or signal that you are done or blocked.",
            },
            Condition {
                before: before.idle,
                count: now.idle,
                threshold: thresholds.idle,
                outcome: Outcome::Stuck,
                found: format!("{} without using a tool", turns(now.idle)),
                advice: "Do the next step with a tool, or signal that you are done or blocked.",
            },
            Condition {
                before: before.repetition,
                count: now.repetition,
                threshold: thresholds.repetition,
                outcome: Outcome::Stuck,
                found: format!("the same message again, {}", times(now.repetition)),
                advice: "Do something else than before, or signal that you are done or blocked.",
            },
            Condition {
                before: before.safety_completion,
                count: now.safety_completion,
                threshold: thresholds.safety_completion,
                outcome: Outcome::Circuit,
                found: format!(
                    "{} that spoke of completion without the signal",
                    turns(now.safety_completion)
                ),
                advice: "If the task is done, end with the promise alone on the last line; else say what is missing.",
            },
        ]
    }

    pub fn is_tripped(&self) -> bool {
        self.state == CircuitState::Tripped
    }

    /// Closed again, with every counter at zero. What the work is compared with stays.
    pub fn reset(&mut self) {
        let baseline = std::mem::take(&mut self.baseline);
        *self = Circuit { baseline, extra: std::mem::take(&mut self.extra), ..Circuit::default() };
    }
}

fn turns(count: u64) -> String {
    if count == 1 { "1 turn".into() } else { format!("{count} turns in a row") }
}

fn times(count: u64) -> String {
    if count == 1 { "once".into() } else { format!("{count} times running") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::settings::Settings;
    use proptest::prelude::*;

    fn defaults() -> Thresholds {
        Settings::default().circuit
    }

    /// A turn as a test tells it; what it leaves out is unknown.
    #[derive(Clone, Debug, Default)]
    struct Told {
        message: Option<String>,
        tools: Option<u64>,
        progress: Option<bool>,
        advanced: bool,
        signalled: bool,
        biding_time: bool,
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

    fn judge_one(circuit: &mut Circuit, told: &Told, thresholds: &Thresholds) -> Verdict {
        let status = told.message.as_deref().and_then(signal::status);
        let evidence = Evidence {
            message: told.message.as_deref(),
            status: status.as_ref(),
            tools_used: told.tools,
            progress: told.progress,
            advanced: told.advanced,
            ticked: told.advanced,
            signalled: told.signalled,
            biding_time: told.biding_time,
        };
        circuit.judge(&evidence, thresholds)
    }

    fn judge(turns: &[Told], thresholds: &Thresholds) -> (Circuit, Vec<Verdict>) {
        let mut circuit = Circuit::default();
        let verdicts = turns.iter().map(|told| judge_one(&mut circuit, told, thresholds)).collect();
        (circuit, verdicts)
    }

    /// The turn, counted from one, at which it trips, and the reason.
    fn trips(turns: &[Told], thresholds: &Thresholds) -> Option<(usize, String)> {
        let (_, verdicts) = judge(turns, thresholds);
        verdicts.into_iter().enumerate().find_map(|(at, verdict)| match verdict {
            Verdict::Trip(_, reason) => Some((at + 1, reason)),
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
        let bides =
            |tools| Told { biding_time: true, tools: Some(tools), progress: Some(false), ..says("Done.") };
        type Case = (&'static str, Vec<Told>, Option<(usize, &'static str)>);
        let cases: Vec<Case> = vec![
            ("same error", each(9, error), Some((5, "same error 5 times: error: connection refused"))),
            ("same error, though files change", each(9, |n| error(n).worked()), Some((5, "same error"))),
            (
                "same error, and a commit each time",
                each(9, |n| Told { advanced: true, ..error(n).worked() }),
                None,
            ),
            ("errors that differ", each(9, |n| says(format!("error: {} is wrong", prose(n)))), None),
            ("shrinking", shrinking.to_vec(), Some((3, "output smaller by 70 % or more, 2 times running"))),
            ("shrinking by less", gently.to_vec(), None),
            ("shrinking while working", shrinking.map(Told::worked).to_vec(), None),
            ("testing only", each(9, tests), Some((3, "3 turns in a row of testing only"))),
            ("testing only, with new test files", each(9, |n| tests(n).worked()), Some((3, "testing only"))),
            ("testing that completes tasks", each(9, ticks), None),
            ("testing that ticks tasks", each(9, |n| Told { advanced: true, ..tests(n) }), None),
            ("no progress", each(9, still), Some((5, "5 turns in a row without progress"))),
            ("idle", each(9, idle), Some((5, "5 turns in a row without using a tool"))),
            (
                "the same words",
                each(9, |_| says("At it.")),
                Some((4, "the same message again, 3 times running")),
            ),
            ("the same words while working", each(9, |_| says("At it.").worked()), None),
            ("claims", each(9, claims), Some((5, "5 turns in a row that spoke of completion"))),
            ("claims while working", each(9, |n| claims(n).worked()), None),
            ("claims with a signal", each(9, |n| Told { signalled: true, ..claims(n) }), None),
            ("nothing known", each(40, |_| Told::default()), None),
            ("work", each(40, |n| says(prose(n)).worked()), None),
            ("biding time", each(40, |_| bides(1)), None),
            ("biding time idly", each(9, |_| bides(0)), Some((5, "without using a tool"))),
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
            assert_eq!(trips(&turns, &Thresholds::default()), None, "{name}: all switched off");
        }
    }

    #[test]
    fn one_warning_before_a_trip_and_not_again_while_nothing_is_known() {
        let still = Told { progress: Some(false), tools: Some(1), ..Told::default() };
        let turns = [vec![still.clone(); 4], vec![Told::default(); 3], vec![still]].concat();
        let (circuit, verdicts) = judge(&turns, &defaults());
        let warned: Vec<_> =
            (0..turns.len()).filter(|&at| matches!(verdicts[at], Verdict::Pivot(_))).collect();
        assert_eq!(warned, [3]);
        let Verdict::Pivot(text) = &verdicts[3] else { panic!() };
        assert!(text.starts_with("4 turns in a row without progress"), "{text}");
        assert!(text.contains("one more ends the loop"), "{text}");
        assert!(matches!(&verdicts[7], Verdict::Trip(Outcome::Stuck, _)) && circuit.is_tripped());
    }

    #[test]
    fn the_first_condition_in_order_gives_the_reason() {
        let stuck = Told { tools: Some(0), progress: Some(false), ..says("error: no route to host") };
        let (at, reason) = trips(&vec![stuck; 9], &Thresholds { repetition: 0, ..defaults() }).unwrap();
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
    fn unknown_fields_and_odd_values_cost_nothing() {
        let counters = serde_json::json!({"idle": -1, "stagnation": 2});
        let odd = serde_json::json!({"state": 7, "counters": counters, "recent": ["a", 5], "colour": 1});
        let circuit: Circuit = serde_json::from_value(odd).unwrap();
        assert_eq!((circuit.state, circuit.recent.len()), (CircuitState::Closed, 1));
        assert_eq!((circuit.counters.idle, circuit.counters.stagnation), (0, 2));
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
        let told = told.prop_map(|(message, tools, progress, signalled)| Told {
            message,
            tools,
            progress,
            signalled,
            ..Told::default()
        });
        prop::collection::vec(told, 0..40)
    }

    proptest! {
        #[test]
        fn a_tripped_breaker_stays_tripped_until_it_is_reset(turns in turns()) {
            let (mut circuit, verdicts) = judge(&turns, &defaults());
            let first = verdicts.iter().position(|verdict| matches!(verdict, Verdict::Trip(..)));
            prop_assert_eq!(circuit.is_tripped(), first.is_some());
            if let Some(first) = first {
                prop_assert!(verdicts[first..].iter().all(|verdict| matches!(verdict, Verdict::Trip(..))));
            }
            circuit.reset();
            prop_assert_eq!((circuit.state, circuit.reason.clone()), (CircuitState::Closed, None));
            prop_assert_eq!(circuit.counters, Counters::default());
            prop_assert_eq!(judge_one(&mut circuit, &Told::default(), &defaults()), Verdict::Fine);
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
            prop_assert_eq!((after.stagnation, after.repetition, after.output_decline), (0, 0, 0));
            prop_assert_eq!((after.idle, after.test_only), (before.idle, before.test_only));
        }

        #[test]
        fn what_is_unknown_changes_no_counter(turns in turns()) {
            let (mut circuit, _) = judge(&turns, &defaults());
            prop_assume!(!circuit.is_tripped());
            let before = circuit.clone();
            prop_assert_eq!(judge_one(&mut circuit, &Told::default(), &defaults()), Verdict::Fine);
            prop_assert_eq!(circuit, before);
        }
    }
}
