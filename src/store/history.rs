//! Past runs: one record a run, appended at its ending, newest last, never without bound.

use super::file::{self, Privacy};
use super::lock::Lock;
use super::project::Project;
use super::world::World;
use crate::core::outcome::Outcome;
use crate::core::record::{Engine, Loop, Usage};
use crate::core::time::Stamp;
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
    /// The commands it was given as flags, for the day it is resumed: the project's file does not hold them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub commands: Map<String, Value>,
}

/// The file is cut back to `KEPT` runs when it has grown past `LARGEST` bytes.
const LARGEST: u64 = 2 << 20;
const KEPT: usize = 500;
const LONGEST_TASK: usize = 1000;
const READ_AT_MOST: u64 = 64 << 20;

fn path(world: &World, project: &Project) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("history").join(format!("{}.jsonl", project.key())))
}

/// Records an ending. The same run may be recorded again when it was resumed: readers take the newest.
pub fn record(world: &World, project: &Project, session: &str, lap: &Loop) -> Result<()> {
    let run = Run {
        run_id: lap.run_id.clone(),
        session_id: session.to_owned(),
        engine: lap.engine,
        project: project.root.to_string_lossy().into_owned(),
        task: lap.task.chars().take(LONGEST_TASK).collect(),
        started_at: lap.started_at,
        ended_at: lap.ended_at.unwrap_or(world.now),
        outcome: lap.outcome.unwrap_or(Outcome::Error),
        reason: lap.reason.clone().unwrap_or_default(),
        iterations: lap.iteration,
        runtime_seconds: lap.accumulated_runtime_seconds,
        wall_seconds: Stamp(lap.wall_ms(world.now)).seconds(),
        usage: lap.usage.clone(),
        commands: lap.given.commands.clone(),
    };
    let path = path(world, project)?;
    file::create_dir(path.parent().unwrap_or(&path))?;
    let _lock = Lock::acquire(&path.with_extension("lock"))?;
    file::append_line(&path, &serde_json::to_string(&run)?)?;
    if std::fs::metadata(&path).is_ok_and(|meta| meta.len() > LARGEST) {
        let runs = runs(world, project)?;
        let kept = &runs[runs.len().saturating_sub(KEPT)..];
        let lines: Result<Vec<String>, _> = kept.iter().map(serde_json::to_string).collect();
        file::replace(&path, (lines?.join("\n") + "\n").as_bytes(), Privacy::Private)?;
    }
    Ok(())
}

pub fn contains(world: &World, project: &Project, run_id: &str) -> bool {
    runs(world, project).is_ok_and(|runs| runs.iter().any(|run| run.run_id == run_id))
}

/// When the last of them ended.
pub fn last_ending(world: &World, project: &Project) -> Option<Stamp> {
    runs(world, project).ok()?.iter().map(|run| run.ended_at).max()
}

/// The runs of this project, oldest first, each once. A line that does not parse is skipped.
pub fn runs(world: &World, project: &Project) -> Result<Vec<Run>> {
    let bytes = file::read_bounded(&path(world, project)?, READ_AT_MOST)?.unwrap_or_default();
    let mut runs: Vec<Run> = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(run) = serde_json::from_slice::<Run>(line) else { continue };
        runs.retain(|earlier| earlier.run_id != run.run_id);
        runs.push(run);
    }
    Ok(runs)
}
