//! `ralph start`: starts a loop in a session, or resumes one.

use super::answer;
use super::import::{self, Import};
use super::refusals;
use super::slash::SlashReply;
use crate::cli::{Failure, Invocation, Project, World};
use crate::core::decide::accounting;
use crate::core::decide::turn::Turn;
use crate::core::event::{EventKind, RunEnded, RunStarted};
use crate::core::outcome::Outcome;
use crate::core::record::{ArmedLoop, GivenSettings, LoopState, StoredLoop, Timing};
use crate::core::request::{SWITCHES, StartRequest};
use crate::core::settings::{KEYS, PRESETS, Resolved, Settings};
use crate::core::text::clean;
use crate::core::time::Stamp;
use crate::core::{message, prompt};
use crate::scan::briefing::{self, BriefingContext};
use crate::scan::{Scan, ScanBudget};
use crate::store::file::{self, Backup};
use crate::store::project::{git, official};
use crate::store::state::ending::{self, KillSwitchResult};
use crate::store::state::question::{self, Question};
use crate::store::state::{self, Document, Locked, expiry, stop as stops};
use crate::store::user::armed::{self, Loaded};
use crate::store::user::{circuit, figures, given_guidance, history, open_question};
use crate::store::{config, events, tasks, variables, world};
use std::path::PathBuf;

/// Where a loop is started, and what was asked for.
#[derive(Clone, Copy)]
struct Start<'a> {
    world: &'a World,
    project: &'a Project,
    session: &'a str,
    request: &'a StartRequest,
}

/// What a start is going to do.
struct StartPlan {
    run: ArmedLoop,
    resolved: Resolved,
    settings: Settings,
    /// `started`, `resumed`, `adopted` or `imported`.
    verb: &'static str,
    import: Option<Import>,
    question: Option<Question>,
    /// The session that had the loop before.
    adopted_from: Option<String>,
    /// The loop that made room for this one.
    replaced: Option<ArmedLoop>,
    /// The tripped breaker that is reset.
    tripped: Option<circuit::BreakerRecord>,
    /// What the user should know of the day's budget.
    budget_note: Option<String>,
}

pub fn command(call: &Invocation) -> Result<String, Failure> {
    let flags = KEYS.iter().filter_map(|key| key.flag).chain(["run"]);
    let switches = PRESETS.iter().map(|preset| preset.name).chain(SWITCHES.map(|(name, _)| name));
    let mut request = call.start_request(flags, switches)?;
    request.task = call.text_or_stdin("task")?;
    let request = request.checked()?;
    let imported = || request.import.then(|| import::session(&call.world, &call.project))?;
    let session = call.session().map(str::to_owned).or_else(imported).unwrap_or_default();
    Ok(start(&call.world, &call.project, &session, &request, false)?.user)
}

/// Starts or resumes a loop. `agent_gets_prompt` says that the agent is going to read [`Reply::agent`]; otherwise it gets
/// the whole task at its next turn.
pub fn start(
    world: &World,
    project: &Project,
    session: &str,
    request: &StartRequest,
    agent_gets_prompt: bool,
) -> Result<SlashReply, Failure> {
    check_session(session)?;
    let question = answer::refuse_unanswered(world, project, request)?;
    start_with(world, project, session, request, agent_gets_prompt, question)
}

