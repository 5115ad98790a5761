//! The task list as it was before an iteration of the runner, in the user's own folder: the agent cannot reach it
//! by working in the project, so its changes can be held against it.

use super::file::{self, Privacy};
use super::project::Project;
use super::tasks;
use super::world::World;
use crate::core::tasks::{Mode, Source, TaskList, mode};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

const LARGEST: u64 = 64 << 20;

/// What of the run's settings its task list goes by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    pub run_id: String,
    pub skip_review: bool,
    /// 0 is none.
    pub review_cap: u64,
}

#[derive(Serialize, Deserialize)]
struct Record {
    #[serde(flatten)]
    rules: Rules,
    source: Source,
    /// The file's text, in whichever format it is.
    text: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    pub rules: Rules,
    pub tasks: TaskList,
}

impl Snapshot {
    pub fn mode(&self) -> Mode {
        mode(&self.tasks, self.rules.skip_review)
    }
}

fn path(world: &World, project: &Project) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("runs").join(format!("{}-tasks.json", project.key())))
}

/// Keeps the task list as it is now and returns it, so that the iteration's mode comes from the very same text.
/// Without a file there is nothing to keep, and nothing stays of the one before.
pub fn take(
    world: &World,
    project: &Project,
    source: &Source,
    rules: &Rules,
) -> Result<Option<Snapshot>, Vec<String>> {
    let bytes = tasks::bytes(project, source).map_err(|why| vec![format!("{} {why}", source.file)])?;
    let Some(bytes) = bytes else {
        forget(world, project);
        return Ok(None);
    };
    let tasks = tasks::parse(source, &bytes)?;
    let keep = || {
        let text = String::from_utf8(bytes)?;
        let record = Record { rules: rules.clone(), source: source.clone(), text };
        let path = path(world, project)?;
        file::create_dir(path.parent().unwrap_or(&path))?;
        file::replace(&path, serde_json::to_string(&record)?.as_bytes(), Privacy::Private)
    };
    keep().map_err(|error: anyhow::Error| vec![format!("the task list could not be kept: {error:#}")])?;
    Ok(Some(Snapshot { rules: rules.clone(), tasks }))
}

/// The newest one of this run. One of another run says nothing.
pub fn load(world: &World, project: &Project, run_id: &str) -> Option<Snapshot> {
    let bytes = file::read_bounded(&path(world, project).ok()?, LARGEST).ok()??;
    let record: Record = serde_json::from_slice(&bytes).ok()?;
    let tasks = tasks::parse(&record.source, record.text.as_bytes()).ok()?;
    (record.rules.run_id == run_id).then_some(Snapshot { rules: record.rules, tasks })
}

/// After a run.
pub fn forget(world: &World, project: &Project) {
    if let Ok(path) = path(world, project) {
        let _ = std::fs::remove_file(path);
    }
}
