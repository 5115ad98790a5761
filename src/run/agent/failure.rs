//! Why an agent could not work, by its client's own words.
//!
//! Clients state it as events, as a status, or only as a text. A text counts if it is the client's message from its
//! first word on, in a wording that clients have used; `wordings.tsv` has them with their origin. Prose about limits
//! has other words.

use crate::core::signal::{self, Reset};
use crate::core::text::clean;
use crate::core::time::Stamp;
use serde_json::Value;
use std::fmt;

/// Why an agent could not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentFailure {
    UsageLimit {
        resets: Option<Reset>,
    },
    /// Too many requests in a short time.
    RateLimited,
    Overloaded,
    /// The service failed with this status, or cannot be reached at all.
    ServerError(Option<u16>),
    Authentication,
    Billing,
    /// In the agent program's own words.
    Other(String),
}

/// How the wordings of a kind begin, in lower case. A message without a client's sign of an error must end there, or
/// continue with punctuation, unless the wording ends in `…`.
const WORDINGS: [(AgentFailure, &str); 5] = [
    (
        AgentFailure::Billing,
        "credit balance is too low|your credit balance is too low…|quota exceeded. check your plan and billing…|\
         you exceeded your current quota, please check your plan and billing…|insufficient quota|you have no quota",
    ),
    (
        AgentFailure::Authentication,
        "not logged in|invalid api key|failed to authenticate|please run /login|failed to refresh token|\
         your access token could not be refreshed…|incorrect api key provided|please set an auth method in your…|\
         your organization has disabled claude subscription access…",
    ),
    (AgentFailure::Overloaded, "overloaded|repeated 529 overloaded errors"),
    (
        AgentFailure::RateLimited,
        "rate limited|too many requests|this request would exceed your…|resource has been exhausted|\
         resource exhausted. please try again later|server is temporarily limiting requests|\
         rate limit reached for…|no capacity available for model…",
    ),
    (
        AgentFailure::ServerError(None),
        "connection error|unable to connect to api|stream disconnected before completion|internal server error",
    ),
];
/// What stands before the status in a message that does not begin with it.
const STATUS_MARKS: [&str; 3] =
    ["request rejected (", "exceeded retry limit, last status: ", "unexpected status "];
/// More than the longest message with its JSON.
const MAX_LINES: usize = 24;
const MAX_CHARS: usize = 4000;

impl AgentFailure {
    /// Returns whether it goes away by itself within minutes.
    pub fn is_transient(&self) -> bool {
        matches!(self, AgentFailure::RateLimited | AgentFailure::Overloaded | AgentFailure::ServerError(_))
    }

    /// Returns what a status of the service means for the agent. The others are errors of the request.
    pub fn of_status(status: u16) -> Option<AgentFailure> {
        Some(match status {
            401 | 403 => AgentFailure::Authentication,
            402 => AgentFailure::Billing,
            429 => AgentFailure::RateLimited,
            529 => AgentFailure::Overloaded,
            408 | 500..=599 => AgentFailure::ServerError(Some(status)),
            _ => return None,
        })
    }

    /// Recognises a text that is the client's message and nothing else.
    pub fn of_message(text: &str) -> Option<AgentFailure> {
        let (mark, text) = unmarked(text);
        let lower = text.to_lowercase();
        // "400 You have reached …"
        let is_number = |c: char| mark != Mark::None && (c.is_ascii_digit() || c == ' ');
        let words = text.trim_start_matches(is_number);
        let is_json = mark == Mark::Client || words.starts_with(['{', '[']);
        let error = is_json.then(|| Json::within(text)).flatten();
        let words = words.trim_end_matches(']');
        let message = error.as_ref().map_or(words, |error| error.message.as_str());
        let kind = error.as_ref().map_or("", |error| error.kind.as_str());
        let resets = error.as_ref().and_then(|error| error.resets_at);
        if let Some(told) = signal::usage_limit(message) {
            return Some(AgentFailure::UsageLimit { resets: told.resets.or(resets.map(Reset::At)) });
        }
        match kind {
            "usage_limit_reached" => return Some(AgentFailure::UsageLimit { resets: resets.map(Reset::At) }),
            "insufficient_quota" => return Some(AgentFailure::Billing),
            "overloaded_error" => return Some(AgentFailure::Overloaded),
            _ => {}
        }
        let is_clear = mark == Mark::Client || error.is_some();
        let message = message.to_lowercase();
        let known = WORDINGS.into_iter().find(|(_, wordings)| {
            wordings
                .split('|')
                .any(|wording| begins(&message, wording, is_clear) || begins(&lower, wording, is_clear))
        });
        let known = known.map(|(failure, _)| failure);
        let status = status(text, is_clear || known.is_some(), is_json);
        // One of Google's words for a throttle is another's for an empty account.
        if status == Some(429) && lower.contains("resource_exhausted") {
            return Some(AgentFailure::RateLimited);
        }
        match known {
            None | Some(AgentFailure::ServerError(None)) => {
                status.and_then(AgentFailure::of_status).or(known)
            }
            known => known,
        }
    }

