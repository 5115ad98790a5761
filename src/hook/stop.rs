//! A turn ended: load the armed loop, gather facts, decide, record, answer.

use super::{HookCall, wake};
use crate::claude::hook::answer::HookOutput;
use crate::claude::hook::input::{HookEvent, HookInput};
use crate::claude::transcript;
use crate::core::decide::turn::{TranscriptGain, Turn};
use crate::core::decide::{Decision, NextTurn};
use crate::core::event;
use crate::core::event::notice::Notice;
use crate::core::guidance::merge::GuidanceLists;
use crate::core::outcome::Outcome;
use crate::core::record::{ArmedLoop, LoopState};
use crate::core::settings::{Resolved, Settings};
use crate::core::time::Stamp;
use crate::core::time::runtime::HookKind;
use crate::core::{message, prompt};
use crate::engine::{self, facts::Facts};
use crate::scan::briefing::{self, BriefingContext};
use crate::store::process::checks::CheckRun;
use crate::store::process::notify;
use crate::store::state::{self, Locked, ending, stop as stops};
use crate::store::user::{armed, figures, given_guidance, handoff, ledger};
use crate::store::{Project, World, config, events, tasks};
use anyhow::Result;

pub fn stop(call: &HookCall, kill_switch: bool) -> Result<HookOutput> {
    if is_gone(call.project)? && !can_be_restored(call)? {
        stops::clear_kill_switch(call.project);
        return Ok(end_lost(call, "is missing")?.map_or_else(HookOutput::silent, |(answer, _)| answer));
    }
    let mut state = Locked::open(call.project, call.world.now)?;
    let Some(run) = load(call, &state)? else { return without_loop(call, state, kill_switch) };
    let mut facts = gather(call, run, &state, kill_switch)?;
    let (mut after, mut decision) = facts.decide(call.world.now);
    let mut call = *call;
    let later;
    if decision == Decision::RunChecks {
        // The checks may take an hour, so the lock is released; what others did to the loop meanwhile counts.
        drop(state);
        let checks = run_checks(&call, &facts);
        later = call.world.later();
        call.world = &later;
        state = Locked::open(call.project, call.world.now)?;
        let Some(run) = load(&call, &state)? else { return without_loop(&call, state, kill_switch) };
        facts = after_checks(&call, facts, (run, &state), &checks, kill_switch)?;
        (after, decision) = facts.decide(call.world.now);
    }
    let recorded = record(&call, state, &facts, after, &decision)?;
    Ok(answer(&recorded, &facts.settings, &decision, call.world.now))
}

fn load(call: &HookCall, state: &Locked) -> Result<Option<ArmedLoop>> {
    armed::load_armed(call.world, call.project, call.session, &state.document)
}

/// Gathers what the hook's input, the transcript and the project tell. A loop that is paused or about to be
/// killed needs no look at the project.
fn gather(call: &HookCall, run: ArmedLoop, state: &Locked, kill_switch: bool) -> Result<Facts> {
    let HookCall { world, project, work_tree, input, .. } = *call;
    let turn = told_by_client(world, input, &run, kill_switch)?;
    let figures = figures::load(world, call.session);
    let can_compact = super::is_interactive() && figures.as_ref().is_some_and(|figures| figures.has_module);
    let turn = Turn { work_tree: project.name_of(work_tree), figures, can_compact, ..turn };
    let was_scanned = state.document.scanned_in() == turn.work_tree && !run.session.unscanned;
    let resolved = config::load_for(world, project, &run);
    let tasks = tasks::read(work_tree, &run.tasks);
    let looks = run.state == LoopState::Running && !kill_switch;
    let mut facts = Facts::new(run, resolved, turn);
    if facts.settings.limits_a_day() {
        let (spent, told) = ledger::today(world)?;
        facts.turn.today = Some(spent);
        facts.notes.extend(told);
    }
    Ok(if looks { facts.gather_project(world, work_tree, tasks, was_scanned) } else { facts })
}

