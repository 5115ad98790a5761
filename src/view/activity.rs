//! What a loop is doing, and why: one name for it in `ralph status`, the status line and every other view.

use crate::core::outcome::Outcome;
use crate::core::record::{BackgroundWait, ClientStatus, Engine, LoopState, StoredLoop, WaitingFor};
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use serde_json::{Value, json};

/// Client and waker continue a little after a reset, so the loop does not wait for the user yet.
const AFTER_RESET_MS: i64 = 360_000;

#[derive(Clone, Debug, PartialEq)]
pub enum Activity<'a> {
    Working,
    /// A hook or the runner noted what the loop waits for.
    Waiting(&'a WaitingFor),
    /// The client asks the user, for example by a permission prompt.
    Asking(&'a str),
    /// Nothing runs until the user sends a prompt; the last turn may have ended with an API error.
    Idle(Option<&'a str>),
    Paused(&'a str),
    /// A runner whose pause begins when its iteration ends.
    Pausing,
    ClientClosed,
    /// What took the session or the runner away.
    Orphaned(&'static str),
    Ended(Option<Outcome>),
}

impl<'a> Activity<'a> {
    /// Names what the loop is doing, from its record and from what the client or the runner's process shows.
    pub fn of(run: &'a StoredLoop, client: &'a ClientStatus, now: Stamp) -> Activity<'a> {
        let session = &run.session;
        match run.state {
            LoopState::Stopped => return Activity::Ended(run.outcome),
            LoopState::Paused if run.engine == Engine::Runner && *client == ClientStatus::Gone => {
                return Activity::Orphaned("its runner has exited");
            }
            LoopState::Paused if run.engine == Engine::Runner && !run.told.ending => {
                return Activity::Pausing;
            }
            LoopState::Paused => return Activity::Paused(run.reason.as_deref().unwrap_or_default()),
            LoopState::Running => {}
        }
        if session.orphaned_at.is_some() {
            return Activity::Orphaned("its session was cleared");
        }
        match (client, run.engine) {
            (ClientStatus::Gone, Engine::Runner) => return Activity::Orphaned("its runner has exited"),
            (ClientStatus::Gone, Engine::InSession) => return Activity::ClientClosed,
            (ClientStatus::Unknown, _) if session.closed_at.is_some() => return Activity::ClientClosed,
            _ => {}
        }
        let in_time = |what: &&WaitingFor| match what {
            WaitingFor::UsageLimit(until) => until.plus_ms(AFTER_RESET_MS) > now,
            what => what.until().is_none_or(|until| until > now),
        };
        let noted = session.waiting.as_ref().map(|waiting| &waiting.what);
        // The hook that waits for a dialog may have been killed: the client knows whether it is open.
        let (dialog, noted) =
            if noted.is_some_and(WaitingFor::is_dialog) { (noted, None) } else { (None, noted) };
        match (client, dialog.filter(in_time)) {
            (ClientStatus::Asking(_) | ClientStatus::Unknown, Some(dialog)) => {
                return Activity::Waiting(dialog);
            }
            (ClientStatus::Asking(what), None) => return Activity::Asking(what),
            _ => {}
        }
        match (noted, run.engine) {
            (Some(what), Engine::Runner) => return Activity::Waiting(what),
            (Some(what @ WaitingFor::User(_)), _) => return Activity::Waiting(what),
            // A client that works again has woken up.
            (Some(what), _) if *client != ClientStatus::Busy && in_time(&what) => {
                return Activity::Waiting(what);
            }
            _ => {}
        }
        let error = session.last_error.as_deref().filter(|_| run.engine == Engine::InSession);
        match client {
            ClientStatus::Idle => Activity::Idle(error),
            ClientStatus::Unknown | ClientStatus::Open if error.is_some() => Activity::Idle(error),
            _ => Activity::Working,
        }
    }

    /// Returns the word for scripts.
    pub fn name(&self) -> &'static str {
        match self {
            Activity::Working | Activity::Pausing => "working",
            Activity::Waiting(_) | Activity::Asking(_) | Activity::Idle(_) => "waiting",
            Activity::Paused(_) => "paused",
            Activity::ClientClosed => "client-closed",
            Activity::Orphaned(_) => "orphaned",
            Activity::Ended(_) => "ended",
        }
    }

    /// Returns `waiting: usage limit until …`: the word first, so that no narrow line cuts it.
    pub fn line(&self, now: Stamp) -> String {
        let until = |what: &str, until: &Stamp| {
            format!("{what} until {}, {} left", until.minute(), time::span(*until - now))
        };
        let awaited = |what: &str, awaited: &BackgroundWait| {
            let left = awaited.until.map(|until| format!(", {} left", time::span(until - now)));
            format!("{what}: {}{}", clean::excerpt(&awaited.what, 30), left.unwrap_or_default())
        };
        let why = match self {
            Activity::Working => return "working".into(),
            Activity::Pausing => "pauses before the next iteration".into(),
            Activity::ClientClosed => return "client closed".into(),
            Activity::Waiting(what) => match what {
                WaitingFor::User(queued) if queued.text.is_empty() => "what you typed".into(),
                WaitingFor::User(queued) => format!("your \"{}\"", clean::excerpt(&queued.text, 40)),
                WaitingFor::Compaction => "compaction of the context".into(),
                WaitingFor::Background(work) => awaited("background work", work),
                WaitingFor::Permission(call) => awaited("permission", call),
                WaitingFor::Question(question) => awaited("your answer", question),
                WaitingFor::UsageLimit(at) if *at <= now => "usage limit has reset, continues shortly".into(),
                WaitingFor::UsageLimit(at) => until("usage limit", at),
                WaitingFor::Calls(at) => until("calls per hour", at),
                WaitingFor::Service(at) => until("API", at),
                WaitingFor::Answer(at) => until("your answer", at),
            },
            Activity::Asking(what) => clean::excerpt(what, 40),
            Activity::Idle(None) => "your prompt".into(),
            Activity::Idle(Some(error)) => {
                format!("your prompt, after an API error: {}", clean::excerpt(error, 40))
            }
            Activity::Paused(reason) => clean::excerpt(reason, 60),
            Activity::Orphaned(why) => (*why).into(),
            Activity::Ended(outcome) => outcome.map_or_else(String::new, |outcome| outcome.to_string()),
        };
        if why.is_empty() { self.name().into() } else { format!("{}: {why}", self.name()) }
    }

    /// Returns what it waits for, for scripts.
    pub fn waiting(&self) -> Value {
        match self {
            Activity::Waiting(what) => {
                let mut waiting = json!({"for": what.name(), "until": what.until()});
                if let Some(words) = what.what() {
                    waiting["what"] = words.into();
                }
                waiting
            }
            Activity::Asking(what) if what.contains("permission") => {
                json!({"for": "permission", "until": null})
            }
            Activity::Asking(_) => json!({"for": "answer", "until": null}),
            Activity::Idle(_) => json!({"for": "prompt", "until": null}),
            _ => Value::Null,
        }
    }
}
