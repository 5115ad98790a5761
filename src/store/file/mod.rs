//! Files written whole or not at all.

pub mod lock;
pub mod swap;
pub mod temporary;
pub mod walk;

use super::world;
use crate::core::text::clean;
use anyhow::{Context, Result, bail, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fs::{self, DirEntry, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Who may read a file we create.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Privacy {
    /// The user only.
    Private,
    /// Everyone the umask allows, or who could read it before.
    Shared,
}

/// A killed writer's temporary file is removed by the next writer of the same file, once it is older than any write
/// takes: before that, its writer may be alive.
const TEMPORARY_EXPIRES_AFTER: Duration = Duration::from_secs(60);

/// Replaces `path` with `bytes`: a temporary file beside it, flushed to disk, then renamed.
pub fn replace(path: &Path, bytes: &[u8], privacy: Privacy) -> Result<()> {
    exchange(&unused_temporary_path(path), path, bytes, privacy, true)?;
    sync_dir(path);
    Ok(())
}

/// Replaces a file that only the user can read. Creates its folder if needed.
pub fn replace_private(path: &Path, bytes: &[u8]) -> Result<()> {
    create_dir(path.parent().unwrap_or(path))?;
    replace(path, bytes, Privacy::Private)
}

/// Replaces a file whose lock the caller holds. Overwrites what a killed writer left.
pub fn replace_locked(path: &Path, bytes: &[u8], privacy: Privacy) -> Result<()> {
    replace_locked_unsynced(path, bytes, privacy)?;
    sync_dir(path);
    Ok(())
}

/// Replaces a file as `replace_locked` does, without syncing the directory: after a power cut the old file may come back.
pub fn replace_locked_unsynced(path: &Path, bytes: &[u8], privacy: Privacy) -> Result<()> {
    let temporary = temporary_path(path, "new");
    let _ = fs::remove_file(&temporary);
    exchange(&temporary, path, bytes, privacy, true)
}

/// Replaces a file as `replace_locked` does, without waiting for the disk; for files that can be recreated.
pub fn replace_locked_unflushed(path: &Path, bytes: &[u8], privacy: Privacy) -> Result<()> {
    let temporary = temporary_path(path, "new");
    let _ = fs::remove_file(&temporary);
    exchange(&temporary, path, bytes, privacy, false)
}

/// Replaces a file as `replace` does, without waiting for the disk; for files that can be recreated.
pub fn replace_unsynced(path: &Path, bytes: &[u8]) -> Result<()> {
    exchange(&unused_temporary_path(path), path, bytes, Privacy::Private, false)
}

/// Returns a new name beside `path`, and removes what killed writers of it left.
fn unused_temporary_path(path: &Path) -> PathBuf {
    let prefix = temporary_path(path, "");
    let prefix = prefix.file_name().unwrap_or_default().as_encoded_bytes();
    let is_stale = |entry: &DirEntry| {
        entry.file_name().as_encoded_bytes().starts_with(prefix) && is_older(entry, TEMPORARY_EXPIRES_AFTER)
    };
    let entries = path.parent().and_then(|folder| fs::read_dir(folder).ok());
    for entry in entries.into_iter().flatten().flatten().filter(is_stale) {
        let _ = fs::remove_file(entry.path());
    }
    temporary_path(path, &format!("{:08x}", world::unique() as u32))
}

/// Removes what killed writers of any file left in a folder in which only we write.
pub fn sweep_temporary(folder: &Path) {
    let is_stale = |entry: &DirEntry| {
        memchr::memmem::find(entry.file_name().as_encoded_bytes(), b".tmp-").is_some()
            && is_older(entry, TEMPORARY_EXPIRES_AFTER)
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten().filter(is_stale) {
        let _ = fs::remove_file(entry.path());
    }
}

/// Returns whether a file was last written longer ago than this.
pub fn is_older(entry: &DirEntry, than: Duration) -> bool {
    let written = entry.metadata().and_then(|meta| meta.modified());
    written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > than))
}

fn temporary_path(path: &Path, mark: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{name}.tmp-{mark}"))
}

/// A file's bytes as they were, to be put back if a change of several files fails halfway.
pub struct Backup(PathBuf, Option<Vec<u8>>);

impl Backup {
    pub fn of(path: PathBuf, limit: u64) -> Result<Backup> {
        let bytes = read_bounded(&path, limit)?;
        Ok(Backup(path, bytes))
    }

    pub fn restore(&self) {
        let _ = match self {
            Backup(path, Some(bytes)) => replace(path, bytes, Privacy::Private),
            Backup(path, None) => fs::remove_file(path).map_err(Into::into),
        };
    }
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

/// Opens a regular file to add to its end, or creates it.
pub fn append(path: &Path) -> Result<File> {
    let open = creating(Privacy::Private).append(true).create(true).open(path);
    let file = open.with_context(|| format!("could not open {}", path.display()))?;
    ensure_regular(path, &file)?;
    Ok(file)
}

/// Removes a file, if it is there.
pub fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("could not remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Removes a folder and what is in it, if it is there.
pub fn remove_folder(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("could not remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Removes a folder if it is empty, and returns whether it did.
pub fn remove_empty_folder(path: &Path) -> bool {
    fs::remove_dir(path).is_ok()
}

/// Creates a temporary file in a folder and removes it: permissions do not show that a disk is full or read-only.
pub fn check_writable(folder: &Path) -> std::io::Result<()> {
    tempfile::Builder::new().prefix(".ralph-check-").tempfile_in(folder).map(drop)
}

/// Adds one line at the end, in a single write. What a failed write left of a line stays a line of its own, so that it
/// costs no other.
pub fn append_line(path: &Path, line: &str) -> Result<()> {
    let open = creating(Privacy::Private).read(true).append(true).create(true).open(path);
    let mut file = open.with_context(|| format!("could not open {}", path.display()))?;
    ensure_regular(path, &file)?;
    let mut write = || {
        let mut last = [b'\n'];
        if file.seek(SeekFrom::End(0))? > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        let begin = if last == [b'\n'] { "" } else { "\n" };
        file.write_all(format!("{begin}{line}\n").as_bytes())?;
        file.sync_data()
    };
    write().with_context(|| format!("could not write {}", path.display()))
}

/// Creates a folder and its parents, which everyone may read whom the umask allows.
pub fn create_shared_dir(path: &Path) -> Result<()> {
    let shown = || clean::visible(&path.display().to_string());
    fs::create_dir_all(path).with_context(|| format!("could not create the folder {}", shown()))
}

/// Creates a folder and its parents for the user only.
pub fn create_dir(path: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).with_context(|| format!("could not create the folder {}", path.display()))
}

/// Returns open options that create a file with the requested permissions.
pub fn creating(privacy: Privacy) -> OpenOptions {
    let mut options = without_waiting(true);
    #[cfg(unix)]
    if privacy == Privacy::Private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = privacy;
    options
}

/// Returns open options that do not wait for a pipe. If asked, they refuse a link in the last component.
fn without_waiting(refuse_link: bool) -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let link = if refuse_link { OFlags::NOFOLLOW } else { OFlags::empty() };
        let flags = (OFlags::NONBLOCK | link).bits();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.cast_signed());
    }
    #[cfg(not(unix))]
    let _ = refuse_link;
    options
}

/// Opens a file to read it, without waiting for a pipe and without following a link in the last component.
pub fn open_plain(path: &Path) -> std::io::Result<File> {
    without_waiting(true).read(true).open(path)
}

/// Refuses an open file that is a pipe, a device or a folder.
pub fn ensure_regular(path: &Path, file: &File) -> Result<Metadata> {
    let meta = file.metadata().with_context(|| format!("could not read {}", path.display()))?;
    ensure!(meta.is_file(), "{} is not a regular file", path.display());
    Ok(meta)
}

/// Copies a file with its permissions, and returns once the copy is on the disk.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let copied = fs::copy(from, to);
    // Elsewhere a file that is open for reading cannot be flushed.
    #[cfg(unix)]
    let copied = copied.and_then(|_| File::open(to)?.sync_all());
    copied.map(drop).with_context(|| format!("could not copy {} to {}", from.display(), to.display()))
}

