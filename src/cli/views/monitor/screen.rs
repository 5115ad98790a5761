//! The terminal: taken on entering, given back on leaving, however that happens.

use crate::view::monitor::Monitor;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{BufWriter, Stdout, Write, stdout};
use std::mem::ManuallyDrop;
use std::time::Duration;

/// A whole frame is written in one piece, so that no half of it is seen.
const BUFFER_BYTES: usize = 64 << 10;

pub struct FullScreen {
    /// Never dropped: that would print an error about a terminal that is gone, and panic because it cannot.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Stdout>>>>,
}

impl FullScreen {
    pub fn enter() -> std::io::Result<FullScreen> {
        give_back_on_panic();
        let backend = CrosstermBackend::new(BufWriter::with_capacity(BUFFER_BYTES, stdout()));
        let terminal = Terminal::new(backend)?;
        // From here on it is given back when this is dropped.
        let mut screen = FullScreen { terminal: ManuallyDrop::new(terminal) };
        screen.take()?;
        Ok(screen)
    }

    fn take(&mut self) -> std::io::Result<()> {
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        self.clear()
    }

    pub fn draw(&mut self, monitor: &mut Monitor) -> std::io::Result<()> {
        self.terminal.draw(|frame| monitor.draw(frame))?;
        Ok(())
    }

    /// Draws everything anew at the next chance.
    pub fn clear(&mut self) -> std::io::Result<()> {
        // `Terminal::clear` would ask the terminal where its cursor is, and wait for an answer that may not come.
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    /// Takes the terminal again after the shell had it.
    pub fn restore(&mut self) -> std::io::Result<()> {
        self.take()
    }

    /// Gives the terminal to the shell and stops, as Ctrl-Z does with other programs. Returns when it is continued.
    #[cfg(unix)]
    pub fn suspend(&mut self) -> std::io::Result<()> {
        give_back();
        signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP)?;
        self.take()
    }

    #[cfg(not(unix))]
    pub fn suspend(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What came of waiting for the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalPoll {
    Nothing,
    /// An event can be read.
    Event,
    /// The terminal is gone.
    Gone,
}

/// Waits for a key, a resize or a signal, at most so long. crossterm reads a terminal that was closed again and again
/// without end, so it is asked only while there is one.
#[cfg(unix)]
pub fn wait(limit: Duration) -> std::io::Result<TerminalPoll> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = std::io::stdin();
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    let limit = Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(1),
        tv_nsec: limit.subsec_nanos().into(),
    };
    match poll(&mut polled, Some(&limit)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    if polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Ok(TerminalPoll::Gone);
    }
    // A resize is told by a signal, which ends the poll.
    Ok(if event::poll(Duration::ZERO)? { TerminalPoll::Event } else { TerminalPoll::Nothing })
}

#[cfg(not(unix))]
pub fn wait(limit: Duration) -> std::io::Result<TerminalPoll> {
    Ok(if event::poll(limit)? { TerminalPoll::Event } else { TerminalPoll::Nothing })
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back as it was. A terminal that is gone needs nothing.
fn give_back() {
    let _ = execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
    let _ = stdout().flush();
    let _ = disable_raw_mode();
}

/// Restores the user's screen before a panic is reported. The release build aborts after it, so nothing else would.
fn give_back_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        give_back();
        before(panic);
    }));
}

#[cfg(unix)]
pub use unix::Signals;

#[cfg(unix)]
mod unix {
    use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP};
    use signal_hook::flag::register;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// What the system asked for since the last look.
    #[derive(Default)]
    pub struct Signals {
        end: Arc<AtomicBool>,
        stop: Arc<AtomicBool>,
        continued: Arc<AtomicBool>,
    }

    impl Signals {
        pub fn watch() -> std::io::Result<Signals> {
            let signals = Signals::default();
            for signal in [SIGHUP, SIGINT, SIGTERM] {
                register(signal, Arc::clone(&signals.end))?;
            }
            register(SIGTSTP, Arc::clone(&signals.stop))?;
            register(SIGCONT, Arc::clone(&signals.continued))?;
            Ok(signals)
        }

        pub fn end(&self) -> bool {
            self.end.load(Ordering::Relaxed)
        }

        /// Returns whether another process asked the monitor to suspend itself. A typed Ctrl-Z arrives as a key.
        pub fn stop(&self) -> bool {
            self.stop.swap(false, Ordering::Relaxed)
        }

        pub fn continued(&self) -> bool {
            self.continued.swap(false, Ordering::Relaxed)
        }
    }
}

/// Where there are no signals, keys are all there is.
#[cfg(not(unix))]
pub struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub fn watch() -> std::io::Result<Signals> {
        Ok(Signals)
    }

    pub fn end(&self) -> bool {
        false
    }

    pub fn stop(&self) -> bool {
        false
    }

    pub fn continued(&self) -> bool {
        false
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{LocalModes, tcgetattr};
    use std::ffi::OsStr;
    use std::fs::{File, OpenOptions};
    use std::io::Read;

    const IN_CHILD: &str = "RALPH_TEST_PANIC";

    /// Started again below as a program of its own, on a terminal.
    #[test]
    #[ignore = "started by another test"]
    fn panic_on_a_terminal() {
        if std::env::var_os(IN_CHILD).is_some() {
            let _screen = FullScreen::enter().unwrap();
            panic!("something broke");
        }
    }

    #[test]
    fn a_panic_is_told_on_the_terminal_as_it_was() {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).and_then(|()| unlockpt(&ours)).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let open =
            || OpenOptions::new().read(true).write(true).open(OsStr::new(name.to_str().unwrap())).unwrap();
        let other_side = open();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let helper = "cli::views::monitor::screen::tests::panic_on_a_terminal";
        child.args(["--exact", helper, "--ignored", "--nocapture"]);
        child.env(IN_CHILD, "1").stdin(open()).stdout(open()).stderr(open());
        assert!(!child.status().unwrap().success());
        // It has ended, so all of it is there, but the system may give it in pieces.
        let (mut ours, mut written) = (File::from(ours), String::new());
        while !written.contains("something broke") {
            let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
            let ready = poll(&mut [PollFd::new(&ours, PollFlags::IN)], Some(&limit)).unwrap();
            assert!(ready > 0, "no panic in {written:?}");
            let mut bytes = [0; 4096];
            let length = ours.read(&mut bytes).unwrap();
            written.push_str(&String::from_utf8_lossy(&bytes[..length]));
        }
        let at = |part: &str| written.find(part).unwrap_or_else(|| panic!("no {part:?} in {written:?}"));
        assert!(at("\u{1b}[?1049h") < at("\u{1b}[?1049l"), "{written:?}");
        assert!(at("\u{1b}[?1049l") < at("something broke"), "told after the terminal is back: {written:?}");
        assert!(written.contains("\u{1b}[?25h") && written.contains("\u{1b}[?2004l"), "{written:?}");
        let modes = tcgetattr(&other_side).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO));
    }
}
