//! The clock of a test's world.

use super::{Access, Env, FileEvents, T0};

#[path = "../../support/clock.rs"]
mod support;

pub use support::{Clock, MAX_WAIT, wait_for, wait_until};

impl Env {
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