/// Does the same with this answer to an earlier question, whatever else is open.
pub fn start_with(
    world: &World,
    project: &Project,
    session: &str,
    request: &StartRequest,
    agent_gets_prompt: bool,
    question: Option<Question>,
) -> Result<SlashReply, Failure> {
    let mut request = request.clone();
    let import = request.import.then(|| import::read(world, project, &mut request)).transpose()?;
    let start = Start { world, project, session, request: &request };
    let work_tree = project.work_tree(&world.working_dir);
    let scan = scan_before_start(world, project, &work_tree, &request);

    let mut state = Locked::open(project, world.now)?;
    let tripped = refuse_tripped(world, project, session, &request)?;
    let killed = match stops::kill_switch(project) {
        true => ending::kill_all(world, project, None, &mut state.document)?,
        false => KillSwitchResult::default(),
    };
    let mut plan = plan(&start, &state.document, import)?;
    plan.tripped = plan.tripped.or(tripped);
    plan.question = question;
    let handed = prepare(&start, &mut plan, agent_gets_prompt)?;
    plan.run.session.work_tree = project.name_of(&work_tree);
    let place = plan.run.session.work_tree.clone();
    plan.run.circuit.move_to(&place);

    let baseline = Turn {
        head: git::head(&work_tree.root),
        tasks: tasks::read(&work_tree, &plan.run.tasks),
        tree: scan.as_ref().and_then(|scan| scan.tree),
        ..Turn::default()
    };
    let mut too_much = None;
    if let Some(from) = &plan.adopted_from {
        let mut guidance = given_guidance::guidance(world, project, &state.document)?;
        guidance.hand_over(from, session);
        too_much = guidance.full(Some(session));
        state.document.set_guidance(&guidance)?;
    }
    let context = BriefingContext {
        world,
        project,
        session,
        run: &plan.run,
        resolved: &plan.resolved,
        told: agent_gets_prompt,
    };
    let brief = briefing::prepare(&context, &mut state.document, scan)?;
    if !request.skip_constraint_scan {
        refusals::critical(&brief.critical)?;
    }
    let agent = prompt::full(&plan.run, &brief.lists, &plan.settings, world.now);
    state.keep_unreadable(session, world.now)?;
    let mut notes: Vec<String> = state.moved_aside.iter().cloned().collect();
    notes.extend(
        too_much
            .map(|full| format!("not all guidance fits in a prompt: {full}; remove some with --remove N")),
    );
    notes.extend(stops::odd_kill_switch(project).map(|error| format!("{error:#}; it does not stop a loop")));
    notes.extend(plan.budget_note.take());
    notes.extend(refusals::known_quota(figures::load(world, session), &plan.settings, world.now));
    notes.extend(given_guidance::foreign_note(world, project, &state.document));
    notes.extend(question::foreign_notes(world, project));
    notes.extend(brief.notes);
    notes.extend(brief.warnings);

    plan.run.circuit.baseline.move_to(&baseline);
    let mut ended = arm_and_save(&start, &mut plan, &mut state, &mut notes)?;
    drop(state);
    notes.extend(note_start(&start, &plan, brief.events));
    open_question::take(world, session);
    notes.extend(handed);
    notes.extend(answer::keep_answers(world, project, &plan.run));
    ended.extend(plan.replaced.take());
    let had_switch = stops::kill_switch(project);
    killed.clear_switch(project);
    notes.extend((had_switch && !stops::kill_switch(project)).then(|| stops::REMOVED.to_owned()));
    ended.extend(killed.ended);
    ending::announce_all(world, project, &ended);
    if let Err(error) = git::exclude_ours(project) {
        notes.push(format!("could not exclude Ralph's files from git: {error:#}"));
    }
    notes.extend(file_away(plan.question.as_ref(), world, project));
    let foreign = variables::foreign_notes(project);
    notes.extend(settings_notes(&plan.resolved, &foreign));
    Ok(SlashReply {
        user: message::started(&plan.run, &plan.settings, plan.verb, &notes),
        agent: Some(agent),
    })
}

/// Returns what the user should know of the settings, and of variables in the project's own.
pub fn settings_notes(resolved: &Resolved, foreign: &[String]) -> Vec<String> {
    let foreign = foreign.iter().map(|note| clean::line(note));
    let foreign = foreign.filter(|note| !resolved.warnings.contains(note));
    let notes = resolved.warnings.iter().chain(&resolved.loosened).cloned().chain(foreign);
    notes.map(|note| format!("settings: {note}")).collect()
}

/// Adds the start to the events of the run, and the ending to those of the run that it replaced. Returns what failed.
fn note_start(start: &Start, plan: &StartPlan, changes: Vec<EventKind>) -> Vec<String> {
    let Start { world, project, session, .. } = *start;
    let ended = |run: &ArmedLoop| events::note(world, run, &[EventKind::Ended(RunEnded::of(run, world.now))]);
    let started = RunStarted::of(&plan.run, session, &project.root.to_string_lossy(), &plan.settings);
    let head = plan.run.circuit.baseline.head.clone();
    let continued = matches!(plan.verb, "resumed" | "adopted");
    let begins = events::begin(world, &plan.run, RunStarted { head, continued, ..started }, changes);
    plan.replaced.as_ref().and_then(ended).into_iter().chain(begins).collect()
}

