//! Bytes of a pipe cut into lines, with a bound on what is held.

use std::borrow::Cow;

/// The client prints tool results whole, and ten megabytes are possible; more is not worth the memory.
pub const LONGEST: usize = 16 << 20;
/// What is kept of the buffer after a long line.
const KEPT: usize = 1 << 20;

#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// Without its end; what was not UTF-8 is replaced.
    Whole(Cow<'a, str>),
    /// There was a line longer than [`LONGEST`], and its content is lost.
    Dropped,
}

#[derive(Debug, Default)]
pub struct Lines {
    /// A line of which the end was not seen yet.
    held: Vec<u8>,
    /// The rest of the present line is passed over.
    dropping: bool,
}

impl Lines {
    /// Takes what was read and hands on each line that is complete, except empty ones. A line that lies within
    /// the chunk is not copied.
    pub fn feed(&mut self, mut chunk: &[u8], mut each: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (line, rest) = (&chunk[..end], &chunk[end + 1..]);
            if self.dropping {
                // Its end is here.
            } else if self.held.is_empty() && line.len() <= LONGEST {
                whole(line, &mut each);
            } else if self.hold(line, &mut each) {
                self.finish(&mut each);
            }
            self.dropping = false;
            chunk = rest;
        }
        if !self.dropping {
            self.hold(chunk, &mut each);
        }
    }

    /// Nothing more will come: what is held is the last line.
    pub fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        whole(&self.held, &mut each);
        self.held.clear();
        self.held.shrink_to(KEPT);
        self.dropping = false;
    }

    /// Adds to the line that is held, as long as it is not too long.
    fn hold(&mut self, bytes: &[u8], each: &mut impl FnMut(Line<'_>)) -> bool {
        if self.held.len() + bytes.len() <= LONGEST {
            self.held.extend_from_slice(bytes);
            return true;
        }
        self.held = Vec::new();
        self.dropping = true;
        each(Line::Dropped);
        false
    }
}

fn whole(line: &[u8], each: &mut impl FnMut(Line<'_>)) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if !line.is_empty() {
        each(Line::Whole(String::from_utf8_lossy(line)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DROPPED: &str = "(dropped)";

    fn cut(chunks: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut out) = (Lines::default(), Vec::new());
        let mut keep = |line: Line<'_>| match line {
            Line::Whole(text) => out.push(text.into_owned()),
            Line::Dropped => out.push(DROPPED.to_owned()),
        };
        for chunk in chunks {
            lines.feed(chunk, &mut keep);
        }
        lines.finish(&mut keep);
        assert!(lines.held.is_empty() && !lines.dropping);
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
    fn a_line_that_is_too_long_is_passed_over() {
        let half = vec![b'x'; LONGEST / 2];
        let most = vec![b'x'; LONGEST];
        assert_eq!(cut(&[&half, &half, b"\na\n"])[1], "a", "the longest line there may be");
        for (name, chunks, expected) in [
            ("in pieces", vec![&half[..], &half, b"x", b"more", b"\na\n"], vec![DROPPED, "a"]),
            ("to its newline within a chunk", vec![&half[..], &half, b"x\na\nb"], vec![DROPPED, "a", "b"]),
            ("never ended", vec![&most[..], &most, &most], vec![DROPPED]),
            ("twice", vec![&most[..], b"x\n", &most, b"x\nb\n"], vec![DROPPED, DROPPED, "b"]),
        ] {
            assert_eq!(cut(&chunks), expected, "{name}");
        }
        let one = [&most[..], b"x\na\n"].concat();
        assert_eq!(cut(&[&one]), [DROPPED, "a"], "in one chunk");
    }

    #[test]
    fn a_long_line_leaves_no_memory_behind() {
        let mut lines = Lines::default();
        for _ in 0..10 {
            lines.feed(&vec![b'x'; LONGEST / 10], |_| {});
        }
        lines.feed(b"\n", |_| {});
        assert!(lines.held.capacity() <= KEPT);
    }

    proptest! {
        #[test]
        fn where_it_is_cut_does_not_matter(bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..200), at in proptest::collection::vec(0usize..200, 0..6)) {
            let mut ends: Vec<usize> = at.into_iter().map(|at| at.min(bytes.len())).chain([0, bytes.len()]).collect();
            ends.sort_unstable();
            let chunks: Vec<&[u8]> = ends.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(cut(&chunks), cut(&[&bytes]));
        }
    }
}
