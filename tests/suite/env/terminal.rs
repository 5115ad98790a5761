//! A program on a terminal of its own: what it draws goes through an emulator, what a test types goes to its keyboard.

use super::{Call, MAX_WAIT};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Dropping it closes the terminal and kills the program.
pub struct Terminal {
    child: Child,
    keyboard: Option<File>,
    /// Keeps what the program set readable after it has ended.
    other_side: Option<File>,
    drawn: Arc<Mutex<Drawn>>,
    closed: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

struct Drawn {
    emulator: vt100::Parser,
    bytes: Vec<u8>,
}

impl Call {
    /// Starts it on a terminal of so many columns and rows.
    pub fn on_terminal(mut self, (columns, rows): (u16, u16)) -> Terminal {
        // A program that inherits our side would keep the window open.
        #[cfg(target_os = "linux")]
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        #[cfg(not(target_os = "linux"))]
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let ours = openpt(flags).expect("a terminal");
        grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("a terminal of ours");
        let name = ptsname(&ours, Vec::new()).expect("its name");
        let open =
            || OpenOptions::new().read(true).write(true).open(OsStr::new(name.to_str().unwrap())).unwrap();
        let (stdin, stdout, stderr, other_side) = (open(), open(), open(), open());
        tcsetwinsize(&ours, size(columns, rows)).unwrap();
        self = self.var("TERM", "xterm-256color");
        let child = self.command_mut().stdin(stdin).stdout(stdout).stderr(stderr).spawn();
        // The command holds the other side too, and it would stay open.
        drop(self);
        let keyboard = File::from(ours);
        let emulator = vt100::Parser::new(cells(rows), cells(columns), 0);
        let drawn = Arc::new(Mutex::new(Drawn { emulator, bytes: Vec::new() }));
        let (mut screen, shared) = (keyboard.try_clone().unwrap(), Arc::clone(&drawn));
        let closed = Arc::new(AtomicBool::new(false));
        let is_closed = Arc::clone(&closed);
        let reader = std::thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while !is_closed.load(Ordering::Relaxed) {
                let moment = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
                let ready = poll(&mut [PollFd::new(&screen, PollFlags::IN)], Some(&moment));
                if !matches!(ready, Ok(1..)) {
                    continue;
                }
                let Ok(read @ 1..) = screen.read(&mut buffer) else { return };
                let mut drawn = shared.lock().unwrap();
                drawn.emulator.process(&buffer[..read]);
                drawn.bytes.extend_from_slice(&buffer[..read]);
            }
        });
        let child = child.expect("the program starts");
        Terminal {
            child,
            keyboard: Some(keyboard),
            other_side: Some(other_side),
            drawn,
            closed,
            reader: Some(reader),
        }
    }
}

/// Returns whether a frame has ended: the last thing that is said about one is that the cursor is hidden, or where it is
/// shown. The system gives us a large frame in pieces.
fn ends_with_cursor(bytes: &[u8]) -> bool {
    let tail = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(32)..]);
    match tail.rsplit_once("\u{1b}[?25") {
        Some((_, "l")) => true,
        Some((_, rest)) => rest.starts_with("h\u{1b}[") && rest.ends_with('H'),
        None => false,
    }
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).expect("a screen has cells")
}

impl Terminal {
    /// Returns what is on the screen after a whole frame, without spaces at the ends of lines.
    pub fn text(&self) -> String {
        self.wait_until("a whole frame", |_| true)
    }

    /// Returns what is on the screen now, and whether that is a whole frame.
    fn look(&self) -> (String, bool) {
        let drawn = self.drawn.lock().unwrap();
        let (_, columns) = drawn.emulator.screen().size();
        let rows: Vec<String> = drawn.emulator.screen().rows(0, columns.get()).collect();
        let text = rows.iter().map(|row| row.trim_end().to_owned() + "\n").collect();
        (text, !drawn.emulator.screen().alternate_screen() || ends_with_cursor(&drawn.bytes))
    }

    /// Returns everything that was written so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.drawn.lock().unwrap().bytes.clone()
    }

    /// Waits until the screen is so, and returns it.
    pub fn wait_until(&self, what: &str, so: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let (text, is_whole) = self.look();
            if is_whole && so(&text) {
                return text;
            }
            assert!(
                began.elapsed() < MAX_WAIT,
                "{what} did not come:\n{text}\n{:?}",
                String::from_utf8_lossy(&self.bytes())
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the screen has this part, and returns it.
    pub fn sees(&self, part: &str) -> String {
        self.wait_until(&format!("'{part}'"), |text| text.contains(part))
    }

    pub fn loses(&self, part: &str) -> String {
        self.wait_until(&format!("a screen without '{part}'"), |text| !text.contains(part))
    }

    /// Presses Esc, and waits until the screen has this part. What follows Esc at once would be one key with it.
    pub fn escapes_to(&self, part: &str) -> String {
        self.types("\u{1b}").sees(part)
    }

    /// Types this.
    pub fn types(&self, keys: &str) -> &Self {
        self.keyboard.as_ref().unwrap().write_all(keys.as_bytes()).unwrap();
        self
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        self.drawn.lock().unwrap().emulator.screen_mut().set_size(cells(rows), cells(columns));
        tcsetwinsize(self.keyboard.as_ref().unwrap(), size(columns, rows)).unwrap();
        // It is not the program's controlling terminal, so the system does not tell it.
        self.signal(Signal::WINCH);
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Closes the window, without a signal.
    pub fn close(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        self.reader.take().map(JoinHandle::join);
        (self.keyboard, self.other_side) = (None, None);
    }

    /// Returns whether the terminal is as a shell has it: lines, echo, the first screen, the cursor.
    pub fn is_given_back(&self) -> bool {
        let modes = tcgetattr(self.other_side.as_ref().unwrap()).unwrap().local_modes;
        let drawn = self.drawn.lock().unwrap();
        let screen = drawn.emulator.screen();
        modes.contains(LocalModes::ICANON | LocalModes::ECHO)
            && !screen.alternate_screen()
            && !screen.hide_cursor()
            && !screen.bracketed_paste()
    }

    /// Waits until all that the program wrote is seen, and the terminal is as it was.
    pub fn wait_until_given_back(&self) {
        super::wait_until("the terminal is given back", || self.is_given_back());
    }

    /// Waits for the end of the program and returns its exit code; none if a signal ended it.
    pub fn wait(&mut self) -> Option<i32> {
        super::wait_for("its end", || self.child.try_wait().unwrap()).code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.closed.store(true, Ordering::Relaxed);
    }
}