/// Decides which loop is started or resumed, or refuses.
fn plan(start: &Start, document: &Document, import: Option<Import>) -> Result<StartPlan, Failure> {
    let Start { world, project, request, .. } = *start;
    let (mut adopted_from, mut replaced, mut tripped) = (None, None, None);
    let mut run;
    let verb = if request.resume {
        (run, adopted_from) = resume(start, document)?;
        if adopted_from.is_some() { "adopted" } else { "resumed" }
    } else {
        replaced = make_room(start, document)?;
        run = begin(world, project, request)?;
        if let Some(import) = &import {
            let settings = config::load_for(world, project, &run).settings();
            import.count(&mut run, &settings);
        }
        if import.is_some() { "imported" } else { "started" }
    };
    if let Some(from) = &adopted_from {
        tripped = refuse_tripped(world, project, from, request)?;
    }
    let resolved = config::load_for(world, project, &run);
    let settings = resolved.settings();
    if verb != "started" {
        refusals::at_limit(&run, &settings)?;
    }
    let budget_note = refusals::spent_day(world, &settings)?;
    Ok(StartPlan {
        run,
        resolved,
        settings,
        verb,
        import,
        question: None,
        adopted_from,
        replaced,
        tripped,
        budget_note,
    })
}

/// Completes the loop's record.
fn prepare(start: &Start, plan: &mut StartPlan, agent_gets_prompt: bool) -> anyhow::Result<Vec<String>> {
    let StartPlan { run, resolved, settings, question, .. } = plan;
    config::freeze(run, resolved);
    let warnings = resolved.warnings.iter().map(|warning| format!("settings: {warning}"));
    run.told.warnings = warnings.collect::<Vec<_>>().join("\n");
    run.told.limits = Some((settings.max_iterations, settings.max_runtime_ms));
    run.given.files = resolved.files.clone();
    let notes = answer::hand_over(start.world, start.project, run, question.as_ref())?;
    run.pending.repeat_task = !agent_gets_prompt;
    // What the session has cost until now is not the loop's.
    run.session.counted_usd = figures::load(start.world, start.session).and_then(|figures| figures.spent_usd);
    Ok(notes)
}

/// Writes the loop down, or nothing. The arming is recorded first: a loop in the state without that record does not
/// count. Returns the loops that expired.
fn arm_and_save(
    start: &Start,
    plan: &mut StartPlan,
    state: &mut Locked,
    notes: &mut Vec<String>,
) -> Result<Vec<ArmedLoop>, Failure> {
    let Start { world, project, session, .. } = *start;
    let tripped = plan.tripped.as_ref().map_or(session, |record| record.session_id.as_str());
    let before = [armed::backup(world, project, session)?, circuit::backup(world, project, tripped)?];
    ending::record_missing(world, project, session, &state.document)?;
    state.document.set_loop(session, &plan.run)?;
    if let Some(from) = &plan.adopted_from {
        leave_session(&mut state.document, from, session, world.now)?;
    }
    let expiration_ms = plan.settings.session_expiration_ms;
    let expired = expiry::close(world, project, session, &mut state.document, expiration_ms)?;
    let moved = write(start, plan, state).inspect_err(|_| {
        before.iter().for_each(Backup::restore);
        if let Some(alive) = &plan.replaced {
            let _ = history::take_back(world, project, &alive.run_id);
        }
    })?;
    let moved = plan.import.as_ref().zip(moved);
    if let Err(error) = circuit::save(world, project, session, &plan.run.run_id, &plan.run.circuit) {
        notes.push(format!("could not save the circuit breaker: {error:#}"));
    }
    match moved {
        Some((import, to)) => notes.extend(import.messages(session, &plan.settings, &to)),
        None => notes.extend(import::official_loop_warning(world, project, session)),
    }
    if let Some(from) = plan.adopted_from.as_ref().filter(|from| state.document.loop_of(from).is_none()) {
        armed::disarm(world, project, from);
        circuit::forget(world, project, from);
    }
    Ok(expired)
}

