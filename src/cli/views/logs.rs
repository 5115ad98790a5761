//! `ralph logs`: what the agent of a run said and did, in order and with times; live with `--follow`.
//!
//! The events of the run say what belongs to it and when. Between two events comes what the log or the transcript has up
//! to then.

use super::chosen_run;
use super::sources::{self, AgentLogSource, Bytes, Line};
use crate::cli::{CommandOutput, Failure, Invocation, World};
use crate::core::event::{Event, EventKind, IterationEnded};
use crate::core::outcome::Exit;
use crate::core::record::Engine;
use crate::core::text::clean;
use crate::core::time::Stamp;
use crate::store::events::{Follower, MAX_LINE_BYTES, RunFile};
use crate::store::runner::{logs, run_lock};
use crate::store::state;
use crate::view;
use crate::view::paint::Paint;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often growing files are looked at, and after how many looks whether the run is still there.
const POLL: Duration = Duration::from_millis(250);
const ALIVE_EVERY: u32 = 8;

pub use super::sources::newest;

pub fn command(call: &Invocation) -> CommandOutput {
    let run = chosen_run(call)?;
    let only: Option<u64> = call.parsed("iteration");
    let is_terminal = std::io::stdout().is_terminal();
    let out = BufWriter::new(std::io::stdout().lock());
    let folder = match run.started.engine {
        Engine::Runner => sources::folder_of(&call.world, &run)?,
        Engine::InSession => None,
    };
    let mut reading = LogReader {
        world: &call.world,
        events: Follower::new(&run.path),
        folder,
        only,
        raw: call.flag("raw"),
        cleans: is_terminal,
        paint: Paint::for_stdout(),
        out,
        source: None,
        bytes: None,
        iteration: run.started.iteration.max(1),
        heading: None,
        begun: None,
        last_at: run.started_at,
        is_open: false,
        has_ended: false,
        told: false,
        skipped: false,
        events_skipped: false,
        is_titled: false,
        session: run.started.session_id.clone(),
        run,
    };
    let told = if call.flag("follow") { reading.follow() } else { reading.once() };
    match told {
        // A reader that went away has seen enough.
        Err(failure) if failure.message == GONE => Ok((String::new(), Exit::Success)),
        Err(failure) => Err(failure),
        Ok(()) => Ok((String::new(), Exit::Success)),
    }
}

const GONE: &str = "stdout is closed";

struct LogReader<'a, W: Write> {
    world: &'a World,
    run: RunFile,
    session: String,
    events: Follower,
    /// The logs of a runner.
    folder: Option<PathBuf>,
    only: Option<u64>,
    raw: bool,
    /// Escape codes do not reach a terminal, even raw.
    cleans: bool,
    paint: Paint,
    out: W,
    source: Option<AgentLogSource>,
    /// A runner's log, of which every byte is wanted.
    bytes: Option<Bytes>,
    /// The iteration that what comes next belongs to.
    iteration: u64,
    /// The heading that is due before it, with its mode and time.
    heading: Option<(String, Stamp)>,
    /// The iteration of a runner that has a heading.
    begun: Option<u64>,
    last_at: Stamp,
    /// The run is between a start and an ending.
    is_open: bool,
    has_ended: bool,
    /// Something was printed.
    told: bool,
    /// It was told that the beginning of the source, or of the events, is left out.
    skipped: bool,
    events_skipped: bool,
    is_titled: bool,
}

