//! `ralph start`: arms a loop in a session, or goes on with one.

use super::failure::Failure;
use super::import;
use crate::core::decide::account;
use crate::core::finding::Finding;
use crate::core::record::{Given, Loop, LoopState};
use crate::core::request::StartRequest;
use crate::core::settings::Settings;
use crate::core::time::Stamp;
use crate::core::turn::{Files, Turn};
use crate::core::{clean, limits, merge, message, outcome::Outcome, prompt, time};
use crate::scan::brief::{Look, Reader, brief};
use crate::scan::{self, Patience};
use crate::store::project::Project;
use crate::store::question::{self, Question};
use crate::store::state::{self, Document, Locked};
use crate::store::world::{self, World};
use crate::store::{armed, circuit, config, ending, git, history, legacy, stop as stops, tasks};

/// What a start says to the user, and to the agent that is to work.
#[derive(Clone, Debug)]
pub struct Started {
    pub user: String,
    pub agent: String,
}

/// Starts or resumes. `told` is whether the agent is going to read what this returns for it; otherwise it
/// is given the whole task at its next turn.
pub fn start(
    world: &World,
    project: &Project,
    session: &str,
    request: &StartRequest,
    told: bool,
) -> Result<Started, Failure> {
    check_session(session)?;
    let (request, import) = match request.import {
        true => import::read(world, project, request).map(|(request, import)| (request, Some(import)))?,
        false => (request.clone(), None),
    };
    let request = &request;
    let question = open_question(project, request)?;
    let look = look(world, project, request);
    let sight = if let Look::Made(scan) = &look { scan.sight.clone() } else { None };
    let mut state = Locked::open(project, world.now)?;
    let tripped = refuse_tripped(world, project, session, request)?;
    let mut notes: Vec<String> = state.moved_aside.iter().cloned().collect();
    let mut over = Vec::new();
    if stops::kill_switch(project) {
        over = ending::kill_all(world, project, None, &mut state.document)?;
    }

    let (lap, word, adopted_from, replaced) = if request.resume {
        let (lap, from) = resume(world, project, session, request, &state.document)?;
        (lap, if from.is_some() { "adopted" } else { "goes on" }, from, None)
    } else {
        let replaced = make_room(world, project, session, request, &state.document)?;
        let mut lap = begin(world, project, request);
        if let Some(import) = &import {
            let settings = config::load(world, project, &lap.given).settings();
            import.count(&mut lap, &settings);
        }
        (lap, if import.is_some() { "takes over" } else { "started" }, None, replaced)
    };
    let tripped = match &adopted_from {
        Some(from) => refuse_tripped(world, project, from, request)?.or(tripped),
        None => tripped,
    };
    let resolved = config::load(world, project, &lap.given);
    let settings = resolved.settings();
    if request.resume || import.is_some() {
        refuse_at_limit(&lap, &settings)?;
    }
    circuit::expire(world, project, settings.session_expiration_ms);
    let mut lap = Loop { warned: resolved.warnings.join("\n"), ..lap };
    config::freeze_checks(&mut lap.given, &resolved);
    lap.answered.extend(question.as_ref().map(Question::whole));
    lap.told_limits = Some((settings.max_iterations, settings.max_runtime_ms));
    lap.given.files = resolved.files.clone();
    lap.repeat_task = !told;
    notes.extend(legacy::take_over(project, session, &lap, &settings, &mut state.document, world.now)?);
    let reader = Reader { world, project, session, lap: &lap, resolved: &resolved, told };
    let brief = brief(&reader, &mut state.document, look)?;
    if !request.skip_constraint_scan {
        refuse_critical(&brief.critical)?;
    }
    notes.extend(brief.notes);
    notes.extend(brief.warnings);
    let agent = prompt::whole(&lap, &brief.lists, &settings, world.now);
    state.document.set_loop(session, &lap)?;
    if let Some(from) = &adopted_from {
        leave_word(&mut state.document, from, session, world.now)?;
    }
    // Reset only by a start that takes place.
    if let Some(record) = tripped {
        record.reset(world, project)?;
    }
    // The record of the arming first: a loop in the file without it is nobody's.
    let before = armed::before(world, project, session)?;
    armed::arm(world, project, session, &lap)?;
    lap.circuit.baseline.move_to(&Turn {
        head: git::head(&project.root),
        tasks: tasks::read(project, &lap.tasks),
        files: sight.map(|sight| Files { changed: None, sight: Some(sight) }),
        ..Turn::default()
    });
    if let Err(error) = circuit::save(world, project, session, &lap.run_id, &lap.circuit) {
        notes.push(format!("the circuit breaker could not be kept: {error:#}"));
    }
    let aside = match import.as_ref().map(|import| import.switch_off(world)).transpose() {
        Ok(aside) => import.as_ref().zip(aside),
        Err(error) => {
            armed::put_back(&before);
            return Err(Failure::refused(format!("{error:#}")));
        }
    };
    if let Err(error) = state.save() {
        armed::put_back(&before);
        aside.iter().for_each(|(import, aside)| import.switch_on_again(aside));
        return Err(error.into());
    }
    match &aside {
        Some((import, aside)) => notes.extend(import.told(session, &settings, aside)),
        None => notes.extend(import::rival(world, project, session)),
    }
    if let Some(from) = adopted_from.filter(|from| state.document.loop_of(from).is_none()) {
        armed::disarm(world, project, &from);
        circuit::forget(world, project, &from);
    }
    drop(state);
    if let Some(replaced) = replaced {
        ending::record(world, project, session, &replaced);
        over.push(replaced);
    }
    stops::clear_kill_switch(project);
    ending::announce_all(world, project, &over);
    if let Err(error) = git::exclude_ours(project) {
        notes.push(format!("git still sees Ralph's files: {error:#}"));
    }
    if let Some(question) = &question
        && let Err(error) = question::file_away(question, world.now)
    {
        notes.push(format!("{} could not be filed away: {error:#}", question.path.display()));
    }
    notes.extend(resolved.warnings.iter().map(|warning| format!("settings: {warning}")));
    Ok(Started { user: answer(&lap, word, &settings, &notes), agent })
}

