//! The runs whose events are kept.

use super::{FILE, Follower, folder};
use crate::core::event::timeline::Timeline;
use crate::core::event::{Event, EventKind, RunEnded, RunStarted};
use crate::core::time::Stamp;
use crate::store::file::walk::entries;
use crate::store::{Project, World, file};
use anyhow::Result;
use std::io::Read;
use std::path::{Path, PathBuf};

/// More than these are not kept: the oldest that have ended go first.
const MAX_RUNS: usize = 500;
/// The start is in so many bytes at the beginning, the ending in so many at the end.
const HEAD_BYTES: u64 = 64 << 10;

/// A run, by its first event.
#[derive(Clone, Debug)]
pub struct RunFile {
    pub run_id: String,
    pub path: PathBuf,
    pub started: RunStarted,
    pub started_at: Stamp,
    /// When the file last changed, in nanoseconds.
    pub changed: i64,
}

impl RunFile {
    fn read(folder: &Path) -> Option<RunFile> {
        let run_id = folder.file_name()?.to_str()?.to_owned();
        let path = folder.join(FILE);
        let (event, changed) = start_of(&path)?;
        let EventKind::Started(started) = event.what else { return None };
        // A folder that was renamed or copied is not the run that it says it is.
        (started.run_id == run_id).then_some(RunFile {
            run_id,
            path,
            started,
            started_at: event.timestamp,
            changed,
        })
    }

    /// Returns the project of the run.
    pub fn project(&self) -> Project {
        Project { root: PathBuf::from(&self.started.project) }
    }
}

/// Returns the start of a run. A hook that was faster than the start may have added to the file before.
fn start_of(path: &Path) -> Option<(Event, i64)> {
    let opened = file::open_plain(path).ok()?;
    let meta = file::ensure_regular(path, &opened).ok()?;
    let mut head = Vec::new();
    opened.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    let mut events = head.split(|byte| *byte == b'\n').filter_map(Event::parse);
    let event = events.find(|event| matches!(event.what, EventKind::Started(_)))?;
    Some((event, meta.modified().map_or(0, crate::store::world::nanoseconds)))
}

/// Returns how and when a run ended, from the end of its file; `None` if it has not, or was continued since.
pub fn ending(path: &Path) -> Option<(Stamp, RunEnded)> {
    let mut ended = None;
    let mut follower = Follower::from_end(path, HEAD_BYTES);
    let mut read = |line: &[u8]| match Event::parse(line) {
        Some(Event { timestamp, what: EventKind::Ended(last), .. }) => ended = Some((timestamp, last)),
        Some(Event { what: EventKind::Started(_), .. }) => ended = None,
        _ => {}
    };
    while follower.poll(&mut read).ok()?.more {}
    ended
}

/// Returns every run of this user, the one that changed last first.
pub fn all(world: &World) -> Result<Vec<RunFile>> {
    let folders = entries(&world.data_dir()?.join("runs"));
    let mut runs: Vec<RunFile> = folders.iter().filter_map(|folder| RunFile::read(folder)).collect();
    runs.sort_by_key(|run| std::cmp::Reverse(run.changed));
    Ok(runs)
}

/// Returns the runs of a project, the one that changed last first.
pub fn of_project(world: &World, project: &Project) -> Result<Vec<RunFile>> {
    let root = project.real_root();
    let is_own = |run: &RunFile| run.project().real_root() == root;
    Ok(all(world)?.into_iter().filter(is_own).collect())
}

/// Returns the runs whose id begins like this.
pub fn find(world: &World, prefix: &str) -> Result<Vec<RunFile>> {
    Ok(all(world)?.into_iter().filter(|run| run.run_id.starts_with(prefix)).collect())
}

/// Reads the events of a run; `None` if it has none. Of a file that is too large these are the start and the last ones.
pub fn load(world: &World, run_id: &str) -> Result<Option<Timeline>> {
    let path = folder(world, run_id)?.join(FILE);
    let read = |mut timeline: Timeline| -> Result<Timeline> {
        let mut follower = Follower::new(&path);
        let mut add = |line: &[u8]| Event::parse(line).into_iter().for_each(|event| timeline.add(event));
        while follower.poll(&mut add)?.more {}
        timeline.skipped_bytes = follower.skipped_bytes;
        Ok(timeline)
    };
    let mut timeline = read(Timeline::default())?;
    if timeline.skipped_bytes > 0
        && let Some((start, _)) = start_of(&path)
    {
        timeline = read(Timeline::of([start]))?;
    }
    Ok(timeline.last_at.is_some().then_some(timeline))
}

/// Makes room for one more run.
pub fn prune(world: &World) -> Result<()> {
    let folders = entries(&world.data_dir()?.join("runs"));
    let is_run = |folder: &&PathBuf| folder.join(FILE).is_file();
    if folders.iter().filter(is_run).count() < MAX_RUNS {
        return Ok(());
    }
    for run in all(world)?.into_iter().skip(MAX_RUNS - 1) {
        if load(world, &run.run_id)?.is_some_and(|timeline| timeline.ended.is_some()) {
            let _ = std::fs::remove_dir_all(run.path.parent().unwrap_or(&run.path));
        }
    }
    Ok(())
}
