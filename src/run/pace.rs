//! The waits between iterations: the limit of calls, the usage limit, a service that fails, a pause. Ctrl-C or a stop ends every
//! wait at once, and Enter skips it: the limit of calls is the user's own.

use super::agent::{AgentFailure, AgentReport};
use super::inbox::Interruption;
use super::{Runner, SESSION, terminal};
use crate::core::decide::figures::MAX_RESET_MS;
use crate::core::decide::quota::{self, CLOCK_MARGIN_MS, QuotaVerdict, UNKNOWN_RESET_MS};
use crate::core::event::{self, EventKind};
use crate::core::message;
use crate::core::outcome::Outcome;
use crate::core::record::{LoopState, PAUSED_BY_USER, QuotaWait, Waiting, WaitingFor};
use crate::core::settings::{QuotaSettings, RunSettings};
use crate::core::signal::Reset;
use crate::core::time::outage::{Outage, Passing};
use crate::core::time::{self, Stamp};
use crate::store::runner::calls;
use crate::store::state::{self, Locked, StateError};
use crate::store::world::{self, Instant, World};
use crate::store::zone;
use anyhow::Result;
use std::time::Duration;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    Elapsed,
    /// The user pressed Enter.
    Skipped,
    /// The run has ended.
    Over,
}

/// A reason to wait.
pub struct Wait {
    what: fn(Stamp) -> WaitingFor,
    reason: String,
    /// What the agent failed with, and its own words for it.
    error: Option<String>,
    words: String,
    span: Duration,
    /// When it ends, if that was stated.
    until: Option<Stamp>,
}

/// How long an agent program that was there before may be away.
const MAX_AWAY_MS: i64 = 10 * 60_000;
/// How often a paused run looks whether it was resumed.
const PAUSE_POLL: Duration = Duration::from_millis(250);
/// How often a wait looks at the clocks.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often a wait is reported where there is no status line, and its record refreshed.
const REPORT_INTERVAL: Duration = Duration::from_secs(300);

impl Wait {
    pub fn for_limit(resets: Option<&Reset>, report: &AgentReport, now: Stamp) -> Wait {
        let until = resets.and_then(|reset| zone::moment(reset, now)).filter(|at| *at - now <= MAX_RESET_MS);
        let ms = until.map_or(UNKNOWN_RESET_MS, |until| until - now + CLOCK_MARGIN_MS);
        let span = world::milliseconds(ms);
        Wait::new(WaitingFor::UsageLimit, "usage limit reached".into(), span, until).said_by(report)
    }

    /// Waits for the reset of a window of which too much is used.
    pub fn for_quota(held: &QuotaWait, now: Stamp) -> Wait {
        let span = world::milliseconds(held.until - now + CLOCK_MARGIN_MS);
        Wait::new(WaitingFor::UsageLimit, held.words.clone(), span, Some(held.until))
    }

    fn after_failure(ms: i64, reason: String, report: &AgentReport) -> Wait {
        Wait::new(WaitingFor::Service, reason, world::milliseconds(ms), None).said_by(report)
    }

    fn for_calls(per_hour: u64, until: Stamp, now: Stamp) -> Wait {
        let reason = format!("limit of {} per hour reached", message::iterations(per_hour));
        Wait::new(WaitingFor::Calls, reason, world::milliseconds(until - now), Some(until))
    }

    fn new(what: fn(Stamp) -> WaitingFor, reason: String, span: Duration, until: Option<Stamp>) -> Wait {
        Wait { what, reason, error: None, words: String::new(), span, until }
    }

    fn said_by(self, report: &AgentReport) -> Wait {
        Wait { error: report.error(), words: report.with_words(String::new()), ..self }
    }

    /// Returns the reason of a run that ends at a usage limit.
    pub fn limit_reason(&self) -> String {
        match self.until {
            Some(until) => format!("{}, resets at {}", self.reason, until.minute()),
            None => format!("{}; reset time unknown", self.reason),
        }
    }

