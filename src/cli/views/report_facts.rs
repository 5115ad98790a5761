//! What a report is made from: events, history, git, the task list, the question, and the logs.

use super::report::ReportedRun;
use crate::claude::agent_log;
use crate::cli::{Project, World};
use crate::core::event::agent_log::AgentLogEntry;
use crate::core::event::timeline::Timeline;
use crate::core::event::{self, Check, Event, EventKind, RunEnded, RunStarted};
use crate::core::outcome::Outcome;
use crate::core::record::{Engine, LoopState};
use crate::core::tasks::TaskList;
use crate::core::text::clean;
use crate::core::time::Stamp;
use crate::run::agent;
use crate::store::events::{self, Follower, RunFile};
use crate::store::project::commits::{self, Commits};
use crate::store::runner::{logs, run_lock};
use crate::store::state::{self, question};
use crate::store::tasks::source::{self, Selection};
use crate::store::user::history::{self, Run};
use crate::view::report::all::RunLine;
use crate::view::report::{QuestionState, ReportInput};
use anyhow::Result;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

/// The end of each log that is shown: read bytes, shown entries, and their length.
const LOG_BYTES: u64 = 24 << 10;
const LOG_ENTRIES: usize = 12;
const LOG_CHARS: usize = 400;
/// Of a transcript, which is that of the whole session.
const TRANSCRIPT_BYTES: u64 = 24 << 20;
/// The last event of a run is in these bytes.
const TAIL_BYTES: u64 = 64 << 10;

pub(super) fn gather(world: &World, chosen: ReportedRun) -> Result<ReportInput> {
    let ReportedRun { run_id, project, timeline, has_events } = chosen;
    let siblings = events::of_project(world, &project)?;
    let started_at = timeline.started_at.unwrap_or_default();
    let later = |run: &&RunFile| run.run_id != run_id && run.started_at > started_at;
    let is_newest = !siblings.iter().any(|run| later(&run));
    let engine = timeline.started.as_ref().map_or_else(Engine::default, |started| started.engine);
    let agent_logs = match engine {
        Engine::Runner => {
            let next = siblings.iter().filter(later).filter(|run| run.started.engine == Engine::Runner);
            of_logs(&project, &timeline, next.map(|run| run.started_at).min())
        }
        Engine::InSession => of_transcript(&timeline),
    };
    Ok(ReportInput {
        now: world.now,
        commits: of_git(&project, &timeline),
        tasks: tasks(&project, &timeline, is_newest),
        question: question(world, &project, &timeline),
        agent_logs,
        is_newest,
        is_alive: timeline.ended.is_none() && is_alive(world, &project, engine, &run_id),
        has_events,
        run_id,
        timeline,
    })
}

/// Returns what the history knows of a run, as if it were told by events.
pub(super) fn of_history(run: &Run) -> Timeline {
    let started = RunStarted {
        run_id: run.run_id.clone(),
        engine: run.engine,
        session_id: run.session_id.clone(),
        project: run.project.clone(),
        task: event::text(&run.task),
        ..RunStarted::default()
    };
    let check = |result: &crate::core::decide::turn::CheckResult| {
        let check = Check {
            iteration: run.iterations,
            command: event::text(&result.command),
            passed: result.passed,
            exit_code: result.exit_code,
            seconds: result.seconds,
            ..Check::default()
        };
        Event::new(run.ended_at, EventKind::Check(check))
    };
    let ended = RunEnded {
        outcome: Some(run.outcome),
        reason: event::text(&run.reason),
        exit_code: run.outcome.exit().code(),
        iterations: run.iterations,
        runtime_seconds: run.runtime_seconds,
        wall_seconds: run.wall_seconds,
        usage: run.usage.clone(),
        checks: run.checks.clone(),
        ..RunEnded::default()
    };
    let mut timeline = Timeline::default();
    timeline.add(Event::new(run.started_at, EventKind::Started(started)));
    run.checks.iter().for_each(|result| timeline.add(check(result)));
    timeline.add(Event::new(run.ended_at, EventKind::Ended(ended)));
    for check in &mut timeline.checks {
        // Only its last result is known, not when it first came.
        (check.first_failed, check.first_passed, check.last_passed, check.last_failed) =
            (None, None, None, None);
    }
    timeline
}

