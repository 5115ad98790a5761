//! A loop: everything Ralph remembers about one autonomous run between two hooks.
//!
//! Fields are read leniently (absent, `null` or of another type means the default) and unknown ones are
//! kept, so that a newer or older Ralph beside this one loses nothing.

mod armed;
pub mod lenient;
mod usage;
mod waiting;

pub use armed::ArmedLoop;
pub use lenient::{is_default, lenient, lenient_list, lenient_text};
pub use usage::Spent;
pub use waiting::{BackgroundWait, Waiting, WaitingFor};

use super::decide::figures::{FigureSource, MAX_RESET_MS, Window};
use super::decide::turn::{CheckResult, TranscriptGain};
use super::outcome::Outcome;
use super::settings::Files;
use super::signal::StatusBlock;
use super::tasks::TaskSource;
use super::time::Stamp;
use super::time::outage::Outage;
use crate::core::time::runtime::Clock;
use serde::{Deserialize, Serialize};
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

/// Declares the parts of a loop's record. A field is read leniently and not written while it has its default, because
/// every hook reads the records of all sessions; fields in `always` are written in any case. A bad element of a field
/// in `lists` does not cost the other elements. Unknown fields are kept in `extra`.
macro_rules! records {
    ($(
        $(#[$doc:meta])*
        pub struct $name:ident {
            $(always { $($(#[$always_doc:meta])* pub $always:ident: $always_type:ty,)* })?
            $($(#[$field_doc:meta])* pub $field:ident: $type:ty,)*
            $(lists { $($(#[$list_doc:meta])* pub $list:ident: $list_type:ty,)* })?
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $name {
            $($(
                $(#[$always_doc])*
                #[serde(deserialize_with = "lenient_text")]
                pub $always: $always_type,
            )*)?
            $(
                $(#[$field_doc])*
                #[serde(deserialize_with = "lenient_text", skip_serializing_if = "is_default")]
                pub $field: $type,
            )*
            $($(
                $(#[$list_doc])*
                #[serde(deserialize_with = "lenient_list", skip_serializing_if = "Vec::is_empty")]
                pub $list: $list_type,
            )*)?
            #[serde(flatten)]
            pub extra: Map<String, Value>,
        }
    )*};
}

records! {
    /// A loop as the project's state file tells it. Anyone who can write the project can write this file, so it
    /// proves nothing by itself: what acts on a loop takes an [`ArmedLoop`].
    pub struct StoredLoop {
        always {
            pub run_id: String,
            pub engine: Engine,
            pub state: LoopState,
            pub task: String,
            pub iteration: u64,
            pub started_at: Stamp,
            pub accumulated_runtime_seconds: f64,
            pub last_hook_timestamp: f64,
            pub stuck_count: u64,
        }
        /// How many characters the last message of the agent had.
        pub output_characters: Option<u64>,
        /// What the agent reported in its last turn.
        pub status_block: Option<StatusBlock>,
        pub ended_at: Option<Stamp>,
        pub outcome: Option<Outcome>,
        /// Why it is paused or has ended.
        pub reason: Option<String>,
        /// Why the agent's last claim of completion was rejected.
        pub rejected_claim: Option<String>,
        pub timing: Timing,
        pub usage: Usage,
        pub quota: Quota,
        pub session: Session,
        pub pending: Pending,
        pub told: Reported,
        pub given: GivenSettings,
        pub tally: RunTotals,
        /// The task list the runner works through.
        pub tasks: TaskSource,
        lists {
            /// The last result of each check command.
            pub checks: Vec<CheckResult>,
        }
    }

    /// What runtime is computed from, and which stops concern this loop.
    pub struct Timing {
        always {
            /// When it was last started or resumed: a stop given before that does not concern it.
            pub armed_at: Stamp,
        }
        pub clock: Option<Clock>,
        /// When the previous loop of this project ended.
        pub previous_ended_at: Option<Stamp>,
        /// The `ralph stop --all` that was already there when it was armed.
        pub stop_all_seen: Option<Stamp>,
        /// Pauses that were left out of runtime since a turn last continued, in milliseconds.
        pub paused_ms: i64,
        /// The runtime at the last turn with progress, in milliseconds.
        pub progress_ms: i64,
        /// How long the machine slept while the loop ran, in milliseconds: `clock` leaves it out.
        pub slept_ms: i64,
        /// The machine's own figure of it at `last_hook_timestamp`.
        pub slept_mark_ms: Option<i64>,
        lists {
            /// Each Esc after which it was resumed, the last ones: the transcript still shows them, and since the clock
            /// may have been set back, any of them can look newer than the last start.
            pub interruptions_seen: Vec<Stamp>,
        }
    }

    /// What is known about the client's session.
    pub struct Session {
        pub transcript: TranscriptPosition,
        /// What the last stop was allowed for, while the loop stays armed, or what a runner waits for.
        pub waiting: Option<Waiting>,
        /// Identifies the end of the last turn: the hooks of one end share the number.
        pub turn_end_id: Option<u64>,
        /// When the user last pressed Esc.
        pub interrupted_at: Option<Stamp>,
        /// When the client was closed; `None` once it is open again.
        pub closed_at: Option<Stamp>,
        /// When `/clear` took the session away; `start --resume` adopts the loop.
        pub orphaned_at: Option<Stamp>,
        /// The API error that ended the last turn.
        pub last_error: Option<String>,
        /// The service fails since then.
        pub outage: Option<Outage>,
        /// The flags that allow what the agent was denied, if that blocked the run; empty if no rule can.
        pub flags_to_allow: Option<String>,
        /// What was denied because no permission was given in time.
        pub denials: Denials,
        /// A tool may have written since the last scan, or that was of another checkout.
        pub unscanned: bool,
        /// The git worktree in which the agent works, by its path; empty if it works in the project itself.
        pub work_tree: String,
        /// The session's cost, as `Figures::spent_usd` tells it, up to which it is counted.
        pub counted_usd: Option<f64>,
        /// How far the agent has handed over to a new context.
        pub handover: Option<Handover>,
        lists {
            /// Background commands that ran when a turn ended.
            pub background: Vec<BackgroundCommand>,
        }
    }

    /// What was denied because no permission was given in time.
    pub struct Denials {
        /// Turns in a row with a denial and without progress.
        pub turns_in_a_row: u64,
        lists {
            pub calls: Vec<Denied>,
        }
    }

    /// The windows of the user's plan, as the client last told them. For people: decisions are made by what it tells in
    /// the turn.
    pub struct Quota {
        pub at: Option<Stamp>,
        pub source: Option<FigureSource>,
        /// The agent was told to bring the work to a safe point.
        pub landing: Option<FinishUpRequest>,
        /// The loop waits for a reset.
        pub held: Option<QuotaWait>,
        lists {
            pub windows: Vec<Window>,
        }
    }

    /// What the agent's next prompt must say.
    pub struct Pending {
        /// Advice from a turn whose stop was allowed, so that it could not be given there.
        pub advice: Option<String>,
        /// What blocked an earlier run, if no answer says how that was resolved.
        pub blocked: Option<String>,
        /// The whole task, because the agent may have lost it.
        pub repeat_task: bool,
        /// The agent's question in the client's own dialog, which the user did not answer in time: the turn ends with it.
        pub question: Option<String>,
        lists {
            /// The agent's questions with their answers.
            pub answers: Vec<String>,
        }
    }

    /// What was already said, so that it is said once.
    pub struct Reported {
        /// The limits the agent knows: iterations and runtime in milliseconds.
        pub limits: Option<(u64, i64)>,
        /// The warnings about settings the user has seen.
        pub warnings: String,
        /// The user of its session knows that it is paused or has ended; a runner that is paused has nothing at work.
        pub ending: bool,
        /// The user knows that its events cannot be written.
        pub events_failed: bool,
        /// The worktree in which the agent works, as the user knows it.
        pub work_tree: String,
        /// The user was notified that there is no progress.
        pub no_progress: bool,
        /// Turns in a row of which the client told no cost.
        pub turns_without_cost: u64,
    }

    /// Settings given at the start, by key: they stay with the run.
    pub struct GivenSettings {
        pub flags: Map<String, Value>,
        pub preset: Map<String, Value>,
        pub environment: Map<String, Value>,
        /// What the settings files last said: one that is being edited and does not parse changes nothing.
        pub files: Files,
    }

    /// Totals of a run over all the times it was continued. Rows of the summary hold the same, but may be archived.
    pub struct RunTotals {
        /// How long runners worked at it, their waits included.
        pub duration_seconds: u64,
        /// Of that, what the rows of its iterations add up to.
        pub recorded_seconds: u64,
        /// Iterations without progress.
        pub stuck_iterations: u64,
    }

    /// Tokens and cost as the client reports them.
    pub struct Usage {
        pub input_tokens: u64,
        pub output_tokens: u64,
        pub cache_read_tokens: u64,
        pub cache_write_tokens: u64,
        /// Tokens in the context of the newest answer.
        pub context_tokens: u64,
        pub cost_usd: Option<f64>,
        /// Where the cost was told.
        pub cost_source: Option<FigureSource>,
        /// How full the context was at the newest answer, where the client tells it.
        pub context_percent: Option<f64>,
    }

    /// How far the transcript has been read, and what must be remembered from it.
    pub struct TranscriptPosition {
        pub path: String,
        /// Where to continue reading; `None` before the first read, which begins at `armed_at`.
        pub offset: Option<u64>,
        /// The message whose usage was counted last: its blocks repeat the figures.
        pub counted_message: String,
        /// The session's own running cost figure when it was last seen.
        pub session_cost_usd: Option<f64>,
        /// Tools seen between two ends of turns, to be counted at the next one.
        pub carried: CarriedToolCounts,
        /// The prompt that the newest entries belong to.
        pub prompt_id: String,
        lists {
            /// Prompts and commands that wait for the turn to end, oldest first.
            pub queue: Vec<QueuedPrompt>,
        }
    }
}

impl GivenSettings {
    /// Returns what the user gave, without what the settings files said.
    pub fn by_user(&self) -> GivenSettings {
        let GivenSettings { flags, preset, environment, .. } = self.clone();
        GivenSettings { flags, preset, environment, ..GivenSettings::default() }
    }

    /// Replaces what the user gave by what is recorded of it.
    pub fn set_by_user(&mut self, recorded: GivenSettings) {
        (self.flags, self.preset, self.environment) = (recorded.flags, recorded.preset, recorded.environment);
    }
}

/// The agent was told to bring the work to a safe point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinishUpRequest {
    pub resets_at: Option<Stamp>,
    /// How much is used: `92% of the 5-hour limit used`.
    pub words: String,
}

/// The loop waits for a reset until then, for this reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuotaWait {
    pub until: Stamp,
    pub words: String,
}

/// How far the agent has handed over to a new context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Handover {
    /// It was told to write down what the new context needs.
    Asked,
    /// It has had the turn for that.
    Written,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CarriedToolCounts {
    pub tools_used: u64,
    pub tools_that_write: u64,
    pub edits: u64,
}

impl TranscriptPosition {
    /// Returns a position that starts again, for another file or after a pause.
    pub fn restarted(&self) -> TranscriptPosition {
        TranscriptPosition { extra: self.extra.clone(), ..TranscriptPosition::default() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueuedPrompt {
    pub text: String,
    pub at: Stamp,
}

/// A call of a tool that was denied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Denied {
    /// Tells it from other calls, also from those that read alike.
    pub id: u64,
    /// The call for people.
    pub call: String,
    /// The rule that would allow it, if a rule can.
    pub rule: Option<String>,
    pub count: u64,
    /// It was denied in the turn that has not ended yet.
    pub in_turn: bool,
}

/// A background command, and when a turn first ended while it ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackgroundCommand {
    pub id: String,
    pub since: Stamp,
    /// The agent knows that the loop continues without it.
    pub told: bool,
}

/// What the client itself says about a session, or what is known of the process of a runner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClientStatus {
    #[default]
    Unknown,
    /// Its process is gone.
    Gone,
    /// It is there, and does not say what it does.
    Open,
    Busy,
    /// Nothing runs until the user sends a prompt.
    Idle,
    /// It waits for the user's answer to this, such as `permission prompt`.
    Asking(String),
}

/// Why a loop is paused that the user paused with `ralph pause`.
pub const PAUSED_BY_USER: &str = "paused by you";

/// A reason may be the agent's own words, and is kept in state and history.
const MAX_REASON_CHARS: usize = 4000;

impl StoredLoop {
    pub fn is_alive(&self) -> bool {
        self.state != LoopState::Stopped
    }

    pub fn runtime_ms(&self) -> i64 {
        Stamp::from_seconds(self.accumulated_runtime_seconds).0.max(0)
    }

    /// Returns how long the agent worked in an iteration, on average.
    pub fn average_seconds(&self) -> Option<u64> {
        u64::try_from(self.runtime_ms() / 1000).ok()?.checked_div(self.iteration)
    }

    pub fn wall_ms(&self, now: Stamp) -> i64 {
        (self.ended_at.unwrap_or(now) - self.started_at).max(0)
    }

    /// Takes over the newest result of each command.
    pub fn remember_checks(&mut self, results: &[CheckResult]) {
        for result in results {
            self.checks.retain(|earlier| earlier.command != result.command);
            self.checks.push(result.clone());
        }
    }

    pub fn last_seen(&self) -> Stamp {
        Stamp::from_seconds(self.last_hook_timestamp).max(self.timing.armed_at)
    }

    /// Takes over what the client shows since the last hook: it runs none for Esc, and tells none of a usage limit's
    /// reset.
    pub fn catch_up(&mut self, gained: Option<&TranscriptGain>, now: Stamp) {
        self.note_interruption(gained.and_then(|gained| gained.interrupted_at));
        if let Some(until) =
            gained.and_then(|gained| gained.limit_resets_at).filter(|at| *at - now <= MAX_RESET_MS)
        {
            self.session.waiting = Some(Waiting { what: WaitingFor::UsageLimit(until), since: now });
        }
        self.pause_if_interrupted();
    }

    pub fn end(&mut self, outcome: Outcome, reason: impl Into<String>, now: Stamp) {
        self.state = LoopState::Stopped;
        self.outcome = Some(outcome);
        self.reason = Some(reason.into().chars().take(MAX_REASON_CHARS).collect());
        self.ended_at = Some(now);
        self.session.waiting = None;
        self.session.outage = None;
        if outcome == Outcome::Complete {
            self.pending.answers.clear();
            self.pending.blocked = None;
        }
        self.told.ending = false;
    }

    pub fn pause(&mut self, reason: impl Into<String>) {
        self.state = LoopState::Paused;
        self.reason = Some(reason.into());
        self.session.waiting = None;
        self.told.ending = false;
    }

    /// Takes over when the user pressed Esc, unless the loop was resumed since.
    pub fn note_interruption(&mut self, at: Option<Stamp>) {
        let new = at.filter(|at| !self.timing.interruptions_seen.contains(at));
        self.session.interrupted_at = self.session.interrupted_at.max(new);
    }

    /// Pauses a running loop if the user pressed Esc after it was armed; returns whether it did.
    pub fn pause_if_interrupted(&mut self) -> bool {
        let interrupted = self.session.interrupted_at.is_some_and(|at| at > self.timing.armed_at);
        let pause = self.state == LoopState::Running && interrupted;
        if pause {
            self.pause("you interrupted the agent");
        }
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nulls_and_wrong_types_are_defaults_and_unknown_fields_stay() {
        let old = json!({"run_id": "r", "iteration": "many", "started_at": null, "accumulated_runtime_seconds": 1.5,
            "usage": 7, "session": {"transcript": {"offset": null}}, "colour": {"of": "magic"}});
        let record: StoredLoop = serde_json::from_str(&old.to_string()).unwrap();
        assert_eq!((record.run_id.as_str(), record.iteration, record.runtime_ms()), ("r", 0, 1500));
        assert_eq!(record.state, LoopState::Stopped, "a loop that does not say it runs does not run");
        let again = serde_json::to_value(&record).unwrap();
        assert_eq!(again["colour"], json!({"of": "magic"}));
        assert_eq!(serde_json::from_str::<StoredLoop>(&again.to_string()).unwrap(), record);
    }
}
