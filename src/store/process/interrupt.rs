//! A flag that SIGINT, SIGTERM and SIGHUP set, for programs that clean up before they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts to listen. On Windows the flag stays unset: Ctrl-C ends the process at once.
    pub fn listen() -> Interrupt {
        let interrupt = Interrupt::default();
        #[cfg(unix)]
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP]
        {
            let _ = signal_hook::flag::register(signal, Arc::clone(&interrupt.0));
        }
        interrupt
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
