//! The whole lines of a part of a file, one after the other, in bounded memory and time.

use crate::store::world::Instant;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

const CHUNK_BYTES: u64 = 256 << 10;
/// Longer lines are skipped if their beginning shows that they do not matter.
const LONG_LINE_BYTES: usize = 64 << 10;
/// A longer line is skipped whatever it is; no entry that decides anything comes near to it.
const MAX_LINE_BYTES: usize = 8 << 20;
/// All long lines of one read together; more are skipped.
const MAX_LONG_BYTES: usize = 128 << 20;
/// What is read in any case and as a whole, because the newest entries decide.
const TAIL_BYTES: u64 = 4 << 20;
/// Lines that `visit` took count against these: after so many bytes it is asked to take less.
const MAX_EVERYTHING_BYTES: u64 = 32 << 20;
const MAX_WITHOUT_RESULTS_BYTES: u64 = 96 << 20;
/// Of a longer part the middle is not read.
const MAX_SEARCHED_BYTES: u64 = 512 << 20;
/// The longest line while only commands are looked for.
const MAX_COMMAND_BYTES: usize = 1 << 20;

/// What is to be taken of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadLevel {
    Everything,
    /// No long results of tools.
    WithoutToolResults,
    /// What the user did: prompts, Esc and the queue.
    UserInputOnly,
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineUse {
    /// It was parsed.
    Parsed,
    /// Nothing in it could matter.
    Irrelevant,
    /// It may have said something that was not asked for.
    Skipped,
}

/// How a part of a file was read.
#[derive(Debug, PartialEq, Eq)]
pub struct ReadExtent {
    /// Where the last whole line ends.
    pub end: u64,
    /// Bytes of lines that were searched for commands only.
    pub skipped: u64,
    /// Bytes that were not read at all.
    pub unread: u64,
}

/// How long a part of a file may be read. These are for slow machines; elsewhere the limits in bytes are reached first.
#[derive(Clone, Copy)]
pub struct Deadlines {
    pub whole: Instant,
    pub deciding: Instant,
    /// After this, everything up to the tail is skipped.
    pub commands: Instant,
}

impl Deadlines {
    pub fn each(step: Duration) -> Deadlines {
        let now = Instant::now();
        Deadlines { whole: now + step, deciding: now + 2 * step, commands: now + 3 * step }
    }
}

