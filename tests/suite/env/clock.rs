//! The clock of a test's world.

use super::{Access, Env, FileEvents, T0, stamp};
use std::ffi::OsString;
use std::fs;
use std::path::Path;

#[path = "../../support/clock.rs"]
mod support;

pub use support::{Clock, MAX_WAIT, wait_for, wait_until};

/// Returns the value of `RALPH_NOW` for a clock that stands still, so many seconds after the test's zero. No limit of a
/// program ends by it, however slow the machine is.
pub fn still(seconds: i64) -> OsString {
    // Beside the worlds of the tests, which some compare file by file.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clocks");
    let path = folder.join(seconds.to_string());
    if !path.exists() {
        fs::create_dir_all(&folder).unwrap();
        let new = tempfile::NamedTempFile::new_in(&folder).unwrap();
        fs::write(new.path(), stamp(seconds)).unwrap();
        // Renamed, so that no program reads half of it.
        new.persist(&path).unwrap();
    }
    let mut value = OsString::from("@");
    value.push(path);
    value
}

impl Env {
    /// Lets the limits and pauses of programs pass as they do for users; only the calendar stands still.
    pub fn real_time(&self) -> &Env {
        self.is_real_time.set(true);
        self
    }

    /// Returns a clock for all programs that are started from here on.
    pub fn clock(&self) -> Clock {
        let clock = Clock::new(self.base.join("clock"), (T0 + self.now.get()) * 1000);
        self.var("RALPH_NOW", clock.variable().to_str().unwrap());
        clock
    }
}

impl Clock {
    /// Waits until the running program has acted on the present time: a runner reads the clock a few times in every
    /// pass of its loop.
    pub fn wait_until_seen(&self) {
        FileEvents::of_file(&self.path, Access::Open).wait_for(8);
    }
}
