//! One iteration of the agent, from its start to the end of everything it started.
//!
//! The agent runs in a process group of its own. Its pipes and its end arrive in the inbox beside Ctrl-C and
//! stops, and one thread decides. Whatever ends it (time, silence, the user), the whole group is asked to end,
//! then killed, and what bears our mark elsewhere is swept up.

use super::agent::{Ear, Heard};
use super::inbox::{Inbox, Note, Request};
use super::log::Log;
use super::mark::Moment;
use super::target::Target;
use crate::core::heartbeat::{self, Beat, Heartbeat};
use crate::store::group::Group;
use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::process::{ChildStdout, ExitStatus};
use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Why the agent is no longer there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Exit(i32),
    Signal(i32),
    TimedOut(Duration),
    Stalled(i64),
    /// It had said its last word and did not go.
    Lingered,
    Interrupted(Request),
    Stopped,
    NotStarted(String),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Exit(code) => write!(f, "exit code {code}"),
            Ended::Signal(signal) => write!(f, "killed by signal {signal}"),
            Ended::TimedOut(limit) => write!(f, "timed out after {} minutes", limit.as_secs_f64() / 60.0),
            Ended::Stalled(seconds) => write!(f, "stalled: no output for {seconds}s"),
            Ended::Lingered => write!(f, "done, and cut off because it did not end"),
            Ended::Interrupted(request) => write!(f, "interrupted: {}", request.words()),
            Ended::Stopped => write!(f, "stopped"),
            Ended::NotStarted(why) => write!(f, "not started: {why}"),
        }
    }
}

pub struct Plan<'a> {
    /// No other child of this run has it: what an earlier one still sends is known by its own.
    pub number: u64,
    pub words: Vec<String>,
    pub target: &'a Target,
    pub project: &'a PathBuf,
    pub mark: String,
    /// Before anything that bears the mark was started by us.
    pub since: Moment,
    pub prompt: String,
    pub timeout: Option<Duration>,
    pub heartbeat: heartbeat::Settings,
}

/// What is told about an iteration while it runs.
pub trait Witness {
    fn heard(&mut self, heard: &Heard);
    fn beat(&mut self, beat: &Beat);
    /// About every second, with the time since the last output.
    fn tick(&mut self, silence: Duration);
}

/// Measured: with less the agent is held up more often, with more the bytes have left the processor's cache.
#[cfg(target_os = "linux")]
const PIPE: usize = 256 << 10;
const TICK: Duration = Duration::from_millis(250);
/// After its end the rest of its output arrives within this time; who holds the pipe longer is not heard.
const DRAIN: Duration = Duration::from_millis(1500);
/// After its last word the agent has so long to go.
const LINGER: Duration = Duration::from_secs(10);
/// How long to wait for a process that was asked to end and killed, also inside a container.
const BURIAL: Duration = Duration::from_secs(8);

/// Runs it to its end. `born` is told its number as soon as it has one.
pub fn run(
    plan: Plan,
    inbox: &Inbox,
    ear: &mut Ear,
    log: &mut Log,
    witness: &mut impl Witness,
    born: &dyn Fn(u32),
) -> Ended {
    let mut command = plan.target.command(&plan.words, plan.project, &plan.mark);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ended::NotStarted(format!("{}: {error}", plan.words[0])),
    };
    born(child.id());
    let group = Arc::new(Group::of(&child));
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    pipes.1.iter().for_each(widen);
    let of = plan.number;
    let started = (|| {
        if let Some(mut stdin) = pipes.0 {
            let prompt = plan.prompt;
            // An agent that does not read all of it is no error of ours.
            Builder::new().spawn(move || drop(stdin.write_all(prompt.as_bytes())))?;
        }
        let out = pipes.1.map_or(Ok(()), |pipe| inbox.hear_pipe(pipe, of, false));
        out.and(pipes.2.map_or(Ok(()), |pipe| inbox.hear_pipe(pipe, of, true)))?;
        let sender = inbox.sender.clone();
        Builder::new().spawn(move || {
            let status = child.wait();
            let _ = sender.send(Note::Exited { of, status });
        })
    })();
    if let Err(error) = started {
        group.end();
        return Ended::NotStarted(format!("no thread for it: {error}"));
    }
    let mut watch = Watch {
        of,
        target: plan.target.clone(),
        mark: plan.mark.clone(),
        began: Instant::now(),
        last_output: Instant::now(),
        heartbeat: Heartbeat::new(plan.heartbeat, 0),
        timeout: plan.timeout,
        open: 2,
        exit: None,
        over_at: None,
        ending: None,
        group: Arc::clone(&group),
        interrupts: 0,
        ticked: Instant::now(),
    };
    let ended = watch.until_the_end(inbox, ear, log, witness);
    // What the leader left in its group, then what left the group.
    group.end_rest();
    plan.target.sweep(&plan.mark, watch.interrupts > 1, Some(plan.since));
    ear.finish(|heard| witness.heard(&heard));
    ended
}

