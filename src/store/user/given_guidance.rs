//! What this user encouraged, forbade and allowed in a project. The state file holds the same entries with what became of
//! them, but anyone who can write the project can write it: an entry counts if it is recorded here, and only then.

use crate::core::guidance::{self, Guidance};
use crate::store::file;
use crate::store::project::Project;
use crate::store::state::{Document, Locked};
use crate::store::world::World;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

const MAX_FILE_BYTES: u64 = 8 << 20;

#[derive(Default, Serialize, Deserialize)]
struct Record {
    project: String,
    guidance: Guidance,
}

fn path(world: &World, project: &Project) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("given").join(format!("{}.json", project.key())))
}

/// Returns what was recorded: nothing if there is no record. One that cannot be read is an error, because the loop
/// would continue without the user's guidance.
fn load(world: &World, project: &Project) -> Result<Guidance> {
    let path = path(world, project)?;
    let Some(bytes) = file::read_bounded(&path, MAX_FILE_BYTES)? else { return Ok(Guidance::default()) };
    let unusable = || format!("{} is damaged: remove it, then run `ralph-guidance adopt`", path.display());
    let record: Record = file::parse_json(&bytes).with_context(unusable)?;
    let is_here = record.project == project.real_root().to_string_lossy();
    Ok(if is_here { record.guidance } else { Guidance::default() })
}

fn write(world: &World, project: &Project, guidance: Guidance) -> Result<()> {
    let path = path(world, project)?;
    if guidance.is_empty() {
        return file::remove(&path);
    }
    let project = project.real_root().to_string_lossy().into_owned();
    file::replace_private(&path, serde_json::to_string_pretty(&Record { project, guidance })?.as_bytes())
}

/// Returns the guidance that this user gave. The record has the entries, the state what became of them; what else the state
/// has is set apart.
pub fn guidance(world: &World, project: &Project, document: &Document) -> Result<Guidance> {
    let record = document.given().map_or_else(|| load(world, project), |given| Ok(given.clone()))?;
    Ok(Guidance::recorded(&record, document.stated_guidance()))
}

/// Records the entries of the document beside those that are recorded already. Called before the state is saved.
pub fn include(world: &World, project: &Project, document: &Document) -> Result<()> {
    let Some(given) = document.given() else { return Ok(()) };
    let known = load(world, project)?;
    let mut all = known.clone();
    all.include(given);
    if all == known { Ok(()) } else { write(world, project, all) }
}

/// Drops the record of what the document no longer has. Called after the state was saved: killed in between or without
/// success, the entry is still there, and is dropped and told again.
pub fn prune(world: &World, project: &Project, document: &Document) {
    let _ = drop_from_record(world, project, document);
}

fn drop_from_record(world: &World, project: &Project, document: &Document) -> Result<()> {
    match document.given() {
        Some(given) if load(world, project)? != *given => write(world, project, given.clone()),
        _ => Ok(()),
    }
}

/// Saves what the user gives and takes back, in the record and in the state.
pub fn save(world: &World, project: &Project, state: &mut Locked, guidance: &Guidance) -> Result<()> {
    state.document.set_guidance(guidance)?;
    include(world, project, &state.document)?;
    state.save()?;
    drop_from_record(world, project, &state.document)
}

/// Names the guidance that the state had lost.
pub fn restored_note(project: &Project, guidance: &Guidance) -> Option<String> {
    guidance::words::restored(&guidance.restored, &project.state().display().to_string())
}

/// Names the guidance in the state that this user did not give.
pub fn foreign_note(world: &World, project: &Project, document: &Document) -> Option<String> {
    let guidance = guidance(world, project, document).ok()?;
    guidance::words::foreign(&guidance.foreign, &project.state().display().to_string())
}
