//! What `ralph run` adds to the agent it runs, as ratios measured side by side in one run.
//!
//! `cargo bench --bench run` prints the table. `RALPH_BENCH_ROUNDS` sets how many rounds are timed, and
//! `RALPH_BENCH_PROGRAMS` a folder with another `ralph` to measure in place of the one just built.
//!
//! Every run is a whole one in a repository, with its telemetry, and its ending is checked. Each side comes first in
//! turn; a ratio is the median over all pairs, which survives a busy machine. Nothing is asserted: a figure over its
//! limit is printed as OVER. The files live below the temporary folder: set `TMPDIR` to measure another disk.

mod shared;

use shared::{Outcome, median, shipped};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

const ROUNDS: usize = 3;
const ITERATIONS: usize = 100;
/// The one that is timed a hundred times over.
const AGENT: &str = "cat >/dev/null; sleep 0.05; echo ok";
const GIGABYTE: u64 = 1_000_000_000;
const LINE: &[u8] = b"test parser::dates::a_leap_day_is_kept ... ok, and so are those around it (0.01s)\n";
const CONDITIONS: [&str; 8] = [
    "STAGNATION",
    "SAME_ERROR",
    "OUTPUT_DECLINE",
    "TEST_ONLY",
    "COMPLETION",
    "SAFETY_COMPLETION",
    "IDLE",
    "REPETITION",
];

fn main() -> ExitCode {
    shared::main("run", |out| run(out).map(|()| true))
}

fn run(out: &mut impl Write) -> Outcome<()> {
    let rounds = shared::rounds(ROUNDS);
    let dir = tempfile::Builder::new().prefix("ralph-run-").tempdir()?;
    let world = World::new(dir.path())?;
    let lines = dir.path().join("lines.txt");
    write_lines(&lines)?;

    writeln!(out, "\n`ralph run`, {rounds} interleaved rounds, files in {}\n", dir.path().display())?;
    writeln!(out, "{:<44} {:>7} {:>8}      {:>10} {:>10}", "", "ratio", "limit", "ours", "theirs")?;
    let (ours, theirs) = pairs(rounds, || world.iterations(), || world.shell_loop())?;
    let ratio = ratio(&ours, &theirs);
    row(out, "100 iterations / the same from a shell loop", (ratio, ratio > 1.1, "<= 1.10"), &ours, &theirs)?;
    let each = (median(ours.iter().copied()) - median(theirs.iter().copied())) / ITERATIONS as f64;
    // An agent that is listened to prints into a pipe; without one the kernel copies the file by itself.
    for (name, style, way) in [
        ("1 GB of lines, speed / cat, a pipe, a file", &[][..], Way::Pipe),
        ("the same with --quiet", &["--quiet"], Way::Pipe),
        ("the same / cat straight into a file", &["--quiet"], Way::Straight),
    ] {
        let (ours, theirs) = pairs(rounds, || world.chatty(&lines, style), || world.cat(&lines, way))?;
        let speed = 1.0 / self::ratio(&ours, &theirs);
        row(out, name, (speed, speed < 0.5, ">= 0.50"), &ours, &theirs)?;
    }
    writeln!(out, "\noverhead of an iteration: {:.1} ms", each * 1e3)?;
    let endless = format!("cat >/dev/null; head -c {GIGABYTE} /dev/zero | tr '\\0' x");
    memory(out, "1 GB on one line", &world.one(&endless))?;
    memory(out, "1 GB of lines", &world.one(&format!("cat >/dev/null; cat {}", lines.display())))?;
    memory(out, "1 GB on one line of Claude Code's stream", &world.stream(&endless)?)?;
    writeln!(out, "OVER only warns: nothing is asserted.")?;
    Ok(())
}

/// The seconds each side took, round by round.
fn pairs(
    rounds: usize,
    ours: impl Fn() -> Outcome<f64>,
    theirs: impl Fn() -> Outcome<f64>,
) -> Outcome<(Vec<f64>, Vec<f64>)> {
    let mut both = (Vec::new(), Vec::new());
    for round in 0..rounds {
        if round % 2 == 0 {
            both.0.push(ours()?);
        }
        both.1.push(theirs()?);
        if round % 2 == 1 {
            both.0.push(ours()?);
        }
    }
    Ok(both)
}

fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    median(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs))
}

fn row(
    out: &mut impl Write,
    name: &str,
    (value, over, limit): (f64, bool, &str),
    ours: &[f64],
    theirs: &[f64],
) -> std::io::Result<()> {
    let verdict = if over { "OVER" } else { "ok" };
    let [ours, theirs] = [ours, theirs].map(|side| median(side.iter().copied()));
    writeln!(out, "{name:<44} {value:>7.2} {limit:>8} {verdict:<4} {ours:>8.2} s {theirs:>8.2} s")
}

