//! The commands of a project's own file that this user trusts. Their exact text is kept in the user's folder, by
//! the project's real path: another text, another project and another user start without trust.

use crate::core::time::Stamp;
use crate::store::{Project, World, file};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

const MAX_RECORD_BYTES: u64 = 4 << 20;

/// What was trusted in one project.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Trusted {
    project: String,
    /// For people who read the file.
    #[serde(default)]
    trusted_at: Stamp,
    /// Values by settings key, as the file gives them.
    commands: Map<String, Value>,
    /// Why the record could not be read; it then trusts nothing.
    #[serde(skip)]
    fault: Option<String>,
}

impl Trusted {
    /// Returns whether the user trusted exactly this value.
    pub fn allows(&self, key: &str, value: &Value) -> bool {
        self.commands.get(key) == Some(value)
    }

    /// Returns what to do about a command that is not trusted.
    pub fn hint(&self) -> String {
        self.hint_for("run")
    }

    /// Returns the hint for an entry that is not `run` but, for example, `used`.
    pub fn hint_for(&self, verb: &str) -> String {
        match &self.fault {
            Some(fault) => format!("is not {verb}: {fault}; `ralph trust` records it again"),
            None => format!("is not {verb} until you trust it with `ralph trust`"),
        }
    }
}

/// Loads what is trusted here: nothing if the record is missing, unreadable or of another project.
pub fn load(world: &World, project: &Project) -> Trusted {
    let Ok(path) = path(world, project) else { return Trusted::default() };
    let is_here = |trusted: &Trusted| trusted.project == project.real_root().to_string_lossy();
    match file::read_record(&path, MAX_RECORD_BYTES) {
        Ok(record) => record.filter(is_here).unwrap_or_default(),
        Err(error) => Trusted { fault: Some(format!("{error:#}")), ..Trusted::default() },
    }
}

/// Trusts these commands here, and no others.
pub fn grant(world: &World, project: &Project, commands: Map<String, Value>) -> Result<()> {
    if commands.is_empty() {
        return revoke(world, project).map(drop);
    }
    let root = project.real_root().to_string_lossy().into_owned();
    let trusted = Trusted { project: root, trusted_at: world.now, commands, fault: None };
    file::replace_private(&path(world, project)?, serde_json::to_string_pretty(&trusted)?.as_bytes())
}

/// Withdraws all trust in this project. Returns whether there was any.
pub fn revoke(world: &World, project: &Project) -> Result<bool> {
    let path = path(world, project)?;
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("could not remove {}", path.display())),
    }
}

fn path(world: &World, project: &Project) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("trust").join(format!("{}.json", project.key())))
}
