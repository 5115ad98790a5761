//! Scripted agents for `ralph run`, and a run as another terminal sees it.

use crate::env::{Call, Env, Program, Run};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Every agent counts its starts, keeps its prompt, and lies beside the project, so that nothing of that is work.
pub const PREAMBLE: &str = r#"n=$(( $(cat ../n 2>/dev/null || echo 0) + 1 )); echo $n > ../n
cat > ../prompt-$n
work() { echo "$n" >> work.txt; }
commit() { mkdir -p .git/refs/heads; printf '%040x' "$n" > .git/refs/heads/main; }
promise() { printf '<promise>%s</promise>\n' "$1"; }
"#;

/// What the client prints, one function an event.
pub const CLIENT: &str = r#"text() { printf '{"type":"assistant","message":{"content":[{"type":"text","text":"%s"}]},"session_id":"s-1"}\n' "$1"; }
tool() { printf '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"%s"}}]},"session_id":"s-1"}\n' "$1"; }
result() { printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","total_cost_usd":%s,"usage":{"input_tokens":10,"output_tokens":5},"session_id":"s-1"}\n' "$1" "${2:-0.5}"; }
limit() { printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s},"session_id":"s-1"}\n' "$1"
  printf '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"limit","total_cost_usd":0.1,"usage":{"output_tokens":3},"session_id":"s-1"}\n'; exit 1; }
error() { printf '{"type":"result","subtype":"success","is_error":true,"api_error_status":%s,"result":"API Error","total_cost_usd":0.1,"usage":{"output_tokens":3},"session_id":"s-1"}\n' "$1"; exit 1; }
"#;

impl Env {
    /// A run with an agent that prints text: `script` is what it does each time.
    pub fn run_with(&self, script: &str, flags: &[&str]) -> Call {
        fs::write(self.base.join("agent.sh"), format!("{PREAMBLE}{script}\n:\n")).unwrap();
        let args = ["run", "--agent-command", "exec sh ../agent.sh"];
        self.call(Program::Ralph).var("RALPH_RUN_DELAY_SECONDS", "0").args(&args).args(flags)
    }

    /// A run with a client of Claude Code's kind.
    pub fn run_claude(&self, script: &str, flags: &[&str]) -> Call {
        let path = self.base.join("claude.sh");
        let version = "#!/bin/sh\n[ \"$1\" = --version ] && { echo '2.1.325 (Claude Code)'; exit; }\n";
        let told = "echo \"$@\" >> ../args\n";
        fs::write(&path, format!("{version}{told}{PREAMBLE}{CLIENT}{script}\n:\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self.call(Program::Ralph)
            .var("RALPH_RUN_DELAY_SECONDS", "0")
            .args(&["run", "--claude", "../claude.sh"])
            .args(flags)
    }

    /// What the agent was given the nth time.
    pub fn prompt(&self, n: u32) -> String {
        let path = self.base.join(format!("prompt-{n}"));
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// How often the agent was started.
    pub fn starts(&self) -> u32 {
        fs::read_to_string(self.base.join("n")).map_or(0, |text| text.trim().parse().unwrap())
    }

    /// The summary without its header, each row cut at its commas.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let text = self.read("ralph/logs/summary.csv");
        assert!(text.ends_with('\n'), "no torn row: {text}");
        text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
    }

    /// The outcomes in the summary.
    pub fn outcomes(&self) -> Vec<String> {
        self.rows().into_iter().map(|row| row[8].clone()).collect()
    }

    /// Processes of this world that live: everything that was started in it inherits its data folder.
    pub fn processes(&self) -> Vec<String> {
        let wanted = format!("RALPH_DATA_DIR={}", self.data().display());
        let has = |pid: &str| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
        };
        let pids = crate::env::names_in("/proc".as_ref()).into_iter().filter(|pid| has(pid));
        pids.map(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " "))
        })
        .collect()
    }

    /// Within a moment nothing of this world runs any more.
    pub fn nothing_runs(&self) {
        let began = Instant::now();
        while !self.processes().is_empty() {
            assert!(began.elapsed() < Duration::from_secs(8), "left running: {:#?}", self.processes());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for a file beside the project, and gives its text.
    pub fn awaits(&self, name: &str) -> String {
        let began = Instant::now();
        loop {
            match fs::read_to_string(self.base.join(name)) {
                Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
                _ => assert!(began.elapsed() < PATIENCE, "{name} did not come"),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A run that goes on.
pub struct Live {
    child: Child,
    lines: Receiver<String>,
    seen: String,
    errors: JoinHandle<String>,
}

impl Call {
    pub fn live(self) -> Live {
        Live::of(self.spawn().child)
    }

    /// The same with somebody at the keyboard.
    pub fn live_typed(self) -> (Live, fs::File) {
        let (child, keyboard) = self.typed();
        (Live::of(child), keyboard)
    }
}

impl Live {
    fn of(mut child: Child) -> Live {
        let (sender, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines() {
                sender.send(line.expect("stdout is text")).unwrap_or(());
            }
        });
        let mut pipe = child.stderr.take().unwrap();
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            pipe.read_to_string(&mut text).expect("stderr is text");
            text
        });
        Live { child, lines, seen: String::new(), errors }
    }

    /// Waits for a line that holds this.
    pub fn until(&mut self, part: &str) -> String {
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                panic!("'{part}' was not said, but:\n{}", self.seen)
            };
            self.seen.push_str(&format!("{line}\n"));
            if line.contains(part) {
                return line;
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end.
    pub fn end(mut self) -> Run {
        let status = self.child.wait().unwrap();
        self.seen.extend(self.lines.iter().map(|line| format!("{line}\n")));
        Run { code: status.code(), stdout: self.seen, stderr: self.errors.join().unwrap() }
    }

    /// Ends within this time.
    pub fn ends_within(self, limit: Duration) -> Run {
        let began = Instant::now();
        let run = self.end();
        assert!(began.elapsed() < limit, "after {:?}: {run:?}", began.elapsed());
        run
    }
}

/// A row of the table at the end.
pub fn told<'r>(run: &'r Run, label: &str) -> &'r str {
    let label = format!("{label}:");
    let row = run.stdout.lines().rfind(|line| line.starts_with(&label));
    row.unwrap_or_else(|| panic!("no {label} in {run:?}"))[label.len()..].trim()
}
