//! `ralph/logs`: everything the agents of a run wrote, one file an iteration, beside the summary.
//!
//! An agent may write without end, so a log, the logs of a run and those of earlier runs have limits; what goes is told.

use super::summary;
use crate::core::time::Stamp;
use crate::store::file;
use crate::store::project::Project;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A log that is longer is cut.
const MAX_LOG_BYTES: u64 = 50 * MB;
/// All logs of one run; the oldest go first.
const MAX_RUN_BYTES: u64 = 1000 * MB;
/// After so much more, the logs of the run are looked at.
pub const TRIM_EVERY_BYTES: u64 = 100 * MB;
/// All logs of earlier runs, and how many runs; the oldest go first.
const MAX_EARLIER_BYTES: u64 = 1000 * MB;
const MAX_EARLIER_RUNS: usize = 20;
const MB: u64 = 1_000_000;
const EARLIER: &str = "until-";

/// Returns the path of the folder of the logs.
pub fn path(project: &Project) -> PathBuf {
    project.work_dir().join("logs")
}

/// Creates the folder of the logs and returns where it is.
pub fn create(project: &Project) -> Result<PathBuf> {
    let path = project.folder(&path(project))?;
    file::create_dir(&path).with_context(|| format!("could not create {}", path.display()))?;
    Ok(path)
}

/// Moves the logs of an earlier run into a folder of their own. Nothing is overwritten.
pub fn make_room(dir: &Path, now: Stamp) -> Result<()> {
    let is_log = |name: &str| name == summary::FILE || number(name).is_some();
    let names = std::fs::read_dir(dir)?.flatten().map(|entry| entry.file_name());
    let earlier: Vec<_> = names.filter(|name| is_log(&name.to_string_lossy())).collect();
    if earlier.is_empty() {
        return Ok(());
    }
    let name = format!("{EARLIER}{}", now.compact());
    let folder = file::free_name(|more| dir.join(format!("{name}{more}")));
    file::create_dir(&folder)?;
    for name in earlier {
        std::fs::rename(dir.join(&name), folder.join(&name))?;
    }
    Ok(())
}

/// Returns the folder with the logs of the run that began at `started`, if the next one began at `next`; `None` if they
/// were removed. A new run moves the logs of the one before into a folder with the time of its own start.
pub fn folder_of(project: &Project, started: Stamp, next: Option<Stamp>) -> Result<Option<PathBuf>> {
    let dir = project.folder(&path(project))?;
    let begun = started.compact();
    let moved_at = |name: &str| name.strip_prefix(EARLIER)?.get(..begun.len()).map(str::to_owned);
    let moved = directory(&dir).filter(|(_, meta)| meta.is_dir());
    let later = moved.filter_map(|(name, _)| Some((moved_at(&name).filter(|at| *at > begun)?, name)));
    Ok(match (later.min(), next.map(Stamp::compact)) {
        (Some((at, name)), next) if next.as_ref().is_none_or(|next| at <= *next) => Some(dir.join(name)),
        (_, Some(_)) => None,
        (_, None) => Some(dir),
    })
}

/// Removes the logs of the oldest earlier runs if there are too many. Returns what to say about it.
pub fn remove_earlier(dir: &Path) -> Option<String> {
    // The names are those of `make_room`, and in the order of time.
    let is_ours =
        |name: &str| name.strip_prefix(EARLIER).is_some_and(|rest| rest.starts_with(char::is_numeric));
    let folders = directory(dir).filter(|(name, meta)| meta.is_dir() && is_ours(name));
    let mut folders: Vec<String> = folders.map(|(name, _)| name).collect();
    folders.sort();
    let (mut bytes, mut kept) = (0, 0);
    for name in folders.iter().rev().take(MAX_EARLIER_RUNS) {
        bytes += directory(&dir.join(name)).map(|(_, meta)| meta.len()).sum::<u64>();
        if bytes > MAX_EARLIER_BYTES {
            break;
        }
        kept += 1;
    }
    let removed = &folders[..folders.len() - kept];
    let gone = removed.iter().filter(|name| std::fs::remove_dir_all(dir.join(name)).is_ok()).count();
    (gone > 0).then(|| {
        format!(
            "removed the logs of {gone} earlier {} from ralph/logs: at most {MAX_EARLIER_RUNS} runs and {} MB are kept",
            if gone == 1 { "run" } else { "runs" },
            MAX_EARLIER_BYTES / MB
        )
    })
}

/// Removes the oldest logs of this run if they take too much together. Returns what to say about it.
pub fn trim(dir: &Path) -> Option<String> {
    let logs = directory(dir).filter_map(|(name, meta)| Some((number(&name)?, name, meta.len())));
    let mut logs: Vec<(u64, String, u64)> = logs.collect();
    logs.sort();
    let mut bytes: u64 = logs.iter().map(|(.., length)| length).sum();
    let mut gone = 0;
    for (_, name, length) in &logs[..logs.len().saturating_sub(1)] {
        if bytes <= MAX_RUN_BYTES {
            break;
        }
        bytes -= length;
        gone += usize::from(std::fs::remove_file(dir.join(name)).is_ok());
    }
    (gone > 0).then(|| {
        let (logs, limit) = (if gone == 1 { "log" } else { "logs" }, MAX_RUN_BYTES / MB);
        format!("removed the {gone} oldest {logs} of this run: at most {limit} MB are kept")
    })
}

