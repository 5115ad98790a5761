//! Past runs: one line per run, appended at its ending, newest last, bounded in size.

use crate::core::decide::turn::CheckResult;
use crate::core::outcome::Outcome;
use crate::core::record::{ArmedLoop, Engine, Usage};
use crate::core::time::Stamp;
use crate::store::file::lock::Lock;
use crate::store::{Project, World, file};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
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
}

/// A larger file is cut back to `KEPT_RUNS`.
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
    };
    let path = path(world, project)?;
    file::create_dir(path.parent().unwrap_or(&path))?;
    let _lock = Lock::acquire(&path.with_extension("lock"))?;
    file::append_line(&path, &serde_json::to_string(&entry)?)?;
    if std::fs::metadata(&path).is_ok_and(|meta| meta.len() > MAX_FILE_BYTES) {
        file::replace_json_lines(&path, &runs(world, project)?, KEPT_RUNS)?;
    }
    Ok(())
}

pub fn contains(world: &World, project: &Project, run_id: &str) -> bool {
    runs(world, project).is_ok_and(|runs| runs.iter().any(|entry| entry.run_id == run_id))
}

/// Returns when the last run ended.
pub fn last_ending(world: &World, project: &Project) -> Option<Stamp> {
    runs(world, project).ok()?.iter().map(|entry| entry.ended_at).max()
}

/// Returns the runs of this project, oldest first, each once. A line that does not parse is skipped.
pub fn runs(world: &World, project: &Project) -> Result<Vec<Run>> {
    let mut runs: Vec<Run> = Vec::new();
    for entry in file::read_json_lines::<Run>(&path(world, project)?, MAX_READ_BYTES)? {
        runs.retain(|earlier| earlier.run_id != entry.run_id);
        runs.push(entry);
    }
    Ok(runs)
}
