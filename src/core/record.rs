//! The loop: everything Ralph remembers about one autonomous run between two hooks.
//!
//! Fields are read leniently (absent, `null` or of another type means the default) and unknown ones are
//! kept, so that a newer or older Ralph beside this one loses nothing.

use super::circuit::Circuit;
use super::outcome::Outcome;
use super::runtime::Clock;
use super::settings::Files;
use super::tasks::Source;
use super::time::Stamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    #[default]
    InSession,
    Runner,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoopState {
    Running,
    Paused,
    #[default]
    Stopped,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Loop {
    #[serde(deserialize_with = "lenient")]
    pub run_id: String,
    #[serde(deserialize_with = "lenient")]
    pub engine: Engine,
    #[serde(deserialize_with = "lenient")]
    pub state: LoopState,
    #[serde(deserialize_with = "lenient")]
    pub task: String,
    #[serde(deserialize_with = "lenient")]
    pub iteration: u64,
    #[serde(deserialize_with = "lenient")]
    pub started_at: Stamp,
    /// When it was last started or resumed: a stop given before that does not concern it.
    #[serde(deserialize_with = "lenient")]
    pub armed_at: Stamp,
    #[serde(deserialize_with = "lenient")]
    pub accumulated_runtime_seconds: f64,
    #[serde(deserialize_with = "lenient")]
    pub last_hook_timestamp: f64,
    #[serde(deserialize_with = "lenient")]
    pub stuck_count: u64,
    /// Kept in the user's own folder: it refuses a start, and must not come with a repository.
    #[serde(skip)]
    pub circuit: Circuit,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "is_default")]
    pub usage: Usage,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "is_default")]
    pub given: Given,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "is_default")]
    pub reading: Reading,
    /// The limits the agent was last told, so that a change is news.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub told_limits: Option<(u64, i64)>,
    /// Where a run has its tasks.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Source::is_default")]
    pub tasks: Source,
    /// What the agent must hear when the loop goes on: the stop it belonged to was allowed.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub unsaid: Option<String>,
    /// Questions of the agent's with their answers.
    #[serde(deserialize_with = "lenient_list", skip_serializing_if = "Vec::is_empty")]
    pub answered: Vec<String>,
    /// The settings' warnings the user was last told.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "String::is_empty")]
    pub warned: String,
    /// What the agent must be told again: the whole task, where it may have lost it.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "std::ops::Not::not")]
    pub repeat_task: bool,
    /// What the last stop was allowed for, while the loop stays armed.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// The stop of all loops that was there when it was armed: not meant for it.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub stop_all_seen: Option<Stamp>,
    /// Something may have been written since the last scan.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "std::ops::Not::not")]
    pub unscanned: bool,
    /// When the user last pressed Esc.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub interrupted_at: Option<Stamp>,
    /// When its client was last closed; nothing since tells that it was opened again.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Stamp>,
    /// When the loop of this project before it ended.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub previous_ended_at: Option<Stamp>,
    /// Its session was cleared away; `start --resume` adopts it.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub orphaned_at: Option<Stamp>,
    /// The API error that ended the last turn.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Stamp>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Why it is paused or has ended.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the user of its session has been told that it is paused or has ended.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "is_default")]
    pub announced: bool,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Settings given at the start, by key: they stay with the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Given {
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Map::is_empty")]
    pub flags: Map<String, Value>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Map::is_empty")]
    pub preset: Map<String, Value>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Map::is_empty")]
    pub environment: Map<String, Value>,
    /// Commands among the flags. They never touch the project's file, where others could write them: the
    /// user's own record of the arming keeps them.
    #[serde(skip)]
    pub commands: Map<String, Value>,
    /// What the settings files last said: one that is being edited and does not parse changes nothing.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Files::is_empty")]
    pub files: Files,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Tokens and cost as the client reports them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    #[serde(deserialize_with = "lenient", skip_serializing_if = "is_default")]
    pub input_tokens: u64,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "is_default")]
    pub output_tokens: u64,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "is_default")]
    pub cache_read_tokens: u64,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "is_default")]
    pub cache_write_tokens: u64,
    /// Tokens in the context of the newest answer.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "is_default")]
    pub context_tokens: u64,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Usage {
    pub fn tokens(&self) -> u64 {
        [self.output_tokens, self.cache_read_tokens, self.cache_write_tokens]
            .into_iter()
            .fold(self.input_tokens, u64::saturating_add)
    }

    /// Adds what a turn used.
    pub fn add(&mut self, turn: &Usage) {
        let sum = |total: &mut u64, more: u64| *total = total.saturating_add(more);
        sum(&mut self.input_tokens, turn.input_tokens);
        sum(&mut self.output_tokens, turn.output_tokens);
        sum(&mut self.cache_read_tokens, turn.cache_read_tokens);
        sum(&mut self.cache_write_tokens, turn.cache_write_tokens);
        if turn.context_tokens > 0 {
            self.context_tokens = turn.context_tokens;
        }
        if let Some(cost) = turn.cost_usd {
            *self.cost_usd.get_or_insert(0.0) += cost;
        }
    }
}

