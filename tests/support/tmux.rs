//! Claude Code as a person sees it: the TUI in a private tmux server, typed into and read like a terminal.
#![allow(dead_code, reason = "each test crate uses its own part of the support")]

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

use crate::client::{Session, runs};
use crate::clock::MAX_WAIT;
use crate::run::kill_process_group;
use crate::skip::skip;

/// The columns and rows of a plain terminal window, and of a large one.
pub const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

const POLL: Duration = Duration::from_millis(50);

const PRESS_AGAIN: Duration = Duration::from_secs(15);

/// What the prompt shows in place of a text of more than about 800 characters.
const LONG_TEXT: &str = "[Pastedtext";

/// A running TUI; dropping it ends the client and its tmux server.
pub struct Screen {
    server: String,
    /// Its own, because a test may drop the session's folder before its screen.
    sockets: TempDir,
}

impl Screen {
    /// Whether there is a tmux; without one the test says so and has to return.
    pub fn available() -> bool {
        let available = runs(Path::new("tmux"), "-V");
        if !available {
            skip("tmux is not installed");
        }
        available
    }

    /// Starts the client and returns when it is ready for a prompt.
    pub fn start(session: &Session) -> Self {
        Self::start_with(session, &[])
    }

    /// The same with arguments for this run only, for example `--resume` and an id.
    pub fn start_with(session: &Session, args: &[&str]) -> Self {
        Self::start_sized(session, args, (120, 45))
    }

    /// Starts the client on a screen of this many columns and rows.
    pub fn start_sized(session: &Session, args: &[&str], size: (u16, u16)) -> Self {
        let mut words: Vec<OsString> = vec!["env".into(), "-i".into()];
        words.extend(assignments(session));
        words.push(session.program().into());
        // As with `-p`: the TUI's own default, auto mode, runs tools that `Session::allow` does not name.
        words.extend(["--permission-mode", "default"].map(Into::into));
        words.extend(session.args().iter().map(OsString::from));
        words.extend(args.iter().map(Into::into));
        let screen = Self::open(&session.project(), size, &words);
        screen.wait_until(prompt_is_ready, MAX_WAIT);
        screen
    }

    /// Any program on a screen of this size.
    pub fn open(working_dir: &Path, size: (u16, u16), words: &[OsString]) -> Self {
        static SERVERS: AtomicUsize = AtomicUsize::new(0);
        let number = SERVERS.fetch_add(1, Ordering::Relaxed);
        let server = format!("ralph-e2e-{}-{number}", std::process::id());
        let screen = Self { server, sockets: tempfile::tempdir().expect("a temporary folder") };

        let mut command = screen.tmux();
        // Set before the session exists, so that a client that dies at once still leaves its last words.
        command.args(["start-server", ";", "set-option", "-g", "remain-on-exit", "on", ";"]);
        command.args(["set-option", "-g", "history-limit", "5000", ";"]);
        let (columns, rows) = (size.0.to_string(), size.1.to_string());
        command
            .args(["new-session", "-d", "-s", "client", "-x", &columns, "-y", &rows, "-c"])
            .arg(working_dir);
        let started = command.args(words).output().expect("tmux runs");
        assert!(started.status.success(), "tmux: {}", String::from_utf8_lossy(&started.stderr));
        screen
    }

    /// Types a line and sends it. The client has taken it when this returns: its prompt is empty again.
    pub fn type_line(&self, line: &str) {
        self.type_text(line);
        self.key("Enter");
        let mut pressed = Instant::now();
        let is_taken = |screen: &str| !is_client(screen) || !shows(&prompt_area(screen), line);
        self.wait_until(
            |screen| {
                let taken = is_taken(screen);
                // A menu that was being drawn may have swallowed the key; an empty prompt ignores it.
                if !taken && pressed.elapsed() > PRESS_AGAIN {
                    self.key("Enter");
                    pressed = Instant::now();
                }
                taken
            },
            MAX_WAIT,
        );
    }

    /// Types without sending; returns when the prompt shows it.
    pub fn type_text(&self, text: &str) {
        // tmux takes an argument's last semicolon for the end of a command.
        let literal = text.strip_suffix(';').map_or_else(|| text.to_owned(), |rest| format!("{rest}\\;"));
        self.control(&["send-keys", "-t", "client", "-l", "--", &literal]);
        self.wait_until(|screen| shows(&prompt_area(screen), text), MAX_WAIT);
    }

    /// Pastes a text as a terminal does, in one piece, and sends it.
    pub fn paste_and_send(&self, text: &str) {
        self.control(&["set-buffer", "--", text]);
        self.control(&["paste-buffer", "-p", "-t", "client"]);
        self.wait_until(|screen| shows(&prompt_area(screen), text), MAX_WAIT);
        self.key("Enter");
    }

    /// Presses a key by tmux's name for it: `Escape`, `Enter`, `Up`, `C-c`.
    pub fn key(&self, name: &str) {
        self.control(&["send-keys", "-t", "client", name]);
    }

