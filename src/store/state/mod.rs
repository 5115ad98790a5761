//! `.claude/ralph-state.json`: read by anyone, written only under its lock.

pub mod document;
pub mod ending;
pub mod expiry;
pub mod question;
pub mod stop;

pub use document::{Document, MAX_SESSION_ID_BYTES, usable_session_id};

use super::file::lock::Lock;
use super::file::{self, Privacy};
use super::project::Project;
use crate::core::time::Stamp;
use anyhow::{Context, Result};
use std::fmt;
use std::path::{Path, PathBuf};

pub const VERSION: u64 = 1;
const MAX_STATE_BYTES: u64 = 64 << 20;

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
                "{} was written by a newer Ralph (version {version}, this one knows {VERSION}): upgrade this one",
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
    let path = project.resolve(&project.state())?;
    let Some(bytes) = file::read_bounded(&path, MAX_STATE_BYTES)? else { return Ok(None) };
    match Document::parse(&bytes) {
        Ok(document) => Ok(Some(document)),
        Err(error) => Err(StateError::Damaged(path, error.to_string())),
    }
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
    /// Locks and loads. A damaged file is moved aside, never deleted; the state then starts empty.
    pub fn open(project: &Project, now: Stamp) -> Result<Locked, StateError> {
        let dir = project.resolve(&project.claude_dir()).map(|_| project.claude_dir())?;
        file::create_shared_dir(&dir)?;
        let lock = Lock::acquire(&project.resolve(&project.lock())?)?;
        let path = project.resolve(&project.state())?;
        let (document, moved_aside) = match peek(project) {
            Err(StateError::Damaged(path, why)) => (None, Some(move_aside(&path, &why, now)?)),
            document => (document?, None),
        };
        let document = document.unwrap_or_default();
        if let Some(version) = document.version().filter(|version| *version > VERSION) {
            return Err(StateError::Newer(path, version));
        }
        Ok(Locked { document, moved_aside, path, _lock: lock })
    }

    /// Writes the document if it changed.
    pub fn save(&mut self) -> Result<()> {
        self.save_by(file::replace_locked)
    }

    /// Like `save`, without syncing the directory: after a power cut the file before may come back.
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

fn move_aside(path: &Path, why: &str, now: Stamp) -> Result<String> {
    let name = format!("ralph-state.json.corrupt-{}", now.compact());
    let aside = file::free_name(|more| path.with_file_name(format!("{name}{more}")));
    std::fs::rename(path, &aside)
        .with_context(|| format!("could not move the damaged {} aside", path.display()))?;
    Ok(format!("{} was damaged ({why}) and is now {}", path.display(), aside.display()))
}
