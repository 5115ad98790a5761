//! A turn ended: from bytes to answer.

use super::Call;
use crate::claude::answer::Answer;
use crate::claude::input::{Event, Input};
use crate::claude::transcript;
use crate::core::decide::{Decision, decide};
use crate::core::merge::Lists;
use crate::core::outcome::Outcome;
use crate::core::progress::Sight;
use crate::core::record::{Loop, LoopState};
use crate::core::runtime::Mark;
use crate::core::settings::Resolved;
use crate::core::time::Stamp;
use crate::core::turn::{Failed, Files, Gained, Proof, Turn};
use crate::core::{clean, message, prompt};
use crate::scan::brief::{Look, Reader, brief};
use crate::scan::{self, Patience};
use crate::store::project::Project;
use crate::store::state::{self, Document, Locked};
use crate::store::verify::{Checked, Verification};
use crate::store::world::{World, file_clock};
use crate::store::{armed, circuit, config, ending, git, stop as stops, tasks};
use anyhow::Result;

pub fn stop(call: &Call, kill_switch: bool) -> Result<Answer> {
    let Call { world, project, session, .. } = *call;
    let was_armed = armed::any(world, project, session);
    if is_gone(project)? && !(was_armed && project.claude_dir().is_dir()) {
        stops::clear_kill_switch(project);
        return Ok(if was_armed { vanished(call) } else { Answer::silent() });
    }
    let mut state = Locked::open_for(session, project, world.now)?;
    let mut own = own_loop(call, &state.document).map(|lap| Facts::gather(call, lap, kill_switch));
    let mut later = world.clone();
    // Twice where the commands themselves were changed meanwhile; a third time nobody would wait for.
    for _ in 0..2 {
        let Some(claim) = own.take_if(|facts| facts.must_be_proven(later.now)) else { break };
        // It may take long, and others must not wait for it: whatever they did to the loop meanwhile stands.
        drop(state);
        let proof = claim.prove(world, project, session);
        later = world.later();
        state = Locked::open_for(session, project, later.now)?;
        let call = Call { world: &later, ..*call };
        let kill_switch = kill_switch || stops::kill_switch(project);
        own = own_loop(&call, &state.document).map(|lap| claim.still_of(&call, lap, kill_switch, proof));
    }
    let kill_switch = kill_switch || own.as_ref().is_some_and(|facts| facts.turn.kill_switch);
    let call = Call { world: &later, ..*call };
    let call = &call;
    let (mut answer, ended) = match own {
        Some(facts) => turn(call, facts, &mut state.document)?,
        None if was_armed => lost(call, &mut state)?,
        None => (Answer::silent(), None),
    };
    let mut killed = Vec::new();
    if kill_switch {
        killed = ending::kill_all(world, project, Some(session), &mut state.document)?;
    }
    if let Some(moved) = &state.moved_aside {
        answer = answer.also(&format!("Ralph: {moved}"));
    }
    if let Err(error) = state.save() {
        // Fails open, and still says what was decided.
        let told = Answer { block: None, ..answer };
        return Ok(told.also(&format!("Ralph could not keep this, so nothing was held up: {error:#}")));
    }
    drop(state);
    if kill_switch {
        stops::clear_kill_switch(project);
    }
    ending::announce_all(world, project, &killed);
    if let Some((lap, resolved)) = ended {
        ending::settle(world, project, session, &lap);
        if let Some(note) = ending::announce(project, &lap, &resolved) {
            answer = answer.also(&format!("Ralph: {note}"));
        }
    }
    Ok(answer)
}

/// The loop is armed but not in the file: that was damaged, replaced or removed. What is known of the loop
/// is its ending.
fn lost(call: &Call, state: &mut Locked) -> Result<(Answer, Option<(Loop, Resolved)>)> {
    let how = if state.moved_aside.is_some() { "was damaged" } else { "no longer holds it" };
    let Some((answer, lap, resolved)) = end_lost(call, how) else { return Ok((Answer::silent(), None)) };
    state.document.set_loop(call.session, &lap)?;
    Ok((answer, Some((lap, resolved))))
}

/// The same where the whole folder is gone, which is not made again for that.
fn vanished(call: &Call) -> Answer {
    let Some((answer, lap, resolved)) = end_lost(call, "is gone") else { return Answer::silent() };
    armed::disarm(call.world, call.project, call.session);
    ending::announce(call.project, &lap, &resolved);
    answer
}

fn end_lost(call: &Call, how: &str) -> Option<(Answer, Loop, Resolved)> {
    let Call { world, project, session, .. } = *call;
    let mut lap = armed::as_armed(world, project, session)?;
    let path = project.state();
    lap.end(Outcome::Error, format!("{} {how}; its count is that of its start", path.display()), world.now);
    lap.announced = true;
    let resolved = config::load(world, project, &lap.given);
    let mut answer = Answer::tell(message::ended(&lap, &resolved.settings(), world.now));
    for note in ending::record(world, project, session, &lap) {
        answer = answer.also(&format!("Ralph: {note}"));
    }
    Some((answer, lap, resolved))
}

