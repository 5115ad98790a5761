//! One page about a run: what came of it, what needs the user, what proves it, and what to look at first.
//!
//! [`ReportInput`] are gathered by the command, [`Report`] is what the page says, and the writers only write it down: [`html`]
//! for a browser, [`markdown`] for a pull request. What is not known is said to be unknown.

pub mod all;
mod escape;
pub mod html;
mod iterations;
pub mod markdown;
mod needs;
mod next;
mod review;
mod strip;
mod summary;
mod weakened;
pub mod words;

pub use iterations::{IterationRow, Total};
pub use review::{FileChurn, OfIteration, ReviewSection};
pub use summary::{CheckRow, Figure, Tone};
pub use weakened::Weakened;
pub use words::{TextSpan, Words};

use crate::core::event;
use crate::core::event::agent_log::AgentLogEntry;
use crate::core::event::timeline::Timeline;
use crate::core::record::Engine;
use crate::core::tasks::TaskList;
use crate::core::text::clean;
use crate::core::time::Stamp;
use crate::store::project::commits::Commits;
use std::collections::BTreeMap;

/// Everything that a report is made from.
#[derive(Clone, Debug)]
pub struct ReportInput {
    pub now: Stamp,
    pub run_id: String,
    pub timeline: Timeline,
    /// False for a run of an older version: only its ending is known.
    pub has_events: bool,
    /// The commits of the run, or why they are unknown.
    pub commits: Result<Commits, String>,
    /// The task list, if it is still that of this run.
    pub tasks: Option<TaskList>,
    pub question: QuestionState,
    /// The end of what the agent said and did, by iteration.
    pub agent_logs: BTreeMap<u64, Vec<AgentLogEntry>>,
    /// `ralph run` or `/ralph:start --resume` would continue this run.
    pub is_newest: bool,
    /// The run is at work, as far as this machine knows.
    pub is_alive: bool,
}

/// The question with which a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum QuestionState {
    #[default]
    None,
    /// It has no answer yet.
    Open,
    Answered(String),
    /// It was filed away, or another run asked since.
    Gone,
}

/// What a page says, from the top.
#[derive(Clone, Debug)]
pub struct Report {
    pub run_id: String,
    pub project: String,
    pub task: String,
    pub engine: &'static str,
    pub tone: Tone,
    /// The outcome in a word.
    pub outcome: &'static str,
    /// Outcome, reason, and what proves it.
    pub sentence: Words,
    pub figures: Vec<Figure>,
    pub needs: Vec<Need>,
    pub evidence: Vec<CheckRow>,
    /// The claims of completion that were rejected: the iteration, and why.
    pub rejected: Vec<(u64, String)>,
    pub review: ReviewSection,
    pub total: Total,
    pub iterations: Vec<IterationRow>,
    pub steps: Vec<NextStep>,
    /// What limits this report itself.
    pub notes: Vec<String>,
    pub made_at: Stamp,
    pub has_events: bool,
    timeline: Timeline,
}

/// Something only the user can do, and the command for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    pub what: Words,
    pub command: Option<String>,
}

/// What can be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextStep {
    pub what: &'static str,
    pub command: String,
}

impl Report {
    pub fn of(facts: ReportInput) -> Report {
        let review = review::of(&facts);
        let started = facts.timeline.started.clone().unwrap_or_default();
        let (outcome, tone) = summary::outcome(&facts);
        Report {
            outcome,
            tone,
            engine: match started.engine {
                Engine::InSession => "in a session",
                Engine::Runner => "ralph run",
            },
            project: clean::excerpt(&started.project, 200),
            task: event::text(started.task.trim()),
            sentence: summary::sentence(&facts),
            figures: summary::figures(&facts, &review),
            needs: needs::of(&facts, &review),
            evidence: summary::evidence(&facts),
            rejected: needs::rejected(&facts),
            total: iterations::total(&facts),
            iterations: iterations::rows(&facts, &review),
            steps: next::of(&facts),
            notes: summary::notes(&facts),
            review,
            made_at: facts.now,
            has_events: facts.has_events,
            run_id: facts.run_id,
            timeline: facts.timeline,
        }
    }
}

#[cfg(test)]
mod tests;
