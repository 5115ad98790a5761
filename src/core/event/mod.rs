//! What happened to a run, one event at a time: the vocabulary of `events.jsonl` and of `ralph run --json`.
//!
//! Both engines write these events. What people look at afterwards is folded from them, see [`timeline`].

pub mod agent_log;
pub mod changes;
pub mod notice;
pub mod timeline;
pub mod turn;

use super::circuit::condition::PerCondition;
use super::decide::figures::Window;
use super::decide::turn::CheckResult;
use super::outcome::{IterationOutcome, Outcome};
use super::record::{ArmedLoop, Engine, Usage, WaitingFor, is_default, lenient_text};
use super::settings::Settings;
use super::text::clean;
use super::time::Stamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of the events that this program writes. A reader takes what it knows of a newer one.
pub const VERSION: u32 = 1;

/// Texts of an agent or a user are kept this long.
pub const MAX_TEXT_CHARS: usize = 2000;
/// At most so many entries of a list are kept.
const MAX_LISTED: usize = 20;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    pub v: u32,
    pub timestamp: Stamp,
    #[serde(flatten)]
    pub what: EventKind,
}

impl Event {
    pub fn new(timestamp: Stamp, what: EventKind) -> Event {
        Event { v: VERSION, timestamp, what }
    }

    /// Writes an event as one object, as [`Event`] is serialized. A hook does this at every turn, so nothing is copied.
    pub fn write(timestamp: Stamp, what: &EventKind, out: &mut Vec<u8>) -> serde_json::Result<()> {
        let head = format!("{{\"v\":{VERSION},\"timestamp\":\"{}\",", timestamp.rfc3339());
        out.extend_from_slice(head.as_bytes());
        // The facts are an object too, and continue this one.
        let brace = out.len();
        serde_json::to_writer(&mut *out, what)?;
        out.remove(brace);
        Ok(())
    }

