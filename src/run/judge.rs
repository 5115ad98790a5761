//! What one iteration came to: failed, to be repeated, or judged like a turn in a session.

use super::agent::Ear;
use super::child::Ended;
use super::inbox::{self, Cut};
use super::log::Row;
use super::pace::Wait;
use super::{Context, OnLimit, Runner, SESSION, summary};
use crate::claude::stream::Failure;
use crate::core::decide::{Decision, Note, account, decide};
use crate::core::outcome::Outcome;
use crate::core::record::{Loop, Reading, Usage};
use crate::core::runtime::{self, Event, Mark};
use crate::core::settings::{Resolved, Settings};
use crate::core::tasks::Mode;
use crate::core::time::Stamp;
use crate::core::turn::{Failed, Files, Gained, Proof, Turn};
use crate::core::{backoff, clean};
use crate::scan::{self, Patience};
use crate::store::snapshot::Snapshot;
use crate::store::state::Locked;
use crate::store::verify::{Checked, Verification};
use crate::store::{circuit, driven, ending, git, stop as stops, tasks};
use anyhow::{Result, bail};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{TryRecvError, sync_channel};
use std::thread::Builder;
use std::time::Duration;

pub struct Iteration {
    pub number: u64,
    pub mode: Mode,
    pub started_at: Stamp,
    pub took: Duration,
    pub ended: Ended,
    pub ear: Ear,
    pub before: Option<Snapshot>,
    /// The commit it began at.
    pub head: Option<String>,
}

pub enum Judged {
    /// The next iteration follows, and is told this.
    GoOn(Box<Note>),
    /// The same again, after this.
    Again(Wait),
    Over,
}

pub fn judge(
    runner: &mut Runner,
    resolved: &Resolved,
    settings: &Settings,
    iteration: &Iteration,
) -> Result<Judged> {
    // What was waited for before it is no runtime.
    runner.lap.last_hook_timestamp = iteration.started_at.seconds();
    let usage = charge(runner, &iteration.ear);
    let finish = |runner: &mut Runner, judged| finish(runner, iteration, &usage, judged);
    match &iteration.ended {
        Ended::Interrupted(request) => {
            spend(runner, settings, iteration);
            let now = runner.world.later().now;
            runner.lap.end(Outcome::Interrupted, request.words(), now);
            return finish(runner, Judged::Over);
        }
        Ended::Stopped if runner.take_stop()? => {
            spend(runner, settings, iteration);
            return finish(runner, Judged::Over);
        }
        Ended::NotStarted(why) => {
            let now = runner.world.later().now;
            runner.lap.end(Outcome::Error, format!("the agent could not be started: {why}"), now);
            return finish(runner, Judged::Over);
        }
        _ => {}
    }
    let failure = iteration.ear.failure();
    let mut pause = None;
    match &failure {
        Some(Failure::UsageLimit { resets }) => {
            spend(runner, settings, iteration);
            let wait = Wait::for_limit(resets.as_ref(), runner.world.later().now);
            if runner.order.on_limit == OnLimit::Stop {
                let now = runner.world.later().now;
                runner.lap.end(Outcome::UsageLimit, wait.reason(), now);
                return finish(runner, Judged::Over);
            }
            runner.failures = 0;
            return Ok(Judged::Again(wait));
        }
        Some(failure) if failure.is_transient() => {
            runner.failures += 1;
            let wait = Wait::after_failure(runner.failures, &words(failure));
            if !backoff::persisted(runner.failures) {
                spend(runner, settings, iteration);
                return Ok(Judged::Again(wait));
            }
            pause = Some(wait);
        }
        Some(failure @ (Failure::Authentication | Failure::Billing)) => {
            spend(runner, settings, iteration);
            let now = runner.world.later().now;
            runner.lap.end(Outcome::Error, words(failure), now);
            return finish(runner, Judged::Over);
        }
        _ => runner.failures = 0,
    }
    let turn = facts(runner, resolved, iteration, failure.as_ref());
    let (lap, decision) = weigh(runner, resolved, settings, turn)?;
    runner.lap = lap;
    if let (Some(before), true) = (&iteration.before, runner.lap.is_alive())
        && let Ok(approved) = driven::cap_reviews(runner.project, before)
        && !approved.is_empty()
    {
        runner.screen.note(&format!("approved at the review cap: {}", approved.join(", ")));
    }
    let judged = match decision {
        Decision::Continue(note) => Judged::GoOn(Box::new(note)),
        _ if runner.lap.is_alive() => Judged::GoOn(Box::default()),
        _ => Judged::Over,
    };
    match (finish(runner, judged)?, pause) {
        // It counted, and the service is still to be waited for.
        (Judged::GoOn(note), Some(wait)) => {
            runner.note = *note;
            Ok(Judged::Again(wait))
        }
        (judged, _) => Ok(judged),
    }
}

