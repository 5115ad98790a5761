//! What a run of the client came to, added up event by event.

use super::{Event, Limit, Outcome};
use crate::core::clean;
use crate::core::record::Usage;
use crate::core::signal::{self, Reset};
use crate::core::time::Stamp;

/// Tools whose success is an edit of a file.
const EDITING_TOOLS: [&str; 4] = ["Edit", "Write", "MultiEdit", "NotebookEdit"];
/// More at a time is no agent's work: the oldest are forgotten.
const MOST_IN_FLIGHT: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    pub id: String,
    pub name: String,
    pub summary: String,
}

#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub session_id: Option<String>,
    pub model: String,
    pub plugin_errors: Vec<String>,
    /// The last text of the agent's own.
    pub last_text: Option<String>,
    /// The last of possibly several.
    pub result: Option<Outcome>,
    /// By the agent and its sub-agents.
    pub tools_used: u64,
    /// Calls that edited a file and did not fail.
    pub edits: u64,
    /// Tools whose result was not seen yet, in the order of their start.
    pub in_flight: Vec<Tool>,
    /// Tasks in the background.
    pub background: usize,
    /// Tokens of all turns, and the last figure of the session's cost.
    pub usage: Usage,
    /// The plan's limit was last said to be reached.
    pub rejected: bool,
    /// When that ends, where it was said.
    pub resets_at: Option<Stamp>,
    pub retries: u64,
    /// Lines that were too long to be read.
    pub dropped: u64,
    /// The client's own word for the error that stands, and its status.
    error: Option<(String, Option<u16>)>,
}

/// Why the agent could not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The plan's limit is reached, until then.
    UsageLimit {
        resets: Option<Reset>,
    },
    /// Too many requests in too short a time.
    RateLimited,
    /// The service has no room.
    Overloaded,
    /// The service failed with this status, or could not be reached at all.
    ServerError(Option<u16>),
    Authentication,
    Billing,
    /// In the client's words, fit to be shown.
    Other(String),
}

impl Failure {
    /// Whether it passes by itself, within minutes.
    pub fn is_transient(&self) -> bool {
        matches!(self, Failure::RateLimited | Failure::Overloaded | Failure::ServerError(_))
    }
}

impl Tally {
    pub fn add(&mut self, event: Event) {
        match event {
            Event::Init { session_id, model, plugin_errors, .. } => {
                self.session_id = Some(session_id).filter(|id| !id.is_empty()).or(self.session_id.take());
                self.model = model;
                self.plugin_errors = plugin_errors;
            }
            Event::Text(text) => {
                self.error = None;
                self.last_text = Some(text);
            }
            Event::ToolStarted { id, name, summary } => self.started(Tool { id, name, summary }),
            Event::ToolEnded { id, failed } => self.ended(&id, failed),
            Event::Background { running } => self.background = running,
            Event::Retry { .. } => self.retries = self.retries.saturating_add(1),
            Event::RateLimit { status: Limit::Rejected, resets_at } => {
                self.rejected = true;
                // A later word without a time does not take back an earlier one with it.
                self.resets_at = resets_at.or(self.resets_at);
            }
            Event::RateLimit { .. } => (self.rejected, self.resets_at) = (false, None),
            Event::ApiError { kind, status } => self.error = Some((kind, status)),
            Event::Result(outcome) => self.concluded(*outcome),
            Event::Dropped => self.dropped = self.dropped.saturating_add(1),
            Event::Other => {}
        }
    }

    fn started(&mut self, tool: Tool) {
        if self.in_flight.iter().any(|known| known.id == tool.id) {
            return;
        }
        self.tools_used = self.tools_used.saturating_add(1);
        if self.in_flight.len() == MOST_IN_FLIGHT {
            self.in_flight.remove(0);
        }
        self.in_flight.push(tool);
    }

    fn ended(&mut self, id: &str, failed: bool) {
        let Some(at) = self.in_flight.iter().position(|tool| tool.id == id) else { return };
        let tool = self.in_flight.remove(at);
        self.edits += u64::from(!failed && EDITING_TOOLS.contains(&tool.name.as_str()));
    }

    fn concluded(&mut self, outcome: Outcome) {
        if outcome.session_id.is_some() {
            self.session_id.clone_from(&outcome.session_id);
        }
        if !outcome.is_error {
            self.error = None;
        }
        // Where a turn is over no tool of it runs; what goes on is in the background.
        self.in_flight.clear();
        self.usage.add(&outcome.usage);
        self.usage.cost_usd = outcome.cost_usd.or(self.usage.cost_usd);
        self.result = Some(outcome);
    }

