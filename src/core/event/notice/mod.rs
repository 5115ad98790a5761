//! What a person is told outside the session: by the terminal, by a command, or by a notification service.

pub mod address;
pub mod body;
pub mod reply;
pub mod terminal;

use crate::core::decide::handover::FILE;
use crate::core::decide::turn::CheckResult;
use crate::core::message;
use crate::core::outcome::Outcome;
use crate::core::record::StoredLoop;
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use serde::{Deserialize, Serialize};

/// What a service shows of a text; ntfy takes no message above 4096 bytes.
const MAX_TEXT_BYTES: usize = 2500;
const MAX_TITLE_COLUMNS: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotificationEvent {
    Ended,
    /// A loop ended with a question, or waits for its answer.
    Question,
    /// The client waits for a permission.
    Permission,
    NoProgress,
    /// The service fails, and the loop waits for it.
    Outage,
    /// The client asks the user what to do about a usage limit.
    UsageLimit,
    /// The context of a session is nearly full.
    FullContext,
    Test,
}

impl NotificationEvent {
    /// Returns the word for scripts.
    pub fn name(self) -> &'static str {
        match self {
            NotificationEvent::Ended => "ended",
            NotificationEvent::Question => "question",
            NotificationEvent::Permission => "permission",
            NotificationEvent::NoProgress => "no-progress",
            NotificationEvent::Outage => "outage",
            NotificationEvent::UsageLimit => "usage-limit",
            NotificationEvent::FullContext => "full-context",
            NotificationEvent::Test => "test",
        }
    }
}

/// How a question can be answered from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyTo {
    /// The topic that is watched for the answer.
    pub topic: String,
    /// What an answer begins with.
    pub token: String,
}

/// One notification. Its texts are cleaned and bounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub event: NotificationEvent,
    pub at: Stamp,
    pub title: String,
    pub message: String,
    pub outcome: Option<Outcome>,
    pub reason: String,
    /// The project's folder.
    pub project: String,
    pub run_id: String,
    pub session_id: String,
    pub iteration: u64,
    pub checks: Vec<String>,
    pub question: Option<String>,
    pub reply: Option<ReplyTo>,
}

impl Notice {
    /// Names the session that it is about.
    pub fn in_session(self, session: &str) -> Notice {
        Notice { session_id: session.to_owned(), ..self }
    }

    fn new(event: NotificationEvent, run: &StoredLoop, project: &str, what: &str, now: Stamp) -> Notice {
        let name = project.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(project);
        Notice {
            event,
            at: now,
            title: clean::excerpt(&format!("Ralph: {what} · {name}"), MAX_TITLE_COLUMNS),
            message: String::new(),
            outcome: None,
            reason: String::new(),
            project: project.to_owned(),
            run_id: run.run_id.clone(),
            session_id: String::new(),
            iteration: run.iteration,
            checks: Vec::new(),
            question: None,
            reply: None,
        }
    }

    /// Tells of an ending.
    pub fn ended(run: &StoredLoop, project: &str, now: Stamp) -> Notice {
        let what = run.outcome.map_or("ended", Outcome::words);
        let reason = bounded(run.reason.as_deref().unwrap_or_default());
        let checks: Vec<String> = run.checks.iter().map(CheckResult::line).collect();
        let task = clean::excerpt(&run.task, 120);
        let mut message = format!("{reason}\n{} · {task}", message::iterations(run.iteration));
        checks.iter().for_each(|check| message.push_str(&format!("\n{}", clean::excerpt(check, 120))));
        let notice = Notice::new(NotificationEvent::Ended, run, project, what, now);
        Notice { outcome: run.outcome, message: bounded(&message), reason, checks, ..notice }
    }

    /// Tells of the question with which a loop ended or for whose answer it waits.
    pub fn question(run: &StoredLoop, project: &str, reply: Option<ReplyTo>, now: Stamp) -> Notice {
        let what = if run.outcome == Some(Outcome::Blocked) { "blocked" } else { "question" };
        let Notice { title, .. } = Notice::new(NotificationEvent::Question, run, project, what, now);
        let question = bounded(run.reason.as_deref().unwrap_or_default());
        let how = match &reply {
            Some(reply) => format!("To answer, send this to the answer topic: {} YOUR ANSWER", reply.token),
            None => "To answer: ralph answer TEXT".into(),
        };
        let message = format!("{question}\n\n{how}");
        let question = Some(question);
        Notice {
            event: NotificationEvent::Question,
            title,
            message,
            question,
            reply,
            ..Notice::ended(run, project, now)
        }
    }