/// Flushes the folder of a file, which makes a rename durable. Where folders cannot be flushed the rename still happened.
pub fn sync_dir(path: &Path) {
    #[cfg(unix)]
    if let Some(Ok(dir)) = path.parent().map(File::open) {
        let _ = dir.sync_all();
    }
    #[cfg(not(unix))]
    let _ = path;
}

/// Reads a regular file of at most `limit` bytes; `None` where there is no file.
pub fn read_bounded(path: &Path, limit: u64) -> Result<Option<Vec<u8>>> {
    read_opened(path, without_waiting(false).read(true).open(path), limit)
}

/// Reads a file as `read_bounded` does, and refuses a link in the last component of the path.
pub fn read_unlinked(path: &Path, limit: u64) -> Result<Option<Vec<u8>>> {
    read_opened(path, open_plain(path), limit)
}

fn read_opened(path: &Path, opened: std::io::Result<File>, limit: u64) -> Result<Option<Vec<u8>>> {
    let unreadable = || format!("could not read {}", path.display());
    let file = match opened {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.with_context(unreadable)?,
    };
    let size = ensure_regular(path, &file)?.len();
    ensure!(size <= limit, "{} is too large: {size} bytes, at most {limit}", path.display());
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    // One byte more than allowed shows that there is more, whatever size the system gave.
    file.take(limit + 1).read_to_end(&mut bytes).with_context(unreadable)?;
    ensure!(bytes.len() as u64 <= limit, "{} is too large: at most {limit} bytes", path.display());
    Ok(Some(bytes))
}

