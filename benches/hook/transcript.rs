//! A transcript shaped like the client's.

use crate::shared::Outcome;
use crate::{BIG, SESSION, TASK};
use ralph::core::time::Stamp;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::path::Path;

pub const PROMPT: &str = "7d1f6f0a-90a1-4b0e-8f5b-3f2f7a0c1d22";

/// Text of about `length` bytes with the escapes that real text has.
fn prose(length: usize) -> String {
    const LINE: &str =
        "- run `cargo test -- --nocapture` and read \"what failed\" — not only the last line.\n";
    LINE.repeat(length / LINE.len() + 1)
}

pub fn said(number: usize) -> String {
    format!("Test {number} passes now: the cause was an off-by-one in the range check.\n\n{}", prose(400))
}

/// An entry of the conversation, in the client's order of fields: links, content, type, then the rest.
fn entry(at: Stamp, kind: &str, fields: Value, after: Value) -> String {
    let head = json!({"parentUuid": "596d14b1-82ed-46e6-b97f-0df3e702c4c5", "isSidechain": false});
    let tail = json!({
        "type": kind, "uuid": "95b91509-38e5-40ef-89d8-b1dbf452f79e", "timestamp": at.rfc3339(),
    });
    let common = json!({
        "userType": "external", "entrypoint": "cli", "cwd": "/home/user/project", "sessionId": SESSION,
        "version": "2.1.325", "gitBranch": "main",
    });
    line([head, fields, tail, after, common])
}

fn line(parts: impl IntoIterator<Item = Value>) -> String {
    let fields: serde_json::Map<String, Value> = parts
        .into_iter()
        .filter_map(|part| match part {
            Value::Object(fields) => Some(fields),
            _ => None,
        })
        .flatten()
        .collect();
    Value::Object(fields).to_string() + "\n"
}

fn assistant(at: Stamp, message: usize, block: &Value) -> String {
    let message = json!({
        "id": format!("msg_{message:024}"), "type": "message", "role": "assistant", "model": "claude-opus-5-5",
        "content": [block], "stop_reason": null, "stop_sequence": null,
        "usage": {
            "input_tokens": 12, "output_tokens": 211, "cache_read_input_tokens": 91_234,
            "cache_creation_input_tokens": 512, "service_tier": "standard",
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 512},
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        },
    });
    let after = json!({"effort": "medium", "perTurnEffort": null, "madeBy": "claude-opus-5-5"});
    entry(
        at,
        "assistant",
        json!({
            "message": message, "apiBlockIndex": 0, "requestRef": "aa19c508-99a6-469b-9003-c6fda0c5d19d",
            "requestedModel": "claude-opus-5-5", "promptCacheRequested": true,
        }),
        after,
    )
}

fn user(at: Stamp, content: &Value, after: Value) -> String {
    entry(at, "user", json!({"promptId": PROMPT, "message": {"role": "user", "content": content}}), after)
}

fn attachment(at: Stamp, kind: &str, length: usize) -> String {
    let content = json!({"attachment": {"type": kind, "hookName": "Stop", "content": prose(length)}});
    entry(
        at,
        "attachment",
        content,
        json!({"rendered": [{"content": prose(length / 4)}], "renderedRole": "user"}),
    )
}

/// What the client logs of a request, beside the conversation.
fn request(at: Stamp, kind: &str, length: usize) -> String {
    line([json!({
        "type": kind, "sessionId": SESSION, "id": "aa19c508-99a6-469b-9003-c6fda0c5d19d",
        "timestamp": at.rfc3339(), "version": "2.1.325", "querySource": "repl", "message": prose(length),
    })])
}

/// The first entries of a session: the prompt, then the big ones.
pub fn session_start(at: Stamp) -> Vec<u8> {
    let lines = [
        request(at, "tools-used", 10),
        user(at, &json!("make the suite green"), json!({"turnPosition": {"promptIndex": 0, "turnIndex": 1}})),
        user(at, &json!([{"type": "text", "text": prose(700)}]), json!({"isMeta": true})),
        attachment(at, "environment", 800),
        attachment(at, "agent_listing_delta", 2_500),
        attachment(at, "skill_listing", 10_500),
        attachment(at, "prompt_snapshot", 4_500),
        request(at, "api-request-shape", 35_000),
        request(at, "api-request-blob", 1_300),
        request(at, "api-request-blob", 9_200),
        request(at, "api-request", 800),
        attachment(at, "prompt_snapshot", 42_000),
    ];
    lines.concat().into_bytes()
}

/// One turn after a Stop: our prompt and its echoes, `calls` tool calls with their results, the last word.
pub fn turn(at: Stamp, calls: usize) -> Vec<u8> {
    let feedback = format!("Stop hook feedback:\nRalph: iteration 7 of 50. {TASK}");
    let mut text = [
        user(at, &json!(feedback), json!({"isMeta": true})),
        attachment(at, "hook_blocking_error", 600),
        attachment(at, "hook_system_message", 80),
        entry(
            at,
            "system",
            json!({"subtype": "stop_hook_summary", "hookErrors": [prose(300)]}),
            json!({"level": "suggestion"}),
        ),
    ]
    .concat();
    for call in 0..calls {
        let id = format!("toolu_{call:022}");
        text += &request(at, "api-request-blob", 400);
        text += &request(at, "api-request", 1_000);
        text += &assistant(
            at,
            call,
            &json!({
                "type": "tool_use", "id": id, "name": "Edit",
                "input": {"file_path": "src/range.rs", "old_string": "a..b", "new_string": "a..=b"},
            }),
        );
        text += &user(
            at,
            &json!([{"tool_use_id": id, "type": "tool_result", "content": prose(900), "is_error": false}]),
            json!({"toolUseResult": {"stdout": prose(900), "stderr": "", "interrupted": false}}),
        );
    }
    text += &request(at, "api-request", 1_000);
    text += &assistant(at, calls, &json!({"type": "text", "text": said(calls)}));
    text += &line([
        json!({"type": "cost-state", "sessionId": SESSION, "totalCostUSD": 1.25, "totalAPIDuration": 1634}),
    ]);
    text.into_bytes()
}

/// A long session before the loop; the length it has.
pub fn write_big(path: &Path, at: Stamp) -> Outcome<u64> {
    let piece = [session_start(at), turn(at, 10).repeat(10)].concat();
    let mut file = File::create(path)?;
    let mut length = 0;
    while length < BIG {
        file.write_all(&piece)?;
        length += piece.len() as u64;
    }
    file.sync_all()?;
    Ok(length)
}
