//! One agent process, from its start to the end of everything it started.
//!
//! Its output and its end arrive in the inbox beside Ctrl-C and stops, and one thread decides. Whatever ends it (time,
//! silence, the user), its whole process group gets TERM, then KILL, and strays elsewhere are reaped.

use super::target::{Reap, Target};
use crate::core::time;
use crate::core::time::heartbeat::{self, Heartbeat, Silence, SilenceReport};
use crate::run::agent::{AgentEvent, AgentReport, OutputReader};
use crate::run::inbox::{Inbox, Message, StopSignal};
use crate::run::screen::RunOutput;
use crate::store::process::group::Group;
use crate::store::process::program::{self, ProgramEnd};
use crate::store::runner::logs::Log;
use crate::store::world::Instant;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Why the agent is no longer running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEnd {
    Ended(ProgramEnd),
    Stalled(i64),
    /// It had given its result and did not exit.
    Lingered,
    Interrupted(StopSignal),
    Stopped,
    /// Its container stopped or was removed, in these words.
    Lost(String),
    /// Its container stopped and runs again.
    Restarted(String),
}

impl AgentEnd {
    pub fn is_failure(&self) -> bool {
        !matches!(self, AgentEnd::Ended(ProgramEnd::Exit(0)) | AgentEnd::Lingered)
    }
}

impl fmt::Display for AgentEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgentEnd::Ended(ended) => write!(f, "{ended}"),
            AgentEnd::Stalled(seconds) => write!(f, "stalled: no output for {}", time::span(seconds * 1000)),
            AgentEnd::Lingered => write!(f, "done, but the agent did not exit and was ended"),
            AgentEnd::Interrupted(signal) => write!(f, "interrupted: {}", signal.words()),
            AgentEnd::Stopped => write!(f, "stopped"),
            AgentEnd::Lost(words) | AgentEnd::Restarted(words) => write!(f, "{words}"),
        }
    }
}

pub struct Launch<'a> {
    /// Unique within the run, so that late messages of an earlier process are recognised.
    pub number: u64,
    pub words: Vec<String>,
    pub target: &'a Target,
    pub project: &'a Path,
    pub run_id: &'a str,
    pub prompt: String,
    pub timeout: Option<Duration>,
    pub heartbeat: heartbeat::HeartbeatSettings,
}

const POLL: Duration = Duration::from_millis(250);
const TICK: Duration = Duration::from_millis(900);
/// How long to wait for the rest of the output after the agent's end.
const DRAIN: Duration = Duration::from_millis(1500);
/// How long the agent may take to exit after its result.
const EXIT_DEADLINE: Duration = Duration::from_secs(10);
/// How long to wait for the end of a process that got TERM and KILL, also inside a container.
const KILL_DEADLINE: Duration = Duration::from_secs(8);
/// The exit code of `docker exec` if its process was killed.
const KILLED: i32 = 137;

/// What the runner records while an agent runs.
pub trait Observer {
    /// Is called when the agent has started, with its process id.
    fn started(&self, pid: u32);

    /// Is called when a silence ends after its warning, by output or as a stall.
    fn silent(&self, silence: &Silence);
}

/// How an agent ended and what it said.
pub struct ProcessOutcome {
    pub end: AgentEnd,
    pub report: AgentReport,
    /// Why it may still be running.
    pub left: Option<String>,
}

impl ProcessOutcome {
    fn not_started(end: AgentEnd) -> ProcessOutcome {
        ProcessOutcome { end, report: AgentReport::default(), left: None }
    }
}