/// A breaker that tripped in this session stays so until somebody has looked at it: returns it where it is to be
/// reset.
pub fn refuse_tripped(
    world: &World,
    project: &Project,
    session: &str,
    request: &StartRequest,
) -> Result<Option<circuit::Record>, Failure> {
    let Some(record) = circuit::record(world, project, session).filter(|record| record.circuit.is_tripped())
    else {
        return Ok(None);
    };
    if request.reset {
        return Ok(Some(record));
    }
    let reason = clean::excerpt(record.circuit.reason.as_deref().unwrap_or("unknown"), 300);
    Err(Failure::refused(format!("the circuit breaker of this session has tripped: {reason}"))
        .hint("Settle the cause, then start with --reset, or run `ralph reset` first."))
}

pub fn check_session(session: &str) -> Result<(), Failure> {
    if state::usable_session_id(session) {
        return Ok(());
    }
    let most = state::LONGEST_SESSION_ID;
    Err(Failure::usage("no usable session id").hint(format!(
        "A loop belongs to a Claude Code session. Type /ralph:start there, or give its id with --session \
         (at most {most} characters)."
    )))
}

/// Refuses where a loop is alive in this session, unless it is to be replaced; returns what ended.
fn make_room(
    world: &World,
    project: &Project,
    session: &str,
    request: &StartRequest,
    document: &Document,
) -> Result<Option<Loop>, Failure> {
    let present = document.loop_of(session).filter(Loop::is_alive);
    let Some(mut present) = present.and_then(|lap| armed::claim(world, project, session, lap)) else {
        return Ok(None);
    };
    if !request.replace {
        let state = if present.state == LoopState::Paused { "is paused" } else { "already runs" };
        let what = clean::excerpt(&present.task, 60);
        let iterations = present.iteration;
        return Err(Failure::refused(format!(
            "a loop {state} in this session: \"{what}\", {iterations} iterations"
        ))
        .hint("--resume goes on with it, --replace ends it and starts the new one, /ralph:stop ends it."));
    }
    present.end(Outcome::Stopped, "replaced by a new start", world.now);
    Ok(Some(present))
}