/// Returns the names in a folder with what they are; links are not followed.
fn directory(dir: &Path) -> impl Iterator<Item = (String, std::fs::Metadata)> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.metadata().ok()?)))
}

/// Returns the iteration of a log, by its name.
fn number(name: &str) -> Option<u64> {
    name.strip_prefix("iteration-")?.strip_suffix(".log")?.parse().ok()
}

/// Returns the name of an iteration's log in its folder.
pub fn name(iteration: u64) -> String {
    format!("iteration-{iteration:03}.log")
}

/// The log of one iteration. A log that cannot be written does not end the run: the error is reported once.
pub struct Log {
    file: Option<File>,
    /// What it may still take.
    left: u64,
    error: Option<String>,
    stdout: LineFilter,
}

impl Log {
    /// Opens the log of an iteration. An iteration that is repeated adds to it. Lines on stdout that begin with
    /// `skipped` are left out.
    pub fn open(project: &Project, iteration: u64, skipped: &'static [u8]) -> Log {
        let stdout = LineFilter { skipped, line: Line::Begins(0) };
        match project.append(&path(project).join(name(iteration))) {
            Ok(file) => {
                let left = MAX_LOG_BYTES.saturating_sub(file.metadata().map_or(0, |meta| meta.len()));
                Log { file: Some(file), left, error: None, stdout }
            }
            Err(error) => Log { file: None, left: 0, error: Some(format!("{error:#}")), stdout },
        }
    }

    pub fn write(&mut self, chunk: &[u8], is_stderr: bool) {
        if is_stderr || self.stdout.skipped.is_empty() {
            self.add(chunk);
        } else {
            let kept = self.stdout.kept(chunk);
            self.add(&kept);
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        let fitting = &bytes[..usize::try_from(self.left).map_or(bytes.len(), |left| left.min(bytes.len()))];
        let mut written = file.write_all(fitting);
        self.left -= fitting.len() as u64;
        let is_cut = fitting.len() < bytes.len();
        let told = format!("cut at {} MB", MAX_LOG_BYTES / MB);
        if is_cut {
            written = written.and_then(|()| file.write_all(format!("\n[ralph: {told}]\n").as_bytes()));
        }
        let error = written.err().map(|error| error.to_string()).or(is_cut.then_some(told));
        if let Some(error) = error {
            self.error = Some(format!("the log of this iteration is incomplete: {error}"));
            self.file = None;
        }
    }

    /// Returns how long the log is.
    pub fn length(&self) -> u64 {
        MAX_LOG_BYTES - self.left
    }

    /// Closes the log and returns what went wrong.
    pub fn close(mut self) -> Option<String> {
        let rest = self.stdout.rest();
        self.add(rest);
        self.error
    }
}

/// Leaves out lines with a certain beginning. It holds no bytes: what is undecided is part of that beginning.
struct LineFilter {
    skipped: &'static [u8],
    line: Line,
}

#[derive(Clone, Copy)]
enum Line {
    /// So many bytes are as in a line to skip.
    Begins(usize),
    Kept,
    Skipped,
}

impl LineFilter {
    /// Returns what to keep, now that the chunk is known.
    fn kept(&mut self, mut chunk: &[u8]) -> Vec<u8> {
        let mut kept = Vec::with_capacity(chunk.len());
        while !chunk.is_empty() {
            if let Line::Begins(known) = self.line {
                let alike = self.skipped[known..].iter().zip(chunk).take_while(|(a, b)| a == b).count();
                chunk = &chunk[alike..];
                self.line = match known + alike {
                    all if all == self.skipped.len() => Line::Skipped,
                    some if chunk.is_empty() => Line::Begins(some),
                    some => {
                        kept.extend_from_slice(&self.skipped[..some]);
                        Line::Kept
                    }
                };
                continue;
            }
            let end = memchr::memchr(b'\n', chunk).map_or(chunk.len(), |end| end + 1);
            let (line, rest) = chunk.split_at(end);
            if matches!(self.line, Line::Kept) {
                kept.extend_from_slice(line);
            }
            if line.ends_with(b"\n") {
                self.line = Line::Begins(0);
            }
            chunk = rest;
        }
        kept
    }

    /// Returns what was undecided at the end of the output.
    fn rest(&self) -> &'static [u8] {
        if let Line::Begins(known) = self.line { &self.skipped[..known] } else { b"" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of this length, which takes no room on the disk.
    fn sparse(path: &Path, bytes: u64) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        File::create(path).unwrap().set_len(bytes).unwrap();
    }