    /// Tells that the client waits for a permission; `words` are its own.
    pub fn permission(run: &StoredLoop, project: &str, words: &str, now: Stamp) -> Notice {
        let words = if words.trim().is_empty() { "Claude Code waits for your permission" } else { words };
        let notice = Notice::new(NotificationEvent::Permission, run, project, "permission needed", now);
        Notice { message: bounded(words), reason: bounded(words), ..notice }
    }

    pub fn no_progress(run: &StoredLoop, project: &str, without_ms: i64, now: Stamp) -> Notice {
        let reason = format!("no progress for {}", time::span(without_ms));
        let task = clean::excerpt(&run.task, 120);
        let message = format!("{reason}, {} done\n{task}", message::iterations(run.iteration));
        Notice {
            message,
            reason,
            ..Notice::new(NotificationEvent::NoProgress, run, project, "no progress", now)
        }
    }

    /// Tells that the service has failed for so long; `words` are its own.
    pub fn outage(run: &StoredLoop, project: &str, words: &str, lasted_ms: i64, now: Stamp) -> Notice {
        let reason = bounded(&format!("the API has failed for {}: {words}", time::span(lasted_ms)));
        let done = message::iterations(run.iteration);
        let message = format!(
            "{reason}
{done} done; the loop continues when the API works again"
        );
        Notice { message, reason, ..Notice::new(NotificationEvent::Outage, run, project, "API failing", now) }
    }

    /// Tells that the client asks what to do about a usage limit; `words` are about the reset.
    pub fn usage_limit(run: &StoredLoop, project: &str, words: &str, now: Stamp) -> Notice {
        let reason = bounded(&format!("usage {words}"));
        let message = format!(
            "{reason}\nClaude Code asks what to do. Choose \"Stop and wait\" in the session: the loop continues after \
             the reset"
        );
        Notice {
            message,
            reason,
            ..Notice::new(NotificationEvent::UsageLimit, run, project, "usage limit", now)
        }
    }

    /// Tells that the session's context is nearly full, and that the agent has written its handover.
    pub fn full_context(run: &StoredLoop, project: &str, now: Stamp) -> Notice {
        let reason = "the context is nearly full".to_owned();
        let message = format!("{reason}: type /compact in the session; the agent continues from {FILE}");
        Notice {
            message,
            reason,
            ..Notice::new(NotificationEvent::FullContext, run, project, "context full", now)
        }
    }

    pub fn test(project: &str, now: Stamp) -> Notice {
        let notice = Notice::new(NotificationEvent::Test, &StoredLoop::default(), project, "test", now);
        let message = "This is a test by `ralph notify --test`.".to_owned();
        Notice { reason: message.clone(), message, ..notice }
    }
}

/// Returns a text without controls, within what services show.
fn bounded(text: &str) -> String {
    let text = clean::block(text);
    let text = text.trim();
    if text.len() <= MAX_TEXT_BYTES {
        return text.to_owned();
    }
    let end = (0..=MAX_TEXT_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", text[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_harmless_and_bounded_in_every_notice() {
        let evil = format!("a\u{1b}]0;x\u{7}\r\nX-Header: y\u{202e}\u{9b}31m{}", "é".repeat(5000));
        let run = StoredLoop {
            outcome: Some(Outcome::Decide),
            reason: Some(evil.clone()),
            task: evil.clone(),
            ..StoredLoop::default()
        };
        let project = format!("/p/{evil}");
        for notice in [
            Notice::ended(&run, &project, Stamp(0)),
            Notice::question(&run, &project, None, Stamp(0)),
            Notice::permission(&run, &project, &evil, Stamp(0)),
            Notice::no_progress(&run, &project, 60_000, Stamp(0)),
            Notice::outage(&run, &project, &evil, 60_000, Stamp(0)),
            Notice::full_context(&run, &project, Stamp(0)),
        ] {
            let hostile = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!notice.title.contains('\n') && !notice.title.contains(hostile), "{}", notice.title);
            assert!(!notice.message.contains(hostile), "{}", notice.message);
            assert!(notice.message.len() < 4000, "{}", notice.message.len());
        }
    }
}
