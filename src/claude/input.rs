//! Hook input: tolerant of everything but broken JSON, then a typed event.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    pub session_id: Option<String>,
    pub transcript: Option<PathBuf>,
    pub cwd: Option<PathBuf>,
    pub prompt_id: Option<String>,
    pub event: Event,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Stop {
        message: Option<String>,
        /// This turn already continued a blocked one.
        continued: bool,
        /// What runs in the background, in a few words each.
        background: Vec<String>,
    },
    StopFailure {
        error: String,
    },
    SessionStart {
        source: String,
    },
    SessionEnd {
        reason: String,
    },
    /// A slash command, before it expands.
    Expansion {
        command: String,
        arguments: String,
    },
    /// An event this version does not act on.
    Other(String),
}

/// Every field may be absent, `null` or of a type nobody expects.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire<'a> {
    #[serde(borrow)]
    session_id: Raw<'a>,
    #[serde(borrow)]
    transcript_path: Raw<'a>,
    #[serde(borrow)]
    cwd: Raw<'a>,
    #[serde(borrow)]
    prompt_id: Raw<'a>,
    #[serde(borrow)]
    hook_event_name: Raw<'a>,
    #[serde(borrow)]
    stop_hook_active: Raw<'a>,
    #[serde(borrow)]
    last_assistant_message: Raw<'a>,
    #[serde(borrow)]
    background_tasks: Raw<'a>,
    #[serde(borrow)]
    source: Raw<'a>,
    #[serde(borrow)]
    reason: Raw<'a>,
    #[serde(borrow)]
    error: Raw<'a>,
    #[serde(borrow)]
    command_name: Raw<'a>,
    #[serde(borrow)]
    command_args: Raw<'a>,
}

type Raw<'a> = Option<&'a RawValue>;

/// Reads one hook call; `assumed` is the event where the input names none. Only input that is no JSON
/// object is an error.
pub fn parse(bytes: &[u8], assumed: &str) -> Result<Input, String> {
    let text = String::from_utf8_lossy(bytes);
    if text.trim().is_empty() {
        return Err("the hook's input was empty".into());
    }
    if !text.trim_start().starts_with('{') {
        return Err("the hook's input is no JSON object".into());
    }
    let wire: Wire = serde_json::from_str(&text)
        .map_err(|error| format!("the hook's input is no JSON object: {error}"))?;
    let event = match string(wire.hook_event_name).as_deref().unwrap_or(assumed) {
        "Stop" => Event::Stop {
            message: string(wire.last_assistant_message),
            continued: wire.stop_hook_active.is_some_and(|raw| raw.get() == "true"),
            background: background(wire.background_tasks),
        },
        "StopFailure" => Event::StopFailure { error: string(wire.error).unwrap_or_default() },
        "SessionStart" => Event::SessionStart { source: string(wire.source).unwrap_or_default() },
        "SessionEnd" => Event::SessionEnd { reason: string(wire.reason).unwrap_or_default() },
        "UserPromptExpansion" => Event::Expansion {
            command: string(wire.command_name).unwrap_or_default(),
            arguments: string(wire.command_args).unwrap_or_default(),
        },
        other => Event::Other(other.to_owned()),
    };
    Ok(Input {
        session_id: string(wire.session_id),
        transcript: path(wire.transcript_path),
        cwd: path(wire.cwd),
        prompt_id: string(wire.prompt_id),
        event,
    })
}

fn path(raw: Raw) -> Option<PathBuf> {
    string(raw).filter(|text| !text.is_empty()).map(PathBuf::from)
}

fn string(raw: Raw) -> Option<String> {
    let json = raw?.get();
    serde_json::from_str(json).ok().or_else(|| serde_json::from_str(&mend_surrogates(json)?).ok())
}

/// JavaScript may cut a string inside a character and writes the half as `\udXXX`, which is no text for
/// anybody else: each such half becomes the replacement character.
fn mend_surrogates(json: &str) -> Option<String> {
    json.starts_with('"').then_some(())?;
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut out, mut at) = (String::with_capacity(json.len()), 0);
    while let Some(c) = json[at..].chars().next() {
        let step = match (unit(at), c) {
            (Some(0xd800..=0xdbff), _) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                out.push('\u{fffd}');
                at += 6;
                continue;
            }
            (Some(_), _) => 6,
            (None, '\\') => 1 + json[at + 1..].chars().next().map_or(0, char::len_utf8),
            (None, c) => c.len_utf8(),
        };
        out.push_str(&json[at..at + step]);
        at += step;
    }
    Some(out)
}

