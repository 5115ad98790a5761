//! `ralph/run.lock`: who runs the runner in this project. The runner writes it; everybody may ask.

use super::file;
use super::project::Project;
use super::world::World;
use crate::core::time::Stamp;
use serde::Deserialize;
use std::path::PathBuf;

const LARGEST: u64 = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Holder {
    pub pid: u32,
    #[serde(default)]
    pub started_at: Stamp,
    #[serde(default)]
    pub run_id: String,
    /// The container its agent runs in, where it does.
    #[serde(default)]
    container: Option<String>,
}

pub fn path(project: &Project) -> PathBuf {
    project.work_dir().join("run.lock")
}

/// Whoever holds the project and lives. A file that a dead runner left, or that says nothing, holds nobody up.
pub fn holder(project: &Project) -> Option<Holder> {
    noted(project).filter(|holder| lives(holder.pid))
}

fn noted(project: &Project) -> Option<Holder> {
    let path = project.resolve(&path(project)).ok()?;
    serde_json::from_slice(&file::read_bounded(&path, LARGEST).ok()??).ok()
}

/// Whether this process was started by the runner that holds this project. Costs nothing where it was not.
///
/// From inside a container the runner cannot be seen, and its number may be another's. There the id has to do: no
/// repository can guess it, and only what the runner started inherits it.
pub fn drives(world: &World, project: &Project) -> bool {
    let Some(run_id) = world.run_id.as_ref().filter(|id| !id.is_empty()) else { return false };
    let own = noted(project).filter(|holder| holder.run_id == *run_id);
    own.is_some_and(|holder| holder.container.is_some() || lives(holder.pid))
}

#[cfg(unix)]
fn lives(pid: u32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    // Somebody else's process may not be asked, and that says that it is there.
    !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}

/// Without a cheap way to ask, the file is believed; a stale one is removed by hand.
#[cfg(not(unix))]
fn lives(pid: u32) -> bool {
    pid > 0
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_a_living_holder_holds() {
        let dir = tempfile::tempdir().unwrap();
        let project = Project { root: dir.path().canonicalize().unwrap() };
        assert_eq!(holder(&project), None);
        fs::create_dir(project.work_dir()).unwrap();
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let own = std::process::id();
        let cases = [
            (
                format!("{{\"pid\": {own}, \"run_id\": \"r\", \"started_at\": \"2026-11-16T08:00:00Z\"}}"),
                true,
            ),
            (format!("{{\"pid\": {own}, \"more\": null}}"), true),
            (format!("{{\"pid\": {}, \"run_id\": \"r\"}}", gone.id()), false),
            ("{\"pid\": 0}".into(), false),
            ("{\"pid\": 4294967295}".into(), false),
            ("{\"pid\": \"x\"}".into(), false),
            (String::new(), false),
        ];
        for (text, held) in cases {
            fs::write(path(&project), &text).unwrap();
            assert_eq!(holder(&project).is_some(), held, "{text}");
        }
    }

    #[test]
    fn a_runner_drives_only_what_it_started_itself() {
        let dir = tempfile::tempdir().unwrap();
        let project = Project { root: dir.path().canonicalize().unwrap() };
        fs::create_dir(project.work_dir()).unwrap();
        fs::write(path(&project), format!("{{\"pid\": {}, \"run_id\": \"r\"}}", std::process::id())).unwrap();
        let mut world = World::at(dir.path(), dir.path());
        for (run_id, expected) in [(None, false), (Some("other"), false), (Some("r"), true)] {
            world.run_id = run_id.map(str::to_owned);
            assert_eq!(drives(&world, &project), expected, "{run_id:?}");
        }
        for (container, expected) in [("null", false), ("\"box\"", true)] {
            let lock = format!("{{\"pid\": 0, \"run_id\": \"r\", \"container\": {container}}}");
            fs::write(path(&project), lock).unwrap();
            assert_eq!(drives(&world, &project), expected, "out of sight, in container {container}");
            assert_eq!(holder(&project), None, "to others it is gone");
        }
        world.run_id = Some("other".into());
        assert!(!drives(&world, &project));
    }
}
