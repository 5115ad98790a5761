//! `ralph status`: every loop of the project, or of all projects of the user.

use crate::claude::client::sessions;
use crate::claude::transcript;
use crate::cli::views::watch::watch;
use crate::cli::{CommandOutput, Failure, Invocation, Project, World};
use crate::core::guidance::{self, Guidance};
use crate::core::outcome::Exit;
use crate::core::record::{ArmedLoop, ClientStatus, Engine, LoopState, StoredLoop};
use crate::run::{self, saved};
use crate::store::runner::{calls, run_lock};
use crate::store::state::{self, Document, StateError, question};
use crate::store::user::{armed, given_guidance, history};
use crate::store::{config, tasks};
use crate::view::paint::Paint;
use crate::view::status::{Calls, LoopView, StatusView};
use serde_json::json;
use std::path::{Path, PathBuf};

pub fn command(call: &Invocation) -> CommandOutput {
    if call.flag("watch") {
        return watch(|| {
            let world = call.world.later();
            let (status, others) = all(call, &world)?;
            Ok(text(&status, &others, Paint::for_stdout()))
        });
    }
    let (status, others) = all(call, &call.world)?;
    if !call.flag("json") {
        return Ok((text(&status, &others, Paint::for_stdout()), Exit::Success));
    }
    let projects = || [&status].into_iter().chain(&others).map(StatusView::json).collect::<Vec<_>>();
    let value = if call.flag("all") { json!({"projects": projects()}) } else { status.json() };
    Ok((value.to_string(), Exit::Success))
}

/// Gathers the status of the project, and of the others if they are wanted.
fn all(call: &Invocation, world: &World) -> Result<(StatusView, Vec<StatusView>), Failure> {
    let status = gather(world, &call.project, call.session())?;
    let others = if call.flag("all") { others(world, &call.project) } else { Vec::new() };
    Ok((status, others))
}

/// Returns the status for the session in which the user typed the command. Its running loop continues after that.
pub fn in_session(world: &World, project: &Project, session: &str, all: bool) -> Result<String, Failure> {
    let mut status = gather(world, project, Some(session))?;
    for shown in status.loops.iter_mut().filter(|shown| shown.own && shown.run.state == LoopState::Running) {
        // What it would be said to wait for is this very command.
        shown.run.session.waiting = None;
        shown.client = ClientStatus::Busy;
    }
    let others = if all { others(world, project) } else { Vec::new() };
    Ok(text(&status, &others, Paint::new(false)))
}

fn text(status: &StatusView, others: &[StatusView], paint: Paint) -> String {
    let others = others.iter().map(|status| format!("\n{}", status.brief(paint)));
    status.human(paint) + &others.collect::<String>()
}

/// Returns the projects of this user that have or had a loop.
pub fn projects(world: &World) -> Vec<PathBuf> {
    let projects = armed::projects(world).into_iter().chain(history::projects(world));
    let mut roots: Vec<PathBuf> = projects.map(|project| project.real_root()).collect();
    roots.sort();
    roots.dedup();
    roots
}

/// Gathers the status of the user's other projects that have a loop.
fn others(world: &World, project: &Project) -> Vec<StatusView> {
    let roots = projects(world);
    let own = project.real_root();
    let projects = roots.into_iter().filter(|root| *root != own).map(|root| Project { root });
    let gather = |project: Project| match gather_loops(world, &project, None) {
        Ok(status) => status,
        Err(failure) => StatusView::unreadable(project.root, failure.message, world.now),
    };
    projects.map(gather).filter(|status| !status.loops.is_empty() || !status.notes.is_empty()).collect()
}

/// Gathers what is shown; the loop of `session` comes first.
fn gather(world: &World, project: &Project, session: Option<&str>) -> Result<StatusView, Failure> {
    let mut status = gather_loops(world, project, session)?;
    status.notes.extend(question::foreign_notes(world, project));
    // A loop that runs is held to its start; the settings of the next one are told when it starts.
    let alive = status.loops.iter().filter(|shown| shown.run.is_alive());
    let mut warnings: Vec<String> =
        alive.flat_map(|shown| config::load_for(world, project, &shown.run).warnings).collect();
    if !status.loops.iter().any(|shown| shown.run.is_alive()) {
        warnings = config::load(world, project).warnings;
    }
    for warning in warnings {
        if !status.notes.contains(&warning) {
            status.notes.push(warning);
        }
    }
    Ok(status)
}

fn gather_loops(world: &World, project: &Project, session: Option<&str>) -> Result<StatusView, Failure> {
    gather_observed(world, project, session, &mut |id, run| observe(world, project, id, run, None))
}

