//! The last run of a project as the user left it, so that it can be continued: its record, its whole prompt (which may
//! be too long for the state), its agent and its options. All of it was given by the user, so it is saved in the
//! user's data folder, never in the project. A completed run is forgotten.

use super::agent::Agent;
use super::process::target::Target;
use super::{Context, RunPlan, SESSION};
use crate::core::outcome::Outcome;
use crate::core::record::{ArmedLoop, StoredLoop};
use crate::store::file::{self, Backup};
use crate::store::project::Project;
use crate::store::runner::run_lock;
use crate::store::state::Document;
use crate::store::user::{armed, history};
use crate::store::world::World;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// A prompt of the largest size, in JSON.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// A run that can be continued.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedRun {
    pub run: StoredLoop,
    pub commands: Map<String, Value>,
    pub options: RunOptions,
    /// The conversation to continue, and its cost so far.
    #[serde(default)]
    pub conversation: Option<(String, f64)>,
    /// The whole prompt, in the same file as the run: a crash cannot leave one run with the prompt of another.
    #[serde(default)]
    pub prompt: Option<String>,
}

/// How a run was asked to work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunOptions {
    pub agent: Agent,
    pub target: Target,
    pub context: Context,
    pub skip_review: bool,
    /// The file that the prompt was read from.
    #[serde(default)]
    pub prompt_file: Option<PathBuf>,
}

fn path(world: &World, project: &Project) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("prompts").join(format!("{}.json", project.key())))
}

/// Saves the plan of a run that begins or continues.
pub fn save(world: &World, project: &Project, plan: &RunPlan) -> Result<()> {
    file::replace_private(&path(world, project)?, &bytes(plan, &plan.run)?)
}

/// Saves the run as it is after an iteration.
pub fn update(world: &World, project: &Project, plan: &RunPlan, run: &ArmedLoop) -> Result<()> {
    file::replace_unsynced(&path(world, project)?, &bytes(plan, run)?)
}

fn bytes(plan: &RunPlan, run: &ArmedLoop) -> Result<Vec<u8>> {
    Ok(serde_json::to_vec(&SavedRun {
        run: StoredLoop::clone(run),
        commands: run.commands.clone(),
        options: plan.options.clone(),
        conversation: plan.conversation.clone(),
        prompt: Some(plan.task.clone()),
    })?)
}

pub fn forget(world: &World, project: &Project) {
    let _ = path(world, project).and_then(|path| file::remove(&path));
}

/// Copies the current record, so that it can be restored if a start fails halfway.
pub fn backup(world: &World, project: &Project) -> Result<Backup> {
    Backup::of(path(world, project)?, MAX_FILE_BYTES)
}

/// Returns the last run of this project, if it did not complete. A record that cannot be read is an error: another run
/// in its place would have none of its checks.
pub fn unfinished(world: &World, project: &Project) -> Result<Option<SavedRun>> {
    let saved: Option<SavedRun> = file::read_record(&path(world, project)?, MAX_FILE_BYTES)?;
    let Some(saved) = saved else { return Ok(None) };
    // A runner may have died after it recorded the ending and before it forgot the run.
    let is_complete =
        |entry: &history::Run| entry.run_id == saved.run.run_id && entry.outcome == Outcome::Complete;
    let has_completed = saved.run.outcome == Some(Outcome::Complete)
        || history::runs(world, project)?.iter().any(is_complete);
    Ok(Some(saved).filter(|_| !has_completed))
}

/// Returns the run that a runner works on, or died over, if the state file does not have it: `git clean` removes that file,
/// and anyone who can write the project can.
pub fn lost(world: &World, project: &Project, document: &Document) -> Result<Option<ArmedLoop>> {
    let told = run_lock::holder(world, project).or_else(|| run_lock::left_behind(world, project));
    let Some(run_id) = told.map(|told| told.run_id).filter(|run_id| !run_id.is_empty()) else {
        return Ok(None);
    };
    if document.loop_of(SESSION).is_some_and(|run| run.run_id == run_id) {
        return Ok(None);
    }
    // The armed record has it as it was at its start, this one as it was after its last iteration.
    let saved: Option<SavedRun> = file::read_json(&path(world, project)?, MAX_FILE_BYTES);
    if let Some(saved) = saved.filter(|saved| saved.run.run_id == run_id)
        && let Some(run) = armed::attach(world, project, SESSION, saved.run)?
    {
        return Ok(Some(run));
    }
    Ok(armed::load_from_record(world, project, SESSION)?.filter(|run| run.run_id == run_id))
}
