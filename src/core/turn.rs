//! The facts about one turn that ended, gathered before anything is decided.

use super::progress::Sight;
use super::record::{Reading, Usage};
use super::runtime::{Evidence, Mark};
use super::time::Stamp;

#[derive(Clone, Debug)]
pub struct Turn {
    /// The agent's last message, where the client or the transcript gives it.
    pub message: Option<String>,
    /// `.claude/STOP_LOOP` is there.
    pub kill_switch: bool,
    /// When `ralph stop --all` was last given.
    pub stopped_all_at: Option<Stamp>,
    /// Descriptions of work that goes on in the background.
    pub background: Vec<String>,
    pub mark: Mark,
    /// `None` where there is no usable transcript.
    pub gained: Option<Gained>,
    /// The commit that HEAD names; nothing outside git, or where it cannot be read.
    pub head: Option<String>,
    /// `ralph/tasks.json`, where it is there.
    pub tasks: Option<Tasks>,
    /// What a scan saw of the project's files; nothing where none was made.
    pub files: Option<Files>,
    pub proof: Proof,
}

#[derive(Clone, Debug)]
pub struct Files {
    /// One changed, came or went since the baseline; nothing where it is unknown.
    pub changed: Option<bool>,
    /// The look from which the next turn counts; nothing where the earlier one still stands.
    pub sight: Option<Sight>,
}

#[derive(Clone, Debug, Default)]
pub struct Tasks {
    pub total: u64,
    pub passing: u64,
    /// The first few that do not pass, by id.
    pub open: Vec<String>,
    /// Why the file cannot be used.
    pub unusable: Option<String>,
}

/// What the user's own commands say about a claim of completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Nothing was run yet; there are so many commands.
    Open(usize),
    /// All of so many were green.
    Green(usize),
    Red(Failed),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub command: String,
    /// `exit code 101`, `killed after 10m`.
    pub how: String,
    /// The last lines of what it printed.
    pub tail: String,
}

impl Turn {
    /// Whether the transcript shows the whole turn, to its last word, and nothing in it that could write.
    pub fn wrote_nothing(&self) -> bool {
        let whole = |gained: &&Gained| self.message.is_some() && gained.last_text == self.message;
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
            mark: Mark::Seen,
            gained: None,
            head: None,
            tasks: None,
            files: None,
            proof: Proof::Open(0),
        }
    }
}

/// What the transcript gained since it was last read.
#[derive(Clone, Debug, Default)]
pub struct Gained {
    pub evidence: Vec<Evidence>,
    /// Tools called. The transcript lags, so a turn's last calls may show only at the next one: never so
    /// late that working turns could pass for a row of idle ones.
    pub tools_used: u64,
    /// Of those, the ones that may have written something.
    pub tools_that_write: u64,
    /// Files edited by tools.
    pub edits: u64,
    /// When the user last pressed Esc.
    pub interrupted_at: Option<Stamp>,
    /// The last text the agent wrote.
    pub last_text: Option<String>,
    /// Tokens and cost to add.
    pub usage: Usage,
    /// Where to read on.
    pub reading: Reading,
}
