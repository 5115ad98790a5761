//! Ctrl-C, and every other reason to leave before the end.

use anyhow::Result;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Why the demo left early, through no fault of the programs it shows.
#[derive(Debug)]
pub enum Cut {
    Interrupted,
    /// Whoever read our output has gone.
    ReaderGone,
    /// A full disk, for example.
    NotShown(std::io::Error),
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cut::Interrupted => f.write_str("interrupted"),
            Cut::ReaderGone => f.write_str("nobody reads any more"),
            Cut::NotShown(error) => write!(f, "stdout could not be written: {error}"),
        }
    }
}

impl std::error::Error for Cut {}

/// Set once the system asks us to end. Where signals cannot be heard (Windows) Ctrl-C ends us at once.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

/// How often a wait looks up.
const LOOK: Duration = Duration::from_millis(20);

impl Interrupt {
    pub fn listen() -> std::io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        #[cfg(unix)]
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP]
        {
            signal_hook::flag::register(signal, Arc::clone(&interrupt.0))?;
        }
        Ok(interrupt)
    }

    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) { Err(Cut::Interrupted.into()) } else { Ok(()) }
    }

    /// Waits, unless it is cut short.
    pub fn wait(&self, time: Duration) -> Result<()> {
        let began = Instant::now();
        loop {
            self.check()?;
            let left = time.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK));
        }
    }
}