fn begin(world: &World, project: &Project, request: &StartRequest) -> Loop {
    let mut given = Given {
        flags: request.flags.clone(),
        preset: request.preset.clone(),
        environment: config::environment(),
        ..Given::default()
    };
    config::split_commands(&mut given);
    Loop {
        run_id: format!("{:032x}", world::unique()),
        state: LoopState::Running,
        task: request.task.clone(),
        started_at: world.now,
        armed_at: world.now,
        last_hook_timestamp: world.now.seconds(),
        stop_all_seen: stops::stopped_all_at(world),
        previous_ended_at: history::last_ending(world, project),
        given,
        ..Loop::default()
    }
}

/// The loops this user started: alive and armed, or ended and in the user's own history. A state file that
/// came with a repository may tell of others.
pub fn genuine_loops(world: &World, project: &Project, document: &Document) -> Vec<(String, Loop)> {
    let past = history::runs(world, project).unwrap_or_default();
    let ours = |(id, lap): (String, Loop)| {
        if let Some(claimed) = armed::claim(world, project, &id, lap.clone()) {
            return Some((id, claimed));
        }
        let mut lap = Some(lap).filter(|lap| !lap.is_alive())?;
        lap.given.commands = past.iter().find(|run| run.run_id == lap.run_id)?.commands.clone();
        Some((id, lap))
    };
    document.loops().into_iter().filter_map(ours).collect()
}

/// Finds the loop to go on with: this session's own, else the one loop that lost or ended its session.
fn resume(
    world: &World,
    project: &Project,
    session: &str,
    request: &StartRequest,
    document: &Document,
) -> Result<(Loop, Option<String>), Failure> {
    let mut loops = genuine_loops(world, project, document);
    if let Some(run) = &request.run {
        loops.retain(|(_, lap)| lap.run_id.starts_with(run.as_str()));
    } else if let Some(own) = loops.iter().position(|(id, _)| id == session) {
        loops = vec![loops.swap_remove(own)];
    } else {
        // A loop whose session may still be at work is taken only by name.
        let elsewhere = loops.iter().any(|(_, lap)| lap.is_alive());
        loops.retain(|(_, lap)| lap.is_alive() && (lap.orphaned_at.is_some() || lap.closed_at.is_some()));
        if loops.is_empty() && elsewhere {
            return Err(Failure::refused("the loops of this project belong to other sessions")
                .hint("`ralph status` shows them; --resume --run ID takes one over."));
        }
        if loops.iter().any(|(_, lap)| lap.orphaned_at.is_some()) {
            loops.retain(|(_, lap)| lap.orphaned_at.is_some());
        }
    }
    let (id, mut lap) = match loops.len() {
        1 => loops.remove(0),
        0 => {
            return Err(Failure::refused("there is no loop to resume here")
                .hint("`ralph history` lists past runs; /ralph:start TASK begins a new one."));
        }
        _ => {
            let list: Vec<_> = loops
                .iter()
                .map(|(id, lap)| {
                    format!(
                        "  --run {}  {}  (session {})",
                        &clean::excerpt(&lap.run_id, 9),
                        clean::excerpt(&lap.task, 40),
                        clean::excerpt(id, 9)
                    )
                })
                .collect();
            return Err(Failure::refused("several loops could be resumed")
                .hint(format!("Say which:\n{}", list.join("\n").replace('…', ""))));
        }
    };
    if id != session {
        let present = document
            .loop_of(session)
            .filter(|lap| lap.is_alive() && armed::is_armed(world, project, session, lap));
        if present.is_some() {
            return Err(Failure::refused("a loop already runs in this session").hint("/ralph:stop ends it."));
        }
    }
    if !request.task.is_empty() {
        lap.task.clone_from(&request.task);
    }
    lap.given.flags.extend(request.flags.clone());
    config::split_commands(&mut lap.given);
    if !request.preset.is_empty() {
        lap.given.preset.clone_from(&request.preset);
    }
    if lap.state == LoopState::Running {
        let settings = config::load(world, project, &lap.given).settings();
        account(&mut lap, &Turn::default(), &settings, world.now);
    }
    lap.resume(world.now);
    lap.stop_all_seen = stops::stopped_all_at(world);
    Ok((lap, (id != session).then_some(id)))
}

