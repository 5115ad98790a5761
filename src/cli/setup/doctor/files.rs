//! Checks that our files belong to the user, are private, and can be written and locked.

use super::{CheckContext, CheckNote, DoctorCheck};
use crate::cli::Failure;
use crate::store::file;
use crate::store::file::lock::Lock;
use crate::store::file::walk::entries;
use crate::store::project::leftovers::RECORDS;
use crate::store::state::{self, StateError};
use std::path::{Path, PathBuf};

const MAX_FILES: usize = 5000;

pub fn permissions(context: &CheckContext) -> DoctorCheck {
    let mut notes = Vec::new();
    let mut files = Vec::new();
    match context.world.data_dir() {
        Err(error) => {
            notes.push(CheckNote::failure(format!("{error:#}"), "set HOME or RALPH_DATA_DIR"));
        }
        Ok(dir) => {
            notes.extend(unwritable(dir));
            files.extend(dir.is_dir().then(|| dir.to_owned()));
            if is_visible(dir) {
                RECORDS.iter().for_each(|name| collect(&dir.join(name), &mut files));
            }
        }
    }
    let project = context.project;
    notes.extend(match state::peek(project) {
        Ok(Some(document)) if document.newer_than_us() => {
            let why = format!("{} is from a newer version of Ralph and read-only", project.state().display());
            vec![CheckNote::failure(why, state::UPGRADE)]
        }
        Ok(document) => {
            let hint = "correct the record in the file, or start a new loop in that session";
            let found = state::unreadable_loops(project, &document.unwrap_or_default());
            found.into_iter().map(|why| CheckNote::warning(why, hint)).collect()
        }
        Err(error @ StateError::Damaged(..)) => {
            let hint = "the next hook or start sets it aside and creates a new one";
            vec![CheckNote::warning(error.to_string(), hint)]
        }
        Err(error) => vec![CheckNote::failure(error.to_string(), "fix or remove it")],
    });
    for path in [project.state(), project.lock(), project.work_dir().join("logs")] {
        collect(&path, &mut files);
    }
    notes.extend(wrong_permissions(&files));
    let ok = match files.len() {
        0 => "none yet; the folders can be written".to_owned(),
        count => format!("private and writable ({count} checked)"),
    };
    DoctorCheck::of("files", notes, ok)
}

/// Tries the lock in the project and in the data folder.
pub fn lock(context: &CheckContext) -> DoctorCheck {
    let project = context.project;
    let mut notes = Vec::new();
    let data = context.world.data_dir().ok().map(Path::to_owned);
    // A folder behind a link is reported with the files.
    for dir in [project.folder(&project.claude_dir()).ok(), data].into_iter().flatten() {
        if let Some(Err(error)) = nearest(&dir).map(Lock::check_locking) {
            let hint = "keep the project and the data folder on a local, writable disk";
            notes.push(CheckNote::failure(format!("{error:#}"), hint));
        }
    }
    if notes.is_empty()
        && project.lock().is_file()
        && let Err(error) = project.file(&project.lock()).and_then(|path| Lock::acquire(&path))
    {
        notes.push(CheckNote::warning(
            Failure::from(error).message,
            "find the hook or ralph process that hangs, and end it",
        ));
    }
    notes.dedup();
    DoctorCheck::of("lock", notes, "works in the project and in the data folder")
}

/// Returns the folder, or the nearest one above it that exists.
fn nearest(path: &Path) -> Option<&Path> {
    path.ancestors().find(|dir| dir.is_dir())
}

fn unwritable(dir: &Path) -> Option<CheckNote> {
    let dir = nearest(dir)?;
    let error = file::check_writable(dir).err()?;
    let why = format!("cannot write to {}: {error}; loops cannot start", dir.display());
    Some(CheckNote::failure(why, "make it writable, or set RALPH_DATA_DIR to another folder"))
}

/// Collects a file, or a folder and its content. Links are not followed.
fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    let Ok(meta) = path.symlink_metadata() else { return };
    if files.len() >= MAX_FILES || meta.is_symlink() {
        return;
    }
    files.push(path.to_owned());
    if meta.is_dir() {
        entries(path).iter().for_each(|path| collect(path, files));
    }
}

/// Returns whether other users can read the file or enter the folder.
#[cfg(unix)]
fn is_visible(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0)
}

/// Returns false: on Windows the user's profile is private.
#[cfg(not(unix))]
fn is_visible(_: &Path) -> bool {
    false
}

#[cfg(unix)]
fn wrong_permissions(files: &[PathBuf]) -> Vec<CheckNote> {
    use crate::cli::setup::first_few;
    use std::os::unix::fs::MetadataExt;
    let me = rustix::process::geteuid().as_raw();
    let is_foreign = |path: &&PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.uid() != me);
    // A private folder hides its files, whatever their own permissions are.
    let is_open =
        |path: &&PathBuf| path.is_file() && is_visible(path) && path.parent().is_none_or(is_visible);
    let foreign: Vec<_> = files.iter().filter(is_foreign).collect();
    let open: Vec<_> = files.iter().filter(is_open).collect();
    let names = |paths: &[&PathBuf]| first_few(paths.iter().map(|path| path.display().to_string()));
    let mut notes = Vec::new();
    if let Some(first) = foreign.first() {
        let hint = format!("chown -R \"$(id -un)\" \"{}\"", first.display());
        notes.push(CheckNote::failure(format!("owned by another user: {}", names(&foreign)), hint));
    }
    if let Some(first) = open.first() {
        let hint = format!("chmod -R go-rwx \"{}\"", first.display());
        notes.push(CheckNote::warning(format!("readable by other users: {}", names(&open)), hint));
    }
    notes
}

#[cfg(not(unix))]
fn wrong_permissions(_: &[PathBuf]) -> Vec<CheckNote> {
    Vec::new()
}
