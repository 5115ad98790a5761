//! Hook output: one JSON object, or nothing.

use crate::core::text::clean;
use serde_json::{Map, Value, json};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Continues the agent with this prompt, or refuses a command with this answer.
    pub block: Option<String>,
    /// Shown to the user.
    pub message: Option<String>,
    /// Added to the agent's context: the event and the text.
    pub context: Option<(&'static str, String)>,
}

impl Answer {
    pub fn silent() -> Self {
        Answer::default()
    }

    pub fn tell(message: impl Into<String>) -> Self {
        Answer { message: Some(message.into()), ..Answer::default() }
    }

    pub fn block(reason: impl Into<String>) -> Self {
        Answer { block: Some(reason.into()), ..Answer::default() }
    }

    /// Adds a line for the user.
    pub fn also(mut self, line: &str) -> Self {
        self.message = Some(match self.message {
            Some(message) => format!("{message}\n{line}"),
            None => line.to_owned(),
        });
        self
    }

    /// Adds notes for the user, a line each.
    pub fn with_notes<'a>(self, notes: impl IntoIterator<Item = &'a String>) -> Self {
        notes.into_iter().fold(self, |answer, note| answer.also(&format!("Ralph: {note}")))
    }

    /// Returns the text for stdout; empty if there is nothing to say. The client shows it on a terminal, so text from
    /// files and from the agent is cleaned here.
    pub fn render(&self) -> String {
        let mut fields = Map::new();
        if let Some(reason) = &self.block {
            fields.insert("decision".into(), "block".into());
            fields.insert("reason".into(), clean::block(reason).into());
        }
        if let Some(message) = &self.message {
            fields.insert("systemMessage".into(), clean::block(message).into());
        }
        if let Some((event, context)) = &self.context {
            let output = json!({"hookEventName": event, "additionalContext": clean::block(context)});
            fields.insert("hookSpecificOutput".into(), output);
        }
        if fields.is_empty() { String::new() } else { format!("{}\n", Value::Object(fields)) }
    }
}
