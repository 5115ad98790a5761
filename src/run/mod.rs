//! The loop from outside: the agent program again and again, each time fresh, until there is a reason to end.
//!
//! One thread decides; pipes, the end of the agent, Ctrl-C, keys and stops from other terminals arrive in one
//! [`inbox`]. An iteration is [`child`]; what it brought is judged by the same [`crate::core::decide`] as a turn
//! in a session. The run is a loop in the project's state like any other, under a session id of its own, so that
//! `ralph status`, `stop`, `reset` and guidance work on it.

pub mod agent;
mod child;
mod inbox;
mod judge;
pub mod lock;
pub mod log;
mod mark;
mod pace;
pub mod screen;
mod summary;
pub mod target;
mod terminal;

use agent::{Agent, Heard};
use child::{Ended, Plan, Witness};
use inbox::{Cut, Inbox};
use judge::Judged;
use pace::Pause;
use screen::Screen;
use target::Target;

use crate::core::decide::Note;
use crate::core::heartbeat::Beat;
use crate::core::merge::Lists;
use crate::core::outcome::Outcome;
use crate::core::prompt;
use crate::core::record::Loop;
use crate::core::settings::{Resolved, RunSettings, Settings};
use crate::core::tasks::{self as stories, Mode};
use crate::core::time::Stamp;
use crate::scan::brief::{Look, Reader, brief};
use crate::scan::{self, Patience};
use crate::store::project::Project;
use crate::store::snapshot::{self, Rules, Snapshot};
use crate::store::state::Locked;
use crate::store::world::World;
use crate::store::{circuit, config, driven, ending, git};
use anyhow::Result;
use serde_json::json;
use std::time::{Duration, Instant};

/// The session id under which a run stands in the project's state: there is one run at a time.
pub const SESSION: &str = "ralph-run";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Context {
    /// Every iteration begins without memory.
    #[default]
    Fresh,
    /// The conversation of this run goes on, by its id.
    Continue,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLimit {
    #[default]
    Wait,
    Stop,
}

/// What was asked for, beside the settings.
#[derive(Clone, Debug)]
pub struct Order {
    pub agent: Agent,
    pub target: Target,
    pub context: Context,
    pub on_limit: OnLimit,
    pub skip_review: bool,
    /// Told to the agent in its next prompt.
    pub preface: String,
    /// The whole prompt; the loop's record holds the beginning of it.
    pub task: String,
}

/// How the run ended, and the exit code that says so.
pub struct Conclusion {
    pub text: String,
    pub code: u8,
}

pub struct Runner<'a> {
    pub world: &'a World,
    pub project: &'a Project,
    pub order: Order,
    pub lap: Loop,
    pub screen: Screen,
    pub logs: log::Folder,
    inbox: Inbox,
    /// Somebody can press Enter.
    keys: bool,
    began: Instant,
    since: mark::Moment,
    /// What the next prompt says beside the task.
    note: Note,
    /// The conversation to go on with, and its cost so far.
    conversation: Option<(String, f64)>,
    /// Agents started, which is more than iterations where one was repeated.
    attempts: u64,
    /// Failures of the service in a row.
    failures: u32,
    stuck_iterations: u64,
    /// When the project was last looked at; kept with the iteration.
    scanned_at: Option<Stamp>,
}

/// What one iteration came to.
enum Step {
    GoOn,
    /// The loop has ended; its record says how.
    Over,
}

