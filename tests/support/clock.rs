//! Time in tests: waits for what is sure to happen, and a clock that a test moves while programs run.
#![allow(dead_code, reason = "each test crate uses its own part of the support")]

use std::cell::Cell;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a test waits for something that is sure to happen. Nothing takes so long on the busiest machine, and
/// everything that a test wants to see ended runs for longer by itself.
pub const MAX_WAIT: Duration = Duration::from_secs(180);

const POLL: Duration = Duration::from_millis(10);

/// Polls until there is a value; fails the test after [`MAX_WAIT`].
pub fn wait_for<T>(what: &str, mut value: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = value() {
            return value;
        }
        assert!(began.elapsed() < MAX_WAIT, "not within {MAX_WAIT:?}: {what}");
        std::thread::sleep(POLL);
    }
}

/// Polls until the condition holds; fails the test after [`MAX_WAIT`].
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    wait_for(what, || done().then_some(()));
}

/// The clock of the programs that get [`Clock::variable`]. It stands still until the test moves it: limits and waits
/// of a running program end when the test says so, however slow the machine is.
pub struct Clock {
    pub path: PathBuf,
    /// It advances by itself too, and `now_ms` says by how much it differs from the clock of the machine.
    runs: bool,
    now_ms: Cell<i64>,
    slept_seconds: Cell<i64>,
}

impl Clock {
    /// Returns a clock in this file that shows `now`, in milliseconds since 1970.
    pub fn new(path: PathBuf, now_ms: i64) -> Clock {
        Clock::open(path, false, now_ms)
    }

    /// Returns a clock that runs like that of the machine, for tests beside a program that tells the real time.
    pub fn running(path: PathBuf) -> Clock {
        Clock::open(path, true, 0)
    }

    fn open(path: PathBuf, runs: bool, now_ms: i64) -> Clock {
        let clock = Clock { path, runs, now_ms: Cell::new(now_ms), slept_seconds: Cell::new(0) };
        clock.advance_ms(0);
        clock
    }

    /// Returns the value of `RALPH_NOW` for this clock.
    pub fn variable(&self) -> OsString {
        let mut value = OsString::from("@");
        value.push(&self.path);
        value
    }

    pub fn advance(&self, seconds: i64) {
        self.advance_ms(seconds * 1000);
    }

    pub fn advance_ms(&self, ms: i64) {
        self.now_ms.set(self.now_ms.get() + ms);
        let (seconds, ms) = (self.now_ms.get() / 1000, self.now_ms.get() % 1000);
        // Renamed, so that no program reads half of it.
        let new = self.path.with_extension("new");
        let slept = self.slept_seconds.get();
        let now = if self.runs { format!("now{seconds:+}") } else { format!("{seconds}.{ms:03}") };
        fs::write(&new, format!("{now} slept {slept}")).unwrap();
        fs::rename(new, &self.path).unwrap();
    }

    /// Lets the machine sleep: only the clock on the wall advances.
    pub fn sleep(&self, seconds: i64) {
        self.slept_seconds.set(self.slept_seconds.get() + seconds);
        self.advance(seconds);
    }

    /// Advances in steps until the condition holds.
    pub fn advance_until(&self, step_seconds: i64, what: &str, mut done: impl FnMut() -> bool) {
        wait_until(what, || {
            done() || {
                self.advance(step_seconds);
                false
            }
        });
    }

    /// Advances so slowly that a runner sees nearly every step, until the condition holds. It takes more than five
    /// seconds between two looks for a pause of the machine, in which no output could have been read. Where that does
    /// not suffice, the machine is slow and gets more time.
    pub fn advance_slowly_until(&self, what: &str, mut done: impl FnMut() -> bool) {
        const STEPS_OF_A_SPEED: u32 = 30;
        let (mut last, mut steps) = (Instant::now(), 0);
        wait_until(what, || {
            done() || {
                if last.elapsed() > Duration::from_millis(300) * (1 << (steps / STEPS_OF_A_SPEED)) {
                    self.advance(4);
                    (last, steps) = (Instant::now(), steps + 1);
                }
                false
            }
        });
    }
}