/// Calls `visit` with each line from one position to another.
pub fn each_line(
    file: &mut File,
    (from, to): (u64, u64),
    deadlines: Deadlines,
    is_skipped: impl Fn(&[u8]) -> bool,
    mut visit: impl FnMut(&[u8], ReadLevel) -> LineUse,
) -> Option<ReadExtent> {
    let mut extent = ReadExtent { end: from, skipped: 0, unread: 0 };
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut buffer = Vec::with_capacity(usize::try_from((to - from).min(CHUNK_BYTES)).ok()?);
    // The buffer begins with a line, unless the rest of a skipped one is being read.
    let (mut at, mut searched, mut skipping, mut long_bytes, mut taken_bytes) = (from, 0, false, 0, 0);
    while at < to {
        let late = if at > from { deadlines.passed() } else { None };
        // The newest part of what may be searched is more than the oldest.
        let mut resume_at = at;
        if to - at > MAX_SEARCHED_BYTES && at - from >= MAX_EVERYTHING_BYTES {
            resume_at = to - (MAX_SEARCHED_BYTES - MAX_EVERYTHING_BYTES);
        }
        if late == Some(Late::Commands) {
            resume_at = resume_at.max(to.saturating_sub(TAIL_BYTES));
        }
        if resume_at > at {
            extent.unread += resume_at - at;
            (skipping, searched, at) = (true, 0, resume_at);
            buffer.clear();
            file.seek(SeekFrom::Start(at)).ok()?;
        }
        let level = match taken_bytes {
            _ if to - at <= TAIL_BYTES => ReadLevel::Everything,
            bytes if bytes > MAX_WITHOUT_RESULTS_BYTES || late >= Some(Late::Deciding) => {
                ReadLevel::UserInputOnly
            }
            bytes if bytes > MAX_EVERYTHING_BYTES || late >= Some(Late::Whole) => {
                ReadLevel::WithoutToolResults
            }
            _ => ReadLevel::Everything,
        };
        let max_line_bytes =
            if level == ReadLevel::UserInputOnly { MAX_COMMAND_BYTES } else { MAX_LINE_BYTES };
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
                match visit(line, level) {
                    LineUse::Parsed => taken_bytes += line.len() as u64,
                    LineUse::Irrelevant => {}
                    LineUse::Skipped => extent.skipped += line.len() as u64,
                }
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

/// The last deadline that has passed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Late {
    Whole,
    Deciding,
    Commands,
}

impl Deadlines {
    fn passed(self) -> Option<Late> {
        let now = Instant::lately();
        match () {
            () if now > self.commands => Some(Late::Commands),
            () if now > self.deciding => Some(Late::Deciding),
            () if now > self.whole => Some(Late::Whole),
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// The lengths of the lines that are visited, and where the last whole one ends.
    fn read(text: &[u8], from: u64) -> (Vec<usize>, u64) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        let (mut lengths, deadlines) = (Vec::new(), Deadlines::each(Duration::from_secs(600)));
        let skipped = |line: &[u8]| line.starts_with(b"#");
        let part = (from, text.len() as u64);
        let visit = |line: &[u8], level| {
            assert_eq!(level, ReadLevel::Everything);
            lengths.push(line.len());
            LineUse::Parsed
        };
        let extent = each_line(&mut file, part, deadlines, skipped, visit).unwrap();
        assert_eq!((extent.skipped, extent.unread), (0, 0));
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

    /// Visits a file and returns how many lines were visited at each level, and the extent.
    fn read_levels(file: &mut File, deadlines: Deadlines, line_use: LineUse) -> ([usize; 3], ReadExtent) {
        let (mut counts, length) = ([0; 3], file.metadata().unwrap().len());
        let visit = |_: &[u8], level: ReadLevel| {
            counts[level as usize] += 1;
            line_use
        };
        let extent = each_line(file, (0, length), deadlines, |_| false, visit).unwrap();
        assert_eq!(extent.end, length);
        (counts, extent)
    }

    #[test]
    fn the_more_was_taken_the_less_is_asked_for_and_the_tail_is_whole_again() {
        let mut file = tempfile::tempfile().unwrap();
        let chunk = format!("{}\n", "y".repeat(1023)).repeat(256);
        (0..4 * 110).for_each(|_| file.write_all(chunk.as_bytes()).unwrap());
        let later = Deadlines::each(Duration::from_secs(600));
        let mb = |count: usize| count >> 10;
        let (counts, extent) = read_levels(&mut file, later, LineUse::Parsed);
        assert_eq!(counts.map(mb), [32 + 4, 64, 9], "{counts:?}");
        assert_eq!((extent.skipped, extent.unread), (0, 0));
        let (counts, extent) = read_levels(&mut file, later, LineUse::Irrelevant);
        assert_eq!((counts, extent.skipped), ([110 << 10, 0, 0], 0), "what is not parsed costs little");
        let now = Instant::now();
        let no_time = Deadlines { whole: now, deciding: now, ..later };
        let (counts, extent) = read_levels(&mut file, no_time, LineUse::Skipped);
        assert_eq!(counts, [256 + (4 << 10), 0, (106 << 10) - 256], "the first chunk is always taken");
        assert_eq!((extent.skipped >> 20, extent.unread), (109, 0));
        let (counts, extent) =
            read_levels(&mut file, Deadlines { commands: now, ..no_time }, LineUse::Parsed);
        // Where it begins again it is within a line.
        assert_eq!(counts, [256 + (4 << 10) - 1, 0, 0]);
        assert_eq!(extent.unread, (106 << 20) - CHUNK_BYTES);
    }

    #[test]
    fn of_a_part_without_end_the_newest_is_searched() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"first\n").unwrap();
        file.set_len(2 << 30).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b"\nlast\n").unwrap();
        let later = Deadlines::each(Duration::from_secs(600));
        let (counts, extent) = read_levels(&mut file, later, LineUse::Parsed);
        assert_eq!(counts, [2, 0, 0]);
        assert_eq!(extent.unread >> 20, 2048 - 512);
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
