//! What a Stop costs, and each other hook in a session without a loop: instructions by callgrind, and time as a multiple of
//! an empty process.
//!
//! `cargo bench --bench hook` prints the table. `RALPH_BENCH_ROUNDS` sets how many rounds are timed,
//! `RALPH_BENCH_PROGRAMS` a folder with other programs to measure in place of those just built, and
//! `RALPH_BENCH_CALLGRIND` a folder that keeps the reports for `callgrind_annotate`, which wants a build with
//! `CARGO_PROFILE_RELEASE_DEBUG=true CARGO_PROFILE_RELEASE_STRIP=false`.
//!
//! Every run is a real one: loops are armed by `ralph start`, the hook reads a transcript shaped like the
//! client's, and its answer is checked. Before a run, outside the timed part, the state and the transcript
//! are put back and one turn's gain is appended.
//!
//! The empty process is `fn main() {}`, compiled here by rustc with the flags of our release profile, so that
//! the package needs no binary for it. It runs right before each timed hook with the same input and
//! environment; the ratio is the median over all rounds, which survives a busy machine. Only instructions
//! can fail the benchmark. The files live below the temporary folder: set `TMPDIR` to measure another disk.

mod events;
#[path = "../shared/mod.rs"]
mod shared;
mod transcript;

use ralph::core::time::Stamp;
use serde_json::{Value, json};
use shared::{Outcome, median, shipped};
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use transcript::{PROMPT, said, session_start, turn, write_big};

static HOOK: LazyLock<PathBuf> = LazyLock::new(|| shipped("ralph-stop-hook"));
static RALPH: LazyLock<PathBuf> = LazyLock::new(|| shipped("ralph"));
const SESSION: &str = "5f0c4f7e-2b4d-4f0a-9c1e-0d7b6a5e4f31";
const ROUNDS: usize = 61;
const BIG: u64 = 100 << 20;
const TASK: &str = "Make the whole test suite green, one failing test at a time: read the failure, find the \
    cause, fix it with the smallest change that is right, run the suite again and commit. Keep a list of what \
    you found in notes.md and do not touch the public interface.";

/// The limits of a Stop: instructions, and time against an empty process.
#[derive(Clone, Copy)]
struct Limits {
    instructions: u64,
    ratio: f64,
}

const WITHOUT_LOOP: Limits = Limits { instructions: 450_000, ratio: 1.5 };
const WITH_LOOP: Limits = Limits { instructions: 2_500_000, ratio: 3.0 };
/// Each further loop in the state file costs about 12,000 instructions. Ended loops leave the file after a day: a hundred is
/// far more than a project has.
const WITH_100_LOOPS: Limits = Limits { instructions: 2_500_000, ratio: 3.5 };
/// The same, with 10,000 iterations and a transcript of 100 MB.
const ALL_TOGETHER: Limits = Limits { instructions: 2_550_000, ratio: 3.5 };

fn main() -> ExitCode {
    shared::main("hook", |out| run(out))
}

