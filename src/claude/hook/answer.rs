//! Hook output: one JSON object, or nothing.

use crate::core::text::clean;
use serde_json::{Map, Value, json};

/// The client replaces a longer context by a file and a preview. It counts UTF-16 units.
const MAX_CONTEXT_UTF16: usize = 10_000;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookOutput {
    /// Continues the agent with this prompt, or refuses a command with this answer.
    pub block: Option<String>,
    /// Shown to the user.
    pub message: Option<String>,
    /// Added to the agent's context: the event and the text.
    pub context: Option<(&'static str, String)>,
    /// Answers a permission prompt; without it the prompt is left to the user.
    pub permission: Option<PermissionAnswer>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PermissionAnswer {
    Allow,
    /// Denies it with this text for the agent.
    Deny(String),
}

impl HookOutput {
    pub fn silent() -> Self {
        HookOutput::default()
    }

    pub fn message(message: impl Into<String>) -> Self {
        HookOutput { message: Some(message.into()), ..HookOutput::default() }
    }

    pub fn block(reason: impl Into<String>) -> Self {
        HookOutput { block: Some(reason.into()), ..HookOutput::default() }
    }

    pub fn permission(decision: PermissionAnswer) -> Self {
        HookOutput { permission: Some(decision), ..HookOutput::default() }
    }

    /// Continues a turn with this prompt, and with what the agent may have lost. `takes_context` says that the client
    /// continues by context, which it shows as feedback and sends once; it calls a block an error and sends it twice.
    /// A text that would not arrive whole as context goes into a block.
    pub fn continue_turn(prompt: String, lost: Option<String>, takes_context: bool) -> Self {
        let fits = |text: &str| text.encode_utf16().count() <= MAX_CONTEXT_UTF16;
        let whole = lost.as_ref().map(|lost| format!("{prompt}\n\n{lost}"));
        let text = whole.as_ref().unwrap_or(&prompt);
        if takes_context && fits(text) {
            return HookOutput { context: Some(("Stop", text.clone())), ..HookOutput::default() };
        }
        match (whole, lost) {
            (Some(_), Some(lost)) if fits(&lost) => {
                HookOutput { context: Some(("Stop", lost)), ..HookOutput::block(prompt) }
            }
            (whole, _) => HookOutput::block(whole.unwrap_or(prompt)),
        }
    }

    /// Lets the turn end, and keeps what the user is told.
    pub fn without_continuing(self) -> Self {
        HookOutput { block: None, context: None, ..self }
    }

    /// Adds a line for the user.
    pub fn add_line(mut self, line: &str) -> Self {
        self.message = Some(match self.message {
            Some(message) => format!("{message}\n{line}"),
            None => line.to_owned(),
        });
        self
    }

    /// Adds notes for the user, a line each.
    pub fn with_notes<'a>(self, notes: impl IntoIterator<Item = &'a String>) -> Self {
        notes.into_iter().fold(self, |answer, note| answer.add_line(&format!("Ralph: {note}")))
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
            fields.insert("systemMessage".into(), clean::message(message).into());
        }
        if let Some((event, context)) = &self.context {
            let output = json!({"hookEventName": event, "additionalContext": clean::block(context)});
            fields.insert("hookSpecificOutput".into(), output);
        }
        if let Some(permission) = &self.permission {
            let decision = match permission {
                PermissionAnswer::Allow => json!({"behavior": "allow"}),
                PermissionAnswer::Deny(why) => json!({"behavior": "deny", "message": clean::block(why)}),
            };
            let output = json!({"hookEventName": "PermissionRequest", "decision": decision});
            fields.insert("hookSpecificOutput".into(), output);
        }
        if fields.is_empty() { String::new() } else { format!("{}\n", Value::Object(fields)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_continues_by_context_as_long_as_the_text_fits() {
        let text = |units: usize| "x".repeat(units);
        let block = |prompt: &str| HookOutput::block(prompt);
        let context =
            |text: &str| HookOutput { context: Some(("Stop", text.to_owned())), ..HookOutput::default() };
        let both = |prompt: &str, lost: &str| HookOutput { block: Some(prompt.to_owned()), ..context(lost) };
        let (fits, long) = (text(10_000), text(10_001));
        // One character, two of the client's units.
        let wide = "😀".repeat(5_001);
        for (name, prompt, lost, takes_context, expected) in [
            ("context", "p", None, true, context("p")),
            ("an older client", "p", None, false, block("p")),
            ("just fits", &fits, None, true, context(&fits)),
            ("too long", &long, None, true, block(&long)),
            ("too long for it", &wide, None, true, block(&wide)),
            ("long, an older client", &long, None, false, block(&long)),
            ("with the task", "p", Some("task"), true, context("p\n\ntask")),
            ("with the task, an older client", "p", Some("task"), false, both("p", "task")),
            ("only the task fits", "p", Some(&*fits), true, both("p", &fits)),
            ("a long task", "p", Some(&*long), true, block(&format!("p\n\n{long}"))),
            ("a long task, an older client", "p", Some(&*long), false, block(&format!("p\n\n{long}"))),
        ] {
            let answer = HookOutput::continue_turn(prompt.to_owned(), lost.map(str::to_owned), takes_context);
            assert!(answer == expected, "{name}");
            let told = answer.add_line("line").without_continuing();
            assert!(told == HookOutput::message("line"), "{name}: what is not saved must not continue");
        }
    }
}