    /// How much runs that may take its time in silence.
    pub fn running(&self) -> usize {
        self.in_flight.len() + self.background
    }

    /// What the agent said last. An error's text is the client's, and no word of the agent.
    pub fn message(&self) -> Option<&str> {
        let result =
            self.result.as_ref().filter(|result| !result.is_error).map(|result| result.text.as_str());
        result.filter(|text| !text.trim().is_empty()).or(self.last_text.as_deref())
    }

    /// Why it failed, by the last result; where there is none, by what was seen before the end. Nothing where
    /// it did not fail, and where the client ended without a word: then its exit code is all there is.
    pub fn failure(&self) -> Option<Failure> {
        if self.result.as_ref().is_some_and(|result| !result.is_error) {
            return None;
        }
        let result = self.result.as_ref();
        let text = result.map_or("", |result| result.text.as_str());
        let word = result.and_then(|result| result.api_error.as_deref()).unwrap_or_default();
        let (kind, seen) = self.error.as_ref().map_or(("", None), |(kind, status)| (kind.as_str(), *status));
        let status = result.and_then(|result| result.api_error_status).or(seen);
        if let Some(limit) = self.usage_limit(status, word, text) {
            return Some(limit);
        }
        let by_kind = match kind {
            "billing_error" => Some(Failure::Billing),
            "authentication_failed" | "oauth_org_not_allowed" => Some(Failure::Authentication),
            "overloaded" => Some(Failure::Overloaded),
            _ => None,
        };
        let by_status = || match status? {
            401 | 403 => Some(Failure::Authentication),
            402 => Some(Failure::Billing),
            429 => Some(Failure::RateLimited),
            529 => Some(Failure::Overloaded),
            status @ (408 | 500..=599) => Some(Failure::ServerError(Some(status))),
            _ => None,
        };
        let without_status = || match (kind, word) {
            ("rate_limit", _) => Some(Failure::RateLimited),
            ("server_error", _) | (_, "connection_failed") => Some(Failure::ServerError(None)),
            _ => None,
        };
        let known = by_kind.or_else(by_status).or_else(without_status).or_else(|| by_text(text));
        known.or_else(|| Some(Failure::Other(in_words(result?, kind))))
    }

    /// A refusal in the events comes first. The text is asked only where it is the client's own.
    fn usage_limit(&self, status: Option<u16>, word: &str, text: &str) -> Option<Failure> {
        let said = signal::usage_limit(text);
        let is_meant = status.is_none_or(|status| status == 429);
        let is_structured = word == "usage_limit_reached" || (self.rejected && is_meant);
        if !is_structured && said.is_none() {
            return None;
        }
        let resets = self.resets_at.map(Reset::At).or_else(|| said.and_then(|said| said.resets));
        Some(Failure::UsageLimit { resets })
    }
}

/// Messages of clients that have no word for it.
fn by_text(text: &str) -> Option<Failure> {
    let begins = |beginnings: &[&str]| beginnings.iter().any(|beginning| text.starts_with(beginning));
    if begins(&["Credit balance is too low"]) {
        return Some(Failure::Billing);
    }
    begins(&["Not logged in", "Invalid API key", "Failed to authenticate"]).then_some(Failure::Authentication)
}

