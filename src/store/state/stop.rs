//! Stops that reach a loop from outside its session: the kill switch and `ralph stop --all`.

use crate::core::time::Stamp;
use crate::store::{Project, World, file};
use anyhow::Result;

/// Returns whether the kill switch is there. Only a regular file counts, which a person makes with `touch`.
pub fn kill_switch(project: &Project) -> bool {
    // Asked at every turn of every session: most projects have none.
    is_there(project) && project.file(&project.kill_switch()).is_ok()
}

/// Says why what has the name of the kill switch stops nothing.
pub fn odd_kill_switch(project: &Project) -> Option<anyhow::Error> {
    is_there(project).then(|| project.file(&project.kill_switch()).err()).flatten()
}

fn is_there(project: &Project) -> bool {
    project.kill_switch().symlink_metadata().is_ok()
}

/// What a start says after it removed the kill switch.
pub const REMOVED: &str = ".claude/STOP_LOOP was removed: it would have stopped this loop";

pub fn clear_kill_switch(project: &Project) {
    if let Ok(path) = project.file(&project.kill_switch()) {
        let _ = std::fs::remove_file(path);
    }
}

/// Stops every loop of this user that was armed until now.
pub fn stop_all(world: &World) -> Result<()> {
    let text = format!("{}\n", world.now.rfc3339());
    file::replace_private(&world.data_dir()?.join("stop-all"), text.as_bytes())
}

/// Returns when `ralph stop --all` was last run. A record that cannot be read is an error: taken for none, it would end
/// loops that it did not mean.
pub fn stopped_all_at(world: &World) -> Result<Option<Stamp>> {
    let Ok(data_dir) = world.data_dir() else { return Ok(None) };
    let bytes = file::read_bounded(&data_dir.join("stop-all"), 4096)?;
    Ok(bytes.and_then(|bytes| Stamp::parse(&String::from_utf8_lossy(&bytes))))
}
