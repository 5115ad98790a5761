//! A call of a program, built step by step: `env.call(Program::Ralph).args(&["status"]).run().ok()`.

use super::running::{Run, Running};
use crate::signals::with_default_signals;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

#[derive(Clone, Copy, Debug)]
pub enum Program {
    Ralph,
    Guidance,
    StopHook,
    SessionStartHook,
}

impl Program {
    pub fn path(self) -> &'static str {
        match self {
            Program::Ralph => env!("CARGO_BIN_EXE_ralph"),
            Program::Guidance => env!("CARGO_BIN_EXE_ralph-guidance"),
            Program::StopHook => env!("CARGO_BIN_EXE_ralph-stop-hook"),
            Program::SessionStartHook => env!("CARGO_BIN_EXE_ralph-session-start-hook"),
        }
    }
}

/// More than a pipe holds on every system is written by a thread.
const MAX_DIRECT_INPUT_BYTES: usize = 4 << 10;

pub struct Call {
    program: PathBuf,
    args: Vec<OsString>,
    command: Command,
    stdin: Vec<u8>,
}

impl Call {
    /// Returns a call without any variable of the test's own environment.
    pub(super) fn new(program: &Path) -> Call {
        let mut command = with_default_signals(program);
        command.env_clear();
        Call { program: program.to_owned(), args: Vec::new(), command, stdin: Vec::new() }
    }

    pub fn args<S: AsRef<OsStr>>(mut self, args: &[S]) -> Self {
        self.command.args(args);
        self.args.extend(args.iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    pub fn var(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub fn cwd(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Starts it through `nohup`, with SIGHUP ignored.
    pub fn nohup(self) -> Self {
        self.through::<&str>("nohup", &[])
    }

    /// Starts it with at most so much memory, where the system can limit it: reading without end then fails.
    pub fn max_memory_mb(self, max: u64) -> Self {
        // Otherwise every thread reserves address space, which says nothing about memory.
        let call = self.var("MALLOC_ARENA_MAX", "1");
        call.through("sh", &["-c", &format!("ulimit -d {} 2>/dev/null; exec \"$0\" \"$@\"", max << 10)])
    }

    /// Starts it through another program, which takes the command line after its own arguments.
    pub fn through<S: AsRef<OsStr>>(self, program: &str, args: &[S]) -> Self {
        let mut command = with_default_signals(program);
        command.args(args).arg(&self.program).args(&self.args).env_clear();
        command.envs(self.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(self.command.get_current_dir().unwrap());
        Call { command, ..self }
    }

    pub fn run(self) -> Run {
        self.spawn().wait()
    }

    pub fn spawn(mut self) -> Running {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the program starts");
        let mut pipe = child.stdin.take().unwrap();
        let bytes = self.stdin;
        // A program that does not read all of its input is no failure of the test.
        if bytes.len() <= MAX_DIRECT_INPUT_BYTES {
            drop(pipe.write_all(&bytes));
        } else {
            std::thread::spawn(move || drop(pipe.write_all(&bytes)));
        }
        Running::new(child)
    }

    /// Starts it with a stdout whose reader is gone.
    pub fn spawn_unread(mut self) -> Running {
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the program starts");
        drop(child.stdout.take());
        Running::new(child)
    }

    /// Runs it with a terminal as stdout, and returns what that got.
    pub fn run_on_terminal(mut self) -> String {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        use std::io::Read;
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&screen).and_then(|()| unlockpt(&screen)).expect("a terminal of ours");
        let name = ptsname(&screen, Vec::new()).expect("its name");
        let terminal = fs::OpenOptions::new().read(true).write(true).open(OsStr::new(name.to_str().unwrap()));
        self.command.stdin(Stdio::null()).stdout(terminal.expect("the other side")).stderr(Stdio::null());
        let mut child = self.command.spawn().expect("the program starts");
        // Our copy of the other side; without it the terminal ends with the program.
        drop(self);
        let (mut printed, mut buffer, mut screen) = (Vec::new(), [0; 4096], fs::File::from(screen));
        while let Ok(read @ 1..) = screen.read(&mut buffer) {
            printed.extend_from_slice(&buffer[..read]);
        }
        child.wait().unwrap();
        String::from_utf8(printed).expect("output is text")
    }

    pub(super) fn command_mut(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Starts it with a terminal as stdin; what is written to the file is typed.
    pub fn spawn_typed(mut self) -> (Running, fs::File) {
        let (keyboard, terminal) = terminal();
        self.command.stdin(terminal).stdout(Stdio::piped()).stderr(Stdio::piped());
        (Running::new(self.command.spawn().expect("the program starts")), keyboard)
    }

    /// Starts it on a terminal; what is written to the file is typed, and what is read from it is on the screen.
    pub fn spawn_on_terminal(mut self) -> (Child, fs::File) {
        let (screen, terminal) = terminal();
        let same = || terminal.try_clone().expect("the same terminal");
        self.command.stdin(same()).stdout(same()).stderr(same());
        (self.command.spawn().expect("the program starts"), screen)
    }
}

/// Returns both sides of a new terminal: the user's, and the programs'.
fn terminal() -> (fs::File, fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&keyboard).and_then(|()| unlockpt(&keyboard)).expect("a terminal of ours");
    let name = ptsname(&keyboard, Vec::new()).expect("its name");
    let terminal = fs::OpenOptions::new().read(true).write(true).open(OsStr::new(name.to_str().unwrap()));
    (keyboard.into(), terminal.expect("the other side"))
}

/// Copies a program. A process of its own copies it, for the same reason as in [`write_program`].
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").args([from, to]).status().expect("cp runs");
    assert!(copied.success(), "{} cannot be copied", from.display());
}

/// Writes an executable script. A process of its own writes it: a file that this process had open for writing could
/// be inherited by a program another test is just starting, and until that runs the script is "busy" and cannot be run.
pub fn write_program(path: &Path, text: &str) {
    let mut writer = Command::new("sh");
    writer.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut writer = writer.spawn().expect("a shell runs");
    writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success(), "{} cannot be written", path.display());
}
