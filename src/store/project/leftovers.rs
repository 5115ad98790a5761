//! The files that Ralph writes for a user, by name: only these are ever removed.

use crate::store::file::walk::entries;
use crate::store::user::armed;
use crate::store::{World, file};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The user's records in the data folder.
pub const RECORDS: [&str; 19] = [
    "sessions",
    "circuit",
    "history",
    "trust",
    "scan",
    "answers",
    "calls",
    "prompts",
    "held",
    "handoff",
    "figures",
    "ledger",
    "runs",
    "given",
    "asked",
    "replies",
    "last-notification.json",
    "report.html",
    "stop-all",
];
const LOCK: &str = "install.lock";
const IN_PROJECTS: [&str; 5] = [
    ".claude/ralph-state.json",
    ".claude/ralph-state.lock",
    ".claude/ralph-config.json",
    "ralph",
    "ralph-archive",
];
const MAX_BYTES: u64 = 64 << 20;

#[derive(Debug, Default)]
pub struct Removed {
    pub removed: Vec<PathBuf>,
    /// Entries that are not ours; their folder stays.
    pub kept: Vec<PathBuf>,
}

/// Removes the user's records and settings.
pub fn purge(world: &World) -> Result<Removed> {
    let mut removed = Removed::default();
    // The lock is held by the caller, so it goes last.
    let names = [&RECORDS[..], &[LOCK]].concat();
    remove_from(world.data_dir()?, &names, &mut removed)?;
    if let Some(folder) = world.user_config().as_deref().and_then(Path::parent) {
        remove_from(folder, &["config.json"], &mut removed)?;
    }
    Ok(removed)
}

/// Removes the data folder if only the lock is left in it.
pub fn remove_empty_data(world: &World) -> Result<()> {
    let folder = world.data_dir()?;
    if entries(folder).iter().all(|path| path.ends_with(LOCK)) {
        remove_from(folder, &[LOCK], &mut Removed::default())?;
    }
    Ok(())
}

fn remove_from(folder: &Path, names: &[&str], removed: &mut Removed) -> Result<()> {
    for path in names.iter().map(|name| folder.join(name)) {
        let Ok(meta) = path.symlink_metadata() else { continue };
        let done = if meta.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        done.with_context(|| format!("could not remove {}", path.display()))?;
        removed.removed.push(path);
    }
    // Only succeeds if the folder is empty.
    if std::fs::remove_dir(folder).is_ok() {
        removed.removed.push(folder.to_owned());
    }
    removed.kept.extend(entries(folder));
    Ok(())
}

/// Returns our files in the projects that the user's records name.
pub fn in_projects(world: &World) -> Vec<PathBuf> {
    let mut roots: BTreeSet<PathBuf> =
        armed::projects(world).into_iter().map(|project| project.root).collect();
    for kind in ["history", "trust", "circuit"] {
        let folder = world.data_dir().map(|dir| dir.join(kind)).unwrap_or_default();
        roots.extend(entries(&folder).iter().flat_map(|path| projects_named_in(path)));
    }
    let files = roots.iter().flat_map(|root| IN_PROJECTS.map(|name| root.join(name)));
    files.filter(|path| path.symlink_metadata().is_ok()).collect()
}

/// Returns the `project` of a record, or of each line of a history.
fn projects_named_in(path: &Path) -> Vec<PathBuf> {
    let bytes = file::read_bounded(path, MAX_BYTES).ok().flatten().unwrap_or_default();
    let project = |json: &[u8]| {
        let value: serde_json::Value = serde_json::from_slice(json).ok()?;
        value["project"].as_str().map(PathBuf::from)
    };
    match project(&bytes) {
        Some(project) => vec![project],
        None => bytes.split(|byte| *byte == b'\n').filter_map(project).collect(),
    }
}
