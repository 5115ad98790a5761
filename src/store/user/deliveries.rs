//! How the last notification was delivered: a process without a terminal sends it, so this is where the user sees it.

use crate::core::time::Stamp;
use crate::store::{World, file};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

const MAX_BYTES: u64 = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivered {
    pub at: Stamp,
    pub host: String,
    pub event: String,
    /// The last status of the service, if it answered.
    pub status: Option<u16>,
    /// Why it failed.
    pub error: Option<String>,
}

fn path(world: &World) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("last-notification.json"))
}

pub fn record(world: &World, delivered: &Delivered) -> Result<()> {
    file::replace_private(&path(world)?, &serde_json::to_vec(delivered)?)
}

pub fn last(world: &World) -> Option<Delivered> {
    file::read_record(&path(world).ok()?, MAX_BYTES).ok()?
}
