//! Claude Code, played: calls the hooks as the client does, with a transcript, on a clock of its own.

use super::call::{Said, call};
use super::interrupt::Interrupt;
use super::stage::Stage;
use crate::called::{SESSION_START_HOOK, STOP_HOOK};
use crate::core::clean;
use crate::core::time::Stamp;
use crate::store::file;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

const SESSION: &str = "7ea00000-cafe-4b1e-8000-0000000c0ffe";
const MINUTE: i64 = 60_000;
/// From the prompt to the first tool, and from the last result to the answer.
const THOUGHT: i64 = 10_000;

pub struct Client<'s> {
    stage: &'s Stage,
    interrupt: &'s Interrupt,
    now: Stamp,
    prompts: u32,
    entries: u32,
    /// What begins the next turn.
    next: Value,
    /// The turn goes on because a hook said so.
    continued: bool,
}

/// One turn of the agent.
pub struct Turn {
    pub minutes: i64,
    /// The file it wrote or the command it ran; nothing where it only talked.
    pub tool: Option<(&'static str, Value)>,
    pub says: &'static str,
}

/// A hook's answer, as the client understands it.
#[derive(Debug, Default)]
pub struct Answer {
    /// What the user is shown.
    pub message: String,
    /// Keeps the agent going.
    pub prompt: Option<String>,
    pub context: String,
}

impl Answer {
    fn of(program: &str, said: Said) -> Result<Answer> {
        let text = said.well(program)?;
        if text.is_empty() {
            return Ok(Answer::default());
        }
        let value: Value = serde_json::from_str(&text)
            .with_context(|| format!("{program} did not answer in JSON: {}", clean::excerpt(&text, 200)))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(Answer {
            message: text(&value["systemMessage"]),
            prompt: (value["decision"] == "block").then(|| text(&value["reason"])),
            context: text(&value["hookSpecificOutput"]["additionalContext"]),
        })
    }

    /// The prompt that sends the agent on, which must be there.
    pub fn sends_on(&self) -> Result<&str> {
        let what = "the Stop hook was to send the agent on";
        self.prompt.as_deref().with_context(|| unlike(what, &self.message))
    }
}

/// What was to happen, and what was said instead.
pub fn unlike(what: &str, said: &str) -> String {
    let said = if said.trim().is_empty() { "nothing" } else { said };
    format!("{what}, and it said: {}", clean::excerpt(said, 400))
}

impl<'s> Client<'s> {
    pub fn new(stage: &'s Stage, interrupt: &'s Interrupt, now: Stamp) -> Client<'s> {
        Client { stage, interrupt, now, prompts: 0, entries: 0, next: Value::Null, continued: false }
    }

    pub fn now(&self) -> Stamp {
        self.now
    }

    pub fn passes(&mut self, minutes: i64) {
        self.now = self.now.plus_ms(minutes * MINUTE);
    }

    /// The user types a slash command of ours.
    pub fn types(&mut self, command: &str, text: &str) -> Result<Answer> {
        self.prompt(&format!("/{command} {text}"));
        let fields = json!({"command_name": command, "command_args": text});
        self.hook(SESSION_START_HOOK, "UserPromptExpansion", fields)
    }

    /// The user comes back to a session that was closed, and tells it to go on.
    pub fn resumes(&mut self) -> Result<Answer> {
        let answer = self.hook(SESSION_START_HOOK, "SessionStart", json!({"source": "resume"}))?;
        self.prompt("go on");
        Ok(answer)
    }

    /// The agent works and ends its turn: the Stop hook's answer.
    pub fn turn(&mut self, turn: Turn) -> Result<Answer> {
        let began = self.now;
        let ended = began.plus_ms(turn.minutes * MINUTE);
        let prompt = std::mem::take(&mut self.next);
        self.note("user", began, prompt)?;
        if let Some((name, input)) = turn.tool {
            let id = format!("tool-{}", self.entries);
            let call = json!({"type": "tool_use", "id": id, "name": name, "input": input});
            self.note("assistant", began.plus_ms(THOUGHT), self.says(&call))?;
            let result = json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
            let message = json!({"message": {"role": "user", "content": [result]}});
            self.note("user", ended.plus_ms(-THOUGHT), message)?;
        }
        self.note("assistant", ended, self.says(&json!({"type": "text", "text": turn.says})))?;
        self.now = ended;
        let fields = json!({
            "stop_hook_active": self.continued, "last_assistant_message": turn.says,
            "background_tasks": [], "session_crons": [],
        });
        let answer = self.hook(STOP_HOOK, "Stop", fields)?;
        if let Some(prompt) = &answer.prompt {
            let content = format!("Stop hook feedback:\n{prompt}");
            self.next = json!({"isMeta": true, "message": {"role": "user", "content": content}});
        }
        self.continued = true;
        Ok(answer)
    }

    fn prompt(&mut self, text: &str) {
        self.prompts += 1;
        self.continued = false;
        self.next = json!({"promptId": self.prompt_id(), "message": {"role": "user", "content": text}});
    }

    fn prompt_id(&self) -> String {
        format!("prompt-{}", self.prompts)
    }

    fn says(&self, block: &Value) -> Value {
        json!({"message": {"id": format!("message-{}", self.entries), "content": [block]}})
    }

    /// Adds an entry to the transcript.
    fn note(&mut self, kind: &str, at: Stamp, fields: Value) -> Result<()> {
        ensure!(fields.is_object(), "a turn without a prompt");
        self.entries += 1;
        let entry = json!({"type": kind, "uuid": format!("entry-{}", self.entries), "timestamp": at});
        let entry = with(entry, fields);
        file::append_line(&self.stage.transcript(), &entry.to_string())
    }

    /// Calls a hook with what the client sends at this event.
    fn hook(&self, program: &str, event: &str, fields: Value) -> Result<Answer> {
        let input = json!({
            "session_id": SESSION, "transcript_path": self.stage.transcript(), "cwd": self.stage.project(),
            "prompt_id": self.prompt_id(), "permission_mode": "default", "hook_event_name": event,
        });
        let input = with(input, fields);
        let mut command = self.stage.command(program);
        command.env("RALPH_NOW", self.now.rfc3339());
        command.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", SESSION);
        Answer::of(program, call(command, &input.to_string(), self.interrupt, |_| Ok(()))?)
    }
}

/// An object with more fields.
fn with(mut object: Value, fields: Value) -> Value {
    if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
        object.extend(fields);
    }
    object
}
