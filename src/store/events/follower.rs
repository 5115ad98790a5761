//! Reads a file that grows, each byte once.

use crate::store::file;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A longer line is skipped.
pub const MAX_LINE_BYTES: usize = 1 << 20;
/// So much is read in one go; the rest waits for the next look.
const MAX_READ_BYTES: u64 = 32 << 20;
/// What a file may have before the part that is read. It was not written by us then.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// What a look at a file brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewLines {
    /// The file was replaced or cut off, so what was read before does not count any more.
    pub restarted: bool,
    pub lines: usize,
    /// There is more to read.
    pub more: bool,
}

/// Reads the lines that a file gained since the last look. The file may appear, vanish, shrink or be replaced.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    offset: u64,
    /// The last line, as far as it is written.
    partial: Vec<u8>,
    /// The rest of the line is skipped: it is too long, or its beginning was not read.
    skips: bool,
    identity: Option<(u64, u64)>,
    /// Bytes that were passed over because the file is too large.
    pub skipped_bytes: u64,
    /// Lines that were too long.
    pub long_lines: u64,
}

impl Follower {
    pub fn new(path: &Path) -> Follower {
        Follower {
            path: path.to_owned(),
            offset: 0,
            partial: Vec::new(),
            skips: false,
            identity: None,
            skipped_bytes: 0,
            long_lines: 0,
        }
    }

    /// Begins with so many last bytes of the file instead of its first line.
    pub fn from_end(path: &Path, bytes: u64) -> Follower {
        let length = std::fs::metadata(path).map_or(0, |meta| meta.len());
        let mut follower = Follower::new(path);
        follower.skip_to(length.saturating_sub(bytes));
        follower
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the last line if its end is missing and will not come any more.
    pub fn take_rest(&mut self) -> Option<Vec<u8>> {
        let rest = std::mem::take(&mut self.partial);
        (!self.skips && !rest.trim_ascii().is_empty()).then(|| rest.trim_ascii().to_vec())
    }

    fn skip_to(&mut self, offset: u64) {
        if offset > self.offset {
            self.skipped_bytes += offset - self.offset;
            self.offset = offset;
            self.partial.clear();
            self.skips = true;
        }
    }

    /// Calls `line` for each line that is complete now and was not before. A file that is not there has none.
    pub fn poll(&mut self, mut line: impl FnMut(&[u8])) -> Result<NewLines> {
        let mut news = NewLines::default();
        let opened = file::open_plain(&self.path);
        let mut file = match opened {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                news.restarted = self.offset > 0;
                *self = Follower::new(&self.path);
                return Ok(news);
            }
            opened => opened.with_context(|| format!("could not open {}", self.path.display()))?,
        };
        let meta = file::ensure_regular(&self.path, &file)?;
        let identity = identity(&meta);
        if self.identity.is_some_and(|known| known != identity) || meta.len() < self.offset {
            news.restarted = self.offset > 0;
            *self = Follower::new(&self.path);
        }
        self.identity = Some(identity);
        self.skip_to(meta.len().saturating_sub(MAX_FILE_BYTES));
        self.read(&mut file, &mut news, &mut line)
            .with_context(|| format!("could not read {}", self.path.display()))?;
        news.more = self.offset < meta.len();
        Ok(news)
    }

    fn read(
        &mut self,
        file: &mut File,
        news: &mut NewLines,
        line: &mut impl FnMut(&[u8]),
    ) -> std::io::Result<()> {
        file.seek(SeekFrom::Start(self.offset))?;
        let mut left = file.take(MAX_READ_BYTES);
        let mut buffer = vec![0; 64 << 10];
        loop {
            let count = left.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            self.offset += count as u64;
            for part in buffer[..count].split_inclusive(|byte| *byte == b'\n') {
                self.take(part, news, line);
            }
        }
    }

    fn take(&mut self, part: &[u8], news: &mut NewLines, line: &mut impl FnMut(&[u8])) {
        let is_end = part.ends_with(b"\n");
        if !self.skips && self.partial.len() + part.len() <= MAX_LINE_BYTES {
            if is_end && self.partial.is_empty() {
                return found(part, news, line);
            }
            self.partial.extend_from_slice(part);
        } else if !std::mem::replace(&mut self.skips, true) {
            self.long_lines += 1;
        }
        if is_end {
            let whole = std::mem::take(&mut self.partial);
            if !std::mem::take(&mut self.skips) {
                found(&whole, news, line);
            }
        }
    }
}

fn found(bytes: &[u8], news: &mut NewLines, line: &mut impl FnMut(&[u8])) {
    let bytes = bytes.trim_ascii();
    if !bytes.is_empty() {
        news.lines += 1;
        line(bytes);
    }
}

/// Tells a file that was replaced from one that grew.
#[cfg(unix)]
fn identity(meta: &std::fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (meta.dev(), meta.ino())
}

#[cfg(not(unix))]
fn identity(_: &std::fs::Metadata) -> (u64, u64) {
    (0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    struct Trial {
        _folder: tempfile::TempDir,
        path: PathBuf,
        follower: Follower,
    }

    impl Trial {
        fn new() -> Trial {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("f");
            Trial { _folder: folder, follower: Follower::new(&path), path }
        }

        fn write(&self, text: &str) {
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&self.path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }

        fn poll(&mut self) -> (Vec<String>, NewLines) {
            let mut lines = Vec::new();
            let news =
                self.follower.poll(|line| lines.push(String::from_utf8_lossy(line).into_owned())).unwrap();
            (lines, news)
        }
    }

    #[test]
    fn each_complete_line_comes_once() {
        let mut trial = Trial::new();
        assert_eq!(trial.poll(), (vec![], NewLines::default()), "the file is not there yet");
        trial.write("one\n\ntwo\nthr");
        assert_eq!(trial.poll().0, ["one", "two"]);
        trial.write("ee\n");
        assert_eq!(trial.poll().0, ["three"]);
        assert_eq!(trial.poll().0, [""; 0]);
    }

    #[test]
    fn a_file_that_is_cut_off_replaced_or_gone_begins_anew() {
        let mut trial = Trial::new();
        trial.write("one\ntwo\n");
        trial.poll();
        std::fs::write(&trial.path, "x\n").unwrap();
        let (lines, news) = trial.poll();
        assert_eq!((lines, news.restarted), (vec!["x".to_owned()], true));
        let other = trial.path.with_extension("new");
        std::fs::write(&other, "replaced, and longer\n").unwrap();
        std::fs::rename(&other, &trial.path).unwrap();
        let (lines, news) = trial.poll();
        assert_eq!((lines.len(), news.restarted), (1, true));
        std::fs::remove_file(&trial.path).unwrap();
        assert!(trial.poll().1.restarted && !trial.poll().1.restarted);
    }

    #[test]
    fn a_line_without_end_and_a_huge_file_take_no_memory() {
        let mut trial = Trial::new();
        let file = std::fs::File::create(&trial.path).unwrap();
        file.set_len(1 << 30).unwrap();
        trial.write("\nlast\n");
        let mut lines = Vec::new();
        while trial.follower.poll(|line| lines.push(line.to_vec())).unwrap().more {}
        assert_eq!(lines, [b"last".to_vec()], "a gigabyte of nothing is one line that is too long");
        assert!(trial.follower.skipped_bytes > 900 << 20 && trial.follower.partial.capacity() <= 4 << 20);
    }
}
