//! A program under test while it runs, and what it printed once it has ended.

use super::{Answer, MAX_WAIT, wait_for};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::Value;
use std::io::Read;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

/// A program that runs. Every wait for it is bounded by [`MAX_WAIT`]; dropping it kills it.
pub struct Running {
    child: Child,
    stdout: Stream,
    stderr: Stream,
}

impl Running {
    pub(super) fn new(mut child: Child) -> Running {
        let (stdout, stderr) = (Stream::read(child.stdout.take()), Stream::read(child.stderr.take()));
        Running { child, stdout, stderr }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Kills it without a chance to react, if it still runs.
    pub fn kill(mut self) -> Run {
        self.child.kill().unwrap();
        self.wait()
    }

    /// Waits for the next line on stdout that contains `part`, and returns it.
    pub fn until(&mut self, part: &str) -> String {
        self.stdout.until(part).unwrap_or_else(|why| self.fail(&format!("no '{part}' on stdout: {why}")))
    }

    /// Waits for the next line on stderr that contains `part`, and returns it.
    pub fn until_stderr(&mut self, part: &str) -> String {
        self.stderr.until(part).unwrap_or_else(|why| self.fail(&format!("no '{part}' on stderr: {why}")))
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Returns whether this was printed on stdout so far.
    pub fn has_printed(&self, part: &str) -> bool {
        self.times_printed(part) > 0
    }

    /// Returns how often this was printed on stdout so far.
    pub fn times_printed(&self, part: &str) -> usize {
        self.stdout.text().matches(part).count()
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Run {
        if !(self.stdout.wait_until_closed() && self.stderr.wait_until_closed()) {
            self.fail("it did not end");
        }
        // It may have closed its output and still run.
        wait_for("its end", || self.is_over().then_some(()));
        let cost = Cost::of(self.pid());
        let status: ExitStatus = self.child.wait().unwrap();
        Run { code: status.code(), stdout: self.stdout.text(), stderr: self.stderr.text(), cost }
    }

    /// Returns whether it has ended. The system still knows what it cost, unless that was asked before.
    fn is_over(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), options), Ok(None))
    }

    fn fail(&self, what: &str) -> ! {
        panic!("{what}\n--- stdout\n{}\n--- stderr\n{}", self.stdout.text(), self.stderr.text())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One output of a program, read by a thread so that the program never waits for the test.
struct Stream {
    shared: Arc<(Mutex<Received>, Condvar)>,
    /// The lines before this byte were returned by `until`.
    seen: usize,
}

#[derive(Default)]
struct Received {
    bytes: Vec<u8>,
    closed: bool,
}

impl Stream {
    fn read(pipe: Option<impl Read + Send + 'static>) -> Stream {
        let closed = pipe.is_none();
        let shared = Arc::new((Mutex::new(Received { closed, ..Received::default() }), Condvar::new()));
        if let Some(mut pipe) = pipe {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                let mut buffer = vec![0; 64 << 10];
                loop {
                    let read = pipe.read(&mut buffer).unwrap_or(0);
                    let mut received = shared.0.lock().unwrap();
                    received.bytes.extend_from_slice(&buffer[..read]);
                    received.closed = read == 0;
                    shared.1.notify_all();
                    if read == 0 {
                        return;
                    }
                }
            });
        }
        Stream { shared, seen: 0 }
    }

    fn until(&mut self, part: &str) -> Result<String, &'static str> {
        let deadline = Instant::now() + MAX_WAIT;
        let mut received = self.shared.0.lock().unwrap();
        loop {
            while let Some(end) = received.bytes[self.seen..].iter().position(|byte| *byte == b'\n') {
                let line = &received.bytes[self.seen..self.seen + end];
                self.seen += end + 1;
                let line = str::from_utf8(line).expect("output is text");
                if line.contains(part) {
                    return Ok(line.to_owned());
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if received.closed {
                return Err("the output ended");
            }
            if left.is_zero() {
                return Err("waited long enough");
            }
            received = self.shared.1.wait_timeout(received, left).unwrap().0;
        }
    }

    /// Returns whether the output ended in time.
    fn wait_until_closed(&self) -> bool {
        let received = self.shared.0.lock().unwrap();
        let open = |received: &mut Received| !received.closed;
        !self.shared.1.wait_timeout_while(received, MAX_WAIT, open).unwrap().1.timed_out()
    }

    fn text(&self) -> String {
        String::from_utf8(self.shared.0.lock().unwrap().bytes.clone()).expect("output is text")
    }
}

/// How a program ended, and what it printed.
#[derive(Debug)]
pub struct Run {
    /// `None` if a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    /// `None` where the system does not tell.
    pub cost: Option<Cost>,
}

/// What a program and the programs that it waited for took. Other load on the machine changes little of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    pub read_bytes: u64,
    pub cpu_ms: u64,
}

impl Cost {
    /// Returns what a program took that has ended and was not waited for yet. Only Linux tells.
    fn of(pid: u32) -> Option<Cost> {
        const MS_PER_TICK: u64 = 10;
        let file = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
        let (io, stat) = (file("io")?, file("stat")?);
        let read_bytes = io.lines().find_map(|line| line.strip_prefix("rchar: "))?.parse().ok()?;
        // Its name, which may have spaces, is in parentheses; user and system time are the 14th to 17th field.
        let ticks = stat.rsplit_once(") ")?.1.split(' ').skip(11).take(4);
        let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Some(Cost { read_bytes, cpu_ms: ticks * MS_PER_TICK })
    }
}

impl Run {
    /// Asserts exit code 0 and an empty stderr; returns stdout.
    pub fn ok(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{}", self.stdout);
        self.stdout
    }

    /// Asserts this exit code, a message on stderr and an empty stdout; returns stderr.
    pub fn fails(self, code: i32) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (Some(code), ""), "{}", self.stderr);
        assert!(!self.stderr.trim().is_empty(), "a failure says why");
        self.stderr
    }

    /// Asserts that a hook exited with 0 and printed at most one JSON object and no error; returns its answer.
    pub fn answer(self) -> Answer {
        let stdout = self.ok();
        if stdout.is_empty() {
            return Answer::default();
        }
        let value: Value = serde_json::from_str(&stdout)
            .unwrap_or_else(|error| panic!("a hook prints one JSON object or nothing: {error}\n{stdout}"));
        Answer::parse(&value)
    }
}
