//! The circuit breaker of each loop, in the user's data folder: its counters between turns, and trips that refuse the
//! next start. Trips and resets are also kept as events.

use crate::core::circuit::condition::PerCondition;
use crate::core::circuit::{Circuit, CircuitState};
use crate::core::record::ArmedLoop;
use crate::core::time::Stamp;
use crate::store::file::lock::Lock;
use crate::store::file::{self, Backup, Privacy};
use crate::store::project::{Project, stable_hash};
use crate::store::world::World;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

#[derive(Debug, Serialize, Deserialize)]
pub struct BreakerRecord {
    pub session_id: String,
    pub project: String,
    pub run_id: String,
    pub last_activity: Stamp,
    #[serde(flatten)]
    pub circuit: Circuit,
}

/// A trip or a reset, with the counters at that moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BreakerEvent {
    pub at: Stamp,
    pub event: BreakerEventKind,
    pub session_id: String,
    pub run_id: String,
    pub reason: String,
    pub counters: PerCondition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BreakerEventKind {
    Trip,
    Reset,
}

const MAX_FILE_BYTES: u64 = 1 << 20;
const ABANDONED_MS: i64 = 30 * 24 * 3_600_000;
/// Events kept for each project.
const MAX_EVENTS: usize = 50;

/// Returns the record's path, which follows from session and project.
fn path(world: &World, project: &Project, session: &str) -> Result<PathBuf> {
    path_of(world, &project.real_root(), session)
}

fn path_of(world: &World, root: &Path, session: &str) -> Result<PathBuf> {
    let (session, root) = (stable_hash(session.as_bytes()), stable_hash(root.as_os_str().as_encoded_bytes()));
    Ok(world.data_dir()?.join("circuit").join(format!("{root:016x}-{session:016x}.json")))
}

/// Reads a record. Counters are not synced, so a power cut may leave an empty file: one without a record in it counts as
/// absent, one that cannot be read does not.
fn read(path: &Path) -> Result<Option<BreakerRecord>> {
    Ok(file::read_bounded(path, MAX_FILE_BYTES)?.and_then(|bytes| file::parse_json(&bytes).ok()))
}

/// Returns the record of a session's breaker.
pub fn record(world: &World, project: &Project, session: &str) -> Result<Option<BreakerRecord>> {
    let root = project.real_root();
    let Ok(path) = path_of(world, &root, session) else { return Ok(None) };
    let ours =
        |record: &BreakerRecord| record.session_id == session && record.project == root.to_string_lossy();
    Ok(read(&path)?.filter(ours))
}

/// Returns the breaker of this run, or a new one if it has none.
pub fn load(world: &World, project: &Project, session: &str, run_id: &str) -> Result<Circuit> {
    let record = record(world, project, session)?.filter(|record| record.run_id == run_id);
    Ok(record.map(|record| record.circuit).unwrap_or_default())
}

/// Saves a breaker. Counters need not survive a power cut, so they are not synced; a trip is. The caller holds the lock of
/// the state.
pub fn save(world: &World, project: &Project, session: &str, run_id: &str, circuit: &Circuit) -> Result<()> {
    let root = project.real_root();
    let path = path_of(world, &root, session)?;
    let record = BreakerRecord {
        session_id: session.to_owned(),
        project: root.to_string_lossy().into_owned(),
        run_id: run_id.to_owned(),
        last_activity: world.now,
        circuit: circuit.clone(),
    };
    let bytes = serde_json::to_vec(&record)?;
    file::create_dir(path.parent().unwrap_or(&path))?;
    match circuit.state {
        CircuitState::Ok => file::replace_locked_unflushed(&path, &bytes, Privacy::Private),
        CircuitState::Tripped => file::replace_locked(&path, &bytes, Privacy::Private),
    }
}

/// Returns the record as it is now, to be restored if a start fails halfway.
pub fn backup(world: &World, project: &Project, session: &str) -> Result<Backup> {
    Backup::of(path(world, project, session)?, MAX_FILE_BYTES)
}

/// Removes the breaker of an ended loop, unless it is tripped or cannot be read.
pub fn forget(world: &World, project: &Project, session: &str) {
    if let Ok(path) = path(world, project, session)
        && read(&path).is_ok_and(|record| record.is_none_or(|record| !record.circuit.is_tripped()))
    {
        let _ = std::fs::remove_file(path);
    }
}