    /// Recognises the client's message at the end of what a failed call printed.
    pub fn of_output(text: &str) -> Option<AgentFailure> {
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let lines = &lines[lines.len().saturating_sub(MAX_LINES)..];
        (0..lines.len()).rev().find_map(|start| {
            let (first, behind) = (lines[start], &lines[start + 1..]);
            let is_json = behind.iter().all(|line| line.trim_start().starts_with(['{', '}', '[', ']', '"']));
            let is_marked = unmarked(first).0 != Mark::None;
            let is_near = behind.len() < 3 || (is_marked && is_json);
            let whole = lines[start..].join("\n");
            let alone = behind.is_empty() || is_marked;
            is_near.then_some(())?;
            // A limit's advice is in the lines after it; what else is said there, no other message has.
            match AgentFailure::of_message(&whole) {
                Some(limit @ AgentFailure::UsageLimit { .. }) => Some(limit),
                found => {
                    found.filter(|_| alone).or_else(|| alone.then(|| AgentFailure::of_message(first))?)
                }
            }
        })
    }
}

/// Returns the last line that tells an error, else the last line, safe to show.
pub fn last_error_line(text: &str) -> Option<String> {
    let text = clean::output(text);
    let lines = || text.lines().rev().map(|line| clean::excerpt(line, 300)).filter(|line| !line.is_empty());
    let is_error = |line: &String| unmarked(line).0 != Mark::None || signal::error_signature(line).is_some();
    lines().take(MAX_LINES).find(is_error).or_else(|| lines().next())
}

/// What in front of a message says that it is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    None,
    /// Any program's label.
    Error,
    /// A label or sign of a client.
    Client,
}

/// Removes the signs of an error in front of a message, and returns the clearest of them.
fn unmarked(text: &str) -> (Mark, &str) {
    const SIGNS: &str = "■⚠❌✕✘✖";
    const LABELS: [(&str, Mark); 10] = [
        ("[api error:", Mark::Client),
        ("api error:", Mark::Client),
        ("api error", Mark::Client),
        ("error code:", Mark::Client),
        ("stream error:", Mark::Client),
        ("codex error:", Mark::Client),
        ("error:", Mark::Error),
        ("fatal error:", Mark::Error),
        ("fatal:", Mark::Error),
        ("execution failed:", Mark::Error),
    ];
    let cut = text.char_indices().nth(MAX_CHARS).map_or(text.len(), |(at, _)| at);
    let (mut text, mut mark) = (&text[..cut], Mark::None);
    loop {
        let bare = text.trim_start_matches(|c: char| c.is_whitespace() || "⎿└●•▸*\u{fe0f}".contains(c));
        let unsigned = bare.trim_start_matches(|c: char| SIGNS.contains(c));
        // "[2026-11-17T10:00:00] ERROR: …"
        let undated =
            unsigned.strip_prefix('[').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let undated = undated.and_then(|rest| rest.split_once(']')).map_or(unsigned, |(_, rest)| rest);
        let label = LABELS.into_iter().find(|(label, _)| {
            undated.get(..label.len()).is_some_and(|start| start.eq_ignore_ascii_case(label))
        });
        let rest = label.map_or(undated, |(label, _)| &undated[label.len()..]);
        let sign = if unsigned.len() < bare.len() { Mark::Client } else { Mark::None };
        mark = label.map_or(mark, |(_, label)| mark.max(label)).max(sign);
        if rest.len() == text.len() {
            return (mark, text.trim_end());
        }
        text = rest;
    }
}

