//! What the scanner costs, as ratios measured side by side in one run.
//!
//! `cargo bench --bench scan` prints the table. `RALPH_BENCH_ROUNDS` sets how many rounds are timed, and
//! `RALPH_BENCH_PROGRAMS` a folder with other programs to measure in place of those just built.
//!
//! The tree has 50,000 files in a git repository: mostly sources, some settings, prose and pictures, every
//! fourth folder one of tests. Every Stop is a real one of a running loop whose transcript gained a turn, and
//! its answer is checked. A warm one compares the fingerprint of every file.
//! Pairs are timed right after each other; a ratio is the median over all pairs, which survives a busy machine.
//! Time is never asserted: a ratio over its limit is printed as OVER.

mod shared;

use serde_json::{Value, json};
use shared::{Outcome, median, shipped};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

const SESSION: &str = "5f0c4f7e-2b4d-4f0a-9c1e-0d7b6a5e4f31";
const ROUNDS: usize = 21;
const LAST_WORDS: &str = "The range check is right now, and its test passes.";
/// A file that changed just before a scan is compared by content, and a benchmark makes everything just now.
const SETTLING: Duration = Duration::from_secs(1);
/// The words that the built-in rules look for.
const PATTERNS: &str = "(?i)generated (by|from|file|code)|(automatically |auto-?)generated|(is|was) generated|\
    @generated|(do not|don't|never) (hand-?|manually |directly )?(edit|modify|change|alter|touch)|\
    not be (edited|modified)|(changes|edits) will be|-----BEGIN |PRIVATE KEY|/home/[\\w.-]+/|/Users/[\\w.-]+/|\
    :\\\\+Users\\\\+[\\w.-]+|cd /(opt|srv|mnt|data|var/www|home|Users)/";

fn main() -> ExitCode {
    shared::main("scan", |out| run(out).map(|()| true))
}

fn run(out: &mut impl Write) -> Outcome<()> {
    let rounds = shared::rounds(ROUNDS);
    let dir = tempfile::Builder::new().prefix("ralph-scan-").tempdir()?;
    let big = World::new(dir.path().join("big"), 50_000)?;
    let small = World::new(dir.path().join("small"), 100)?;
    let huge = World::new(dir.path().join("huge"), 1)?;
    File::create(huge.project().join("huge.toml"))?.set_len(2 << 30)?;
    std::thread::sleep(SETTLING);
    for world in [&big, &small] {
        world.start()?;
        for _ in 0..3 {
            world.stop(Tool::Bash, Scanning::On)?;
        }
    }

    let rg = find_program("rg");
    let (mut lines, cold_rounds) = (Vec::new(), rounds.div_ceil(3));
    let mut pair = |name, limit, rounds, ours: &dyn Fn() -> Outcome<Duration>, theirs: &dyn Fn() -> _| {
        lines.push(measure(name, limit, rounds, ours, theirs)?);
        Outcome::Ok(())
    };
    pair(
        "warm Stop, 50,000 files / git ls-files",
        1.5,
        rounds,
        &|| big.stop(Tool::Bash, Scanning::On),
        &|| timed(big.git_ls_files()).map(|(took, _)| took),
    )?;
    pair("warm ralph scan, 50,000 files / git ls-files", 2.0, rounds, &|| big.scan(), &|| {
        timed(big.git_ls_files()).map(|(took, _)| took)
    })?;
    pair(
        "Stop after reading, 50,000 files / no scan",
        2.0,
        rounds,
        &|| big.stop(Tool::Read, Scanning::On),
        &|| big.stop(Tool::Read, Scanning::Off),
    )?;
    pair(
        "warm Stop, 100 files / no scan",
        1.5,
        3 * rounds,
        &|| small.stop(Tool::Bash, Scanning::On),
        &|| small.stop(Tool::Bash, Scanning::Off),
    )?;
    if let Some(rg) = &rg {
        pair("cold scan, 50,000 files / rg", 2.0, cold_rounds, &|| big.cold_scan(), &|| {
            timed(big.rg(rg)).map(|(took, _)| took)
        })?;
    }

    writeln!(out, "\nThe scanner, {rounds} interleaved rounds, files in {}\n", dir.path().display())?;
    writeln!(out, "{:<44} {:>7} {:>6}      {:>10} {:>10}", "", "ratio", "limit", "ours", "theirs")?;
    for line in &lines {
        writeln!(out, "{line}")?;
    }
    if rg.is_none() {
        writeln!(out, "cold scan against rg: left out, ripgrep is not installed (cargo install ripgrep)")?;
    }
    writeln!(out)?;
    big.cold_scan()?;
    big.stop(Tool::Bash, Scanning::On)?;
    memory(out, "warm Stop, 50,000 files", || big.stop_command(Tool::Bash, Scanning::On))?;
    memory(out, "warm Stop, 100 files", || small.stop_command(Tool::Bash, Scanning::On))?;
    memory(out, "scan with a file of 2 GB", || Ok(huge.scan_command()))?;
    writeln!(out, "OVER only warns: time is never asserted.")?;
    Ok(())
}