/// The facts about the iteration, as about a turn.
fn facts(runner: &Runner, resolved: &Resolved, iteration: &Iteration, failure: Option<&Failure>) -> Turn {
    let world = runner.world.later();
    let works = matches!(iteration.ended, Ended::Exit(0) | Ended::Lingered) && failure.is_none();
    // Of an iteration that failed nothing is believed; that it failed is what the breaker goes by.
    let message = match works {
        true => iteration.ear.message(),
        false => {
            let what = failure.map_or_else(|| iteration.ended.to_string(), words);
            Some(format!("error: the agent failed: {what}"))
        }
    };
    let gained = Gained { last_text: message.clone(), ..gained(iteration, world.now) };
    let mut turn = Turn {
        message,
        mark: Mark::Answered,
        gained: Some(gained),
        head: git::head(&runner.project.root),
        tasks: tasks::read_reviewed(runner.project, &runner.lap.tasks, runner.order.skip_review),
        proof: Proof::Open(Verification::of(resolved).commands.len()),
        ..Turn::default()
    };
    if resolved.is_on("scan.enabled") {
        let since = runner.lap.circuit.baseline.files.as_ref();
        let scan = scan::scan(&world, runner.project, resolved, Patience::Hook, since);
        turn.files = Some(Files { changed: scan.changed, sight: scan.sight });
    }
    turn
}

/// What the attempt took and did.
fn gained(iteration: &Iteration, now: Stamp) -> Gained {
    let tally = iteration.ear.tally();
    let event = |at, event| runtime::Evidence { at, event };
    Gained {
        evidence: vec![event(iteration.started_at, Event::Prompt), event(now, Event::Answer)],
        // Of an agent that only prints text the tools are unknown, and it is not idle for that.
        tools_used: tally.map_or(1, |tally| tally.tools_used),
        tools_that_write: 1,
        edits: tally.map_or(0, |tally| tally.edits),
        reading: Reading::default(),
        ..Gained::default()
    }
}

/// The time of an attempt that is not judged: cut off by the user, or to be repeated.
fn spend(runner: &mut Runner, settings: &Settings, iteration: &Iteration) {
    let now = runner.world.later().now;
    let turn = Turn { mark: Mark::Answered, gained: Some(gained(iteration, now)), ..Turn::default() };
    account(&mut runner.lap, &turn, settings, now);
}

/// Adds up what was used, whatever else comes of the iteration. A conversation that goes on reports what it cost in
/// all, and nothing where it was cut off.
fn charge(runner: &mut Runner, ear: &Ear) -> Usage {
    let Some(tally) = ear.tally() else { return Usage::default() };
    let mut usage = tally.usage.clone();
    let (id, before) = runner.conversation.take().map_or((None, 0.0), |(id, cost)| (Some(id), cost));
    usage.cost_usd = usage.cost_usd.map(|cost| (cost - before).max(0.0));
    // A client that did not find the conversation has a result and no beginning: the next one begins anew.
    let lost = tally.model.is_empty() && tally.result.as_ref().is_some_and(|result| result.is_error);
    if runner.order.context == Context::Continue && !lost {
        let cost = tally.usage.cost_usd.unwrap_or(before);
        runner.conversation = tally.session_id.clone().or(id).map(|id| (id, cost));
    }
    runner.lap.usage.add(&usage);
    usage
}

