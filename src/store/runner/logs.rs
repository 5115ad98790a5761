//! `ralph/logs`: everything the agents of a run wrote, one file an iteration, beside the summary.

use super::summary;
use crate::core::time::Stamp;
use crate::store::file::{self, Privacy};
use crate::store::project::Project;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Returns the folder of the logs, which it creates.
pub fn dir(project: &Project) -> Result<PathBuf> {
    let path = project.resolve(&project.work_dir().join("logs"))?;
    file::create_dir(&path).with_context(|| format!("could not create {}", path.display()))?;
    Ok(path)
}

/// Moves the logs of an earlier run into a folder of their own. Nothing is overwritten.
pub fn make_room(dir: &Path, now: Stamp) -> Result<()> {
    let is_log =
        |name: &str| name == summary::FILE || (name.starts_with("iteration-") && name.ends_with(".log"));
    let names = std::fs::read_dir(dir)?.flatten().map(|entry| entry.file_name());
    let earlier: Vec<_> = names.filter(|name| is_log(&name.to_string_lossy())).collect();
    if earlier.is_empty() {
        return Ok(());
    }
    let name = format!("until-{}", now.compact());
    let folder = file::free_name(|more| dir.join(format!("{name}{more}")));
    file::create_dir(&folder)?;
    for name in earlier {
        std::fs::rename(dir.join(&name), folder.join(&name))?;
    }
    Ok(())
}

/// Returns the name of an iteration's log in its folder.
pub fn name(iteration: u64) -> String {
    format!("iteration-{iteration:03}.log")
}

/// The log of one iteration. A log that cannot be written does not end the run: the error is reported once.
pub struct Log {
    file: Option<File>,
    error: Option<String>,
    stdout: LineFilter,
}

impl Log {
    /// Opens the log of an iteration. An iteration that is repeated adds to it. Lines on stdout that begin with
    /// `skipped` are left out.
    pub fn open(dir: &Path, iteration: u64, skipped: &'static [u8]) -> Log {
        let path = dir.join(name(iteration));
        let stdout = LineFilter { skipped, line: Line::Begins(0) };
        match file::creating(Privacy::Private).append(true).create(true).open(&path) {
            Ok(file) => Log { file: Some(file), error: None, stdout },
            Err(error) => {
                let error = Some(format!("could not open {}: {error}", path.display()));
                Log { file: None, error, stdout }
            }
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
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(bytes)
        {
            self.error = Some(format!("the log of this iteration is incomplete: {error}"));
            self.file = None;
        }
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
