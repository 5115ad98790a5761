//! A session starts, ends, or a turn of it fails with an error.

use super::HookCall;
use crate::claude::hook::answer::HookOutput;
use crate::claude::hook::failure;
use crate::claude::transcript;
use crate::core::decide::turn::Turn;
use crate::core::decide::{accounting, handover};
use crate::core::event::notice::Notice;
use crate::core::event::{self, EventKind, Warning};
use crate::core::outcome::Outcome;
use crate::core::record::{ArmedLoop, CarriedToolCounts, LoopState, StoredLoop, Waiting, WaitingFor};
use crate::core::settings::Settings;
use crate::core::text::clean;
use crate::core::time::outage::{Outage, Passing};
use crate::core::time::runtime::HookKind;
use crate::core::{guidance, message, prompt, signal};
use crate::scan::briefing::{self, BriefingContext};
use crate::scan::{self, ScanBudget};
use crate::store::process::notify;
use crate::store::state::{self, Document, Locked, StateError};
use crate::store::state::{ending, expiry};
use crate::store::user::{armed, figures, given_guidance, ledger};
use crate::store::{World, config, events, world};
use anyhow::Result;

pub fn started(call: &HookCall, source: &str) -> Result<HookOutput> {
    let HookCall { world, project, session, .. } = *call;
    let settings = config::load(world, project).settings();
    if !anything_to_do(call, source, &settings)? {
        return Ok(HookOutput::silent());
    }
    let mut state = Locked::open(project, world.now)?;
    let mut told: Vec<String> = state.moved_aside.iter().cloned().collect();
    told.extend(purge_guidance(call, &mut state.document)?);
    let expiration_ms = settings.session_expiration_ms;
    let expired = expiry::close(world, project, session, &mut state.document, expiration_ms)?;
    let mut answer = HookOutput::silent();
    if let Some(mut run) = armed::load_armed(world, project, session, &state.document)? {
        match run.state {
            LoopState::Running => {
                let context = reopen_running(call, &mut run, source, &mut state.document, &mut told)?;
                answer.context = Some(("SessionStart", context));
            }
            LoopState::Paused => {
                reopen(&mut run, source);
                let settings = config::load_for(world, project, &run).settings();
                told.push(message::paused(&run, &settings, world.now));
            }
            LoopState::Stopped if !run.told.ending => {
                let settings = config::load_for(world, project, &run).settings();
                told.push(message::ended(&run, &settings, world.now));
                run.told.ending = true;
            }
            LoopState::Stopped => {}
        }
        state.document.set_loop(session, &run)?;
    }
    if source == "clear" {
        told.extend(orphans(call, &state.document)?);
    }
    for line in told {
        let line = if line.starts_with("Ralph") { line } else { format!("Ralph: {line}") };
        answer = answer.add_line(&line);
    }
    state.save()?;
    given_guidance::prune(world, project, &state.document);
    drop(state);
    ending::announce_all(world, project, &expired);
    Ok(answer)
}

fn purge_guidance(call: &HookCall, document: &mut Document) -> Result<Vec<String>> {
    let HookCall { world, project, .. } = *call;
    let mut guidance = given_guidance::guidance(world, project, document)?;
    if guidance.is_empty() {
        return Ok(Vec::new());
    }
    let brought_back = guidance.bring_back_to(world.now);
    let restored = given_guidance::restored_note(project, &guidance);
    let purged = guidance.purge_over_age(world.now, config::guidance_max_age_ms(world, project, document));
    if brought_back || restored.is_some() || !purged.is_empty() {
        document.set_guidance(&guidance)?;
    }
    Ok(restored.into_iter().chain(guidance::words::purged(&purged)).collect())
}

/// Notes that the session is open. A new process has an empty queue and waits for nothing.
fn reopen(run: &mut ArmedLoop, source: &str) {
    if source != "compact" {
        run.session.transcript.queue.clear();
        (run.session.waiting, run.session.outage) = (None, None);
    }
    run.session.orphaned_at = None;
}

/// Counts the time until now, brings guidance and constraints up to date, and returns what the agent is told: it
/// may have lost the task.
fn reopen_running(
    call: &HookCall,
    run: &mut ArmedLoop,
    source: &str,
    document: &mut Document,
    told: &mut Vec<String>,
) -> Result<String> {
    let HookCall { world, project, work_tree, session, .. } = *call;
    let resolved = config::load_for(world, project, run);
    let settings = resolved.settings();
    let compacted = source == "compact";
    let before = run.clone();
    observe(call, run, if compacted { HookKind::Running } else { HookKind::Reopened }, &settings);
    let mut happened = event::turn::state_change_events(&before, run, None, &settings);
    reopen(run, source);
    run.session.work_tree = project.name_of(work_tree);
    let enabled = resolved.is_on("scan.enabled");
    let scan = enabled.then(|| scan::scan(world, work_tree, &resolved, ScanBudget::Hook));
    let context = BriefingContext { world, project, session, run, resolved: &resolved, told: true };
    let brief = briefing::prepare(&context, document, scan)?;
    told.extend(brief.notes);
    happened.extend(brief.events);
    told.extend(events::note_once(world, run, &happened));
    if !compacted {
        let position = message::position(run, &settings, world.now);
        told.push(format!("{position} · continues at the end of the next turn"));
    }
    // A compacted context is the new one for which the agent has written.
    let handed_over = run.session.handover.take().is_some();
    let first = if handed_over { format!("{}\n\n", handover::told_after()) } else { String::new() };
    Ok(prompt::full_in_context(&first, run, &brief.lists, &settings, &project.state(), world.now))
}