/// Runs the agent to its end.
pub fn run(
    mut launch: Launch,
    inbox: &Inbox,
    reader: &mut dyn OutputReader,
    log: &mut Log,
    screen: &mut RunOutput,
    observer: &dyn Observer,
) -> ProcessOutcome {
    let (number, words) = (launch.number, &launch.words);
    let mut report = AgentReport::default();
    let not_started = |error: std::io::Error| {
        ProcessOutcome::not_started(AgentEnd::Ended(ProgramEnd::NotStarted(format!("{}: {error}", words[0]))))
    };
    // Before the agent: whatever happens to us from here on, it ends.
    let started_at = launch.target.started_at();
    let mut guard = match launch.target.guard(launch.run_id) {
        Ok(guard) => guard,
        Err(why) => {
            let lost = launch.target.lost(None);
            return ProcessOutcome::not_started(lost.unwrap_or(AgentEnd::Ended(ProgramEnd::NotStarted(why))));
        }
    };
    let sender = inbox.sender.clone();
    let exited = move |status| drop(sender.send(Message::Exited { of: number, status }));
    let mut command = launch.target.command(words, launch.project, launch.run_id);
    let prompt = std::mem::take(&mut launch.prompt).into_bytes();
    let process = match program::start(&mut command, prompt, Some(launch.run_id), exited) {
        Ok(process) => process,
        Err(error) => return not_started(error),
    };
    observer.started(process.group.leader);
    if let Err(error) = inbox.read_outputs(process.stdout, process.stderr, number) {
        launch.target.end(launch.run_id, &process.group);
        return not_started(error);
    }
    let now = Instant::now();
    let mut supervisor = Supervisor {
        launch: &launch,
        began: now,
        last_output: now,
        heartbeat: Heartbeat::new(launch.heartbeat, 0),
        open_pipes: 2,
        exit: None,
        over_at: None,
        ending: None,
        ender: None,
        group: Arc::new(process.group),
        interrupts: 0,
        ticked: now,
        observer,
    };
    let mut end = supervisor.supervise(inbox, reader, &mut report, log, screen);
    // What the leader left in its group, then what left the group.
    supervisor.group.end_rest();
    let how = match &end {
        _ if supervisor.interrupts > 1 => Reap::AtOnce,
        AgentEnd::Ended(ProgramEnd::Exit(_) | ProgramEnd::Signal(_)) => Reap::Rest,
        _ => Reap::CutOff,
    };
    let failed = matches!(&end, AgentEnd::Ended(ProgramEnd::Exit(code)) if *code != 0);
    // A container that stops ends the agent and the guard alike, one a moment after the other.
    let was_killed = matches!(end, AgentEnd::Ended(ProgramEnd::Exit(KILLED)));
    if failed && guard.as_mut().is_some_and(|guard| guard.ends(was_killed)) {
        end = launch.target.lost(started_at.as_deref()).unwrap_or(end);
    }
    // Nothing runs in a container that does not run.
    let is_lost = matches!(end, AgentEnd::Lost(_));
    let left = launch.target.reap(launch.run_id, how).err().filter(|_| !is_lost);
    // With something of the agent left, it may try where we failed.
    if let Some(guard) = guard.filter(|_| left.is_some()) {
        guard.leave();
    }
    reader.finish(failed, &mut |event| {
        screen.show(&event);
        report.add(event);
    });
    ProcessOutcome { end, report, left }
}

struct Supervisor<'a> {
    launch: &'a Launch<'a>,
    began: Instant,
    last_output: Instant,
    heartbeat: Heartbeat,
    open_pipes: u32,
    exit: Option<(Instant, ProgramEnd)>,
    /// When it gave its result.
    over_at: Option<Instant>,
    /// Why we are ending it, and since when.
    ending: Option<(AgentEnd, Instant)>,
    /// Asks it to end, then kills it.
    ender: Option<JoinHandle<()>>,
    group: Arc<Group>,
    interrupts: u32,
    ticked: Instant,
    observer: &'a dyn Observer,
}

