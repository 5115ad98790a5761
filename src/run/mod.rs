//! `ralph run`: starts the agent again and again, each time fresh, until there is a reason to end.
//!
//! One iteration is prepare → run the agent → gather → decide → record, see [`Runner::iterate`]. From "gather" on it
//! uses [`crate::engine`], as the Stop hook does. The run is a loop in the project's state under a session id of its
//! own, so `ralph status`, `stop`, `reset` and guidance work on it.

pub mod agent;
mod inbox;
mod iteration;
mod messages;
mod notify;
mod pace;
pub mod process;
mod record;
pub mod saved;
pub mod screen;
mod terminal;
mod trouble;

pub use messages::timeout_note;

use inbox::{Inbox, Interruption};
use iteration::Attempt;
use notify::Progress;
use pace::{Wait, Waited};
use process::target::{Reap, Target};
use saved::RunOptions;
use screen::RunOutput;
use trouble::TroubleCount;

use crate::core::decide::turn::CheckResult;
use crate::core::decide::{self, Decision, NextTurn, Note};
use crate::core::event::{self, Event, EventKind, RunEnded};
use crate::core::outcome::{Exit, Outcome};
use crate::core::record::{ArmedLoop, Engine, StoredLoop};
use crate::core::settings::{Resolved, Settings};
use crate::core::time::Stamp;
use crate::core::time::outage::Outage;
use crate::engine;
use crate::store::project::Project;
use crate::store::runner::run_lock::HeldProject;
use crate::store::runner::{snapshot, summary, task_list_guard};
use crate::store::state::ending;
use crate::store::state::{self, Locked, StateError, stop as stops};
use crate::store::world::{Instant, World};
use crate::store::{config, events};
use anyhow::Result;
use serde::{Deserialize, Serialize};

/// The session id of a run in the project's state: there is one run at a time.
pub const SESSION: &str = "ralph-run";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Context {
    /// Every iteration begins a new conversation.
    #[default]
    Fresh,
    /// Every iteration continues the conversation of this run, by its id.
    Continue,
}

/// What a run will do.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The armed loop.
    pub run: ArmedLoop,
    /// The whole prompt; the loop's record holds the beginning of it.
    pub task: String,
    pub options: RunOptions,
    /// The conversation to continue, and its cost so far.
    pub conversation: Option<(String, f64)>,
}

pub struct Runner<'a> {
    world: &'a World,
    project: &'a Project,
    plan: RunPlan,
    held: HeldProject,
    run: ArmedLoop,
    /// The loop as it was last recorded.
    recorded: ArmedLoop,
    screen: RunOutput,
    /// What was logged since the logs were last looked at.
    logged_bytes: u64,
    inbox: Inbox,
    has_keyboard: bool,
    began: Instant,
    /// How long earlier runners worked at this run.
    earlier_seconds: u64,
    /// What the next prompt says beside the task.
    note: Note,
    /// What the agent must fix first, in its next prompt.
    preface: String,
    /// Agents started: more than iterations if one was repeated.
    attempts: u64,
    /// Of those, the ones that have a row.
    recorded_attempts: u64,
    /// Starts of the agent program in a row that failed.
    failed_starts: Option<Outage>,
    /// The agent program has been started before.
    has_started: bool,
    trouble: TroubleCount,
    /// The checks that ran after this iteration.
    checked: Vec<CheckResult>,
    /// When the project was last scanned.
    scanned_at: Option<Stamp>,
    /// Since when there is no progress.
    progress: Progress,
    /// The user was told of the question with which the run ended.
    asked: bool,
}

/// What follows an iteration.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Continue,
    /// The loop has ended; its record says how.
    Over,
}

impl From<Waited> for Next {
    fn from(waited: Waited) -> Next {
        if waited == Waited::Over { Next::Over } else { Next::Continue }
    }
}

/// What a runner that died had left running.
#[derive(Debug, Default)]
pub struct LeftBehind {
    /// Its agent was there, and was ended.
    pub agent: bool,
    pub container: Option<String>,
    /// Why its agent may still be running.
    pub unended: Option<String>,
}