/// Returns whether there is a reason to take the lock. A state file that cannot be read matters only to a session with
/// an armed loop; a damaged one is moved aside under the lock.
fn anything_to_do(call: &HookCall, source: &str, settings: &Settings) -> Result<bool> {
    let HookCall { world, project, session, .. } = *call;
    let own = armed::exists(world, project, session)?;
    let seen = match state::peek(project) {
        Ok(None) => return Ok(false),
        Ok(Some(document)) if !document.newer_than_us() => document,
        Ok(Some(_)) => return Ok(own),
        Err(StateError::Damaged(..)) => return Ok(true),
        Err(error) if own => return Err(error.into()),
        Err(_) => return Ok(false),
    };
    let concerned = |run: &StoredLoop| {
        (source == "clear" && run.is_alive())
            || expiry::is_expired(run, world.now, settings.session_expiration_ms)
    };
    // A state file that came with the repository does not count.
    let others = || {
        let loops = armed::load_started(world, project, &seen).loops;
        loops.iter().any(|(id, run)| id != session && concerned(run))
    };
    if own || others() {
        return Ok(true);
    }
    let mut guidance = given_guidance::guidance(world, project, &seen)?;
    let max_age_ms = || config::guidance_max_age_ms(world, project, &seen);
    Ok(!guidance.restored.is_empty()
        || guidance.bring_back_to(world.now)
        || (!guidance.is_empty() && !guidance.purge_over_age(world.now, max_age_ms()).is_empty()))
}

/// Describes the loops of other sessions after `/clear`, so that the cleared one can be adopted.
fn orphans(call: &HookCall, document: &Document) -> Result<Vec<String>> {
    let HookCall { world, project, session, .. } = *call;
    let mut told = Vec::new();
    for (id, run) in armed::load_all(world, project, document).loops {
        if id == session || !run.is_alive() {
            continue;
        }
        let orphaned = run.session.orphaned_at.is_some();
        let whose = if orphaned { "whose session was cleared" } else { "of another session" };
        let flag =
            if orphaned { String::new() } else { format!(" --run {}", message::short_id(&run.run_id)) };
        let (session, task) = (message::short_id(&id), clean::excerpt(&run.task, 60));
        let iterations = message::iterations(run.iteration);
        told.push(format!(
            "found a loop {whose} ({session}): \"{task}\", {iterations}. Adopt it with /ralph:start --resume{flag}"
        ));
    }
    Ok(told)
}

pub fn ended(call: &HookCall, reason: &str) -> Result<HookOutput> {
    with_own_running_loop(call, |run, settings| {
        observe(call, run, HookKind::Running, settings);
        run.session.waiting = None;
        run.session.closed_at = Some(call.world.now);
        if reason == "clear" {
            run.session.orphaned_at = Some(call.world.now);
        }
        None
    })
}

/// Handles a turn that ended with an API error. If the error is temporary, the asynchronous hook wakes the agent for
/// another attempt; any other error ends the loop.
pub fn turn_failed(call: &HookCall, error: &str, message: &str) -> Result<HookOutput> {
    with_own_running_loop(call, |run, settings| {
        // A turn began, so what the loop had waited for is over.
        run.session.waiting = None;
        observe(call, run, HookKind::Running, settings);
        // The transcript tells when a usage limit resets; where it does not, the client's message does. A hook does not
        // carry the table of time zones, so for most of them the client's words are shown.
        let limit = signal::usage_limit(message).filter(|_| run.session.waiting.is_none());
        let until = limit.as_ref().and_then(|limit| limit.resets.as_ref()?.without_zones(call.world.now));
        if let Some(until) = until {
            let what = WaitingFor::UsageLimit(until);
            run.session.waiting = Some(Waiting { what, since: call.world.now });
        }
        // The waker continues after the reset, if the client does not.
        let resets =
            run.session.waiting.is_some() || limit.as_ref().is_some_and(|limit| limit.resets.is_some());
        let words = clean::excerpt(message, 300);
        let error = match message.find("resets ").filter(|_| limit.is_some()) {
            Some(when) => format!("limit {}", &message[when..]),
            None if error.is_empty() => "unknown".to_owned(),
            None => error.to_owned(),
        };
        let error = clean::excerpt(&error, 100);
        let message = format!("a turn ended with an API error: {error}");
        let is_limit = limit.is_some()
            || matches!(run.session.waiting, Some(Waiting { what: WaitingFor::UsageLimit(_), .. }));
        if is_limit && settings.quota.stops && run.state == LoopState::Running {
            run.end(Outcome::UsageLimit, words, call.world.now);
        } else if run.state == LoopState::Running && !resets {
            let words = if words.is_empty() { &error } else { &words };
            wait_for_service(call.world, run, failure::passing(&error), words, settings.max_outage_ms);
        }
        run.session.last_error = Some(error);
        Some(EventKind::Warning(Warning { iteration: run.iteration, message }))
    })
}

