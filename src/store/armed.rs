//! Which loops this user armed. A state file from elsewhere starts nothing: only a run recorded here,
//! for this project and session, is alive.
//!
//! The record's name follows from session and project, so that a session without a loop finds out by one
//! look at a file that is not there.

use super::file::{self, Privacy};
use super::project::{Project, fingerprint};
use super::world::World;
use crate::core::record::Loop;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
struct Record {
    run_id: String,
    session_id: String,
    /// For people; which project it is follows from the record's name.
    project: String,
    /// Commands given as flags: only the user's own folder may hold what we run.
    #[serde(default)]
    commands: Map<String, Value>,
    /// The loop as it was armed: should the state be lost, it is still known what ended.
    armed: Option<Box<RawValue>>,
}

const LARGEST: u64 = 1 << 20;

pub fn arm(world: &World, project: &Project, session: &str, lap: &Loop) -> Result<()> {
    let root = project.real_root();
    let record = Record {
        run_id: lap.run_id.clone(),
        session_id: session.to_owned(),
        project: root.to_string_lossy().into_owned(),
        commands: lap.given.commands.clone(),
        armed: Some(serde_json::value::to_raw_value(lap)?),
    };
    let path = path(world.data_dir()?, session, &root);
    file::create_dir(path.parent().unwrap_or(&path))?;
    file::replace(&path, serde_json::to_string(&record)?.as_bytes(), Privacy::Private)
}

fn record(world: &World, project: &Project, session: &str) -> Option<Record> {
    let root = project.real_root();
    let bytes = file::read_bounded(&path(world.data_dir().ok()?, session, &root), LARGEST).ok()??;
    let record: Record = serde_json::from_slice(&bytes).ok()?;
    (record.session_id == session && record.project == root.to_string_lossy()).then_some(record)
}

/// Whether any run is armed for this session here: a look, which reads nothing.
pub fn any(world: &World, project: &Project, session: &str) -> bool {
    world.data_dir().is_ok_and(|dir| path(dir, session, &project.real_root()).is_file())
}

/// The loop, with the commands its user gave, where it is the one that was armed for this session here.
pub fn claim(world: &World, project: &Project, session: &str, mut lap: Loop) -> Option<Loop> {
    let record = record(world, project, session).filter(|record| record.run_id == lap.run_id)?;
    lap.given.commands = record.commands;
    Some(lap)
}

/// The loop that is armed here, as it was then.
pub fn as_armed(world: &World, project: &Project, session: &str) -> Option<Loop> {
    let record = record(world, project, session)?;
    let mut lap: Loop = serde_json::from_str(record.armed?.get()).ok()?;
    lap.given.commands = record.commands;
    Some(lap)
}

/// The record as it stands, to be put back where a change of it fails halfway.
pub struct Before(PathBuf, Option<Vec<u8>>);

pub fn before(world: &World, project: &Project, session: &str) -> Result<Before> {
    let path = path(world.data_dir()?, session, &project.real_root());
    let bytes = file::read_bounded(&path, LARGEST)?;
    Ok(Before(path, bytes))
}

pub fn put_back(before: &Before) {
    let _ = match before {
        Before(path, Some(bytes)) => file::replace(path, bytes, Privacy::Private),
        Before(path, None) => std::fs::remove_file(path).map_err(Into::into),
    };
}

pub fn is_armed(world: &World, project: &Project, session: &str, lap: &Loop) -> bool {
    record(world, project, session).is_some_and(|record| record.run_id == lap.run_id)
}

pub fn disarm(world: &World, project: &Project, session: &str) {
    if let Ok(dir) = world.data_dir() {
        let _ = std::fs::remove_file(path(dir, session, &project.real_root()));
    }
}

/// Every project in which this user has an armed loop.
pub fn projects(world: &World) -> Vec<Project> {
    let mut roots: Vec<PathBuf> = records(world).into_iter().map(|(_, root)| root).collect();
    roots.sort();
    roots.dedup();
    roots.into_iter().map(|root| Project { root }).collect()
}

/// Every record, with the project it is for.
pub fn records(world: &World) -> Vec<(PathBuf, PathBuf)> {
    let entries = world.data_dir().ok().and_then(|dir| std::fs::read_dir(dir.join("sessions")).ok());
    let read = |path: PathBuf| {
        let bytes = file::read_bounded(&path, LARGEST).ok()??;
        let record: Record = serde_json::from_slice(&bytes).ok()?;
        Some((path, PathBuf::from(record.project)))
    };
    entries.into_iter().flatten().flatten().filter_map(|entry| read(entry.path())).collect()
}

fn path(data_dir: &Path, session: &str, root: &Path) -> PathBuf {
    let (session, root) = (fingerprint(session.as_bytes()), fingerprint(root.as_os_str().as_encoded_bytes()));
    data_dir.join("sessions").join(format!("{session:016x}-{root:016x}.json"))
}