/// The most memory a run held, told by GNU time.
fn memory(out: &mut impl Write, name: &str, inner: &Command) -> Outcome<()> {
    let mut command = Command::new("/usr/bin/time");
    command.args(["-f", "peak-kb=%M"]).arg(inner.get_program()).args(inner.get_args()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(inner.get_current_dir().unwrap_or(Path::new("."))).stdout(Stdio::null());
    let Ok(output) = command.output() else {
        return Ok(writeln!(out, "memory, {name}: not known, /usr/bin/time is missing")?);
    };
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let peak = told.lines().find_map(|line| line.strip_prefix("peak-kb=")?.trim().parse::<f64>().ok());
    let Some(peak) = peak.map(|peak| peak / 1024.0) else {
        return Err(format!("no peak was told: {told}").into());
    };
    let verdict = if peak > 64.0 { "OVER" } else { "ok" };
    Ok(writeln!(out, "memory, {name}: {peak:.1} MB, limit 64 MB {verdict}")?)
}

fn write_lines(path: &Path) -> std::io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    for _ in 0..GIGABYTE / LINE.len() as u64 {
        file.write_all(LINE)?;
    }
    file.into_inner()?.sync_all()
}

#[derive(Clone, Copy)]
enum Way {
    Pipe,
    Straight,
}

/// A user and a project of their own; nothing is inherited.
struct World {
    dir: PathBuf,
}

impl World {
    fn new(dir: &Path) -> Outcome<World> {
        for part in ["home", "data", "config", "project"] {
            fs::create_dir_all(dir.join(part))?;
        }
        let world = World { dir: dir.to_owned() };
        fs::write(dir.join("home/.gitconfig"), "[user]\nname = t\nemail = t@example.org\n")?;
        for args in [&["init", "-q"][..], &["commit", "-q", "--allow-empty", "-m", "begin"]] {
            world.timed(world.command("git").args(args), 0)?;
        }
        Ok(world)
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.dir.join("home"))
            .env("RALPH_DATA_DIR", self.dir.join("data"))
            .env("RALPH_CONFIG_DIR", self.dir.join("config"))
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .envs(CONDITIONS.map(|condition| (format!("RALPH_CIRCUIT_{condition}"), "0")))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .current_dir(self.dir.join("project"));
        command
    }

    /// `ralph run` with no limit but that of iterations.
    fn ralph(&self, iterations: usize) -> Command {
        let mut command = self.command(shipped("ralph"));
        command.args(["run", "make it", "--delay", "0", "--max-stuck", "0", "--calls-per-hour", "0"]);
        command.args(["--max-hours", "0", "--max-iterations", &iterations.to_string()]);
        command
    }

    fn timed(&self, command: &mut Command, code: i32) -> Outcome<f64> {
        let began = Instant::now();
        let status = command.status()?;
        let took = began.elapsed().as_secs_f64();
        if status.code() != Some(code) {
            return Err(format!("{command:?} ended with {status}").into());
        }
        Ok(took)
    }

    fn iterations(&self) -> Outcome<f64> {
        self.timed(self.ralph(ITERATIONS).args(["--agent-command", AGENT]), 1)
    }

    fn shell_loop(&self) -> Outcome<f64> {
        let body = format!("printf 'make it' | sh -c '{AGENT}' >> ../shell.log");
        let line = format!("i=0; while [ $i -lt {ITERATIONS} ]; do {body}; i=$((i+1)); done");
        self.timed(self.command("sh").args(["-c", &line]), 0)
    }

    /// One iteration of this agent.
    fn one(&self, agent: &str) -> Command {
        let mut command = self.ralph(1);
        command.args(["--agent-command", agent]);
        command
    }

    fn chatty(&self, lines: &Path, style: &[&str]) -> Outcome<f64> {
        self.make_room()?;
        self.timed(self.one(&format!("cat {}", lines.display())).args(style), 1)
    }

    fn cat(&self, lines: &Path, way: Way) -> Outcome<f64> {
        self.make_room()?;
        let pipe = match way {
            Way::Pipe => "| cat",
            Way::Straight => "",
        };
        let line = format!("cat {} {pipe} > ../copy.txt", lines.display());
        self.timed(self.command("sh").args(["-c", &line]), 0)
    }

    /// A disk that is still busy with what was written before is not the fault of either side.
    fn make_room(&self) -> Outcome<()> {
        let _ = fs::remove_file(self.dir.join("copy.txt"));
        let _ = fs::remove_dir_all(self.dir.join("project/ralph"));
        self.timed(&mut self.command("sync"), 0).map(drop)
    }

    /// One iteration of a client that prints what this does.
    fn stream(&self, agent: &str) -> Outcome<Command> {
        let program = self.dir.join("claude");
        fs::write(&program, format!("#!/bin/sh\n[ \"$1\" = --version ] && exec echo 2.1.0\n{agent}\n"))?;
        self.timed(self.command("chmod").arg("+x").arg(&program), 0)?;
        let mut command = self.ralph(1);
        command.arg("--claude").arg(program);
        Ok(command)
    }
}