/// Takes a loop out of the session it had. One that may still be looking for it is told what happened.
fn leave_word(document: &mut Document, from: &str, to: &str, now: Stamp) -> anyhow::Result<()> {
    let left = document.loop_of(from).filter(|lap| lap.orphaned_at.is_none() && lap.closed_at.is_none());
    match left {
        Some(mut lap) => {
            lap.end(
                Outcome::Interrupted,
                format!("session {} took this loop over", clean::excerpt(to, 36)),
                now,
            );
            document.set_loop(from, &lap)
        }
        None => {
            document.remove_loop(from);
            Ok(())
        }
    }
}

/// A loop that would end at its very next turn is not worth the turn.
fn refuse_at_limit(lap: &Loop, settings: &Settings) -> Result<(), Failure> {
    match limits::reached(lap, settings) {
        None => Ok(()),
        Some((outcome, reason)) => Err(Failure::refused(format!("the loop is at its limit: {reason}"))
            .hint(message::next_step(lap.engine, outcome).unwrap_or_default())),
    }
}

/// The scan, before the state is locked: a first one may take seconds.
pub fn look(world: &World, project: &Project, request: &StartRequest) -> Look {
    // It is going to be there anyway, and the next scan need not find it new.
    if project.resolve(&project.claude_dir()).is_ok() {
        let _ = std::fs::create_dir(project.claude_dir());
    }
    let resolved = config::load(world, project, &Given::default());
    if request.skip_constraint_scan || !resolved.is_on("scan.enabled") {
        return Look::Remembered;
    }
    Look::Made(scan::scan(world, project, &resolved, Patience::Start, None))
}

pub fn refuse_critical(critical: &[Finding]) -> Result<(), Failure> {
    if critical.is_empty() {
        return Ok(());
    }
    let lines: Vec<_> = critical
        .iter()
        .take(5)
        .map(|finding| format!("  {} ({})", merge::sentence(finding), finding.id))
        .collect();
    Err(Failure::refused(format!("a critical constraint stands in the way:\n{}", lines.join("\n"))).hint(
        "Settle it; or allow it with `ralph-guidance allow ID`; or start anyway with --skip-constraint-scan.",
    ))
}

/// What was answered and waits to be handed over. A question that is not answered refuses the start; a block may
/// have been settled without a word.
pub fn open_question(project: &Project, request: &StartRequest) -> Result<Option<Question>, Failure> {
    match question::decide(project)? {
        Some(question) if !question.answer.is_empty() => Ok(Some(question)),
        Some(question) if !request.ignore_open_questions => Err(Failure::refused(format!(
            "a question waits for your answer in {}:\n{}",
            question.path.display(),
            clean::block(&question.question)
        ))
        .hint("Answer it (`ralph answer TEXT`, or below its last line) and start again, or give --ignore-open-questions.")),
        _ => Ok(question::blocked(project)?.filter(|blocked| !blocked.answer.is_empty())),
    }
}

fn answer(lap: &Loop, word: &str, settings: &Settings, notes: &[String]) -> String {
    let (mut limits, mut unlimited) = (Vec::new(), Vec::new());
    match settings.max_iterations {
        0 => unlimited.push("no iteration limit"),
        most => limits.push(format!("{most} iterations")),
    }
    match settings.max_runtime_ms {
        0 => unlimited.push("no runtime limit"),
        most => limits.push(format!("{} runtime", time::span(most))),
    }
    limits.extend(settings.max_cost_usd.map(|cost| format!("${cost:.2}")));
    let mut least = Vec::new();
    if settings.min_iterations > 0 {
        least.push(format!("{} iterations", settings.min_iterations));
    }
    if settings.min_runtime_ms > 0 {
        least.push(time::span(settings.min_runtime_ms));
    }
    let mut text = format!("Ralph {word}: {}\nEnds ", clean::excerpt(&lap.task, 200));
    if !limits.is_empty() {
        text.push_str(&format!("at {}, or ", limits.join(" or ")));
    }
    text.push_str(&format!("when the agent promises \"{}\"", clean::line(&settings.promise)));
    if !least.is_empty() {
        text.push_str(&format!(", not before {}", least.join(" and ")));
    }
    if !unlimited.is_empty() {
        text.push_str(&format!(" ({})", unlimited.join(", ")));
    }
    text.push_str(".\n/ralph:status shows it, /ralph:stop ends it, Esc pauses it.");
    for note in notes {
        text.push_str(&format!("\nNote: {note}"));
    }
    text
}