/// Ends what a runner that died left running.
pub fn reap_left_behind(held: &HeldProject) -> LeftBehind {
    let Some(lock) = held.left_behind() else { return LeftBehind::default() };
    let agent = lock.living_agent();
    #[cfg(unix)]
    if let Some(pid) = agent.and_then(|pid| rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)) {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
    let mut unended = None;
    if !lock.run_id.is_empty() {
        let container = lock.container.clone().map(|name| Target::Container { name, workdir: None });
        let sandbox = lock.sandbox.clone().map(|name| Target::Sandbox { name });
        let reap = |target: Target| target.reap(&lock.run_id, Reap::CutOff).err();
        let here = Target::Local.reap(&lock.run_id, Reap::AtOnce).err();
        unended = container.or(sandbox).and_then(reap).or(here);
    }
    LeftBehind { agent: agent.is_some(), container: lock.container, unended }
}

/// Gives a run its ending whose runner died just before that. Returns it.
pub fn end_left_behind(world: &World, project: &Project) -> Result<Option<ArmedLoop>> {
    let is_left = |run: StoredLoop| run.engine == Engine::Runner && run.is_alive();
    if !state::peek(project)
        .is_ok_and(|seen| seen.and_then(|seen| seen.loop_of(SESSION)).is_some_and(is_left))
    {
        return Ok(None);
    }
    let mut state = Locked::open(project, world.now)?;
    let Some(run) = ending::end_dead_run(world, project, &mut state.document)? else { return Ok(None) };
    state.save()?;
    drop(state);
    ending::announce_all(world, project, std::slice::from_ref(&run));
    Ok(Some(run))
}