impl Supervisor<'_> {
    fn supervise(
        &mut self,
        inbox: &Inbox,
        reader: &mut dyn OutputReader,
        report: &mut AgentReport,
        log: &mut Log,
        screen: &mut RunOutput,
    ) -> AgentEnd {
        loop {
            match inbox.next(POLL) {
                Some(Message::Output { of, chunk, is_stderr }) if of == self.launch.number => {
                    self.last_output = Instant::now();
                    if let Some(silence) = self.heartbeat.record_output(self.elapsed()) {
                        self.observer.silent(&silence);
                    }
                    log.write(&chunk, is_stderr);
                    let mut emit = |event: AgentEvent<'_>| {
                        screen.show(&event);
                        report.add(event);
                    };
                    match is_stderr {
                        false => reader.stdout(&chunk, &mut emit),
                        true => reader.stderr(&chunk, &mut emit),
                    }
                    self.heartbeat.set_tools(report.running());
                }
                Some(Message::Closed { of }) if of == self.launch.number => {
                    self.open_pipes = self.open_pipes.saturating_sub(1);
                }
                Some(Message::Exited { of, status }) if of == self.launch.number => {
                    self.exit = Some((Instant::now(), status.into()));
                }
                Some(Message::Signal(signal)) => {
                    self.interrupts += 1;
                    self.end(AgentEnd::Interrupted(signal));
                    if self.interrupts > 1 {
                        self.group.kill();
                    }
                }
                Some(Message::Stopped) => self.end(AgentEnd::Stopped),
                Some(_) | None => {}
            }
            self.check_limits(report, screen);
            if self.is_over() {
                let unknown = || ProgramEnd::NotStarted("its exit status is unknown".into());
                let ending = self.ending.take().map(|(why, _)| why);
                return ending.unwrap_or_else(|| {
                    AgentEnd::Ended(self.exit.take().map_or_else(unknown, |(_, ended)| ended))
                });
            }
        }
    }

    fn elapsed(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// Ends an agent that is silent, out of time, or done without exiting.
    fn check_limits(&mut self, report: &AgentReport, screen: &mut RunOutput) {
        if self.ticked.elapsed() >= TICK {
            self.ticked = Instant::now();
            screen.tick(self.began.elapsed(), self.last_output.elapsed());
            let now = self.elapsed();
            if self.exit.is_none()
                && self.ending.is_none()
                && let Some(beat) = self.heartbeat.check(now)
            {
                screen.beat(&beat);
                if let SilenceReport::Stall { elapsed, .. } = beat {
                    self.heartbeat.silence(now).iter().for_each(|silence| self.observer.silent(silence));
                    self.end(AgentEnd::Stalled(elapsed));
                }
            }
        }
        if let Some(limit) = self.launch.timeout.filter(|limit| self.began.elapsed() >= *limit) {
            self.end(AgentEnd::Ended(ProgramEnd::TimedOut(limit)));
        }
        if !report.is_over() {
            self.over_at = None;
        } else if self.over_at.get_or_insert_with(Instant::now).elapsed() >= EXIT_DEADLINE {
            self.end(AgentEnd::Lingered);
        }
    }

    /// Begins to end the agent without waiting for it: what it still prints is read meanwhile.
    fn end(&mut self, why: AgentEnd) {
        if self.exit.is_some() || self.ending.is_some() {
            return;
        }
        self.ending = Some((why, Instant::now()));
        let (target, run_id, group) =
            (self.launch.target.clone(), self.launch.run_id.to_owned(), Arc::clone(&self.group));
        self.ender = Builder::new().spawn(move || target.end(&run_id, &group)).ok();
        if self.ender.is_none() {
            self.group.kill();
        }
    }

    /// Returns whether the agent and what ends it are gone. A second Ctrl-C does not wait for the latter, which has a
    /// time limit of its own.
    fn is_over(&self) -> bool {
        if self.interrupts < 2 && self.ender.as_ref().is_some_and(|ender| !ender.is_finished()) {
            return false;
        }
        let killed = self.ending.as_ref().is_some_and(|(_, since)| since.elapsed() > KILL_DEADLINE + DRAIN);
        self.exit.as_ref().is_some_and(|(at, _)| self.open_pipes == 0 || at.elapsed() >= DRAIN) || killed
    }
}
