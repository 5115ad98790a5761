//! The state file of the official ralph-loop plugin. Renaming it disables the plugin's loop, so that two loops do not answer
//! the same Stop.

use crate::core::time::Stamp;
use crate::store::{Project, file};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

pub const NAME: &str = "ralph-loop.local.md";
const MAX_BYTES: u64 = 1 << 20;

/// Finds the file in the project, or in the folder of it in which Claude Code was started.
pub fn path(project: &Project, working_dir: &Path) -> Option<PathBuf> {
    let folders = [project.root.as_path(), working_dir];
    let paths = folders.into_iter().filter(|folder| folder.starts_with(&project.root));
    paths.map(|folder| folder.join(".claude").join(NAME)).find(|path| path.symlink_metadata().is_ok())
}

pub fn read(project: &Project, path: &Path) -> Result<String> {
    let bytes = project.read(path, MAX_BYTES)?.unwrap_or_default();
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => bail!("{} is not text (UTF-8)", path.display()),
    }
}

/// Renames the file so that the plugin does not find it, and returns the new path.
pub fn move_aside(project: &Project, path: &Path, now: Stamp) -> Result<PathBuf> {
    let path = &project.file(path)?;
    let name = |more: &str| format!("ralph-loop.imported-{}{more}.local.md", now.compact());
    let aside = file::free_name(|more| path.with_file_name(name(more)));
    fs::rename(path, &aside).with_context(|| {
        format!("could not rename {}; nothing was started, because two loops would conflict", path.display())
    })?;
    file::sync_dir(&aside);
    Ok(aside)
}

/// Restores the name, if the new loop could not be saved.
pub fn put_back(path: &Path, aside: &Path) {
    let _ = fs::rename(aside, path);
}