impl<'a> Runner<'a> {
    pub fn new(
        world: &'a World,
        project: &'a Project,
        plan: RunPlan,
        held: HeldProject,
        screen: RunOutput,
    ) -> Result<Runner<'a>> {
        let inbox = Inbox::new();
        inbox.watch_signals()?;
        inbox.watch_stops(world, project, SESSION)?;
        let has_keyboard = std::io::IsTerminal::is_terminal(&std::io::stdin());
        if has_keyboard {
            inbox.watch_keys()?;
        }
        let mut run = plan.run.clone();
        let progress = Progress::watch(world, project, &run, screen.is_json())?;
        let note = Note { earlier_advice: run.pending.advice.take(), ..Note::default() };
        // The runner before may have died after it wrote a row and before it counted it.
        let (seconds, stuck) = summary::totals(project);
        let tally = &mut run.tally;
        tally.recorded_seconds = tally.recorded_seconds.max(seconds);
        tally.duration_seconds = tally.duration_seconds.max(tally.recorded_seconds);
        tally.stuck_iterations = tally.stuck_iterations.max(stuck);
        Ok(Runner {
            world,
            project,
            earlier_seconds: tally.duration_seconds,
            recorded: run.clone(),
            run,
            plan,
            held,
            screen,
            logged_bytes: 0,
            inbox,
            has_keyboard,
            began: Instant::now(),
            note,
            preface: String::new(),
            attempts: 0,
            recorded_attempts: 0,
            failed_starts: None,
            has_started: false,
            trouble: TroubleCount::default(),
            checked: Vec::new(),
            scanned_at: None,
            progress,
            asked: false,
        })
    }

    /// Runs to the end and returns the exit code.
    pub fn run(mut self) -> Exit {
        loop {
            let next = self.iterate();
            state::take_damage_notices("").iter().for_each(|note| self.screen.warn(note));
            match next {
                Ok(Next::Continue) => {}
                Ok(Next::Over) => match self.wait_for_answer() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        self.screen.warn(&format!("cannot wait for an answer: {error:#}"));
                        break;
                    }
                },
                Err(error) => {
                    self.end(Outcome::Error, format!("{error:#}"));
                    break;
                }
            }
        }
        self.conclude()
    }

    /// Runs one iteration.
    fn iterate(&mut self) -> Result<Next> {
        let Some(prepared) = self.prepare()? else { return Ok(Next::Over) };
        let iteration = self.run_agent(prepared);
        match self.attempted(&iteration)? {
            Attempt::Turn => {}
            Attempt::Repeat(wait) => return wait.hold(self).map(Next::from),
            Attempt::Ended => return self.record_undecided(&iteration).map(|()| Next::Over),
        }
        let mut facts = self.gather(&iteration);
        let (mut after, mut decision) = facts.decide(self.now());
        if decision == Decision::RunChecks {
            let Some(checks) = self.run_checks(&facts) else {
                self.count_time(&iteration);
                return self.record_undecided(&iteration).map(|()| Next::Over);
            };
            facts = facts.with_checks(&self.world.later(), self.project, &checks);
            (after, decision) = facts.decide(self.now());
        }
        // The wait notes itself when it begins.
        let held = after.session.waiting.take().and(after.quota.held.clone());
        let before = std::mem::replace(&mut self.run, after);
        let around = event::turn::state_change_events(&before, &self.run, decision.note(), &facts.settings);
        self.note_trouble(&iteration, before);
        self.report_violations(&facts);
        self.note = match decision {
            Decision::Continue(note) if self.run.is_alive() => *note,
            Decision::Wait => Note { earlier_advice: self.run.pending.advice.take(), ..Note::default() },
            _ => Note::default(),
        };
        if self.note.next_turn == NextTurn::NewContext {
            self.plan.conversation = None;
            self.run.session.handover = None;
        }
        self.record(&iteration, facts.turn.head.as_deref())?;
        self.progress.note(&self.run);
        around.into_iter().for_each(|what| self.emit(what));
        if !self.run.is_alive() {
            return Ok(Next::Over);
        }
        held.map_or(Ok(Next::Continue), |held| Wait::for_quota(&held, self.now()).hold(self).map(Next::from))
    }

    /// Adds what happened to the events of the run, and prints it for scripts.
    fn emit(&mut self, what: EventKind) {
        let event = Event::new(self.now(), what);
        let added = events::append(&self.world.later(), &self.run.run_id, std::slice::from_ref(&event.what));
        self.screen.emit(&event);
        if let Err(error) = added
            && !std::mem::replace(&mut self.run.told.events_failed, true)
        {
            self.screen.warn(&format!("could not add to the events of this run: {error:#}"));
        }
    }

    fn now(&self) -> Stamp {
        self.world.later().now
    }

    /// Brings the run's duration up to date.
    fn count_duration(&mut self) {
        self.run.tally.duration_seconds = self.earlier_seconds + self.began.elapsed().as_secs();
    }

    fn settings(&self) -> (Resolved, Settings) {
        let resolved = config::load_for(self.world, self.project, &self.run);
        let settings = resolved.settings_for(self.run.engine);
        (resolved, settings)
    }

    fn end(&mut self, outcome: Outcome, reason: impl Into<String>) {
        let now = self.now();
        self.run.end(outcome, reason, now);
    }

    /// Returns whether an interruption ends the run.
    fn is_ended_by(&mut self, interruption: Interruption) -> Result<bool> {
        match interruption {
            Interruption::Key | Interruption::Answered => Ok(false),
            Interruption::Signal(signal) => {
                self.end(Outcome::Interrupted, signal.words());
                Ok(true)
            }
            Interruption::Stopped => self.is_stopped_elsewhere(),
        }
    }

    /// Ends the loop by a stop that was given elsewhere. Returns false if there is none after all.
    fn is_stopped_elsewhere(&mut self) -> Result<bool> {
        let kill_switch = stops::kill_switch(self.project);
        if kill_switch {
            // It means the other loops of the project too.
            let world = self.world.later();
            let state = Locked::open(self.project, world.now)?;
            ending::obey_kill_switch(&world, self.project, Some(SESSION), state)?;
        }
        let stopped_all_at = stops::stopped_all_at(self.world).ok().flatten();
        if let Some((outcome, reason)) = decide::stop_given(&self.run, kill_switch, stopped_all_at) {
            self.end(outcome, reason);
            return Ok(true);
        }
        let state = match Locked::open(self.project, self.now()) {
            // The stop is reported again until it can be read.
            Err(StateError::Other(_)) => return Ok(false),
            state => state?,
        };
        let Some(stopped) = state.document.loop_of(SESSION).filter(|run| !run.is_alive()) else {
            return Ok(false);
        };
        self.end(stopped.outcome.unwrap_or(Outcome::Stopped), stopped.reason.unwrap_or_default());
        Ok(true)
    }

    /// Restores a task list that the agent left unusable. The snapshot stays while the list has changes against the
    /// rules: the run may be continued.
    fn restore_tasks(&mut self, world: &World) {
        let before = match snapshot::load(world, self.project, &self.run.run_id) {
            Ok(Some(before)) => before,
            Ok(None) => return,
            Err(error) => return self.screen.warn(&format!("could not check the task list: {error:#}")),
        };
        let reviews = matches!(self.run.outcome, Some(Outcome::Blocked | Outcome::Decide));
        match task_list_guard::restore(self.project, &before, reviews, world.now) {
            Ok(note) => note.iter().for_each(|note| self.screen.note(note)),
            Err(error) => self.screen.warn(&format!("could not restore the task list: {error:#}")),
        }
        let is_complete = self.run.outcome == Some(Outcome::Complete);
        if is_complete || task_list_guard::list_problems(self.project, &before).is_empty() {
            snapshot::forget(world, self.project);
        }
    }

    /// Saves the run where `ralph run` finds it to continue, with what its agent has not been told yet.
    fn save_to_continue(&mut self) {
        let mut run = self.run.clone();
        run.pending.advice = run.pending.advice.take().or_else(|| self.note.advice());
        if let Err(error) = saved::update(self.world, self.project, &self.plan, &run) {
            self.screen.warn(&format!("this run cannot be continued later: {error:#}"));
        }
    }

    /// Records the ending, reports it, and releases the project.
    fn conclude(mut self) -> Exit {
        summary::flush(self.project);
        let world = self.world.later();
        let (resolved, settings) = self.settings();
        self.restore_tasks(&world);
        self.count_duration();
        self.run.told.ending = true;
        let state = Locked::open(self.project, world.now).map_err(anyhow::Error::from);
        let record = if state.is_ok() { engine::record::turn } else { engine::record::ending };
        for note in record(&world, self.project, SESSION, &self.recorded, &self.run) {
            self.screen.note(&note);
        }
        let mut ended_elsewhere = false;
        let saved = state.and_then(|mut state| {
            let present = state.document.loop_of(SESSION).filter(|run| run.run_id == self.run.run_id);
            ended_elsewhere = present.is_some_and(|run| !run.is_alive());
            state.document.set_loop(SESSION, &self.run)?;
            state.save()
        });
        match saved {
            Ok(()) => ending::disarm_recorded(&world, self.project, SESSION, &self.run),
            // It stays armed, so that the next call ends it in the state too.
            Err(error) => self.screen.warn(&format!("could not save the ending: {error:#}")),
        }
        task_list_guard::forget_blocks(&world);
        if self.run.outcome == Some(Outcome::Complete) {
            saved::forget(&world, self.project);
        } else {
            self.save_to_continue();
        }
        // Before the notify command runs: it may start the next run.
        self.held.release();
        // An ending elsewhere was announced there.
        if !ended_elsewhere {
            self.announce(&world, &resolved);
        }
        let table = messages::table(&self, &settings, world.now);
        let exit = self.run.outcome.unwrap_or(Outcome::Error).exit();
        self.screen.emit(&Event::new(world.now, EventKind::Ended(RunEnded::of(&self.run, world.now))));
        self.screen.conclude(&table);
        exit
    }
}
