//! The bytes of the scripted Messages API: one HTTP request in, a JSON answer or an event stream out.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

type Headers = [(String, String)];

pub struct HttpRequest {
    pub method: String,
    pub path: String,
    pub body: Value,
}

/// `None` when the client closed the connection without asking anything.
pub fn read_request(stream: &TcpStream) -> io::Result<Option<HttpRequest>> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(HttpRequest { method, path, body: serde_json::from_slice(&body).unwrap_or_default() }))
}

/// A whole answer without a body.
pub fn send_head(stream: &TcpStream, status: u16, headers: &Headers) -> io::Result<()> {
    send(stream, status, "application/json", Some(0), headers, b"")
}

pub fn send_json(stream: &TcpStream, status: u16, headers: &Headers, body: &Value) -> io::Result<()> {
    let body = body.to_string();
    send(stream, status, "application/json", Some(body.len()), headers, body.as_bytes())
}

/// Server-sent events; the end of the connection is the end of the stream.
pub fn send_events(mut stream: &TcpStream, headers: &Headers, events: &[Value]) -> io::Result<()> {
    send(stream, 200, "text/event-stream", None, headers, b"")?;
    for event in events {
        let kind = event["type"].as_str().unwrap_or_default();
        stream.write_all(format!("event: {kind}\ndata: {event}\n\n").as_bytes())?;
    }
    Ok(())
}

fn send(
    mut stream: &TcpStream,
    status: u16,
    content_type: &str,
    length: Option<usize>,
    headers: &Headers,
    body: &[u8],
) -> io::Result<()> {
    let mut head =
        format!("HTTP/1.1 {status} scripted\r\ncontent-type: {content_type}\r\nconnection: close\r\n");
    if let Some(length) = length {
        head += &format!("content-length: {length}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    stream.write_all(&[head.as_bytes(), body].concat())
}

pub fn error_body(status: u16) -> Value {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": format!("scripted {status}")}})
}

/// A complete assistant message. Tool ids are made from `id` at this point because a reply may be sent many
/// times, and the client needs every tool call of a conversation to have an id of its own.
pub fn message(id: &str, model: &Value, blocks: &[Value], usage: &Value) -> Value {
    let mut content = blocks.to_vec();
    let mut stop_reason = "end_turn";
    for (index, block) in content.iter_mut().enumerate().filter(|(_, block)| block["type"] == "tool_use") {
        block["id"] = json!(format!("toolu_{id}_{index}"));
        stop_reason = "tool_use";
    }
    let mut counts = json!({"input_tokens": 10, "output_tokens": 5});
    for (name, count) in usage.as_object().into_iter().flatten() {
        counts[name] = count.clone();
    }
    json!({
        "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": model, "content": content,
        "stop_reason": stop_reason, "stop_sequence": null, "usage": counts,
    })
}

/// The same message as the events of a stream.
pub fn events(message: &Value) -> Vec<Value> {
    let mut opening = message.clone();
    opening["content"] = json!([]);
    opening["stop_reason"] = Value::Null;
    let mut events = vec![json!({"type": "message_start", "message": opening})];
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let mut empty = block.clone();
        let delta = if block["type"] == "tool_use" {
            empty["input"] = json!({});
            json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
        } else {
            empty["text"] = json!("");
            json!({"type": "text_delta", "text": block["text"]})
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": empty}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": message["stop_reason"], "stop_sequence": null});
    let usage = json!({"output_tokens": message["usage"]["output_tokens"]});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": usage}));
    events.push(json!({"type": "message_stop"}));
    events
}
