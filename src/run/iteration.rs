//! The steps of one iteration around the decision: prepare, run the agent, gather, run the checks, record.

use super::agent::{Failure, Report};
use super::pace::{self, Wait, Waited};
use super::supervisor::{self, AgentEnd, Keeper, Launch};
use super::{Context, OnLimit, Runner, SESSION, messages, span};
use crate::core::decide::account;
use crate::core::decide::turn::{Checks, Gained, Turn};
use crate::core::guidance::merge::GuidanceLists;
use crate::core::outcome::{IterationOutcome, Outcome};
use crate::core::prompt;
use crate::core::record::{StoredLoop, Usage};
use crate::core::settings::{Resolved, RunSettings, Settings};
use crate::core::tasks::{self as stories, Mode};
use crate::core::time::heartbeat::Silence;
use crate::core::time::runtime::{self, Event, Mark};
use crate::core::time::{Stamp, backoff};
use crate::engine::facts::Facts;
use crate::engine::record;
use crate::scan::briefing::{self, BriefingContext};
use crate::scan::{self, ScanBudget};
use crate::store::process::checks;
use crate::store::process::program::Ended;
use crate::store::project::{Project, git};
use crate::store::runner::logs::Log;
use crate::store::runner::snapshot::{self, Rules, Snapshot};
use crate::store::runner::summary::{self, Row};
use crate::store::runner::{run_lock, runner_guard};
use crate::store::state::Locked;
use crate::store::tasks;
use crate::store::user::stalls;
use crate::store::world::{Instant, World};
use anyhow::Result;
use serde_json::json;
use std::cell::RefCell;
use std::time::Duration;

/// An iteration that is about to begin.
pub struct Prepared {
    number: u64,
    mode: Mode,
    resolved: Resolved,
    prompt: String,
    /// The task list before the iteration.
    before: Option<Snapshot>,
    /// The commit it begins at.
    head: Option<String>,
}

/// An iteration whose agent has ended.
pub struct Iteration {
    prepared: Prepared,
    started_at: Stamp,
    took: Duration,
    end: AgentEnd,
    report: Report,
    usage: Usage,
}

/// What came of starting the agent.
pub enum Attempt {
    /// A turn, good or failed, to decide about; then wait for a service that keeps failing.
    Turn(Option<Wait>),
    /// No iteration: wait, then start the agent again.
    Repeat(Wait),
    /// The loop has ended; its record says how.
    Ended,
}

/// Keeps what must be known of an agent while it runs.
struct IterationKeeper<'a> {
    world: &'a World,
    project: &'a Project,
    run_id: &'a str,
    iteration: u64,
}

impl Keeper for IterationKeeper<'_> {
    fn started(&self, pid: u32) {
        run_lock::note_agent(self.project, pid);
    }

    fn silent(&self, silence: &Silence) {
        // A record that cannot be written does not end the run.
        let _ = stalls::record(&self.world.later(), self.project, self.run_id, self.iteration, silence);
    }
}

