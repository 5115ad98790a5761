//! The steps of one iteration around the decision: prepare, run the agent, gather, run the checks.

use super::agent::{AgentFailure, AgentReport};
use super::pace::{self, Wait, Waited};
use super::process::supervisor::{self, AgentEnd, Launch, Observer};
use super::trouble::Trouble;
use super::{Runner, SESSION, messages};
use crate::core::decide::accounting;
use crate::core::decide::turn::{Tasks, TranscriptGain, Turn};
use crate::core::event::{EventKind, IterationStarted};
use crate::core::guidance::merge::GuidanceLists;
use crate::core::outcome::Outcome;
use crate::core::prompt;
use crate::core::record::{ArmedLoop, StoredLoop, Usage};
use crate::core::settings::{Resolved, RunSettings, Settings};
use crate::core::signal;
use crate::core::tasks::{self as stories, Mode};
use crate::core::time::heartbeat::Silence;
use crate::core::time::runtime::{self, HookKind};
use crate::core::time::{self, Stamp};
use crate::engine::facts::Facts;
use crate::scan::briefing::{self, BriefingContext};
use crate::scan::{self, ScanBudget};
use crate::store::process::checks::CheckRun;
use crate::store::process::program::ProgramEnd;
use crate::store::project::{Project, git};
use crate::store::runner::logs::{self, Log};
use crate::store::runner::run_lock::HeldProject;
use crate::store::runner::snapshot::{self, TaskListSnapshot, TaskRules};
use crate::store::runner::task_list_guard;
use crate::store::state::{self, Locked, StateError};
use crate::store::tasks;
use crate::store::user::{armed, given_guidance, ledger, stalls};
use crate::store::world::{Instant, World, milliseconds};
use anyhow::Result;
use serde_json::json;
use std::cell::RefCell;
use std::time::Duration;

/// An iteration that is about to begin.
pub struct Prepared {
    pub(super) number: u64,
    pub(super) mode: Mode,
    pub(super) resolved: Resolved,
    pub(super) prompt: String,
    /// The task list before the iteration.
    pub(super) before: Option<TaskListSnapshot>,
    /// The commit it begins at.
    pub(super) head: Option<String>,
}

/// An iteration whose agent has ended.
pub struct Iteration {
    pub(super) prepared: Prepared,
    pub(super) started_at: Stamp,
    pub(super) took: Duration,
    pub(super) end: AgentEnd,
    pub(super) report: AgentReport,
    /// Why its agent may still be running.
    pub(super) left: Option<String>,
    pub(super) usage: Usage,
}

impl Iteration {
    /// Returns why it failed, in the agent's own words if it has any. What the user ended did not fail.
    pub(super) fn error(&self) -> Option<String> {
        match &self.end {
            AgentEnd::Interrupted(_) | AgentEnd::Stopped => None,
            AgentEnd::Lost(words) | AgentEnd::Restarted(words) => Some(words.clone()),
            end if end.is_failure() => Some(self.report.error().unwrap_or_else(|| end.to_string())),
            _ => self.report.error(),
        }
    }

    /// Returns what stood in the way of the agent, as far as the next iteration will meet it again.
    fn trouble<'a>(&'a self, error: Option<&'a str>) -> Trouble<'a> {
        let is_ours = matches!(self.end, AgentEnd::Stalled(_) | AgentEnd::Ended(ProgramEnd::TimedOut(_)));
        let is_transient = self.report.failure.as_ref().is_some_and(AgentFailure::is_transient);
        match error {
            Some(_) if is_ours || is_transient => Trouble::None,
            Some(error) => Trouble::Error(error),
            None if !self.report.denied.is_empty() => Trouble::Denied(&self.report.denied),
            None => Trouble::None,
        }
    }
}

/// What came of starting the agent.
pub enum Attempt {
    /// A turn, good or failed, to decide about.
    Turn,
    /// No iteration: wait, then start the agent again.
    Repeat(Wait),
    /// The loop has ended; its record says how.
    Ended,
}

/// Keeps what must be known of an agent while it runs.
struct IterationObserver<'a> {
    world: &'a World,
    project: &'a Project,
    held: &'a HeldProject,
    run_id: &'a str,
    iteration: u64,
}