/// Returns whether a message begins with a wording.
fn begins(message: &str, wording: &str, is_clear: bool) -> bool {
    let whole = wording.trim_end_matches('…');
    let Some(rest) = message.strip_prefix(whole) else { return false };
    // "unable to connect to api.example.org" has no punctuation.
    let is_word = rest.starts_with(['.', '-']) && rest[1..].starts_with(char::is_alphanumeric);
    let rest = rest.trim_start();
    let is_end = rest.is_empty() || rest.starts_with(['.', ',', ':', '·', '(', '-']);
    is_clear || whole.len() < wording.len() || (is_end && !is_word)
}

/// Returns the status that a message states. A number is one at the beginning of a clear message, before the status's
/// own words: "API Error: 500 tests failed" has none.
fn status(text: &str, is_clear: bool, is_json: bool) -> Option<u16> {
    let number = |text: &str| {
        let (digits, rest) = text.split_at_checked(3)?;
        let status = digits.parse().ok().filter(|status| (400..600).contains(status))?;
        let is_told = rest.is_empty() || rest.starts_with([')', ',', '}']) || {
            let next = rest.strip_prefix(' ').and_then(|rest| rest.chars().next());
            next.is_some_and(|next| next.is_uppercase() || matches!(next, '{' | '-'))
        };
        is_told.then_some(status)
    };
    let lower = text.to_ascii_lowercase();
    let after_mark =
        || STATUS_MARKS.iter().find_map(|mark| lower.starts_with(mark).then(|| &text[mark.len()..]));
    let in_json = || {
        let at = lower.find("\"code\":").filter(|_| is_json)? + 7;
        Some(text[at..].trim_start())
    };
    let leading = is_clear.then(|| number(text.trim_start_matches('('))).flatten();
    leading.or_else(|| number(after_mark()?)).or_else(|| number(in_json()?))
}

/// The error object of an API, as clients print it.
struct Json {
    kind: String,
    message: String,
    resets_at: Option<Stamp>,
}

impl Json {
    fn within(text: &str) -> Option<Json> {
        let text = &text[text.find(['{', '['])?..];
        let value: Value = serde_json::Deserializer::from_str(text).into_iter().next()?.ok()?;
        let value = value.get(0).unwrap_or(&value);
        let error = value.get("error").unwrap_or(value);
        let text = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Json {
            kind: text("type").unwrap_or_default(),
            message: text("message")?,
            resets_at: error
                .get("resets_at")
                .and_then(Value::as_i64)
                .map(|at| Stamp(at.saturating_mul(1000))),
        })
    }
}

