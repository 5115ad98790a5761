//! Writing an iteration down: its row, its line on the screen, its event, and the state between two iterations.

use super::agent::AgentReport;
use super::iteration::Iteration;
use super::process::supervisor::AgentEnd;
use super::{Context, Runner, SESSION, messages};
use crate::core::decide::figures::{FigureSource, Figures};
use crate::core::event::{self, EventKind, IterationEnded};
use crate::core::message;
use crate::core::outcome::{IterationOutcome, Outcome};
use crate::core::record::{LoopState, PAUSED_BY_USER, Usage};
use crate::core::time::Stamp;
use crate::engine;
use crate::store::process::program::ProgramEnd;
use crate::store::project::git;
use crate::store::runner::summary::{self, SummaryRow};
use crate::store::runner::{logs, task_list_guard};
use crate::store::state::{Locked, StateError};
use crate::store::tasks;
use crate::store::user::ledger;
use anyhow::Result;

impl Runner<'_> {
    /// Records the iteration: its row first, so that a resumed run sees it after a crash in between. `head` is the commit
    /// that the agent left.
    pub(super) fn record(&mut self, iteration: &Iteration, head: Option<&str>) -> Result<()> {
        if let (Some(before), true) = (&iteration.prepared.before, self.run.is_alive())
            && let Ok(approved) = task_list_guard::cap_reviews(self.project, before)
            && !approved.is_empty()
        {
            self.screen.note(&format!("approved automatically at the review cap: {}", approved.join(", ")));
        }
        // An iteration that was cut off counts too: it took its time and its money.
        self.run.iteration = iteration.prepared.number;
        let row = self.row(iteration, head);
        self.run.tally.stuck_iterations += u64::from(row.stuck_count > 0);
        self.run.tally.recorded_seconds += row.seconds();
        self.recorded_attempts = self.attempts;
        if let Err(error) = summary::add(self.project, &row) {
            self.screen.warn(&format!("could not add a row to summary.csv: {error:#}"));
        }
        let error = iteration.error();
        let log = error.as_ref().map(|_| format!("ralph/logs/{}", logs::name(row.iteration)));
        let denied = &iteration.report.denied;
        let remarks = message::remarks(&self.note);
        let mut line = messages::iteration_ended(&row);
        let in_tool = matches!(iteration.end, AgentEnd::Ended(ProgramEnd::TimedOut(_)))
            && iteration.report.running() > 0;
        let hint = if in_tool { " while a tool ran (--timeout is the limit)" } else { "" };
        let how = Some(format!("{}{hint}", iteration.end))
            .filter(|how| iteration.end.is_failure() && error.as_ref() != Some(how));
        let denied_tools = (!denied.is_empty()).then(|| format!("denied: {}", denied.join(", ")));
        let logged = log.as_ref().map(|log| format!("log: {log}"));
        for part in how.iter().chain(&error).chain(&denied_tools).chain(&remarks).chain(&logged) {
            line.push_str(&format!(" · {part}"));
        }
        self.screen.say(&line);
        let ended = self.iteration_ended(iteration, row, (error.clone(), log, remarks));
        self.emit(EventKind::IterationEnded(Box::new(ended)));
        self.run.session.last_error = error;
        if self.run.is_alive() { self.save() } else { Ok(()) }
    }

    /// Records an iteration that ended the run before anything was decided about it.
    pub(super) fn record_undecided(&mut self, iteration: &Iteration) -> Result<()> {
        let head = git::head(&self.project.root);
        self.record(iteration, head.as_deref())
    }

    fn iteration_ended(
        &self,
        iteration: &Iteration,
        row: SummaryRow,
        (error, log, remarks): (Option<String>, Option<String>, Vec<String>),
    ) -> IterationEnded {
        let report = &iteration.report;
        let rejected = self.note.rejected.as_ref().map(|rejection| event::text(&rejection.brief()));
        IterationEnded {
            iteration: row.iteration,
            mode: row.mode,
            outcome: row.outcome,
            duration_seconds: Some(iteration.took.as_secs_f64().round()),
            attempts: row.attempts,
            other_seconds: row.other_seconds,
            commit: Some(row.commit_hash).filter(|commit| !commit.is_empty()),
            stuck_count: row.stuck_count,
            counters: self.run.circuit.counters,
            stories_complete: row.stories_complete,
            stories_total: row.stories_total,
            cost_usd: row.cost_usd,
            tokens: row.tokens,
            check: row.check,
            how: Some(iteration.end.to_string()),
            error: error.as_deref().map(event::text),
            log,
            denied_tools: event::texts(report.denied.iter().map(String::as_str)),
            remarks: event::texts(remarks.iter().map(String::as_str)),
            runtime_seconds: Stamp(self.run.runtime_ms()).seconds(),
            head: git::head(&self.project.root),
            tools: self.plan.options.agent.program().abilities().reports_tools.then_some(report.tools_used),
            edits: self.plan.options.agent.program().abilities().reports_tools.then_some(report.edits),
            message: report.message().map(event::text),
            rejected,
            transcript: None,
            work_tree: None,
            quota: self.run.quota.windows.clone(),
        }
    }

    fn row(&mut self, iteration: &Iteration, head: Option<&str>) -> SummaryRow {
        let tasks = tasks::read(self.project, &self.run.tasks);
        let (stories_complete, stories_total) = tasks.map_or((0, 0), |tasks| (tasks.passing, tasks.total));
        let head =
            head.filter(|head| !head.contains('/') && Some(*head) != iteration.prepared.head.as_deref());
        self.count_duration();
        let tally = &self.run.tally;
        let duration_seconds = iteration.took.as_secs();
        let unrecorded = tally.duration_seconds.saturating_sub(tally.recorded_seconds);
        SummaryRow {
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
            check: message::checked(&self.checked),
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
            AgentEnd::Ended(ProgramEnd::TimedOut(_)) => IterationOutcome::TimedOut,
            end if end.is_failure() || iteration.error().is_some() => IterationOutcome::Failed,
            _ if !iteration.report.denied.is_empty() => IterationOutcome::Denied,
            _ if self.note.rejected.is_some() => IterationOutcome::Rejected,
            _ => IterationOutcome::Ok,
        }
    }

    /// Shows in the record that a run that waits is alive. Waiting is no runtime, and the next iteration sets its own mark.
    pub(super) fn refresh(&mut self) -> Result<()> {
        self.run.last_hook_timestamp = self.now().seconds();
        self.save()
    }

    /// Saves the loop between two iterations, unless it was stopped elsewhere meanwhile: then it ends.
    pub(super) fn save(&mut self) -> Result<()> {
        let world = self.world.later();
        let mut state = match Locked::open(self.project, world.now) {
            // Like a full disk, this does not end the run: the next iteration tries again.
            Err(StateError::Other(error)) => {
                self.screen.warn(&format!("could not save the state: {error:#}"));
                self.save_to_continue();
                return Ok(());
            }
            state => state?,
        };
        for note in engine::record::turn(&world, self.project, SESSION, &self.recorded, &self.run) {
            self.screen.warn(&note);
        }
        self.recorded = self.run.clone();
        self.save_to_continue();
        let present = state.document.loop_of(SESSION).filter(|run| run.run_id == self.run.run_id);
        let present_state = present.as_ref().map(|run| run.state);
        if let Some(stopped) = present.filter(|run| !run.is_alive()) {
            self.end(stopped.outcome.unwrap_or(Outcome::Stopped), stopped.reason.unwrap_or_default());
            return Ok(());
        }
        if present_state == Some(LoopState::Paused) && self.run.state == LoopState::Running {
            // It holds before the next iteration.
            self.run.pause(PAUSED_BY_USER);
        }
        state.document.set_loop(SESSION, &self.run)?;
        self.scanned_at.map_or(Ok(()), |at| state.document.set_scanned_at(at))?;
        // A full disk does not end the run: the next iteration tries again.
        if let Err(error) = state.save_unsynced() {
            self.screen.warn(&format!("could not save the state: {error:#}"));
        }
        Ok(())
    }

    /// Adds up what the agent used, whatever else comes of the iteration. A continued conversation reports its
    /// whole cost, and nothing if it was cut off.
    pub(super) fn charge(&mut self, report: &AgentReport) -> Usage {
        let mut usage = report.usage.clone();
        let (id, before) = self.plan.conversation.take().map_or((None, 0.0), |(id, cost)| (Some(id), cost));
        usage.cost_usd = usage.cost_usd.map(|cost| (cost - before).max(0.0));
        if self.plan.options.context == Context::Continue && !report.session_lost {
            let cost = report.usage.cost_usd.unwrap_or(before);
            self.plan.conversation = report.session.clone().or(id).map(|id| (id, cost));
        }
        usage.cost_source = usage.cost_usd.map(|_| FigureSource::Stream);
        self.run.usage.add(&usage);
        let world = self.world.later();
        self.run.quota.note(&report.windows, world.now, FigureSource::Stream);
        match ledger::add(&world, usage.since(&Usage::default())) {
            Ok(told) => told.iter().for_each(|told| self.screen.warn(told)),
            Err(error) => {
                self.screen.warn(&format!("could not update today's spending: {error:#}"));
            }
        }
        usage
    }

    /// Returns what the agent told of quota and context. A fresh context is empty again, however full this one was.
    pub(super) fn figures(&self, report: &AgentReport) -> Figures {
        let continues = self.plan.options.context == Context::Continue;
        let now = self.now();
        Figures {
            at: now,
            source: FigureSource::Stream,
            spent_usd: None,
            first_usd: None,
            context_percent: report.context_percent().filter(|_| continues),
            windows: report.windows.iter().map(|window| window.clone().until_its_reset(now)).collect(),
            has_module: false,
        }
    }
}