fn measure(
    name: &str,
    limit: f64,
    rounds: usize,
    ours: &dyn Fn() -> Outcome<Duration>,
    theirs: &dyn Fn() -> Outcome<Duration>,
) -> Outcome<String> {
    let mut pairs = Vec::new();
    for round in 0..rounds {
        // Each side comes first in turn: what the first one leaves behind helps or hurts both alike.
        pairs.push(if round % 2 == 0 {
            let ours = ours()?;
            (ours, theirs()?)
        } else {
            let theirs = theirs()?;
            (ours()?, theirs)
        });
    }
    let ratio = median(pairs.iter().map(|(ours, theirs)| ours.as_secs_f64() / theirs.as_secs_f64()));
    let [ours, theirs] = [
        median(pairs.iter().map(|(ours, _)| ours.as_secs_f64() * 1e3)),
        median(pairs.iter().map(|(_, theirs)| theirs.as_secs_f64() * 1e3)),
    ];
    let verdict = if ratio > limit { "OVER" } else { "ok" };
    Ok(format!("{name:<44} {ratio:>7.2} {limit:>6.2} {verdict:<4} {ours:>7.2} ms {theirs:>7.2} ms"))
}

fn timed(mut command: Command) -> Outcome<(Duration, Output)> {
    let began = Instant::now();
    let output = command.output()?;
    Ok((began.elapsed(), output))
}