/// Runs the check commands until they end or the loop is stopped.
fn run_checks(call: &HookCall, facts: &Facts) -> Vec<CheckRun> {
    let HookCall { world, project, session, .. } = *call;
    let stopped = || {
        let run = state::peek(project).ok().flatten().and_then(|document| document.loop_of(session));
        stops::kill_switch(project)
            || stops::stopped_all_at(world).is_ok_and(|at| at != facts.turn.stopped_all_at)
            || run.is_some_and(|run| !run.is_alive())
    };
    facts.checks.run(&call.work_tree.root, &stopped, &mut |_| {})
}

/// Returns the facts about the loop as it is after the checks ran.
fn after_checks(
    call: &HookCall,
    before: Facts,
    (run, state): (ArmedLoop, &Locked),
    checks: &[CheckRun],
    kill_switch: bool,
) -> Result<Facts> {
    let kill_switch = kill_switch || stops::kill_switch(call.project);
    let mut facts = if run == before.run {
        before
    } else {
        let mut facts = gather(call, run, state, kill_switch)?;
        if facts.run.run_id == before.run.run_id {
            // The checks may have changed the checkout since.
            let Turn { head, tree, tasks, .. } = before.turn;
            facts.turn = Turn { head, tree, tasks, ..facts.turn };
        } else {
            // The agent claimed completion of another run.
            facts.turn.message = None;
        }
        facts
    };
    facts.turn.kill_switch = kill_switch;
    facts.turn.stopped_all_at = stops::stopped_all_at(call.world)?;
    Ok(facts.with_checks(call.world, call.work_tree, checks))
}

/// A loop as it was recorded, and what there is to tell of that.
struct Recorded {
    run: ArmedLoop,
    lists: GuidanceLists,
    notes: Vec<String>,
    /// Why the loop could not be saved.
    unsaved: Option<anyhow::Error>,
}

/// Records the decision, saves the state, releases the lock, and notifies the user.
fn record(
    call: &HookCall,
    mut state: Locked,
    facts: &Facts,
    mut after: ArmedLoop,
    decision: &Decision,
) -> Result<Recorded> {
    let HookCall { world, project, session, .. } = *call;
    let Facts { run: before, resolved, settings, turn, .. } = facts;
    let ends_now = before.is_alive() && !after.is_alive();
    let counts = matches!(decision, Decision::Continue(_) | Decision::Wait);
    let without_progress = if counts { after.note_progress(resolved.notify().idle_ms) } else { None };
    let mut happened = event::turn::in_session(before, &after, turn, decision, settings);
    let mut notes = facts.notes.clone();
    if ends_now {
        // The ending comes after the turn it ended with.
        notes.extend(events::note_once(world, &mut after, &std::mem::take(&mut happened)));
    }
    notes.extend(engine::record::turn(world, project, session, before, &after));
    notes.extend(turn.gained.as_ref().and_then(TranscriptGain::skipped_note));
    if ends_now && after.outcome == Some(Outcome::Complete) && !facts.checks.withheld.is_empty() {
        notes.push("the project's checks did not run: `ralph trust` shows them".into());
    }
    after.given.files = resolved.files.clone();
    let mut warnings: Vec<String> =
        resolved.warnings.iter().map(|warning| format!("settings: {warning}")).collect();
    let mut lists = GuidanceLists::default();
    if matches!(decision, Decision::Continue(_)) {
        after.session.unscanned = false;
        let context = BriefingContext { world, project, session, run: &after, resolved, told: true };
        let brief = briefing::prepare(&context, &mut state.document, facts.scan.clone())?;
        notes.extend(brief.notes);
        warnings.extend(brief.warnings);
        lists = brief.lists;
        happened.extend(brief.events);
    }
    notes.extend(events::note_once(world, &mut after, &happened));
    // How the loop was resumed without the user in the session.
    notes.extend(handoff::take(world, session, wake::WOKEN));
    let told = std::mem::replace(&mut after.told.warnings, warnings.join("\n"));
    notes.extend(warnings.into_iter().filter(|warning| !told.lines().any(|line| line == warning)));
    let hands_over = decision.note().is_some_and(|note| note.next_turn == NextTurn::NewContext);
    if hands_over {
        notes.push(message::TYPE_COMPACT.into());
    }
    notes.extend(state.moved_aside.clone());
    // The answer says that the agent works in another place, so only the saved loop says that the user knows.
    let told_work_tree = after.told.work_tree.clone();
    if matches!(decision, Decision::Continue(_) | Decision::Wait | Decision::Ended) {
        after.told.work_tree = after.session.work_tree.clone();
    }
    if after != *before {
        state.document.set_loop(session, &after)?;
    }
    after.told.work_tree = told_work_tree;
    if let Err(error) = save(call, state, turn.kill_switch) {
        return Ok(Recorded { run: after, lists, notes, unsaved: Some(error) });
    }
    notes.extend(match ledger::add(world, after.usage.since(&before.usage)) {
        Ok(told) => told,
        Err(error) => Some(format!("could not update today's spending: {error:#}")),
    });
    if ends_now || *decision == Decision::Ended {
        ending::disarm_recorded(world, project, session, &after);
    }
    if ends_now {
        notes.extend(ending::announce(world, project, session, &after, resolved));
    } else {
        notes.extend(notify_user(call, &after, hands_over, without_progress, resolved));
    }
    Ok(Recorded { run: after, lists, notes, unsaved: None })
}

