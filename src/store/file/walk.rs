//! Lists folders.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Returns the entries of a folder, sorted; none if it cannot be read.
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    list(folder).unwrap_or_default()
}

/// Returns the entries of a folder, sorted; none if there is no folder.
pub fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = || format!("could not read the folder {}", folder.display());
    let listed = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.with_context(unreadable)?,
    };
    let paths: std::io::Result<Vec<_>> = listed.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.with_context(unreadable)?;
    paths.sort();
    Ok(paths)
}

/// Returns the path of every file below a folder, relative to it and sorted. Links are listed, not followed.
pub fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut folders, mut files) = (vec![PathBuf::new()], Vec::new());
    while let Some(below) = folders.pop() {
        let path = folder.join(&below);
        let unreadable = || format!("could not read the folder {}", path.display());
        for entry in std::fs::read_dir(&path).with_context(unreadable)? {
            let entry = entry.with_context(unreadable)?;
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let list = if is_folder { &mut folders } else { &mut files };
            list.push(below.join(entry.file_name()));
        }
    }
    files.sort();
    Ok(files)
}