impl Observer for IterationObserver<'_> {
    fn started(&self, pid: u32) {
        self.held.note_agent(pid);
    }

    fn silent(&self, silence: &Silence) {
        // A record that cannot be written does not end the run.
        let _ = stalls::record(&self.world.later(), self.project, self.run_id, self.iteration, silence);
    }
}

impl Runner<'_> {
    /// Waits until the next iteration may begin and prepares it. Returns `None` if the run ended meanwhile.
    pub(super) fn prepare(&mut self) -> Result<Option<Prepared>> {
        // The user may have changed one with `ralph config`.
        let limits = armed::limits(self.world, self.project, SESSION, &self.run.run_id)?;
        self.run.limits = limits.or(self.run.limits.take());
        let (resolved, settings) = self.settings();
        self.report_warnings(&resolved);
        if settings.limits_a_day() {
            // What a day has cost must not count as nothing because it cannot be read.
            let (_, told) = ledger::today(&self.world.later())?;
            told.iter().for_each(|told| self.screen.warn(told));
        }
        let run_settings = resolved.run_settings();
        let is_repeated = self.run.session.outage.or(self.failed_starts).is_some();
        if self.run.iteration > 0 && !is_repeated {
            let until = Instant::now() + milliseconds(run_settings.delay_ms);
            if let Some(interruption) = self.inbox.wait(until, |_| {})
                && self.is_ended_by(interruption)?
            {
                return Ok(None);
            }
        }
        if pace::wait_for_known_quota(self, &settings.quota)? == Waited::Over
            || pace::wait_for_call(self, &run_settings)? == Waited::Over
            || pace::wait_while_paused(self)? == Waited::Over
        {
            return Ok(None);
        }
        let number = self.run.iteration + 1;
        let before = self.take_snapshot(&run_settings);
        let mode = before.as_ref().map_or(Mode::Implement, TaskListSnapshot::mode);
        let prompt = self.prompt(&resolved, &settings, before.as_ref())?;
        self.screen.iteration = number;
        self.screen.position = messages::position(&self.run, &settings, number);
        self.screen.say(&messages::iteration_started(number, &settings, mode));
        let begun = IterationStarted { iteration: number, mode: mode.name().into() };
        self.emit(EventKind::IterationStarted(begun));
        let head = git::head(&self.project.root);
        Ok(Some(Prepared { number, mode, resolved, prompt, before, head }))
    }

    /// Tells the user once what is new about the settings.
    fn report_warnings(&mut self, resolved: &Resolved) {
        let told = std::mem::replace(&mut self.run.told.warnings, resolved.warnings.join("\n"));
        let is_new = |warning: &&String| !told.lines().any(|line| line == *warning);
        let new = resolved.warnings.iter().filter(is_new);
        new.for_each(|warning| self.screen.note(&format!("settings: {warning}")));
    }

    /// Takes a snapshot of the task list. One that the agent broke it must fix first, and until then it is compared with
    /// the list before that: nothing is forgotten by waiting an iteration.
    fn take_snapshot(&mut self, run_settings: &RunSettings) -> Option<TaskListSnapshot> {
        let earlier = match snapshot::load(self.world, self.project, &self.run.run_id) {
            Ok(earlier) => earlier,
            Err(error) => {
                // It stays, so that the agent's changes are judged once it can be read again.
                self.screen.warn(&format!("{error:#}"));
                return None;
            }
        };
        if let Some(before) = earlier {
            let problems = task_list_guard::list_problems(self.project, &before);
            if !problems.is_empty() {
                self.require(&problems);
                return Some(before).filter(|before| !before.text.is_empty());
            }
        }
        let rules = TaskRules {
            run_id: self.run.run_id.clone(),
            skip_review: self.plan.options.skip_review,
            review_cap: run_settings.review_cap,
        };
        let taken = snapshot::take(self.world, self.project, &self.run.tasks, &rules);
        taken.unwrap_or_else(|faults| {
            self.require(&faults);
            None
        })
    }

    /// Tells the agent to fix the task list.
    fn require(&mut self, problems: &[String]) {
        self.preface = format!("Fix this first:\n- {}", problems.join("\n- "));
    }

    /// Tells the user what the iteration changed in the task list against the rules.
    /// Without any, what the user changes before the next iteration is not compared.
    pub(super) fn report_violations(&mut self, facts: &Facts) {
        let violations = facts.turn.tasks.as_ref().map_or(&[][..], |tasks| &tasks.violations);
        violations.iter().for_each(|violation| self.screen.warn(violation));
        if violations.is_empty() && facts.turn.tasks.is_some() {
            snapshot::forget(self.world, self.project);
        }
    }

    fn prompt(
        &mut self,
        resolved: &Resolved,
        settings: &Settings,
        before: Option<&TaskListSnapshot>,
    ) -> Result<String> {
        let lists = self.lists(resolved)?;
        let run = StoredLoop { task: self.plan.task.clone(), ..StoredLoop::clone(&self.run) };
        // The first prompt of a continued run repeats everything, also in a conversation that continues.
        let continues = self.plan.conversation.is_some() && self.attempts > 0;
        let write = if continues { prompt::continuation } else { prompt::fresh };
        let mut text = write(&run, &self.note, &lists, settings, self.now());
        if let Some(TaskListSnapshot { tasks, rules, .. }) = before {
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
        let (project, run) = (self.project, &self.run);
        let context = BriefingContext { world, project, session: SESSION, run, resolved, told: true };
        let mut state = match Locked::open(self.project, world.now) {
            // What cannot be locked now can still be read, and is written after the iteration.
            Err(StateError::Other(error)) => {
                self.screen.warn(&format!("could not save the state: {error:#}"));
                let document = state::peek(project)?.unwrap_or_default();
                return briefing::stored(&context, &document);
            }
            state => state?,
        };
        let brief = briefing::prepare(&context, &mut state.document, scan)?;
        self.scanned_at = state.document.scanned_at();
        match state.save() {
            Ok(()) => given_guidance::prune(world, project, &state.document),
            Err(error) => self.screen.warn(&format!("could not save the state: {error:#}")),
        }
        brief.notes.iter().for_each(|note| self.screen.note(note));
        brief.events.into_iter().for_each(|what| self.emit(what));
        Ok(brief.lists)
    }

    /// Runs the agent to its end.
    pub(super) fn run_agent(&mut self, mut prepared: Prepared) -> Iteration {
        let run_settings = prepared.resolved.run_settings();
        let (World { now: started_at, slept_ms, .. }, began) = (self.world.later(), Instant::now());
        self.attempts += 1;
        self.checked.clear();
        let agent = self.plan.options.agent.program();
        let launch = Launch {
            number: self.attempts,
            words: agent.command_line(self.plan.conversation.as_ref().map(|(id, _)| id.as_str())),
            target: &self.plan.options.target,
            project: &self.project.root,
            run_id: &self.run.run_id,
            prompt: std::mem::take(&mut prepared.prompt),
            timeout: Some(milliseconds(run_settings.timeout_ms)).filter(|limit| !limit.is_zero()),
            heartbeat: run_settings.heartbeat,
        };
        let mut reader = agent.reader(self.screen.shows_text());
        let mut log = Log::open(self.project, prepared.number, agent.unlogged());
        let observer = IterationObserver {
            world: self.world,
            project: self.project,
            held: &self.held,
            run_id: &self.run.run_id,
            iteration: prepared.number,
        };
        let supervisor::ProcessOutcome { end, report, left } =
            supervisor::run(launch, &self.inbox, &mut *reader, &mut log, &mut self.screen, &observer);
        self.logged_bytes += log.length();
        if let Some(left) = &left {
            self.screen.warn(left);
            self.held.keep_record();
        }
        if let Some(error) = log.close() {
            self.screen.warn(&error);
        }
        if self.logged_bytes > logs::TRIM_EVERY_BYTES {
            self.logged_bytes = 0;
            let trimmed = logs::create(self.project).ok().and_then(|dir| logs::trim(&dir));
            trimmed.iter().for_each(|note| self.screen.note(note));
        }
        let usage = self.charge(&report);
        let took = began.elapsed();
        // The wait before it is not runtime.
        self.run.last_hook_timestamp = started_at.seconds();
        self.run.timing.slept_mark_ms = slept_ms;
        Iteration { prepared, started_at, took, end, report, left, usage }
    }

    /// Distinguishes a turn from an attempt that was cut off, could not begin or will be repeated.
    pub(super) fn attempted(&mut self, iteration: &Iteration) -> Result<Attempt> {
        let ended = match &iteration.end {
            AgentEnd::Interrupted(signal) => Some((Outcome::Interrupted, signal.words().to_owned())),
            AgentEnd::Stopped if self.is_stopped_elsewhere()? => {
                self.count_time(iteration);
                return Ok(Attempt::Ended);
            }
            AgentEnd::Ended(ProgramEnd::NotStarted(why)) => {
                let reason = format!("the agent could not be started: {why}");
                match self.has_started.then(|| pace::wait_for_program(self, &reason)).flatten() {
                    Some(wait) => return Ok(Attempt::Repeat(wait)),
                    None => Some((Outcome::Error, reason)),
                }
            }
            AgentEnd::Lost(words) => Some((Outcome::Error, words.clone())),
            // A second agent beside it would be worse than none.
            _ => iteration.left.as_ref().map(|left| (Outcome::Error, left.clone())),
        };
        if !matches!(iteration.end, AgentEnd::Ended(ProgramEnd::NotStarted(_))) {
            (self.has_started, self.failed_starts) = (true, None);
        }
        let outage = self.run.session.outage.take();
        let ended = match &iteration.report.failure {
            _ if ended.is_some() => ended,
            Some(AgentFailure::UsageLimit { resets }) => {
                let wait = Wait::for_limit(resets.as_ref(), &iteration.report, self.now());
                if !iteration.prepared.resolved.settings().quota.stops {
                    self.count_time(iteration);
                    return Ok(Attempt::Repeat(wait));
                }
                Some((Outcome::UsageLimit, iteration.report.with_words(wait.limit_reason())))
            }
            Some(failure) if failure.is_transient() => {
                self.count_time(iteration);
                let max_ms = iteration.prepared.resolved.settings().max_outage_ms;
                match pace::wait_for_service(self, outage, (failure, &iteration.report), max_ms) {
                    Ok(wait) => return Ok(Attempt::Repeat(wait)),
                    Err(reason) => {
                        self.end(Outcome::Error, reason);
                        return Ok(Attempt::Ended);
                    }
                }
            }
            Some(failure @ (AgentFailure::Authentication | AgentFailure::Billing)) => {
                Some((Outcome::Error, iteration.report.with_words(failure.to_string())))
            }
            _ => None,
        };
        let Some((outcome, reason)) = ended else { return Ok(Attempt::Turn) };
        self.count_time(iteration);
        self.end(outcome, reason);
        Ok(Attempt::Ended)
    }

    /// Tells the user what stood in the agent's way, and ends the run if that was the same three times in a row. An
    /// ending that has another cause says what the last iteration failed with. `before` is the loop before the turn.
    pub(super) fn note_trouble(&mut self, iteration: &Iteration, before: ArmedLoop) {
        let error = iteration.error();
        let agent = self.plan.options.agent.program();
        if let Some(news) = self.trouble.news(&iteration.report.denied, agent) {
            self.screen.note(&news);
        }
        let moved = self.run.stuck_count == 0;
        let ended = self.trouble.add(iteration.trouble(error.as_deref()), moved, agent);
        let is_stuck = matches!(self.run.outcome, Some(Outcome::Stuck | Outcome::Circuit));
        match ended {
            Some((outcome, reason)) if is_stuck || self.run.is_alive() => {
                // The agent was not at fault, so its breaker has not tripped.
                self.run.circuit = before.circuit;
                let denied = &iteration.report.denied;
                self.run.session.flags_to_allow =
                    (outcome == Outcome::Blocked).then(|| agent.flags_to_continue(denied));
                self.end(outcome, reason);
            }
            _ => {
                let is_limit = matches!(
                    self.run.outcome,
                    Some(Outcome::MaxIterations | Outcome::MaxRuntime | Outcome::MaxCost)
                );
                if let (Some(error), Some(reason), true) = (&error, &self.run.reason, is_stuck || is_limit)
                    && !reason.contains(signal::without_label(error))
                {
                    self.run.reason = Some(format!("{reason}; last error: {error}"));
                }
            }
        }
    }

    /// Counts the time of an attempt that nothing is decided about.
    pub(super) fn count_time(&mut self, iteration: &Iteration) {
        let now = self.now();
        let turn = Turn { hook: HookKind::TurnEnded, gained: Some(self.gained(iteration)), ..self.turn() };
        let settings = iteration.prepared.resolved.settings_for(self.run.engine);
        accounting::add_turn(&mut self.run, &turn, &settings, now);
    }

    /// Gathers what the agent and the project tell.
    pub(super) fn gather(&self, iteration: &Iteration) -> Facts {
        let Iteration { end, report, .. } = iteration;
        let settings = iteration.prepared.resolved.settings_for(self.run.engine);
        let message = report.message().map(str::to_owned);
        let failure = report.failure.as_ref().map(ToString::to_string);
        let gained = TranscriptGain { last_text: message.clone(), ..self.gained(iteration) };
        let turn = Turn {
            message,
            failure: failure.or_else(|| end.is_failure().then(|| end.to_string())),
            hook: HookKind::TurnEnded,
            gained: Some(gained),
            figures: Some(self.figures(report)),
            // What this iteration used is in it already. If it cannot be read, the next iteration is not begun.
            today: if settings.limits_a_day() {
                ledger::today(&self.world.later()).ok().map(|(spent, _)| spent)
            } else {
                None
            },
            ..self.turn()
        };
        let before = snapshot::load(self.world, self.project, &self.run.run_id);
        let violations = match before {
            Ok(before) => {
                before.map_or_else(Vec::new, |before| task_list_guard::list_problems(self.project, &before))
            }
            Err(error) => vec![format!("the task list cannot be compared: {error:#}")],
        };
        let mut tasks = tasks::read_reviewed(self.project, &self.run.tasks, self.plan.options.skip_review);
        if !violations.is_empty() {
            tasks = Some(Tasks { violations, ..tasks.unwrap_or_default() });
        }
        let was_scanned = !self.run.session.unscanned;
        let facts = Facts::new(self.run.clone(), iteration.prepared.resolved.clone(), turn);
        facts.gather_project(&self.world.later(), self.project, tasks, was_scanned)
    }

    fn turn(&self) -> Turn {
        Turn { slept_ms: self.world.later().slept_ms, ..Turn::default() }
    }

    fn gained(&self, iteration: &Iteration) -> TranscriptGain {
        use runtime::TranscriptEvent::{Answer, Prompt};
        let event = |at, event| runtime::TimedEvent { at, event };
        // An agent that does not report its tools is not idle for that.
        let unreported = u64::from(!self.plan.options.agent.program().abilities().reports_tools);
        TranscriptGain {
            evidence: vec![event(iteration.started_at, Prompt), event(self.now(), Answer)],
            tools_used: iteration.report.tools_used.max(unreported),
            tools_that_write: 1,
            edits: iteration.report.edits,
            ..TranscriptGain::default()
        }
    }

    /// Runs the check commands. Returns `None` if the run ended meanwhile.
    pub(super) fn run_checks(&mut self, facts: &Facts) -> Option<Vec<CheckRun>> {
        self.screen.say("Ralph: the agent claims completion; running the checks");
        self.screen.event("verifying", json!({"iteration": self.run.iteration + 1}));
        let (root, began) = (&self.project.root, Instant::now());
        let runner = RefCell::new(self);
        let cancelled = || {
            let runner = &mut *runner.borrow_mut();
            if began.elapsed() >= Duration::from_secs(1) {
                let spent = time::span(i64::try_from(began.elapsed().as_millis()).unwrap_or(0));
                runner.screen.live(&format!("Ralph: running the checks… {spent}"));
            }
            let interruption = runner.inbox.interruption();
            interruption.is_some_and(|interruption| runner.is_ended_by(interruption).unwrap_or(false))
        };
        let mut report = |check: &CheckRun| {
            if check.run.ended != ProgramEnd::Cancelled {
                let runner = &mut *runner.borrow_mut();
                let event = runner.screen.check(check);
                runner.emit(EventKind::Check(event));
            }
        };
        let results = facts.checks.run(root, &cancelled, &mut report);
        let runner = runner.into_inner();
        let now = runner.now();
        let ran = results.iter().filter(|check| check.run.ended != ProgramEnd::Cancelled);
        runner.checked = ran.map(|check| check.result(now)).collect();
        runner.run.is_alive().then_some(results)
    }
}