impl fmt::Display for AgentFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgentFailure::UsageLimit { .. } => write!(f, "usage limit reached"),
            AgentFailure::RateLimited => write!(f, "the API limits requests (429)"),
            AgentFailure::Overloaded => write!(f, "the API is overloaded (529)"),
            AgentFailure::ServerError(Some(status)) => write!(f, "the API failed ({status})"),
            AgentFailure::ServerError(None) => write!(f, "the API cannot be reached"),
            AgentFailure::Authentication => {
                write!(f, "not logged in: start the agent program once and log in")
            }
            AgentFailure::Billing => write!(f, "billing failed: check your plan or credit"),
            AgentFailure::Other(text) => write!(f, "{}", clean::excerpt(text, 200)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kind, origin and text of each message that a client has printed.
    fn wordings() -> impl Iterator<Item = (&'static str, &'static str, String)> {
        let lines = include_str!("wordings.tsv").lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| {
            let mut columns = line.splitn(3, '\t');
            let mut column = || columns.next().unwrap_or_else(|| panic!("three columns: {line}"));
            (column(), column(), column().replace('⏎', "\n"))
        })
    }

    fn kind(failure: Option<&AgentFailure>) -> String {
        match failure {
            None => "other".into(),
            Some(AgentFailure::UsageLimit { resets: Some(reset) }) => format!("limit {}", told(reset)),
            Some(AgentFailure::UsageLimit { resets: None }) => "limit".into(),
            Some(AgentFailure::RateLimited) => "throttle".into(),
            Some(AgentFailure::Overloaded) => "overloaded".into(),
            Some(AgentFailure::ServerError(_)) => "server".into(),
            Some(AgentFailure::Authentication) => "login".into(),
            Some(AgentFailure::Billing) => "billing".into(),
            Some(AgentFailure::Other(text)) => panic!("{text}"),
        }
    }

    fn told(reset: &Reset) -> String {
        match reset {
            Reset::At(at) => at.rfc3339(),
            Reset::In { minutes } => format!("in {minutes}m"),
            Reset::Clock { time, date, zone } => {
                let date = date.map_or_else(String::new, |(month, day)| format!("{month:02}-{day:02} "));
                let zone = zone.as_ref().map_or_else(String::new, |zone| format!(" {zone}"));
                format!("{date}{}{zone}", time.format("%H:%M"))
            }
        }
    }

    #[test]
    fn every_wording_of_a_client_is_recognised() {
        let mut wrong = Vec::new();
        for (expected, origin, text) in wordings() {
            let printed = format!("I looked at the tests.\nThey need a fix.\n\n{text}\n");
            for found in [AgentFailure::of_message(&text), AgentFailure::of_output(&printed)] {
                let found = kind(found.as_ref());
                wrong
                    .extend((found != expected).then(|| format!("{found} for {expected}, {origin}: {text}")));
            }
        }
        assert!(wrong.is_empty() && wordings().count() > 50, "{wrong:#?}");
    }

    #[test]
    fn prose_about_limits_stays_prose() {
        for text in [
            "",
            "I implemented the rate limiter.",
            "Rate limited requests are tried again now.",
            "Too many requests are answered with 429, as the issue asks.",
            "Overloaded operators are resolved first.",
            "The client prints: You've hit your usage limit. Try again later.",
            "A 429 means that the usage limit was reached.",
            "Not logged in users see the start page.",
            "Invalid API key handling is tested.",
            "Connection errors are retried 529 times.",
            "Usage limit reached is what the banner says.",
            "Status 401 is returned, and 529 when the server is busy.",
            "1. Too many requests\n2. Not logged in users\n3. All of it is done now.",
            "> API Error: 429 Too many requests\n\nThis is fixed now.\nAll tests pass.\nThe work is done.",
            "error: test failed, to rerun pass `--lib`",
            "Error: expected 429 to equal 200",
            "thread 'main' panicked at src/main.rs:401:5",
            "FAILED tests/test_limits.py::test_429 - assert 429 == 200",
            "error: 500 tests failed",
            "API Error: 500 tests failed",
            "Error: Overloaded function foo is ambiguous",
            "error: connection error while cloning",
            "fatal: unable to connect to api.example.org",
            "Error: 403 Forbidden from GET /admin",
            "Error: 429 Retries were expected",
            "Error: GET /limits answered {\"error\": {\"code\": 429, \"message\": \"Too many requests\"}}",
            "The client said: exceeded retry limit, last status: 429 Too Many Requests",
            "The body is {\"error\": {\"code\": 429}}",
            "When busy it answers {\"error\": {\"type\": \"overloaded_error\", \"message\": \"Overloaded\"}}",
        ] {
            assert_eq!(AgentFailure::of_output(text), None, "{text}");
        }
    }

    #[test]
    fn a_status_is_told_rather_than_the_words_beside_it() {
        for text in ["API Error: 500 Internal server error", "Error: 500 Internal Server Error"] {
            assert_eq!(AgentFailure::of_output(text), Some(AgentFailure::ServerError(Some(500))), "{text}");
        }
        assert_eq!(
            AgentFailure::of_output("Error: Connection error."),
            Some(AgentFailure::ServerError(None))
        );
        assert_eq!(AgentFailure::of_output("Error: 429 Too Many Requests"), Some(AgentFailure::RateLimited));
    }

    #[test]
    fn an_error_far_above_the_end_is_not_why_the_call_failed() {
        let text = format!("API Error: 429 Too many requests\n{}", "and then it worked\n".repeat(5));
        assert_eq!(AgentFailure::of_output(&text), None);
        let json = "API Error: 500\n{\n\"type\": \"error\"\n}\n";
        assert_eq!(AgentFailure::of_output(json), Some(AgentFailure::ServerError(Some(500))), "its own JSON");
    }

    #[test]
    fn the_last_error_line_is_shown() {
        for (text, line) in [
            ("", None),
            (" \n\n", None),
            ("loading\nerror: unknown option '--frob'\n", Some("error: unknown option '--frob'")),
            ("Error: no such model\n    at main.js:3\n\nNode.js v22.1.0\n", Some("Error: no such model")),
            ("one\nlast words", Some("last words")),
            ("\u{1b}[1m\u{1b}[31merror\u{1b}[0m: no\ndone\n", Some("error: no")),
            ("error: \u{1b}[31mred\u{7}\n", Some("error: red")),
        ] {
            assert_eq!(last_error_line(text).as_deref(), line, "{text}");
        }
    }
}
