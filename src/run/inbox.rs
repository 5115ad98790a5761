//! Everything the runner waits for arrives here, so that every wait ends at once if there is a reason.

#[cfg(unix)]
use super::process::pipes::{OutputChunk, Pipes};
use super::terminal;
use crate::store::project::Project;
use crate::store::state;
use crate::store::state::stop as stops;
use crate::store::world::{Instant, World};
use std::process::{ChildStderr, ChildStdout, ExitStatus};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::Duration;

pub enum Message {
    /// The agent printed something. `of` is the number of its process.
    Output {
        of: u64,
        chunk: Vec<u8>,
        is_stderr: bool,
    },
    /// One of its two pipes is closed.
    Closed {
        of: u64,
    },
    Exited {
        of: u64,
        status: std::io::Result<ExitStatus>,
    },
    Signal(StopSignal),
    /// The user pressed Enter.
    Key,
    /// `ralph stop`, the kill switch, or a stop of all loops.
    Stopped,
    /// There is an answer to the question for which the run waits.
    Answered,
}

/// How the system asked us to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    CtrlC,
    Terminate,
    HangUp,
}

impl StopSignal {
    pub fn words(self) -> &'static str {
        match self {
            StopSignal::CtrlC => "Ctrl-C",
            StopSignal::Terminate => "asked to end (SIGTERM)",
            StopSignal::HangUp => "the terminal was closed (SIGHUP)",
        }
    }
}

/// How many messages may wait: times the size of a chunk this bounds the memory.
const MAX_WAITING_MESSAGES: usize = 32;
/// How often to look for a stop given elsewhere.
const STOP_POLL: Duration = Duration::from_millis(250);

pub struct Inbox {
    pub sender: SyncSender<Message>,
    messages: Receiver<Message>,
}

/// Why a wait ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    Signal(StopSignal),
    Stopped,
    Key,
    Answered,
}

impl Inbox {
    pub fn new() -> Inbox {
        let (sender, messages) = sync_channel(MAX_WAITING_MESSAGES);
        Inbox { sender, messages }
    }

    /// Returns the next message, or nothing after this time.
    pub fn next(&self, limit: Duration) -> Option<Message> {
        // The inbox holds a sender itself, so the channel is never closed.
        self.messages.recv_timeout(limit).ok()
    }

