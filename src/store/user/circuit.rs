//! The circuit breaker of each loop, in the user's data folder: its counters between turns, and trips that refuse the
//! next start. Trips and resets are also kept as events.

use crate::core::circuit::Circuit;
use crate::core::circuit::condition::PerCondition;
use crate::core::time::Stamp;
use crate::store::file;
use crate::store::file::lock::Lock;
use crate::store::file::walk::entries;
use crate::store::project::{Project, fingerprint};
use crate::store::world::World;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

#[derive(Debug, Serialize, Deserialize)]
pub struct Record {
    pub session_id: String,
    pub project: String,
    pub run_id: String,
    pub last_activity: Stamp,
    #[serde(flatten)]
    pub circuit: Circuit,
}

/// A trip or a reset, with the counters at that moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub at: Stamp,
    pub event: What,
    pub session_id: String,
    pub run_id: String,
    pub reason: String,
    pub counters: PerCondition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    Trip,
    Reset,
}

const MAX_FILE_BYTES: u64 = 1 << 20;
/// Events kept for each project.
const MAX_EVENTS: usize = 50;

/// Returns the record's path, which follows from session and project.
fn path(world: &World, project: &Project, session: &str) -> Result<PathBuf> {
    let name = format!("{:016x}-{:016x}.json", project.hash(), fingerprint(session.as_bytes()));
    Ok(world.data_dir()?.join("circuit").join(name))
}

fn read(path: &Path) -> Option<Record> {
    file::read_json(path, MAX_FILE_BYTES)
}

/// Returns the record of a session's breaker; one that cannot be read counts as absent.
pub fn record(world: &World, project: &Project, session: &str) -> Option<Record> {
    let record = read(&path(world, project, session).ok()?)?;
    let ours = record.session_id == session && record.project == project.real_root().to_string_lossy();
    ours.then_some(record)
}

/// Returns the breaker of this run, or a new one.
pub fn load(world: &World, project: &Project, session: &str, run_id: &str) -> Circuit {
    let record = record(world, project, session).filter(|record| record.run_id == run_id);
    record.map(|record| record.circuit).unwrap_or_default()
}

/// Saves a breaker. Counters need not survive a power cut, so they are not synced; a trip is, and is added to the
/// events.
pub fn save(world: &World, project: &Project, session: &str, run_id: &str, circuit: &Circuit) -> Result<()> {
    let path = path(world, project, session)?;
    let record = Record {
        session_id: session.to_owned(),
        project: project.real_root().to_string_lossy().into_owned(),
        run_id: run_id.to_owned(),
        last_activity: world.now,
        circuit: circuit.clone(),
    };
    let bytes = serde_json::to_vec(&record)?;
    if circuit.is_tripped() {
        file::replace_private(&path, &bytes)?;
        return record.note(world, project, What::Trip);
    }
    file::create_dir(path.parent().unwrap_or(&path))?;
    file::replace_unsynced(&path, &bytes)
}

/// Removes the breaker of an ended loop, unless it is tripped.
pub fn forget(world: &World, project: &Project, session: &str) {
    if let Ok(path) = path(world, project, session)
        && read(&path).is_none_or(|record| !record.circuit.is_tripped())
    {
        let _ = std::fs::remove_file(path);
    }
}

/// Returns every record of this user, or those of one project.
pub fn records(world: &World, of: Option<&Project>) -> Vec<Record> {
    let root = of.map(|project| project.real_root().to_string_lossy().into_owned());
    // Names begin with the project's fingerprint, so that others need not be read.
    let prefix = of.map_or_else(String::new, |project| format!("{:016x}-", project.hash()));
    let folder = world.data_dir().map(|dir| dir.join("circuit")).unwrap_or_default();
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".json") && name.starts_with(&prefix)
    };
    let mut records: Vec<Record> =
        entries(&folder).into_iter().filter(is_wanted).filter_map(|path| read(&path)).collect();
    records.retain(|record| root.as_ref().is_none_or(|root| *root == record.project));
    records.sort_by(|a, b| (&a.project, &a.session_id).cmp(&(&b.project, &b.session_id)));
    records
}

/// Removes breakers that were not used for longer than this. A trip stays until it is reset.
pub fn expire(world: &World, project: &Project, older_than_ms: i64) {
    for record in records(world, Some(project)) {
        if !record.circuit.is_tripped() && world.now - record.last_activity > older_than_ms {
            forget(world, project, &record.session_id);
        }
    }
}

impl Record {
    pub fn project(&self) -> Project {
        Project { root: self.project.clone().into() }
    }

    /// Resets the breaker, records that, and returns the reason of its trip.
    pub fn reset(mut self, world: &World, project: &Project) -> Result<Option<String>> {
        let tripped = self.circuit.reason.clone().filter(|_| self.circuit.is_tripped());
        if tripped.is_some() || self.circuit.counters != PerCondition::default() {
            self.note(world, project, What::Reset)?;
        }
        self.circuit.reset();
        save(world, project, &self.session_id, &self.run_id, &self.circuit)?;
        Ok(tripped)
    }

    /// Adds what happened to the events.
    fn note(&self, world: &World, project: &Project, event: What) -> Result<()> {
        let path = events_path(world, project)?;
        file::create_dir(path.parent().unwrap_or(&path))?;
        let _lock = Lock::acquire(&path.with_extension("lock"))?;
        let mut events = events(world, project)?;
        events.push(Event {
            at: world.now,
            event,
            session_id: self.session_id.clone(),
            run_id: self.run_id.clone(),
            reason: self.circuit.reason.clone().unwrap_or_default(),
            counters: self.circuit.counters,
        });
        file::replace_json_lines(&path, &events, MAX_EVENTS)
    }
}

fn events_path(world: &World, project: &Project) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("history").join(format!("{}.circuit.jsonl", project.key())))
}

/// Returns the trips and resets of this project, oldest first. A line that does not parse is skipped.
pub fn events(world: &World, project: &Project) -> Result<Vec<Event>> {
    file::read_json_lines(&events_path(world, project)?, MAX_FILE_BYTES)
}