/// Notifies the user of a loop that continues and needs a look. Returns what could not be sent.
fn notify_user(
    call: &HookCall,
    run: &ArmedLoop,
    hands_over: bool,
    without_progress: Option<i64>,
    resolved: &Resolved,
) -> Vec<String> {
    let (root, now) = (call.project.root.to_string_lossy(), call.world.now);
    let notice = match without_progress {
        _ if hands_over => Notice::full_context(run, &root, now),
        Some(ms) => Notice::no_progress(run, &root, ms, now),
        None => return Vec::new(),
    };
    notify::send(call.project, &notice.in_session(call.session), &resolved.notify())
}

/// Answers with what the agent and the user should read.
fn answer(recorded: &Recorded, settings: &Settings, decision: &Decision, now: Stamp) -> HookOutput {
    let Recorded { run, lists, notes, unsaved } = recorded;
    let answer = match decision {
        Decision::Silent | Decision::RunChecks => HookOutput::silent(),
        Decision::Ended => HookOutput::message(message::ended(run, settings, now)),
        Decision::Paused => HookOutput::message(message::paused(run, settings, now)),
        Decision::Wait => HookOutput::message(message::waiting(run, settings, now)),
        Decision::Continue(note) => {
            let prompt = prompt::continuation(run, note, lists, settings, now);
            let lost = note.repeat_task.then(|| prompt::whole_task(run, settings, now));
            let answer = HookOutput::continue_turn(prompt, lost, super::takes_stop_context());
            answer.add_line(&message::continuing(run, note, settings, now))
        }
    };
    match unsaved {
        None => answer.with_notes(notes),
        // What was decided is still told, but a loop that cannot count must not continue.
        Some(error) => {
            let told = answer.with_notes(notes).without_continuing();
            told.add_line(&format!("Ralph could not save the loop and allowed the stop: {error:#}"))
        }
    }
}

/// Answers for a session whose loop is not in the state: one that is armed has ended by that.
fn without_loop(call: &HookCall, mut state: Locked, kill_switch: bool) -> Result<HookOutput> {
    let HookCall { world, project, session, .. } = *call;
    let is_armed = armed::exists(world, project, session)?;
    if is_armed {
        state.keep_unreadable(session, world.now)?;
    }
    if is_armed && is_elsewhere(call, &state)? {
        // A start that was adopting the loop was killed halfway.
        armed::disarm(world, project, session);
        return Ok(HookOutput::silent());
    }
    let how = if state.moved_aside.is_some() { "was damaged" } else { "does not contain the loop" };
    let lost = if is_armed { end_lost(call, how)? } else { None };
    let mut answer = HookOutput::silent();
    if let Some((told, run)) = lost {
        answer = told;
        state.document.set_loop(session, &run)?;
    }
    answer = answer.with_notes(&state.moved_aside);
    Ok(match save(call, state, kill_switch) {
        Ok(()) => answer,
        Err(error) => answer.add_line(&format!("Ralph could not save the state: {error:#}")),
    })
}

