//! Plays Claude Code: writes a transcript and calls the hooks, on a clock of its own.

use super::sandbox::Sandbox;
use super::screen::DemoScreen;
use crate::core::text::clean;
use crate::core::time::Stamp;
use crate::store::file;
use crate::store::process::names::{SESSION_START_HOOK, STOP_HOOK};
use anyhow::{Context, Result};
use serde_json::{Value, json};

const SESSION: &str = "7ea00000-cafe-4b1e-8000-0000000c0ffe";
const MINUTE_MS: i64 = 60_000;
/// Between the prompt and the first tool call, and between the last tool result and the answer.
const THINKING_MS: i64 = 10_000;

pub struct DemoClient<'s> {
    pub sandbox: &'s Sandbox,
    pub now: Stamp,
    prompts: u32,
    entries: u32,
    /// The entry that begins the next turn.
    next: Value,
    /// Whether a hook started the current turn.
    stop_hook_active: bool,
}

/// A hook's answer, as Claude Code understands it.
#[derive(Debug, Default)]
pub struct HookReply {
    /// What the user reads.
    pub message: String,
    /// What the agent reads, if the hook keeps it working.
    pub prompt: Option<String>,
    pub context: String,
}

impl HookReply {
    fn parse(program: &str, output: &str) -> Result<HookReply> {
        if output.is_empty() {
            return Ok(HookReply::default());
        }
        let value: Value = serde_json::from_str(output)
            .with_context(|| format!("{program} did not answer in JSON: {}", clean::excerpt(output, 200)))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(HookReply {
            message: text(&value["systemMessage"]),
            prompt: (value["decision"] == "block").then(|| text(&value["reason"])),
            context: text(&value["hookSpecificOutput"]["additionalContext"]),
        })
    }

    /// Returns the prompt, which must be there.
    pub fn continues(&self) -> Result<&str> {
        self.prompt.as_deref().with_context(|| unexpected("the agent continues", &self.message))
    }
}

/// Describes an expectation that was not met.
pub fn unexpected(expected: &str, output: &str) -> String {
    let output = if output.trim().is_empty() { "nothing".into() } else { clean::excerpt(output, 400) };
    format!("expected: {expected}; got: {output}")
}

impl<'s> DemoClient<'s> {
    pub fn new(sandbox: &'s Sandbox, now: Stamp) -> DemoClient<'s> {
        DemoClient { sandbox, now, prompts: 0, entries: 0, next: Value::Null, stop_hook_active: false }
    }

    pub fn advance(&mut self, minutes: i64) {
        self.now = self.now.plus_ms(minutes * MINUTE_MS);
    }

    /// Submits one of our slash commands.
    pub fn command(&mut self, name: &str, text: &str) -> Result<HookReply> {
        self.prompt(&format!("/{name} {text}"));
        let fields = json!({"command_name": name, "command_args": text});
        self.hook(SESSION_START_HOOK, "UserPromptExpansion", fields)
    }

    /// Resumes a closed session and prompts the agent.
    pub fn resume(&mut self) -> Result<HookReply> {
        let answer = self.hook(SESSION_START_HOOK, "SessionStart", json!({"source": "resume"}))?;
        self.prompt("continue");
        Ok(answer)
    }

    /// Shows and plays a turn of the agent, and returns the Stop hook's answer. Without a file to write it uses no tool.
    pub fn turn(
        &mut self,
        screen: &DemoScreen,
        minutes: i64,
        file: Option<&str>,
        says: &str,
    ) -> Result<HookReply> {
        screen.agent(&says.replace("\n\n", " "))?;
        let started = self.now;
        self.advance(minutes);
        let prompt = std::mem::take(&mut self.next);
        self.append("user", started, prompt)?;
        if let Some(file) = file {
            let id = format!("tool-{}", self.entries);
            let call = json!({"type": "tool_use", "id": id, "name": "Write", "input": {"file_path": file}});
            self.append("assistant", started.plus_ms(THINKING_MS), self.message(&call))?;
            let result = json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
            let message = json!({"message": {"role": "user", "content": [result]}});
            self.append("user", self.now.plus_ms(-THINKING_MS), message)?;
        }
        let text = json!({"type": "text", "text": says});
        self.append("assistant", self.now, self.message(&text))?;
        let fields = json!({
            "stop_hook_active": self.stop_hook_active, "last_assistant_message": says,
            "background_tasks": [], "session_crons": [],
        });
        let answer = self.hook(STOP_HOOK, "Stop", fields)?;
        if let Some(prompt) = &answer.prompt {
            let content = format!("Stop hook feedback:\n{prompt}");
            self.next = json!({"isMeta": true, "message": {"role": "user", "content": content}});
        }
        self.stop_hook_active = true;
        Ok(answer)
    }

    fn prompt(&mut self, text: &str) {
        self.prompts += 1;
        self.stop_hook_active = false;
        self.next = json!({"promptId": self.prompt_id(), "message": {"role": "user", "content": text}});
    }

    fn prompt_id(&self) -> String {
        format!("prompt-{}", self.prompts)
    }

    fn message(&self, block: &Value) -> Value {
        json!({"message": {"id": format!("message-{}", self.entries), "content": [block]}})
    }

    /// Appends an entry to the transcript.
    fn append(&mut self, kind: &str, at: Stamp, fields: Value) -> Result<()> {
        self.entries += 1;
        let entry = json!({"type": kind, "uuid": format!("entry-{}", self.entries), "timestamp": at});
        file::append_line(&self.sandbox.transcript(), &with(entry, fields).to_string())
    }

    /// Calls a hook with the input that Claude Code sends for this event.
    fn hook(&self, program: &str, event: &str, fields: Value) -> Result<HookReply> {
        let input = json!({
            "session_id": SESSION, "transcript_path": self.sandbox.transcript(),
            "cwd": self.sandbox.project(), "prompt_id": self.prompt_id(), "permission_mode": "auto",
            "hook_event_name": event,
        });
        let mut command = self.sandbox.command(program, self.now);
        command.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", SESSION);
        HookReply::parse(program, &self.sandbox.run(&mut command, &with(input, fields).to_string())?)
    }
}

/// Adds fields to an object.
fn with(mut object: Value, fields: Value) -> Value {
    if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
        object.extend(fields);
    }
    object
}
