//! A terminal whose whole screen is ours for a while. However we leave, the user's screen comes back.

use crate::core::text::clean;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use std::io::Write;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

/// The other screen, without a cursor, and lines that are cut instead of wrapped.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l";
const LEAVE: &str = "\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";

/// The modes of the terminal before, while they are changed.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    None,
    /// q, Ctrl-C, or the terminal is gone.
    Leave,
}

#[derive(Debug)]
pub struct Screen(());

impl Screen {
    pub fn open() -> std::io::Result<Screen> {
        let before = tcgetattr(std::io::stdin())?;
        let mut modes = before.clone();
        // Keys come one by one and unseen; Ctrl-C is one of them, and Ctrl-Z would leave a broken screen behind.
        modes.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        restore_on_panic();
        let screen = Screen(());
        tcsetattr(std::io::stdin(), OptionalActions::Now, &modes)?;
        write(ENTER);
        Ok(screen)
    }

    /// Shows the beginning of a text, as far as it fits, and below it the key that leaves.
    pub fn show(&self, text: &str, (columns, rows): (usize, usize)) {
        let lines: Vec<&str> = text.lines().collect();
        let shown = lines.len().min(rows.saturating_sub(1));
        let mut out = String::from("\u{1b}[H");
        for line in &lines[..shown] {
            out.push_str(&format!("{}\u{1b}[K\r\n", fit(line, columns)));
        }
        let last = match lines.len() - shown {
            0 => "q quits".to_owned(),
            more => format!("q quits · {more} more lines"),
        };
        write(&format!("{out}{}\u{1b}[K\u{1b}[J", fit(&last, columns)));
    }

    /// Waits for a key. Returns what the user wants with it, or that nothing came within the time.
    pub fn key(&self, within: Duration) -> Key {
        let stdin = std::io::stdin();
        let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
        let (tv_sec, tv_nsec) = (within.as_secs().try_into().unwrap_or(1), within.subsec_nanos().into());
        let polled = poll(&mut ready, Some(&Timespec { tv_sec, tv_nsec }));
        // A terminal that is gone can be read no more.
        if ready[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
            return Key::Leave;
        }
        if !polled.is_ok_and(|count| count > 0) {
            return Key::None;
        }
        let mut keys = [0; 64];
        match rustix::io::read(&stdin, &mut keys) {
            Ok(count) if keys[..count].iter().any(|key| matches!(key, b'q' | b'Q' | 3)) => Key::Leave,
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => Key::None,
            Err(_) => Key::Leave,
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Returns a line of at most so many columns, which may have colours; a cut is shown by an ellipsis.
fn fit(line: &str, columns: usize) -> String {
    // Each code begins with Esc and ends with `m`.
    let parts = || {
        line.split_inclusive('m').flat_map(|part| match part.find('\u{1b}') {
            Some(at) => [&part[..at], &part[at..]],
            None => [part, ""],
        })
    };
    let width: usize = parts().step_by(2).map(clean::columns).sum();
    if width <= columns {
        return line.to_owned();
    }
    let (mut out, mut left) = (String::new(), columns.saturating_sub(1));
    for (at, part) in parts().enumerate() {
        let is_code = at % 2 == 1;
        let kept = if is_code { part } else { &part[..clean::fitting(part, left)] };
        left -= if is_code { 0 } else { clean::columns(kept) };
        out.push_str(kept);
        if kept.len() < part.len() {
            break;
        }
    }
    out + "…\u{1b}[0m"
}

/// Gives the screen back to the user; done once, however often it is called.
fn restore() {
    if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        write(LEAVE);
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &before);
    }
}

/// Restores the screen at a panic: a release build aborts without running destructors.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let earlier = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            earlier(info);
        }));
    });
}

/// Returns the columns and rows of the terminal; those of the oldest ones if it does not tell.
pub fn size() -> (usize, usize) {
    match tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => (80, 24),
    }
}

fn write(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_to_the_columns_that_it_takes_on_the_screen() {
        for (line, shown) in [
            ("1234567", "1234567"),
            ("12345678", "123456…\u{1b}[0m"),
            ("\u{1b}[2mam\u{1b}[0m mmm", "\u{1b}[2mam\u{1b}[0m mmm"),
            ("\u{1b}[2mam\u{1b}[0m mmmmm", "\u{1b}[2mam\u{1b}[0m mmm…\u{1b}[0m"),
            ("测试测试", "测试测…\u{1b}[0m"),
        ] {
            assert_eq!(fit(line, 7), shown);
        }
    }
}
