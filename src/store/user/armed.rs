//! Which loops this user armed. A state file that came with a repository starts nothing: only a run recorded
//! here, for this project and session, is alive. This is the only place that makes an [`ArmedLoop`].
//!
//! The record's name follows from session and project, so a session without a loop learns that by looking for
//! one file.

use super::{circuit, history};
use crate::core::circuit::Circuit;
use crate::core::record::{ArmedLoop, StoredLoop};
use crate::store::file::walk::entries;
use crate::store::file::{self, Privacy};
use crate::store::project::{Project, fingerprint};
use crate::store::state::Document;
use crate::store::world::World;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
struct Record {
    run_id: String,
    session_id: String,
    /// For people; the record's name already tells the project.
    project: String,
    /// Commands given as flags: only the user's own folder may hold what we run.
    #[serde(default)]
    commands: Map<String, Value>,
    /// The loop as it was armed, so that an ending can be told even if the state file is lost.
    armed: Option<Box<RawValue>>,
}

const MAX_RECORD_BYTES: u64 = 1 << 20;

/// Makes a new loop, with a fresh breaker. It counts once it is armed and in the state file.
pub fn begin(stored: StoredLoop, commands: Map<String, Value>) -> ArmedLoop {
    ArmedLoop::attach(stored, Circuit::default(), commands)
}

/// Makes a loop of a record that the user's own folder holds, with its breaker if that is kept.
pub fn continued(
    world: &World,
    project: &Project,
    session: &str,
    stored: StoredLoop,
    commands: Map<String, Value>,
) -> ArmedLoop {
    let circuit = circuit::load(world, project, session, &stored.run_id);
    ArmedLoop::attach(stored, circuit, commands)
}

/// Records that this user armed the loop.
pub fn arm(world: &World, project: &Project, session: &str, run: &ArmedLoop) -> Result<()> {
    let record = Record {
        run_id: run.run_id.clone(),
        session_id: session.to_owned(),
        project: project.real_root().to_string_lossy().into_owned(),
        commands: run.commands.clone(),
        armed: Some(serde_json::value::to_raw_value::<StoredLoop>(run)?),
    };
    file::replace_private(
        &path(world, &project.real_root(), session)?,
        serde_json::to_string(&record)?.as_bytes(),
    )
}

fn record(world: &World, project: &Project, session: &str) -> Option<Record> {
    let root = project.real_root();
    let record: Record = file::read_json(&path(world, &root, session).ok()?, MAX_RECORD_BYTES)?;
    (record.session_id == session && record.project == root.to_string_lossy()).then_some(record)
}

/// Returns whether a run is armed for this session here. It looks for the record without reading it.
pub fn exists(world: &World, project: &Project, session: &str) -> bool {
    path(world, &project.real_root(), session).is_ok_and(|path| path.is_file())
}

/// Returns the session's loop from the state, if it is the one this user armed.
pub fn load_armed(world: &World, project: &Project, session: &str, document: &Document) -> Option<ArmedLoop> {
    attach(world, project, session, document.loop_of(session)?)
}

/// Returns every loop in the state that this user armed, with its session id.
pub fn load_all(world: &World, project: &Project, document: &Document) -> Vec<(String, ArmedLoop)> {
    let attach =
        |(id, stored): (String, StoredLoop)| Some((id.clone(), attach(world, project, &id, stored)?));
    document.loops().into_iter().filter_map(attach).collect()
}

/// Returns every loop in the state that this user started: armed ones, and ended ones that are in the user's
/// own history.
pub fn load_started(world: &World, project: &Project, document: &Document) -> Vec<(String, ArmedLoop)> {
    let past = history::runs(world, project).unwrap_or_default();
    let started = |(id, stored): (String, StoredLoop)| {
        if let Some(run) = attach(world, project, &id, stored.clone()) {
            return Some((id, run));
        }
        let entry = past.iter().find(|entry| entry.run_id == stored.run_id && !stored.is_alive())?;
        let circuit = circuit::load(world, project, &id, &stored.run_id);
        Some((id, ArmedLoop::attach(stored, circuit, entry.commands.clone())))
    };
    document.loops().into_iter().filter_map(started).collect()
}

fn attach(world: &World, project: &Project, session: &str, stored: StoredLoop) -> Option<ArmedLoop> {
    let record = record(world, project, session).filter(|record| record.run_id == stored.run_id)?;
    let circuit = circuit::load(world, project, session, &stored.run_id);
    Some(ArmedLoop::attach(stored, circuit, record.commands))
}

/// Returns the loop that is armed here as it was at its start, for when the state file has lost it.
pub fn load_from_record(world: &World, project: &Project, session: &str) -> Option<ArmedLoop> {
    let record = record(world, project, session)?;
    let stored: StoredLoop = serde_json::from_str(record.armed?.get()).ok()?;
    let circuit = circuit::load(world, project, session, &stored.run_id);
    Some(ArmedLoop::attach(stored, circuit, record.commands))
}

/// A record's earlier bytes, to be restored if a start fails halfway.
pub struct Backup(PathBuf, Option<Vec<u8>>);

pub fn backup(world: &World, project: &Project, session: &str) -> Result<Backup> {
    let path = path(world, &project.real_root(), session)?;
    let bytes = file::read_bounded(&path, MAX_RECORD_BYTES)?;
    Ok(Backup(path, bytes))
}

pub fn restore(backup: &Backup) {
    let _ = match backup {
        Backup(path, Some(bytes)) => file::replace(path, bytes, Privacy::Private),
        Backup(path, None) => std::fs::remove_file(path).map_err(Into::into),
    };
}

/// Returns whether this user armed this very run, without reading its breaker.
pub fn is_armed(world: &World, project: &Project, session: &str, run_id: &str) -> bool {
    record(world, project, session).is_some_and(|record| record.run_id == run_id)
}

pub fn disarm(world: &World, project: &Project, session: &str) {
    let _ = path(world, &project.real_root(), session).map(std::fs::remove_file);
}

/// Returns every project in which this user has an armed loop.
pub fn projects(world: &World) -> Vec<Project> {
    let mut roots: Vec<PathBuf> = records(world).into_iter().map(|(_, root)| root).collect();
    roots.sort();
    roots.dedup();
    roots.into_iter().map(|root| Project { root }).collect()
}

/// Returns the path of every record, with the root of its project.
pub fn records(world: &World) -> Vec<(PathBuf, PathBuf)> {
    let folder = world.data_dir().map(|dir| dir.join("sessions")).unwrap_or_default();
    let read = |path: PathBuf| {
        let record: Record = file::read_json(&path, MAX_RECORD_BYTES)?;
        Some((path, PathBuf::from(record.project)))
    };
    entries(&folder).into_iter().filter_map(read).collect()
}

fn path(world: &World, root: &Path, session: &str) -> Result<PathBuf> {
    let (session, root) = (fingerprint(session.as_bytes()), fingerprint(root.as_os_str().as_encoded_bytes()));
    let name = format!("{session:016x}-{root:016x}.json");
    Ok(world.data_dir()?.join("sessions").join(name))
}