/// The decision, with the user's commands run where it depends on them.
fn weigh(
    runner: &mut Runner,
    resolved: &Resolved,
    settings: &Settings,
    mut turn: Turn,
) -> Result<(Loop, Decision)> {
    let now = runner.world.later().now;
    let (lap, decision) = decide(runner.lap.clone(), &turn, settings, now);
    if decision != Decision::Verify {
        return Ok((lap, decision));
    }
    runner.screen.say("Ralph: the agent says it is done; checking");
    runner.screen.event("verifying", json!({"iteration": runner.lap.iteration + 1}));
    let Some(checked) = check(runner, Verification::of(resolved))? else {
        account(&mut runner.lap, &turn, settings, runner.world.later().now);
        return Ok((runner.lap.clone(), Decision::Ended));
    };
    let red = checked.iter().find(|checked| !checked.run.is_green());
    turn.proof = red.map_or(Proof::Green(checked.len()), |Checked { command, run }| {
        let command = clean::excerpt(command, 200);
        Proof::Red(Failed { command, how: run.ended.to_string(), tail: run.tail.clone() })
    });
    Ok(decide(runner.lap.clone(), &turn, settings, runner.world.later().now))
}

/// Runs the commands, unless the run ends meanwhile: then their guard ends them as soon as we are gone.
fn check(runner: &mut Runner, verification: Verification) -> Result<Option<Vec<Checked>>> {
    let (sender, root) = (runner.inbox.sender.clone(), runner.project.root.clone());
    let (answer, answered) = sync_channel(1);
    let cancel = Arc::new(AtomicBool::new(false));
    let given_up = Arc::clone(&cancel);
    Builder::new().spawn(move || {
        let _ = answer.send(verification.run(&root, &|| given_up.load(Ordering::Relaxed)));
        let _ = sender.send(inbox::Note::Checked);
    })?;
    loop {
        let cut = match runner.inbox.next(Duration::from_secs(1)) {
            Some(inbox::Note::Interrupt(request)) => Cut::Interrupt(request),
            Some(inbox::Note::Stopped) => Cut::Stopped,
            _ => match answered.try_recv() {
                Ok(checked) => return Ok(Some(checked)),
                Err(TryRecvError::Empty) => continue,
                Err(TryRecvError::Disconnected) => bail!("the commands could not be run"),
            },
        };
        if runner.cut_short(cut)? {
            cancel.store(true, Ordering::Relaxed);
            return Ok(None);
        }
    }
}

/// Writes the iteration down: its row first, so that a crash in between is seen by whoever goes on.
fn finish(runner: &mut Runner, iteration: &Iteration, usage: &Usage, judged: Judged) -> Result<Judged> {
    let world = runner.world.later();
    let moved = runner.lap.stuck_count == 0;
    runner.stuck_iterations += u64::from(!moved);
    let tasks = tasks::read_reviewed(runner.project, &runner.lap.tasks, runner.order.skip_review);
    // An iteration that was cut off by the user counts too: it took its time and its money.
    runner.lap.iteration = iteration.number;
    let failed = !matches!(iteration.ended, Ended::Exit(0) | Ended::Lingered);
    let row = Row {
        iteration: iteration.number,
        mode: iteration.mode.name().into(),
        duration_seconds: iteration.took.as_secs(),
        commit: summary::new_commit(runner.project, iteration.head.as_deref()),
        stories: tasks.map(|tasks| (tasks.passing, tasks.total)),
        stuck: runner.lap.stuck_count,
        at: world.now,
        outcome: runner.lap.outcome.map_or(if failed { "failed" } else { "ok" }, Outcome::name).into(),
        cost_usd: usage.cost_usd,
        tokens: usage.tokens(),
    };
    if let Err(error) = runner.logs.add(&row) {
        runner.screen.warn(&format!("no row in the summary: {error:#}"));
    }
    let how = if failed { format!(" · {}", iteration.ended) } else { String::new() };
    runner.screen.say(&format!("{}{how}", summary::iteration_ended(&row)));
    runner.screen.event(
        "iteration_ended",
        json!({"iteration": row.iteration, "duration_seconds": row.duration_seconds, "outcome": row.outcome,
               "how": iteration.ended.to_string(), "cost_usd": row.cost_usd, "tokens": row.tokens}),
    );
    if runner.lap.is_alive()
        && let Some((outcome, reason)) = keep(runner)?
    {
        runner.lap.end(outcome, reason, world.now);
        return Ok(Judged::Over);
    }
    Ok(judged)
}