/// Returns whether the run that is armed for this session is alive in another one.
fn is_elsewhere(call: &HookCall, state: &Locked) -> Result<bool> {
    let own = armed::load_from_record(call.world, call.project, call.session)?;
    let alive = || state.document.loops().filter(|(_, run)| run.is_alive());
    Ok(own.is_some_and(|own| alive().any(|(id, run)| id != call.session && run.run_id == own.run_id)))
}

/// Saves the state and releases the lock. For a kill switch, it first ends the loops of the other sessions.
fn save(call: &HookCall, mut state: Locked, kill_switch: bool) -> Result<()> {
    let HookCall { world, project, session, .. } = *call;
    if kill_switch {
        return ending::obey_kill_switch(world, project, Some(session), state);
    }
    state.save()?;
    given_guidance::prune(world, project, &state.document);
    Ok(())
}

/// Ends a loop that is armed but not in the state file. What is known of it is how it was started.
fn end_lost(call: &HookCall, how: &str) -> Result<Option<(HookOutput, ArmedLoop)>> {
    let HookCall { world, project, session, .. } = *call;
    let Some(mut run) = armed::load_from_record(world, project, session)? else { return Ok(None) };
    let reason =
        format!("{} {how}; iterations and runtime since its start are lost", project.state().display());
    run.end(Outcome::Error, reason, world.now);
    run.told.ending = true;
    let resolved = config::load_for(world, project, &run);
    let answer = HookOutput::message(message::ended(&run, &resolved.settings(), world.now));
    let answer = answer.with_notes(&ending::record(world, project, session, &run));
    ending::disarm_recorded(world, project, session, &run);
    ending::announce(world, project, session, &run, &resolved);
    Ok(Some((answer, run)))
}

/// Ends every loop of the project for a kill switch that another hook than Stop saw.
pub fn kill(world: &World, project: &Project) -> Result<()> {
    if !is_gone(project)? {
        return ending::obey_kill_switch(world, project, None, Locked::open(project, world.now)?);
    }
    stops::clear_kill_switch(project);
    Ok(())
}

/// Returns whether an armed loop has lost its state file, and not the folder of that.
fn can_be_restored(call: &HookCall) -> Result<bool> {
    Ok(call.project.claude_dir().is_dir() && armed::exists(call.world, call.project, call.session)?)
}

/// Returns whether there is no state file; one that merely cannot be looked at is there.
fn is_gone(project: &Project) -> Result<bool> {
    Ok(project.file(&project.state())?.try_exists().is_ok_and(|exists| !exists))
}

/// Returns what the hook's input and the transcript tell about the turn.
fn told_by_client(world: &World, input: &HookInput, run: &ArmedLoop, kill_switch: bool) -> Result<Turn> {
    let HookEvent::Stop { message, continued, background } = &input.event else { return Ok(Turn::default()) };
    let gained = input.transcript.as_deref().and_then(|path| transcript::read(path, run));
    let message = message.clone().or_else(|| gained.as_ref()?.last_text.clone());
    Ok(Turn {
        message,
        kill_switch,
        stopped_all_at: stops::stopped_all_at(world)?,
        background: background.clone(),
        slept_ms: world.slept_ms,
        end_id: input.turn_end_id(),
        hook: hook_kind(input, gained.as_ref(), *continued),
        gained,
        ..Turn::default()
    })
}

/// Returns what this Stop says about time. It means that the model has answered, even if the transcript does
/// not show that yet; but if a newer prompt is missing there, the time between is unknown.
fn hook_kind(input: &HookInput, gained: Option<&TranscriptGain>, continued: bool) -> HookKind {
    let Some(gained) = gained else { return HookKind::Running };
    let shown = match &input.prompt_id {
        Some(id) if !gained.reading.prompt_id.is_empty() => *id == gained.reading.prompt_id,
        _ => continued,
    };
    if shown { HookKind::TurnEnded } else { HookKind::Running }
}
