//! `ralph/run.lock`: which runner works in this project, and which agent process is its own. This is its only reader
//! and writer.
//!
//! The file may have come with a repository, so a process counts only by its number and its start time.

use crate::core::time::Stamp;
use crate::store::process::pid;
use crate::store::{Project, World, file};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

const MAX_FILE_BYTES: u64 = 64 << 10;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunLock {
    pub pid: u32,
    pub started_at: Stamp,
    pub run_id: String,
    /// The start time of the runner's process.
    process: Option<String>,
    /// The container its agent runs in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The agent process that was started last.
    #[serde(skip_serializing_if = "Option::is_none")]
    child: Option<Process>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Process {
    pid: u32,
    process: Option<String>,
}

impl RunLock {
    fn is_alive(&self) -> bool {
        let same = || self.process.is_none() || self.process == pid::start_time(self.pid);
        pid::is_alive(self.pid) && same()
    }

    /// Returns the agent's process if it still runs.
    pub fn living_agent(&self) -> Option<u32> {
        let child = self.child.as_ref().filter(|child| child.process.is_some())?;
        (pid::start_time(child.pid) == child.process).then_some(child.pid)
    }
}

pub fn path(project: &Project) -> PathBuf {
    project.work_dir().join("run.lock")
}

/// Takes the project for this process and run.
pub fn take(project: &Project, run_id: &str, container: Option<&str>, now: Stamp) -> Result<()> {
    file::create_dir(&project.work_dir())?;
    let pid = std::process::id();
    let lock = RunLock {
        pid,
        started_at: now,
        run_id: run_id.to_owned(),
        process: pid::start_time(pid),
        container: container.map(str::to_owned),
        child: None,
    };
    write(project, &lock)
}

fn write(project: &Project, lock: &RunLock) -> Result<()> {
    let path = project.resolve(&path(project))?;
    // It outlives us, and need not outlive the machine.
    file::replace_unsynced(&path, serde_json::to_string(lock)?.as_bytes())
}

fn read(project: &Project) -> Option<RunLock> {
    let path = project.resolve(&path(project)).ok()?;
    file::read_json(&path, MAX_FILE_BYTES)
}

/// Notes the agent process that runs now.
pub fn note_agent(project: &Project, pid: u32) {
    let Some(mut lock) = read(project) else { return };
    lock.child = Some(Process { pid, process: pid::start_time(pid) });
    let _ = write(project, &lock);
}

pub fn release(project: &Project) {
    if read(project).is_some_and(|lock| lock.pid == std::process::id())
        && let Ok(path) = project.resolve(&path(project))
    {
        let _ = std::fs::remove_file(path);
    }
}

/// Returns the lock if its runner is alive.
pub fn holder(project: &Project) -> Option<RunLock> {
    read(project).filter(RunLock::is_alive)
}

/// Returns the lock if its runner is gone.
pub fn left_behind(project: &Project) -> Option<RunLock> {
    read(project).filter(|lock| !lock.is_alive())
}

/// Returns the run that holds or held the project and the container it works in, if it uses one.
pub fn container(project: &Project) -> Option<(String, String)> {
    let lock = read(project)?;
    Some((lock.run_id, lock.container?))
}

/// Returns whether this process was started by the runner that holds this project. Without `RALPH_RUN_ID` it reads
/// nothing.
///
/// From inside a container the runner cannot be seen, and its number may be another process. There the id has to do:
/// no repository can guess it, and only what the runner started inherits it.
pub fn drives(world: &World, project: &Project) -> bool {
    let Some(run_id) = world.run_id.as_ref().filter(|id| !id.is_empty()) else { return false };
    let own = read(project).filter(|lock| lock.run_id == *run_id);
    own.is_some_and(|lock| lock.container.is_some() || lock.is_alive())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_a_living_runner_holds_the_project() {
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
            (format!("{{\"pid\": {own}, \"process\": \"another start time\"}}"), false),
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
    fn a_runner_drives_only_what_it_started() {
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
