//! What a run has to know when it goes on: its whole prompt, which may be too long for the state, and the agent it
//! was given. Both are the user's word, so they are kept in the user's own folder, never in the project's.

use super::failure::Failure;
use crate::run::agent::Agent;
use crate::run::target::Target;
use crate::store::file::{self, Privacy};
use crate::store::project::Project;
use crate::store::world::World;
use std::path::PathBuf;

const LARGEST: u64 = 64 << 20;

fn path(world: &World, project: &Project, end: &str) -> Option<PathBuf> {
    Some(world.data_dir().ok()?.join("prompts").join(format!("{}.{end}", project.key())))
}

pub fn keep(
    world: &World,
    project: &Project,
    task: &str,
    agent: &Agent,
    target: &Target,
) -> Result<(), Failure> {
    let (Some(prompt), Some(order)) = (path(world, project, "md"), path(world, project, "json")) else {
        return Ok(());
    };
    prompt.parent().map_or(Ok(()), file::create_dir)?;
    file::replace(&prompt, task.as_bytes(), Privacy::Private)?;
    let agent = serde_json::to_vec(&(agent, target)).map_err(anyhow::Error::from)?;
    Ok(file::replace(&order, &agent, Privacy::Private)?)
}

pub fn prompt(world: &World, project: &Project) -> Option<String> {
    let bytes = file::read_bounded(&path(world, project, "md")?, LARGEST).ok()??;
    String::from_utf8(bytes).ok()
}

pub fn agent(world: &World, project: &Project) -> Option<(Agent, Target)> {
    let bytes = file::read_bounded(&path(world, project, "json")?, LARGEST).ok()??;
    serde_json::from_slice(&bytes).ok()
}
