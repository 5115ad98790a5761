//! A notification service on loopback: a webhook, and an ntfy-like server with topics that can be read.
#![allow(dead_code, reason = "each test crate uses its own part of the support")]

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What a client sent.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub target: String,
    pub headers: Vec<String>,
    pub body: String,
}

impl Request {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// How a request is answered.
#[derive(Clone, Debug)]
pub enum Behaviour {
    Status(u16),
    /// Not at all: the connection stays open until the client closes it.
    Hang,
    /// Elsewhere.
    Redirect(String),
}

#[derive(Default)]
struct Shared {
    requests: Vec<Request>,
    /// What comes before plain success.
    script: VecDeque<Behaviour>,
    /// The messages of the one topic that is read.
    messages: Vec<Value>,
    /// Topics are not answered, either.
    hangs_reads: bool,
    /// Connections that were left open and that the client has closed.
    given_up: usize,
}

pub struct Webhook {
    shared: Arc<Mutex<Shared>>,
    pub base: String,
}

impl Webhook {
    pub fn start() -> Webhook {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let base = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::<Mutex<Shared>>::default();
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&served);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Webhook { shared, base }
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Answers the next requests like this; those after them succeed.
    pub fn then(&self, behaviours: &[Behaviour]) -> &Webhook {
        self.shared.lock().unwrap().script.extend(behaviours.iter().cloned());
        self
    }

    /// Answers no read from here on.
    pub fn hang_reads(&self) {
        self.shared.lock().unwrap().hangs_reads = true;
    }

    /// Returns what was sent, without what was read.
    pub fn posts(&self) -> Vec<Request> {
        self.shared
            .lock()
            .unwrap()
            .requests
            .iter()
            .filter(|request| request.method == "POST")
            .cloned()
            .collect()
    }

    /// Returns the files that were sent.
    pub fn uploads(&self) -> Vec<Request> {
        let shared = self.shared.lock().unwrap();
        shared.requests.iter().filter(|request| request.method == "PUT").cloned().collect()
    }

    /// Returns how often topics were read.
    pub fn polls(&self) -> usize {
        self.shared.lock().unwrap().requests.iter().filter(|request| request.method == "GET").count()
    }

    pub fn given_up(&self) -> usize {
        self.shared.lock().unwrap().given_up
    }

    /// Publishes a message on the topic, as a person does.
    pub fn publish(&self, message: &str) {
        let mut shared = self.shared.lock().unwrap();
        let id = format!("m{}", shared.messages.len());
        shared
            .messages
            .push(json!({"id": id, "time": 1, "event": "message", "topic": "answers", "message": message}));
    }
}

fn serve(mut stream: TcpStream, shared: &Mutex<Shared>) {
    let Some(request) = read(&stream) else { return };
    let (target, is_read) = (request.target.clone(), request.method == "GET");
    let behaviour = {
        let mut shared = shared.lock().unwrap();
        shared.requests.push(request);
        if is_read {
            if shared.hangs_reads { Behaviour::Hang } else { Behaviour::Status(200) }
        } else {
            shared.script.pop_front().unwrap_or(Behaviour::Status(200))
        }
    };
    let (status, extra) = match behaviour {
        Behaviour::Status(status) => (status, String::new()),
        Behaviour::Redirect(to) => (302, format!("Location: {to}\r\n")),
        Behaviour::Hang => {
            let _ = stream.read(&mut [0; 16]);
            shared.lock().unwrap().given_up += 1;
            return;
        }
    };
    let body = if is_read { messages(&target, &shared.lock().unwrap().messages) } else { "{}".into() };
    let _ = write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n{extra}\r\n{body}",
        body.len()
    );
}

/// Returns the messages after `since`, if that is an id, or all.
fn messages(target: &str, messages: &[Value]) -> String {
    let since = target.split("since=").nth(1).and_then(|rest| rest.split('&').next()).unwrap_or_default();
    let seen = messages.iter().position(|message| message["id"] == since).map_or(0, |at| at + 1);
    messages[seen..].iter().map(|message| format!("{message}\n")).collect()
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut words = lines.first()?.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let headers: Vec<String> = lines[1..].to_vec();
    let length = headers.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, target, headers, body: String::from_utf8(body).ok()? })
}