impl<'a> Runner<'a> {
    pub fn new(
        world: &'a World,
        project: &'a Project,
        order: Order,
        lap: Loop,
        screen: Screen,
        logs: log::Folder,
    ) -> Result<Runner<'a>> {
        let inbox = Inbox::new();
        inbox.hear_signals()?;
        inbox.hear_stops(world, project, SESSION)?;
        let keys = std::io::IsTerminal::is_terminal(&std::io::stdin());
        if keys {
            inbox.hear_keys()?;
        }
        Ok(Runner {
            world,
            project,
            order,
            lap,
            screen,
            logs,
            inbox,
            keys,
            began: Instant::now(),
            since: mark::Moment::now(),
            note: Note::default(),
            conversation: None,
            attempts: 0,
            failures: 0,
            stuck_iterations: 0,
            scanned_at: None,
        })
    }

    /// Runs to the end, whatever that is.
    pub fn run(mut self) -> Result<Conclusion> {
        loop {
            match self.step() {
                Ok(Step::GoOn) => {}
                Ok(Step::Over) => break,
                Err(error) => {
                    let now = self.world.later().now;
                    self.lap.end(Outcome::Error, format!("{error:#}"), now);
                    break;
                }
            }
        }
        self.conclude()
    }

    fn settings(&self) -> (Resolved, Settings, RunSettings) {
        let resolved = config::load(self.world, self.project, &self.lap.given);
        let settings = resolved.settings_for(self.lap.engine);
        let run = resolved.run_settings();
        (resolved, settings, run)
    }

    /// One iteration, with the waiting before it.
    fn step(&mut self) -> Result<Step> {
        let (resolved, settings, run) = self.settings();
        if self.lap.iteration > 0 && self.failures == 0 {
            let delay = Instant::now() + span(run.delay_ms);
            if let Some(cut) = self.inbox.wait(delay, |_| {})
                && self.cut_short(cut)?
            {
                return Ok(Step::Over);
            }
        }
        if let Pause::Over = pace::under_the_limit(self, &run)? {
            return Ok(Step::Over);
        }
        let number = self.lap.iteration + 1;
        let (before, mode) = self.take_stock(&run)?;
        let prompt = self.prompt(&resolved, &settings, before.as_ref(), &run)?;
        self.screen.iteration = number;
        self.screen.position = summary::position(&self.lap, &settings, number);
        self.screen.say(&summary::iteration_begins(number, &settings, mode));
        self.screen.event("iteration_started", json!({"iteration": number, "mode": mode.name()}));

        let head = git::head(&self.project.root);
        let started_at = self.world.later().now;
        let began = Instant::now();
        let (ended, ear) = self.iterate(number, prompt, &run);
        let judged = judge::judge(
            self,
            &resolved,
            &settings,
            &judge::Iteration { number, mode, started_at, took: began.elapsed(), ended, ear, before, head },
        )?;
        match judged {
            Judged::GoOn(note) => {
                self.note = *note;
                Ok(Step::GoOn)
            }
            Judged::Again(wait) => match wait.hold(self)? {
                Pause::GoOn | Pause::Hurried => Ok(Step::GoOn),
                Pause::Over => Ok(Step::Over),
            },
            Judged::Over => Ok(Step::Over),
        }
    }

    /// The tasks as they are before the iteration, and what it is to do.
    fn take_stock(&mut self, run: &RunSettings) -> Result<(Option<Snapshot>, Mode)> {
        let rules = Rules {
            run_id: self.lap.run_id.clone(),
            skip_review: self.order.skip_review,
            review_cap: run.review_cap,
        };
        match snapshot::take(self.world, self.project, &self.lap.tasks, &rules) {
            Ok(taken) => {
                let mode = taken.as_ref().map_or(Mode::Implement, Snapshot::mode);
                Ok((taken, mode))
            }
            Err(faults) => {
                // The agent broke it, so the agent mends it.
                self.order.preface = format!("Mend this first:\n- {}", faults.join("\n- "));
                Ok((None, Mode::Implement))
            }
        }
    }

    fn prompt(
        &mut self,
        resolved: &Resolved,
        settings: &Settings,
        before: Option<&Snapshot>,
        run: &RunSettings,
    ) -> Result<String> {
        let world = self.world.later();
        let lists = self.lists(&world, resolved)?;
        let lap = Loop { task: self.order.task.clone(), ..self.lap.clone() };
        let mut text = match self.conversation {
            Some(_) => prompt::go_on(&lap, &self.note, &lists, settings, world.now),
            None => prompt::fresh(&lap, &self.note, &lists, settings, world.now),
        };
        if let Some(before) = before {
            let work = stories::assignment(&before.tasks, self.order.skip_review, run.review_cap);
            text.push_str(&format!("\n\n{work}"));
        }
        if !self.order.preface.is_empty() {
            text.push_str(&format!("\n\n{}", std::mem::take(&mut self.order.preface)));
        }
        Ok(text)
    }

    /// Guidance and constraints, as they are now.
    fn lists(&mut self, world: &World, resolved: &Resolved) -> Result<Lists> {
        let look = match resolved.is_on("scan.enabled") {
            true => Look::Made(scan::scan(world, self.project, resolved, Patience::Hook, None)),
            false => Look::Remembered,
        };
        let mut state = Locked::open(self.project, world.now)?;
        let reader =
            Reader { world, project: self.project, session: SESSION, lap: &self.lap, resolved, told: true };
        let brief = brief(&reader, &mut state.document, look)?;
        self.scanned_at = state.document.scanned_at();
        state.save()?;
        brief.notes.iter().for_each(|note| self.screen.note(note));
        Ok(brief.lists)
    }

    fn iterate(&mut self, number: u64, prompt: String, run: &RunSettings) -> (Ended, agent::Ear) {
        self.attempts += 1;
        let mut ear = self.order.agent.ear(self.screen.shows_text());
        let session = self.conversation.as_ref().map(|(id, _)| id.as_str());
        let plan = Plan {
            number: self.attempts,
            words: self.order.agent.words(session),
            target: &self.order.target,
            project: &self.project.root,
            mark: self.lap.run_id.clone(),
            since: self.since,
            prompt,
            timeout: Some(span(run.timeout_ms)).filter(|limit| !limit.is_zero()),
            heartbeat: run.heartbeat,
        };
        let mut log = self.logs.log(number);
        let mut witness = OnScreen { screen: &mut self.screen, began: Instant::now() };
        let project = self.project;
        let ended = child::run(plan, &self.inbox, &mut ear, &mut log, &mut witness, &|pid| {
            lock::note_child(project, pid)
        });
        if let Some(trouble) = log.trouble() {
            self.screen.warn(&trouble);
        }
        (ended, ear)
    }

    /// A wait was cut short; returns whether the run is over.
    fn cut_short(&mut self, cut: Cut) -> Result<bool> {
        match cut {
            Cut::Key => Ok(false),
            Cut::Interrupt(request) => {
                self.lap.end(Outcome::Interrupted, request.words(), self.world.later().now);
                Ok(true)
            }
            Cut::Stopped => self.take_stop(),
        }
    }

    /// Ends the loop by the stop that was given elsewhere; false where there is none after all.
    fn take_stop(&mut self) -> Result<bool> {
        let elsewhere = judge::stopped_elsewhere(self)?;
        if let Some((outcome, reason)) = elsewhere {
            self.lap.end(outcome, reason, self.world.later().now);
            return Ok(true);
        }
        Ok(false)
    }

    /// Writes the ending down, tells it, and gives the project free.
    fn conclude(mut self) -> Result<Conclusion> {
        self.logs.flush();
        let world = self.world.later();
        let (resolved, settings, _) = self.settings();
        if matches!(self.lap.outcome, Some(Outcome::Blocked | Outcome::Decide))
            && let Some(before) = snapshot::load(&world, self.project, &self.lap.run_id)
            && let Ok(put_back) = driven::put_reviews_back(self.project, &before)
            && !put_back.is_empty()
        {
            self.screen.note(&format!("review fields put back: {}", put_back.join(", ")));
        }
        self.lap.announced = true;
        for note in ending::record(&world, self.project, SESSION, &self.lap) {
            self.screen.note(&note);
        }
        let mut told_elsewhere = false;
        let mut kept =
            Locked::open(self.project, world.now).map_err(anyhow::Error::from).and_then(|mut state| {
                let present = state.document.loop_of(SESSION).filter(|lap| lap.run_id == self.lap.run_id);
                told_elsewhere = present.is_some_and(|lap| !lap.is_alive());
                state.document.set_loop(SESSION, &self.lap)?;
                state.save()
            });
        if kept.is_ok() && self.lap.circuit.is_tripped() {
            kept = circuit::save(&world, self.project, SESSION, &self.lap.run_id, &self.lap.circuit);
        }
        if let Err(error) = kept {
            self.screen.warn(&format!("the ending could not be kept: {error:#}"));
        }
        ending::settle(&world, self.project, SESSION, &self.lap);
        snapshot::forget(&world, self.project);
        driven::forget_held(&world);
        lock::release(self.project);
        // Whoever ended it has run the user's command already.
        if !told_elsewhere && let Some(note) = ending::announce(self.project, &self.lap, &resolved) {
            self.screen.note(&note);
        }
        let told = summary::table(&self, &settings, world.now);
        let code = summary::exit_code(self.lap.outcome);
        self.screen.event("ended", summary::json(&self, code));
        self.screen.conclude(&told);
        Ok(Conclusion { text: String::new(), code })
    }
}

struct OnScreen<'s> {
    screen: &'s mut Screen,
    began: Instant,
}

impl Witness for OnScreen<'_> {
    fn heard(&mut self, heard: &Heard) {
        self.screen.heard(heard);
    }

    fn beat(&mut self, beat: &Beat) {
        self.screen.beat(beat);
    }

    fn tick(&mut self, silence: Duration) {
        self.screen.tick(self.began.elapsed(), silence);
    }
}

fn span(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}
