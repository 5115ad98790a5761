//! A scripted Messages API on loopback, so that the real Claude Code runs without a key or a network.
//!
//! Every request that carries tools is a turn of the agent and takes the next reply; the last reply repeats
//! forever. Everything else the client asks (titles, token counts, probes) gets a harmless answer and is not
//! recorded. Each connection serves one request, which spares both sides the rules of keep-alive.
#![allow(dead_code, reason = "each test crate uses its own part of the support")]

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

#[path = "messages_wire.rs"]
mod wire;

/// What the agent says in one turn, or how the request for it fails.
#[derive(Clone, Debug)]
pub struct Reply {
    content: Content,
    delay: Duration,
    usage: Value,
    headers: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
enum Content {
    Blocks(Vec<Value>),
    Error(u16),
}

impl Reply {
    pub fn text(text: &str) -> Self {
        Self::blocks(vec![json!({"type": "text", "text": text})])
    }

    pub fn tool(name: &str, input: Value) -> Self {
        Self::blocks(Vec::new()).with_tool(name, input)
    }

    /// Content blocks as the API spells them; a `tool_use` needs no id.
    pub fn blocks(blocks: Vec<Value>) -> Self {
        Self::new(Content::Blocks(blocks))
    }

    pub fn error(status: u16) -> Self {
        Self::new(Content::Error(status))
    }

    /// Adds a tool call after what the reply already says.
    #[must_use]
    #[allow(clippy::needless_pass_by_value, reason = "callers write json!(…) in place")]
    pub fn with_tool(mut self, name: &str, input: Value) -> Self {
        match &mut self.content {
            Content::Blocks(blocks) => {
                blocks.push(json!({"type": "tool_use", "name": name, "input": input}));
            }
            Content::Error(status) => panic!("an error reply ({status}) cannot call a tool"),
        }
        self
    }

    /// Time between the request and the first byte of the reply.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Fields that replace the defaults of the message's `usage`.
    #[must_use]
    pub fn usage(mut self, usage: Value) -> Self {
        self.usage = usage;
        self
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn new(content: Content) -> Self {
        Self { content, delay: Duration::ZERO, usage: json!({}), headers: Vec::new() }
    }
}

/// One turn's request: what the agent was shown.
#[derive(Clone, Debug)]
pub struct Request {
    pub messages: Value,
}

impl Request {
    /// All text of the conversation, tool results included. Hook context may come in a message of role `system`.
    pub fn text(&self) -> String {
        self.messages.as_array().into_iter().flatten().map(message_text).collect::<Vec<_>>().join("\n")
    }

    /// The text of the newest message of role `user`: a prompt, hook feedback or tool results.
    pub fn last_user_text(&self) -> String {
        let mut newest_first = self.messages.as_array().into_iter().flatten().rev();
        newest_first.find(|message| message["role"] == "user").map(message_text).unwrap_or_default()
    }
}

fn message_text(message: &Value) -> String {
    fn collect(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::String(text) => into.push(text.clone()),
            Value::Array(blocks) => blocks.iter().for_each(|block| collect(block, into)),
            Value::Object(block) => {
                for key in ["text", "content"] {
                    block.get(key).into_iter().for_each(|inner| collect(inner, into));
                }
            }
            _ => {}
        }
    }
    let mut texts = Vec::new();
    collect(&message["content"], &mut texts);
    texts.join("\n")
}

/// The running API; it stops when dropped.
pub struct Api {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    script: Vec<Reply>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    requests: Vec<Request>,
    stopped: bool,
}

impl Api {
    pub fn start(script: Vec<Reply>) -> Self {
        assert!(!script.is_empty(), "the script needs at least one reply");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
        let address = listener.local_addr().expect("the address of a bound listener");
        let shared = Arc::new(Shared { script, state: Mutex::default(), changed: Condvar::new() });
        let accepting = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                for stream in listener.incoming() {
                    if shared.lock().stopped {
                        break;
                    }
                    let Ok(stream) = stream else { continue };
                    let shared = Arc::clone(&shared);
                    // A client that was killed or lost interest is part of the tests, not a failure of the API.
                    thread::spawn(move || drop(serve(&shared, &stream)));
                }
            }
        });
        Self { address, shared, accepting: Some(accepting) }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The turns asked for so far, oldest first.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }

    /// Returns as soon as `count` turns were asked for; panics when that takes longer than `timeout`.
    pub fn wait_for_requests(&self, count: usize, timeout: Duration) {
        let missing = |state: &mut State| state.requests.len() < count;
        let (state, waited) = self
            .shared
            .changed
            .wait_timeout_while(self.shared.lock(), timeout, missing)
            .unwrap_or_else(PoisonError::into_inner);
        let seen = state.requests.len();
        drop(state);
        assert!(!waited.timed_out(), "{seen} of {count} requests came within {timeout:?}");
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
        // `accept` has no timeout: a last connection makes it look at the flag.
        let woken = TcpStream::connect(self.address).is_ok();
        if let Some(accepting) = self.accepting.take().filter(|_| woken) {
            drop(accepting.join());
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a turn and gives its number and its reply.
    fn take_turn(&self, request: Request) -> (usize, Reply) {
        let mut state = self.lock();
        let turn = state.requests.len();
        state.requests.push(request);
        self.changed.notify_all();
        (turn, self.script[turn.min(self.script.len() - 1)].clone())
    }

    /// Sleeps, unless the API stops first.
    fn pause(&self, delay: Duration) {
        let running = |state: &mut State| !state.stopped;
        drop(self.changed.wait_timeout_while(self.lock(), delay, running));
    }
}

fn serve(shared: &Shared, stream: &TcpStream) -> io::Result<()> {
    // A connection that never asks anything must not keep its thread for the whole test run.
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let Some(request) = wire::read_request(stream)? else { return Ok(()) };
    let path = request.path.split('?').next().unwrap_or_default();
    match request.method.as_str() {
        "POST" if path.ends_with("/v1/messages") => answer(shared, stream, &request.body),
        "POST" if path.ends_with("/count_tokens") => {
            wire::send_json(stream, 200, &[], &json!({"input_tokens": 10}))
        }
        "POST" => wire::send_json(stream, 200, &[], &json!({})),
        "HEAD" => wire::send_head(stream, 200, &[]),
        _ => wire::send_json(stream, 404, &[], &json!({})),
    }
}

fn answer(shared: &Shared, stream: &TcpStream, body: &Value) -> io::Result<()> {
    let is_turn = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let (id, reply) = if is_turn {
        let (turn, reply) = shared.take_turn(Request { messages: body["messages"].clone() });
        (turn.to_string(), reply)
    } else {
        ("aside".to_owned(), Reply::text("title"))
    };
    shared.pause(reply.delay);
    match &reply.content {
        Content::Error(status) => {
            wire::send_json(stream, *status, &reply.headers, &wire::error_body(*status))
        }
        Content::Blocks(blocks) => {
            let message = wire::message(&id, &body["model"], blocks, &reply.usage);
            if body["stream"] == true {
                wire::send_events(stream, &reply.headers, &wire::events(&message))
            } else {
                wire::send_json(stream, 200, &reply.headers, &message)
            }
        }
    }
}