fn run(out: &mut impl Write) -> Outcome<bool> {
    let rounds = shared::rounds(ROUNDS);
    let dir = tempfile::Builder::new().prefix("ralph-bench-").tempdir()?;
    let in_memory = memory_dir();
    let empty = compile_empty(dir.path())?;
    let scenarios = scenarios(dir.path(), in_memory.as_ref().map(tempfile::TempDir::path))?;

    let valgrind = find_program("valgrind");
    let count = |program: &Path, scenario: &Scenario| -> Outcome<Option<u64>> {
        valgrind.as_deref().map(|valgrind| scenario.instructions(valgrind, program, dir.path())).transpose()
    };
    // A file or folder that changed a moment ago may change again within the same tick of the clock, so a scan
    // looks twice at it. Projects are older than that.
    std::thread::sleep(Duration::from_millis(2100));
    for scenario in &scenarios {
        scenario.time(scenario.program)?;
    }
    let baseline = count(&empty, &scenarios[0])?;
    let mut instructions = Vec::new();
    for scenario in &scenarios {
        instructions.push(count(scenario.program, scenario)?);
    }
    let mut times: Vec<Vec<(Duration, Duration)>> = vec![Vec::new(); scenarios.len()];
    for _ in 0..rounds {
        for (scenario, times) in scenarios.iter().zip(&mut times) {
            times.push((scenario.time(&empty)?, scenario.time(scenario.program)?));
        }
    }

    writeln!(out, "\nHooks, {rounds} interleaved rounds, files in {}\n", dir.path().display())?;
    if valgrind.is_none() {
        writeln!(out, "valgrind is not installed: instructions are not counted, limits not checked\n")?;
    }
    let heading = ["scenario", "instructions", "limit", "", "× empty", "limit", "", "median"];
    row(out, &heading.map(str::to_owned))?;
    let typical = median(times.iter().flatten().map(|(empty, _)| empty.as_secs_f64()));
    let cells = ["an empty process", &millions(baseline), "", "", "1.00", "", "", &milliseconds(typical)];
    row(out, &cells.map(str::to_owned))?;
    let mut kept = true;
    let mut medians = Vec::new();
    for ((scenario, instructions), times) in scenarios.iter().zip(instructions).zip(&times) {
        let ratio = median(times.iter().map(|(empty, hook)| hook.as_secs_f64() / empty.as_secs_f64()));
        let time = median(times.iter().map(|(_, hook)| hook.as_secs_f64()));
        let over = scenario.limits.and_then(|limits| Some(instructions? > limits.instructions));
        let slow = scenario.limits.map(|limits| ratio > limits.ratio);
        kept &= over != Some(true);
        let cells = [
            scenario.name.to_owned(),
            millions(instructions),
            scenario.limits.map_or_else(String::new, |limits| millions(Some(limits.instructions))),
            verdict(over),
            format!("{ratio:.2}"),
            scenario.limits.map_or_else(String::new, |limits| format!("{:.2}", limits.ratio)),
            verdict(slow),
            milliseconds(time),
        ];
        row(out, &cells)?;
        medians.push((scenario.name, time));
    }

    let of = |name| medians.iter().find(|(other, _)| *other == name).map(|(_, time)| *time);
    writeln!(out)?;
    match (of(RUNNING), of(RUNNING_IN_MEMORY)) {
        (Some(disk), Some(memory)) => writeln!(
            out,
            "Waiting for the disk (fsync of the state and its folder): {} of {}, {:.0} %, by the same loop in /dev/shm",
            milliseconds((disk - memory).max(0.0)),
            milliseconds(disk),
            (1.0 - memory / disk).max(0.0) * 100.0,
        )?,
        _ => writeln!(out, "/dev/shm cannot be used: the disk's share of the time is not known")?,
    }
    writeln!(out, "OVER in instructions fails, OVER in time only warns.")?;
    Ok(kept)
}

fn row(out: &mut impl Write, cells: &[String; 8]) -> std::io::Result<()> {
    let [name, instructions, most, verdict, ratio, slowest, slow, time] = cells;
    writeln!(
        out,
        "{name:<48} {instructions:>12} {most:>7} {verdict:<4}  {ratio:>7} {slowest:>6} {slow:<4} {time:>9}"
    )
}

fn verdict(over: Option<bool>) -> String {
    over.map_or("", |over| if over { "OVER" } else { "ok" }).to_owned()
}

fn millions(count: Option<u64>) -> String {
    count.map_or_else(|| "-".to_owned(), |count| format!("{:.3} M", count as f64 / 1e6))
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}

/// A folder whose flushes cost nothing.
fn memory_dir() -> Option<tempfile::TempDir> {
    tempfile::Builder::new().prefix("ralph-bench-").tempdir_in("/dev/shm").ok()
}