    /// Waits. The state says so meanwhile.
    pub fn hold(&self, runner: &mut Runner) -> Result<Waited> {
        let (since, began) = (runner.now(), Instant::now());
        let end = since.plus_ms(i64::try_from(self.span.as_millis()).unwrap_or(i64::MAX));
        let what = (self.what)(self.until.unwrap_or(end));
        runner.run.session.waiting = Some(Waiting { what, since });
        runner.run.session.last_error = self.error.clone().or(runner.run.session.last_error.take());
        runner.save()?;
        let waited = if runner.run.is_alive() { self.watch(runner, (since, began))? } else { Waited::Over };
        if waited != Waited::Over {
            runner.run.session.waiting = None;
            runner.save()?;
        }
        Ok(if runner.run.is_alive() { waited } else { Waited::Over })
    }

    /// Waits and shows how long it will take. It began at this moment, by both clocks.
    fn watch(&self, runner: &mut Runner, (since, began): (Stamp, Instant)) -> Result<Waited> {
        let span = |span: Duration| time::span(i64::try_from(span.as_millis()).unwrap_or(i64::MAX));
        let can_skip = runner.has_keyboard && terminal::in_front(std::io::stdin());
        let offer = if can_skip { " (Enter tries now)" } else { "" };
        let reason = &self.reason;
        let words = &self.words;
        runner.screen.say(&format!("Ralph: {reason}; continuing in {}{offer}{words}", span(self.span)));
        let what = runner.run.session.waiting.as_ref().map_or("", |waiting| waiting.what.name());
        runner.emit(EventKind::Waiting(event::WaitEvent {
            what: what.into(),
            reason: event::text(reason),
            error: self.error.as_deref().map(event::text),
            until: self.until,
            seconds: Some(self.span.as_secs()),
        }));
        let mut reported = began;
        loop {
            let left = self.left(runner.now() - since, began.elapsed());
            if left.is_zero() {
                return Ok(Waited::Elapsed);
            }
            runner.screen.live(&format!("Ralph: {reason}; {} left{offer}", span(left)));
            if reported.elapsed() >= REPORT_INTERVAL {
                reported = Instant::now();
                runner.screen.say(&format!("Ralph: {reason}; {} left", span(left)));
                runner.refresh()?;
            }
            match runner.inbox.wait_briefly(left.min(POLL_INTERVAL)) {
                Some(Interruption::Key) => {
                    runner.screen.entered();
                    return Ok(Waited::Skipped);
                }
                Some(interruption) if runner.is_ended_by(interruption)? => return Ok(Waited::Over),
                Some(_) => return Ok(Waited::Elapsed),
                None => {}
            }
            if !runner.run.is_alive() {
                return Ok(Waited::Over);
            }
        }
    }

    /// Returns how long is left. The clock on the wall counts sleep of the machine, and may be set back; the other one does
    /// neither. Whichever is ahead ends the wait.
    fn left(&self, by_wall_ms: i64, awake: Duration) -> Duration {
        self.span.saturating_sub(world::milliseconds(by_wall_ms).max(awake))
    }
}

/// Returns the wait for a service that fails, or why the run ends. A failure of the service is no iteration.
pub fn wait_for_service(
    runner: &mut Runner,
    earlier: Option<Outage>,
    (failure, report): (&AgentFailure, &AgentReport),
    max_ms: i64,
) -> Result<Wait, String> {
    let World { now, slept_ms, .. } = runner.world.later();
    let slept_ms = slept_ms.unwrap_or(0);
    let mut outage = Outage::after(earlier, now, slept_ms);
    let lasted_ms = outage.lasted_ms(now, slept_ms);
    let words = report.with_words(failure.to_string());
    let Some(ms) = outage.wait_ms(Passing::Yes, lasted_ms, max_ms, world::random()) else {
        return Err(outage.reason(Passing::Yes, lasted_ms, &words));
    };
    if outage.is_news(lasted_ms) {
        runner.notify_outage(&words, lasted_ms, now);
    }
    runner.run.session.outage = Some(outage);
    Ok(Wait::after_failure(ms, failure.to_string(), report))
}

/// Returns the wait for an agent program that was there before, or nothing if it stays away. An update replaces a program
/// in seconds.
pub fn wait_for_program(runner: &mut Runner, reason: &str) -> Option<Wait> {
    let World { now, slept_ms, .. } = runner.world.later();
    let slept_ms = slept_ms.unwrap_or(0);
    let failed = Outage::after(runner.failed_starts, now, slept_ms);
    runner.failed_starts = Some(failed);
    let ms = failed.wait_ms(Passing::Yes, failed.lasted_ms(now, slept_ms), MAX_AWAY_MS, world::random())?;
    Some(Wait::after_failure(ms, reason.to_owned(), &AgentReport::default()))
}

