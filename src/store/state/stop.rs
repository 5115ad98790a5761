//! Stops that reach a loop from outside its session: the kill switch and `ralph stop --all`.

use crate::core::time::Stamp;
use crate::store::{Project, World, file};
use anyhow::Result;

pub fn kill_switch(project: &Project) -> bool {
    project.kill_switch().symlink_metadata().is_ok()
}

pub fn clear_kill_switch(project: &Project) {
    let path = project.kill_switch();
    let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir(&path));
}

/// Stops every loop of this user that was armed until now.
pub fn stop_all(world: &World) -> Result<()> {
    let text = format!("{}\n", world.now.rfc3339());
    file::replace_private(&world.data_dir()?.join("stop-all"), text.as_bytes())
}

pub fn stopped_all_at(world: &World) -> Option<Stamp> {
    let bytes = file::read_bounded(&world.data_dir().ok()?.join("stop-all"), 4096).ok()??;
    Stamp::parse(&String::from_utf8_lossy(&bytes))
}
