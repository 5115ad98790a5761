//! The events of each run, in `runs/<id>/events.jsonl` of the user's data folder: private, bounded, only added to.
//!
//! Every write is one append that begins with a line end, so that what a crash left of a line costs no other, and ends
//! with one, so that a reader knows a complete line. Nothing waits for the disk.

mod follower;
mod runs;

pub use follower::{Follower, MAX_LINE_BYTES, NewLines};
pub use runs::{RunFile, all, ending, find, load, of_project};

use crate::core::event::{Event, EventKind, RunEnded, RunStarted};
use crate::core::record::ArmedLoop;
use crate::store::{World, file};
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

pub const FILE: &str = "events.jsonl";

/// Beyond this only the ending is added.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Returns the folder of a run. Its id becomes a file name, so only one of ours is accepted.
pub fn folder(world: &World, run_id: &str) -> Result<PathBuf> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    ensure!(
        (1..=64).contains(&run_id.len()) && run_id.bytes().all(is_plain),
        "not the id of a run: {}",
        crate::core::text::clean::excerpt(run_id, 80)
    );
    Ok(world.data_dir()?.join("runs").join(run_id))
}

/// Adds what happened to a run.
pub fn append(world: &World, run_id: &str, events: &[EventKind]) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let folder = folder(world, run_id)?;
    let path = folder.join(FILE);
    let mut file = match open(&path) {
        Ok(file) => file,
        // The folder is there but for the first event of a run.
        Err(_) => {
            file::create_dir(&folder)?;
            file::append(&path)?
        }
    };
    let is_full = file.metadata().is_ok_and(|meta| meta.len() > MAX_FILE_BYTES);
    let mut bytes = Vec::with_capacity(1024);
    for what in
        events.iter().filter(|what| !is_full || matches!(what, EventKind::Ended(_) | EventKind::Started(_)))
    {
        bytes.push(b'\n');
        Event::write(world.now, what, &mut bytes)?;
        bytes.push(b'\n');
    }
    file.write_all(&bytes).with_context(|| format!("could not write {}", path.display()))
}

fn open(path: &std::path::Path) -> std::io::Result<File> {
    file::creating(file::Privacy::Private).append(true).open(path)
}

/// Adds what happened to a loop. A failure is returned as a note for the user: no loop stops for it.
pub fn note(world: &World, run: &ArmedLoop, events: &[EventKind]) -> Option<String> {
    let error = append(world, &run.run_id, events).err()?;
    Some(format!("could not add to the events of this run: {error:#}"))
}

/// Records events as [`note`] does, and returns a failure only once until it works again: a loop may have hundreds of turns.
pub fn note_once(world: &World, run: &mut ArmedLoop, events: &[EventKind]) -> Option<String> {
    if events.is_empty() {
        return None;
    }
    let failed = note(world, run, events);
    let is_known = std::mem::replace(&mut run.told.events_failed, failed.is_some());
    failed.filter(|_| !is_known)
}

/// Adds the ending of a run that has ended, if its events lack it.
pub fn add_missing_ending(world: &World, run: &ArmedLoop) {
    let path = folder(world, &run.run_id).map(|folder| folder.join(FILE));
    if path.is_ok_and(|path| path.is_file() && ending(&path).is_none()) {
        note(world, run, &[EventKind::Ended(RunEnded::of(run, world.now))]);
    }
}

/// Adds the start of a run, and what changed with it. Makes room for it first. Returns what failed.
pub fn begin(world: &World, run: &ArmedLoop, started: RunStarted, changes: Vec<EventKind>) -> Option<String> {
    let pruned = runs::prune(world).err().map(|error| format!("could not remove old events: {error:#}"));
    let events: Vec<EventKind> = std::iter::once(EventKind::Started(started)).chain(changes).collect();
    note(world, run, &events).or(pruned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::event::Warning;

    fn world() -> (tempfile::TempDir, World) {
        let folder = tempfile::tempdir().unwrap();
        let world = World::at(folder.path(), &folder.path().join("data"));
        (folder, world)
    }

    fn warning(message: &str) -> EventKind {
        EventKind::Warning(Warning { iteration: 1, message: message.into() })
    }

    #[test]
    fn events_are_added_one_a_line_and_only_the_user_may_read_them() {
        let (_folder, world) = world();
        append(&world, "r1", &[warning("a"), warning("b")]).unwrap();
        append(&world, "r1", &[warning("c")]).unwrap();
        let path = folder(&world, "r1").unwrap().join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), 3, "{text}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn a_torn_line_costs_no_other() {
        let (_folder, world) = world();
        append(&world, "r1", &[warning("a")]).unwrap();
        let path = folder(&world, "r1").unwrap().join(FILE);
        let mut file = file::append(&path).unwrap();
        file.write_all(b"\n{\"v\":1,\"timest").unwrap();
        append(&world, "r1", &[EventKind::Ended(RunEnded::default())]).unwrap();
        let timeline = load(&world, "r1").unwrap().unwrap();
        assert_eq!((timeline.last_at, timeline.ended.is_some()), (Some(world.now), true));
    }

    #[test]
    fn an_id_never_leads_out_of_the_folder() {
        let (_folder, world) = world();
        for id in ["", ".", "..", "a/b", "../x", "a\\b", "a\0b", "é", &"x".repeat(65)] {
            assert!(folder(&world, id).is_err() && append(&world, id, &[warning("a")]).is_err(), "{id}");
        }
    }

    #[test]
    fn a_full_file_still_takes_the_ending() {
        let (_folder, world) = world();
        append(&world, "r1", &[warning("a")]).unwrap();
        let path = folder(&world, "r1").unwrap().join(FILE);
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        append(&world, "r1", &[warning("b")]).unwrap();
        assert_eq!(path.metadata().unwrap().len(), MAX_FILE_BYTES + 1);
        append(&world, "r1", &[EventKind::Ended(RunEnded::default())]).unwrap();
        assert!(load(&world, "r1").unwrap().unwrap().ended.is_some());
    }
}
