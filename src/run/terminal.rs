//! The terminal we share with the user's shell: only the foreground may read it or draw on it.

#[cfg(unix)]
pub use unix::{in_front, typed};

#[cfg(unix)]
mod unix {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::{Errno, read};
    use rustix::process::getpgrp;
    use rustix::termios::tcgetpgrp;
    use std::os::fd::AsFd;
    use std::time::Duration;

    const POLL: Duration = Duration::from_millis(200);
    const POLL_SPEC: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

    /// Returns whether we are in the foreground of this terminal. If that is unknown, there is no shell beside us.
    pub fn in_front(terminal: impl AsFd) -> bool {
        tcgetpgrp(terminal).map_or(true, |group| group == getpgrp())
    }

    /// Returns how many lines were typed within a moment; `None` if no more can come. The system stops a program that
    /// reads the keyboard in the background (`&`, or Ctrl-Z and `bg`), so it polls first and reads only what is there.
    pub fn typed() -> Option<usize> {
        let stdin = std::io::stdin();
        let ready = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&POLL_SPEC));
        if !in_front(&stdin) {
            // What was typed is meant for the shell.
            std::thread::sleep(POLL);
            return Some(0);
        }
        let mut bytes = [0; 256];
        match ready.and_then(|ready| if ready == 0 { Err(Errno::INTR) } else { read(&stdin, &mut bytes) }) {
            Ok(0) => None,
            Ok(len) => Some(bytes[..len].iter().filter(|byte| **byte == b'\n').count()),
            Err(Errno::INTR) => Some(0),
            Err(_) => None,
        }
    }
}

#[cfg(not(unix))]
pub fn in_front<T>(_: T) -> bool {
    true
}

#[cfg(not(unix))]
pub fn typed() -> Option<usize> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).ok().filter(|read| *read > 0).map(|_| 1)
}