/// Background tasks that still run, by description or command.
fn background(raw: Raw) -> Vec<String> {
    #[derive(Deserialize)]
    struct Task<'a> {
        #[serde(default, borrow)]
        status: Raw<'a>,
        #[serde(default, borrow)]
        description: Raw<'a>,
        #[serde(default, borrow)]
        command: Raw<'a>,
        #[serde(default, borrow, rename = "type")]
        kind: Raw<'a>,
    }
    let items: Vec<&RawValue> = raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let tasks = items.iter().filter_map(|item| serde_json::from_str::<Task>(item.get()).ok());
    tasks
        .filter(|task| string(task.status).is_none_or(|status| status == "running" || status == "pending"))
        .map(|task| {
            let words = [task.description, task.command, task.kind].into_iter().filter_map(string);
            words.map(Cow::from).find(|text| !text.is_empty()).unwrap_or("a task".into()).into_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stop(message: Option<&str>, continued: bool, background: &[&str]) -> Event {
        let background = background.iter().map(|&text| text.to_owned()).collect();
        Event::Stop { message: message.map(str::to_owned), continued, background }
    }

    #[test]
    fn payloads_as_the_client_sends_them() {
        let cases: &[(&str, &str, Option<&str>, Event)] = &[
            (
                "a whole stop",
                r#"{"session_id":"s","transcript_path":"/t.jsonl","cwd":"/p","prompt_id":"q","permission_mode":"auto",
                   "effort":{"level":"medium"},"hook_event_name":"Stop","stop_hook_active":true,
                   "last_assistant_message":"hi","background_tasks":[{"id":"b","type":"shell","status":"running",
                   "description":"w","command":"sleep 3"},{"id":"c","status":"completed","description":"old"}],"session_crons":[]}"#,
                Some("s"),
                stop(Some("hi"), true, &["w"]),
            ),
            (
                "an older client",
                r#"{"session_id":"s","hook_event_name":"Stop"}"#,
                Some("s"),
                stop(None, false, &[]),
            ),
            (
                "nulls everywhere",
                r#"{"session_id":null,"transcript_path":null,"hook_event_name":"Stop","stop_hook_active":null,
                   "last_assistant_message":null,"background_tasks":null}"#,
                None,
                stop(None, false, &[]),
            ),
            (
                "wrong types",
                r#"{"session_id":7,"cwd":[],"hook_event_name":"Stop","stop_hook_active":"yes",
                   "last_assistant_message":{"a":1},"background_tasks":[1,null,{"status":null,"command":"x"}]}"#,
                None,
                stop(None, false, &["x"]),
            ),
            (
                "half a character",
                r#"{"session_id":"s","hook_event_name":"Stop","last_assistant_message":"a\ud83d b\ude00 \ud83d\ude00 \\ud83d"}"#,
                Some("s"),
                stop(Some("a\u{fffd} b\u{fffd} 😀 \\ud83d"), false, &[]),
            ),
            (
                "an unknown event",
                r#"{"session_id":"s","hook_event_name":"Later"}"#,
                Some("s"),
                Event::Other("Later".into()),
            ),
            ("no event", r#"{}"#, None, stop(None, false, &[])),
            (
                "a slash command",
                r#"{"session_id":"s","hook_event_name":"UserPromptExpansion","command_name":"ralph:start",
                   "command_args":"do \"it\" $(x)\n`y`"}"#,
                Some("s"),
                Event::Expansion { command: "ralph:start".into(), arguments: "do \"it\" $(x)\n`y`".into() },
            ),
        ];
        for (name, payload, session, event) in cases {
            let input = parse(payload.as_bytes(), "Stop").unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!((input.session_id.as_deref(), &input.event), (*session, event), "{name}");
        }
        for broken in ["", "  \n", "{", "[]", "\"x\"", "{\"session_id\":\"s\"", "{} {}", "null"] {
            assert!(parse(broken.as_bytes(), "Stop").is_err(), "{broken}");
        }
        assert!(parse(b"{\"session_id\":\"a\xffb\"}", "Stop").is_ok(), "invalid UTF-8");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[\\\\\"u{}:,d8c0-9a-f\\[\\]]*") {
            let _ = parse(&bytes, "Stop");
            let _ = parse(format!("{{\"hook_event_name\":\"Stop\",\"last_assistant_message\":\"{text}\"}}").as_bytes(), "Stop");
        }
    }
}
