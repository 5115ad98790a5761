//! One line on stderr about something that takes long: `scanning… 12,000 files`. It appears after a second, is erased when
//! it is done, and is shown on a terminal only.

use super::super::paint;
use crate::core::text::clean;
use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// What is faster says nothing.
const QUIET: Duration = Duration::from_secs(1);
const BETWEEN_DRAWS: Duration = Duration::from_millis(200);
const ERASE: &str = "\r\u{1b}[K";

/// A line that stays up to date until it is dropped.
#[derive(Debug, Default)]
pub struct ProgressLine(Option<(Sender<()>, JoinHandle<()>)>);

impl ProgressLine {
    /// Begins to show what `line` returns, if stderr is a terminal and `wanted`. It is called a few times a second, from
    /// a thread of its own.
    pub fn show(wanted: bool, line: impl Fn() -> String + Send + 'static) -> ProgressLine {
        if !wanted || paint::is_dumb() || !std::io::stderr().is_terminal() {
            return ProgressLine::default();
        }
        let (sender, done) = channel();
        let draw = move || {
            let mut wait = QUIET;
            let mut is_shown = false;
            while done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let width = paint::columns().saturating_sub(1);
                write(&format!("{ERASE}{}", clean::excerpt(&line(), width)));
                (is_shown, wait) = (true, BETWEEN_DRAWS);
            }
            if is_shown {
                write(ERASE);
            }
        };
        let thread = std::thread::Builder::new().name("progress".into()).spawn(draw);
        ProgressLine(thread.ok().map(|thread| (sender, thread)))
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.0.take() {
            drop(sender);
            // The line is gone before anything else is printed.
            let _ = thread.join();
        }
    }
}

fn write(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Returns `12,345`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        for (count, shown) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(count), shown);
        }
    }
}