/// Notes when the next attempt is made, or ends the loop in the words of the service.
fn wait_for_service(world: &World, run: &mut ArmedLoop, passing: Passing, words: &str, max_ms: i64) {
    let (now, slept_ms) = (world.now, world.slept_ms.unwrap_or(0));
    let outage = Outage::after(run.session.outage, now, slept_ms);
    let lasted_ms = outage.lasted_ms(now, slept_ms);
    match outage.wait_ms(passing, lasted_ms, max_ms, world::random()) {
        Some(ms) => {
            let what = WaitingFor::Service(now.plus_ms(ms));
            run.session.waiting = Some(Waiting { what, since: now });
            run.session.outage = Some(outage);
        }
        None => run.end(Outcome::Error, outage.reason(passing, lasted_ms, words), now),
    }
}

/// Changes the loop of this session if it runs, and notes what happened to it.
fn with_own_running_loop(
    call: &HookCall,
    change: impl FnOnce(&mut ArmedLoop, &Settings) -> Option<EventKind>,
) -> Result<HookOutput> {
    let HookCall { world, project, session, .. } = *call;
    let seen = match state::peek(project) {
        // A Stop or a start moves it aside and says so.
        Err(StateError::Damaged(..)) => None,
        seen => seen?,
    };
    if seen.is_none_or(|document| document.loop_of(session).is_none_or(|run| run.state != LoopState::Running))
    {
        return Ok(HookOutput::silent());
    }
    let mut state = Locked::open(project, world.now)?;
    let own = armed::load_armed(world, project, session, &state.document)?;
    if let Some(mut run) = own.filter(|run| run.state == LoopState::Running) {
        let settings = config::load_for(world, project, &run).settings();
        let before = run.clone();
        let mut happened: Vec<EventKind> = change(&mut run, &settings).into_iter().collect();
        happened.extend(event::turn::state_change_events(&before, &run, None, &settings));
        events::note_once(world, &mut run, &happened);
        let notice = notice_of_outage(call, &mut run);
        let ends_now = !run.is_alive();
        if ends_now {
            ending::record(world, project, session, &run);
        }
        state.document.set_loop(session, &run)?;
        state.save()?;
        drop(state);
        // The user has not seen the ending yet, so the loop stays armed until a hook can say it.
        let resolved = config::load_for(world, project, &run);
        if ends_now {
            ending::announce(world, project, session, &run, &resolved);
        } else if let Some(notice) = notice {
            notify::send(project, &notice, &resolved.notify());
        }
        return Ok(HookOutput::silent());
    }
    state.save()?;
    Ok(HookOutput::silent())
}

/// Returns what the user is told of an outage that lasts, once.
fn notice_of_outage(call: &HookCall, run: &mut ArmedLoop) -> Option<Notice> {
    let HookCall { world, project, session, .. } = *call;
    let mut outage = run.session.outage?;
    let lasted_ms = outage.lasted_ms(world.now, world.slept_ms.unwrap_or(0));
    outage.is_news(lasted_ms).then_some(())?;
    run.session.outage = Some(outage);
    let error = run.session.last_error.clone().unwrap_or_default();
    let notice = Notice::outage(run, &project.root.to_string_lossy(), &error, lasted_ms, world.now);
    Some(notice.in_session(session))
}

fn observe(call: &HookCall, run: &mut ArmedLoop, hook: HookKind, settings: &Settings) {
    let gained = call.input.transcript.as_deref().and_then(|path| transcript::read(path, run));
    let carried = gained.as_ref().map(|gained| CarriedToolCounts {
        tools_used: gained.tools_used,
        tools_that_write: gained.tools_that_write,
        edits: gained.edits,
    });
    let figures = figures::load(call.world, call.session);
    let end_id = call.input.turn_end_id();
    let turn = Turn { hook, end_id, gained, figures, slept_ms: call.world.slept_ms, ..Turn::default() };
    let used = run.usage.clone();
    accounting::add_turn(run, &turn, settings, call.world.now);
    // The Stop that follows says so if the user's folder cannot be written.
    let _ = ledger::add(call.world, run.usage.since(&used));
    run.session.transcript.carried = carried.unwrap_or(run.session.transcript.carried);
    run.catch_up(turn.gained.as_ref(), call.world.now);
}