impl<W: Write> LogReader<'_, W> {
    fn once(&mut self) -> Result<(), Failure> {
        self.advance()?;
        self.close_source()?;
        self.flush()?;
        match self.only {
            Some(number) if !self.told => {
                let id = crate::core::message::short_id(&self.run.run_id);
                let last = self.iteration.max(1);
                Err(Failure::refused(format!("run {id} has no iteration {number}"))
                    .hint(format!("its newest iteration is {last}")))
            }
            _ => Ok(()),
        }
    }

    /// Tells what comes until the run has ended, or its iteration if only that is wanted.
    fn follow(&mut self) -> Result<(), Failure> {
        for poll in 0u32.. {
            let is_news = self.advance()?;
            self.flush()?;
            if is_news {
                continue;
            }
            let is_past = self.only.is_some_and(|only| self.iteration > only);
            if self.has_ended || is_past || (poll % ALIVE_EVERY == ALIVE_EVERY - 1 && !self.is_alive()) {
                // What came just before that.
                self.advance()?;
                self.close_source()?;
                if !self.has_ended && !is_past && !self.raw {
                    self.print(
                        "Ralph: this loop is no longer running; `ralph status` shows how to continue it\n",
                    )?;
                }
                return self.flush();
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Returns whether something may still add to the run.
    fn is_alive(&self) -> bool {
        let project = self.run.project();
        if self.run.started.engine == Engine::Runner {
            return run_lock::holder(self.world, &project)
                .is_some_and(|holder| holder.run_id == self.run.run_id);
        }
        let own = state::peek(&project).ok().flatten().and_then(|document| document.loop_of(&self.session));
        own.is_some_and(|run| run.run_id == self.run.run_id && run.is_alive())
    }

    /// Tells what is new. Returns whether there was an event.
    fn advance(&mut self) -> Result<bool, Failure> {
        let mut is_news = false;
        loop {
            let mut events = Vec::new();
            let news = self.events.poll(|line| events.extend(Event::parse(line)))?;
            if self.events.skipped_bytes > 0 && !std::mem::replace(&mut self.events_skipped, true) {
                let path = self.events.path().to_owned();
                self.print_left_out(&path, self.events.skipped_bytes)?;
            }
            for event in events {
                is_news = true;
                self.event(&event)?;
            }
            if !news.more {
                break;
            }
        }
        if self.is_open {
            self.find_transcript(None);
            self.print_source(None)?;
        }
        Ok(is_news)
    }

    fn event(&mut self, event: &Event) -> Result<(), Failure> {
        let at = event.timestamp.max(self.last_at);
        if let EventKind::IterationEnded(facts) = &event.what {
            self.find_transcript(facts.transcript.as_deref());
        }
        if self.is_open {
            self.print_source(Some(at))?;
        }
        match &event.what {
            EventKind::Started(started) => {
                self.note(event)?;
                self.is_open = true;
                self.has_ended = false;
                self.begun = None;
                // One that was cleared may have been adopted by another.
                self.session.clone_from(&started.session_id);
                if let Some(source) = &mut self.source {
                    source.raise_floor(at);
                }
                if self.run.started.engine == Engine::InSession {
                    self.begin(started.iteration, "", at);
                }
            }
            EventKind::IterationStarted(begun) => {
                self.begin(begun.iteration, &begun.mode, at);
                self.open_log();
            }
            EventKind::IterationEnded(facts) => self.end_iteration(event, facts, at)?,
            EventKind::Ended(_) => {
                self.close_source()?;
                self.heading = None;
                // An ending belongs to the last iteration.
                self.iteration = self.iteration.saturating_sub(u64::from(self.begun.is_none())).max(1);
                self.note(event)?;
                (self.is_open, self.has_ended) = (false, true);
            }
            EventKind::Check(_) => {
                // The agent has ended.
                self.close_source()?;
                self.note(event)?;
            }
            _ => self.note(event)?,
        }
        self.last_at = at;
        Ok(())
    }

    fn begin(&mut self, iteration: u64, mode: &str, at: Stamp) {
        self.iteration = iteration;
        self.heading = Some((mode.to_owned(), at));
    }

    fn end_iteration(&mut self, event: &Event, facts: &IterationEnded, at: Stamp) -> Result<(), Failure> {
        if self.run.started.engine == Engine::Runner {
            self.close_source()?;
        }
        self.iteration = facts.iteration;
        self.note(event)?;
        self.begun = None;
        if self.run.started.engine == Engine::InSession {
            self.begin(facts.iteration + 1, "", at);
        } else {
            self.iteration = facts.iteration + 1;
        }
        Ok(())
    }

    /// Opens the log of the iteration that begins. One that is repeated adds to its log.
    fn open_log(&mut self) {
        let Some(folder) = &self.folder else { return };
        if self.only.is_some_and(|only| only != self.iteration) {
            (self.source, self.bytes) = (None, None);
            return;
        }
        let path = folder.join(logs::name(self.iteration));
        if self.bytes.as_ref().is_some_and(|bytes| bytes.path() == path) {
            return;
        }
        if self.source.as_ref().is_some_and(|source| source.path() == path) {
            return;
        }
        // Checked by the door, and again at every look: it is opened without following a link.
        let Ok(path) = self.run.project().file(&path) else { return };
        match self.raw && !self.cleans {
            true => self.bytes = Some(Bytes::new(&path)),
            false => self.source = Some(AgentLogSource::log(&path, self.raw)),
        }
    }

    /// Finds the transcript where an event says it is, or where it has moved.
    fn find_transcript(&mut self, told: Option<&str>) {
        if self.run.started.engine == Engine::Runner {
            return;
        }
        let present = self.source.as_ref().map(AgentLogSource::path);
        if present
            .is_some_and(|path| told.is_none_or(|told| *told == *path.to_string_lossy()) && path.is_file())
        {
            return;
        }
        let told =
            told.map(str::to_owned).or_else(|| present.map(|path| path.to_string_lossy().into_owned()));
        let Some(path) = sources::transcript_at(self.world, told.as_deref(), &self.session) else {
            return;
        };
        if present != Some(path.as_path()) {
            self.source = Some(AgentLogSource::transcript(&path, self.last_at, self.raw));
        }
    }

    fn print_source(&mut self, until: Option<Stamp>) -> Result<(), Failure> {
        if let Some(bytes) = &mut self.bytes {
            self.told |= bytes.copy(&mut self.out).map_err(|_| Failure::refused(GONE))? > 0;
        }
        let Some(mut source) = self.source.take() else { return Ok(()) };
        let known = source.long_lines();
        let told = source.tell(until, |line| self.line(&line));
        self.print_skipped(&source, known)?;
        self.source = Some(source);
        told
    }

    fn close_source(&mut self) -> Result<(), Failure> {
        if self.run.started.engine == Engine::InSession {
            return Ok(());
        }
        self.print_source(None)?;
        self.bytes = None;
        let Some(mut source) = self.source.take() else { return Ok(()) };
        source.finish(|line| self.line(&line))
    }

    /// Tells what of the source is not shown: its beginning, and the lines that were too long since `known` of them.
    fn print_skipped(&mut self, source: &AgentLogSource, known: u64) -> Result<(), Failure> {
        let long = source.long_lines().saturating_sub(known);
        if long > 0 && !self.raw && self.is_wanted() {
            let lines = if long == 1 { "1 line".to_owned() } else { format!("{long} lines") };
            self.show_heading()?;
            self.print(&format!("Ralph: skipped {lines} of more than {} MB\n", MAX_LINE_BYTES >> 20))?;
        }
        let bytes = source.skipped_bytes();
        match bytes == 0 || std::mem::replace(&mut self.skipped, true) {
            true => Ok(()),
            false => self.print_left_out(source.path(), bytes),
        }
    }

    fn print_left_out(&mut self, path: &Path, bytes: u64) -> Result<(), Failure> {
        if self.raw {
            return Ok(());
        }
        let path = clean::visible(&path.display().to_string());
        self.print(&format!("Ralph: skipped {} MB at the beginning of {path}\n", bytes >> 20))
    }

    fn line(&mut self, line: &Line) -> Result<(), Failure> {
        if !self.is_wanted() {
            return Ok(());
        }
        self.told = true;
        if self.raw {
            return self.raw_line(&line.bytes);
        }
        self.show_heading()?;
        for entry in &line.entries {
            self.print(&view::logs::entry(entry, self.paint))?;
        }
        Ok(())
    }

    fn raw_line(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.cleans {
            let text = clean::output(&String::from_utf8_lossy(bytes));
            return self.print(&format!("{text}\n"));
        }
        self.write(bytes)?;
        self.write(b"\n")
    }

    fn is_wanted(&self) -> bool {
        self.only.is_none_or(|only| only == self.iteration)
    }

    /// Prints what Ralph noted.
    fn note(&mut self, event: &Event) -> Result<(), Failure> {
        if self.raw || !self.is_wanted() {
            return Ok(());
        }
        let Some(text) = view::logs::event(event, self.paint) else { return Ok(()) };
        if matches!(event.what, EventKind::IterationEnded(_)) {
            self.show_heading()?;
        }
        self.told = true;
        self.print(&text)
    }

    fn show_heading(&mut self) -> Result<(), Failure> {
        let Some((mode, at)) = self.heading.take() else { return Ok(()) };
        let is_again = self.begun.replace(self.iteration) == Some(self.iteration);
        self.print(&view::logs::heading(self.iteration, &mode, is_again, at, self.paint))
    }

    fn print(&mut self, text: &str) -> Result<(), Failure> {
        if !self.raw && !std::mem::replace(&mut self.is_titled, true) {
            let RunFile { run_id, started, started_at, .. } = &self.run;
            let title = view::logs::title(run_id, started, *started_at, self.paint);
            self.write(title.as_bytes())?;
        }
        self.write(text.as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.write_all(bytes).map_err(|_| Failure::refused(GONE))
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(|_| Failure::refused(GONE))
    }
}