    /// The screen and what scrolled off it.
    pub fn text(&self) -> String {
        self.control(&["capture-pane", "-p", "-t", "client", "-S", "-2000"])
    }

    /// What is on the screen now, and nothing else; with the escape codes for its colours where they are wanted.
    pub fn visible(&self, colours: bool) -> String {
        let with: &[&str] = if colours { &["-e"] } else { &[] };
        self.control(&[&["capture-pane", "-p", "-t", "client"], with].concat())
    }

    /// Returns the text as soon as it contains `needle`; panics with the screen when that takes too long.
    pub fn wait_for(&self, needle: &str, timeout: Duration) -> String {
        self.poll(|screen| screen.contains(needle), timeout, &format!("`{needle}`"))
    }

    /// The same for words that a narrow screen may break anywhere.
    pub fn wait_for_words(&self, words: &str, timeout: Duration) -> String {
        let joined = |text: &str| text.split_whitespace().collect::<String>();
        let needle = joined(words);
        self.poll(|screen| joined(screen).contains(&needle), timeout, &format!("`{words}`"))
    }

    /// The same for any condition on the text.
    pub fn wait_until(&self, enough: impl FnMut(&str) -> bool, timeout: Duration) -> String {
        self.poll(enough, timeout, "the expected screen")
    }

    fn poll(&self, mut enough: impl FnMut(&str) -> bool, timeout: Duration, what: &str) -> String {
        let deadline = Instant::now() + timeout;
        loop {
            let text = self.text();
            if enough(&text) {
                return text;
            }
            assert!(
                Instant::now() < deadline,
                "{what} did not come within {timeout:?}:\n{}",
                text.trim_end()
            );
            thread::sleep(POLL);
        }
    }

    /// Kills the client without a chance to react.
    pub fn kill(&self) {
        self.leader().into_iter().for_each(kill_process_group);
    }

    /// Waits until the program has ended. What tmux draws then is no sure sign.
    pub fn wait_for_exit(&self, timeout: Duration) {
        let leader = self.leader().expect("a program runs").to_string();
        let is_alive = || Command::new("kill").args(["-0", &leader]).stderr(Stdio::null()).status();
        let has_ended = |_: &str| !is_alive().expect("kill runs").success();
        self.poll(has_ended, timeout, "the end of the program");
    }

    fn leader(&self) -> Option<u32> {
        let pane = self.tmux().args(["display-message", "-p", "-t", "client", "#{pane_pid}"]).output();
        String::from_utf8_lossy(&pane.ok()?.stdout).trim().parse().ok()
    }

    fn control(&self, args: &[&str]) -> String {
        let output = self.tmux().args(args).output().expect("tmux runs");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {args:?}: {complaint}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn tmux(&self) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.server, "-f", "/dev/null"]).stdin(Stdio::null());
        // A tmux around the tests must not be taken for ours.
        command.env_remove("TMUX").env("TMUX_TMPDIR", self.sockets.path()).env("LANG", "C.UTF-8");
        command
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Not `control`: a panic here, during another one, would abort the whole test run.
        let leader = self.leader();
        drop(self.tmux().arg("kill-server").stderr(Stdio::null()).status());
        // The client may survive the hangup.
        leader.into_iter().for_each(kill_process_group);
    }
}

fn assignments(session: &Session) -> Vec<OsString> {
    // Without the alternate screen the conversation stays in the scrollback, where `text` finds all of it.
    let terminal = [("TERM", "xterm-256color"), ("CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN", "1")];
    let terminal = terminal.into_iter().map(|(name, value)| OsString::from(format!("{name}={value}")));
    let inherited = session.variables().map(|(name, value)| {
        let mut assignment = name.to_owned();
        assignment.push("=");
        assignment.push(value);
        assignment
    });
    terminal.chain(inherited).collect()
}

/// The input box is drawn to its lower edge, and the line below it too.
fn prompt_is_ready(screen: &str) -> bool {
    let lines: Vec<_> = screen.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines.iter().rposition(|line| line.starts_with('❯')).is_some_and(|prompt| prompt + 2 < lines.len())
}

/// Whether this is the client's screen, and not a shell's.
fn is_client(screen: &str) -> bool {
    screen.contains("\n❯")
}

/// Whether the input box holds this text, or stands for it.
fn shows(area: &str, text: &str) -> bool {
    area.contains(&tail_without_spaces(text, 20)) || area.contains(LONG_TEXT)
}

/// The input box and what is below it, without the spaces and line breaks that wrapping moves around. Only the
/// box and sent lines have the mark in the first column; the menu of commands has it further right.
fn prompt_area(screen: &str) -> String {
    let area = screen.rfind("\n❯").map_or(screen, |start| &screen[start..]);
    area.split_whitespace().collect()
}

fn tail_without_spaces(text: &str, length: usize) -> String {
    let text: Vec<char> = text.chars().filter(|letter| !letter.is_whitespace()).collect();
    text[text.len().saturating_sub(length)..].iter().collect()
}
