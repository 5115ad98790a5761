//! Which loops this user armed. A state file from elsewhere starts nothing: only a run recorded here,
//! for this project and session, is alive.

use super::file::{self, Privacy};
use super::project::Project;
use super::world::World;
use crate::core::record::Loop;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
struct Record {
    run_id: String,
    session_id: String,
    project: PathBuf,
}

const LARGEST: u64 = 64 << 10;

pub fn arm(world: &World, project: &Project, session: &str, lap: &Loop) -> Result<()> {
    let record =
        Record { run_id: lap.run_id.clone(), session_id: session.to_owned(), project: real(&project.root) };
    let path = path(world.data_dir()?, &lap.run_id)
        .ok_or_else(|| anyhow::anyhow!("a run id that is no file name"))?;
    file::create_dir(path.parent().unwrap_or(&path))?;
    file::replace(&path, serde_json::to_string(&record)?.as_bytes(), Privacy::Private)
}

pub fn is_armed(world: &World, project: &Project, session: &str, lap: &Loop) -> bool {
    let read = || {
        let bytes = file::read_bounded(&path(world.data_dir().ok()?, &lap.run_id)?, LARGEST).ok()??;
        let record: Record = serde_json::from_slice(&bytes).ok()?;
        let same = record.run_id == lap.run_id && record.session_id == session;
        Some(same && (record.project == project.root || record.project == real(&project.root)))
    };
    read().unwrap_or(false)
}

pub fn disarm(world: &World, lap: &Loop) {
    if let Some(path) = world.data_dir().ok().and_then(|dir| path(dir, &lap.run_id)) {
        let _ = std::fs::remove_file(path);
    }
}

/// Whether any project has an armed loop of this session.
pub fn has_session(world: &World, session: &str) -> bool {
    records(world).any(|record| record.session_id == session)
}

fn records(world: &World) -> impl Iterator<Item = Record> {
    let entries = world.data_dir().ok().and_then(|dir| std::fs::read_dir(dir.join("armed")).ok());
    entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| file::read_bounded(&entry.path(), LARGEST).ok()?)
        .filter_map(|bytes| serde_json::from_slice::<Record>(&bytes).ok())
}

/// Every project in which this user has an armed loop.
pub fn projects(world: &World) -> Vec<Project> {
    let mut roots: Vec<PathBuf> = records(world).map(|record| record.project).collect();
    roots.sort();
    roots.dedup();
    roots.into_iter().map(|root| Project { root }).collect()
}

/// Run ids come back to us from the project's file, so they are checked before they name a file.
fn path(data_dir: &Path, run_id: &str) -> Option<PathBuf> {
    let safe =
        (8..=64).contains(&run_id.len()) && run_id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    safe.then(|| data_dir.join("armed").join(format!("{run_id}.json")))
}

fn real(root: &Path) -> PathBuf {
    root.canonicalize().unwrap_or_else(|_| root.to_owned())
}
