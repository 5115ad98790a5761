//! The two outputs of an agent, read by one thread in the order they come.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;

const CHUNK_BYTES: usize = 64 << 10;

pub struct Pipes {
    /// Stdout and stderr, while they are open.
    open: [Option<File>; 2],
    /// Where to continue if both have something: the one that was read last, since what it still holds is probably
    /// older; after that the other, so that neither waits for long.
    next: usize,
    buffer: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum OutputChunk {
    Output {
        chunk: Vec<u8>,
        is_stderr: bool,
    },
    /// One of the two is closed.
    Closed,
}

impl Pipes {
    pub fn new(stdout: Option<OwnedFd>, stderr: Option<OwnedFd>) -> Pipes {
        Pipes {
            open: [stdout.map(File::from), stderr.map(File::from)],
            next: 0,
            buffer: vec![0; CHUNK_BYTES],
        }
    }

    /// Waits until one of the two has something. Returns which, or nothing once both are closed.
    fn ready(&mut self) -> Option<usize> {
        let open: Vec<usize> = (0..2).filter(|which| self.open[*which].is_some()).collect();
        let ready: Vec<usize> = loop {
            let files = open.iter().filter_map(|which| self.open[*which].as_ref());
            let mut polled: Vec<PollFd> = files.map(|file| PollFd::new(file, PollFlags::IN)).collect();
            if polled.is_empty() {
                return None;
            }
            match poll(&mut polled, None) {
                Err(Errno::INTR) => {}
                // A read then says what is wrong.
                Err(_) => break open.clone(),
                Ok(_) => {
                    let has_some = polled.iter().map(|polled| !polled.revents().is_empty());
                    break open
                        .iter()
                        .zip(has_some)
                        .filter(|(_, some)| *some)
                        .map(|(which, _)| *which)
                        .collect();
                }
            }
        };
        let which = if ready.contains(&self.next) { self.next } else { *ready.first()? };
        self.next = if ready.len() > 1 { 1 - which } else { which };
        Some(which)
    }
}

impl Iterator for Pipes {
    type Item = OutputChunk;

    fn next(&mut self) -> Option<OutputChunk> {
        loop {
            let which = self.ready()?;
            match self.open[which].as_mut()?.read(&mut self.buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => {
                    self.open[which] = None;
                    return Some(OutputChunk::Closed);
                }
                Ok(len) => {
                    return Some(OutputChunk::Output {
                        chunk: self.buffer[..len].to_vec(),
                        is_stderr: which == 1,
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_came_first_is_read_first() {
        let ((stdout, mut out), (stderr, mut err)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
        let mut pipes = Pipes::new(Some(stdout.into()), Some(stderr.into()));
        let mut read = || match pipes.next() {
            Some(OutputChunk::Output { chunk, is_stderr }) => (String::from_utf8(chunk).unwrap(), is_stderr),
            other => panic!("{other:?}"),
        };
        for turn in 0..2 {
            out.write_all(b"1").unwrap();
            assert_eq!(read(), ("1".into(), false), "{turn}");
            err.write_all(b"2").unwrap();
            assert_eq!(read(), ("2".into(), true), "{turn}");
            // More of the same than was read at once, and only then the other.
            err.write_all(&[b'3'; 10_000]).unwrap();
            out.write_all(b"4").unwrap();
            assert_eq!(read(), ("3".repeat(10_000), true), "{turn}");
            assert_eq!(read(), ("4".into(), false), "{turn}");
            out.write_all(&[b'5'; 10_000]).unwrap();
            err.write_all(b"6").unwrap();
            assert_eq!(read(), ("5".repeat(10_000), false), "{turn}");
            assert_eq!(read(), ("6".into(), true), "{turn}");
        }
    }

    #[test]
    fn neither_waits_for_an_endless_other_and_the_ends_are_told() {
        let ((stdout, mut out), (stderr, mut err)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
        let mut pipes = Pipes::new(Some(stdout.into()), Some(stderr.into()));
        err.write_all(b"e").unwrap();
        for _ in 0..2 {
            out.write_all(b"o").unwrap();
            pipes.next();
        }
        drop(err);
        drop(out);
        let rest: Vec<OutputChunk> = pipes.collect();
        let closed = rest.iter().filter(|piece| **piece == OutputChunk::Closed).count();
        assert_eq!(closed, 2, "{rest:?}");
        assert!(rest.len() <= 3, "stderr was read in between: {rest:?}");
    }
}
