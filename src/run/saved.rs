//! The last run of a project as the user left it, so that it can be continued: its record, its whole prompt (which may
//! be too long for the state), its agent and its options. All of it was given by the user, so it is saved in the
//! user's data folder, never in the project. A completed run is forgotten.

use super::agent::Agent;
use super::target::Target;
use super::{Context, OnLimit, RunPlan};
use crate::core::outcome::Outcome;
use crate::core::record::{ArmedLoop, StoredLoop};
use crate::store::file::{self, Privacy};
use crate::store::project::Project;
use crate::store::world::World;
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

const MAX_FILE_BYTES: u64 = 64 << 20;

/// A run that can be continued.
#[derive(Debug, Serialize, Deserialize)]
pub struct Saved {
    pub run: StoredLoop,
    pub commands: Map<String, Value>,
    pub options: RunOptions,
    /// The conversation to continue, and its cost so far.
    #[serde(default)]
    pub conversation: Option<(String, f64)>,
}

/// How a run was asked to work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunOptions {
    pub agent: Agent,
    pub target: Target,
    pub context: Context,
    pub on_limit: OnLimit,
    pub skip_review: bool,
    /// The file that the prompt was read from.
    #[serde(default)]
    pub prompt_file: Option<PathBuf>,
}

fn path(world: &World, project: &Project, extension: &str) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("prompts").join(format!("{}.{extension}", project.key())))
}

/// Saves the plan of a run that begins or continues.
pub fn save(world: &World, project: &Project, plan: &RunPlan) -> Result<()> {
    file::create_dir(&world.data_dir()?.join("prompts"))?;
    file::replace(&path(world, project, "md")?, plan.task.as_bytes(), Privacy::Private)?;
    update(world, project, plan, &plan.run)
}

/// Saves the run as it is after an iteration.
pub fn update(world: &World, project: &Project, plan: &RunPlan, run: &ArmedLoop) -> Result<()> {
    let saved = Saved {
        run: StoredLoop::clone(run),
        commands: run.commands.clone(),
        options: plan.options.clone(),
        conversation: plan.conversation.clone(),
    };
    file::replace_unsynced(&path(world, project, "json")?, &serde_json::to_vec(&saved)?)
}

pub fn forget(world: &World, project: &Project) {
    for path in ["json", "md"].into_iter().filter_map(|extension| path(world, project, extension).ok()) {
        let _ = std::fs::remove_file(path);
    }
}

/// Returns the last run of this project, if it did not complete. A record that cannot be read is an error: another run
/// in its place would have none of its checks.
pub fn unfinished(world: &World, project: &Project) -> Result<Option<Saved>> {
    let path = path(world, project, "json")?;
    let Some(bytes) = file::read_bounded(&path, MAX_FILE_BYTES)? else { return Ok(None) };
    let saved: Saved =
        serde_json::from_slice(&bytes).with_context(|| format!("{} is not valid", path.display()))?;
    Ok(Some(saved).filter(|saved| saved.run.outcome != Some(Outcome::Complete)))
}

pub fn prompt(world: &World, project: &Project) -> Option<String> {
    String::from_utf8(file::read_bounded(&path(world, project, "md").ok()?, MAX_FILE_BYTES).ok()??).ok()
}