/// Arms the loop and saves the state. Returns where the loop file of an import is now.
fn write(start: &Start, plan: &mut StartPlan, state: &mut Locked) -> Result<Option<PathBuf>, Failure> {
    let Start { world, project, session, .. } = *start;
    if let Some(record) = plan.tripped.take() {
        record.reset(world, project)?;
    }
    // Before the state forgets it: killed in between, it is in both, and the history's newest ending of a run counts.
    if let Some(replaced) = &plan.replaced {
        history::record(world, project, session, replaced)?;
    }
    armed::arm(world, project, session, &plan.run, plan.replaced.as_ref())?;
    let import = plan.import.as_ref();
    let moved = import.map(|import| official::move_aside(project, &import.path, world.now)).transpose();
    let moved = moved.map_err(Failure::refused)?;
    given_guidance::include(world, project, &state.document)?;
    if let Err(error) = state.save() {
        import.zip(moved.as_ref()).iter().for_each(|(import, to)| official::put_back(&import.path, to));
        return Err(error.into());
    }
    given_guidance::prune(world, project, &state.document);
    Ok(moved)
}

/// Files the answered question away. Returns what failed.
pub fn file_away(question: Option<&Question>, world: &World, project: &Project) -> Option<String> {
    let error = question::file_away(project, question?, world.now).err()?;
    Some(format!("could not move {} to ralph/answered: {error:#}", question?.path.display()))
}

/// Refuses if the breaker of this session has tripped and `--reset` is not given. Returns the tripped breaker.
pub fn refuse_tripped(
    world: &World,
    project: &Project,
    session: &str,
    request: &StartRequest,
) -> Result<Option<circuit::BreakerRecord>, Failure> {
    let record = circuit::record(world, project, session)?.filter(|record| record.circuit.is_tripped());
    let Some(record) = record.as_ref().filter(|_| !request.reset) else { return Ok(record) };
    let reason = clean::excerpt(record.circuit.reason.as_deref().unwrap_or("unknown"), 300);
    Err(Failure::refused(format!("the circuit breaker has tripped: {reason}"))
        .hint("fix the cause, then start with --reset or run `ralph reset`"))
}

fn check_session(session: &str) -> Result<(), Failure> {
    if state::usable_session_id(session) {
        return Ok(());
    }
    let what = if session.is_empty() { "no session id" } else { "invalid session id" };
    let max = state::MAX_SESSION_ID_BYTES;
    Err(Failure::usage(what).hint(format!(
        "use /ralph:start in Claude Code, or pass its session id with --session (at most {max} characters)"
    )))
}

/// Refuses if this session has a loop and `--replace` is not given. Returns the loop that it ended.
fn make_room(start: &Start, document: &Document) -> Result<Option<ArmedLoop>, Failure> {
    let Start { world, project, session, request } = *start;
    let present = armed::load_armed(world, project, session, document)?.filter(|run| run.is_alive());
    let Some(mut present) = present else { return Ok(None) };
    if !request.replace {
        let state = if present.state == LoopState::Paused { "paused" } else { "already running" };
        let (task, iterations) = (clean::excerpt(&present.task, 60), message::iterations(present.iteration));
        return Err(Failure::refused(format!("a loop is {state} in this session: \"{task}\", {iterations}"))
            .hint("continue it with --resume, replace it with --replace, or end it with /ralph:stop"));
    }
    present.end(Outcome::Stopped, "replaced by a new start", world.now);
    Ok(Some(present))
}

pub fn begin(world: &World, project: &Project, request: &StartRequest) -> anyhow::Result<ArmedLoop> {
    let mut given = GivenSettings {
        flags: request.flags.clone(),
        preset: request.preset.clone(),
        environment: config::environment(),
        ..GivenSettings::default()
    };
    let commands = config::take_commands(&mut given);
    let stored = StoredLoop {
        run_id: format!("{:032x}", world::unique()),
        state: LoopState::Running,
        task: request.task.clone(),
        started_at: world.now,
        last_hook_timestamp: world.now.seconds(),
        timing: Timing {
            armed_at: world.now,
            slept_mark_ms: world.slept_ms,
            stop_all_seen: stops::stopped_all_at(world)?,
            previous_ended_at: history::last_ending(world, project)?,
            ..Timing::default()
        },
        given,
        ..StoredLoop::default()
    };
    Ok(armed::begin(stored, commands))
}

