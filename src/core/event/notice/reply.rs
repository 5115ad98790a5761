//! Answers from an ntfy topic. Anyone who knows the topic can write there, so only a message with the token of the open
//! question counts.

use crate::core::text::clean;
use serde_json::Value;

/// ntfy itself takes no longer message.
const MAX_ANSWER_CHARS: usize = 4096;

/// One line of a topic's messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicMessage {
    /// Where to continue reading.
    pub id: Option<String>,
    /// The answer, if the message has one to this question.
    pub answer: Option<String>,
}

/// Reads a line. What is no message, or not for this question, has no answer.
pub fn parse_message(line: &[u8], token: &str) -> TopicMessage {
    let Ok(fields) = serde_json::from_slice::<Value>(line) else { return TopicMessage::default() };
    let is_id = |id: &&str| id.len() <= 64 && id.chars().all(|c| c.is_ascii_alphanumeric());
    let id = fields["id"].as_str().filter(is_id).map(str::to_owned);
    let is_message = fields["event"] == "message";
    let message = fields["message"].as_str().filter(|_| is_message);
    TopicMessage { id, answer: message.and_then(|message| answer(message, token)) }
}

/// Returns what a message answers: the token, a space or a colon, and the text.
fn answer(message: &str, token: &str) -> Option<String> {
    if token.is_empty() {
        return None;
    }
    let message = message.trim_start();
    let begins = message.get(..token.len())?.eq_ignore_ascii_case(token);
    let rest = Some(&message[token.len()..]).filter(|_| begins)?;
    let text = rest.strip_prefix(':').or_else(|| rest.strip_prefix(char::is_whitespace))?;
    let text = clean::block(text).trim().to_owned();
    (!text.is_empty() && text.chars().count() <= MAX_ANSWER_CHARS).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_message_with_the_token_is_an_answer() {
        let parse = |message: &str| {
            let line = json!({"id": "a1", "time": 1, "event": "message", "topic": "t", "message": message});
            parse_message(line.to_string().as_bytes(), "k7f2")
        };
        for (message, answer) in [
            ("k7f2 use tabs", Some("use tabs")),
            ("  K7F2: use\ntabs ", Some("use\ntabs")),
            ("k7f2\n\u{1b}[31myes\u{7}", Some("[31myes")),
            ("use tabs", None),
            ("k7f3 use tabs", None),
            ("k7f2use tabs", None),
            ("say k7f2 tabs", None),
            ("k7f2", None),
            ("k7f2  \u{1b} ", None),
            ("é", None),
        ] {
            assert_eq!(parse(message).answer.as_deref(), answer, "{message:?}");
        }
        assert_eq!(parse(&format!("k7f2 {}", "x".repeat(MAX_ANSWER_CHARS + 1))).answer, None, "too long");
        assert_eq!(parse("x").id.as_deref(), Some("a1"));
    }

    #[test]
    fn other_lines_are_none() {
        for line in [
            "",
            "{",
            "[]",
            "null",
            r#"{"event":"open","message":"k7f2 yes"}"#,
            r#"{"event":"message","message":5}"#,
            r#"{"id":"a&x=1","event":"keepalive"}"#,
        ] {
            assert_eq!(parse_message(line.as_bytes(), "k7f2"), TopicMessage::default(), "{line}");
        }
        assert_eq!(parse_message(br#"{"event":"message","message":" yes"}"#, "").answer, None, "no token");
    }
}
