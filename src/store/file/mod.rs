//! Files written whole or not at all.

pub mod lock;
pub mod swap;
pub mod temporary;
pub mod walk;

use super::world;
use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
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
    exchange(&temporary(path), path, bytes, privacy, true)?;
    sync_dir(path);
    Ok(())
}

/// Like `replace`, for a file that only the user reads. Creates its folder if needed.
pub fn replace_private(path: &Path, bytes: &[u8]) -> Result<()> {
    create_dir(path.parent().unwrap_or(path))?;
    replace(path, bytes, Privacy::Private)
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
    exchange(&temporary, path, bytes, privacy, true)
}

/// Like `replace`, without waiting for the disk: for what can be made again.
pub fn replace_unsynced(path: &Path, bytes: &[u8]) -> Result<()> {
    exchange(&temporary(path), path, bytes, Privacy::Private, false)
}

fn temporary(path: &Path) -> PathBuf {
    beside(path, &format!("{:08x}", world::unique() as u32))
}

fn beside(path: &Path, mark: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{name}.tmp-{mark}"))
}

fn exchange(temporary: &Path, path: &Path, bytes: &[u8], privacy: Privacy, flush: bool) -> Result<()> {
    let write = || {
        let mut file = creating(privacy).write(true).create_new(true).open(temporary)?;
        file.write_all(bytes)?;
        if flush {
            file.sync_all()?;
        }
        if privacy == Privacy::Shared
            && let Ok(before) = fs::metadata(path)
        {
            fs::set_permissions(temporary, before.permissions())?;
        }
        fs::rename(temporary, path)
    };
    let written = write();
    if written.is_err() {
        let _ = fs::remove_file(temporary);
    }
    written.with_context(|| format!("could not write {}", path.display()))
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

/// Creates a folder and its parents, which everyone may read whom the umask allows.
pub fn create_shared_dir(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("could not create the folder {}", path.display()))
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
    let unreadable = || format!("could not read {}", path.display());
    // Asked before it is opened: opening a pipe would wait for a writer.
    let meta = match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        meta => meta.with_context(unreadable)?,
    };
    ensure!(meta.is_file(), "{} is not a regular file", path.display());
    let size = meta.len();
    ensure!(size <= limit, "{} is too large: {size} bytes, at most {limit}", path.display());
    let file = File::open(path).with_context(unreadable)?;
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    file.take(limit).read_to_end(&mut bytes).with_context(unreadable)?;
    Ok(Some(bytes))
}

/// Reads a JSON file of at most `limit` bytes; `None` where it is missing or damaged.
pub fn read_json<T: DeserializeOwned>(path: &Path, limit: u64) -> Option<T> {
    serde_json::from_slice(&read_bounded(path, limit).ok()??).ok()
}

/// Parses the bytes of a file that holds a JSON object.
pub fn parse_object(path: &Path, bytes: &[u8]) -> Result<Map<String, Value>> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => bail!("{} is not a JSON object", path.display()),
        Err(error) => Err(error).with_context(|| format!("{} is not valid JSON", path.display())),
    }
}

/// Reads the lines of a JSON Lines file of at most `limit` bytes. A line that does not parse is skipped.
pub fn read_json_lines<T: DeserializeOwned>(path: &Path, limit: u64) -> Result<Vec<T>> {
    let bytes = read_bounded(path, limit)?.unwrap_or_default();
    Ok(bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

/// Replaces a JSON Lines file by the last `max` of these values.
pub fn replace_json_lines(path: &Path, values: &[impl Serialize], max: usize) -> Result<()> {
    let kept = &values[values.len().saturating_sub(max)..];
    let lines: Result<Vec<String>, _> = kept.iter().map(serde_json::to_string).collect();
    replace_private(path, (lines?.join("\n") + "\n").as_bytes())
}

/// Returns the first path that does not exist, of those that `named` makes from "", "-2", "-3" and so on.
pub fn free_name(named: impl Fn(&str) -> PathBuf) -> PathBuf {
    let mut names = (2_u64..).map(|number| named(&format!("-{number}")));
    let first = named("");
    let taken = |path: &PathBuf| path.symlink_metadata().is_ok();
    if taken(&first) { names.find(|path| !taken(path)).unwrap_or(first) } else { first }
}
