//! Our files: for the user only, the user's own, writable; and the lock that keeps two hooks apart.

use super::Patient;
use crate::core::checkup::{Check, Note};
use crate::store::lock::Lock;
use crate::store::state::{self, StateError};
use std::path::{Path, PathBuf};

/// What the data folder holds of the user's; a plugin that is staged there too is for everybody.
const RECORDS: [&str; 11] = [
    "sessions", "circuit", "history", "trust", "scan", "calls", "prompts", "held", "handoff", "runs",
    "stop-all",
];
/// More than this is not gone through: where so many are right, the rest is too.
const MOST: usize = 5000;
/// So many are named, the others counted.
#[cfg(unix)]
const NAMED: usize = 3;

pub fn permissions(patient: &Patient) -> Check {
    let mut notes = Vec::new();
    let mut files = Vec::new();
    match patient.world.data_dir() {
        Err(error) => notes.push(Note::failure(format!("{error:#}"), "export HOME, or RALPH_DATA_DIR=DIR")),
        Ok(dir) => {
            notes.extend(writable(dir, "loops cannot be armed"));
            files.extend(dir.is_dir().then(|| dir.to_owned()));
            if seen_by_others(dir) {
                RECORDS.iter().for_each(|name| gather(&dir.join(name), &mut files));
            }
        }
    }
    let project = patient.project;
    match state::peek(project) {
        Ok(Some(document)) if document.newer_than_us() => {
            let why = format!(
                "{} was written by a newer Ralph: it is read, and not written",
                project.state().display()
            );
            notes.push(Note::failure(why, "upgrade this Ralph"));
        }
        Ok(_) => {}
        Err(error @ StateError::Damaged(..)) => {
            notes.push(Note::warning(
                error.to_string(),
                "the next hook or start moves it aside and begins anew",
            ));
        }
        Err(error) => notes.push(Note::failure(error.to_string(), "mend or remove it")),
    }
    gather(&project.state(), &mut files);
    gather(&project.lock(), &mut files);
    gather(&project.work_dir().join("logs"), &mut files);
    notes.extend(judged(&files));
    let well = match files.len() {
        0 => "nothing written yet, and room to write".to_owned(),
        count => format!("yours, for you only, and writable ({count} looked at)"),
    };
    Check::of("files", notes, well)
}

/// The lock is tried where it is taken: in the project, and in the user's folder.
pub fn lock(patient: &Patient) -> Check {
    let project = patient.project;
    let mut notes = Vec::new();
    let claude = project.claude_dir();
    let data = patient.world.data_dir().ok().map(Path::to_owned);
    for dir in [Some(claude), data].into_iter().flatten() {
        let Some(dir) = nearest(&dir) else { continue };
        if let Err(error) = Lock::prove(&dir) {
            notes.push(Note::failure(
                format!("{error:#}"),
                "keep the project and your data on a local, writable disk",
            ));
        }
    }
    if notes.is_empty()
        && project.lock().is_file()
        && let Err(error) = project.resolve(&project.lock()).and_then(|path| Lock::acquire(&path))
    {
        notes.push(Note::warning(format!("{error:#}"), "look for a hook or a ralph that hangs, and end it"));
    }
    notes.dedup();
    Check::of("lock", notes, "it keeps a second one out, in the project and in your data folder")
}

/// The folder itself, or the first above it that is there.
fn nearest(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|dir| dir.is_dir()).map(Path::to_owned)
}

/// Really tried, with a file that is gone again: permissions do not tell of a disk that is full or read-only.
fn writable(dir: &Path, consequence: &str) -> Option<Note> {
    let there = nearest(dir)?;
    let probe = there.join(format!(".ralph-doctor-{:016x}", crate::store::world::unique() as u64));
    let tried = std::fs::OpenOptions::new().write(true).create_new(true).open(&probe);
    let _ = std::fs::remove_file(&probe);
    let error = tried.err()?;
    let why = format!("{} cannot be written: {error}; {consequence}", there.display());
    Some(Note::failure(why, "make it yours and writable, or set RALPH_DATA_DIR to a folder that is"))
}

/// A file, or a folder and all in it. Links are not followed.
fn gather(path: &Path, into: &mut Vec<PathBuf>) {
    let Ok(meta) = path.symlink_metadata() else { return };
    if into.len() >= MOST || meta.is_symlink() {
        return;
    }
    into.push(path.to_owned());
    if meta.is_dir() {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.for_each(|entry| gather(&entry.path(), into));
    }
}

#[cfg(unix)]
fn seen_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0)
}

/// Who may read what is decided by the folder a user has for himself.
#[cfg(not(unix))]
fn seen_by_others(_: &Path) -> bool {
    false
}

#[cfg(unix)]
fn judged(files: &[PathBuf]) -> Vec<Note> {
    use std::os::unix::fs::MetadataExt;
    let me = rustix::process::geteuid().as_raw();
    let foreign = |path: &&PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.uid() != me);
    // What is in a folder that nobody else may enter is not seen, whatever its own permissions say.
    let hidden = |path: &Path| path.parent().is_some_and(|dir| !seen_by_others(dir));
    let open = |path: &&PathBuf| path.is_file() && seen_by_others(path) && !hidden(path);
    let mut notes = Vec::new();
    let foreign: Vec<_> = files.iter().filter(foreign).collect();
    if let Some((first, why)) = foreign.first().zip(told(&foreign, "belongs to another user")) {
        notes.push(Note::failure(why, format!("chown -R \"$(id -un)\" \"{}\"", first.display())));
    }
    let open: Vec<_> = files.iter().filter(open).collect();
    if let Some((first, why)) = open.first().zip(told(&open, "can be read by others")) {
        notes.push(Note::warning(why, format!("chmod -R go-rwx \"{}\"", first.display())));
    }
    notes
}

#[cfg(not(unix))]
fn judged(_: &[PathBuf]) -> Vec<Note> {
    Vec::new()
}

#[cfg(unix)]
fn told(paths: &[&PathBuf], what: &str) -> Option<String> {
    let named: Vec<_> = paths.iter().take(NAMED).map(|path| path.display().to_string()).collect();
    let more = paths.len().saturating_sub(NAMED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!paths.is_empty()).then(|| format!("{what}: {}{rest}", named.join(", ")))
}