/// The kill switch, seen by a hook that is no end of a turn.
pub fn kill(world: &World, project: &Project) -> Result<()> {
    if !is_gone(project)? {
        let mut state = Locked::open(project, world.now)?;
        let killed = ending::kill_all(world, project, None, &mut state.document)?;
        state.save()?;
        drop(state);
        ending::announce_all(world, project, &killed);
    }
    stops::clear_kill_switch(project);
    Ok(())
}

/// Whether there is no state file; a file that merely cannot be looked at is there.
fn is_gone(project: &Project) -> Result<bool> {
    Ok(project.resolve(&project.state())?.try_exists().is_ok_and(|exists| !exists))
}

/// The loop of this session, where this user armed it, with its breaker.
fn own_loop(call: &Call, document: &Document) -> Option<Loop> {
    let Call { world, project, session, .. } = *call;
    let mut lap = armed::claim(world, project, session, document.loop_of(session)?)?;
    lap.circuit = circuit::load(world, project, session, &lap.run_id);
    Some(lap)
}

/// A loop, and everything known about the turn that ended before anything is decided.
struct Facts {
    lap: Loop,
    resolved: Resolved,
    turn: Turn,
    look: Look,
    verification: Verification,
}

impl Facts {
    fn gather(call: &Call, lap: Loop, kill_switch: bool) -> Facts {
        let Call { world, project, input, .. } = *call;
        let resolved = config::load(world, project, &lap.given);
        let mut turn = heard(world, input, &lap, kill_switch);
        let verification = Verification::of(&resolved);
        turn.proof = Proof::Open(verification.commands.len());
        let look = Look::Remembered;
        let mut facts = Facts { lap, resolved, turn, look, verification };
        if facts.lap.state == LoopState::Running && !kill_switch {
            facts.turn.head = git::head(&project.root);
            facts.turn.tasks = tasks::read(project, &facts.lap.tasks);
            if facts.resolved.is_on("scan.enabled") {
                if facts.lap.unscanned || !facts.turn.wrote_nothing() {
                    facts.look(call, Patience::Turn(facts.lap.circuit.baseline.looks));
                }
                if facts.is_behind() && facts.weigh(world.now) {
                    facts.look(call, Patience::Verdict);
                }
            }
        }
        facts
    }

    fn look(&mut self, call: &Call, patience: Patience) {
        let edited = self.turn.gained.as_ref().is_some_and(|gained| gained.edits > 0);
        let since = self.lap.circuit.baseline.files.as_ref().filter(|_| !edited);
        let scan = scan::scan(call.world, call.project, &self.resolved, patience, since);
        self.turn.files = Some(Files { changed: scan.changed, sight: scan.sight.clone() });
        self.look = Look::Made(scan);
    }

    /// Whether there are files, in a large project, that were not asked whether they changed.
    fn is_behind(&self) -> bool {
        self.turn.files.as_ref().map_or(self.lap.circuit.baseline.behind, |files| files.sight.is_none())
    }

    /// Whether the breaker ends the loop by these facts, or warns: then they must be all there are. Commands that
    /// have to prove a claim write files too, so before them it must be known what the agent wrote.
    fn weigh(&self, now: Stamp) -> bool {
        let (lap, decision) = decide(self.lap.clone(), &self.turn, &self.resolved.settings(), now);
        match decision {
            Decision::Verify => true,
            Decision::Ended => lap.circuit.is_tripped(),
            Decision::Continue(note) => note.pivot.is_some(),
            // A warning may wait for its turn.
            Decision::Yield => lap.unsaid != self.lap.unsaid,
            _ => false,
        }
    }

    /// Whether the agent claims to be done, and there are commands that have to say so too.
    fn must_be_proven(&self, now: Stamp) -> bool {
        !self.verification.is_empty()
            && decide(self.lap.clone(), &self.turn, &self.resolved.settings(), now).1 == Decision::Verify
    }

    /// Runs the commands, until the loop is stopped.
    fn prove(&self, world: &World, project: &Project, session: &str) -> Proof {
        let stopped = || {
            let ended = state::peek(project).ok().flatten().and_then(|document| document.loop_of(session));
            stops::kill_switch(project)
                || stops::stopped_all_at(world) != self.turn.stopped_all_at
                || ended.is_some_and(|lap| !lap.is_alive())
        };
        let checked = self.verification.run(&project.root, &stopped);
        let red = checked.iter().find(|checked| !checked.run.is_green());
        red.map_or(Proof::Green(checked.len()), |Checked { command, run }| {
            let command = clean::excerpt(command, 200);
            Proof::Red(Failed { command, how: run.ended.to_string(), tail: run.tail.clone() })
        })
    }