/// Saves the loop between two iterations, unless it was stopped from elsewhere meanwhile.
fn keep(runner: &mut Runner) -> Result<Option<(Outcome, String)>> {
    let world = runner.world.later();
    let mut state = Locked::open(runner.project, world.now)?;
    let present = state.document.loop_of(SESSION).filter(|lap| lap.run_id == runner.lap.run_id);
    if let Some(stopped) = present.filter(|lap| !lap.is_alive()) {
        let reason = stopped.reason.unwrap_or_default();
        return Ok(Some((stopped.outcome.unwrap_or(Outcome::Stopped), reason)));
    }
    state.document.set_loop(SESSION, &runner.lap)?;
    runner.scanned_at.map_or(Ok(()), |at| state.document.set_scanned_at(at))?;
    // A full disk ends no run: the next iteration tries again.
    if let Err(error) = state.save_between() {
        runner.screen.warn(&format!("the state could not be kept: {error:#}"));
    }
    drop(state);
    let saved = circuit::save(&world, runner.project, SESSION, &runner.lap.run_id, &runner.lap.circuit);
    if let Err(error) = saved {
        runner.screen.warn(&format!("the circuit breaker could not be kept: {error:#}"));
    }
    Ok(None)
}

/// A stop that was given from another terminal.
pub fn stopped_elsewhere(runner: &Runner) -> Result<Option<(Outcome, String)>> {
    if stops::kill_switch(runner.project) {
        kill_others(runner)?;
        stops::clear_kill_switch(runner.project);
        return Ok(Some((Outcome::Killed, "the file .claude/STOP_LOOP was there".into())));
    }
    if stops::stopped_all_at(runner.world) != runner.lap.stop_all_seen {
        return Ok(Some((Outcome::Stopped, "`ralph stop --all` was given".into())));
    }
    let state = Locked::open(runner.project, runner.world.later().now)?;
    let stopped = state.document.loop_of(SESSION).filter(|lap| !lap.is_alive());
    Ok(stopped.map(|lap| (lap.outcome.unwrap_or(Outcome::Stopped), lap.reason.unwrap_or_default())))
}

/// The kill switch means every loop of the project, and we are about to remove it.
fn kill_others(runner: &Runner) -> Result<()> {
    let world = runner.world.later();
    let mut state = Locked::open(runner.project, world.now)?;
    let killed = ending::kill_all(&world, runner.project, Some(SESSION), &mut state.document)?;
    state.save()?;
    drop(state);
    ending::announce_all(&world, runner.project, &killed);
    Ok(())
}

fn words(failure: &Failure) -> String {
    match failure {
        Failure::UsageLimit { .. } => "usage limit reached".into(),
        Failure::RateLimited => "the service limits requests (429)".into(),
        Failure::Overloaded => "the service is overloaded (529)".into(),
        Failure::ServerError(Some(status)) => format!("the service failed ({status})"),
        Failure::ServerError(None) => "the service cannot be reached".into(),
        Failure::Authentication => "the client is not logged in: start `claude` once and log in".into(),
        Failure::Billing => "the account cannot pay: see your plan or credit".into(),
        Failure::Other(text) => clean::excerpt(text, 200),
    }
}
