//! A hook call as the client makes it, and the hook's answer.

use super::{Call, Env, Program};
use crate::transcript::Transcript;
use serde_json::{Map, Value, json};

/// A hook call under construction.
pub struct Event<'e> {
    pub(super) env: &'e Env,
    pub(super) program: Program,
    pub(super) fields: Map<String, Value>,
}

impl Event<'_> {
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.into(), value.into());
        self
    }

    pub fn says(self, message: &str) -> Self {
        self.field("last_assistant_message", message)
    }

    pub fn with(self, transcript: &Transcript) -> Self {
        let path = transcript.path.to_str().unwrap().to_owned();
        self.field("transcript_path", path)
    }

    pub fn prompt_id(self, id: &str) -> Self {
        self.field("prompt_id", id)
    }

    pub fn background(self, description: &str) -> Self {
        let task = json!({"id": "b1", "type": "shell", "status": "running", "description": description});
        self.field("background_tasks", json!([task]))
    }

    /// Returns what the client writes to the hook.
    pub fn payload(&self) -> String {
        Value::Object(self.fields.clone()).to_string()
    }

    pub fn call(self) -> Call {
        self.env.call(self.program).stdin(self.payload())
    }

    pub fn run(self) -> Answer {
        self.call().run().answer()
    }
}

#[derive(Debug, Default, PartialEq)]
pub struct Answer {
    /// The agent's next prompt, or the answer to a refused command.
    pub block: Option<String>,
    /// What the user reads.
    pub message: Option<String>,
    /// What is added to the agent's context.
    pub context: Option<String>,
    /// The decision about a permission prompt: `allow`, or `deny` with what the agent reads.
    pub permission: Option<(String, String)>,
}

impl Answer {
    pub(super) fn parse(value: &Value) -> Answer {
        for name in value.as_object().expect("an object").keys() {
            let known = ["decision", "reason", "systemMessage", "hookSpecificOutput"];
            assert!(known.contains(&name.as_str()), "the client does not know '{name}'");
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let block = (value["decision"] == "block").then(|| text(&value["reason"]).expect("a reason"));
        let context = text(&value["hookSpecificOutput"]["additionalContext"]);
        let decision = &value["hookSpecificOutput"]["decision"];
        let said = || text(&decision["message"]).unwrap_or_default();
        let permission = text(&decision["behavior"]).map(|behavior| (behavior, said()));
        Answer { block, message: text(&value["systemMessage"]), context, permission }
    }

    /// Asserts that the hook answered nothing.
    pub fn silent(&self) {
        assert_eq!(self, &Answer::default(), "nothing was expected");
    }

    /// Asserts that a permission was denied; returns what the agent reads.
    pub fn denied(&self) -> &str {
        match &self.permission {
            Some((behavior, message)) if behavior == "deny" => message,
            _ => panic!("it should be denied: {self:?}"),
        }
    }

    /// Asserts that a permission was given.
    pub fn permits(&self) {
        assert_eq!(self.permission, Some(("allow".into(), String::new())), "it should be allowed: {self:?}");
    }

    /// Asserts that the loop continues; returns the agent's next prompt.
    pub fn continues(&self) -> &str {
        self.block.as_deref().unwrap_or_else(|| panic!("the loop should continue: {self:?}"))
    }

    /// Asserts that the stop is allowed; returns what the user reads.
    pub fn allows(&self) -> &str {
        assert_eq!(self.block, None, "the stop should be allowed");
        self.message.as_deref().unwrap_or_else(|| panic!("the user should be told: {self:?}"))
    }

    /// Asserts that the loop ended with this outcome; returns what the user reads.
    pub fn ended(&self, outcome: &str) -> &str {
        let told = self.allows();
        assert!(told.contains("ended") && told.contains(outcome), "not an ending by {outcome}: {told}");
        told
    }
}
