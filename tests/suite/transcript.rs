//! Writes a transcript as the client does, entry by entry, on the test's clock.

use crate::env::stamp;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

pub struct Transcript {
    pub path: PathBuf,
    messages: std::cell::Cell<u32>,
}

impl Transcript {
    pub fn new(path: &Path) -> Self {
        std::fs::write(path, "").unwrap();
        Transcript { path: path.to_owned(), messages: std::cell::Cell::new(0) }
    }

    pub fn raw(&self, bytes: &[u8]) -> &Self {
        OpenOptions::new().append(true).open(&self.path).unwrap().write_all(bytes).unwrap();
        self
    }

    pub fn entry(&self, seconds: i64, kind: &str, fields: Value) -> &Self {
        let mut entry = json!({"type": kind, "uuid": format!("u{seconds}"), "timestamp": stamp(seconds)});
        for (name, value) in fields.as_object().unwrap() {
            entry[name] = value.clone();
        }
        self.raw(format!("{entry}\n").as_bytes())
    }

    /// A prompt of the user's.
    pub fn prompt(&self, seconds: i64, id: &str, text: &str) -> &Self {
        self.entry(seconds, "user", json!({"promptId": id, "message": {"role": "user", "content": text}}))
    }

    /// What our own Stop hook sent.
    pub fn feedback(&self, seconds: i64) -> &Self {
        let message = json!({"role": "user", "content": "Stop hook feedback:\ngo on"});
        self.entry(seconds, "user", json!({"isMeta": true, "message": message}))
    }

    /// What our own Stop hook sent as context, with its fields in the client's order.
    pub fn context(&self, seconds: i64) -> &Self {
        let entry = json!({
            "parentUuid": "727777e4-3a5c-416b-a4af-2e37f4d401cd",
            "isSidechain": false,
            "attachment": {
                "type": "hook_additional_context", "content": ["go on"], "hookName": "Stop", "hookEvent": "Stop"
            },
            "type": "attachment",
            "timestamp": stamp(seconds),
        });
        self.raw(format!("{entry}\n").as_bytes())
    }

    pub fn text(&self, seconds: i64, text: &str) -> &Self {
        self.assistant(
            seconds,
            json!({"type": "text", "text": text}),
            json!({"input_tokens": 10, "output_tokens": 5}),
        )
    }

    pub fn call(&self, seconds: i64, id: &str) -> &Self {
        let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "true"}});
        self.assistant(seconds, call, json!({"input_tokens": 10, "output_tokens": 5}))
    }

    pub fn assistant(&self, seconds: i64, block: Value, usage: Value) -> &Self {
        self.messages.set(self.messages.get() + 1);
        let id = format!("m{}", self.messages.get());
        self.entry(seconds, "assistant", json!({"message": {"id": id, "content": [block], "usage": usage}}))
    }

    pub fn result(&self, seconds: i64, id: &str) -> &Self {
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
        self.entry(seconds, "user", json!({"message": {"role": "user", "content": [block]}}))
    }

    pub fn esc(&self, seconds: i64) -> &Self {
        let block = json!({"type": "text", "text": "[Request interrupted by user]"});
        let fields = json!({"interruptedMessageId": "m", "message": {"role": "user", "content": [block]}});
        self.entry(seconds, "user", fields)
    }

    pub fn queue(&self, seconds: i64, operation: &str, text: &str) -> &Self {
        self.entry(seconds, "queue-operation", json!({"operation": operation, "content": text}))
    }

    /// The client's running total of the session.
    pub fn cost(&self, usd: f64) -> &Self {
        self.raw(format!("{}\n", json!({"type": "cost-state", "totalCostUSD": usd})).as_bytes())
    }

    /// A whole turn with one tool, ten seconds long.
    pub fn worked(&self, seconds: i64) -> &Self {
        let id = format!("t{seconds}");
        self.feedback(seconds).call(seconds + 2, &id).result(seconds + 8, &id).text(seconds + 9, "on it")
    }
}