    /// Waits until then, or for a reason not to. `each` is called about every second.
    pub fn wait(&self, until: Instant, mut each: impl FnMut(Duration)) -> Option<Interruption> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            each(left);
            if let Some(interruption) =
                self.next(left.min(Duration::from_secs(1))).as_ref().and_then(interruption)
            {
                return Some(interruption);
            }
        }
    }

    /// Returns a reason to end a wait, if one comes within this time. No clock of a test moves it.
    pub fn wait_briefly(&self, limit: Duration) -> Option<Interruption> {
        self.next(limit).as_ref().and_then(interruption)
    }

    /// Returns a reason to end a wait, without waiting for one.
    pub fn interruption(&self) -> Option<Interruption> {
        std::iter::from_fn(|| self.next(Duration::ZERO)).find_map(|message| interruption(&message))
    }

    /// Runs a watcher in a thread of its own. It ends when nothing receives its messages any more.
    fn watch(&self, watcher: impl FnOnce(SyncSender<Message>) + Send + 'static) -> std::io::Result<()> {
        let sender = self.sender.clone();
        Builder::new().spawn(move || watcher(sender)).map(drop)
    }

    /// Watches for signals to end; without it a signal ends us at once. One that was ignored when we were started
    /// (`nohup`, a shell's background) stays ignored.
    #[cfg(unix)]
    pub fn watch_signals(&self) -> std::io::Result<()> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let ignored = ignored_signals();
        let watched = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
        let mut signals = signal_hook::iterator::Signals::new(watched)?;
        self.watch(move |sender| {
            let signals = signals.forever().map(|signal| match signal {
                SIGINT => StopSignal::CtrlC,
                SIGHUP => StopSignal::HangUp,
                _ => StopSignal::Terminate,
            });
            let _ = signals.map(Message::Signal).try_for_each(|message| sender.send(message));
        })
    }

    #[cfg(not(unix))]
    pub fn watch_signals(&self) -> std::io::Result<()> {
        Ok(())
    }

    /// Watches the keyboard: every line is a key.
    pub fn watch_keys(&self) -> std::io::Result<()> {
        self.watch(|sender| {
            let mut lines = std::iter::from_fn(terminal::typed);
            let _ = lines.try_for_each(|lines| (0..lines).try_for_each(|_| sender.send(Message::Key)));
        })
    }

    /// Watches for a stop given elsewhere, and reports it until the run ends.
    pub fn watch_stops(&self, world: &World, project: &Project, session: &str) -> std::io::Result<()> {
        let (world, project, session) = (world.clone(), project.clone(), session.to_owned());
        let before = stops::stopped_all_at(&world).unwrap_or_default();
        self.watch(move |sender| {
            loop {
                std::thread::sleep(STOP_POLL);
                let run =
                    state::peek(&project).ok().flatten().and_then(|document| document.loop_of(&session));
                let stopped = run.is_some_and(|run| !run.is_alive())
                    || stops::kill_switch(&project)
                    || stops::stopped_all_at(&world).is_ok_and(|at| at != before);
                if stopped && sender.send(Message::Stopped).is_err() {
                    return;
                }
            }
        })
    }

    /// Reads both outputs of the agent to their ends, in the order they come.
    #[cfg(unix)]
    pub fn read_outputs(
        &self,
        stdout: Option<ChildStdout>,
        stderr: Option<ChildStderr>,
        of: u64,
    ) -> std::io::Result<()> {
        let mut pipes = Pipes::new(stdout.map(Into::into), stderr.map(Into::into));
        self.watch(move |sender| {
            let _ = pipes.try_for_each(|piece| match piece {
                OutputChunk::Output { chunk, is_stderr } => {
                    sender.send(Message::Output { of, chunk, is_stderr })
                }
                OutputChunk::Closed => sender.send(Message::Closed { of }),
            });
        })
    }

    #[cfg(not(unix))]
    pub fn read_outputs(
        &self,
        stdout: Option<ChildStdout>,
        stderr: Option<ChildStderr>,
        of: u64,
    ) -> std::io::Result<()> {
        self.read_pipe(stdout, of, false).and_then(|()| self.read_pipe(stderr, of, true))
    }

    /// Reads one pipe to its end.
    #[cfg(not(unix))]
    fn read_pipe(
        &self,
        pipe: Option<impl std::io::Read + Send + 'static>,
        of: u64,
        is_stderr: bool,
    ) -> std::io::Result<()> {
        self.watch(move |sender| {
            let mut pipe = pipe;
            let mut buffer = vec![0; 64 << 10];
            while let Some(pipe) = &mut pipe {
                let chunk = match pipe.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(len) => buffer[..len].to_vec(),
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(_) => break,
                };
                if sender.send(Message::Output { of, chunk, is_stderr }).is_err() {
                    return;
                }
            }
            let _ = sender.send(Message::Closed { of });
        })
    }
}

fn interruption(message: &Message) -> Option<Interruption> {
    match message {
        Message::Signal(signal) => Some(Interruption::Signal(*signal)),
        Message::Stopped => Some(Interruption::Stopped),
        Message::Key => Some(Interruption::Key),
        Message::Answered => Some(Interruption::Answered),
        // Late messages of an iteration that is over.
        Message::Output { .. } | Message::Closed { .. } | Message::Exited { .. } => None,
    }
}

/// Returns the signals this process was started to ignore, one bit each from the lowest; none if that is unknown.
#[cfg(unix)]
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