/// The most memory a program held, told by GNU time.
fn memory(out: &mut impl Write, name: &str, command: impl FnOnce() -> Outcome<Command>) -> Outcome<()> {
    let inner = command()?;
    let mut command = Command::new("/usr/bin/time");
    command.args(["-f", "peak-kb=%M"]).arg(inner.get_program()).args(inner.get_args()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(inner.get_current_dir().unwrap_or(Path::new(".")));
    let input = inner.get_current_dir().and_then(Path::parent).map(|dir| dir.join("stop.json"));
    if let Some(input) = input.and_then(|path| File::open(path).ok()) {
        command.stdin(input);
    }
    let Ok(output) = command.output() else {
        return Ok(writeln!(out, "memory, {name}: not known, /usr/bin/time is missing")?);
    };
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let peak = told.lines().find_map(|line| line.strip_prefix("peak-kb=")?.trim().parse::<f64>().ok());
    let peak = peak.map_or_else(|| "not told".to_owned(), |peak| format!("{:.1} MB", peak / 1024.0));
    Ok(writeln!(out, "memory, {name}: {peak}")?)
}

fn find_program(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(|path| path.is_file())
}

#[derive(Clone, Copy)]
enum Tool {
    Bash,
    Read,
}

#[derive(Clone, Copy)]
enum Scanning {
    On,
    Off,
}

/// A user and a project of their own; nothing is inherited.
struct World {
    dir: PathBuf,
}

impl World {
    fn new(dir: PathBuf, files: usize) -> Outcome<World> {
        for part in ["home", "data", "config", "off", "project"] {
            fs::create_dir_all(dir.join(part))?;
        }
        fs::write(dir.join("off/config.json"), json!({"scan": {"enabled": false}}).to_string())?;
        let world = World { dir };
        plant(&world.project(), files)?;
        for arguments in [&["init", "-q", "."][..], &["add", "-A"]] {
            let output = world.command(Path::new("git"), Scanning::On).args(arguments).output()?;
            if !output.status.success() {
                return Err(format!("git: {}", String::from_utf8_lossy(&output.stderr)).into());
            }
        }
        Ok(world)
    }

    fn project(&self) -> PathBuf {
        self.dir.join("project")
    }

    fn state(&self) -> PathBuf {
        self.project().join(".claude/ralph-state.json")
    }

    fn command(&self, program: &Path, scanning: Scanning) -> Command {
        let config = match scanning {
            Scanning::On => "config",
            Scanning::Off => "off",
        };
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.dir.join("home"))
            .env("RALPH_DATA_DIR", self.dir.join("data"))
            .env("RALPH_CONFIG_DIR", self.dir.join(config))
            .env("CLAUDE_PROJECT_DIR", self.project())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            // Every turn here is the same: all of it is counted, none of it ends the loop.
            .env("RALPH_CIRCUIT_REPETITION", "0")
            .env("RALPH_CIRCUIT_STAGNATION", "0")
            .stdin(Stdio::null())
            .current_dir(self.project());
        command
    }

    fn start(&self) -> Outcome<()> {
        let mut command = self.command(&shipped("ralph"), Scanning::On);
        command.args(["start", "--session", SESSION, "--max-iterations", "20000", "--max-hours", "0"]);
        let output = command.arg("Make the test suite green.").output()?;
        if !output.status.success() {
            return Err(format!("ralph start: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        fs::copy(self.state(), self.dir.join("state.json"))?;
        Ok(())
    }

    /// A Stop as the client calls it, after a turn that used this tool.
    fn stop_command(&self, tool: Tool, scanning: Scanning) -> Outcome<Command> {
        let transcript = self.dir.join("session.jsonl");
        File::options().create(true).append(true).open(&transcript)?.write_all(turn(tool).as_bytes())?;
        let input = self.dir.join("stop.json");
        let event = json!({
            "session_id": SESSION, "transcript_path": transcript, "cwd": self.project(),
            "permission_mode": "default", "hook_event_name": "Stop", "stop_hook_active": true,
            "last_assistant_message": LAST_WORDS, "background_tasks": [], "session_crons": [],
        });
        fs::write(&input, event.to_string())?;
        let mut command = self.command(&shipped("ralph-stop-hook"), scanning);
        command.stdin(File::open(input)?);
        Ok(command)
    }

    fn stop(&self, tool: Tool, scanning: Scanning) -> Outcome<Duration> {
        let (took, output) = timed(self.stop_command(tool, scanning)?)?;
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        if answer["decision"] != "block" {
            return Err(format!("the hook answered {}", String::from_utf8_lossy(&output.stdout)).into());
        }
        Ok(took)
    }

    fn git_ls_files(&self) -> Command {
        let mut command = self.command(Path::new("git"), Scanning::On);
        command.args(["ls-files", "-co", "--exclude-standard"]).stdout(Stdio::null());
        command
    }

    fn scan_command(&self) -> Command {
        let mut command = self.command(&shipped("ralph"), Scanning::On);
        command.args(["scan", "--ndjson"]);
        command
    }

    /// A scan without a snapshot; the files themselves are in the page cache.
    fn cold_scan(&self) -> Outcome<Duration> {
        fs::remove_dir_all(self.dir.join("data/scan"))?;
        self.scan()
    }

    fn scan(&self) -> Outcome<Duration> {
        let (took, output) = timed(self.scan_command())?;
        if !String::from_utf8_lossy(&output.stdout).contains("\"complete\":true") {
            return Err(format!("ralph scan: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        Ok(took)
    }

    fn rg(&self, rg: &Path) -> Command {
        let mut command = self.command(rg, Scanning::On);
        command
            .args(["--hidden", "--glob", "!.git", "--count", "--regexp", PATTERNS, "."])
            .stdout(Stdio::null());
        command
    }
}

/// So many files, fifty in a folder.
fn plant(root: &Path, files: usize) -> std::io::Result<()> {
    const KINDS: [&str; 20] = [
        "rs", "ts", "tsx", "py", "go", "java", "c", "h", "js", "rs", "ts", "cpp", "kt", "css", "sql", "json",
        "yaml", "md", "svg", "png",
    ];
    for number in 0..files {
        let folder = number / 50;
        let kind = if folder % 4 == 3 { "tests" } else { "src" };
        let path =
            root.join(format!("area{}/part{}/{kind}/unit{}", folder / 100, folder / 10 % 10, folder % 10));
        if number % 50 == 0 {
            fs::create_dir_all(&path)?;
        }
        let text = format!("// Unit {number}: what it owes its callers.\n").repeat(1 + number % 40);
        fs::write(path.join(format!("file_{number}.{}", KINDS[number % KINDS.len()])), text)?;
    }
    fs::write(root.join(".gitignore"), "target/\n*.log\n")
}

/// One turn in the client's form: our prompt, a tool call with its result, the last word.
fn turn(tool: Tool) -> String {
    let (name, input) = match tool {
        Tool::Bash => ("Bash", json!({"command": "cargo test 2>&1 | tail -40"})),
        Tool::Read => ("Read", json!({"file_path": "src/lib.rs"})),
    };
    let at = ralph::core::time::Stamp(
        SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(0)),
    );
    let unique = at.0;
    let entry = |kind: &str, content: Value| {
        let message = json!({
            "id": format!("msg_{unique}"), "role": kind, "content": content,
            "usage": {"input_tokens": 12, "output_tokens": 211},
        });
        let fields = json!({
            "parentUuid": null, "isSidechain": false, "message": message, "type": kind,
            "uuid": "95b91509-38e5-40ef-89d8-b1dbf452f79e", "timestamp": at.rfc3339(), "sessionId": SESSION,
        });
        fields.to_string() + "\n"
    };
    let id = format!("toolu_{unique}");
    [
        entry("user", json!("Stop hook feedback:\nRalph: go on.")),
        entry("assistant", json!([{"type": "tool_use", "id": id, "name": name, "input": input}])),
        entry("user", json!([{"tool_use_id": id, "type": "tool_result", "content": "fine"}])),
        entry("assistant", json!([{"type": "text", "text": LAST_WORDS}])),
    ]
    .concat()
}
