//! The facts about one turn that ended, gathered before anything is decided.

use crate::core::circuit::progress::TreeState;
use crate::core::decide::figures::Figures;
use crate::core::record::{Spent, TranscriptPosition, Usage};
use crate::core::text::clean;
use crate::core::time::Stamp;
use crate::core::time::runtime::{HookKind, TimedEvent};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug)]
pub struct Turn {
    /// The agent's last message, where the client or the transcript gives it.
    pub message: Option<String>,
    /// `.claude/STOP_LOOP` is there.
    pub kill_switch: bool,
    /// When `ralph stop --all` was last given.
    pub stopped_all_at: Option<Stamp>,
    /// Work that runs in the background.
    pub background: Vec<Task>,
    pub hook: HookKind,
    /// Tells the hook that runs beside this one that the turn is recorded.
    pub end_id: Option<u64>,
    /// How long the machine has slept since it was started, where that is known.
    pub slept_ms: Option<i64>,
    /// `None` where there is no usable transcript.
    pub gained: Option<TranscriptGain>,
    /// What the client told of cost, context and quota, if it did.
    pub figures: Option<Figures>,
    /// The client compacts the context when it is asked to.
    pub can_compact: bool,
    /// What all loops of this user had spent today before this turn; nothing if that is not limited.
    pub today: Option<Spent>,
    /// The git worktree in which the agent works, by its path; empty if it works in the project itself. HEAD, tasks,
    /// files and checks are those of this checkout.
    pub work_tree: String,
    /// The commit that HEAD names; nothing outside git, or where it cannot be read.
    pub head: Option<String>,
    /// `ralph/tasks.json`, where it is there.
    pub tasks: Option<Tasks>,
    /// The project's files at the end of the turn; `None` if no scan was made or finished.
    pub tree: Option<TreeState>,
    /// The checkout after the check commands ran.
    pub after_checks: Option<AfterChecks>,
    pub checks: Checks,
    /// Why the agent's process failed, whatever its message says.
    pub failure: Option<String>,
    /// The results of the check commands that ran for this claim.
    pub check_results: Vec<CheckResult>,
}

/// What the check commands may have changed after the turn: that is not the agent's progress. They run only when no
/// task is open, so they can complete none.
#[derive(Clone, Debug, Default)]
pub struct AfterChecks {
    pub head: Option<String>,
    pub tree: TreeState,
}

/// A task that the client runs in the background.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    pub id: String,
    /// Its description or its command.
    pub name: String,
    /// It is an agent, whose work ends; a command may run forever.
    pub is_agent: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Tasks {
    pub total: u64,
    pub passing: u64,
    /// The first few that do not pass, by id.
    pub open: Vec<String>,
    /// Why the file cannot be used, with its name.
    pub unusable: Option<String>,
    /// What the iteration changed in the file against the rules, a sentence each.
    pub violations: Vec<String>,
}

/// What the check commands (`--verify`) say about a claim of completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checks {
    /// This many commands have not been run for this claim.
    NotRun(usize),
    /// All of this many commands passed.
    Passed(usize),
    Failed(CheckFailure),
    /// The commands were changed while they ran, so their result proves nothing.
    Outdated,
}

/// The last result of one check command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckResult {
    pub command: String,
    pub passed: bool,
    /// Absent if the command was killed or could not be started.
    pub exit_code: Option<i32>,
    pub seconds: f64,
    pub at: Stamp,
}

impl CheckResult {
    /// Returns `passed: cargo test` or `failed (exit code 1): cargo test`. The result comes first, so that a long command
    /// does not push it off the line.
    pub fn line(&self) -> String {
        let command = clean::line(&self.command);
        match (self.passed, self.exit_code) {
            (true, _) => format!("passed: {command}"),
            (false, Some(code)) => format!("failed (exit code {code}): {command}"),
            (false, None) => format!("failed: {command}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFailure {
    pub command: String,
    /// `exit code 101`, `killed after 10m`.
    pub how: String,
    /// The last lines of what it printed.
    pub tail: String,
}

impl Turn {
    /// Returns whether the transcript shows the whole turn and no tool in it that could write.
    pub fn wrote_nothing(&self) -> bool {
        let whole = |gained: &&TranscriptGain| self.message.is_some() && gained.last_text == self.message;
        self.gained.as_ref().filter(whole).is_some_and(|gained| gained.tools_that_write == 0)
    }
}

impl Default for Turn {
    fn default() -> Self {
        Turn {
            message: None,
            kill_switch: false,
            stopped_all_at: None,
            background: Vec::new(),
            hook: HookKind::Running,
            end_id: None,
            slept_ms: None,
            gained: None,
            figures: None,
            can_compact: false,
            today: None,
            work_tree: String::new(),
            head: None,
            tasks: None,
            tree: None,
            after_checks: None,
            checks: Checks::NotRun(0),
            failure: None,
            check_results: Vec::new(),
        }
    }
}

/// What the transcript gained since it was last read.
#[derive(Clone, Debug, Default)]
pub struct TranscriptGain {
    pub evidence: Vec<TimedEvent>,
    /// When the model last answered: an error that the client wrote in its place is no answer.
    pub answered_at: Option<Stamp>,
    /// Tools called. The transcript lags, so a turn's last calls may show only at the next one, but never so
    /// late that turns with tools would count as idle.
    pub tools_used: u64,
    /// Of those, the ones that may have written something.
    pub tools_that_write: u64,
    /// Files edited by tools.
    pub edits: u64,
    /// When the user last pressed Esc.
    pub interrupted_at: Option<Stamp>,
    /// When the usage limit resets that the newest answer is about.
    pub limit_resets_at: Option<Stamp>,
    /// The last text the agent wrote.
    pub last_text: Option<String>,
    /// Tokens and cost to add.
    pub usage: Usage,
    /// Where to continue reading.
    pub reading: TranscriptPosition,
    /// What was searched for the user's entries only, because the turn is too long to be read as a whole.
    pub uncounted_bytes: u64,
    /// What was not read at all.
    pub unread_bytes: u64,
}

impl TranscriptGain {
    /// Says what was passed over of the turn.
    pub fn skipped_note(&self) -> Option<String> {
        let mb = |bytes: u64| bytes.div_ceil(1 << 20);
        match (self.unread_bytes, self.uncounted_bytes) {
            (0, 0) => None,
            (0, bytes) => Some(format!(
                "{} MB of this turn's transcript were only searched for prompts and Esc: their tokens are not counted",
                mb(bytes)
            )),
            (bytes, _) => Some(format!(
                "{} MB of this turn's transcript were not read: tokens, Esc and queued commands in them are missing",
                mb(bytes)
            )),
        }
    }
}
