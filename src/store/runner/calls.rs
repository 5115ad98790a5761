//! The calls of the last hour in a project, for `run.calls_per_hour`. Kept beside the runs, so that a restart does not
//! evade the limit.

use crate::core::time::rate::Rate;
use crate::store::file;
use crate::store::project::Project;
use crate::store::world::World;
use anyhow::Result;
use std::path::PathBuf;

const MAX_FILE_BYTES: u64 = 1 << 20;

fn path(world: &World, project: &Project) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("calls").join(format!("{}.json", project.key())))
}

/// Returns the calls. The file is not synced, so a power cut may leave it empty: without a record in it there are none. One
/// that cannot be read is an error.
pub fn load(world: &World, project: &Project) -> Result<Rate> {
    let bytes = file::read_bounded(&path(world, project)?, MAX_FILE_BYTES)?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
}

pub fn save(world: &World, project: &Project, rate: &Rate) -> Result<()> {
    let path = path(world, project)?;
    file::create_dir(path.parent().unwrap_or(&path))?;
    file::replace_unsynced(&path, &serde_json::to_vec(rate)?)
}
