//! Where the account of a run comes from: the logs of a runner's iterations, or the transcript of a session.

use crate::claude::{agent_log, transcript};
use crate::cli::{Failure, World};
use crate::core::event::agent_log::AgentLogEntry;
use crate::core::event::timeline::Timeline;
use crate::core::record::Engine;
use crate::core::time::Stamp;
use crate::run::agent;
use crate::store::events::{self, Follower, RunFile};
use crate::store::file;
use crate::store::runner::logs;
use anyhow::Result;
use std::collections::VecDeque;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Returns the newest log or transcript of a run, if it is still there.
pub fn newest(world: &World, run: &RunFile, timeline: &Timeline) -> Option<PathBuf> {
    match run.started.engine {
        Engine::Runner => {
            let folder = folder_of(world, run).ok().flatten()?;
            let current = timeline.current.map(|(number, _)| number);
            let number = current.or_else(|| timeline.iterations.keys().next_back().copied())?;
            run.project().file(&folder.join(logs::name(number))).ok().filter(|path| path.is_file())
        }
        Engine::InSession => {
            let known = timeline.last_iteration().and_then(|last| last.facts.transcript.as_deref());
            transcript_at(world, known, &run.started.session_id)
        }
    }
}

/// Returns the folder with the logs of a runner's run; `None` if they were removed.
pub fn folder_of(world: &World, run: &RunFile) -> Result<Option<PathBuf>> {
    let project = run.project();
    let is_later =
        |other: &&RunFile| other.started.engine == Engine::Runner && other.started_at > run.started_at;
    let runs = events::of_project(world, &project)?;
    let next = runs.iter().filter(is_later).map(|other| other.started_at).min();
    logs::folder_of(&project, run.started_at, next)
}

/// Returns where a transcript is now: a session that moves into another checkout takes it along.
pub fn transcript_at(world: &World, known: Option<&str>, session: &str) -> Option<PathBuf> {
    let known = known.map(Path::new);
    if let Some(path) = known.filter(|path| path.is_file()) {
        return Some(path.to_owned());
    }
    let named = known.and_then(|path| path.file_stem()?.to_str());
    named.into_iter().chain([session]).find_map(|session| transcript::find(world, session))
}

/// One line of a log or a transcript.
pub struct Line {
    pub at: Option<Stamp>,
    pub entries: Vec<AgentLogEntry>,
    pub bytes: Vec<u8>,
}

/// A log or transcript that is read up to a moment.
pub struct AgentLogSource {
    follower: Follower,
    lines: VecDeque<Line>,
    has_more: bool,
    /// Lines before this were told already, or are not of the run.
    floor: Option<Stamp>,
    /// The last line was left out, and so is one without a time behind it.
    leaves_out: bool,
    /// A line that is no JSON is the agent's own.
    is_plain: bool,
    keeps_bytes: bool,
}

impl AgentLogSource {
    /// Reads the log of a runner's iteration.
    pub fn log(path: &Path, keeps_bytes: bool) -> AgentLogSource {
        AgentLogSource { is_plain: true, keeps_bytes, ..AgentLogSource::new(path) }
    }

    /// Reads a transcript from this moment on.
    pub fn transcript(path: &Path, floor: Stamp, keeps_bytes: bool) -> AgentLogSource {
        AgentLogSource { floor: Some(floor), leaves_out: true, keeps_bytes, ..AgentLogSource::new(path) }
    }

    fn new(path: &Path) -> AgentLogSource {
        AgentLogSource {
            follower: Follower::new(path),
            lines: VecDeque::new(),
            has_more: true,
            floor: None,
            leaves_out: false,
            is_plain: false,
            keeps_bytes: false,
        }
    }

    pub fn path(&self) -> &Path {
        self.follower.path()
    }

    /// Returns how many bytes at its beginning were too many to read.
    pub fn skipped_bytes(&self) -> u64 {
        self.follower.skipped_bytes
    }

    /// Returns how many lines so far were too long to show.
    pub fn long_lines(&self) -> u64 {
        self.follower.long_lines
    }

    /// Leaves out what is older.
    pub fn raise_floor(&mut self, floor: Stamp) {
        self.floor = self.floor.max(Some(floor));
    }

    /// Hands on the lines up to a moment, or all there are.
    pub fn tell(
        &mut self,
        until: Option<Stamp>,
        mut each: impl FnMut(Line) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.has_more = true;
        loop {
            let is_due = |line: &Line| until.is_none_or(|until| line.at.is_none_or(|at| at <= until));
            while self.lines.front().is_some_and(is_due) {
                let Some(line) = self.lines.pop_front() else { break };
                self.leaves_out = match (line.at, self.floor) {
                    (Some(at), Some(floor)) => at < floor,
                    _ => self.leaves_out,
                };
                if !self.leaves_out {
                    each(line)?;
                }
            }
            if !self.lines.is_empty() || !self.has_more {
                return Ok(());
            }
            self.read()?;
        }
    }

    /// Hands on what is left, also a last line without its end.
    pub fn finish(&mut self, mut each: impl FnMut(Line) -> Result<(), Failure>) -> Result<(), Failure> {
        self.tell(None, &mut each)?;
        match self.follower.take_rest() {
            Some(rest) => each(self.line(&rest)),
            None => Ok(()),
        }
    }

    fn read(&mut self) -> Result<()> {
        let mut lines = Vec::new();
        let news = self.follower.poll(|line| lines.push(line.to_vec()))?;
        self.has_more = news.more;
        for bytes in lines {
            let line = self.line(&bytes);
            if !line.entries.is_empty() || self.keeps_bytes {
                self.lines.push_back(line);
            }
        }
        Ok(())
    }

    fn line(&self, bytes: &[u8]) -> Line {
        let entries = if self.is_plain { agent::log_entries(bytes) } else { agent_log::entries(bytes) };
        let at = entries.first().and_then(|entry| entry.at);
        let at = at.or_else(|| agent_log::time_of(bytes).filter(|_| self.keeps_bytes));
        Line { at, entries, bytes: if self.keeps_bytes { bytes.to_vec() } else { Vec::new() } }
    }
}

/// A growing file whose bytes are handed on as they are.
pub struct Bytes {
    path: PathBuf,
    offset: u64,
}

impl Bytes {
    pub fn new(path: &Path) -> Bytes {
        Bytes { path: path.to_owned(), offset: 0 }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Copies what is new, and returns how much that was. Nothing is new in a file that is not there.
    pub fn copy(&mut self, out: &mut impl Write) -> std::io::Result<u64> {
        let Ok(mut opened) = file::open_plain(&self.path) else { return Ok(0) };
        if !opened.metadata().is_ok_and(|meta| meta.is_file()) {
            return Ok(0);
        }
        opened.seek(SeekFrom::Start(self.offset))?;
        let count = std::io::copy(&mut opened, out)?;
        self.offset += count;
        Ok(count)
    }
}
