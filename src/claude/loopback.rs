//! A model on loopback that says what it was told to: with it the real client runs a loop without a key, without
//! the network and without cost. It ends when it is dropped.
//!
//! A request that carries tools is a turn of the agent and takes the next reply, the last one again and again;
//! whatever else the client asks gets a harmless answer. Each connection serves one request.

use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

const LARGEST_BODY: u64 = 32 << 20;
const LARGEST_HEAD: u64 = 256 << 10;
const PATIENCE: Duration = Duration::from_secs(10);

pub struct Loopback {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    replies: Vec<String>,
    /// The messages of each turn that was asked for.
    turns: Mutex<Vec<String>>,
    over: AtomicBool,
}

impl Loopback {
    pub fn start(replies: &[&str]) -> io::Result<Loopback> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let replies = replies.iter().map(|&reply| reply.to_owned()).collect();
        let shared = Arc::new(Shared { replies, turns: Mutex::default(), over: AtomicBool::new(false) });
        let serving = Arc::clone(&shared);
        let accepting = Builder::new().spawn(move || {
            for stream in listener.incoming() {
                if serving.over.load(Ordering::Acquire) {
                    return;
                }
                let (Ok(stream), shared) = (stream, Arc::clone(&serving)) else { continue };
                // Who hangs up in mid-sentence has lost interest.
                let _ = Builder::new().spawn(move || drop(serve(&shared, &stream)));
            }
        })?;
        Ok(Loopback { address, shared, accepting: Some(accepting) })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What the agent was shown at each turn, as JSON text.
    pub fn turns(&self) -> Vec<String> {
        self.shared.turns.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        // Nothing else wakes a thread that accepts.
        let woken = TcpStream::connect_timeout(&self.address, PATIENCE).is_ok();
        if let Some(accepting) = self.accepting.take().filter(|_| woken) {
            let _ = accepting.join();
        }
    }
}

fn serve(shared: &Shared, stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (method, path, body) = read(stream)?;
    let path = path.split('?').next().unwrap_or_default();
    match method.as_str() {
        "POST" if path.ends_with("/v1/messages") => answer(shared, stream, &body),
        "POST" if path.ends_with("/count_tokens") => send_json(stream, 200, &json!({"input_tokens": 10})),
        "POST" => send_json(stream, 200, &json!({})),
        "HEAD" => send(stream, 200, "application/json", b""),
        _ => send_json(stream, 404, &json!({})),
    }
}

fn read(stream: &TcpStream) -> io::Result<(String, String, Value)> {
    let mut reader = BufReader::new(stream).take(LARGEST_HEAD);
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
    if length > LARGEST_BODY {
        return Err(io::Error::other("too much"));
    }
    reader.set_limit(length);
    let mut body = Vec::new();
    reader.read_to_end(&mut body)?;
    Ok((method, path, serde_json::from_slice(&body).unwrap_or_default()))
}

fn answer(shared: &Shared, stream: &TcpStream, body: &Value) -> io::Result<()> {
    let is_turn = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let reply = if is_turn {
        let mut turns = shared.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.push(body["messages"].to_string());
        shared.replies.get(turns.len() - 1).or(shared.replies.last()).cloned().unwrap_or_default()
    } else {
        "A title".into()
    };
    let message = json!({
        "id": "msg_loopback", "type": "message", "role": "assistant", "model": body["model"],
        "content": [{"type": "text", "text": reply}], "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    });
    if body["stream"] != true {
        return send_json(stream, 200, &message);
    }
    send(stream, 200, "text/event-stream", events(&message, &reply).as_bytes())
}

/// The message as the client wants it piece by piece.
fn events(message: &Value, reply: &str) -> String {
    let mut opening = message.clone();
    opening["content"] = json!([]);
    opening["stop_reason"] = Value::Null;
    let events = [
        json!({"type": "message_start", "message": opening}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": reply}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
            "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ];
    let one =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    events.iter().map(one).collect()
}

fn send_json(stream: &TcpStream, status: u16, body: &Value) -> io::Result<()> {
    send(stream, status, "application/json", body.to_string().as_bytes())
}

fn send(mut stream: &TcpStream, status: u16, kind: &str, body: &[u8]) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status} Loopback\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(model: &Loopback, path: &str, body: &Value) -> String {
        let mut stream = TcpStream::connect(model.address).unwrap();
        let body = body.to_string();
        write!(stream, "POST {path} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut told = String::new();
        stream.read_to_string(&mut told).unwrap();
        told
    }

    #[test]
    fn turns_take_their_replies_in_order_and_asides_none() {
        let model = Loopback::start(&["one", "two"]).unwrap();
        let turn = |text: &str| json!({"tools": [{}], "stream": true, "messages": [{"role": "user", "content": text}]});
        assert!(post(&model, "/v1/messages", &json!({"messages": []})).contains("A title"));
        for (text, reply) in [("first", "one"), ("second", "two"), ("third", "two")] {
            let told = post(&model, "/v1/messages?beta=true", &turn(text));
            assert!(
                told.contains(&format!("\"text\":\"{reply}\"")) && told.contains("message_stop"),
                "{told}"
            );
        }
        assert!(post(&model, "/v1/messages/count_tokens", &json!({})).contains("input_tokens"));
        let turns = model.turns();
        assert_eq!(turns.len(), 3);
        assert!(turns[1].contains("second"), "{turns:?}");
    }

    #[test]
    fn it_ends_at_once_though_somebody_says_nothing() {
        let model = Loopback::start(&["x"]).unwrap();
        let _silent = TcpStream::connect(model.address).unwrap();
        let began = std::time::Instant::now();
        drop(model);
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}