    /// Parses a line. An event that this version does not know is `Unknown`; what is no event at all is `None`.
    pub fn parse(line: &[u8]) -> Option<Event> {
        #[derive(Deserialize)]
        struct Head {
            #[serde(default, deserialize_with = "lenient_text")]
            v: u32,
            timestamp: Stamp,
            event: String,
        }
        let Head { v, timestamp, event } = serde_json::from_slice(line).ok()?;
        Some(Event { v, timestamp, what: EventKind::parse(&event, line)? })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// Started, continued or resumed.
    Started(RunStarted),
    IterationStarted(IterationStarted),
    IterationEnded(Box<IterationEnded>),
    Check(Check),
    Guidance(GuidanceChange),
    Findings(Findings),
    Breaker(BreakerStep),
    Waiting(WaitEvent),
    /// A call of a tool was allowed or denied, or the user answered its prompt.
    Permission(Permission),
    Paused(Paused),
    /// The limits differ from those before.
    Limits(Limits),
    /// The client or its service failed in a session, or what `ralph run` warns of.
    Warning(Warning),
    /// The user answered a question.
    Answered(Answered),
    Ended(RunEnded),
    /// An event of a newer version.
    Unknown,
}

impl EventKind {
    fn parse(name: &str, line: &[u8]) -> Option<EventKind> {
        fn facts<T: DeserializeOwned>(line: &[u8], what: fn(T) -> EventKind) -> Option<EventKind> {
            serde_json::from_slice(line).ok().map(what)
        }
        match name {
            "started" => facts(line, EventKind::Started),
            "iteration_started" => facts(line, EventKind::IterationStarted),
            "iteration_ended" => facts(line, EventKind::IterationEnded),
            "check" => facts(line, EventKind::Check),
            "guidance" => facts(line, EventKind::Guidance),
            "findings" => facts(line, EventKind::Findings),
            "breaker" => facts(line, EventKind::Breaker),
            "waiting" => facts(line, EventKind::Waiting),
            "permission" => facts(line, EventKind::Permission),
            "paused" => facts(line, EventKind::Paused),
            "limits" => facts(line, EventKind::Limits),
            "warning" => facts(line, EventKind::Warning),
            "answered" => facts(line, EventKind::Answered),
            "ended" => facts(line, EventKind::Ended),
            _ => Some(EventKind::Unknown),
        }
    }
}

/// Declares what the events say. Fields are read leniently. Those in `if_any` are not written while they have their
/// default; the others are promised to scripts.
macro_rules! facts {
    ($(
        $(#[$doc:meta])*
        pub struct $name:ident {
            $($(#[$field_doc:meta])* pub $field:ident: $type:ty,)*
            $(if_any { $($(#[$some_doc:meta])* pub $some:ident: $some_type:ty,)* })?
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $name {
            $(
                $(#[$field_doc])*
                #[serde(deserialize_with = "lenient_text")]
                pub $field: $type,
            )*
            $($(
                $(#[$some_doc])*
                #[serde(deserialize_with = "lenient_text", skip_serializing_if = "is_default")]
                pub $some: $some_type,
            )*)?
        }
    )*};
}

facts! {
    pub struct RunStarted {
        pub run_id: String,
        pub engine: Engine,
        pub session_id: String,
        /// The project's folder.
        pub project: String,
        pub task: String,
        /// Whether the run continues after an ending or a pause.
        pub continued: bool,
        /// The iteration it begins with.
        pub iteration: u64,
        pub limits: Limits,
        pub checks: Vec<String>,
        /// The agent program of a runner, by name.
        pub agent: Option<String>,
        /// The task list of a runner.
        pub tasks: Option<String>,
        if_any {
            /// The commit it begins at.
            pub head: Option<String>,
        }
    }

    pub struct Limits {
        /// 0 means none.
        pub max_iterations: u64,
        pub max_runtime_seconds: f64,
        pub max_cost_usd: Option<f64>,
        if_any {
            pub max_tokens: u64,
        }
    }

    pub struct IterationStarted {
        pub iteration: u64,
        pub mode: String,
    }

    pub struct IterationEnded {
        pub iteration: u64,
        pub mode: String,
        pub outcome: Option<IterationOutcome>,
        /// How long the agent worked, as far as a runner measured it.
        pub duration_seconds: Option<f64>,
        /// Agents started for it.
        pub attempts: u64,
        pub other_seconds: u64,
        /// The beginning of the commit's id, if HEAD moved.
        pub commit: Option<String>,
        pub stuck_count: u64,
        pub counters: PerCondition,
        pub stories_complete: u64,
        pub stories_total: u64,
        /// What this iteration cost.
        pub cost_usd: Option<f64>,
        pub tokens: u64,
        /// How its checks went, in a line.
        pub check: String,
        /// How the agent ended, in words, and why it failed.
        pub how: Option<String>,
        pub error: Option<String>,
        pub log: Option<String>,
        pub denied_tools: Vec<String>,
        /// What the user is told about it beside the figures.
        pub remarks: Vec<String>,
        if_any {
            /// The runtime of the whole run so far.
            pub runtime_seconds: f64,
            /// The commit that HEAD names at its end.
            pub head: Option<String>,
            pub tools: Option<u64>,
            /// Files edited by tools.
            pub edits: Option<u64>,
            /// The agent's last message.
            pub message: Option<String>,
            /// Why the claim of completion was rejected.
            pub rejected: Option<String>,
            /// The transcript that shows it, and the checkout in which the agent works.
            pub transcript: Option<String>,
            pub work_tree: Option<String>,
            /// How much of the user's plan is used, as the client last told it.
            pub quota: Vec<Window>,
        }
    }

    pub struct Check {
        pub iteration: u64,
        pub command: String,
        pub passed: bool,
        pub exit_code: Option<i32>,
        pub seconds: f64,
        /// The end of what a failed one printed.
        pub tail: String,
    }

    /// Guidance was given, removed, or read to the agent.
    pub struct GuidanceChange {
        pub change: GuidanceStep,
        /// `encouraged`, `forbidden` or `allowed`.
        pub list: String,
        pub texts: Vec<String>,
        /// The agent's iteration before it was read to it.
        pub iteration: u64,
    }

    /// What the scanner finds now, if that changed.
    pub struct Findings {
        pub count: u64,
        /// The ones that are new, a line each.
        pub new: Vec<String>,
        /// How many are gone.
        pub gone: u64,
    }

    pub struct BreakerStep {
        pub step: BreakerAction,
        pub iteration: u64,
        pub reason: String,
    }

    pub struct WaitEvent {
        /// `user`, `background`, `usage-limit`, `calls`, `service`, `permission`, `answer`.
        #[serde(rename = "for")]
        pub what: String,
        pub reason: String,
        pub error: Option<String>,
        pub until: Option<Stamp>,
        pub seconds: Option<u64>,
    }

    pub struct Permission {
        /// The call, such as `Bash(cargo test)`.
        pub call: String,
        pub decision: PermissionDecision,
        /// The rule that allowed it, or would allow it; empty if none can.
        pub rule: String,
        pub reason: String,
        /// How often the same was denied in this run.
        pub denials: u64,
    }

    /// The loop is paused now, or time before this event was a pause.
    pub struct Paused {
        pub reason: String,
        /// Time that was left out of runtime, if it is over.
        pub seconds: Option<f64>,
    }

    pub struct Warning {
        pub iteration: u64,
        pub message: String,
    }

    pub struct Answered {
        pub question: String,
        pub answer: String,
        /// Where the answer came from: `terminal`, `session`, or the host of a notification service.
        pub from: String,
    }

    pub struct RunEnded {
        pub outcome: Option<Outcome>,
        pub reason: String,
        pub exit_code: u8,
        pub iterations: u64,
        pub runtime_seconds: f64,
        pub wall_seconds: f64,
        /// What a runner measured: how long it ran, waits and pauses included; and how long its agent worked per iteration.
        pub duration_seconds: Option<u64>,
        pub average_seconds: Option<u64>,
        pub stuck_iterations: Option<u64>,
        pub usage: Usage,
        pub checks: Vec<CheckResult>,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuidanceStep {
    #[default]
    Given,
    Delivered,
    Removed,
}

/// What became of a permission prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionDecision {
    /// By a rule of the user's.
    Allowed,
    /// The user did not answer in time.
    Denied,
    /// The user answered, or closed the dialog.
    #[default]
    Answered,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerAction {
    #[default]
    Warned,
    Tripped,
    Reset,
}

/// Returns the beginning of a text that is too long.
fn cut(text: &str) -> Option<&str> {
    // No text has more characters than bytes.
    let is_short = text.len() <= MAX_TEXT_CHARS;
    let end = if is_short { None } else { text.char_indices().nth(MAX_TEXT_CHARS) };
    end.map(|(at, _)| &text[..at])
}

/// Returns a text as events keep it: without controls, and bounded.
pub fn text(text: &str) -> String {
    match cut(text) {
        Some(beginning) => clean::block(beginning) + "…",
        None => clean::block(text),
    }
}

/// Returns the end of a text as events keep it.
pub fn tail(text: &str) -> String {
    let skipped = text.chars().count().saturating_sub(MAX_TEXT_CHARS);
    clean::block(&text.chars().skip(skipped).collect::<String>())
}

/// Returns the first texts of a list as events keep them.
pub fn texts<'a>(list: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    list.into_iter().take(MAX_LISTED).map(text).collect()
}

impl Limits {
    pub fn of(settings: &Settings) -> Limits {
        Limits {
            max_iterations: settings.max_iterations,
            max_runtime_seconds: Stamp(settings.max_runtime_ms).seconds(),
            max_cost_usd: settings.max_cost_usd,
            max_tokens: settings.max_tokens,
        }
    }
}

impl RunStarted {
    /// Describes a run that starts, or continues if it has iterations.
    pub fn of(run: &ArmedLoop, session: &str, project: &str, settings: &Settings) -> RunStarted {
        RunStarted {
            run_id: run.run_id.clone(),
            engine: run.engine,
            session_id: session.to_owned(),
            project: project.to_owned(),
            task: text(&run.task),
            continued: run.iteration > 0,
            iteration: run.iteration + 1,
            limits: Limits::of(settings),
            checks: texts(settings.checks.iter().map(String::as_str)),
            ..RunStarted::default()
        }
    }
}

impl RunEnded {
    pub fn of(run: &ArmedLoop, now: Stamp) -> RunEnded {
        let measured = |seconds: u64| (run.engine == Engine::Runner).then_some(seconds);
        let tally = &run.tally;
        let outcome = run.outcome.unwrap_or(Outcome::Error);
        RunEnded {
            outcome: Some(outcome),
            reason: run.reason.as_deref().map(text).unwrap_or_default(),
            exit_code: outcome.exit().code(),
            iterations: run.iteration,
            runtime_seconds: Stamp(run.runtime_ms()).seconds(),
            wall_seconds: Stamp(run.wall_ms(now)).seconds(),
            duration_seconds: measured(tally.duration_seconds),
            average_seconds: run.average_seconds().and_then(measured),
            stuck_iterations: measured(tally.stuck_iterations),
            usage: run.usage.clone(),
            checks: run.checks.clone(),
        }
    }
}

impl WaitEvent {
    pub fn of(what: &WaitingFor) -> WaitEvent {
        let reason = what.what().map(text).unwrap_or_default();
        WaitEvent { what: what.name().to_owned(), reason, until: what.until(), ..WaitEvent::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parsed(line: &Value) -> Event {
        Event::parse(line.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn an_event_is_one_object_with_its_name_and_only_what_it_says() {
        let wait = WaitEvent { what: "calls".into(), seconds: Some(5), ..WaitEvent::default() };
        let event = Event::new(Stamp(0), EventKind::Waiting(wait));
        let line = json!({
            "v": 1, "timestamp": "1970-01-01T00:00:00.000Z", "event": "waiting", "for": "calls", "seconds": 5,
            "reason": "", "error": null, "until": null
        });
        assert_eq!(json!(event), line);
        assert_eq!(parsed(&line), event);
        let mut written = Vec::new();
        Event::write(event.timestamp, &event.what, &mut written).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), line);
    }

    #[test]
    fn unknown_events_fields_and_odd_values_cost_nothing_else() {
        let newer = json!({"v": 9, "timestamp": "1970-01-01T00:00:00Z", "event": "dreamt", "of": ["x"]});
        assert_eq!(parsed(&newer).what, EventKind::Unknown);
        let odd = json!({
            "timestamp": 3, "event": "iteration_ended", "iteration": 4, "tokens": "many", "outcome": "odd",
            "message": null, "mood": {}
        });
        let EventKind::IterationEnded(ended) = parsed(&odd).what else { panic!("it is an iteration") };
        assert_eq!(*ended, IterationEnded { iteration: 4, ..IterationEnded::default() });
    }

    #[test]
    fn texts_are_bounded_and_harmless() {
        let long = "é".repeat(MAX_TEXT_CHARS + 1);
        assert_eq!(text(&long).chars().count(), MAX_TEXT_CHARS + 1);
        assert!(text(&long).ends_with('…') && tail(&long).chars().count() == MAX_TEXT_CHARS);
        assert_eq!(text("a\u{1b}[31mb\u{202e}"), clean::block("a\u{1b}[31mb\u{202e}"));
        assert_eq!(texts(std::iter::repeat_n("x", 100)).len(), MAX_LISTED);
    }
}
