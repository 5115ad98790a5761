//! Silences of agents that were long enough for a warning: those that became a stall, and those that output ended. They
//! show whether the limits of the heartbeat fit.

use crate::core::time::Stamp;
use crate::core::time::heartbeat::Silence;
use crate::store::file::lock::Lock;
use crate::store::file::{self, Privacy};
use crate::store::project::Project;
use crate::store::world::World;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    pub at: Stamp,
    pub event: StallEventKind,
    pub run_id: String,
    pub iteration: u64,
    pub silence_seconds: i64,
    /// The silence that is a stall.
    pub limit_seconds: i64,
    /// A tool was running.
    pub in_tool: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StallEventKind {
    /// The agent was stopped.
    Stall,
    /// The agent printed something after its warning.
    Resumed,
}

const MAX_FILE_BYTES: u64 = 1 << 20;
/// Kept for each project.
const MAX_STALLS: usize = 500;

fn path(world: &World, project: &Project) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("history").join(format!("{}.stalls.jsonl", project.key())))
}

pub fn record(
    world: &World,
    project: &Project,
    run_id: &str,
    iteration: u64,
    silence: &Silence,
) -> Result<()> {
    let path = path(world, project)?;
    file::create_dir(path.parent().unwrap_or(&path))?;
    let _lock = Lock::acquire(&path.with_extension("lock"))?;
    let mut stalls = stalls(world, project)?;
    stalls.push(Stall {
        at: world.now,
        event: if silence.stalled { StallEventKind::Stall } else { StallEventKind::Resumed },
        run_id: run_id.to_owned(),
        iteration,
        silence_seconds: silence.seconds,
        limit_seconds: silence.limit_seconds,
        in_tool: silence.in_tool,
    });
    let kept = &stalls[stalls.len().saturating_sub(MAX_STALLS)..];
    let lines: Result<Vec<String>, _> = kept.iter().map(serde_json::to_string).collect();
    file::replace_locked(&path, (lines?.join("\n") + "\n").as_bytes(), Privacy::Private)
}

/// Returns the stalls of this project, oldest first. A line that does not parse is skipped.
pub fn stalls(world: &World, project: &Project) -> Result<Vec<Stall>> {
    file::read_json_lines(&path(world, project)?, MAX_FILE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_too_many_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let (world, project) = (World::at(dir.path(), dir.path()), Project { root: dir.path().to_owned() });
        assert_eq!(stalls(&world, &project).unwrap(), []);
        let silence = Silence { seconds: 300, limit_seconds: 300, in_tool: false, stalled: true };
        let lines: String = (0..MAX_STALLS as u64 + 10)
            .map(|iteration| {
                format!(
                    r#"{{"at":"2026-11-16T08:00:00Z","event":"resumed","run_id":"r","iteration":{iteration},"silence_seconds":250,"limit_seconds":300,"in_tool":true}}"#
                ) + "\nnot a record\n"
            })
            .collect();
        let path = path(&world, &project).unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, lines).unwrap();
        record(&world, &project, "r", 7, &silence).unwrap();
        let kept = stalls(&world, &project).unwrap();
        assert_eq!((kept.len(), kept[0].iteration), (MAX_STALLS, 11));
        let newest = kept.last().unwrap();
        assert_eq!((newest.event, newest.iteration, newest.silence_seconds), (StallEventKind::Stall, 7, 300));
    }
}
