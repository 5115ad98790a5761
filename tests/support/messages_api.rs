//! A script for the Messages API of `claude::round_trip`: each turn of the agent takes the next reply, and the last
//! reply repeats forever.
#![allow(dead_code, reason = "each test crate uses its own part of the support")]

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ralph::claude::round_trip::messages_api::{self, MessagesApi};
use serde_json::{Value, json};

/// What the agent says in one turn, or how the request for it fails.
#[derive(Clone, Debug)]
pub struct Reply {
    content: Content,
    delay: Duration,
    usage: Value,
    headers: Vec<(String, String)>,
    /// What an error says, if not the usual.
    message: Option<String>,
    paced: bool,
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

    /// What the API says in an error.
    #[must_use]
    pub fn message(mut self, message: &str) -> Self {
        self.message = Some(message.to_owned());
        self
    }

    /// Its events come one by one, as far as [`Api::send_events`] lets them.
    #[must_use]
    pub fn paced(mut self) -> Self {
        self.paced = true;
        self
    }

    fn new(content: Content) -> Self {
        let (delay, usage, headers) = (Duration::ZERO, json!({}), Vec::new());
        Self { content, delay, usage, headers, message: None, paced: false }
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
    server: MessagesApi,
    shared: Arc<Shared>,
}

struct Shared {
    script: Vec<Reply>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    requests: Vec<Request>,
    /// The turns after so many wait for their reply.
    answered: usize,
    /// Events of paced replies that were sent or wait, and how many may be sent.
    events: usize,
    allowed_events: usize,
    stopped: bool,
}

impl Api {
    pub fn start(script: Vec<Reply>) -> Self {
        Self::start_holding(script, usize::MAX)
    }

    /// Starts an API that answers the first turns and holds the others back until `answer`: so a test acts in the
    /// middle of a turn, however long that takes.
    pub fn start_holding(script: Vec<Reply>, answered: usize) -> Self {
        assert!(!script.is_empty(), "the script needs at least one reply");
        let state = Mutex::new(State {
            requests: Vec::new(),
            answered,
            events: 0,
            allowed_events: 0,
            stopped: false,
        });
        let shared = Arc::new(Shared { script, state, changed: Condvar::new() });
        let answering = Arc::clone(&shared);
        let server = MessagesApi::start(move |body| answering.answer(body)).expect("a free port on loopback");
        Self { server, shared }
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The turns requested so far, oldest first.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }

    /// Lets the first turns be answered up to this number.
    pub fn answer(&self, count: usize) {
        self.shared.lock().answered = count;
        self.shared.changed.notify_all();
    }

    /// Lets the events of paced replies be sent up to this number, counted over all of them.
    pub fn send_events(&self, count: usize) {
        self.shared.lock().allowed_events = count;
        self.shared.changed.notify_all();
    }

    pub fn answer_all(&self) {
        self.answer(usize::MAX);
    }

    /// Returns as soon as `count` turns were requested; panics if that takes longer than `timeout`.
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
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the next event of a paced reply may be sent.
    fn wait_for_event(&self) {
        let mut state = self.lock();
        state.events += 1;
        let number = state.events;
        drop(self.changed.wait_while(state, |state| number > state.allowed_events && !state.stopped));
    }

    /// Records a turn and returns its reply, after its delay.
    fn answer(self: &Arc<Self>, body: &Value) -> messages_api::Reply {
        let (turn, reply) = {
            let mut state = self.lock();
            let turn = state.requests.len();
            state.requests.push(Request { messages: body["messages"].clone() });
            self.changed.notify_all();
            (turn, self.script[turn.min(self.script.len() - 1)].clone())
        };
        let held = |state: &mut State| turn >= state.answered && !state.stopped;
        drop(self.changed.wait_while(self.lock(), held));
        let running = |state: &mut State| !state.stopped;
        drop(self.changed.wait_timeout_while(self.lock(), reply.delay, running));
        let (status, body) = match reply.content {
            Content::Error(status) => (status, error_body(status, reply.message)),
            Content::Blocks(blocks) => {
                let mut message = messages_api::message(&turn.to_string(), &body["model"], blocks);
                for (name, count) in reply.usage.as_object().into_iter().flatten() {
                    message["usage"][name] = count.clone();
                }
                (200, message)
            }
        };
        let shared = Arc::clone(self);
        let before_event = reply.paced.then(|| Box::new(move || shared.wait_for_event()) as Box<dyn Fn()>);
        messages_api::Reply { status, headers: reply.headers, body, before_event }
    }
}

fn error_body(status: u16, message: Option<String>) -> Value {
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
    let message = message.unwrap_or_else(|| format!("scripted {status}"));
    json!({"type": "error", "error": {"type": kind, "message": message}})
}
