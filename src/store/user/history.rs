//! Past runs: one line per run, appended at its ending, newest last, bounded in size.

use crate::core::decide::turn::CheckResult;
use crate::core::event::{RunEnded, RunStarted};
use crate::core::outcome::Outcome;
use crate::core::record::{ArmedLoop, Engine, GivenSettings, Usage, is_default};
use crate::core::time::Stamp;
use crate::store::events::{self, RunFile};
use crate::store::file::lock::Lock;
use crate::store::file::walk::entries;
use crate::store::{Project, World, file};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub run_id: String,
    pub session_id: String,
    pub engine: Engine,
    pub project: String,
    pub task: String,
    pub started_at: Stamp,
    pub ended_at: Stamp,
    pub outcome: Outcome,
    pub reason: String,
    pub iterations: u64,
    pub runtime_seconds: f64,
    pub wall_seconds: f64,
    #[serde(default)]
    pub usage: Usage,
    /// The last result of each check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckResult>,
    /// The commands it was given as flags, for when it is resumed: the project's file does not hold them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub commands: Map<String, Value>,
    /// The settings it was given, for the same reason.
    #[serde(default, skip_serializing_if = "is_default")]
    pub given: GivenSettings,
}

/// A larger file is cut back to `KEPT_RUNS`, or to fewer that take half of it.
const MAX_FILE_BYTES: u64 = 2 << 20;
const KEPT_RUNS: usize = 500;
const MAX_TASK_CHARS: usize = 1000;
const MAX_READ_BYTES: u64 = 64 << 20;

fn path(world: &World, project: &Project) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("history").join(format!("{}.jsonl", project.key())))
}

/// Records an ending. The same run may be recorded again when it was resumed: readers take the newest.
pub fn record(world: &World, project: &Project, session: &str, run: &ArmedLoop) -> Result<()> {
    let entry = Run {
        run_id: run.run_id.clone(),
        session_id: session.to_owned(),
        engine: run.engine,
        project: project.root.to_string_lossy().into_owned(),
        task: run.task.chars().take(MAX_TASK_CHARS).collect(),
        started_at: run.started_at,
        ended_at: run.ended_at.unwrap_or(world.now),
        outcome: run.outcome.unwrap_or(Outcome::Error),
        reason: run.reason.clone().unwrap_or_default(),
        iterations: run.iteration,
        runtime_seconds: run.accumulated_runtime_seconds,
        wall_seconds: Stamp(run.wall_ms(world.now)).seconds(),
        usage: run.usage.clone(),
        checks: run.checks.clone(),
        commands: run.commands.clone(),
        given: run.given.by_user(),
    };
    let path = path(world, project)?;
    file::create_dir(path.parent().unwrap_or(&path))?;
    let _lock = Lock::acquire(&path.with_extension("lock"))?;
    file::append_line(&path, &serde_json::to_string(&entry)?)?;
    if std::fs::metadata(&path).is_ok_and(|meta| meta.len() > MAX_FILE_BYTES) {
        let runs = runs(world, project)?;
        file::replace_json_lines(&path, &runs, newest_within(&runs, MAX_FILE_BYTES / 2))?;
    }
    Ok(())
}

/// Removes the newest entry if it is of this run, because it did not end after all.
pub fn take_back(world: &World, project: &Project, run_id: &str) -> Result<()> {
    let path = path(world, project)?;
    let _lock = Lock::acquire(&path.with_extension("lock"))?;
    let bytes = file::read_bounded(&path, MAX_READ_BYTES)?.unwrap_or_default();
    let begin = memchr::memrchr(b'\n', bytes.trim_ascii_end()).map_or(0, |at| at + 1);
    if serde_json::from_slice::<Run>(&bytes[begin..]).is_ok_and(|last| last.run_id == run_id) {
        std::fs::OpenOptions::new().write(true).open(&path)?.set_len(begin as u64)?;
    }
    Ok(())
}

/// Returns how many of the newest runs are kept: at least one, and no more than fit in so many bytes.
fn newest_within(runs: &[Run], max_bytes: u64) -> usize {
    let mut bytes = 0;
    let fits = |run: &&Run| {
        bytes += serde_json::to_string(run).map_or(0, |line| line.len() as u64 + 1);
        bytes <= max_bytes
    };
    runs.iter().rev().take(KEPT_RUNS).take_while(fits).count().max(1)
}

/// Returns every project with a past run.
pub fn projects(world: &World) -> Vec<Project> {
    let folder = world.data_dir().map(|dir| dir.join("history")).unwrap_or_default();
    let files =
        entries(&folder).into_iter().filter(|path| path.extension().is_some_and(|kind| kind == "jsonl"));
    let last = |path: PathBuf| file::read_json_lines::<Run>(&path, MAX_READ_BYTES).ok()?.pop();
    files.filter_map(last).map(|run| Project { root: run.project.into() }).collect()
}