fn in_words(result: &Outcome, kind: &str) -> String {
    let words = [result.text.as_str(), kind, result.subtype.as_str()].map(|text| clean::excerpt(text, 300));
    words.into_iter().find(|text| !text.is_empty()).unwrap_or_else(|| "unknown error".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::{Line, Lines};
    use super::*;
    use proptest::prelude::*;

    /// What the real client printed (2.1.325 against a scripted API, cut down to what matters).
    macro_rules! sample {
        ($name:literal) => {
            include_str!(concat!("samples/", $name, ".jsonl"))
        };
    }

    fn tally(text: &str) -> Tally {
        let (mut lines, mut tally) = (Lines::default(), Tally::default());
        let mut add = |line: Line<'_>| line.events().into_iter().for_each(|event| tally.add(event));
        lines.feed(text.as_bytes(), &mut add);
        lines.finish(&mut add);
        tally
    }

    fn reset(seconds: i64) -> Option<Reset> {
        Some(Reset::At(Stamp(seconds * 1000)))
    }

    #[test]
    fn failures_of_the_real_client() {
        let model = "There's an issue with the selected model (claude-opus-5-5). It may not exist or you may not have \
                     access to it. Run --model to pick a different model.";
        let stopped = "[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=tool_use";
        let cases = [
            ("text", sample!("text"), None),
            ("tools", sample!("tools"), None),
            ("denied", sample!("denied"), None),
            ("near the limit", sample!("limit-warning"), None),
            (
                "usage limit",
                sample!("usage-limit"),
                Some(Failure::UsageLimit { resets: reset(1_794_834_014) }),
            ),
            ("429", sample!("error-429"), Some(Failure::RateLimited)),
            ("500", sample!("error-500"), Some(Failure::ServerError(Some(500)))),
            ("529", sample!("error-529"), Some(Failure::Overloaded)),
            ("connection refused", sample!("error-connection"), Some(Failure::ServerError(None))),
            ("401", sample!("error-401"), Some(Failure::Authentication)),
            ("403", sample!("error-403"), Some(Failure::Authentication)),
            ("not logged in", sample!("error-login"), Some(Failure::Authentication)),
            ("no credit", sample!("error-billing"), Some(Failure::Billing)),
            ("402", sample!("error-402"), Some(Failure::Billing)),
            ("404", sample!("error-404"), Some(Failure::Other(model.to_owned()))),
            (
                "turns",
                sample!("max-turns"),
                Some(Failure::Other("Reached maximum number of turns (1)".into())),
            ),
            ("SIGINT", sample!("interrupted"), Some(Failure::Other(stopped.into()))),
            ("SIGTERM", sample!("terminated"), None),
            ("nothing at all", "", None),
        ];
        for (name, text, expected) in cases {
            assert_eq!(tally(text).failure(), expected, "{name}");
        }
        let passing = ["error-429", "error-500", "error-529", "error-connection"];
        let texts =
            [sample!("error-429"), sample!("error-500"), sample!("error-529"), sample!("error-connection")];
        for (name, text) in passing.iter().zip(texts) {
            let tally = tally(text);
            assert!(tally.failure().is_some_and(|failure| failure.is_transient()), "{name}");
            assert_eq!(
                (tally.retries, tally.message()),
                (1, None),
                "{name}: the error is no word of the agent"
            );
        }
        assert!(!Failure::UsageLimit { resets: None }.is_transient());
    }

    #[test]
    fn failures_told_otherwise() {
        let error = r#"{"type":"result","is_error":true,"result":"TEXT"}"#;
        let rejected =
            r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794834014}}"#;
        let allowed = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}"#;
        let clock = Reset::Clock { hour: 15, minute: 0, zone: Some("UTC".into()), day: None };
        let limit = "You've hit your session limit · resets 3pm (UTC)";
        let said = |text: &str| error.replace("TEXT", text);
        let cases = [
            ("by its text", said(limit), Some(Failure::UsageLimit { resets: Some(clock) })),
            ("the agent's prose", said(limit).replace("true", "false"), None),
            ("events before text", format!("{rejected}\n{}", said(limit)), Some(Failure::UsageLimit { resets: reset(1_794_834_014) })),
            ("events alone", format!("{rejected}\n{}", said("?")), Some(Failure::UsageLimit { resets: reset(1_794_834_014) })),
            ("rejected and then killed", rejected.to_owned(), Some(Failure::UsageLimit { resets: reset(1_794_834_014) })),
            ("rejected, then allowed", format!("{rejected}\n{allowed}\n{}", said("?")), Some(Failure::Other("?".into()))),
            ("rejected, but that was not it", format!("{rejected}\n{}", r#"{"type":"result","is_error":true,"api_error_status":503}"#),
                Some(Failure::ServerError(Some(503)))),
            ("rejected, and yet it went well", format!("{rejected}\n{}", r#"{"type":"result","is_error":false}"#), None),
            ("the client's word", r#"{"type":"result","is_error":true,"api_error":"usage_limit_reached"}"#.to_owned(), Some(Failure::UsageLimit { resets: None })),
            ("an older client without credit", said("Credit balance is too low"), Some(Failure::Billing)),
            ("an older client without a key", said("Invalid API key · Please run /login"), Some(Failure::Authentication)),
            ("an error, then a good turn", format!("{}\n{}", said("x"), r#"{"type":"result","is_error":false,"result":"ok"}"#), None),
            ("no words at all", r#"{"type":"result","is_error":true}"#.to_owned(), Some(Failure::Other("unknown error".into()))),
            ("hostile words", said("a\\u001b[2Jb"), Some(Failure::Other("a[2Jb".into()))),
            ("killed while it gave up", r#"{"type":"assistant","error":"server_error","is_api_error_message":true,"api_error_status":500}"#.to_owned(),
                Some(Failure::ServerError(Some(500)))),
        ];
        for (name, text, expected) in cases {
            assert_eq!(tally(&text).failure(), expected, "{name}");
        }
    }

    #[test]
    fn a_turn_with_tools() {
        let tally = tally(sample!("tools"));
        assert_eq!(tally.session_id.as_deref(), Some("s-tools"));
        assert_eq!(
            (tally.tools_used, tally.edits, tally.running()),
            (6, 1, 0),
            "the edit that failed is none"
        );
        assert_eq!(tally.message(), Some("finished"));
        assert_eq!((tally.usage.tokens(), tally.usage.cost_usd), (60, Some(0.0005600000000000001)));
    }

    #[test]
    fn what_runs_is_known_in_order() {
        let half: Vec<&str> = sample!("tools").lines().take(4).collect();
        let tally = tally(&half.join("\n"));
        let running: Vec<&str> = tally.in_flight.iter().map(|tool| tool.summary.as_str()).collect();
        assert_eq!(running, ["echo 1 >> f; ls", "/proj/a.txt"]);
        assert_eq!((tally.message(), tally.edits, tally.running()), (Some("working"), 0, 2));
    }

    #[test]
    fn background_work_goes_on_after_a_result() {
        let all: Vec<&str> = sample!("background").lines().collect();
        let first = 1 + all.iter().position(|line| line.contains(r#""type":"result""#)).unwrap();
        let waiting = tally(&all[..first].join("\n"));
        assert_eq!((waiting.message(), waiting.running()), (Some("waiting for it"), 1));
        let done = tally(sample!("background"));
        assert_eq!((done.message(), done.running()), (Some("bg seen"), 0));
        assert_eq!(done.usage.cost_usd, Some(0.00042), "the client's figure includes the turn before");
        assert_eq!(done.usage.tokens(), 45, "its tokens do not");
    }

    #[test]
    fn a_tool_without_a_result_does_not_outlive_its_turn() {
        let half: Vec<&str> = sample!("tools").lines().take(4).collect();
        let text = format!("{}\n{}", half.join("\n"), r#"{"type":"result","is_error":false}"#);
        assert_eq!(tally(&text).running(), 0);
    }

    #[test]
    fn a_sub_agent_works_but_does_not_speak() {
        let all: Vec<&str> = sample!("sub-agent").lines().collect();
        let spoken = 1 + all.iter().position(|line| line.contains("sub speaking")).unwrap();
        assert_eq!(tally(&all[..spoken].join("\n")).message(), None);
        let tally = tally(sample!("sub-agent"));
        assert_eq!((tally.message(), tally.tools_used, tally.running()), (Some("main done"), 2, 0));
    }

    #[test]
    fn partial_messages_say_nothing_twice() {
        let tally = tally(sample!("partial"));
        assert_eq!((tally.last_text.as_deref(), tally.tools_used), (Some("working"), 1));
    }

    #[test]
    fn what_was_too_long_is_counted() {
        let mut tally = Tally::default();
        Line::Dropped.events().into_iter().for_each(|event| tally.add(event));
        assert_eq!((tally.dropped, tally.failure()), (1, None));
    }

    #[test]
    fn an_empty_result_does_not_hide_the_last_words() {
        let text = format!("{}{}", sample!("text"), r#"{"type":"result","is_error":false,"result":""}"#);
        assert_eq!(tally(&text).message(), Some("All done here."));
    }

    fn start(id: u64) -> Event {
        Event::ToolStarted { id: id.to_string(), name: "Edit".into(), summary: String::new() }
    }

    #[test]
    fn the_oldest_of_too_many_are_forgotten() {
        let mut tally = Tally::default();
        (0..1000).for_each(|id| tally.add(start(id)));
        assert_eq!((tally.in_flight.len(), tally.tools_used), (MOST_IN_FLIGHT, 1000));
        assert_eq!(tally.in_flight.last().map(|tool| tool.id.as_str()), Some("999"));
    }

    proptest! {
        #[test]
        fn each_call_is_counted_once(calls in proptest::collection::vec((0u64..10, any::<bool>(), any::<bool>()), 0..60)) {
            let (mut tally, mut running, mut edits, mut used) = (Tally::default(), Vec::new(), 0, 0);
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
                tally.add(if starts { start(id) } else { Event::ToolEnded { id: id.to_string(), failed } });
                let ids: Vec<u64> = tally.in_flight.iter().map(|tool| tool.id.parse().unwrap()).collect();
                prop_assert_eq!(&ids, &running);
                prop_assert_eq!((tally.tools_used, tally.edits), (used, edits));
            }
        }
    }
}