fn of_git(project: &Project, timeline: &Timeline) -> Result<Commits, String> {
    let from = timeline.started.as_ref().and_then(|started| started.head.as_deref());
    let heads = timeline.iterations.values().rev();
    let to = heads.filter_map(|iteration| iteration.facts.head.as_deref()).next();
    match (from, to) {
        _ if !project.root.is_dir() => Err("the project's folder no longer exists".into()),
        (Some(from), Some(to)) => commits::between(project, from, to),
        _ => Err("the run did not record where HEAD was".into()),
    }
}

/// Returns the task list, if no later run has had the time to change it.
fn tasks(project: &Project, timeline: &Timeline, is_newest: bool) -> Option<TaskList> {
    let file = timeline.started.as_ref()?.tasks.as_ref().filter(|_| is_newest)?;
    let selection = Selection::File(PathBuf::from(file));
    source::find(project, &selection, &project.root).ok()?.list
}

fn question(world: &World, project: &Project, timeline: &Timeline) -> QuestionState {
    let Some((at, ended)) = &timeline.ended else { return QuestionState::None };
    if !matches!(ended.outcome, Some(Outcome::Blocked | Outcome::Decide)) {
        return QuestionState::None;
    }
    if let Some((_, answered)) = timeline.answers.iter().rfind(|(when, _)| when >= at) {
        return QuestionState::Answered(answered.answer.clone());
    }
    let questions = question::all(world, project).unwrap_or_default();
    let first = |text: &str| clean::line(text.trim().lines().next().unwrap_or_default());
    let is_it = |found: &question::Question| !found.foreign && first(found.asked()) == first(&ended.reason);
    match questions.into_iter().flatten().find(is_it) {
        Some(found) if found.answer.is_empty() => QuestionState::Open,
        Some(found) => QuestionState::Answered(found.answer),
        None => QuestionState::Gone,
    }
}

fn is_alive(world: &World, project: &Project, engine: Engine, run_id: &str) -> bool {
    if engine == Engine::Runner {
        return run_lock::holder(world, project).is_some_and(|holder| holder.run_id == run_id);
    }
    let document = state::peek(project).ok().flatten().unwrap_or_default();
    let loops = crate::store::user::armed::load_all(world, project, &document).loops;
    loops.iter().any(|(_, run)| run.run_id == run_id && run.state != LoopState::Stopped)
}

/// Returns the end of each iteration's log.
fn of_logs(project: &Project, timeline: &Timeline, next: Option<Stamp>) -> BTreeMap<u64, Vec<AgentLogEntry>> {
    let started = timeline.started_at.unwrap_or_default();
    let Ok(Some(folder)) = logs::folder_of(project, started, next) else { return BTreeMap::new() };
    let tail = |number: &u64| {
        let path = project.file(&folder.join(logs::name(*number))).ok()?;
        Some((*number, end_of(&path)?))
    };
    timeline.iterations.keys().filter_map(tail).collect()
}

fn end_of(path: &Path) -> Option<Vec<AgentLogEntry>> {
    let mut last: VecDeque<AgentLogEntry> = VecDeque::with_capacity(LOG_ENTRIES + 1);
    let mut follower = Follower::from_end(path, LOG_BYTES);
    follower
        .poll(|line| agent::log_entries(line).into_iter().for_each(|entry| push(&mut last, entry)))
        .ok()?;
    Some(last.into())
}

fn push(last: &mut VecDeque<AgentLogEntry>, mut entry: AgentLogEntry) {
    if entry.text.chars().count() > LOG_CHARS {
        entry.text = entry.text.chars().take(LOG_CHARS).chain(['…']).collect();
    }
    last.push_back(entry);
    if last.len() > LOG_ENTRIES {
        last.pop_front();
    }
}

