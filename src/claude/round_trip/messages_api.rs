//! A scripted Messages API on 127.0.0.1: Claude Code runs against it without a key, a network or cost. The tests
//! use it too.
//!
//! A request with tools is a turn of the agent and gets a scripted reply; other requests (titles, token counts,
//! probes) get a neutral answer. Each connection serves one request.

use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

const MAX_BODY_BYTES: u64 = 32 << 20;
const MAX_HEAD_BYTES: u64 = 256 << 10;
const TIMEOUT: Duration = Duration::from_secs(60);

/// The answer to one turn.
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// A message, or an error if `status` is not 200.
    pub body: Value,
    /// Called before each event of a streamed message, so that it can come as slowly as a model writes.
    pub before_event: Option<Box<dyn Fn()>>,
}

/// Runs until it is dropped.
pub struct MessagesApi {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl MessagesApi {
    /// Starts the server. `script` gets the body of each turn's request.
    pub fn start(script: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> io::Result<MessagesApi> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let (script, stopped) = (Arc::new(script), Arc::new(AtomicBool::new(false)));
        let is_stopped = Arc::clone(&stopped);
        let accepting = Builder::new().spawn(move || {
            for stream in listener.incoming() {
                if is_stopped.load(Ordering::Acquire) {
                    return;
                }
                let (Ok(stream), script) = (stream, Arc::clone(&script)) else { continue };
                // A client that closes the connection early is not an error.
                let _ = Builder::new().spawn(move || drop(serve(&stream, &*script)));
            }
        })?;
        Ok(MessagesApi { address, stopped, accepting: Some(accepting) })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for MessagesApi {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // `accept` has no timeout: a last connection makes it look at the flag.
        let woken = TcpStream::connect_timeout(&self.address, TIMEOUT).is_ok();
        if let Some(accepting) = self.accepting.take().filter(|_| woken) {
            let _ = accepting.join();
        }
    }
}

fn serve(stream: &TcpStream, script: &dyn Fn(&Value) -> Reply) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let (method, path, body) = read_request(stream)?;
    let path = path.split('?').next().unwrap_or_default();
    let is_turn = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let neutral = |status, body| Reply { status, headers: Vec::new(), body, before_event: None };
    let reply = match method.as_str() {
        "POST" if path.ends_with("/v1/messages") && is_turn => script(&body),
        "POST" if path.ends_with("/v1/messages") => {
            neutral(200, message("aside", &body["model"], vec![json!({"type": "text", "text": "A title"})]))
        }
        "POST" if path.ends_with("/count_tokens") => neutral(200, json!({"input_tokens": 10})),
        "POST" | "HEAD" => neutral(200, json!({})),
        _ => neutral(404, json!({})),
    };
    let (kind, parts) = match body["stream"] == true && reply.body["type"] == "message" {
        true => ("text/event-stream", events(&reply.body)),
        false => ("application/json", vec![reply.body.to_string()]),
    };
    let headers: String = reply.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length: usize = parts.iter().map(String::len).sum();
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {} Scripted\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n",
        reply.status
    )?;
    if method == "HEAD" {
        return Ok(());
    }
    let Some(before_event) = reply.before_event else { return stream.write_all(parts.concat().as_bytes()) };
    parts.iter().try_for_each(|part| {
        before_event();
        stream.write_all(part.as_bytes())
    })
}

/// Reads method, path and JSON body.
fn read_request(stream: &TcpStream) -> io::Result<(String, String, Value)> {
    let mut reader = BufReader::new(stream).take(MAX_HEAD_BYTES);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut length = 0;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    if length > MAX_BODY_BYTES {
        return Err(io::Error::other("the request is too large"));
    }
    reader.set_limit(length);
    let mut body = Vec::new();
    reader.read_to_end(&mut body)?;
    Ok((method, path, serde_json::from_slice(&body).unwrap_or_default()))
}

/// Returns an assistant message. `id` must be new in the conversation: the ids of tool calls are made from it.
pub fn message(id: &str, model: &Value, mut content: Vec<Value>) -> Value {
    let mut stop_reason = "end_turn";
    for (index, block) in content.iter_mut().enumerate().filter(|(_, block)| block["type"] == "tool_use") {
        block["id"] = json!(format!("toolu_{id}_{index}"));
        stop_reason = "tool_use";
    }
    json!({
        "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": model, "content": content,
        "stop_reason": stop_reason, "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": 5},
    })
}

/// Returns the message as server-sent events: text comes by lines, a tool's input in pieces.
fn events(message: &Value) -> Vec<String> {
    let mut opening = message.clone();
    opening["content"] = json!([]);
    opening["stop_reason"] = Value::Null;
    let mut events = vec![json!({"type": "message_start", "message": opening})];
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let mut empty = block.clone();
        let deltas: Vec<Value> = if block["type"] == "tool_use" {
            empty["input"] = json!({});
            let input = block["input"].to_string();
            let pieces = input.split_inclusive(',');
            pieces.map(|piece| json!({"type": "input_json_delta", "partial_json": piece})).collect()
        } else {
            empty["text"] = json!("");
            let lines = block["text"].as_str().unwrap_or_default().split_inclusive('\n');
            lines.map(|line| json!({"type": "text_delta", "text": line})).collect()
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": empty}));
        let delta = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": message["stop_reason"], "stop_sequence": null});
    let usage = json!({"output_tokens": message["usage"]["output_tokens"]});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": usage}));
    events.push(json!({"type": "message_stop"}));
    let print =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    events.iter().map(print).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn post(api: &MessagesApi, path: &str, body: &Value) -> String {
        let mut stream = TcpStream::connect(api.address).unwrap();
        let body = body.to_string();
        write!(stream, "POST {path} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn only_requests_with_tools_reach_the_script() {
        let turns = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&turns);
        let api = MessagesApi::start(move |request| {
            let mut turns = seen.lock().unwrap();
            turns.push(request["messages"].to_string());
            let content = json!([{"type": "text", "text": format!("reply {}", turns.len())},
                {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}]);
            let body = message("m", &request["model"], content.as_array().unwrap().clone());
            let headers = vec![("x-test".into(), "yes".into())];
            Reply { status: 200, headers, body, before_event: None }
        })
        .unwrap();
        let turn = |text: &str| json!({"tools": [{}], "stream": true, "messages": [{"role": "user", "content": text}]});
        assert!(post(&api, "/v1/messages", &json!({"messages": []})).contains("A title"));
        for (text, reply) in [("first", "reply 1"), ("second", "reply 2")] {
            let answer = post(&api, "/v1/messages?beta=true", &turn(text));
            for part in
                [reply, "x-test: yes", "input_json_delta", "\"stop_reason\":\"tool_use\"", "message_stop"]
            {
                assert!(answer.contains(part), "{part}: {answer}");
            }
        }
        assert!(post(&api, "/v1/messages/count_tokens", &json!({})).contains("input_tokens"));
        let turns = turns.lock().unwrap();
        assert!(turns.len() == 2 && turns[1].contains("second"), "{turns:?}");
    }

    #[test]
    fn it_stops_while_a_client_is_silent() {
        let api = MessagesApi::start(|_| Reply {
            status: 500,
            headers: Vec::new(),
            body: json!({}),
            before_event: None,
        })
        .unwrap();
        let mut silent = TcpStream::connect(api.address).unwrap();
        // A later client is answered, so the silent one has been let in.
        post(&api, "/", &json!({}));
        drop(api);
        // It has not waited for the client, which would have been hung up on.
        silent.set_nonblocking(true).unwrap();
        let read = silent.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(read, Err(std::io::ErrorKind::WouldBlock));
    }
}
