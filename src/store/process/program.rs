//! Starting another program: in a process group of its own, bounded in time and memory, with nothing left running.
//!
//! Every program Ralph starts and waits for goes through [`start`]: [`run`] and [`run_cancellable`] for a program that is
//! asked something, [`super::command`] for a command line of the user, `run::process::supervisor` for the agent.

use super::group::{self, Group};
use super::mark::Marking;
use crate::core::text::clean;
use crate::core::time;
use crate::store::world::Instant;
use std::fmt;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// How much is kept of each output of a program that is asked something.
pub const MAX_ANSWER_BYTES: usize = 8 << 20;
/// How long to wait for the rest of the output after the end of a program.
const DRAIN: Duration = Duration::from_millis(500);
/// More than a pipe holds.
#[cfg(unix)]
const MAX_PIPE_BYTES: usize = 1 << 20;
const CANCEL_POLL: Duration = Duration::from_millis(250);

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    Exit(i32),
    Signal(i32),
    /// It was stopped at this limit.
    TimedOut(Duration),
    Cancelled,
    NotStarted(String),
}

impl From<io::Result<ExitStatus>> for ProgramEnd {
    fn from(status: io::Result<ExitStatus>) -> ProgramEnd {
        #[cfg(unix)]
        if let Ok(status) = &status
            && let Some(signal) = std::os::unix::process::ExitStatusExt::signal(status)
        {
            return ProgramEnd::Signal(signal);
        }
        match status {
            Ok(status) => ProgramEnd::Exit(status.code().unwrap_or(-1)),
            Err(error) => ProgramEnd::NotStarted(format!("its exit status is unknown: {error}")),
        }
    }
}

impl fmt::Display for ProgramEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramEnd::Exit(code) => write!(f, "exit code {code}"),
            ProgramEnd::Signal(signal) => write!(f, "killed by signal {signal}"),
            ProgramEnd::TimedOut(limit) => {
                let limit = time::span(i64::try_from(limit.as_millis()).unwrap_or(i64::MAX));
                write!(f, "timed out after {limit}")
            }
            ProgramEnd::Cancelled => write!(f, "cancelled: the loop was stopped"),
            ProgramEnd::NotStarted(why) => write!(f, "not started: {why}"),
        }
    }
}

/// A running program. Its pipes are there if the command asked for them.
pub struct RunningProgram {
    pub group: Group,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
}

/// Starts a program in a process group of its own and writes `input` to its stdin. `run_id` marks it and everything it
/// starts. `exited` is called in another thread when it ends.
pub fn start(
    command: &mut Command,
    input: Vec<u8>,
    run_id: Option<&str>,
    exited: impl FnOnce(io::Result<ExitStatus>) + Send + 'static,
) -> io::Result<RunningProgram> {
    group::make_group_leader(command);
    let marking = run_id.and_then(Marking::begin);
    let mut child = spawn(command)?;
    marking.inspect(|marking| marking.fix(child.id()));
    let group = Group::of(&child);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let threads = || {
        if let Some(mut stdin) = stdin {
            // A program that does not read all of its input is not an error.
            Builder::new().spawn(move || drop(stdin.write_all(&input)))?;
        }
        Builder::new().spawn(move || exited(child.wait()))
    };
    threads().inspect_err(|_| group.kill())?;
    Ok(RunningProgram { group, stdout, stderr })
}

/// Spawns the command. A program that was written a moment ago may still be open for writing in a process that is
/// just being started, so that error is tried again.
fn spawn(command: &mut Command) -> io::Result<Child> {
    for _ in 0..50 {
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => return other,
        }
    }
    command.spawn()
}

/// How long to wait for a program, and for what it started.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// For its end.
    pub run: Duration,
    /// For the rest of the output of what it left in the background.
    pub drain: Duration,
    /// From TERM to KILL.
    pub grace: Duration,
}

impl Limits {
    pub(super) fn of(run: Duration) -> Limits {
        Limits { run, drain: DRAIN, grace: group::GRACE }
    }
}

/// Runs a program until it ends, its limit is reached or `cancelled` returns true, and ends what it started. Its
/// output goes to `outputs`, whose writers the command holds.
pub(super) fn supervise(
    command: &mut Command,
    input: &[u8],
    limits: Limits,
    cancelled: &dyn Fn() -> bool,
    outputs: &[Capture],
) -> (ProgramEnd, Duration) {
    let began = Instant::now();
    let (sender, exit) = channel();
    let started = start(command, input.to_vec(), None, move |status| drop(sender.send(status)));
    // The pipes close when the last writer is gone, so our own copies must go.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let group = match started {
        Ok(started) => started.group,
        Err(error) => return (ProgramEnd::NotStarted(error.to_string()), Duration::ZERO),
    };
    let ended = wait(&exit, began, limits.run, cancelled);
    let took = began.elapsed();
    if matches!(ended, ProgramEnd::TimedOut(_) | ProgramEnd::Cancelled) {
        group.end_after(limits.grace);
    } else {
        // What it left in the background may be about to write its last lines.
        drain(outputs, limits.drain);
        group.end_rest();
    }
    drain(outputs, limits.drain);
    (ended, took)
}