/// How far the transcript has been read, and what must be remembered from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reading {
    #[serde(deserialize_with = "lenient", skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Where to read on; unknown before the first look, which then begins at `armed_at`.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Prompts and commands that wait for the turn to end, oldest first.
    #[serde(deserialize_with = "lenient_list", skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<Queued>,
    /// The message whose usage was counted last: its blocks repeat the figures.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "String::is_empty")]
    pub counted_message: String,
    /// The session's own running cost figure when it was last seen.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub session_cost_usd: Option<f64>,
    /// Tools seen between two ends of turns, to be counted at the next one.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "is_default")]
    pub carried: Carried,
    /// The prompt that the newest entries belong to.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "String::is_empty")]
    pub prompt_id: String,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Carried {
    pub tools_used: u64,
    pub tools_that_write: u64,
    pub edits: u64,
}

impl Reading {
    /// Begins again, with another file or after a pause.
    pub fn anew(&self) -> Reading {
        Reading { extra: self.extra.clone(), ..Reading::default() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queued {
    pub text: String,
    pub at: Stamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    #[serde(rename = "for")]
    pub what: WaitingFor,
    pub since: Stamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitingFor {
    /// A prompt or command of the user's, which goes first.
    User(Queued),
    /// Work in the background; the client wakes the session when it ends.
    Background(String),
}

/// A reason may be the agent's own words, and is kept in state and history.
const LONGEST_REASON: usize = 4000;

impl Loop {
    pub fn is_alive(&self) -> bool {
        self.state != LoopState::Stopped
    }

    pub fn runtime_ms(&self) -> i64 {
        Stamp::from_seconds(self.accumulated_runtime_seconds).0.max(0)
    }

    pub fn wall_ms(&self, now: Stamp) -> i64 {
        (self.ended_at.unwrap_or(now) - self.started_at).max(0)
    }

    pub fn last_seen(&self) -> Stamp {
        Stamp::from_seconds(self.last_hook_timestamp).max(self.armed_at)
    }

    pub fn end(&mut self, outcome: Outcome, reason: impl Into<String>, now: Stamp) {
        self.state = LoopState::Stopped;
        self.outcome = Some(outcome);
        self.reason = Some(reason.into().chars().take(LONGEST_REASON).collect());
        self.ended_at = Some(now);
        self.waiting = None;
        self.announced = false;
    }

    /// Esc after the loop was last told to go.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted_at.is_some_and(|at| at > self.armed_at)
    }

    /// After Esc the loop waits until it is told to go on.
    pub fn pause_if_interrupted(&mut self) -> bool {
        let pause = self.state == LoopState::Running && self.is_interrupted();
        if pause {
            self.pause("you interrupted the agent");
        }
        pause
    }

    pub fn pause(&mut self, reason: impl Into<String>) {
        self.state = LoopState::Paused;
        self.reason = Some(reason.into());
        self.waiting = None;
        self.announced = false;
    }

    /// Goes on, with its counters, from a pause or an ending. The time until now was not work.
    pub fn resume(&mut self, now: Stamp) {
        self.state = LoopState::Running;
        self.armed_at = now;
        self.last_hook_timestamp = now.seconds();
        self.clock = None;
        self.reading = self.reading.anew();
        self.circuit.reset();
        self.stuck_count = 0;
        self.waiting = None;
        self.orphaned_at = None;
        self.closed_at = None;
        self.last_error = None;
        self.ended_at = None;
        self.outcome = None;
        self.reason = None;
        self.announced = false;
        self.repeat_task = true;
    }
}

/// What says nothing is not written: every hook reads the records of all sessions.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Any value that does not fit is the default: one bad field must not cost the rest of the record.
pub fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// A list of which the odd elements are left out, not the others.
pub fn lenient_list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let values: Vec<Value> = lenient(deserializer)?;
    Ok(values.into_iter().filter_map(|value| serde_json::from_value(value).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nulls_and_wrong_types_are_defaults_and_unknown_fields_stay() {
        let old = json!({"run_id": "r", "iteration": "many", "started_at": null, "accumulated_runtime_seconds": 1.5,
            "usage": 7, "reading": {"offset": null}, "colour": {"of": "magic"}});
        let record: Loop = serde_json::from_value(old).unwrap();
        assert_eq!((record.run_id.as_str(), record.iteration, record.runtime_ms()), ("r", 0, 1500));
        assert_eq!(record.state, LoopState::Stopped, "a loop that does not say it runs does not run");
        let again = serde_json::to_value(&record).unwrap();
        assert_eq!(again["colour"], json!({"of": "magic"}));
        assert_eq!(serde_json::from_value::<Loop>(again).unwrap(), record);
    }
}
