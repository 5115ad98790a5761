//! An exclusive lock on a file. A project's state is locked by a sidecar file that is never renamed or removed.
//!
//! The operating system drops the lock with its holder, so a killed process blocks no other.

use crate::store::file::{Privacy, creating, ensure_regular};
use crate::store::hinted::Hinted;
use crate::store::world::Instant;
use anyhow::{Context, Result, bail};
use fs2::FileExt;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

const LOCK_DEADLINE: Duration = Duration::from_secs(2);
const FIRST_POLL: Duration = Duration::from_millis(1);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(25);

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    pub fn acquire(path: &Path) -> Result<Lock> {
        Lock::acquire_unless(path, || false)?.ok_or_else(|| {
            let (path, limit) = (path.display(), LOCK_DEADLINE.as_secs());
            let what =
                format!("could not lock {path}: another Ralph process has held it for more than {limit}s");
            Hinted::error(what, "try again; if this repeats, see `lock` in `ralph doctor`")
        })
    }

    /// Acquires the lock as [`Lock::acquire`] does. Returns `None` if the time is over, or as soon as another process has
    /// the lock and `refused` returns true.
    pub fn acquire_unless(path: &Path, refused: impl Fn() -> bool) -> Result<Option<Lock>> {
        let open = creating(Privacy::Private).read(true).write(true).create(true).truncate(false).open(path);
        let file = open.with_context(|| format!("could not open the lock {}", path.display()))?;
        ensure_regular(path, &file)?;
        let began = Instant::now();
        let mut poll = FIRST_POLL;
        loop {
            match FileExt::try_lock_exclusive(&file) {
                Ok(()) => return Ok(Some(Lock(file))),
                Err(error) if error.kind() == fs2::lock_contended_error().kind() => {}
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("this file system cannot lock {}", path.display()));
                }
            }
            if refused() || began.elapsed() >= LOCK_DEADLINE {
                return Ok(None);
            }
            std::thread::sleep(poll);
            poll = (poll * 2).min(MAX_POLL_INTERVAL);
        }
    }

    /// Returns whether a process has this lock, without waiting for it. The look keeps no other look out.
    pub fn is_held(path: &Path) -> bool {
        let contended = |error: std::io::Error| error.kind() == fs2::lock_contended_error().kind();
        File::open(path).is_ok_and(|file| FileExt::try_lock_shared(&file).is_err_and(contended))
    }

    /// Gives the lock back, also if a process that is just being started has a copy of our handle.
    pub fn release(&self) {
        let _ = FileExt::unlock(&self.0);
    }

    /// Returns the locked file. Where locks are mandatory, only this handle may read and write it.
    pub fn file(&self) -> &File {
        &self.0
    }

    /// Checks, on a temporary file, that a lock in this folder keeps a second one out.
    pub fn check_locking(dir: &Path) -> Result<()> {
        let path = dir.join(format!(".ralph-lock-{:016x}", crate::store::world::unique() as u64));
        let result = check_locking_on(&path);
        let _ = std::fs::remove_file(&path);
        result
    }
}

fn check_locking_on(path: &Path) -> Result<()> {
    let first = Lock::acquire(path)?;
    let second = File::open(path).with_context(|| format!("could not open {}", path.display()))?;
    if FileExt::try_lock_exclusive(&second).is_ok() {
        bail!("locks do not work on this file system: two processes got {} at a time", path.display());
    }
    drop(first);
    FileExt::try_lock_exclusive(&second).with_context(|| {
        format!("locks do not work on this file system: {} was not released", path.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locking_check_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        Lock::check_locking(dir.path()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(Lock::check_locking(&dir.path().join("gone")).is_err());
    }
}
