//! Hook input: accepts everything but invalid JSON, and returns a typed event.

use crate::claude::object::Object;
use crate::core::decide::turn::Task;
use serde_json::Value;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// Far above any real call of a tool, which is read into values.
const MAX_REQUEST_BYTES: usize = 16 << 20;

#[derive(Clone, Debug, PartialEq)]
pub struct HookInput {
    pub session_id: Option<String>,
    pub transcript: Option<PathBuf>,
    pub cwd: Option<PathBuf>,
    pub prompt_id: Option<String>,
    pub permission_mode: Option<String>,
    pub event: HookEvent,
}

#[derive(Clone, Debug, PartialEq)]
pub enum HookEvent {
    Stop {
        message: Option<String>,
        /// The turn continues a blocked one.
        continued: bool,
        /// Running background tasks.
        background: Vec<Task>,
    },
    StopFailure {
        error: String,
        /// What the client says about it.
        message: String,
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
    /// What the user submits, before the agent reads it. A slash command is submitted and then expands.
    Prompt {
        text: String,
    },
    /// The client tells the user something, for example that it waits for a permission. An old client names no kind.
    Notification {
        kind: String,
        message: String,
    },
    /// The client asks for a permission, or shows the agent's question. Its dialog can be answered meanwhile.
    Permission {
        tool: String,
        input: Value,
        /// A subagent made the call: its dialog may open only after the hook has answered.
        by_subagent: bool,
    },
    /// Tools have run, and the agent reads their results next.
    ToolBatch {
        /// It is a subagent's turn.
        of_subagent: bool,
    },
    /// An event that this version ignores.
    Other(String),
}

impl HookInput {
    /// Returns a number that the hooks of one end of a turn have in common, because they get the same input.
    pub fn turn_end_id(&self) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        self.prompt_id.hash(&mut hasher);
        match &self.event {
            HookEvent::Stop { message, continued, background } => {
                (message, continued).hash(&mut hasher);
                background.iter().for_each(|task| task.id.hash(&mut hasher));
            }
            HookEvent::StopFailure { error, message } => (error, message).hash(&mut hasher),
            _ => return None,
        }
        Some(hasher.finish())
    }

    /// Returns the tasks that run in the background at the end of a turn.
    pub fn background(&self) -> &[Task] {
        if let HookEvent::Stop { background, .. } = &self.event { background } else { &[] }
    }
}

/// Parses the input of a hook; `assumed` is the event if the input names none. Only input that is not a JSON object,
/// or a request for a permission of an absurd size, is an error.
pub fn parse(bytes: &[u8], assumed: &str) -> Result<HookInput, String> {
    // Replacing what is no text is slow, and nearly all input is text.
    let text = std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed);
    if text.trim().is_empty() {
        return Err("the hook's input was empty".into());
    }
    let fields: Object = serde_json::from_str(&text)
        .map_err(|error| format!("the hook's input is not a JSON object: {error}"))?;
    let text = |name: &str| fields.text(name).unwrap_or_default();
    let path = |name: &str| fields.text(name).filter(|text| !text.is_empty()).map(PathBuf::from);
    let event = match fields.text("hook_event_name").as_deref().unwrap_or(assumed) {
        "Stop" => HookEvent::Stop {
            message: fields.text("last_assistant_message"),
            continued: fields.is_true("stop_hook_active"),
            background: background(&fields),
        },
        "StopFailure" => {
            HookEvent::StopFailure { error: text("error"), message: text("last_assistant_message") }
        }
        "SessionStart" => HookEvent::SessionStart { source: text("source") },
        "SessionEnd" => HookEvent::SessionEnd { reason: text("reason") },
        "UserPromptExpansion" => {
            HookEvent::Expansion { command: text("command_name"), arguments: text("command_args") }
        }
        "Notification" => {
            HookEvent::Notification { kind: text("notification_type"), message: text("message") }
        }
        "PermissionRequest" if bytes.len() > MAX_REQUEST_BYTES => {
            return Err("the request for a permission is larger than 16 MB; it is left to Claude Code".into());
        }
        "PermissionRequest" => HookEvent::Permission {
            tool: text("tool_name"),
            input: fields.read("tool_input").unwrap_or_default(),
            by_subagent: !text("agent_id").is_empty(),
        },
        "UserPromptSubmit" => HookEvent::Prompt { text: text("prompt") },
        "PostToolBatch" => HookEvent::ToolBatch { of_subagent: fields.text("agent_id").is_some() },
        other => HookEvent::Other(other.to_owned()),
    };
    Ok(HookInput {
        session_id: fields.text("session_id"),
        transcript: path("transcript_path"),
        cwd: path("cwd"),
        prompt_id: fields.text("prompt_id"),
        permission_mode: fields.text("permission_mode"),
        event,
    })
}