impl Runner<'_> {
    /// Waits until the next iteration may begin and prepares it. Returns `None` if the run ended meanwhile.
    pub(super) fn prepare(&mut self) -> Result<Option<Prepared>> {
        let (resolved, settings) = self.settings();
        let run_settings = resolved.run_settings();
        if self.run.iteration > 0 && self.failures == 0 {
            let until = Instant::now() + span(run_settings.delay_ms);
            if let Some(interruption) = self.inbox.wait(until, |_| {})
                && self.is_ended_by(interruption)?
            {
                return Ok(None);
            }
        }
        if pace::wait_for_call(self, &run_settings)? == Waited::Over {
            return Ok(None);
        }
        let number = self.run.iteration + 1;
        let before = self.take_snapshot(&run_settings);
        let mode = before.as_ref().map_or(Mode::Implement, Snapshot::mode);
        let prompt = self.prompt(&resolved, &settings, before.as_ref())?;
        self.screen.iteration = number;
        self.screen.position = messages::position(&self.run, &settings, number);
        self.screen.say(&messages::iteration_started(number, &settings, mode));
        self.screen.event("iteration_started", json!({"iteration": number, "mode": mode.name()}));
        let head = git::head(&self.project.root);
        Ok(Some(Prepared { number, mode, resolved, prompt, before, head }))
    }

    /// Takes a snapshot of the task list. One that the agent broke it must fix first.
    fn take_snapshot(&mut self, run_settings: &RunSettings) -> Option<Snapshot> {
        let rules = Rules {
            run_id: self.run.run_id.clone(),
            skip_review: self.plan.skip_review,
            review_cap: run_settings.review_cap,
        };
        let taken = snapshot::take(self.world, self.project, &self.run.tasks, &rules);
        taken.unwrap_or_else(|faults| {
            self.preface = format!("Fix this first:\n- {}", faults.join("\n- "));
            None
        })
    }

    fn prompt(
        &mut self,
        resolved: &Resolved,
        settings: &Settings,
        before: Option<&Snapshot>,
    ) -> Result<String> {
        let lists = self.lists(resolved)?;
        let run = StoredLoop { task: self.plan.task.clone(), ..StoredLoop::clone(&self.run) };
        let write = if self.conversation.is_some() { prompt::continuation } else { prompt::fresh };
        let mut text = write(&run, &self.note, &lists, settings, self.now());
        if let Some(Snapshot { tasks, rules }) = before {
            let work = stories::assignment(tasks, rules.skip_review, rules.review_cap);
            text.push_str(&format!("\n\n{work}"));
        }
        if !self.preface.is_empty() {
            text.push_str(&format!("\n\n{}", std::mem::take(&mut self.preface)));
        }
        Ok(text)
    }

    /// Returns the guidance and constraints as they are now.
    fn lists(&mut self, resolved: &Resolved) -> Result<GuidanceLists> {
        let world = &self.world.later();
        let enabled = resolved.is_on("scan.enabled");
        let scan = enabled.then(|| scan::scan(world, self.project, resolved, ScanBudget::Hook));
        let mut state = Locked::open(self.project, world.now)?;
        let (project, run) = (self.project, &self.run);
        let context = BriefingContext { world, project, session: SESSION, run, resolved, told: true };
        let brief = briefing::prepare(&context, &mut state.document, scan)?;
        self.scanned_at = state.document.scanned_at();
        state.save()?;
        brief.notes.iter().for_each(|note| self.screen.note(note));
        Ok(brief.lists)
    }

    /// Runs the agent to its end.
    pub(super) fn run_agent(&mut self, mut prepared: Prepared) -> Iteration {
        let run_settings = prepared.resolved.run_settings();
        let (started_at, began) = (self.now(), Instant::now());
        self.attempts += 1;
        let agent = self.plan.agent.program();
        let launch = Launch {
            number: self.attempts,
            words: agent.command_line(self.conversation.as_ref().map(|(id, _)| id.as_str())),
            target: &self.plan.target,
            project: &self.project.root,
            run_id: &self.run.run_id,
            prompt: std::mem::take(&mut prepared.prompt),
            timeout: Some(span(run_settings.timeout_ms)).filter(|limit| !limit.is_zero()),
            heartbeat: run_settings.heartbeat,
        };
        let mut reader = agent.reader(self.screen.shows_text());
        let mut log = Log::open(&self.logs, prepared.number, agent.unlogged());
        let keeper = IterationKeeper {
            world: self.world,
            project: self.project,
            run_id: &self.run.run_id,
            iteration: prepared.number,
        };
        let (end, report) =
            supervisor::run(launch, &self.inbox, &mut *reader, &mut log, &mut self.screen, &keeper);
        if let Some(error) = log.close() {
            self.screen.warn(&error);
        }
        let usage = self.charge(&report);
        let took = began.elapsed();
        // The wait before it is not runtime.
        self.run.last_hook_timestamp = started_at.seconds();
        Iteration { prepared, started_at, took, end, report, usage }
    }

    /// Adds up what the agent used, whatever else comes of the iteration. A continued conversation reports its
    /// whole cost, and nothing if it was cut off.
    fn charge(&mut self, report: &Report) -> Usage {
        let mut usage = report.usage.clone();
        let (id, before) = self.conversation.take().map_or((None, 0.0), |(id, cost)| (Some(id), cost));
        usage.cost_usd = usage.cost_usd.map(|cost| (cost - before).max(0.0));
        if self.plan.context == Context::Continue && !report.session_lost {
            let cost = report.usage.cost_usd.unwrap_or(before);
            self.conversation = report.session.clone().or(id).map(|id| (id, cost));
        }
        self.run.usage.add(&usage);
        usage
    }

    /// Tells a turn from an attempt that was cut off, could not begin or is to be repeated.
    pub(super) fn attempted(&mut self, iteration: &Iteration) -> Result<Attempt> {
        let ended = match &iteration.end {
            AgentEnd::Interrupted(signal) => Some((Outcome::Interrupted, signal.words().to_owned())),
            AgentEnd::Stopped if self.is_stopped_elsewhere()? => {
                self.count_time(iteration);
                return Ok(Attempt::Ended);
            }
            AgentEnd::Ended(Ended::NotStarted(why)) => {
                Some((Outcome::Error, format!("the agent could not be started: {why}")))
            }
            _ => None,
        };
        let failures = std::mem::take(&mut self.failures);
        let ended = match &iteration.report.failure {
            _ if ended.is_some() => ended,
            Some(Failure::UsageLimit { resets }) => {
                let wait = Wait::for_limit(resets.as_ref(), self.now());
                if self.plan.on_limit == OnLimit::Wait {
                    self.count_time(iteration);
                    return Ok(Attempt::Repeat(wait));
                }
                Some((Outcome::UsageLimit, wait.limit_reason()))
            }
            Some(failure) if failure.is_transient() => {
                self.failures = failures + 1;
                let wait = Wait::after_failure(self.failures, failure.to_string());
                if backoff::is_counted(self.failures) {
                    return Ok(Attempt::Turn(Some(wait)));
                }
                self.count_time(iteration);
                return Ok(Attempt::Repeat(wait));
            }
            Some(failure @ (Failure::Authentication | Failure::Billing)) => {
                Some((Outcome::Error, failure.to_string()))
            }
            _ => None,
        };
        let Some((outcome, reason)) = ended else { return Ok(Attempt::Turn(None)) };
        self.count_time(iteration);
        self.end(outcome, reason);
        Ok(Attempt::Ended)
    }

    /// Counts the time of an attempt that nothing is decided about.
    pub(super) fn count_time(&mut self, iteration: &Iteration) {
        let now = self.now();
        let turn = Turn { mark: Mark::Answered, gained: Some(self.gained(iteration)), ..Turn::default() };
        let settings = iteration.prepared.resolved.settings_for(self.run.engine);
        account(&mut self.run, &turn, &settings, now);
    }

    /// Gathers what the agent and the project tell.
    pub(super) fn gather(&self, iteration: &Iteration) -> Facts {
        let Iteration { end, report, .. } = iteration;
        // Nothing that a failed agent said is believed; the breaker counts the failure as an error.
        let message = match &report.failure {
            None if !end.is_failure() => report.message().map(str::to_owned),
            Some(failure) => Some(format!("error: the agent failed: {failure}")),
            None => Some(format!("error: the agent failed: {end}")),
        };
        let gained = Gained { last_text: message.clone(), ..self.gained(iteration) };
        let turn = Turn { message, mark: Mark::Answered, gained: Some(gained), ..Turn::default() };
        let tasks = tasks::read_reviewed(self.project, &self.run.tasks, self.plan.skip_review);
        let facts = Facts::new(self.run.clone(), iteration.prepared.resolved.clone(), turn);
        facts.gather_project(&self.world.later(), self.project, tasks)
    }

    fn gained(&self, iteration: &Iteration) -> Gained {
        let event = |at, event| runtime::Evidence { at, event };
        // An agent that does not report its tools is not idle for that.
        let unreported = u64::from(!self.plan.agent.program().abilities().reports_tools);
        Gained {
            evidence: vec![event(iteration.started_at, Event::Prompt), event(self.now(), Event::Answer)],
            tools_used: iteration.report.tools_used.max(unreported),
            tools_that_write: 1,
            edits: iteration.report.edits,
            ..Gained::default()
        }
    }

    /// Runs the check commands. Returns `None` if the run ended meanwhile.
    pub(super) fn run_checks(&mut self, facts: &Facts) -> Option<Checks> {
        self.screen.say("Ralph: the agent says it is done; checking");
        self.screen.event("verifying", json!({"iteration": self.run.iteration + 1}));
        let root = &self.project.root;
        let runner = RefCell::new(self);
        let cancelled = || {
            let runner = &mut *runner.borrow_mut();
            let interruption = runner.inbox.interruption();
            interruption.is_some_and(|interruption| runner.is_ended_by(interruption).unwrap_or(false))
        };
        let results = facts.checks.run(root, &cancelled);
        runner.into_inner().run.is_alive().then(|| checks::summarize(&results))
    }

    /// Records the iteration: its row first, so that a resumed run sees it after a crash in between.
    pub(super) fn record(&mut self, iteration: &Iteration) -> Result<()> {
        if let (Some(before), true) = (&iteration.prepared.before, self.run.is_alive())
            && let Ok(approved) = runner_guard::cap_reviews(self.project, before)
            && !approved.is_empty()
        {
            self.screen.note(&format!("approved at the review cap: {}", approved.join(", ")));
        }
        // An iteration that was cut off counts too: it took its time and its money.
        self.run.iteration = iteration.prepared.number;
        let row = self.row(iteration);
        self.run.tally.stuck_iterations += u64::from(row.stuck_count > 0);
        self.run.tally.recorded_seconds += row.seconds();
        self.recorded_attempts = self.attempts;
        if let Err(error) = summary::add(&self.logs, &row) {
            self.screen.warn(&format!("no row in the summary: {error:#}"));
        }
        let how = if iteration.end.is_failure() { format!(" · {}", iteration.end) } else { String::new() };
        self.screen.say(&format!("{}{how}", messages::iteration_ended(&row)));
        let how = iteration.end.to_string();
        self.screen
            .event("iteration_ended", messages::iteration_json(&row, &how, &self.run.circuit.counters));
        if self.run.is_alive() { self.save() } else { Ok(()) }
    }

    fn row(&mut self, iteration: &Iteration) -> Row {
        let tasks = tasks::read_reviewed(self.project, &self.run.tasks, self.plan.skip_review);
        let (stories_complete, stories_total) = tasks.map_or((0, 0), |tasks| (tasks.passing, tasks.total));
        let head = git::head(&self.project.root)
            .filter(|head| !head.contains('/') && Some(head) != iteration.prepared.head.as_ref());
        self.count_duration();
        let tally = &self.run.tally;
        let duration_seconds = iteration.took.as_secs();
        let unrecorded = tally.duration_seconds.saturating_sub(tally.recorded_seconds);
        Row {
            iteration: iteration.prepared.number,
            mode: iteration.prepared.mode.name().into(),
            duration_seconds,
            commit_hash: head.unwrap_or_default().chars().take(7).collect(),
            stories_complete,
            stories_total,
            stuck_count: self.run.stuck_count,
            timestamp: Some(self.now()),
            outcome: Some(self.outcome(iteration)),
            cost_usd: iteration.usage.cost_usd,
            tokens: iteration.usage.tokens(),
            attempts: self.attempts - self.recorded_attempts,
            other_seconds: unrecorded.saturating_sub(duration_seconds),
        }
    }

    /// Returns how the iteration ended; if the run ended with it, as that did.
    fn outcome(&self, iteration: &Iteration) -> IterationOutcome {
        if let Some(outcome) = self.run.outcome {
            return IterationOutcome::Run(outcome);
        }
        match &iteration.end {
            AgentEnd::Stalled(_) => IterationOutcome::Stalled,
            AgentEnd::Ended(Ended::TimedOut(_)) => IterationOutcome::TimedOut,
            end if end.is_failure() || iteration.report.failure.is_some() => IterationOutcome::Failed,
            _ if iteration.report.permission_denials > 0 => IterationOutcome::Denied,
            _ if self.note.rejected.is_some() => IterationOutcome::Rejected,
            _ => IterationOutcome::Ok,
        }
    }

    /// Saves the loop between two iterations, unless it was stopped elsewhere meanwhile: then it ends.
    fn save(&mut self) -> Result<()> {
        let world = self.world.later();
        for note in record::turn(&world, self.project, SESSION, &self.recorded, &self.run) {
            self.screen.warn(&note);
        }
        self.recorded = self.run.clone();
        let mut state = Locked::open(self.project, world.now)?;
        let present = state.document.loop_of(SESSION).filter(|run| run.run_id == self.run.run_id);
        if let Some(stopped) = present.filter(|run| !run.is_alive()) {
            self.end(stopped.outcome.unwrap_or(Outcome::Stopped), stopped.reason.unwrap_or_default());
            return Ok(());
        }
        state.document.set_loop(SESSION, &self.run)?;
        self.scanned_at.map_or(Ok(()), |at| state.document.set_scanned_at(at))?;
        // A full disk does not end the run: the next iteration tries again.
        if let Err(error) = state.save_unsynced() {
            self.screen.warn(&format!("could not save the state: {error:#}"));
        }
        Ok(())
    }
}
