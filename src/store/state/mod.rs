//! `.claude/ralph-state.json`: read by anyone, written only under its lock.

pub mod document;
pub mod ending;
pub mod expiry;
mod fields;
pub mod question;
mod salvage;
pub mod stop;

pub use document::{Document, MAX_SESSION_ID_BYTES, usable_session_id};

use super::file::lock::Lock;
use super::file::{self, Privacy};
use super::project::Project;
use crate::core::text::clean;
use crate::core::time::Stamp;
use anyhow::{Context, Result};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub const VERSION: u64 = 1;
const MAX_STATE_BYTES: u64 = 24 << 20;
/// More damaged loops are counted, not named.
const MAX_NAMED: usize = 10;

/// The hint about a state that is too new.
pub const UPGRADE: &str = "upgrade Ralph";

#[derive(Debug)]
pub enum StateError {
    /// Written by a newer Ralph: may be read, must not be written.
    Newer(PathBuf, u64),
    /// Does not parse.
    Damaged(PathBuf, String),
    Other(anyhow::Error),
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateError::Newer(path, version) => write!(
                f,
                "{} was written by a newer version of Ralph (format {version}, this version supports {VERSION}); {UPGRADE}",
                path.display()
            ),
            StateError::Damaged(path, why) => write!(f, "{} is damaged: {why}", path.display()),
            StateError::Other(error) => write!(f, "{error:#}"),
        }
    }
}

impl std::error::Error for StateError {}

impl From<anyhow::Error> for StateError {
    fn from(error: anyhow::Error) -> Self {
        StateError::Other(error)
    }
}

/// Reads the state without the lock. Writes replace the file as a whole, so what is read is never torn.
pub fn peek(project: &Project) -> Result<Option<Document>, StateError> {
    read(&project.file(&project.state())?)
}

fn read(path: &Path) -> Result<Option<Document>, StateError> {
    let Some(bytes) = file::read_unlinked(path, MAX_STATE_BYTES)? else { return Ok(None) };
    match Document::parse(&bytes) {
        Ok(document) => Ok(Some(document)),
        Err(error) => Err(StateError::Damaged(path.to_owned(), error)),
    }
}

/// Says of each loop that cannot be read that it is there; the other loops are not affected.
pub fn unreadable_loops(project: &Project, document: &Document) -> Vec<String> {
    let path = project.state();
    let say = |session| {
        let session = clean::excerpt(session, 40);
        format!(
            "{}: the loop of session {session} is damaged; the other loops are not affected",
            path.display()
        )
    };
    let mut damaged = document.unreadable();
    let mut told: Vec<String> = damaged.by_ref().take(MAX_NAMED).map(say).collect();
    let more = damaged.count();
    if more > 0 {
        told.push(format!("{}: {more} more loops are damaged", path.display()));
    }
    told
}

/// What happened to damaged files, until the user is told: whatever fails after that, the program that prints last picks it
/// up.
static DAMAGE_NOTICES: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn pending_damage_notices() -> MutexGuard<'static, Vec<String>> {
    DAMAGE_NOTICES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns what happened to damaged files and is not in this text, for the user. It is returned once.
pub fn take_damage_notices(said: &str) -> Vec<String> {
    let mut notes = std::mem::take(&mut *pending_damage_notices());
    if !notes.is_empty() {
        // A text may be wrapped, or quoted as JSON.
        let folded = |text: &str| text.split_whitespace().collect::<String>();
        let said = folded(&said.replace("\\\"", "\""));
        notes.retain(|note| !said.contains(&folded(&clean::line(note))));
    }
    notes
}

/// The state under its lock, from load to save.
pub struct Locked {
    pub document: Document,
    /// What happened to a damaged file, for the user.
    pub moved_aside: Option<String>,
    path: PathBuf,
    _lock: Lock,
}

impl Locked {
    /// Locks and loads. A damaged file is moved aside, never deleted; the state then holds what can be saved of it.
    pub fn open(project: &Project, now: Stamp) -> Result<Locked, StateError> {
        let lock = project.file(&project.lock())?;
        file::create_shared_dir(lock.parent().unwrap_or(&lock))?;
        let lock = Lock::acquire(&lock)?;
        let path = project.file(&project.state())?;
        let (document, moved_aside) = match read(&path) {
            Err(StateError::Damaged(path, why)) => {
                let (document, told) = move_aside(&path, &why, now)?;
                pending_damage_notices().push(told.clone());
                (document, Some(told))
            }
            document => (document?, None),
        };
        let document = document.unwrap_or_default();
        if let Some(version) = document.version().filter(|version| *version > VERSION) {
            return Err(StateError::Newer(path, version));
        }
        Ok(Locked { document, moved_aside, path, _lock: lock })
    }

    /// Keeps a copy of the file if it holds something under this session id that cannot be read, before a new loop takes
    /// its place.
    pub fn keep_unreadable(&mut self, session: &str, now: Stamp) -> Result<()> {
        if self.document.is_unreadable(session) {
            let aside = aside(&self.path, now);
            file::copy(&self.path, &aside)?;
            let told = format!(
                "the loop of this session in {} was damaged; the damaged file is copied to {}",
                self.path.display(),
                aside.display()
            );
            self.moved_aside = Some(told);
        }
        Ok(())
    }

    /// Writes the document if it changed.
    pub fn save(&mut self) -> Result<()> {
        self.save_by(file::replace_locked)
    }

    /// Saves as `save` does, without syncing the directory: after a power cut the old file may come back.
    pub fn save_unsynced(&mut self) -> Result<()> {
        self.save_by(file::replace_locked_unsynced)
    }

    fn save_by(&mut self, write: impl Fn(&Path, &[u8], Privacy) -> Result<()>) -> Result<()> {
        if self.document.changed {
            write(&self.path, &self.document.write(), Privacy::Private)?;
            self.document.changed = false;
        }
        Ok(())
    }
}

fn aside(path: &Path, now: Stamp) -> PathBuf {
    let name = format!("ralph-state.json.corrupt-{}", now.compact());
    file::free_name(|more| path.with_file_name(format!("{name}{more}")))
}

/// Moves a damaged file aside, and writes what can be saved of it in its place. Returns that, and what to tell the user.
fn move_aside(path: &Path, why: &str, now: Stamp) -> Result<(Option<Document>, String)> {
    let aside = aside(path, now);
    let told = format!("{} was damaged ({why}) and is now {}", path.display(), aside.display());
    let bytes = file::read_unlinked(path, MAX_STATE_BYTES)?.unwrap_or_default();
    let Some(mut document) = salvage::salvage(&String::from_utf8_lossy(&bytes)) else {
        std::fs::rename(path, &aside)
            .with_context(|| format!("could not move the damaged {} aside", path.display()))?;
        return Ok((None, told));
    };
    // A copy: killed in between, the file is still there.
    file::copy(path, &aside)?;
    file::replace_locked(path, &document.write(), Privacy::Private)?;
    document.changed = false;
    Ok((Some(document), format!("{told}; the undamaged loops in it are kept")))
}