    /// The same facts about the loop as it is now, proven or not.
    fn still_of(self, call: &Call, lap: Loop, kill_switch: bool, proof: Proof) -> Facts {
        let (run_id, commands) = (self.lap.run_id.clone(), self.verification.commands.clone());
        let mut facts = if lap == self.lap { self } else { Facts::gather(call, lap, kill_switch) };
        facts.turn.kill_switch = kill_switch;
        facts.turn.stopped_all_at = stops::stopped_all_at(call.world);
        if facts.lap.run_id != run_id {
            // What was said was said in another run: it claims nothing here.
            facts.turn.message = None;
        } else if facts.verification.commands == commands {
            facts.turn.proof = proof;
        }
        // What the commands wrote is not the agent's work.
        let changed = facts.turn.files.as_ref().and_then(|files| files.changed);
        let sight = Sight { at: file_clock(), ..Sight::default() };
        facts.turn.files = Some(Files { changed, sight: Some(sight) });
        facts
    }
}

/// Decides one turn of this session's loop; returns the loop and its settings too where it ends here.
fn turn(call: &Call, facts: Facts, document: &mut Document) -> Result<(Answer, Option<(Loop, Resolved)>)> {
    let Call { world, project, session, .. } = *call;
    let now = world.now;
    let Facts { lap, resolved, turn, look, verification } = facts;
    let settings = resolved.settings();
    let (before, was_alive) = (lap.clone(), lap.is_alive());
    let (mut lap, decision) = decide(lap, &turn, &settings, now);

    let mut notes = Vec::new();
    let ends_now = was_alive && !lap.is_alive();
    if ends_now {
        notes = ending::record(world, project, session, &lap);
    }
    if lap.circuit != before.circuit {
        notes.extend(keep_circuit(call, &lap));
    }
    if lap.outcome == Some(Outcome::Complete) && ends_now && !verification.withheld.is_empty() {
        notes
            .push("the project's own checks were not run: `ralph trust` shows them and lets them run".into());
    }
    let mut warnings = resolved.warnings.clone();
    lap.given.files = resolved.files.clone();
    let mut lists = Lists::default();
    if matches!(decision, Decision::Continue(_)) {
        lap.unscanned = false;
        let reader = Reader { world, project, session, lap: &lap, resolved: &resolved, told: true };
        let brief = brief(&reader, document, look)?;
        notes.extend(brief.notes);
        warnings.extend(brief.warnings);
        lists = brief.lists;
    }
    let joined = warnings.join("\n");
    if joined != lap.warned {
        notes.extend(warnings.iter().map(|warning| format!("settings: {warning}")));
        lap.warned = joined;
    }

    let mut answer = match &decision {
        Decision::Silent => Answer::silent(),
        Decision::Ended => Answer::tell(message::ended(&lap, &settings, now)),
        Decision::Paused => Answer::tell(message::paused(&lap, &settings, now)),
        // Its proof was asked for before; a claim that has changed since is judged at the next turn.
        Decision::Verify => Answer::silent(),
        Decision::Yield => Answer::tell(message::making_way(&lap, &settings, now)),
        Decision::Continue(note) => Answer {
            block: Some(prompt::go_on(&lap, note, &lists, &settings, now)),
            message: Some(message::going_on(&lap, note, &settings, now)),
            // Beside the prompt, which is replayed with every later one and stays short.
            context: note.repeat_task.then(|| ("Stop", prompt::whole(&lap, &lists, &settings, now))),
        },
    };
    for note in &notes {
        answer = answer.also(&format!("Ralph: {note}"));
    }
    if lap != before {
        document.set_loop(session, &lap)?;
    }
    if !ends_now && !lap.is_alive() && decision == Decision::Ended {
        ending::settle(world, project, session, &lap);
    }
    Ok((answer, ends_now.then_some((lap, resolved))))
}

/// Keeps the breaker's counters, and a trip for good. Where that fails the loop goes by what it knows.
fn keep_circuit(call: &Call, lap: &Loop) -> Option<String> {
    let Call { world, project, session, .. } = *call;
    let mut kept = circuit::save(world, project, session, &lap.run_id, &lap.circuit);
    if lap.circuit.is_tripped() {
        kept = kept.and_then(|()| circuit::note_trip(world, project, session, &lap.run_id, &lap.circuit));
    }
    kept.err().map(|error| format!("the circuit breaker could not be kept: {error:#}"))
}

/// What the hook's input and the transcript tell.
fn heard(world: &World, input: &Input, lap: &Loop, kill_switch: bool) -> Turn {
    let Event::Stop { message, continued, background } = &input.event else { return Turn::default() };
    let gained = input.transcript.as_deref().and_then(|path| transcript::read(path, lap));
    let message = message.clone().or_else(|| gained.as_ref()?.last_text.clone());
    Turn {
        message,
        kill_switch,
        stopped_all_at: stops::stopped_all_at(world),
        background: background.clone(),
        mark: mark(input, gained.as_ref(), *continued),
        gained,
        ..Turn::default()
    }
}

/// A Stop means that the model has answered, also where the transcript does not show it yet; but only
/// the prompt it shows. If a newer prompt is still missing there, the time between is not ours to judge.
fn mark(input: &Input, gained: Option<&Gained>, continued: bool) -> Mark {
    let Some(gained) = gained else { return Mark::Seen };
    let shown = match &input.prompt_id {
        Some(id) if !gained.reading.prompt_id.is_empty() => *id == gained.reading.prompt_id,
        _ => continued,
    };
    if shown { Mark::Answered } else { Mark::Seen }
}
