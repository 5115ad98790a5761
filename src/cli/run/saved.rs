//! What a continued run needs: its whole prompt, which may be too long for the state, and its agent. Both were given by
//! the user, so they are saved in the user's data folder, never in the project.

use crate::cli::{Project, World};
use crate::run::agent::Agent;
use crate::run::target::Target;
use crate::store::file::{self, Privacy};
use anyhow::Result;
use std::path::PathBuf;

const MAX_FILE_BYTES: u64 = 64 << 20;

fn path(world: &World, project: &Project, extension: &str) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("prompts").join(format!("{}.{extension}", project.key())))
}

pub fn save(world: &World, project: &Project, prompt: &str, agent: &Agent, target: &Target) -> Result<()> {
    let path = |extension| path(world, project, extension);
    file::create_dir(&world.data_dir()?.join("prompts"))?;
    file::replace(&path("md")?, prompt.as_bytes(), Privacy::Private)?;
    file::replace(&path("json")?, &serde_json::to_vec(&(agent, target))?, Privacy::Private)
}

fn read(world: &World, project: &Project, extension: &str) -> Option<Vec<u8>> {
    file::read_bounded(&path(world, project, extension).ok()?, MAX_FILE_BYTES).ok()?
}

pub fn prompt(world: &World, project: &Project) -> Option<String> {
    String::from_utf8(read(world, project, "md")?).ok()
}

pub fn agent(world: &World, project: &Project) -> Option<(Agent, Target)> {
    serde_json::from_slice(&read(world, project, "json")?).ok()
}
