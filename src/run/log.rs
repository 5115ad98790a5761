//! What is kept of a run for the morning: everything the agent wrote, and one row an iteration.

use crate::core::time::Stamp;
use crate::store::file::{self, Privacy};
use crate::store::project::Project;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread::Builder;
use std::time::{Duration, Instant};

pub const HEADER: &str = "iteration,mode,duration_seconds,commit_hash,stories_complete,stories_total,\
                          stuck_count,timestamp,outcome,cost_usd,tokens";
const LARGEST: u64 = 256 << 20;

pub struct Folder {
    path: PathBuf,
    /// When the summary was last sent to the disk.
    flushed: Option<Instant>,
}

/// Rows that come faster than this reach the disk together.
const FLUSH: Duration = Duration::from_secs(1);

/// One iteration for the summary.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub iteration: u64,
    pub mode: String,
    pub duration_seconds: u64,
    pub commit: String,
    pub stories: Option<(u64, u64)>,
    pub stuck: u64,
    pub at: Stamp,
    pub outcome: String,
    pub cost_usd: Option<f64>,
    pub tokens: u64,
}

impl Row {
    fn line(&self) -> String {
        let (complete, total) = self.stories.map_or((0, 0), |stories| stories);
        let cost = self.cost_usd.map_or_else(String::new, |cost| format!("{cost:.4}"));
        format!(
            "{},{},{},{},{complete},{total},{},{},{},{cost},{}",
            self.iteration,
            self.mode,
            self.duration_seconds,
            self.commit,
            self.stuck,
            self.at.rfc3339(),
            self.outcome,
            self.tokens
        )
    }
}

impl Folder {
    pub fn of(project: &Project) -> Result<Folder> {
        let path = project.resolve(&project.work_dir().join("logs"))?;
        file::create_dir(&path).with_context(|| format!("no folder for the logs at {}", path.display()))?;
        Ok(Folder { path, flushed: None })
    }

    pub fn summary(&self) -> PathBuf {
        self.path.join("summary.csv")
    }

    pub fn log_path(&self, iteration: u64) -> PathBuf {
        self.path.join(format!("iteration-{iteration:03}.log"))
    }

    /// Puts what an earlier run left out of the way of a new one. Nothing is written over.
    pub fn make_room(&self, now: Stamp) -> Result<()> {
        let names = std::fs::read_dir(&self.path)?.flatten().map(|entry| entry.file_name());
        let earlier: Vec<_> = names
            .filter(|name| {
                let name = name.to_string_lossy();
                name == "summary.csv" || (name.starts_with("iteration-") && name.ends_with(".log"))
            })
            .collect();
        if earlier.is_empty() {
            return Ok(());
        }
        let name = format!("until-{}", now.compact());
        let (mut folder, mut number) = (self.path.join(&name), 1);
        while folder.exists() {
            number += 1;
            folder = self.path.join(format!("{name}-{number}"));
        }
        file::create_dir(&folder)?;
        for name in earlier {
            std::fs::rename(self.path.join(&name), folder.join(&name))?;
        }
        Ok(())
    }

    /// Adds a row, with the header before the first, in a single write. A row that was torn by a crash is closed
    /// first. It reaches the disk beside the next iteration, which does not wait for it.
    pub fn add(&mut self, row: &Row) -> Result<()> {
        let path = self.summary();
        let written = self.mend().and_then(|()| {
            let mut file = file::creating(Privacy::Private).append(true).create(true).open(&path)?;
            let header = if file.metadata()?.len() == 0 { format!("{HEADER}\n") } else { String::new() };
            file.write_all(format!("{header}{}\n", row.line()).as_bytes())?;
            if self.flushed.is_none_or(|at| at.elapsed() >= FLUSH) {
                self.flushed = Some(Instant::now());
                // Without a thread it is on the disk when the system thinks fit.
                let _ = Builder::new().spawn(move || file.sync_data());
            }
            Ok(())
        });
        written.with_context(|| format!("could not write {}", path.display()))
    }

    /// Nothing is left to be sent to the disk.
    pub fn flush(&self) {
        let _ = file::creating(Privacy::Private)
            .append(true)
            .open(self.summary())
            .and_then(|file| file.sync_data());
    }

    /// Takes away what is not a whole row.
    fn mend(&self) -> Result<()> {
        let path = self.summary();
        let Ok(mut file) = File::open(&path) else { return Ok(()) };
        let mut last = [b'\n'];
        if file.seek(SeekFrom::End(-1)).is_ok() {
            file.read_exact(&mut last)?;
        }
        if last != *b"\n" {
            let bytes = file::read_bounded(&path, LARGEST)?.unwrap_or_default();
            let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
            file::replace(&path, &bytes[..whole], Privacy::Private)?;
        }
        Ok(())
    }

    /// The iteration of the last whole row.
    pub fn last_row(&self) -> Option<u64> {
        let bytes = file::read_bounded(&self.summary(), LARGEST).ok()??;
        let whole = memchr::memrchr(b'\n', &bytes)?;
        let text = String::from_utf8_lossy(&bytes[..whole]).into_owned();
        text.lines().next_back()?.split(',').next()?.parse().ok()
    }

    /// The log of one iteration. Where it is tried again, it goes on: what was said before is not lost.
    pub fn log(&self, iteration: u64) -> Log {
        Log::at(&self.log_path(iteration))
    }
}

/// Everything the agent wrote, as it wrote it. A log that cannot be written ends nothing: it says so once.
pub struct Log {
    file: Option<File>,
    failed: Option<String>,
}

impl Log {
    fn at(path: &Path) -> Log {
        let opened = file::creating(Privacy::Private).append(true).create(true).open(path);
        match opened {
            Ok(file) => Log { file: Some(file), failed: None },
            Err(error) => Log::none(format!("{} cannot be written: {error}", path.display())),
        }
    }

    pub fn none(why: String) -> Log {
        Log { file: None, failed: Some(why) }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(bytes)
        {
            self.failed = Some(format!("the log of this iteration is not whole: {error}"));
            self.file = None;
        }
    }

    /// What went wrong, once.
    pub fn trouble(&mut self) -> Option<String> {
        self.failed.take()
    }
}
