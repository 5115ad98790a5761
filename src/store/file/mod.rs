//! Files written whole or not at all.

pub mod lock;
pub mod swap;
pub mod temporary;
pub mod walk;

use super::world;
use anyhow::{Context, Result};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Who may read a file we create.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Privacy {
    /// The user only.
    Private,
    /// Everyone the umask allows, or who could read it before.
    Shared,
}

/// Replaces `path` with `bytes`: a temporary file beside it, flushed to disk, then renamed.
pub fn replace(path: &Path, bytes: &[u8], privacy: Privacy) -> Result<()> {
    exchange(&beside(path, &format!("{:08x}", world::unique() as u32)), path, bytes, privacy)?;
    sync_dir(path);
    Ok(())
}

/// Like `replace`, for a caller who holds the lock on `path`: it overwrites what a killed writer left.
pub fn replace_locked(path: &Path, bytes: &[u8], privacy: Privacy) -> Result<()> {
    replace_locked_unsynced(path, bytes, privacy)?;
    sync_dir(path);
    Ok(())
}

/// Like `replace_locked`, without syncing the directory: after a power cut the file before may come back.
pub fn replace_locked_unsynced(path: &Path, bytes: &[u8], privacy: Privacy) -> Result<()> {
    let temporary = beside(path, "new");
    let _ = fs::remove_file(&temporary);
    exchange(&temporary, path, bytes, privacy)
}

/// Like `replace`, without waiting for the disk: for what can be made again.
pub fn replace_unsynced(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = beside(path, &format!("{:08x}", world::unique() as u32));
    let written = creating(Privacy::Private)
        .write(true)
        .create_new(true)
        .open(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written.with_context(|| format!("could not write {}", path.display()))
}

fn beside(path: &Path, mark: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{name}.tmp-{mark}"))
}

fn exchange(temporary: &Path, path: &Path, bytes: &[u8], privacy: Privacy) -> Result<()> {
    let before =
        fs::metadata(path).map(|meta| meta.permissions()).ok().filter(|_| privacy == Privacy::Shared);
    let written = write_new(temporary, bytes, privacy)
        .and_then(|()| before.map_or(Ok(()), |permissions| fs::set_permissions(temporary, permissions)))
        .and_then(|()| fs::rename(temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(temporary);
    }
    written.with_context(|| format!("could not write {}", path.display()))
}

fn write_new(path: &Path, bytes: &[u8], privacy: Privacy) -> std::io::Result<()> {
    let mut file = creating(privacy).write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Adds one line at the end, in a single write.
pub fn append_line(path: &Path, line: &str) -> Result<()> {
    let write = || {
        let mut file = creating(Privacy::Private).append(true).create(true).open(path)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()
    };
    write().with_context(|| format!("could not write {}", path.display()))
}

/// Creates a folder and its parents for the user only.
pub fn create_dir(path: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).with_context(|| format!("could not create the folder {}", path.display()))
}

/// Open options that create a file with the permissions asked for.
pub fn creating(privacy: Privacy) -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    if privacy == Privacy::Private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = privacy;
    options
}

/// Copies a file with its permissions, and returns once the copy is on the disk.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let copied = fs::copy(from, to);
    // Elsewhere a file that is open for reading cannot be flushed.
    #[cfg(unix)]
    let copied = copied.and_then(|_| File::open(to)?.sync_all());
    copied.map(drop).with_context(|| format!("could not copy {} to {}", from.display(), to.display()))
}

/// A rename is durable once its folder is. Where folders cannot be flushed the rename still happened.
pub fn sync_dir(path: &Path) {
    #[cfg(unix)]
    if let Some(Ok(dir)) = path.parent().map(File::open) {
        let _ = dir.sync_all();
    }
    #[cfg(not(unix))]
    let _ = path;
}

/// Reads at most `limit` bytes of a regular file; `None` where there is no file.
pub fn read_bounded(path: &Path, limit: u64) -> Result<Option<Vec<u8>>> {
    use std::io::Read;
    // Asked before it is opened: opening a pipe would wait for a writer.
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("could not read {}", path.display())),
    };
    anyhow::ensure!(meta.is_file(), "{} is not a regular file", path.display());
    anyhow::ensure!(
        meta.len() <= limit,
        "{} is too large: {} bytes, at most {limit}",
        path.display(),
        meta.len()
    );
    let file = File::open(path).with_context(|| format!("could not read {}", path.display()))?;
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0) + 1);
    file.take(limit).read_to_end(&mut bytes).with_context(|| format!("could not read {}", path.display()))?;
    Ok(Some(bytes))
}
