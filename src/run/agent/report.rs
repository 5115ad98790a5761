//! What one iteration's output came to, added up event by event.

use super::{AgentEvent, AgentFailure};
use crate::core::decide::figures::{self, Window};
use crate::core::record::Usage;

/// If more tools run at a time, the oldest are forgotten.
const MAX_TOOLS_IN_FLIGHT: usize = 256;

#[derive(Clone, Debug, Default)]
pub struct AgentReport {
    /// The conversation, if there is one to continue.
    pub session: Option<String>,
    /// The conversation to continue no longer exists.
    pub session_lost: bool,
    /// Calls of the agent and its sub-agents.
    pub tools_used: u64,
    /// Calls that edited a file and did not fail.
    pub edits: u64,
    /// Tokens of all turns, and the last figure of the conversation's cost.
    pub usage: Usage,
    /// How much of the user's plan is used, as it was last told.
    pub windows: Vec<Window>,
    /// The tokens in the context of the last answer, and how many it holds.
    context: (Option<u64>, Option<u64>),
    /// The tools whose calls were denied.
    pub denied: Vec<String>,
    pub failure: Option<AgentFailure>,
    /// The agent program's own words for the failure.
    words: String,
    /// A turn is over.
    has_result: bool,
    last_text: Option<String>,
    /// Calls whose end was not seen yet, in the order of their start, and whether they edit.
    in_flight: Vec<(String, bool)>,
    background: usize,
}

impl AgentReport {
    pub fn add(&mut self, event: AgentEvent<'_>) {
        match event {
            AgentEvent::Session(id) => {
                self.session_lost = id.is_none();
                self.session = id;
            }
            AgentEvent::Text(text) => self.last_text = Some(text),
            AgentEvent::ToolStarted { id, edits, .. } => self.tool_started(id, edits),
            AgentEvent::ToolEnded { id, failed } => self.tool_ended(&id, failed),
            AgentEvent::Background(tasks) => self.background = tasks,
            AgentEvent::Usage(turn) => {
                let cost = turn.cost_usd.or(self.usage.cost_usd);
                self.usage.add(&turn);
                self.usage.cost_usd = cost;
            }
            AgentEvent::Quota(windows) => self.windows = windows,
            AgentEvent::Context { tokens, window } => {
                self.context = (tokens.or(self.context.0), window.or(self.context.1));
            }
            AgentEvent::Denied(tools) => {
                let new = tools.into_iter().filter(|tool| !self.denied.contains(tool));
                self.denied.extend(new.collect::<Vec<_>>());
            }
            AgentEvent::Result(message) => {
                self.has_result = true;
                // When a turn is over none of its tools runs; what continues is in the background.
                self.in_flight.clear();
                self.last_text = message.filter(|text| !text.trim().is_empty()).or(self.last_text.take());
            }
            AgentEvent::Failed(failure, words) => (self.failure, self.words) = (Some(failure), words),
            AgentEvent::Output(_) | AgentEvent::Retry { .. } => {}
        }
    }

    fn tool_started(&mut self, id: String, edits: bool) {
        if self.in_flight.iter().any(|(known, _)| *known == id) {
            return;
        }
        self.tools_used = self.tools_used.saturating_add(1);
        if self.in_flight.len() == MAX_TOOLS_IN_FLIGHT {
            self.in_flight.remove(0);
        }
        self.in_flight.push((id, edits));
    }

    fn tool_ended(&mut self, id: &str, failed: bool) {
        let Some(at) = self.in_flight.iter().position(|(known, _)| known == id) else { return };
        let (_, edits) = self.in_flight.remove(at);
        self.edits += u64::from(edits && !failed);
    }

    /// Returns the agent's last message.
    pub fn message(&self) -> Option<&str> {
        self.last_text.as_deref()
    }

    /// Returns how full the context was at the last answer; `None` if the agent did not tell.
    pub fn context_percent(&self) -> Option<f64> {
        let (tokens, window) = self.context;
        figures::usable_percent(Some(tokens? as f64 * 100.0 / window? as f64))
    }

    /// Returns why the agent failed, and its own words for it.
    pub fn error(&self) -> Option<String> {
        match self.failure.as_ref()? {
            AgentFailure::Other(_) if !self.words.is_empty() => Some(self.words.clone()),
            failure => Some(self.with_words(failure.to_string())),
        }
    }

    /// Adds the agent program's own words to a reason.
    pub fn with_words(&self, reason: String) -> String {
        if self.words.is_empty() { reason } else { format!("{reason} · {}", self.words) }
    }

    /// Returns how many tools and background tasks run, which may take their time in silence.
    pub fn running(&self) -> usize {
        self.in_flight.len() + self.background
    }

    /// Returns whether the agent has given its result and nothing of it runs any more.
    pub fn is_over(&self) -> bool {
        self.has_result && self.running() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn start(id: u64) -> AgentEvent<'static> {
        let (name, summary) = (String::new(), String::new());
        AgentEvent::ToolStarted { id: id.to_string(), name, summary, edits: true }
    }

    #[test]
    fn the_oldest_of_too_many_tools_are_forgotten() {
        let mut report = AgentReport::default();
        (0..1000).for_each(|id| report.add(start(id)));
        assert_eq!((report.in_flight.len(), report.tools_used), (MAX_TOOLS_IN_FLIGHT, 1000));
        assert_eq!(report.in_flight.last().map(|(id, _)| id.as_str()), Some("999"));
    }

    #[test]
    fn a_tool_without_an_end_does_not_outlive_its_turn() {
        let mut report = AgentReport::default();
        report.add(start(1));
        assert!(report.running() == 1 && !report.is_over());
        report.add(AgentEvent::Result(None));
        assert!(report.running() == 0 && report.is_over());
    }

    #[test]
    fn how_full_the_context_is_needs_both_figures() {
        let mut report = AgentReport::default();
        report.add(AgentEvent::Context { tokens: Some(50_000), window: None });
        assert_eq!(report.context_percent(), None);
        report.add(AgentEvent::Context { tokens: None, window: Some(200_000) });
        report.add(AgentEvent::Context { tokens: Some(150_000), window: None });
        assert_eq!(report.context_percent(), Some(75.0));
    }

    #[test]
    fn an_empty_result_does_not_hide_the_last_message() {
        let mut report = AgentReport::default();
        report.add(AgentEvent::Text("All done here.".into()));
        report.add(AgentEvent::Result(Some(" ".into())));
        assert_eq!(report.message(), Some("All done here."));
        report.add(AgentEvent::Result(Some("done".into())));
        report.add(AgentEvent::Result(None));
        assert_eq!(report.message(), Some("done"));
    }

    proptest! {
        #[test]
        fn each_call_is_counted_once(calls in proptest::collection::vec((0u64..10, any::<bool>(), any::<bool>()), 0..60)) {
            let (mut report, mut running, mut edits, mut used) = (AgentReport::default(), Vec::new(), 0, 0);
            for (id, starts, failed) in calls {
                let known = running.iter().position(|running| *running == id);
                match (starts, known) {
                    (true, None) => {
                        running.push(id);
                        used += 1;
                    }
                    (false, Some(at)) => {
                        running.remove(at);
                        edits += u64::from(!failed);
                    }
                    _ => {}
                }
                report.add(if starts { start(id) } else { AgentEvent::ToolEnded { id: id.to_string(), failed } });
                let ids: Vec<u64> = report.in_flight.iter().map(|(id, _)| id.parse().unwrap()).collect();
                prop_assert_eq!(&ids, &running);
                prop_assert_eq!((report.tools_used, report.edits), (used, edits));
            }
        }
    }
}