/// Finds the loop to resume and prepares it. Returns the session it had, if that was another one.
fn resume(start: &Start, document: &Document) -> Result<(ArmedLoop, Option<String>), Failure> {
    let Start { world, project, session, request } = *start;
    let (id, mut run) = pick_resumable(start, document)?;
    if id != session
        && armed::load_armed(world, project, session, document)?.is_some_and(|run| run.is_alive())
    {
        return Err(Failure::refused("a loop is already running in this session")
            .hint("end it with /ralph:stop first"));
    }
    if !request.task.is_empty() {
        run.task.clone_from(&request.task);
    }
    let mut environment = config::environment();
    environment.retain(|name, _| !run.commands.contains_key(name));
    run.given.environment.extend(environment);
    add_settings(&mut run, request);
    // A resumed loop takes the limits that hold now, and the user is told which of them the project's file gives.
    run.limits = None;
    if run.state == LoopState::Running {
        let settings = config::load_for(world, project, &run).settings();
        accounting::add_turn(&mut run, &Turn::default(), &settings, world.now);
    }
    run.resume(world.now);
    run.timing.slept_mark_ms = world.slept_ms;
    run.timing.stop_all_seen = stops::stopped_all_at(world)?;
    Ok((run, (id != session).then_some(id)))
}

/// Adds what was typed now to what was given when the loop was started.
pub fn add_settings(run: &mut ArmedLoop, request: &StartRequest) {
    run.given.flags.extend(request.flags.clone());
    let commands = config::take_commands(&mut run.given);
    run.commands.extend(commands);
    if !request.preset.is_empty() {
        run.given.preset.clone_from(&request.preset);
    }
}

/// Picks the loop that is named, else this session's own, else the only one that lost or ended its session.
fn pick_resumable(start: &Start, document: &Document) -> Result<(String, ArmedLoop), Failure> {
    let Loaded { mut loops, faults } = armed::load_started(start.world, start.project, document);
    if let Some(id) = &start.request.run {
        loops.retain(|(_, run)| run.run_id.starts_with(id.as_str()));
    } else if let Some(own) = loops.iter().position(|(id, _)| id == start.session) {
        return Ok(loops.swap_remove(own));
    } else {
        // A loop whose session may still be at work is only adopted by name.
        let elsewhere = loops.iter().any(|(_, run)| run.is_alive());
        loops.retain(|(_, run)| {
            run.is_alive() && (run.session.orphaned_at.is_some() || run.session.closed_at.is_some())
        });
        if loops.is_empty() && elsewhere {
            return Err(Failure::refused("the loops of this project belong to other sessions")
                .hint("`ralph status` lists them; adopt one with --resume --run ID"));
        }
        if loops.iter().any(|(_, run)| run.session.orphaned_at.is_some()) {
            loops.retain(|(_, run)| run.session.orphaned_at.is_some());
        }
    }
    match loops.len() {
        1 => Ok(loops.remove(0)),
        0 if !faults.is_empty() => Err(Failure::internal(faults.join("\n"))),
        0 => Err(Failure::refused("no loop to resume in this project")
            .hint("`ralph history` lists past runs; start a new loop with /ralph:start TASK")),
        _ => {
            let line = |(id, run): &(String, ArmedLoop)| {
                let (run_id, session) = (message::short_id(&run.run_id), message::short_id(id));
                format!("\n  --run {run_id}  {}  (session {session})", clean::excerpt(&run.task, 40))
            };
            let list: String = loops.iter().map(line).collect();
            Err(Failure::refused("several loops can be resumed").hint(format!("choose one:{list}")))
        }
    }
}

/// Takes a loop out of its earlier session. If that may still be open, it is told at its next turn.
fn leave_session(document: &mut Document, from: &str, to: &str, now: Stamp) -> anyhow::Result<()> {
    let is_open = |run: &StoredLoop| run.session.orphaned_at.is_none() && run.session.closed_at.is_none();
    let Some(mut run) = document.loop_of(from).filter(is_open) else {
        document.remove_loop(from);
        return Ok(());
    };
    run.end(Outcome::Interrupted, format!("adopted by session {}", clean::excerpt(to, 36)), now);
    document.set_loop(from, &run)
}

/// Scans the project before the state is locked: a first scan may take seconds.
pub fn scan_before_start(
    world: &World,
    project: &Project,
    work_tree: &Project,
    request: &StartRequest,
) -> Option<Scan> {
    // The start creates the folder and excludes our files from git anyway. Done now, the next scan finds neither new.
    if let Ok(folder) = project.folder(&project.claude_dir()) {
        let _ = file::create_shared_dir(&folder);
    }
    let _ = git::exclude_ours(project);
    let resolved = config::load(world, project);
    if request.skip_constraint_scan || !resolved.is_on("scan.enabled") {
        return None;
    }
    Some(super::scan::scan_with_progress(world, work_tree, &resolved, ScanBudget::Start, true))
}