/// Waits, before this runner's first agent, for the reset of a window of which too much is known to be used.
pub fn wait_for_known_quota(runner: &mut Runner, settings: &QuotaSettings) -> Result<Waited> {
    if runner.attempts > 0 {
        return Ok(Waited::Elapsed);
    }
    let now = runner.now();
    if let QuotaVerdict::End(reason) = quota::judge_known(&mut runner.run.quota, settings, now) {
        runner.end(Outcome::UsageLimit, reason);
        return Ok(Waited::Over);
    }
    let held = runner.run.quota.held.clone();
    held.map_or(Ok(Waited::Elapsed), |held| Wait::for_quota(&held, now).hold(runner))
}

/// Waits until one more iteration may begin, and counts it.
pub fn wait_for_call(runner: &mut Runner, run_settings: &RunSettings) -> Result<Waited> {
    let per_hour = run_settings.calls_per_hour;
    if per_hour == 0 {
        return Ok(Waited::Elapsed);
    }
    let mut rate = calls::load(runner.world, runner.project)?;
    while let Some(until) = rate.next_allowed(per_hour, runner.now()) {
        let wait = Wait::for_calls(per_hour, until, runner.now());
        match wait.hold(runner)? {
            Waited::Over => return Ok(Waited::Over),
            // One more than the limit, which counts like the others.
            Waited::Skipped => break,
            Waited::Elapsed => {}
        }
        if wait.span.is_zero() || runner.now() == runner.world.now {
            // A clock that stands still would wait forever.
            break;
        }
    }
    rate.record(per_hour, runner.now());
    if let Err(error) = calls::save(runner.world, runner.project, &rate) {
        runner.screen.warn(&format!("could not save the count of calls: {error:#}"));
    }
    Ok(Waited::Elapsed)
}

/// Holds while the user has the run paused. The time is neither runtime nor an iteration.
pub fn wait_while_paused(runner: &mut Runner) -> Result<Waited> {
    if runner.run.state != LoopState::Paused && stored_state(runner) != Some(LoopState::Paused) {
        return Ok(Waited::Elapsed);
    }
    runner.run.pause(PAUSED_BY_USER);
    runner.run.told.ending = true;
    // Unless it was resumed meanwhile.
    store(runner, |present| present == Some(LoopState::Paused))?;
    let can_skip = runner.has_keyboard && terminal::in_front(std::io::stdin());
    let offer = if can_skip { " or Enter continues" } else { " continues" };
    runner.screen.say(&format!("Ralph: paused by you; `ralph pause --resume`{offer}"));
    while runner.run.is_alive() && stored_state(runner) != Some(LoopState::Running) {
        match runner.inbox.wait_briefly(PAUSE_POLL) {
            Some(Interruption::Key) => {
                runner.screen.entered();
                break;
            }
            Some(interruption) if runner.is_ended_by(interruption)? => return Ok(Waited::Over),
            _ => {}
        }
    }
    if !runner.run.is_alive() {
        return Ok(Waited::Over);
    }
    (runner.run.state, runner.run.reason) = (LoopState::Running, None);
    runner.run.told.ending = false;
    runner.screen.say("Ralph: resumed");
    // Written here, because a save takes over the pause that the state has until now.
    store(runner, |_| true)?;
    Ok(Waited::Elapsed)
}

/// Puts the run into the project's state, if that has the run in a state that counts.
fn store(runner: &mut Runner, counts: impl Fn(Option<LoopState>) -> bool) -> Result<()> {
    match Locked::open(runner.project, runner.now()) {
        Ok(mut state) => {
            if counts(state.document.loop_of(SESSION).map(|stored| stored.state)) {
                state.document.set_loop(SESSION, &runner.run)?;
                state.save()?;
            }
            Ok(())
        }
        Err(StateError::Other(error)) => {
            runner.screen.warn(&format!("could not save the state: {error:#}"));
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns what the project's state says about this run; nothing if it cannot be read now.
fn stored_state(runner: &Runner) -> Option<LoopState> {
    let stored = state::peek(runner.project).ok().flatten()?.loop_of(SESSION)?;
    (stored.run_id == runner.run.run_id).then_some(stored.state)
}