/// Returns the background tasks that still run.
fn background(fields: &Object) -> Vec<Task> {
    let is_active =
        |task: &Object| task.text("status").is_none_or(|status| status == "running" || status == "pending");
    let read = |task: Object| {
        let texts = ["description", "command", "type"].iter().filter_map(|name| task.text(name));
        let name = texts.into_iter().find(|text| !text.is_empty()).unwrap_or("a task".into());
        let id = task.text("id").filter(|id| !id.is_empty()).unwrap_or_else(|| name.clone());
        Task { id, name, is_agent: task.text("type").is_some_and(|kind| kind == "subagent") }
    };
    fields.objects("background_tasks").into_iter().filter(is_active).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stop(message: Option<&str>, continued: bool, background: &[(&str, &str, bool)]) -> HookEvent {
        let task =
            |&(id, name, is_agent): &(&str, &str, bool)| Task { id: id.into(), name: name.into(), is_agent };
        let background = background.iter().map(task).collect();
        HookEvent::Stop { message: message.map(str::to_owned), continued, background }
    }

    #[test]
    fn real_payloads_are_read() {
        let cases: &[(&str, &str, Option<&str>, HookEvent)] = &[
            (
                "a whole stop",
                r#"{"session_id":"s","transcript_path":"/t.jsonl","cwd":"/p","prompt_id":"q","permission_mode":"auto",
                   "effort":{"level":"medium"},"hook_event_name":"Stop","stop_hook_active":true,
                   "last_assistant_message":"hi","background_tasks":[{"id":"b","type":"shell","status":"running",
                   "description":"w","command":"sleep 3"},{"id":"c","status":"completed","description":"old"},
                   {"id":"d","type":"subagent","status":"running","description":"look","agent_type":"Explore"}],"session_crons":[]}"#,
                Some("s"),
                stop(Some("hi"), true, &[("b", "w", false), ("d", "look", true)]),
            ),
            (
                "an older version",
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
                stop(None, false, &[("x", "x", false)]),
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
                HookEvent::Other("Later".into()),
            ),
            ("no event", r#"{}"#, None, stop(None, false, &[])),
            (
                "a slash command",
                r#"{"session_id":"s","hook_event_name":"UserPromptExpansion","command_name":"ralph:start",
                   "command_args":"do \"it\" $(x)\n`y`"}"#,
                Some("s"),
                HookEvent::Expansion {
                    command: "ralph:start".into(),
                    arguments: "do \"it\" $(x)\n`y`".into(),
                },
            ),
            (
                "a permission prompt",
                r#"{"session_id":"s","hook_event_name":"Notification","notification_type":"permission_prompt",
                   "message":"Claude needs your permission to use Bash"}"#,
                Some("s"),
                HookEvent::Notification {
                    kind: "permission_prompt".into(),
                    message: "Claude needs your permission to use Bash".into(),
                },
            ),
            (
                "a request for a permission",
                r#"{"session_id":"s","hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"x"},
                   "permission_suggestions":[{"type":"addDirectories"}],"agent_id":"a1"}"#,
                Some("s"),
                HookEvent::Permission {
                    tool: "Bash".into(),
                    input: serde_json::json!({"command": "x"}),
                    by_subagent: true,
                },
            ),
            (
                "a request for a permission without anything",
                r#"{"session_id":"s","hook_event_name":"PermissionRequest","tool_name":7,"tool_input":null}"#,
                Some("s"),
                HookEvent::Permission { tool: String::new(), input: Value::Null, by_subagent: false },
            ),
            (
                "a prompt",
                r#"{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt_id":"q","prompt":"yes,\ntabs"}"#,
                Some("s"),
                HookEvent::Prompt { text: "yes,\ntabs".into() },
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

    #[test]
    fn a_request_of_an_absurd_size_is_not_read() {
        let request = |bytes: usize, event: &str| {
            let command = "x".repeat(bytes);
            parse(
                format!(r#"{{"hook_event_name":"{event}","tool_name":"Bash","tool_input":{{"command":"{command}"}}}}"#)
                    .as_bytes(),
                "Stop",
            )
        };
        assert!(request(MAX_REQUEST_BYTES - 200, "PermissionRequest").is_ok());
        assert!(request(MAX_REQUEST_BYTES, "PermissionRequest").unwrap_err().contains("larger than 16 MB"));
        assert!(request(MAX_REQUEST_BYTES, "Stop").is_ok());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[\\\\\"u{}:,d8c0-9a-f\\[\\]]*") {
            let _ = parse(&bytes, "Stop");
            let _ = parse(format!("{{\"hook_event_name\":\"Stop\",\"last_assistant_message\":\"{text}\"}}").as_bytes(), "Stop");
        }
    }
}
