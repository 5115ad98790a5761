//! The file of the official ralph-loop plugin: read, and moved aside so that two loops do not fight over one session.
//! The plugin goes by the file's name alone, so under another name it is off; nothing of it is lost.

use super::file;
use super::project::Project;
use crate::core::time::Stamp;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

pub const NAME: &str = "ralph-loop.local.md";
const LARGEST: u64 = 1 << 20;

/// Where the plugin's file is: in the project, or in the folder of it that the client was launched in.
pub fn path(project: &Project, working_dir: &Path) -> Option<PathBuf> {
    let folders = [project.root.as_path(), working_dir];
    let paths = folders.into_iter().filter(|folder| folder.starts_with(&project.root));
    paths.map(|folder| folder.join(".claude").join(NAME)).find(|path| path.symlink_metadata().is_ok())
}

pub fn read(project: &Project, path: &Path) -> Result<String> {
    let real = project.resolve(path)?;
    let bytes = file::read_bounded(&real, LARGEST)?.unwrap_or_default();
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => bail!("{} is not text (UTF-8)", path.display()),
    }
}

/// Gives the file a name that the plugin does not look for, and returns it.
pub fn move_aside(path: &Path, now: Stamp) -> Result<PathBuf> {
    let name = |number: u32| {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        path.with_file_name(format!("ralph-loop.imported-{}{number}.local.md", now.compact()))
    };
    let aside = (1..1000).map(name).find(|path| path.symlink_metadata().is_err());
    let aside =
        aside.with_context(|| format!("{} cannot be moved aside: every name is taken", path.display()))?;
    fs::rename(path, &aside).with_context(|| {
        format!("{} could not be moved aside, so nothing was started: two loops would fight", path.display())
    })?;
    file::sync_dir(&aside);
    Ok(aside)
}

/// Undoes it, where the loop that was to take over could not be kept.
pub fn put_back(path: &Path, aside: &Path) {
    let _ = fs::rename(aside, path);
}
