//! What Ralph has written for this user over time, by name: only that is ever removed, whatever else is in the folders.

use super::world::World;
use super::{armed, file, project::Project};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Everything of ours in the data folder. `install.lock` goes last: it is held while the rest goes.
const DATA: [&str; 12] = [
    "sessions",
    "circuit",
    "history",
    "trust",
    "scan",
    "calls",
    "prompts",
    "held",
    "handoff",
    "runs",
    "stop-all",
    "install.lock",
];
const CONFIG: [&str; 1] = ["config.json"];
/// What may be of ours in a project.
const IN_PROJECTS: [&str; 5] = [
    ".claude/ralph-state.json",
    ".claude/ralph-state.lock",
    ".claude/ralph-config.json",
    "ralph",
    "ralph-archive",
];
const LARGEST: u64 = 64 << 20;

/// What became of one folder of ours.
#[derive(Debug, Default)]
pub struct Removed {
    pub gone: Vec<PathBuf>,
    /// Entries that are not ours, for whose sake the folder stays.
    pub left: Vec<PathBuf>,
}

/// Removes our records and the user's own settings of ours.
pub fn purge(world: &World) -> Result<Removed> {
    let mut removed = Removed::default();
    remove_from(world.data_dir()?, &DATA, &mut removed)?;
    if let Some(folder) = world.user_config().as_deref().and_then(Path::parent) {
        remove_from(folder, &CONFIG, &mut removed)?;
    }
    Ok(removed)
}

/// Where nothing but the lock of an installation is left, the data folder goes with it.
pub fn tidy(world: &World) -> Result<()> {
    let folder = world.data_dir()?;
    let lock = folder.join("install.lock");
    if entries(folder).iter().all(|path| *path == lock) {
        remove_from(folder, &["install.lock"], &mut Removed::default())?;
    }
    Ok(())
}

fn remove_from(folder: &Path, names: &[&str], removed: &mut Removed) -> Result<()> {
    for name in names {
        let path = folder.join(name);
        let Ok(meta) = path.symlink_metadata() else { continue };
        let gone = if meta.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        gone.with_context(|| format!("could not remove {}", path.display()))?;
        removed.gone.push(path);
    }
    let left = entries(folder);
    if left.is_empty() && folder.is_dir() && std::fs::remove_dir(folder).is_ok() {
        removed.gone.push(folder.to_owned());
    }
    removed.left.extend(left);
    Ok(())
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// Projects this user's records know of, each with the files of ours that lie in it.
pub fn in_projects(world: &World) -> Vec<PathBuf> {
    let mut roots: BTreeSet<PathBuf> =
        armed::projects(world).into_iter().map(|project| project.root).collect();
    for kind in ["history", "trust", "circuit"] {
        let folder = world.data_dir().map(|dir| dir.join(kind)).unwrap_or_default();
        roots.extend(entries(&folder).iter().flat_map(|path| projects_named_in(path)));
    }
    let files = |root: &PathBuf| {
        let project = Project { root: root.clone() };
        IN_PROJECTS
            .map(|name| project.root.join(name))
            .into_iter()
            .filter(|path| path.symlink_metadata().is_ok())
    };
    roots.iter().flat_map(files).collect()
}

/// The `project` of each line, or of the one document, in a file of ours.
fn projects_named_in(path: &Path) -> Vec<PathBuf> {
    let bytes = file::read_bounded(path, LARGEST).ok().flatten().unwrap_or_default();
    let named = |json: &[u8]| {
        let value: serde_json::Value = serde_json::from_slice(json).ok()?;
        value["project"].as_str().map(PathBuf::from)
    };
    match named(&bytes) {
        Some(project) => vec![project],
        None => bytes.split(|byte| *byte == b'\n').filter_map(named).collect(),
    }
}
