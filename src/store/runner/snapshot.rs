//! The task list as it was before an iteration of the runner. It is in the user's data folder, which the agent does not
//! reach by working in the project, so its changes can be compared with it.

use crate::core::tasks::{Mode, TaskList, TaskSource, mode};
use crate::store::{Project, World, file, tasks};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

const MAX_FILE_BYTES: u64 = 64 << 20;

/// The settings of the run that its task list depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRules {
    pub run_id: String,
    pub skip_review: bool,
    /// 0 is no cap.
    pub review_cap: u64,
}

#[derive(Serialize, Deserialize)]
struct Record {
    #[serde(flatten)]
    rules: TaskRules,
    source: TaskSource,
    /// The file's text, in its own format.
    text: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TaskListSnapshot {
    pub rules: TaskRules,
    pub tasks: TaskList,
    /// The file's text, in its own format; empty if there was no file.
    pub text: String,
}

impl TaskListSnapshot {
    pub fn mode(&self) -> Mode {
        mode(&self.tasks, self.rules.skip_review)
    }
}

fn path(world: &World, project: &Project) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("runs").join(format!("{}-tasks.json", project.key())))
}

/// Saves the task list as it is now and returns it, so that the iteration's mode comes from the very same text. If
/// there is no list, that is saved, so that one which the agent brings is compared with an empty one.
pub fn take(
    world: &World,
    project: &Project,
    source: &TaskSource,
    rules: &TaskRules,
) -> Result<Option<TaskListSnapshot>, Vec<String>> {
    if source.is_none() {
        forget(world, project);
        return Ok(None);
    }
    let bytes = tasks::bytes(project, source).map_err(|why| vec![format!("{} {why}", source.file)])?;
    let tasks = bytes.as_ref().map(|bytes| tasks::parse(source, bytes)).transpose()?;
    let save = || {
        let text = String::from_utf8(bytes.unwrap_or_default())?;
        let record = Record { rules: rules.clone(), source: source.clone(), text };
        file::replace_private(&path(world, project)?, serde_json::to_string(&record)?.as_bytes())?;
        Ok(record.text)
    };
    let text = save().map_err(|error: anyhow::Error| {
        vec![format!("could not save a snapshot of the task list: {error:#}")]
    })?;
    Ok(tasks.map(|tasks| TaskListSnapshot { rules: rules.clone(), tasks, text }))
}

/// Returns the newest snapshot of this run. One that cannot be read is an error: without it, the agent's changes would
/// not be judged.
pub fn load(world: &World, project: &Project, run_id: &str) -> Result<Option<TaskListSnapshot>> {
    let Ok(path) = path(world, project) else { return Ok(None) };
    let record: Option<Record> = file::read_record(&path, MAX_FILE_BYTES)?;
    let Some(Record { rules, source, text }) = record.filter(|record| record.rules.run_id == run_id) else {
        return Ok(None);
    };
    let tasks = match text.is_empty() {
        true => Some(TaskList::empty(source)),
        false => tasks::parse(&source, text.as_bytes()).ok(),
    };
    Ok(tasks.map(|tasks| TaskListSnapshot { rules, tasks, text }))
}

/// Removes the snapshot after a run.
pub fn forget(world: &World, project: &Project) {
    if let Ok(path) = path(world, project) {
        let _ = std::fs::remove_file(path);
    }
}