/// Returns whether a run is in the history. One that cannot be read is an error, not an empty history.
pub fn contains(world: &World, project: &Project, run_id: &str) -> Result<bool> {
    Ok(runs(world, project)?.iter().any(|entry| entry.run_id == run_id))
}

/// Returns when the last run ended.
pub fn last_ending(world: &World, project: &Project) -> Result<Option<Stamp>> {
    Ok(runs(world, project)?.iter().map(|entry| entry.ended_at).max())
}

/// Returns the runs of this project, oldest first, each once. A line that does not parse is skipped.
pub fn runs(world: &World, project: &Project) -> Result<Vec<Run>> {
    let mut seen = HashSet::new();
    let newest = endings(world, project)?.into_iter().rev().filter(|run| seen.insert(run.run_id.clone()));
    let mut runs: Vec<Run> = newest.collect();
    runs.reverse();
    Ok(runs)
}

/// Returns the past runs of this project for people, oldest first: as their events tell, and those that have none as they
/// were recorded.
pub fn past(world: &World, project: &Project) -> Result<Vec<Run>> {
    let mut past = runs(world, project)?;
    for file in events::of_project(world, project)? {
        let Some((ended_at, ended)) = events::ending(&file.path) else { continue };
        let Some(outcome) = ended.outcome else { continue };
        let known = past.iter_mut().find(|run| run.run_id == file.run_id);
        if let Some(known) = known {
            // An ending whose event could not be written is newer than the last one that could.
            if ended_at >= known.ended_at {
                known.take_over(&ended);
            }
            continue;
        }
        let mut run = Run::of_events(&file, ended_at, outcome);
        run.take_over(&ended);
        let later = past.iter().position(|other| other.ended_at > ended_at).unwrap_or(past.len());
        past.insert(later, run);
    }
    Ok(past)
}

impl Run {
    /// Returns a run of which only its events are left.
    fn of_events(file: &RunFile, ended_at: Stamp, outcome: Outcome) -> Run {
        let RunStarted { run_id, session_id, engine, project, task, .. } = file.started.clone();
        Run {
            run_id,
            session_id,
            engine,
            project,
            task,
            started_at: file.started_at,
            ended_at,
            outcome,
            reason: String::new(),
            iterations: 0,
            runtime_seconds: 0.0,
            wall_seconds: 0.0,
            usage: Usage::default(),
            checks: Vec::new(),
            commands: Map::new(),
            given: GivenSettings::default(),
        }
    }

    fn take_over(&mut self, ended: &RunEnded) {
        self.outcome = ended.outcome.unwrap_or(self.outcome);
        self.reason.clone_from(&ended.reason);
        self.iterations = ended.iterations;
        (self.runtime_seconds, self.wall_seconds) = (ended.runtime_seconds, ended.wall_seconds);
        (self.usage, self.checks) = (ended.usage.clone(), ended.checks.clone());
    }
}

/// Returns every ending of this project, oldest first: a run that was resumed has several.
pub fn endings(world: &World, project: &Project) -> Result<Vec<Run>> {
    file::read_json_lines::<Run>(&path(world, project)?, MAX_READ_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: usize, reason: &str) -> Run {
        Run {
            run_id: format!("r{id}"),
            session_id: "s".into(),
            engine: Engine::InSession,
            project: "/p".into(),
            task: "task".into(),
            started_at: Stamp(0),
            ended_at: Stamp(id as i64),
            outcome: Outcome::Stopped,
            reason: reason.into(),
            iterations: 1,
            runtime_seconds: 1.0,
            wall_seconds: 1.0,
            usage: Usage::default(),
            checks: Vec::new(),
            commands: Map::new(),
            given: GivenSettings::default(),
        }
    }

    #[test]
    fn the_newest_entry_of_a_run_counts_and_gives_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let (world, project) = (World::at(dir.path(), dir.path()), Project { root: dir.path().to_owned() });
        let entries = [run(1, "first"), run(2, ""), run(1, "again"), run(3, "")];
        file::replace_json_lines(&path(&world, &project).unwrap(), &entries, 10).unwrap();
        let found = runs(&world, &project).unwrap();
        let ids: Vec<_> = found.iter().map(|run| run.run_id.as_str()).collect();
        assert_eq!((ids, found[1].reason.as_str()), (vec!["r2", "r1", "r3"], "again"));
        assert!(contains(&world, &project, "r2").unwrap() && !contains(&world, &project, "r4").unwrap());
    }

    #[test]
    fn long_entries_leave_room_for_fewer() {
        let short: Vec<_> = (0..KEPT_RUNS + 9).map(|id| run(id, "")).collect();
        assert_eq!(newest_within(&short, MAX_FILE_BYTES), KEPT_RUNS);
        let long: Vec<_> = (0..9).map(|id| run(id, &"x".repeat(1000))).collect();
        assert_eq!(newest_within(&long, 5000), 3);
        assert_eq!(newest_within(&long, 10), 1, "the newest is always kept");
    }
}