/// An agent that prints much is held up less often by a pipe that holds more. Where it cannot be had nothing is lost.
fn widen(pipe: &ChildStdout) {
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE);
    #[cfg(not(target_os = "linux"))]
    let _ = pipe;
}

struct Watch {
    of: u64,
    target: Target,
    mark: String,
    began: Instant,
    last_output: Instant,
    heartbeat: Heartbeat,
    timeout: Option<Duration>,
    /// Pipes that are still open.
    open: u32,
    exit: Option<(Instant, std::io::Result<ExitStatus>)>,
    /// When it said its last word.
    over_at: Option<Instant>,
    /// Why we are ending it, and since when.
    ending: Option<(Ended, Instant)>,
    group: Arc<Group>,
    interrupts: u32,
    ticked: Instant,
}

impl Watch {
    fn until_the_end(
        &mut self,
        inbox: &Inbox,
        ear: &mut Ear,
        log: &mut Log,
        witness: &mut impl Witness,
    ) -> Ended {
        loop {
            match inbox.next(TICK) {
                Some(Note::Output { of, chunk, error }) if of == self.of => {
                    self.last_output = Instant::now();
                    self.heartbeat.pulse(self.elapsed());
                    log.write(chunk.bytes());
                    match error {
                        false => ear.hear(chunk.bytes(), |heard| witness.heard(&heard)),
                        true => ear.overhear(chunk.bytes(), |heard| witness.heard(&heard)),
                    }
                    self.heartbeat.set_tools(ear.running());
                }
                Some(Note::Closed { of }) if of == self.of => self.open = self.open.saturating_sub(1),
                Some(Note::Exited { of, status }) if of == self.of => {
                    self.exit = Some((Instant::now(), status));
                }
                Some(Note::Interrupt(request)) => {
                    self.interrupts += 1;
                    self.end(Ended::Interrupted(request));
                    if self.interrupts > 1 {
                        self.group.kill();
                    }
                }
                Some(Note::Stopped) => self.end(Ended::Stopped),
                Some(_) | None => {}
            }
            self.check(ear, witness);
            if self.is_over() {
                return self.verdict();
            }
        }
    }

    fn elapsed(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// Time and silence.
    fn check(&mut self, ear: &Ear, witness: &mut impl Witness) {
        if self.ticked.elapsed() >= Duration::from_millis(900) {
            self.ticked = Instant::now();
            witness.tick(self.last_output.elapsed());
            if self.exit.is_none()
                && self.ending.is_none()
                && let Some(beat) = self.heartbeat.check(self.elapsed())
            {
                witness.beat(&beat);
                if let Beat::Stall { elapsed, .. } = beat {
                    self.end(Ended::Stalled(elapsed));
                }
            }
        }
        if let Some(limit) = self.timeout.filter(|limit| self.began.elapsed() >= *limit) {
            self.end(Ended::TimedOut(limit));
        }
        if ear.is_over() {
            let since = *self.over_at.get_or_insert_with(Instant::now);
            if since.elapsed() >= LINGER {
                self.end(Ended::Lingered);
            }
        } else {
            self.over_at = None;
        }
    }

    /// Begins to end it, without waiting: what it still prints is heard meanwhile.
    fn end(&mut self, why: Ended) {
        if self.exit.is_some() || self.ending.is_some() {
            return;
        }
        self.ending = Some((why, Instant::now()));
        let (target, mark, group) = (self.target.clone(), self.mark.clone(), Arc::clone(&self.group));
        if Builder::new().spawn(move || target.end(&mark, &group)).is_err() {
            self.group.kill();
        }
    }

    fn is_over(&self) -> bool {
        let buried = self.ending.as_ref().is_some_and(|(_, since)| since.elapsed() > BURIAL + DRAIN);
        self.exit.as_ref().is_some_and(|(at, _)| self.open == 0 || at.elapsed() >= DRAIN) || buried
    }

    fn verdict(&mut self) -> Ended {
        if let Some((why, _)) = self.ending.take() {
            return why;
        }
        match self.exit.take() {
            Some((_, Ok(status))) => {
                #[cfg(unix)]
                if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
                    return Ended::Signal(signal);
                }
                Ended::Exit(status.code().unwrap_or(-1))
            }
            Some((_, Err(error))) => Ended::NotStarted(format!("its end is not known: {error}")),
            None => Ended::NotStarted("its end is not known".into()),
        }
    }
}
