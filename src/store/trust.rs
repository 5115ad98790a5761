//! Which commands of a project's own file this user lets it run. They are kept to the letter in the user's
//! folder, under the project's real path: another text, another project or another user starts from nothing.

use super::file::{self, Privacy};
use super::project::Project;
use super::world::World;
use crate::core::time::Stamp;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

const LARGEST: u64 = 4 << 20;

/// What was trusted in one project.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Trusted {
    project: String,
    /// For people.
    #[serde(default)]
    trusted_at: Stamp,
    /// By settings key, as the file said it.
    commands: Map<String, Value>,
}

impl Trusted {
    /// Whether the user trusted exactly this.
    pub fn allows(&self, key: &str, value: &Value) -> bool {
        self.commands.get(key) == Some(value)
    }
}

/// What is trusted here; nothing, where the record is missing, damaged or another project's.
pub fn load(world: &World, project: &Project) -> Trusted {
    let read = || -> Option<Trusted> {
        let bytes = file::read_bounded(&path(world.data_dir().ok()?, project), LARGEST).ok()??;
        let trusted: Trusted = serde_json::from_slice(&bytes).ok()?;
        (trusted.project == project.real_root().to_string_lossy()).then_some(trusted)
    };
    read().unwrap_or_default()
}

/// One question, one look; who has several loads once.
pub fn allows(world: &World, project: &Project, key: &str, value: &Value) -> bool {
    load(world, project).allows(key, value)
}

/// From now on these are trusted here, and nothing else.
pub fn grant(world: &World, project: &Project, commands: Map<String, Value>) -> Result<()> {
    let path = path(world.data_dir()?, project);
    let root = project.real_root().to_string_lossy().into_owned();
    let trusted = Trusted { project: root, trusted_at: world.now, commands };
    file::create_dir(path.parent().unwrap_or(&path))?;
    file::replace(&path, serde_json::to_string_pretty(&trusted)?.as_bytes(), Privacy::Private)
}

/// Forgets it all; whether there was anything.
pub fn revoke(world: &World, project: &Project) -> Result<bool> {
    let path = path(world.data_dir()?, project);
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("could not remove {}", path.display())),
    }
}

fn path(data_dir: &Path, project: &Project) -> PathBuf {
    data_dir.join("trust").join(format!("{}.json", project.key()))
}