fn find_program(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// `fn main() {}` with the flags of `[profile.release]`.
fn compile_empty(dir: &Path) -> Outcome<PathBuf> {
    let (source, program) = (dir.join("empty.rs"), dir.join("empty"));
    fs::write(&source, "fn main() {}\n")?;
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let flags = ["opt-level=3", "lto=fat", "codegen-units=1", "panic=abort", "strip=symbols"];
    let status = Command::new(rustc)
        .args(["--edition", "2024"])
        .args(flags.iter().flat_map(|flag| ["-C", flag]))
        .arg("-o")
        .args([&program, &source])
        .status()?;
    if !status.success() {
        return Err("rustc could not compile the empty program".into());
    }
    Ok(program)
}

/// A user and a project of their own; nothing is inherited.
struct World {
    dir: PathBuf,
}

impl World {
    fn new(dir: PathBuf) -> Outcome<World> {
        for part in ["home", "data", "config", "project/.git", "project/src"] {
            fs::create_dir_all(dir.join(part))?;
        }
        fs::write(dir.join("project/.git/HEAD"), "ref: refs/heads/main\n")?;
        Ok(World { dir })
    }

    fn project(&self) -> PathBuf {
        self.dir.join("project")
    }

    fn state(&self) -> PathBuf {
        self.project().join(".claude/ralph-state.json")
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.dir.join("home"))
            .env("RALPH_DATA_DIR", self.dir.join("data"))
            .env("RALPH_CONFIG_DIR", self.dir.join("config"))
            .env("CLAUDE_PROJECT_DIR", self.project())
            .env("CLAUDE_PLUGIN_ROOT", "/home/user/.claude/plugins/cache/ralph")
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .current_dir(self.project());
        command
    }

    fn start(&self, session: &str) -> Outcome<()> {
        let output = self
            .command(RALPH.as_path())
            .args(["start", "--session", session, "--max-iterations", "20000", "--max-hours", "0", TASK])
            .stdin(Stdio::null())
            .output()?;
        if !output.status.success() {
            return Err(format!("ralph start: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        Ok(())
    }

    /// One Stop as the client calls it.
    fn stop(&self, session: &str, transcript: &Path) -> Outcome<Vec<u8>> {
        let path = self.dir.join("stop.json");
        fs::write(&path, self.stop_input(session, transcript))?;
        Ok(self.command(HOOK.as_path()).stdin(File::open(path)?).output()?.stdout)
    }

    fn stop_input(&self, session: &str, transcript: &Path) -> String {
        json!({
            "session_id": session, "transcript_path": transcript, "cwd": self.project(),
            "prompt_id": PROMPT, "permission_mode": "default", "effort": {"level": "medium"},
            "hook_event_name": "Stop", "stop_hook_active": true,
            "last_assistant_message": said(0), "background_tasks": [], "session_crons": [],
        })
        .to_string()
    }

    /// As if the loop had gone on for days.
    fn age(&self, iterations: u64) -> Outcome<()> {
        let mut state: Value = serde_json::from_slice(&fs::read(self.state())?)?;
        let run = &mut state["loops"][SESSION];
        run["iteration"] = json!(iterations);
        run["started_at"] = json!(now().plus_ms(-400 * 3_600_000).rfc3339());
        run["accumulated_runtime_seconds"] = json!(iterations as f64 * 127.437);
        run["usage"] = json!({
            "input_tokens": iterations * 812, "output_tokens": iterations * 4_211,
            "cache_read_tokens": iterations * 912_345, "cache_write_tokens": iterations * 5_127,
            "context_tokens": 143_211, "cost_usd": iterations as f64 * 0.3719,
        });
        fs::write(self.state(), serde_json::to_vec(&state)?)?;
        Ok(())
    }
}

/// What a Stop must answer for the measurement to count.
#[derive(Clone, Copy, PartialEq)]
enum Expected {
    Silence,
    Block,
}

struct Scenario {
    name: &'static str,
    program: &'static Path,
    args: &'static [&'static str],
    limits: Option<Limits>,
    world: World,
    input: PathBuf,
    expected: Expected,
    /// The state each run starts from.
    state: Option<Vec<u8>>,
    transcript: Transcript,
}

/// A transcript that is put back before each run: `length` bytes that stay, then what comes after them.
#[derive(Clone)]
struct Transcript {
    path: PathBuf,
    length: u64,
    tail: Vec<u8>,
}

impl Transcript {
    fn cut(&self) -> std::io::Result<()> {
        OpenOptions::new().write(true).create(true).truncate(false).open(&self.path)?.set_len(self.length)
    }

    fn grow(&self) -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(&self.path)?;
        file.seek(SeekFrom::Start(self.length))?;
        file.write_all(&self.tail)
    }
}

impl Scenario {
    /// Puts back what the last run changed. The state is flushed here so that the hook does not pay for it;
    /// the transcript's gain is not, as the client does not flush either.
    fn prepare(&self) -> Outcome<()> {
        self.transcript.cut()?;
        if let Some(state) = &self.state {
            let mut file = File::create(self.world.state())?;
            file.write_all(state)?;
            file.sync_all()?;
        }
        Ok(self.transcript.grow()?)
    }

    fn command(&self, program: &Path) -> Outcome<Command> {
        let mut command = self.world.command(program);
        command.stdin(File::open(&self.input)?).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    fn time(&self, program: &Path) -> Outcome<Duration> {
        self.prepare()?;
        let mut command = self.command(program)?;
        command.args(self.args);
        let began = Instant::now();
        let output = command.output()?;
        let took = began.elapsed();
        self.check(program, &output.stdout)?;
        Ok(took)
    }

    fn instructions(&self, valgrind: &Path, program: &Path, dir: &Path) -> Outcome<u64> {
        let report = dir.join("callgrind.out");
        self.prepare()?;
        let mut command = self.command(valgrind)?;
        command
            .arg("--tool=callgrind")
            .arg(format!("--callgrind-out-file={}", report.display()))
            .arg(program)
            .args(self.args);
        let output = command.output()?;
        self.check(program, &output.stdout)?;
        let text = fs::read_to_string(&report)?;
        let total = text.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok());
        if let Some(keep) = std::env::var_os("RALPH_BENCH_CALLGRIND").map(PathBuf::from) {
            let name = self.name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            fs::create_dir_all(&keep)?;
            fs::copy(&report, keep.join(name + ".callgrind"))?;
        }
        total.ok_or_else(|| {
            format!("callgrind counted nothing: {}", String::from_utf8_lossy(&output.stderr)).into()
        })
    }

    fn check(&self, program: &Path, stdout: &[u8]) -> Outcome<()> {
        let blocked =
            || serde_json::from_slice::<Value>(stdout).is_ok_and(|answer| answer["decision"] == "block");
        let right = match self.expected {
            Expected::Block if program == self.program => blocked(),
            Expected::Block | Expected::Silence => stdout.is_empty(),
        };
        if right {
            Ok(())
        } else {
            Err(format!("{}: answered {}", self.name, String::from_utf8_lossy(stdout)).into())
        }
    }
}

const RUNNING: &str = "running loop";
const RUNNING_IN_MEMORY: &str = "running loop, files in /dev/shm";

/// How a running loop is set up.
#[derive(Clone, Copy, Default)]
struct Setup {
    iterations: u64,
    sessions: usize,
    /// The Stop to measure is the first one after the start.
    first: bool,
}

fn scenarios(dir: &Path, in_memory: Option<&Path>) -> Outcome<Vec<Scenario>> {
    let history = now().plus_ms(-3_600_000);
    let small = |world: &World| Transcript {
        path: world.dir.join("session.jsonl"),
        length: 0,
        tail: session_start(history),
    };
    let big = Transcript {
        path: dir.join("big.jsonl"),
        length: write_big(&dir.join("big.jsonl"), history)?,
        tail: Vec::new(),
    };
    let world = |name: &str| World::new(dir.join(name));
    let turn = || turn(now(), 2);
    let old = Setup { iterations: 10_000, ..Setup::default() };
    let crowd = Setup { sessions: 100, ..Setup::default() };
    let first = Setup { first: true, ..Setup::default() };
    let all = Setup { iterations: 10_000, sessions: 100, first: false };

    let nothing = world("nothing")?;
    let other = world("other")?;
    other.start("another-session")?;
    let crowded = world("crowded")?;
    fill(&crowded, 100)?;
    let mut list = Vec::new();
    for (name, world) in [
        ("no loop, no files of ours", nothing),
        ("no loop, another session's in the file", other),
        ("no loop, 100 other sessions' in the file", crowded),
    ] {
        let transcript = small(&world);
        list.push(Scenario::new(name, Some(WITHOUT_LOOP), world, Expected::Silence, transcript)?);
    }
    for event in &events::EVENTS {
        let world = world(event.name)?;
        let transcript = small(&world);
        list.push(event.scenario(world, transcript)?);
    }
    let mut running =
        |name, limits, world: World, transcript: Transcript, setup, gain: &dyn Fn() -> Vec<u8>| {
            list.push(loop_scenario(name, limits, world, transcript, setup, gain)?);
            Outcome::Ok(())
        };
    let limits = Some(WITH_LOOP);
    for (name, at, setup) in [
        (RUNNING, Some(dir.join("running")), Setup::default()),
        (RUNNING_IN_MEMORY, in_memory.map(|dir| dir.join("running")), Setup::default()),
        ("running loop, first Stop after the start", Some(dir.join("first")), first),
        ("running loop, 10,000 iterations", Some(dir.join("old")), old),
        ("running loop, 100 sessions", Some(dir.join("crowd")), crowd),
    ] {
        let Some(at) = at else { continue };
        let world = World::new(at)?;
        let transcript = small(&world);
        let limits = if setup.sessions > 1 { Some(WITH_100_LOOPS) } else { limits };
        running(name, limits, world, transcript, setup, &turn)?;
    }
    running("running loop, 100 MB", limits, world("big")?, big.clone(), Setup::default(), &turn)?;
    running("running loop, 100 MB, first Stop", limits, world("big-first")?, big.clone(), first, &turn)?;
    running(
        "running loop, 100 MB, first Stop, big entries",
        limits,
        world("big-new")?,
        big.clone(),
        first,
        &|| [session_start(now()), transcript::turn(now(), 2)].concat(),
    )?;
    running("running loop, all together", Some(ALL_TOGETHER), world("all")?, big.clone(), all, &turn)?;
    running("running loop, a turn of 200 calls", None, world("long")?, big, Setup::default(), &|| {
        transcript::turn(now(), 200)
    })?;
    Ok(list)
}

impl Scenario {
    fn new(
        name: &'static str,
        limits: Option<Limits>,
        world: World,
        expected: Expected,
        transcript: Transcript,
    ) -> Outcome<Scenario> {
        let input = world.dir.join("input.json");
        fs::write(&input, world.stop_input(SESSION, &transcript.path))?;
        let state = fs::read(world.state()).ok();
        let (program, args) = (HOOK.as_path(), &[][..]);
        Ok(Scenario { name, program, args, limits, world, input, expected, state, transcript })
    }
}

fn loop_scenario(
    name: &'static str,
    limits: Option<Limits>,
    world: World,
    mut transcript: Transcript,
    setup: Setup,
    gain: &dyn Fn() -> Vec<u8>,
) -> Outcome<Scenario> {
    fill(&world, setup.sessions.saturating_sub(1))?;
    world.start(SESSION)?;
    if setup.iterations > 0 {
        world.age(setup.iterations)?;
    }
    if !setup.first {
        // The Stop that makes the transcript known.
        transcript.tail.extend(turn(now(), 2));
        transcript.cut()?;
        transcript.grow()?;
        world.stop(SESSION, &transcript.path)?;
    }
    transcript.tail.extend(gain());
    Scenario::new(name, limits, world, Expected::Block, transcript)
}

/// Loops of other sessions, each with a Stop behind it.
fn fill(world: &World, sessions: usize) -> Outcome<()> {
    for number in 0..sessions {
        let session = format!("0badcafe-0000-4000-8000-{number:012}");
        let transcript = world.dir.join(format!("{session}.jsonl"));
        world.start(&session)?;
        fs::write(&transcript, turn(now(), 1))?;
        world.stop(&session, &transcript)?;
    }
    Ok(())
}

fn now() -> Stamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Stamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
