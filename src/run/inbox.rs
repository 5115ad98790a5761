//! Everything the runner waits for arrives here, so that every wait ends at once when there is a reason.

use super::terminal;
use crate::store::project::Project;
use crate::store::state;
use crate::store::stop as stops;
use crate::store::world::World;
use std::io::Read;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

pub enum Note {
    /// The agent printed something. `of` is the number of the child it belongs to.
    Output {
        of: u64,
        chunk: Chunk,
        error: bool,
    },
    /// One of its two pipes is closed.
    Closed {
        of: u64,
    },
    Exited {
        of: u64,
        status: std::io::Result<ExitStatus>,
    },
    /// The system asks us to end.
    Interrupt(Request),
    /// The user pressed Enter.
    Key,
    /// `ralph stop`, the kill switch, or a stop of all loops.
    Stopped,
    /// The user's commands have ended.
    Checked,
}

/// How the system asked us to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    CtrlC,
    Terminate,
    HangUp,
}

impl Request {
    /// For the record of the ending.
    pub fn words(self) -> &'static str {
        match self {
            Request::CtrlC => "Ctrl-C",
            Request::Terminate => "asked to end (SIGTERM)",
            Request::HangUp => "the terminal was closed (SIGHUP)",
        }
    }
}

/// Chunks that may wait: their size times this bounds the memory.
const WAITING: usize = 32;
const CHUNK: usize = 64 << 10;
/// How often a stop from another terminal is looked for.
const LOOK: Duration = Duration::from_millis(250);

/// What was read at once. Its buffer is used again, because to get a new one from the system costs more than to fill it.
pub struct Chunk {
    buffer: Vec<u8>,
    len: usize,
    spare: Spare,
}

/// Buffers nobody uses now.
type Spare = Arc<Mutex<Vec<Vec<u8>>>>;

impl Chunk {
    fn read(pipe: &mut impl Read, spare: &Spare) -> std::io::Result<Chunk> {
        let known = spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut buffer = known.unwrap_or_else(|| vec![0; CHUNK]);
        let len = pipe.read(&mut buffer)?;
        Ok(Chunk { buffer, len, spare: Arc::clone(spare) })
    }

    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}

pub struct Inbox {
    pub sender: SyncSender<Note>,
    notes: Receiver<Note>,
    spare: Spare,
}

impl Inbox {
    pub fn new() -> Inbox {
        let (sender, notes) = sync_channel(WAITING);
        Inbox { sender, notes, spare: Spare::default() }
    }

    /// The next note, or nothing after this time.
    pub fn next(&self, patience: Duration) -> Option<Note> {
        match self.notes.recv_timeout(patience) {
            Ok(note) => Some(note),
            Err(RecvTimeoutError::Timeout) => None,
            // We hold a sender ourselves, so this cannot be; and if it were, waiting is right.
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(patience);
                None
            }
        }
    }

    /// Listens to the system's requests to end. Without it a request ends us at once. Who started us deaf to one
    /// (`nohup`, a shell's background) meant it.
    #[cfg(unix)]
    pub fn hear_signals(&self) -> std::io::Result<()> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let deaf = ignored();
        let heard = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| deaf >> (signal - 1) & 1 == 0);
        let mut signals = signal_hook::iterator::Signals::new(heard)?;
        let sender = self.sender.clone();
        Builder::new().spawn(move || {
            for signal in signals.forever() {
                let request = match signal {
                    SIGINT => Request::CtrlC,
                    SIGHUP => Request::HangUp,
                    _ => Request::Terminate,
                };
                if sender.send(Note::Interrupt(request)).is_err() {
                    return;
                }
            }
        })?;
        Ok(())
    }

    #[cfg(not(unix))]
    pub fn hear_signals(&self) -> std::io::Result<()> {
        Ok(())
    }

    /// Listens to the keyboard: every line is a key.
    pub fn hear_keys(&self) -> std::io::Result<()> {
        let sender = self.sender.clone();
        Builder::new().spawn(move || {
            while let Some(lines) = terminal::typed() {
                for _ in 0..lines {
                    if sender.send(Note::Key).is_err() {
                        return;
                    }
                }
            }
        })?;
        Ok(())
    }

    /// Looks for a stop given elsewhere. It is told until it is heeded.
    pub fn hear_stops(&self, world: &World, project: &Project, session: &str) -> std::io::Result<()> {
        let (sender, world, project, session) =
            (self.sender.clone(), world.clone(), project.clone(), session.to_owned());
        let before = stops::stopped_all_at(&world);
        Builder::new().spawn(move || {
            loop {
                std::thread::sleep(LOOK);
                let elsewhere = state::peek(&project)
                    .ok()
                    .flatten()
                    .and_then(|document| document.loop_of(&session))
                    .is_some_and(|lap| !lap.is_alive());
                let stopped =
                    elsewhere || stops::kill_switch(&project) || stops::stopped_all_at(&world) != before;
                if stopped && sender.send(Note::Stopped).is_err() {
                    return;
                }
            }
        })?;
        Ok(())
    }

    /// Reads a pipe of the agent to its end, in a thread of its own.
    pub fn hear_pipe(
        &self,
        mut pipe: impl Read + Send + 'static,
        of: u64,
        error: bool,
    ) -> std::io::Result<()> {
        let (sender, spare) = (self.sender.clone(), Arc::clone(&self.spare));
        Builder::new().spawn(move || {
            loop {
                let chunk = match Chunk::read(&mut pipe, &spare) {
                    Ok(chunk) if chunk.len == 0 => break,
                    Ok(chunk) => chunk,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(_) => break,
                };
                if sender.send(Note::Output { of, chunk, error }).is_err() {
                    return;
                }
            }
            let _ = sender.send(Note::Closed { of });
        })?;
        Ok(())
    }
}

/// The signals this process was started deaf to, a bit each, from the lowest; none where that is not told.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Why a wait was cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    Interrupt(Request),
    Stopped,
    Key,
}

impl Inbox {
    /// Waits until then, or for a reason not to. `each` is called about every second.
    pub fn wait(&self, until: Instant, mut each: impl FnMut(Duration)) -> Option<Cut> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            each(left);
            match self.next(left.min(Duration::from_secs(1))) {
                Some(Note::Interrupt(request)) => return Some(Cut::Interrupt(request)),
                Some(Note::Stopped) => return Some(Cut::Stopped),
                Some(Note::Key) => return Some(Cut::Key),
                // The last words of an iteration that is over.
                Some(Note::Output { .. } | Note::Closed { .. } | Note::Exited { .. } | Note::Checked)
                | None => {}
            }
        }
    }
}
