//! What this user encouraged, forbade and allowed in a project. The state file holds the same entries with what became of
//! them, but anyone who can write the project can write it: an entry counts only if it is recorded here too.

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
    let record: Record = serde_json::from_slice(&bytes).with_context(unusable)?;
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

/// Returns the guidance in the state that this user gave, with the rest set apart. Without any, nothing is read.
pub fn guidance(world: &World, project: &Project, document: &Document) -> Result<Guidance> {
    let mut stated = document.stated_guidance();
    if !stated.is_empty() {
        stated.set_foreign_apart(&load(world, project)?);
    }
    Ok(stated)
}

/// Records these entries beside those that are recorded already.
pub fn include(world: &World, project: &Project, guidance: &Guidance) -> Result<()> {
    let known = load(world, project)?;
    let mut all = known.clone();
    all.include(&guidance.as_given());
    if all == known { Ok(()) } else { write(world, project, all) }
}

/// Saves what the user gives and takes back, in the record and in the state. In this order, every entry that is in the
/// state counts, whenever we are killed.
pub fn save(world: &World, project: &Project, state: &mut Locked, guidance: &Guidance) -> Result<()> {
    include(world, project, guidance)?;
    state.document.set_guidance(guidance)?;
    state.save()?;
    let given = guidance.as_given();
    if load(world, project)? == given { Ok(()) } else { write(world, project, given) }
}

/// Names the guidance in the state that this user did not give.
pub fn foreign_note(world: &World, project: &Project, document: &Document) -> Option<String> {
    let guidance = guidance(world, project, document).ok()?;
    guidance::foreign(&guidance.foreign, &project.state().display().to_string())
}
