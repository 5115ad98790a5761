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
        Record { run_id: lap.run_id.clone(), session_id: session.to_owned(), project: project.real_root() };
    let path = path(world.data_dir()?, session, &record.project);
    file::create_dir(path.parent().unwrap_or(&path))?;
    file::replace(&path, serde_json::to_string(&record)?.as_bytes(), Privacy::Private)
}

/// The run that is armed for this session here.
pub fn run_id(world: &World, project: &Project, session: &str) -> Option<String> {
    let root = project.real_root();
    let bytes = file::read_bounded(&path(world.data_dir().ok()?, session, &root), LARGEST).ok()??;
    let record: Record = serde_json::from_slice(&bytes).ok()?;
    (record.session_id == session && record.project == root).then_some(record.run_id)
}

pub fn is_armed(world: &World, project: &Project, session: &str, lap: &Loop) -> bool {
    run_id(world, project, session).is_some_and(|run_id| run_id == lap.run_id)
}

pub fn disarm(world: &World, project: &Project, session: &str) {
    if let Ok(dir) = world.data_dir() {
        let _ = std::fs::remove_file(path(dir, session, &project.real_root()));
    }
}

/// Every project in which this user has an armed loop.
pub fn projects(world: &World) -> Vec<Project> {
    let entries = world.data_dir().ok().and_then(|dir| std::fs::read_dir(dir.join("armed")).ok());
    let mut roots: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| file::read_bounded(&entry.path(), LARGEST).ok()?)
        .filter_map(|bytes| Some(serde_json::from_slice::<Record>(&bytes).ok()?.project))
        .collect();
    roots.sort();
    roots.dedup();
    roots.into_iter().map(|root| Project { root }).collect()
}

fn path(data_dir: &Path, session: &str, root: &Path) -> PathBuf {
    let (session, root) = (fingerprint(session.as_bytes()), fingerprint(root.as_os_str().as_encoded_bytes()));
    data_dir.join("armed").join(format!("{session:016x}-{root:016x}.json"))
}