/// Returns whether there is a file. One that cannot be looked at is an error: it may be there.
pub fn exists(path: &Path) -> Result<bool> {
    match fs::metadata(path) {
        // Below a file there can be no other.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(false)
        }
        seen => seen.map(|_| true).with_context(|| format!("could not read {}", path.display())),
    }
}

/// Reads a JSON record of at most `limit` bytes; `None` where there is none. A record that cannot be read, or that is
/// damaged, is an error: what it says is unknown, which is not the same as nothing.
pub fn read_record<T: DeserializeOwned>(path: &Path, limit: u64) -> Result<Option<T>> {
    let Some(bytes) = read_bounded(path, limit)? else { return Ok(None) };
    parse_json(&bytes).map(Some).with_context(|| format!("{} is damaged", path.display()))
}

/// Reads a JSON file of at most `limit` bytes; `None` where it is missing or damaged. For what can be made again.
pub fn read_json<T: DeserializeOwned>(path: &Path, limit: u64) -> Option<T> {
    parse_json(&read_bounded(path, limit).ok()??).ok()
}

/// Parses JSON. Whether the bytes are text is checked once, which costs a hook less than a check of each string.
pub fn parse_json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    Ok(serde_json::from_str(std::str::from_utf8(bytes)?)?)
}

/// Parses the bytes of a file that holds a JSON object.
pub fn parse_object(path: &Path, bytes: &[u8]) -> Result<Map<String, Value>> {
    match parse_json(bytes) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => bail!("{} is not a JSON object", path.display()),
        Err(error) => Err(error).with_context(|| format!("{} is not valid JSON", path.display())),
    }
}

/// Reads the lines of a JSON Lines file of at most `limit` bytes. A line that does not parse is skipped.
pub fn read_json_lines<T: DeserializeOwned>(path: &Path, limit: u64) -> Result<Vec<T>> {
    let bytes = read_bounded(path, limit)?.unwrap_or_default();
    Ok(bytes.split(|byte| *byte == b'\n').filter_map(|line| parse_json(line).ok()).collect())
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_next_writer_removes_what_a_killed_one_left_and_nothing_of_one_that_is_alive() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        let leave = |name: &str, age: u64| {
            let file = File::create(dir.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        };
        leave("a.json.tmp-0000beef", 120);
        leave("a.json.tmp-00000001", 5);
        leave("b.json.tmp-00000002", 120);
        replace(&path, b"1", Privacy::Private).unwrap();
        assert_eq!(names(dir.path()), ["a.json", "a.json.tmp-00000001", "b.json.tmp-00000002"]);
        leave("b.json.tmp-new", 0);
        replace_locked_unflushed(&dir.path().join("b.json"), b"1", Privacy::Private).unwrap();
        assert!(!dir.path().join("b.json.tmp-new").exists(), "under a lock no other writer is alive");
        leave("c.json.tmp-new", 120);
        sweep_temporary(dir.path());
        assert_eq!(names(dir.path()), ["a.json", "a.json.tmp-00000001", "b.json"]);
    }

    #[test]
    fn a_line_that_was_cut_off_costs_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        append_line(&path, "1").unwrap();
        fs::write(&path, "1\n{\"half").unwrap();
        append_line(&path, "2").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n{\"half\n2\n");
        assert_eq!(read_json_lines::<u64>(&path, 100).unwrap(), [1, 2]);
    }

    #[test]
    fn what_cannot_be_read_is_not_absent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("record");
        assert!(!exists(&path).unwrap() && read_record::<u64>(&path, 9).unwrap().is_none());
        fs::write(&path, "{").unwrap();
        assert!(exists(&path).unwrap() && read_record::<u64>(&path, 9).is_err());
        #[cfg(unix)]
        {
            let looped = dir.path().join("looped");
            std::os::unix::fs::symlink(&looped, &looped).unwrap();
            assert!(exists(&looped).is_err() && read_record::<u64>(&looped, 9).is_err());
        }
    }
}