/// Gathers the loops of a project. `observe` brings each up to what its client shows, as [`observe`] does.
pub fn gather_observed(
    world: &World,
    project: &Project,
    session: Option<&str>,
    observe: &mut dyn FnMut(&str, &mut ArmedLoop) -> ClientStatus,
) -> Result<StatusView, Failure> {
    let mut notes = Vec::new();
    let read = || state::peek(project).map(Option::unwrap_or_default);
    let (document, loaded) = match armed::read_started(world, project, read) {
        Ok(read) => read,
        Err(error @ StateError::Damaged(..)) => {
            notes.push(format!("{error}; the next turn or start moves it aside"));
            let document = Document::default();
            let loaded = armed::load_started(world, project, &document);
            (document, loaded)
        }
        Err(error) => return Err(error.into()),
    };
    if document.newer_than_us() {
        notes.push("the state is from a newer version of Ralph and read-only; upgrade Ralph".into());
    }
    notes.extend(state::unreadable_loops(project, &document));
    let armed::Loaded { mut loops, faults } = loaded;
    notes.extend(faults);
    let lost = saved::lost(world, project, &document).unwrap_or_else(|error| {
        notes.push(format!("{error:#}"));
        None
    });
    if let Some(run) = lost {
        let state = project.state();
        notes.push(format!(
            "{} no longer contains the run that is active here; `ralph stop` ends it",
            state.display()
        ));
        loops.retain(|(session, _)| session != run::SESSION);
        loops.push((run::SESSION.to_owned(), run));
    }
    let mut loops: Vec<LoopView> = loops
        .into_iter()
        .map(|(session_id, mut run)| {
            let client = observe(&session_id, &mut run);
            let resolved = config::load_for(world, project, &run);
            let settings = resolved.settings_for(run.engine);
            let calls = calls_left(world, project, resolved.run_settings().calls_per_hour)
                .filter(|_| run.engine == Engine::Runner);
            // The tasks of a run that ended are of interest too.
            let shows = run.is_alive() || run.engine == Engine::Runner;
            let work_tree = project.work_tree(&project.root.join(&run.session.work_tree));
            let tasks = tasks::read(&work_tree, &run.tasks).filter(|_| shows);
            let open_question = has_open_question(project, &run);
            let own = session == Some(&session_id);
            let is_open = run.is_alive() && run.engine == Engine::InSession;
            let attach = is_open.then(|| sessions::attach_command(world, &session_id)).flatten();
            LoopView { own, session_id, run, settings, tasks, client, attach, open_question, calls }
        })
        .collect();
    loops.sort_by_key(|LoopView { own, run, .. }| {
        let newest = run.ended_at.unwrap_or(run.last_seen());
        (!own, !run.is_alive(), std::cmp::Reverse(newest))
    });
    let guidance = given_guidance::guidance(world, project, &document).unwrap_or_else(|error| {
        notes.push(format!("{error:#}"));
        Guidance::default()
    });
    let constraints = document.constraints();
    notes.extend(given_guidance::restored_note(project, &guidance));
    notes.extend(guidance::words::foreign(&guidance.foreign, &project.state().display().to_string()));
    Ok(StatusView { project: project.root.clone(), now: world.now, loops, guidance, constraints, notes })
}

/// Brings a loop that has not ended up to what its client shows since the last hook. Returns what the client or the
/// runner's process is doing.
pub fn observe(
    world: &World,
    project: &Project,
    session: &str,
    run: &mut ArmedLoop,
    transcript: Option<&Path>,
) -> ClientStatus {
    match run.engine {
        _ if !run.is_alive() => ClientStatus::Unknown,
        Engine::Runner if run_lock::holder(world, project).is_none() => ClientStatus::Gone,
        Engine::Runner => ClientStatus::Busy,
        Engine::InSession => {
            let known = Path::new(&run.session.transcript.path);
            let path = transcript.or(Some(known)).filter(|path| path.is_file()).map(Path::to_owned);
            let path = path.or_else(|| transcript::find(world, session));
            let gained = path.and_then(|path| transcript::read(&path, run));
            run.catch_up(gained.as_ref(), world.now);
            if let Some(gained) = gained {
                // A second look at this record begins where this one ended.
                run.session.transcript = gained.reading;
            }
            sessions::status(world, session)
        }
    }
}

/// Returns whether the question with which a loop ended is still to be answered.
fn has_open_question(project: &Project, run: &StoredLoop) -> bool {
    question::of_loop(project, run).ok().flatten().is_some_and(|question| question.answer.is_empty())
}

fn calls_left(world: &World, project: &Project, per_hour: u64) -> Option<Calls> {
    let rate = calls::load(world, project).ok()?;
    let (remaining, frees_at) = (rate.remaining(per_hour, world.now), rate.frees_at(world.now));
    (per_hour > 0).then_some(Calls { per_hour, remaining, frees_at })
}