    #[test]
    fn a_log_is_cut_at_its_limit_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let project = Project { root: dir.path().canonicalize().unwrap() };
        let path = path(&project).join(name(1));
        sparse(&path, MAX_LOG_BYTES - 10);
        let mut log = Log::open(&project, 1, b"");
        log.write(b"1234567", false);
        assert_eq!(log.length(), MAX_LOG_BYTES - 3);
        log.write(b"abcdef", true);
        log.write(b"more", false);
        let told = log.close().unwrap();
        assert_eq!(told, "the log of this iteration is incomplete: cut at 50 MB");
        let text = std::fs::read(&path).unwrap();
        assert!(text.ends_with(b"1234567abc\n[ralph: cut at 50 MB]\n"));
        let mut again = Log::open(&project, 1, b"");
        again.write(b"x", false);
        assert!(again.close().is_some(), "a repeated iteration has no second limit");
    }

    #[test]
    fn the_oldest_logs_of_a_run_go_when_it_takes_too_much() {
        let dir = tempfile::tempdir().unwrap();
        for n in 8..=12 {
            sparse(&dir.path().join(name(n)), MAX_RUN_BYTES / 4);
        }
        assert!(trim(dir.path()).unwrap().starts_with("removed the 1 oldest log of this run"));
        assert_eq!(trim(dir.path()), None);
        assert!(!dir.path().join(name(8)).exists() && dir.path().join(name(9)).exists());
        sparse(&dir.path().join(name(13)), 2 * MAX_RUN_BYTES);
        assert!(trim(dir.path()).is_some());
        assert!(dir.path().join(name(13)).exists(), "the newest is kept whatever it takes");
    }

    #[test]
    fn the_oldest_runs_go_when_there_are_too_many() {
        let dir = tempfile::tempdir().unwrap();
        let folder = |n: usize| dir.path().join(format!("until-20261116T0800{n:02}000"));
        for n in 0..MAX_EARLIER_RUNS + 2 {
            sparse(&folder(n).join(name(1)), 7);
        }
        sparse(&dir.path().join("until-the-end").join("mine"), 7);
        let told = remove_earlier(dir.path()).unwrap();
        assert_eq!(
            told,
            "removed the logs of 2 earlier runs from ralph/logs: at most 20 runs and 1000 MB are kept"
        );
        assert!(!folder(1).exists() && folder(2).exists() && dir.path().join("until-the-end/mine").exists());
        sparse(&folder(5).join(name(1)), MAX_EARLIER_BYTES);
        assert!(remove_earlier(dir.path()).is_some());
        assert!(!folder(5).exists() && folder(6).exists());
        assert_eq!(remove_earlier(dir.path()), None);
    }

    #[test]
    fn the_logs_of_a_run_are_where_the_next_one_moved_them() {
        let dir = tempfile::tempdir().unwrap();
        let project = Project { root: dir.path().canonicalize().unwrap() };
        let logs = create(&project).unwrap();
        let at = |minutes: i64| Stamp(1_794_816_000_000 + minutes * 60_000);
        let found = |minutes: i64, next: Option<i64>| folder_of(&project, at(minutes), next.map(at)).unwrap();
        assert_eq!(found(0, None), Some(logs.clone()), "there is no other run");
        for minutes in [10, 20] {
            sparse(&logs.join(name(1)), 7);
            make_room(&logs, at(minutes)).unwrap();
        }
        let moved = |minutes: i64| Some(logs.join(format!("until-{}", at(minutes).compact())));
        assert_eq!((found(0, Some(10)), found(10, Some(20))), (moved(10), moved(20)));
        assert_eq!(found(0, None), moved(10), "the events of the next run are gone");
        assert_eq!(found(20, None), Some(logs.clone()));
        std::fs::remove_dir_all(moved(10).unwrap()).unwrap();
        assert_eq!(found(0, Some(10)), None, "those of the next run are not its own");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_reported_once() {
        let file = File::options().write(true).open("/dev/full").unwrap();
        let stdout = LineFilter { skipped: b"", line: Line::Begins(0) };
        let mut log = Log { file: Some(file), left: MAX_LOG_BYTES, error: None, stdout };
        log.write(b"text", false);
        log.write(b"text", true);
        assert!(log.close().unwrap().starts_with("the log of this iteration is incomplete: "));
    }

    #[test]
    fn lines_with_a_certain_beginning_are_left_out_however_they_are_cut() {
        let cases: [(&[u8], &[u8]); 6] = [
            (b"", b""),
            (b"{a:1}\n{b:1}\n{a:2}\n\n{b", b"{b:1}\n\n{b"),
            (b"{a", b"{a"),
            (b"{a:unended", b""),
            (b"{a\n{\n{a:x}\r\ny", b"{a\n{\ny"),
            (b"x{a:1}\n{a:2}{b\nz\n", b"x{a:1}\nz\n"),
        ];
        for (text, expected) in cases {
            for size in 1..=text.len().max(1) {
                let mut filter = LineFilter { skipped: b"{a:", line: Line::Begins(0) };
                let mut kept: Vec<u8> = text.chunks(size).flat_map(|chunk| filter.kept(chunk)).collect();
                kept.extend_from_slice(filter.rest());
                assert_eq!(kept, expected, "{} in pieces of {size}", String::from_utf8_lossy(text));
            }
        }
    }
}
