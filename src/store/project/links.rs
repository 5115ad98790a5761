//! The symbolic links below a project that this user allowed, each with where it leads. They are kept in the user's
//! folder by the project's real path, so that no repository can allow its own, and a link that leads elsewhere now is
//! not allowed any more.

use super::Project;
use crate::store::{file, world};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const MAX_RECORD_BYTES: u64 = 1 << 20;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    project: PathBuf,
    /// Where each link leads, by its path below the project.
    links: BTreeMap<PathBuf, PathBuf>,
}

/// Returns where a link leads, if the user allowed it to lead there.
pub fn target(project: &Project, link: &Path) -> Option<PathBuf> {
    // Asked only once a link was found, so the ordinary way pays nothing.
    let links = load(project);
    let allowed = links.get(link.strip_prefix(&project.root).ok()?)?;
    link.canonicalize().ok().filter(|target| target == allowed)
}

/// Returns the links that are allowed here.
pub fn load(project: &Project) -> BTreeMap<PathBuf, PathBuf> {
    let record = path(project).ok().and_then(|path| file::read_json::<Record>(&path, MAX_RECORD_BYTES));
    record.filter(|record| record.project == project.real_root()).unwrap_or_default().links
}

/// Allows a link to lead where it leads now. Returns its path below the project, and its target.
pub fn allow(project: &Project, link: &Path) -> Result<(PathBuf, PathBuf)> {
    let (parent, name) = (link.parent().and_then(|parent| parent.canonicalize().ok()), link.file_name());
    let place = parent.zip(name).map(|(parent, name)| parent.join(name));
    let below = place.as_ref().and_then(|place| place.strip_prefix(project.real_root()).ok());
    let below = below
        .with_context(|| format!("{} is not in the project {}", link.display(), project.root.display()))?;
    ensure!(link.is_symlink(), "{} is not a symbolic link", link.display());
    let target = link.canonicalize().with_context(|| format!("{} leads nowhere", link.display()))?;
    let mut links = load(project);
    links.insert(below.to_owned(), target.clone());
    let record = Record { project: project.real_root(), links };
    file::replace_private(&path(project)?, serde_json::to_string_pretty(&record)?.as_bytes())?;
    Ok((below.to_owned(), target))
}

/// Withdraws every link of this project. Returns whether there was any.
pub fn revoke(project: &Project) -> Result<bool> {
    let path = path(project)?;
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("could not remove {}", path.display())),
    }
}

fn path(project: &Project) -> Result<PathBuf> {
    let folder = world::data_dir().context("no data folder: set HOME or RALPH_DATA_DIR")?;
    Ok(folder.join("trust").join(format!("{}-links.json", project.key())))
}