/// Returns the end of each iteration in the transcripts of its session, by the times in it.
fn of_transcript(timeline: &Timeline) -> BTreeMap<u64, Vec<AgentLogEntry>> {
    let ends: Vec<(Stamp, u64)> =
        timeline.iterations.iter().map(|(number, it)| (it.ended_at, *number)).collect();
    let started = timeline.started_at.unwrap_or_default();
    let mut paths: Vec<&str> =
        timeline.iterations.values().filter_map(|it| it.facts.transcript.as_deref()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut found: BTreeMap<u64, VecDeque<AgentLogEntry>> = BTreeMap::new();
    for path in paths {
        let mut follower = Follower::from_end(Path::new(path), TRANSCRIPT_BYTES);
        let read = follower.poll(|line| {
            for entry in agent_log::entries(line) {
                let Some(at) = entry.at.filter(|at| *at >= started) else { continue };
                let place = ends.partition_point(|(end, _)| *end < at);
                if let Some((_, number)) = ends.get(place) {
                    push(found.entry(*number).or_default(), entry);
                }
            }
        });
        // A transcript that cannot be read shows nothing.
        drop(read);
    }
    found.into_iter().map(|(number, entries)| (number, entries.into())).collect()
}

/// Returns all runs of this user, the one that started last first.
pub(super) fn all(world: &World) -> Result<Vec<RunLine>> {
    let mut runs: BTreeMap<String, RunLine> = BTreeMap::new();
    for project in history::projects(world) {
        for run in history::runs(world, &project)? {
            runs.insert(run.run_id.clone(), line_of(&run));
        }
    }
    for run in events::all(world)? {
        let ended = last_ending(&run);
        runs.insert(run.run_id.clone(), line_of_events(world, &run, ended)?);
    }
    let mut runs: Vec<RunLine> = runs.into_values().collect();
    runs.sort_by_key(|run| std::cmp::Reverse(run.started_at));
    Ok(runs)
}

fn all_checks_passed(checks: &[crate::core::decide::turn::CheckResult]) -> Option<bool> {
    (!checks.is_empty()).then(|| checks.iter().all(|check| check.passed))
}

fn line_of(run: &Run) -> RunLine {
    RunLine {
        run_id: run.run_id.clone(),
        project: run.project.clone(),
        task: run.task.clone(),
        started_at: run.started_at,
        outcome: Some(run.outcome),
        iterations: run.iterations,
        runtime_seconds: run.runtime_seconds,
        cost: run.usage.cost_usd,
        tokens: run.usage.tokens(),
        verified: all_checks_passed(&run.checks),
    }
}

/// Returns the ending of a run if its last events have it, without reading the rest.
fn last_ending(run: &RunFile) -> Option<RunEnded> {
    let mut ended = None;
    let mut follower = Follower::from_end(&run.path, TAIL_BYTES);
    let read = follower.poll(|line| match Event::parse(line).map(|event| event.what) {
        Some(EventKind::Ended(last)) => ended = Some(last),
        Some(EventKind::Started(_)) => ended = None,
        _ => {}
    });
    read.ok().and(ended)
}

fn line_of_events(world: &World, run: &RunFile, ended: Option<RunEnded>) -> Result<RunLine> {
    let line = RunLine {
        run_id: run.run_id.clone(),
        project: run.started.project.clone(),
        task: run.started.task.clone(),
        started_at: run.started_at,
        outcome: None,
        iterations: 0,
        runtime_seconds: 0.0,
        cost: None,
        tokens: 0,
        verified: None,
    };
    if let Some(ended) = ended {
        return Ok(RunLine {
            outcome: ended.outcome,
            iterations: ended.iterations,
            runtime_seconds: ended.runtime_seconds,
            cost: ended.usage.cost_usd,
            tokens: ended.usage.tokens(),
            verified: all_checks_passed(&ended.checks),
            ..line
        });
    }
    let timeline = events::load(world, &run.run_id)?.unwrap_or_default();
    let (cost, tokens) = timeline.spent();
    let last = timeline.last_iteration();
    Ok(RunLine {
        iterations: last.map_or(0, |last| last.facts.iteration),
        runtime_seconds: last.map_or(0.0, |last| last.facts.runtime_seconds),
        cost,
        tokens,
        ..line
    })
}
