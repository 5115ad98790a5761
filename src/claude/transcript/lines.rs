//! The whole lines of a part of a file, one after the other, in bounded memory and time.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::Instant;

const CHUNK_BYTES: u64 = 256 << 10;
/// Longer lines are skipped if their beginning shows that they do not matter.
const LONG_LINE_BYTES: usize = 64 << 10;
/// A longer line is skipped whatever it is; no entry that decides anything comes near to it.
const MAX_LINE_BYTES: usize = 8 << 20;
/// All long lines of one read together; more are skipped.
const MAX_LONG_BYTES: usize = 128 << 20;
/// What is read in any case, because the newest entries decide.
const TAIL_BYTES: u64 = 4 << 20;
/// The longest line that is visited when time is short.
const SHORT_LINE_BYTES: usize = 4 << 10;

/// How a part of a file was read.
pub struct Extent {
    /// Where the last whole line ends.
    pub end: u64,
    /// Time ran out, and something was skipped.
    pub gap: bool,
}

/// How long a part of a file may be read.
#[derive(Clone, Copy)]
pub struct Deadlines {
    /// After this, only short lines are visited: a queued command, an interrupt and most answers are.
    pub all: Instant,
    /// After this, everything up to the tail is skipped.
    pub short: Instant,
}

/// Calls `visit` with each line from one position to another.
pub fn each_line(
    file: &mut File,
    (from, to): (u64, u64),
    deadlines: Deadlines,
    is_skipped: impl Fn(&[u8]) -> bool,
    mut visit: impl FnMut(&[u8]),
) -> Option<Extent> {
    let mut extent = Extent { end: from, gap: false };
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut buffer = Vec::with_capacity(usize::try_from((to - from).min(CHUNK_BYTES)).ok()?);
    // The buffer begins with a line, unless the rest of a skipped one is being read.
    let (mut at, mut searched, mut skipping, mut long_bytes) = (from, 0, false, 0);
    let mut max_line_bytes = MAX_LINE_BYTES;
    while at < to {
        let now = if at > from { Some(Instant::now()) } else { None };
        if to - at <= TAIL_BYTES {
            max_line_bytes = MAX_LINE_BYTES;
        } else if now.is_some_and(|now| now > deadlines.short) {
            (extent.gap, skipping, searched) = (true, true, 0);
            buffer.clear();
            at = to - TAIL_BYTES;
            file.seek(SeekFrom::Start(at)).ok()?;
        } else if now.is_some_and(|now| now > deadlines.all) {
            (extent.gap, max_line_bytes) = (true, SHORT_LINE_BYTES);
        }
        let read = file.take((to - at).min(CHUNK_BYTES)).read_to_end(&mut buffer).ok()?;
        if read == 0 {
            break;
        }
        at += read as u64;
        let mut start = 0;
        for newline in memchr::memchr_iter(b'\n', &buffer[searched..]) {
            let end = searched + newline;
            let line = &buffer[start..end];
            long_bytes += if line.len() > LONG_LINE_BYTES { line.len() } else { 0 };
            let over =
                line.len() > max_line_bytes || (line.len() > LONG_LINE_BYTES && long_bytes > MAX_LONG_BYTES);
            if !std::mem::take(&mut skipping) && !over {
                visit(line);
            }
            start = end + 1;
            extent.end = at - (buffer.len() - start) as u64;
        }
        buffer.drain(..start);
        let is_long = buffer.len() > LONG_LINE_BYTES;
        let too_long = buffer.len() > max_line_bytes || long_bytes > MAX_LONG_BYTES;
        skipping = skipping || (is_long && (too_long || is_skipped(&buffer)));
        if skipping {
            buffer.clear();
        }
        searched = buffer.len();
    }
    Some(extent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::time::Duration;

    /// The lengths of the lines that are visited, and where the last whole one ends.
    fn read(text: &[u8], from: u64) -> (Vec<usize>, u64) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        let later = Instant::now() + Duration::from_secs(600);
        let (mut lengths, deadlines) = (Vec::new(), Deadlines { all: later, short: later });
        let skipped = |line: &[u8]| line.starts_with(b"#");
        let part = (from, text.len() as u64);
        let extent = each_line(&mut file, part, deadlines, skipped, |line| lengths.push(line.len())).unwrap();
        assert!(!extent.gap);
        (lengths, extent.end)
    }

    #[test]
    fn lines_are_whole_wherever_the_chunks_are_cut() {
        let chunk = CHUNK_BYTES as usize;
        for length in [0, 1, 7, chunk - 1, chunk, chunk + 1, 3 * chunk] {
            let line = vec![b'x'; length];
            let text = [b"a\n", &line[..], b"\n\nbc\nhalf"].concat();
            assert_eq!(read(&text, 0), (vec![1, length, 0, 2], text.len() as u64 - 4), "{length}");
            assert_eq!(read(&text, 2).0, [length, 0, 2]);
        }
        assert_eq!(read(b"", 0), (vec![], 0));
        assert_eq!(read(b"no end", 0), (vec![], 0));
    }

    #[test]
    fn when_time_is_short_only_short_lines_and_the_tail_are_visited() {
        let line = |length: usize| format!("{}\n", "y".repeat(length));
        let head = line(1) + &line(CHUNK_BYTES as usize);
        let text = head
            + &line(2)
            + &line(5000)
            + &line(CHUNK_BYTES as usize)
            + &line(TAIL_BYTES as usize)
            + &line(3);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let (now, later) = (Instant::now(), Instant::now() + Duration::from_secs(600));
        let mut visited = |deadlines| {
            let mut lengths = Vec::new();
            let part = (0, text.len() as u64);
            let extent =
                each_line(&mut file, part, deadlines, |_| false, |line| lengths.push(line.len())).unwrap();
            assert!(extent.gap && extent.end == text.len() as u64);
            lengths
        };
        assert_eq!(visited(Deadlines { all: now, short: later }), [1, 2, 3]);
        assert_eq!(visited(Deadlines { all: now, short: now }), [1, 3]);
    }

    #[test]
    fn a_long_line_is_skipped_by_its_beginning_or_its_length() {
        let long = |first: &str, length: usize| format!("{first}{}\n", "y".repeat(length));
        let chunk = CHUNK_BYTES as usize;
        let text = ["a\n".to_owned(), long("#", 2 * chunk), "bc\n".into()].concat();
        assert_eq!(read(text.as_bytes(), 0), (vec![1, 2], text.len() as u64));
        let text = ["a\n".to_owned(), long("=", MAX_LINE_BYTES + 2 * chunk), "bc\n".into()].concat();
        assert_eq!(read(text.as_bytes(), 0), (vec![1, 2], text.len() as u64));
        let unended = &text[..text.len() - 5];
        assert_eq!(read(unended.as_bytes(), 0), (vec![1], 2), "it is looked at again once it is whole");
    }
}
