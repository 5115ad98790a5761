//! Cuts the bytes of a pipe into lines, with a bound on what is held.

/// The client prints tool results whole, which may be ten megabytes; longer lines are skipped.
pub const MAX_LINE_BYTES: usize = 16 << 20;
/// How much of the buffer is kept after a long line.
const MAX_SPARE_BYTES: usize = 1 << 20;

#[derive(Debug, Default)]
pub struct Lines {
    /// A line whose end was not seen yet.
    held: Vec<u8>,
    /// The rest of this line is skipped.
    skipping: bool,
}

impl Lines {
    /// Takes what was read and hands on each complete line, except empty ones, without its end. A line that lies
    /// within the chunk is not copied; bytes that are not UTF-8 are replaced.
    pub fn feed(&mut self, mut chunk: &[u8], mut each: impl FnMut(&str)) {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (line, rest) = (&chunk[..end], &chunk[end + 1..]);
            if self.held.is_empty() && !self.skipping && line.len() <= MAX_LINE_BYTES {
                hand_on(line, &mut each);
            } else {
                self.hold(line);
                self.finish(&mut each);
            }
            chunk = rest;
        }
        self.hold(chunk);
    }

    /// Hands on what is held as the last line.
    pub fn finish(&mut self, mut each: impl FnMut(&str)) {
        hand_on(&self.held, &mut each);
        self.held.clear();
        self.held.shrink_to(MAX_SPARE_BYTES);
        self.skipping = false;
    }

    /// Adds to the held line, or drops it when it becomes too long.
    fn hold(&mut self, bytes: &[u8]) {
        if self.skipping || self.held.len() + bytes.len() > MAX_LINE_BYTES {
            self.held = Vec::new();
            self.skipping = true;
        } else {
            self.held.extend_from_slice(bytes);
        }
    }
}

fn hand_on(line: &[u8], each: &mut impl FnMut(&str)) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if !line.is_empty() {
        each(&String::from_utf8_lossy(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(chunks: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut out) = (Lines::default(), Vec::new());
        let mut keep = |line: &str| out.push(line.to_owned());
        for chunk in chunks {
            lines.feed(chunk, &mut keep);
        }
        lines.finish(&mut keep);
        assert!(lines.held.is_empty() && !lines.skipping);
        out
    }

    #[test]
    fn chunks_become_lines() {
        type Case<'a> = (&'a str, &'a [&'a [u8]], &'a [&'a str]);
        let cases: &[Case] = &[
            ("nothing", &[], &[]),
            ("one", &[b"a\n"], &["a"]),
            ("several", &[b"a\nb\nc"], &["a", "b", "c"]),
            ("cut anywhere", &[b"a", b"b\n", b"\nc", b"", b"d\ne"], &["ab", "cd", "e"]),
            ("carriage returns", &[b"a\r", b"\nb\r\n\r\n"], &["a", "b"]),
            ("not UTF-8", &[b"a\xff\n", b"\xf0\x9f", b"\x99\x82\n"], &["a\u{fffd}", "🙂"]),
        ];
        for (name, chunks, expected) in cases {
            assert_eq!(cut(chunks), *expected, "{name}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped() {
        let half = vec![b'x'; MAX_LINE_BYTES / 2];
        let most = vec![b'x'; MAX_LINE_BYTES];
        assert_eq!(cut(&[&half, &half, b"\na\n"])[1], "a", "the longest line there may be");
        for (name, chunks, expected) in [
            ("in pieces", vec![&half[..], &half, b"x", b"more", b"\na\n"], vec!["a"]),
            ("to its newline within a chunk", vec![&half[..], &half, b"x\na\nb"], vec!["a", "b"]),
            ("never ended", vec![&most[..], &most, &most], vec![]),
            ("twice", vec![&most[..], b"x\n", &most, b"x\nb\n"], vec!["b"]),
        ] {
            assert_eq!(cut(&chunks), expected, "{name}");
        }
        let one = [&most[..], b"x\na\n"].concat();
        assert_eq!(cut(&[&one]), ["a"], "in one chunk");
    }

    #[test]
    fn a_long_line_leaves_no_memory_behind() {
        let mut lines = Lines::default();
        for _ in 0..10 {
            lines.feed(&vec![b'x'; MAX_LINE_BYTES / 10], |_| {});
        }
        lines.feed(b"\n", |_| {});
        assert!(lines.held.capacity() <= MAX_SPARE_BYTES);
    }

    proptest! {
        #[test]
        fn the_cuts_between_chunks_do_not_matter(bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..200), at in proptest::collection::vec(0usize..200, 0..6)) {
            let mut ends: Vec<usize> = at.into_iter().map(|at| at.min(bytes.len())).chain([0, bytes.len()]).collect();
            ends.sort_unstable();
            let chunks: Vec<&[u8]> = ends.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(cut(&chunks), cut(&[&bytes]));
        }
    }
}
