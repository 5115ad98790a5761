//! The circuit breaker: notices an agent that goes nowhere, warns it once, then ends the loop.
//!
//! Each condition counts consecutive turns and says what it found; the first that trips decides. What a
//! turn does not tell is unknown, and unknown neither counts nor resets.

use super::outcome::Outcome;
use super::record::lenient;
use super::settings::Settings;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CircuitState {
    #[default]
    Closed,
    Tripped,
}

/// Counters of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Circuit {
    #[serde(deserialize_with = "lenient")]
    pub state: CircuitState,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Consecutive turns without any tool.
    #[serde(deserialize_with = "lenient")]
    pub idle: u64,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What one turn showed, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub tools_used: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Fine,
    /// One more such turn trips it: the agent is told.
    Pivot(String),
    Trip(Outcome, String),
}

struct Condition {
    count: u64,
    threshold: u64,
    outcome: Outcome,
    /// What happened `count` times, for people.
    found: fn(u64) -> String,
    /// What the agent should do instead.
    advice: &'static str,
}

impl Circuit {
    /// Counts this turn and judges it.
    pub fn judge(&mut self, turn: &Evidence, settings: &Settings) -> Verdict {
        match turn.tools_used {
            Some(0) => self.idle += 1,
            Some(_) => self.idle = 0,
            None => {}
        }
        let conditions = [Condition {
            count: self.idle,
            threshold: settings.idle,
            outcome: Outcome::Stuck,
            found: |count| format!("{count} turns in a row without using a tool"),
            advice: "Do the next step with a tool, or signal that you are done or blocked.",
        }];
        for condition in &conditions {
            if condition.threshold > 0 && condition.count >= condition.threshold {
                let reason = (condition.found)(condition.count);
                self.state = CircuitState::Tripped;
                self.reason = Some(reason.clone());
                return Verdict::Trip(condition.outcome, reason);
            }
        }
        let close = conditions.iter().find(|c| c.count > 0 && c.count + 1 == c.threshold);
        close.map_or(Verdict::Fine, |condition| {
            let found = (condition.found)(condition.count);
            Verdict::Pivot(format!("{found}: one more ends the loop. {}", condition.advice))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(turns: &[Option<u64>], threshold: u64) -> (Circuit, Vec<Verdict>) {
        let settings = Settings { idle: threshold, ..Settings::default() };
        let mut circuit = Circuit::default();
        let verdicts =
            turns.iter().map(|&tools_used| circuit.judge(&Evidence { tools_used }, &settings)).collect();
        (circuit, verdicts)
    }

    #[test]
    fn idle_warns_once_before_it_trips() {
        let (circuit, verdicts) = judge(&[Some(0); 5], 5);
        assert_eq!(&verdicts[..3], &[Verdict::Fine, Verdict::Fine, Verdict::Fine]);
        assert!(
            matches!(&verdicts[3], Verdict::Pivot(text) if text.starts_with("4 turns in a row without using a tool"))
        );
        assert_eq!(
            verdicts[4],
            Verdict::Trip(Outcome::Stuck, "5 turns in a row without using a tool".into())
        );
        assert_eq!(circuit.state, CircuitState::Tripped);
    }

    #[test]
    fn a_tool_resets_and_the_unknown_does_neither() {
        let (circuit, verdicts) = judge(&[Some(0), None, Some(0), Some(3), Some(0), Some(0), Some(0)], 5);
        assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Fine), "{verdicts:?}");
        assert_eq!(circuit.idle, 3);
        let (circuit, _) = judge(&[None; 20], 5);
        assert_eq!((circuit.idle, circuit.state), (0, CircuitState::Closed));
    }

    #[test]
    fn zero_switches_it_off() {
        let (_, verdicts) = judge(&[Some(0); 30], 0);
        assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Fine));
    }
}
