//! What a report of a long run costs, as a ratio to reading what it is made from.
//!
//! `cargo bench --bench report` prints it and fails if a report of 1,000 iterations takes more than twice the time of
//! reading its inputs: its events, the ends of its logs, and what git says about its commits. Both sides run in turn in
//! this process; the ratio is the median over all pairs. `RALPH_BENCH_ROUNDS` sets how many.

mod shared;

use ralph::cli::views::report;
use ralph::core::event::{Check, Event, EventKind, IterationEnded, RunEnded, RunStarted};
use ralph::core::outcome::{IterationOutcome, Outcome as Ending};
use ralph::core::record::Engine;
use ralph::core::time::Stamp;
use ralph::store::events::{self, Follower};
use ralph::store::project::commits;
use ralph::store::{Project, World};
use shared::{Outcome, median};
use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

const ITERATIONS: u64 = 1000;
const MAX_RATIO: f64 = 2.0;
const RUN: &str = "0123456789abcdef0123456789abcdef";
/// What a log has at its end, and how much of it is read.
const LOG_BYTES: u64 = 24 << 10;

fn main() -> ExitCode {
    shared::main("report", run)
}

fn run(out: &mut std::io::StdoutLock) -> Outcome<bool> {
    let dir = tempfile::Builder::new().prefix("ralph-report-").tempdir()?;
    let root = dir.path().canonicalize()?;
    let project = Project { root: root.join("project") };
    let world = World::at(&project.root, &root.join("data"));
    let heads = repository(&project.root)?;
    logs(&project.root)?;
    write_events(&root.join("data/runs").join(RUN), &project.root, &heads)?;
    let mut ratios = Vec::new();
    let (mut whole, mut reading) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    for _ in 0..shared::rounds(7) {
        let began = Instant::now();
        read(&world, &project, &heads)?;
        let inputs = began.elapsed().as_secs_f64();
        let began = Instant::now();
        let path = report::write(&world, &project, RUN).map_err(|failure| failure.to_string())?;
        let report = began.elapsed().as_secs_f64();
        bytes = fs::metadata(path)?.len();
        ratios.push(report / inputs);
        whole.push(report);
        reading.push(inputs);
    }
    let ratio = median(ratios.into_iter());
    let ms = |values: Vec<f64>| median(values.into_iter()) * 1e3;
    let (whole, reading) = (ms(whole), ms(reading));
    writeln!(out, "\na report of {ITERATIONS} iterations, {:.1} MB", bytes as f64 / 1e6)?;
    writeln!(out, "{:<44} {whole:>8.1} ms", "the whole report")?;
    writeln!(out, "{:<44} {reading:>8.1} ms", "reading its inputs")?;
    let over = if ratio > MAX_RATIO { "OVER" } else { "ok" };
    writeln!(out, "{:<44} {ratio:>8.2}    <= {MAX_RATIO:.2} {over}", "ratio")?;
    Ok(ratio <= MAX_RATIO)
}

/// Reads everything that the report is made from.
fn read(world: &World, project: &Project, heads: &[String]) -> Outcome<()> {
    let timeline = events::load(world, RUN)?.ok_or("no events")?;
    let mut lines = 0;
    for number in timeline.iterations.keys() {
        let path = project.root.join(format!("ralph/logs/iteration-{number:03}.log"));
        Follower::from_end(&path, LOG_BYTES)
            .poll(|line| lines += ralph::claude::agent_log::entries(line).len())?;
    }
    let (first, last) = (heads.first().ok_or("no head")?, heads.last().ok_or("no head")?);
    let commits = commits::between(project, first, last)?;
    if lines == 0 || commits.list.len() != ITERATIONS as usize {
        return Err(format!("{lines} lines, {} commits", commits.list.len()).into());
    }
    Ok(())
}

/// Makes a repository with a commit for each iteration, and returns the ids, that of the start first.
fn repository(root: &Path) -> Outcome<Vec<String>> {
    fs::create_dir_all(root)?;
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(args).current_dir(root).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", root);
        git
    };
    if !git(&["init", "-q", "-b", "main"]).status()?.success() {
        return Err("git init failed".into());
    }
    let mut stream = String::new();
    for number in 0..=ITERATIONS {
        let (message, file) = (format!("step {number}"), format!("src/part_{}.rs", number % 40));
        let text: String =
            (0..40).map(|line| format!("line {line} of step {}\n", number / (1 + line % 7))).collect();
        write!(
            stream,
            "commit refs/heads/main\ncommitter a <a@example.com> {} +0000\ndata {}\n{message}\nM 100644 inline {file}\ndata {}\n{text}\n",
            1_794_816_000 + number * 60,
            message.len(),
            text.len()
        )?;
    }
    let mut import = git(&["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn()?;
    import.stdin.take().ok_or("no pipe")?.write_all(stream.as_bytes())?;
    if !import.wait()?.success() {
        return Err("git fast-import failed".into());
    }
    let log = git(&["rev-list", "--reverse", "main"]).output()?;
    Ok(String::from_utf8(log.stdout)?.lines().map(str::to_owned).collect())
}

fn logs(root: &Path) -> Outcome<()> {
    let folder = root.join("ralph/logs");
    fs::create_dir_all(&folder)?;
    let line = |text: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{text}"}}]}},"session_id":"s"}}"#
        ) + "\n"
    };
    let text: String = (0..120)
        .map(|n| line(&format!("step {n}: {}", "the words of an agent, as it works ".repeat(6))))
        .collect();
    for number in 1..=ITERATIONS {
        fs::write(folder.join(format!("iteration-{number:03}.log")), &text)?;
    }
    Ok(())
}

fn write_events(folder: &Path, project: &Path, heads: &[String]) -> Outcome<()> {
    fs::create_dir_all(folder)?;
    let started = RunStarted {
        run_id: RUN.into(),
        engine: Engine::Runner,
        project: project.to_string_lossy().into_owned(),
        task: "a long task".into(),
        checks: vec!["make test".into()],
        head: heads.first().cloned(),
        ..RunStarted::default()
    };
    let mut events = vec![Event::new(Stamp(1_794_816_000_000), EventKind::Started(started))];
    for (number, head) in (1..).zip(heads.iter().skip(1)) {
        let at = Stamp(1_794_816_000_000 + number as i64 * 60_000);
        let check = Check {
            iteration: number,
            command: "make test".into(),
            tail: "assertion failed\n".repeat(20),
            ..Check::default()
        };
        events.push(Event::new(at, EventKind::Check(check)));
        let ended = IterationEnded {
            iteration: number,
            outcome: Some(IterationOutcome::Ok),
            duration_seconds: Some(55.0),
            cost_usd: Some(0.25),
            tokens: 120_000,
            head: Some(head.clone()),
            message: Some("what the agent said at the end of its turn, a few lines of it\n".repeat(10)),
            ..IterationEnded::default()
        };
        events.push(Event::new(at, EventKind::IterationEnded(Box::new(ended))));
    }
    let ended = RunEnded { outcome: Some(Ending::Complete), iterations: ITERATIONS, ..RunEnded::default() };
    events.push(Event::new(Stamp(1_794_816_000_000 + 60_000 * 1001), EventKind::Ended(ended)));
    let lines: Result<Vec<String>, _> = events.iter().map(serde_json::to_string).collect();
    fs::write(folder.join("events.jsonl"), lines?.join("\n") + "\n")?;
    Ok(())
}
