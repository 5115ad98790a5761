//! Scripted agents for `ralph run`, and the processes and records they leave.

use crate::env::{Call, Env, Program, Run, names_in, wait_for, wait_until, write_program};
use std::fs;
use std::path::PathBuf;

/// What every agent has. Its files are beside the project, so that they are not its work: `n` counts its starts,
/// `prompt-N` is the prompt it was given. `wait_for NAME` blocks until the test creates that file.
pub const PREAMBLE: &str = r#"n=$(( $(cat ../n 2>/dev/null || echo 0) + 1 )); echo $n > ../n
cat > ../prompt-$n
work() { echo "$n" >> work.txt; }
commit() { mkdir -p .git/refs/heads; printf '%040x' "$n" > .git/refs/heads/main; }
promise() { printf '<promise>%s</promise>\n' "$1"; }
wait_for() { until [ -e "../$1" ]; do sleep 0.02; done; }
"#;

/// The events that the client prints, a function each.
pub const CLIENT: &str = r#"text() { printf '{"type":"assistant","message":{"content":[{"type":"text","text":"%s"}]},"session_id":"s-1"}\n' "$1"; }
tool() { printf '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"%s"}}]},"session_id":"s-1"}\n' "$1"; }
result() { printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","total_cost_usd":%s,"usage":{"input_tokens":10,"output_tokens":5},"session_id":"s-1"}\n' "$1" "${2:-0.5}"; }
limit() { printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s},"session_id":"s-1"}\n' "$1"
  printf '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"limit","total_cost_usd":0.1,"usage":{"output_tokens":3},"session_id":"s-1"}\n'; exit 1; }
error() { printf '{"type":"result","subtype":"success","is_error":true,"api_error_status":%s,"result":"API Error","total_cost_usd":0.1,"usage":{"output_tokens":3},"session_id":"s-1"}\n' "$1"; exit 1; }
"#;

/// `docker inspect` and `docker exec`, without a container.
const DOCKER: &str = r#"#!/bin/sh
verb=$1; shift
[ "$verb" = inspect ] && { echo true; exit; }
while [ "${1#-}" != "$1" ]; do
  case $1 in -e) export "$2"; shift;; -w) shift;; esac
  shift
done
shift
exec "$@"
"#;

impl Env {
    /// Returns a run with an agent that prints text: `script` is what it does in each iteration.
    pub fn run_with(&self, script: &str, flags: &[&str]) -> Call {
        fs::write(self.base.join("agent.sh"), format!("{PREAMBLE}{script}\n:\n")).unwrap();
        let args = ["run", "--agent-command", "exec sh ../agent.sh"];
        self.call(Program::Ralph).var("RALPH_RUN_DELAY_SECONDS", "0").args(&args).args(flags)
    }

    /// Returns a run with an agent that prints the events of Claude Code.
    pub fn run_claude(&self, script: &str, flags: &[&str]) -> Call {
        let path = self.base.join("claude.sh");
        let version = "#!/bin/sh\n[ \"$1\" = --version ] && { echo '2.1.325 (Claude Code)'; exit; }\n";
        let arguments = "echo \"$@\" >> ../args\n";
        write_program(&path, &format!("{version}{arguments}{PREAMBLE}{CLIENT}{script}\n:\n"));
        self.call(Program::Ralph)
            .var("RALPH_RUN_DELAY_SECONDS", "0")
            .args(&["run", "--claude", "../claude.sh"])
            .args(flags)
    }

    /// Puts a docker on `PATH` that has one running container, which is this machine.
    pub fn fake_docker(&self) {
        let bin = self.base.join("bin");
        fs::create_dir_all(&bin).unwrap();
        write_program(&bin.join("docker"), DOCKER);
        self.var("PATH", &format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
    }

    /// Creates a file beside the project; agents block on it with `wait_for`.
    pub fn touch(&self, name: &str) {
        fs::write(self.base.join(name), "").unwrap();
    }

    /// Waits for a file beside the project that holds at least a whole line, and returns its text.
    pub fn wait_for_file(&self, name: &str) -> String {
        wait_for(name, || {
            let text = fs::read_to_string(self.base.join(name)).ok()?;
            text.ends_with('\n').then(|| text.trim().to_owned())
        })
    }

    /// Returns the prompt of the agent's nth start.
    pub fn prompt(&self, n: u32) -> String {
        let path = self.base.join(format!("prompt-{n}"));
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Returns the file in the user's data folder that names the runner of this project.
    pub fn run_record(&self) -> PathBuf {
        let root = self.project.as_os_str().as_encoded_bytes();
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = root.iter().fold(0xcbf2_9ce4_8422_2325, step);
        let name = self.project.file_name().unwrap().to_str().unwrap();
        self.data().join(format!("runs/{name}-{hash:016x}.json"))
    }

    /// Returns how often the agent was started.
    pub fn starts(&self) -> u32 {
        fs::read_to_string(self.base.join("n")).map_or(0, |text| text.trim().parse().unwrap_or(0))
    }

    /// Returns the rows of the summary without its header, each split at its commas.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let text = self.read("ralph/logs/summary.csv");
        assert!(text.ends_with('\n'), "no torn row: {text}");
        text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
    }

    /// Returns the outcomes in the summary.
    pub fn outcomes(&self) -> Vec<String> {
        self.rows().into_iter().map(|row| row[8].clone()).collect()
    }

    /// Returns the live processes of this world: everything started in it inherits its data folder. A process that
    /// was killed and has not been scheduled since is dead.
    pub fn processes(&self) -> Vec<String> {
        let wanted = format!("RALPH_DATA_DIR={}", self.data().display());
        let lives = |pid: &String| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
                && !is_killed(pid)
        };
        let pids = names_in("/proc".as_ref()).into_iter().filter(lives);
        pids.map(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " "))
        })
        .collect()
    }

    /// Waits until no process of this world is left.
    pub fn wait_until_nothing_runs(&self) {
        wait_until("no process is left", || self.processes().is_empty());
    }
}

/// Returns whether SIGKILL is on its way to the process.
fn is_killed(pid: &str) -> bool {
    const SIGKILL: u64 = 1 << 8;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let masks =
        status.lines().filter_map(|line| line.strip_prefix("SigPnd:").or(line.strip_prefix("ShdPnd:")));
    masks.into_iter().any(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & SIGKILL != 0))
}

/// Returns a row of the table that a run prints at its end.
pub fn summary<'r>(run: &'r Run, label: &str) -> &'r str {
    let label = format!("{label}:");
    let row = run.stdout.lines().rfind(|line| line.starts_with(&label));
    row.unwrap_or_else(|| panic!("no {label} in {run:?}"))[label.len()..].trim()
}