/// Returns every record of this user, or those of one project.
pub fn records(world: &World, of: Option<&Project>) -> Vec<BreakerRecord> {
    let root = of.map(|project| project.real_root().to_string_lossy().into_owned());
    // Names begin with the project's fingerprint, so that others need not be read.
    let prefix = of
        .map(|project| format!("{:016x}-", stable_hash(project.real_root().as_os_str().as_encoded_bytes())));
    let entries = world.data_dir().ok().and_then(|dir| std::fs::read_dir(dir.join("circuit")).ok());
    let mut records: Vec<BreakerRecord> = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.ends_with(".json") && prefix.as_ref().is_none_or(|prefix| name.starts_with(prefix))
        })
        .filter_map(|entry| read(&entry.path()).ok().flatten())
        .filter(|record| root.as_ref().is_none_or(|root| *root == record.project))
        .collect();
    records.sort_by(|a, b| (&a.project, &a.session_id).cmp(&(&b.project, &b.session_id)));
    records
}

/// Removes breakers of other sessions that were not used for longer than this. A trip stays until it is reset. In any
/// project, a breaker that was not used for `ABANDONED_MS` goes, tripped or not.
pub fn expire(world: &World, project: &Project, session: &str, older_than_ms: i64) {
    let root = project.real_root();
    if let Ok(dir) = world.data_dir() {
        file::sweep_temporary(&dir.join("circuit"));
    }
    for record in records(world, None) {
        let (idle, is_here) = (world.now - record.last_activity, record.project == root.to_string_lossy());
        let is_own = is_here && record.session_id == session;
        let is_expired = is_here && !record.circuit.is_tripped() && idle > older_than_ms;
        if !is_own && (is_expired || idle > ABANDONED_MS) {
            let _ = path(world, &record.project(), &record.session_id).map(std::fs::remove_file);
        }
    }
}

impl BreakerRecord {
    pub fn project(&self) -> Project {
        Project { root: self.project.clone().into() }
    }

    /// Resets the breaker, records that, and returns the reason of its trip.
    pub fn reset(mut self, world: &World, project: &Project) -> Result<Option<String>> {
        let tripped = self.circuit.reason.clone().filter(|_| self.circuit.is_tripped());
        let reason = tripped.clone().unwrap_or_default();
        if tripped.is_some() || self.circuit.counters != PerCondition::default() {
            note(
                world,
                project,
                &self.session_id,
                &self.run_id,
                BreakerEventKind::Reset,
                reason,
                self.circuit.counters,
            )?;
        }
        self.circuit.reset();
        save(world, project, &self.session_id, &self.run_id, &self.circuit)?;
        Ok(tripped)
    }
}

/// Adds the trip that ended a run to the events: of the breaker, or of `--max-stuck`.
pub fn note_trip(world: &World, project: &Project, session: &str, run: &ArmedLoop) -> Result<()> {
    let reason = run.reason.clone().unwrap_or_default();
    note(world, project, session, &run.run_id, BreakerEventKind::Trip, reason, run.circuit.counters)
}

fn note(
    world: &World,
    project: &Project,
    session: &str,
    run_id: &str,
    event: BreakerEventKind,
    reason: String,
    counters: PerCondition,
) -> Result<()> {
    let path = events_path(world, project)?;
    file::create_dir(path.parent().unwrap_or(&path))?;
    let _lock = Lock::acquire(&path.with_extension("lock"))?;
    let mut events = events(world, project)?;
    let (session_id, run_id) = (session.to_owned(), run_id.to_owned());
    events.push(BreakerEvent { at: world.now, event, session_id, run_id, reason, counters });
    let kept = &events[events.len().saturating_sub(MAX_EVENTS)..];
    let lines: Result<Vec<String>, _> = kept.iter().map(serde_json::to_string).collect();
    file::replace_locked(&path, (lines?.join("\n") + "\n").as_bytes(), Privacy::Private)
}

fn events_path(world: &World, project: &Project) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("history").join(format!("{}.circuit.jsonl", project.key())))
}

/// Returns the trips and resets of this project, oldest first. A line that does not parse is skipped.
pub fn events(world: &World, project: &Project) -> Result<Vec<BreakerEvent>> {
    file::read_json_lines(&events_path(world, project)?, MAX_FILE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breaker_is_read_as_it_was_saved_also_with_fields_of_a_later_version() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::at(folder.path(), &folder.path().join("data"));
        let project = Project { root: folder.path().to_owned() };
        let mut circuit = Circuit { length: Some(7), recent: vec!["a message".into()], ..Circuit::default() };
        circuit.extra.insert("colour".into(), 1.into());
        save(&world, &project, "s", "r", &circuit).unwrap();
        assert_eq!(load(&world, &project, "s", "r").unwrap(), circuit);
        assert_eq!(load(&world, &project, "s", "another run").unwrap(), Circuit::default());
    }
}
