//! One process of the client or of `ralph run`: its end or its death, and what it printed.
//!
//! The output goes to files instead of pipes, so that a run can be read while it lives and after it was killed,
//! and no forgotten grandchild that still holds a pipe can make a test wait.
#![allow(dead_code, reason = "each test crate uses its own part of the support")]

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use serde_json::Value;

const POLL: Duration = Duration::from_millis(10);

/// A live run; dropping it kills it.
pub struct Running {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
    deadline: Instant,
}

impl Running {
    pub fn start(mut command: Command, folder: &Path, timeout: Duration) -> Self {
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let stdout = folder.join(format!("run-{run}.stdout"));
        let stderr = folder.join(format!("run-{run}.stderr"));
        let child = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(File::create(&stdout).expect("a file for stdout"))
            .stderr(File::create(&stderr).expect("a file for stderr"))
            .spawn()
            .expect("the client starts");
        Self { child, stdout, stderr, deadline: Instant::now() + timeout }
    }

    /// Waits for the end of the process; past the session's timeout it is killed and the test fails.
    pub fn wait(mut self) -> Output {
        loop {
            if let Some(status) = self.child.try_wait().expect("the state of a child process") {
                return self.output(Some(status));
            }
            if Instant::now() > self.deadline {
                let output = self.kill();
                panic!("the client did not end in time\n{}\n{}", output.stdout, output.stderr);
            }
            thread::sleep(POLL);
        }
    }

    /// Waits until the lines printed so far satisfy `enough`.
    pub fn wait_until(&mut self, enough: impl Fn(&Output) -> bool) {
        loop {
            let output = self.output(None);
            if enough(&output) {
                return;
            }
            let ended = self.child.try_wait().expect("the state of a child process").is_some();
            // What was printed between the look at the output and the end counts too.
            if ended && enough(&self.output(None)) {
                return;
            }
            let reason = if ended { "ended" } else { "timed out" };
            let waiting = !ended && Instant::now() < self.deadline;
            assert!(waiting, "the client {reason} too early\n{}\n{}", output.stdout, output.stderr);
            thread::sleep(POLL);
        }
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("the state of a child process").is_some()
    }

    /// Returns what was printed so far.
    pub fn so_far(&self) -> Output {
        self.output(None)
    }

    /// Sends a signal to the process alone, by its name without `SIG`.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = kill(&["-s", name, "--", &pid]).expect("a shell runs");
        assert!(sent.success(), "SIG{name} could not be sent");
    }

    /// Kills the client and its process group without a chance to say goodbye; gives what it had printed.
    /// Hooks and the commands of the Bash tool have process groups of their own and live on, as they would
    /// after a crash.
    pub fn kill(mut self) -> Output {
        let status = self.kill_group();
        self.output(status)
    }

    fn kill_group(&mut self) -> Option<ExitStatus> {
        // After the process was waited for, its number may belong to another process.
        if let Ok(Some(status)) = self.child.try_wait() {
            return Some(status);
        }
        kill_process_group(self.child.id());
        self.child.wait().ok()
    }

    fn output(&self, status: Option<ExitStatus>) -> Output {
        let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        let stdout = read(&self.stdout);
        let events = stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Output { events, stdout, stderr: read(&self.stderr), code: status.and_then(|status| status.code()) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill_group();
    }
}

pub fn kill_process_group(leader: u32) {
    drop(kill(&["-s", "KILL", "--", &format!("-{leader}")]));
}

/// By the shell's own `kill`, since the crate forbids unsafe code and small systems lack the program.
fn kill(args: &[&str]) -> io::Result<ExitStatus> {
    Command::new("sh").args(["-c", "kill \"$@\"", "sh"]).args(args).stderr(Stdio::null()).status()
}

/// What a run printed and how it ended.
#[derive(Debug)]
pub struct Output {
    pub stdout: String,
    pub stderr: String,
    /// `None` for a run that was killed or still lives.
    pub code: Option<i32>,
    /// The lines of the JSON stream.
    pub events: Vec<Value>,
}

impl Output {
    /// What the client told the user besides the answer, for example `Stop says: …`.
    pub fn system_messages(&self) -> Vec<&str> {
        let notices = self.events.iter().filter(|event| event["subtype"] == "informational");
        notices.filter_map(|event| event["content"].as_str()).collect()
    }

    /// The last `result` event: a session that a background task wakes prints more than one.
    pub fn result(&self) -> &Value {
        let result = self.events.iter().rev().find(|event| event["type"] == "result");
        result.unwrap_or_else(|| panic!("no result in\n{}\n{}", self.stdout, self.stderr))
    }

    /// The text of the last result.
    pub fn answer(&self) -> &str {
        self.result()["result"].as_str().unwrap_or_default()
    }

    pub fn session_id(&self) -> &str {
        let id = self.events.iter().find_map(|event| event["session_id"].as_str());
        id.unwrap_or_else(|| panic!("no session id in\n{}\n{}", self.stdout, self.stderr))
    }
}