fn wait(
    exit: &Receiver<io::Result<ExitStatus>>,
    began: Instant,
    limit: Duration,
    cancelled: &dyn Fn() -> bool,
) -> ProgramEnd {
    loop {
        let left = limit.saturating_sub(began.elapsed());
        match exit.recv_timeout(left.min(CANCEL_POLL)) {
            Ok(status) => return status.into(),
            Err(_) if left.is_zero() => return ProgramEnd::TimedOut(limit),
            Err(_) if cancelled() => return ProgramEnd::Cancelled,
            Err(_) => {}
        }
    }
}

/// Waits a short while until the outputs are read to their ends.
fn drain(outputs: &[Capture], limit: Duration) {
    let until = Instant::now() + limit;
    for output in outputs {
        let _ = output.closed.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

/// An output of a program, read to its end by a thread of its own so that the program never waits for us. The end of
/// it is kept.
pub(super) struct Capture {
    #[cfg(unix)]
    pipe: PipeReader,
    kept: Arc<Mutex<OutputTail>>,
    closed: Receiver<()>,
}

impl Capture {
    /// Returns a capture and the writer to give to the program.
    pub(super) fn new(max_bytes: usize) -> io::Result<(Capture, PipeWriter)> {
        let (pipe, writer) = io::pipe()?;
        #[cfg(unix)]
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let kept = Arc::new(Mutex::new(OutputTail { max_bytes, ..OutputTail::default() }));
        // The thread drops the sender at its end, which is the message.
        let (sender, closed) = channel::<()>();
        let capture = Capture {
            #[cfg(unix)]
            pipe: pipe.try_clone()?,
            kept: Arc::clone(&kept),
            closed,
        };
        Builder::new().spawn(move || {
            let _closed = sender;
            while has_bytes(&pipe) {
                match keep(&pipe, &kept) {
                    Ok(0) => return,
                    Err(error) if !is_passing(&error) => return,
                    _ => {}
                }
            }
        })?;
        Ok((capture, writer))
    }

    /// Returns the bytes kept so far, and whether others came before them. All that a program wrote before it ended is
    /// among them, also if the thread was never given the time to read it.
    pub(super) fn take(&self) -> (Vec<u8>, bool) {
        #[cfg(unix)]
        let mut left = MAX_PIPE_BYTES;
        // Bounded, as another program may still write.
        #[cfg(unix)]
        while let Ok(read @ 1..) = keep(&self.pipe, &self.kept) {
            left = left.saturating_sub(read);
            if left == 0 {
                break;
            }
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.cut();
        (std::mem::take(&mut kept.bytes), kept.is_cut)
    }
}

/// Waits until a pipe has bytes, or is at its end. Returns false if that cannot be told.
fn has_bytes(pipe: &PipeReader) -> bool {
    #[cfg(unix)]
    {
        use rustix::event::{PollFd, PollFlags, poll};
        use rustix::io::Errno;
        matches!(poll(&mut [PollFd::new(pipe, PollFlags::IN)], None), Ok(_) | Err(Errno::INTR))
    }
    #[cfg(not(unix))]
    {
        let _ = pipe;
        true
    }
}

/// Reads a pipe once and keeps what came. Returns how much that was: nothing at its end.
fn keep(mut pipe: &PipeReader, kept: &Mutex<OutputTail>) -> io::Result<usize> {
    let mut buffer = [0; 16 << 10];
    let lock = || kept.lock().unwrap_or_else(PoisonError::into_inner);
    // Two may read, and the order must stay. Where a read waits for bytes, only the thread reads.
    #[cfg(unix)]
    let mut kept = lock();
    let read = pipe.read(&mut buffer)?;
    #[cfg(not(unix))]
    let mut kept = lock();
    kept.push(&buffer[..read]);
    Ok(read)
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock)
}

#[derive(Default)]
struct OutputTail {
    max_bytes: usize,
    bytes: Vec<u8>,
    is_cut: bool,
}

impl OutputTail {
    fn push(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
        // Seldom, so that few bytes are moved more than once.
        if self.bytes.len() > 2 * self.max_bytes {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let over = self.bytes.len().saturating_sub(self.max_bytes);
        self.is_cut |= over > 0;
        self.bytes.drain(..over);
    }
}

/// How a program ended and what it printed, as it printed it: clean it before it is shown.
#[derive(Clone, Debug)]
pub struct ProgramOutput {
    pub ended: ProgramEnd,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl ProgramOutput {
    pub fn passed(&self) -> bool {
        self.ended == ProgramEnd::Exit(0)
    }

    /// Returns how it ended and what it complained of, in one line that is safe to show.
    pub fn complaint(&self) -> String {
        let said = if self.stderr.is_empty() { &self.stdout } else { &self.stderr };
        let said = clean::excerpt(&clean::output(said), 400);
        if said.is_empty() { self.ended.to_string() } else { format!("{said} ({})", self.ended) }
    }
}

/// Runs a program with this input until it ends or its limit is reached.
pub fn run(mut command: Command, input: &[u8], limit: Duration) -> ProgramOutput {
    run_cancellable(&mut command, input, limit, &|| false)
}

/// Runs a program as [`run`] does, and ends it as soon as `cancelled` returns true.
pub fn run_cancellable(
    command: &mut Command,
    input: &[u8],
    limit: Duration,
    cancelled: &dyn Fn() -> bool,
) -> ProgramOutput {
    let mut outputs = Vec::new();
    let mut capture = || {
        let (output, writer) = Capture::new(MAX_ANSWER_BYTES)?;
        outputs.push(output);
        io::Result::Ok(writer)
    };
    let (ended, took) = match capture().and_then(|out| Ok((out, capture()?))) {
        Ok((out, err)) => {
            command.stdin(Stdio::piped()).stdout(out).stderr(err);
            supervise(command, input, Limits::of(limit), cancelled, &outputs)
        }
        Err(error) => (ProgramEnd::NotStarted(error.to_string()), Duration::ZERO),
    };
    let mut texts = outputs.iter().map(|output| String::from_utf8_lossy(&output.take().0).into_owned());
    let (stdout, stderr) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
    ProgramOutput { ended, stdout, stderr, took }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    /// Longer than anything here takes on a busy machine.
    const MAX_WAIT: Duration = Duration::from_secs(120);

    fn sh(script: &str, input: &str, limit: Duration) -> ProgramOutput {
        run_cancellable(Command::new("sh").args(["-c", script]), input.as_bytes(), limit, &|| false)
    }

    #[test]
    fn both_outputs_are_kept_apart_and_the_input_arrives() {
        let said = sh("cat; echo no >&2; exit 3", "hello", MAX_WAIT);
        assert_eq!(
            (said.ended, said.stdout.as_str(), said.stderr.as_str()),
            (ProgramEnd::Exit(3), "hello", "no\n")
        );
    }

    #[test]
    fn what_does_not_end_is_ended() {
        let said = sh("sleep 600 & sleep 600", "", Duration::from_millis(10));
        assert!(matches!(said.ended, ProgramEnd::TimedOut(_)), "{said:?}");
        let said = run_cancellable(Command::new("sleep").arg("600"), b"", MAX_WAIT, &|| true);
        assert_eq!(said.ended, ProgramEnd::Cancelled);
        let said = sh("sleep 600 & echo left it behind", "", MAX_WAIT);
        assert_eq!((said.ended, said.stdout.as_str()), (ProgramEnd::Exit(0), "left it behind\n"));
    }

    #[test]
    fn a_flood_is_bounded() {
        let said = sh("head -c 20000000 /dev/zero", "", MAX_WAIT);
        assert_eq!((said.ended, said.stdout.len()), (ProgramEnd::Exit(0), MAX_ANSWER_BYTES));
    }

    /// An output whose thread never runs.
    fn unread() -> (Capture, PipeWriter) {
        let (pipe, writer) = io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&pipe, true).unwrap();
        let kept = Arc::new(Mutex::new(OutputTail { max_bytes: MAX_ANSWER_BYTES, ..OutputTail::default() }));
        (Capture { pipe, kept, closed: channel().1 }, writer)
    }

    #[test]
    fn output_that_was_not_read_in_time_is_kept() {
        let (output, writer) = unread();
        let mut command = Command::new("sh");
        command.args(["-c", "head -c 60000 /dev/zero | tr '\\0' x; echo end"]).stdout(writer);
        command.status().unwrap();
        let said = String::from_utf8(output.take().0).unwrap();
        assert_eq!(said, "x".repeat(60_000) + "end\n");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn who_writes_without_end_does_not_hold_us() {
        let endless = std::os::fd::OwnedFd::from(std::fs::File::open("/dev/zero").unwrap());
        let output = Capture { pipe: endless.into(), ..unread().0 };
        assert_eq!(output.take().0.len(), MAX_PIPE_BYTES);
    }

    #[test]
    fn a_missing_program_says_so() {
        let said = run_cancellable(&mut Command::new("/no/such/program"), b"", MAX_WAIT, &|| false);
        assert!(matches!(said.ended, ProgramEnd::NotStarted(_)), "{said:?}");
    }

    #[test]
    fn memory_stays_flat() {
        let mut tail = OutputTail { max_bytes: 4096, ..OutputTail::default() };
        (0..10_000).for_each(|_| tail.push(&[b'x'; 16 << 10]));
        assert!(tail.bytes.len() == 4096 && tail.is_cut);
        assert!(tail.bytes.capacity() <= 64 << 10, "{}", tail.bytes.capacity());
    }
}
