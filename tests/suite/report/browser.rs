//! Chromium without a window, driven through its own protocol on two pipes: no driver, no port, no other package.

use crate::env::MAX_WAIT;
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

pub struct Browser {
    child: Child,
    commands: File,
    messages: Receiver<Value>,
    last_id: u64,
    session: String,
    /// What the page did that was no answer to us.
    pub events: Vec<Value>,
    _profile: tempfile::TempDir,
}

const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
];

/// Returns the browser of this machine.
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names.iter().find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file()))
}

impl Browser {
    pub fn start(program: &Path) -> Browser {
        let profile = tempfile::tempdir().unwrap();
        let pipe = |name: &str| {
            let path = profile.path().join(name);
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            path
        };
        let (to, from) = (pipe("to"), pipe("from"));
        let child = Command::new("sh")
            .args(["-c", r#"program=$1; shift; exec "$program" "$@" 3<"$TO" 4>"$FROM""#, "sh"])
            .arg(program)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.path().join("profile").display()))
            .arg("about:blank")
            .env("TO", &to)
            .env("FROM", &from)
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // In the order in which the shell opens them: each waits for the other side.
        let commands = OpenOptions::new().write(true).open(&to).unwrap();
        let answers = File::open(&from).unwrap();
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(answers).split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("a message of the browser is JSON");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Browser {
            child,
            commands,
            messages,
            last_id: 0,
            session: String::new(),
            events: Vec::new(),
            _profile: profile,
        };
        let target = browser.ask("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        browser.session =
            browser.ask("Target.attachToTarget", attach)["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Network", "Runtime", "Log"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Sends a command and waits for its answer.
    pub fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({"id": self.last_id, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.commands.write_all(&bytes).unwrap();
        loop {
            let message = self.next(method);
            if message["id"] == json!(self.last_id) {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    fn next(&self, what: &str) -> Value {
        self.messages.recv_timeout(MAX_WAIT).unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    /// Opens a file and waits until it is loaded.
    pub fn open(&mut self, path: &Path) {
        self.events.clear();
        self.ask("Page.navigate", json!({"url": format!("file://{}", path.display())}));
        let began = Instant::now();
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            assert!(began.elapsed() < MAX_WAIT);
            let event = self.next("load");
            self.events.push(event);
        }
    }

    /// Evaluates an expression in the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let answer = self.ask("Runtime.evaluate", json!({"expression": expression, "returnByValue": true}));
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Clicks the middle of an element, as a user does.
    pub fn click(&mut self, selector: &str) {
        let place = format!(
            "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{block: 'center'}}); \
             const r = e.getBoundingClientRect(); return [r.x + Math.min(r.width / 2, 40), r.y + r.height / 2]; }})()"
        );
        let place = self.value(&place);
        for kind in ["mousePressed", "mouseReleased"] {
            let event =
                json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1});
            self.ask("Input.dispatchMouseEvent", event);
        }
    }

    pub fn prefer(&mut self, scheme: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.ask("Emulation.setEmulatedMedia", json!({"features": [feature]}));
    }

    /// Shows the page as it is printed, to a reader of this scheme.
    pub fn on_paper(&mut self, scheme: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.ask("Emulation.setEmulatedMedia", json!({"media": "print", "features": [feature]}));
    }

    /// Prints the page, and returns on how many sheets.
    pub fn print(&mut self, path: &Path) -> usize {
        let paper = json!({"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": true});
        let data = self.ask("Page.printToPDF", paper)["data"].as_str().unwrap().to_owned();
        let pdf = decode(&data);
        fs::write(path, &pdf).unwrap();
        String::from_utf8_lossy(&pdf).matches("/Type /Page\n").count()
    }

    pub fn size(&mut self, width: u32, height: u32, scale: f64) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": scale, "mobile": false});
        self.ask("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Takes a picture of the top of the page, or of all of it.
    pub fn picture(&mut self, path: &Path, whole: bool) {
        let parameters = json!({"format": "png", "captureBeyondViewport": whole, "optimizeForSpeed": false});
        let mut parameters = parameters;
        if whole {
            let size = self.ask("Page.getLayoutMetrics", json!({}))["cssContentSize"].clone();
            parameters["clip"] =
                json!({"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1});
        }
        let data = self.ask("Page.captureScreenshot", parameters)["data"].as_str().unwrap().to_owned();
        fs::write(path, decode(&data)).unwrap();
    }

    /// Returns what the page asked for beside itself, and what it complained of.
    pub fn offences(&self) -> Vec<String> {
        let mut found = Vec::new();
        for event in &self.events {
            let parameters = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Network.requestWillBeSent" => {
                    let url = parameters["request"]["url"].as_str().unwrap_or_default();
                    if !url.starts_with("file://") || parameters["type"] != "Document" {
                        found.push(format!("requested {url}"));
                    }
                }
                "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded" => {
                    found.push(event.to_string())
                }
                _ => {}
            }
        }
        found
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.commands.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && began.elapsed().as_secs() < 10 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Decodes base64.
fn decode(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for group in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = group.iter().fold(0u32, |bits, byte| bits << 6 | u32::from(digit(*byte)));
        let bits = bits << (6 * (4 - group.len()));
        out.extend(&bits.to_be_bytes()[1..group.len()]);
    }
    out
}
