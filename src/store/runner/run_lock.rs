//! Which runner works in this project, and which agent process is its own.
//!
//! The proof is a lock on a file in the user's data folder: the system gives it to one process, takes it back when that
//! ends however it ends, and nothing in the project can forge or remove it. A record beside it names the process.
//!
//! `ralph/run.lock` in the project is only for the hooks inside a container, which do not see that folder. It proves
//! nothing and refuses nothing. This is its only reader and writer.

use crate::core::time::Stamp;
use crate::store::file::lock::Lock;
use crate::store::process::{mark, pid};
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
    /// Where its agent runs, if not here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
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
    /// Returns a record that names this process.
    pub fn of_this_process(run_id: &str, now: Stamp) -> RunLock {
        let pid = std::process::id();
        let process = pid::start_time(pid);
        RunLock { pid, started_at: now, run_id: run_id.to_owned(), process, ..RunLock::default() }
    }

    /// Returns the agent's process if it still runs.
    pub fn living_agent(&self) -> Option<u32> {
        let child = self.child.as_ref().filter(|child| child.process.is_some())?;
        (pid::start_time(child.pid) == child.process).then_some(child.pid)
    }

    fn is_alive(&self) -> bool {
        self.process.is_some() && self.process == pid::start_time(self.pid)
    }
}

/// The project, held by this process until this is dropped.
#[derive(Debug)]
pub struct HeldProject {
    lock: Lock,
    project: Project,
    record: PathBuf,
    /// What others are told, once there is a run.
    published: Option<RunLock>,
}

impl HeldProject {
    /// Takes the project for this process, or returns who has it.
    pub fn take(world: &World, project: &Project) -> Result<Result<HeldProject, RunLock>> {
        let lock = path(world, project, "lock")?;
        file::create_dir(lock.parent().unwrap_or(&lock))?;
        // A look of `ralph status` may have the lock for a moment, and is not waited for if a runner has it.
        let is_named = || holder(world, project).is_some_and(|holder| holder.is_alive());
        let Some(lock) = Lock::acquire_unless(&lock, is_named)? else {
            return Ok(Err(read(world, project).unwrap_or_default()));
        };
        let record = path(world, project, "json")?;
        Ok(Ok(HeldProject { lock, project: project.clone(), record, published: None }))
    }

    /// Returns the record of a runner that died here before.
    pub fn left_behind(&self) -> Option<RunLock> {
        file::read_json(&self.record, MAX_FILE_BYTES).filter(|_| self.published.is_none())
    }

    /// Tells others which run has the project.
    pub fn publish(&mut self, published: RunLock) -> Result<()> {
        self.write(&published)?;
        self.published = Some(published);
        Ok(())
    }

    /// Notes the agent process that runs now.
    pub fn note_agent(&self, pid: u32) {
        if let Some(published) = &self.published {
            let child = Some(Process { pid, process: pid::start_time(pid) });
            let _ = self.write(&RunLock { child, ..published.clone() });
        }
    }

    /// Keeps the record beyond the end of this run: its agent may still be running.
    pub fn keep_record(&mut self) {
        self.published = None;
    }

    /// Removes the record of a runner that died: nothing of it is left.
    pub fn forget_left_behind(&self) {
        if self.published.is_none() {
            let _ = std::fs::remove_file(&self.record);
        }
    }

    /// Gives the project back.
    pub fn release(&mut self) {
        if let Some(published) = self.published.take() {
            let _ = std::fs::remove_file(&self.record);
            if read_marker(&self.project).is_some_and(|marker| marker.run_id == published.run_id)
                && let Ok(path) = self.project.file(&marker(&self.project))
            {
                let _ = std::fs::remove_file(path);
            }
        }
        self.lock.release();
    }

    fn write(&self, published: &RunLock) -> Result<()> {
        let bytes = serde_json::to_vec(published)?;
        // It outlives us, and need not outlive the machine.
        file::replace_unsynced(&self.record, &bytes)?;
        if published.container.is_some() {
            file::create_dir(&self.project.folder(&self.project.work_dir())?)?;
            let marker = self.project.file(&marker(&self.project))?;
            file::replace_unsynced(&marker, &bytes)?;
        }
        Ok(())
    }
}

impl Drop for HeldProject {
    fn drop(&mut self) {
        self.release();
    }
}

fn path(world: &World, project: &Project, extension: &str) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("runs").join(format!("{}.{extension}", project.key())))
}

fn marker(project: &Project) -> PathBuf {
    project.work_dir().join("run.lock")
}

fn read(world: &World, project: &Project) -> Option<RunLock> {
    file::read_json(&path(world, project, "json").ok()?, MAX_FILE_BYTES)
}

fn read_marker(project: &Project) -> Option<RunLock> {
    serde_json::from_slice(&project.read(&marker(project), MAX_FILE_BYTES).ok()??).ok()
}

fn is_held(world: &World, project: &Project) -> bool {
    path(world, project, "lock").is_ok_and(|path| Lock::is_held(&path))
}

/// Returns who has the project.
pub fn holder(world: &World, project: &Project) -> Option<RunLock> {
    is_held(world, project).then(|| read(world, project).unwrap_or_default())
}

/// Returns the record of a runner that died.
pub fn left_behind(world: &World, project: &Project) -> Option<RunLock> {
    read(world, project).filter(|_| !is_held(world, project))
}

/// Returns the container in which the agent of this project's runner works, or worked when the runner died.
pub fn container(world: &World, project: &Project) -> Option<String> {
    read(world, project)?.container
}

/// Returns `ralph/run.lock` and its run if no runner of this user wrote it.
pub fn stray_marker(world: &World, project: &Project) -> Option<(PathBuf, String)> {
    let found = read_marker(project)?;
    let is_ours = read(world, project).is_some_and(|record| record.run_id == found.run_id);
    (!is_ours).then(|| (marker(project), found.run_id))
}

/// Returns whether this process was started by the runner that holds this project. Without `RALPH_RUN_ID` it reads
/// nothing.
///
/// From inside a container neither the runner nor its lock can be seen. There the mark of the run has to prove it, which only
/// what the runner started has: a repository can write `ralph/run.lock` and set variables, but no limit of a process.
pub fn is_runner_child(world: &World, project: &Project) -> bool {
    let Some(run_id) = world.run_id.as_ref().filter(|id| !id.is_empty()) else { return false };
    holder(world, project).is_some_and(|lock| lock.run_id == *run_id)
        || mark::is_own(run_id)
            && read_marker(project).is_some_and(|lock| lock.run_id == *run_id && lock.container.is_some())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::fs;

    fn place() -> (tempfile::TempDir, World, Project) {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let project = Project { root: base.join("project") };
        fs::create_dir_all(project.work_dir()).unwrap();
        let world = World::at(&project.root, &base.join("data"));
        (dir, world, project)
    }

    #[test]
    fn the_lock_decides_who_has_the_project_and_the_record_names_it() {
        let (_dir, world, project) = place();
        assert_eq!(holder(&world, &project), None);
        let mut held = HeldProject::take(&world, &project).unwrap().unwrap();
        held.publish(RunLock::of_this_process("r", Stamp(5))).unwrap();
        let named = holder(&world, &project).unwrap();
        assert_eq!((named.pid, named.run_id.as_str(), named.is_alive()), (std::process::id(), "r", true));
        assert_eq!(HeldProject::take(&world, &project).unwrap().unwrap_err(), named);
        fs::remove_dir_all(&project.root).unwrap();
        fs::create_dir_all(&project.root).unwrap();
        assert_eq!(holder(&world, &project), Some(named), "whatever happens in the project");
        drop(held);
        assert_eq!((holder(&world, &project), left_behind(&world, &project)), (None, None));
        drop(HeldProject::take(&world, &project).unwrap().unwrap());
    }

    #[test]
    fn a_record_without_the_lock_is_of_a_runner_that_died() {
        let (_dir, world, project) = place();
        let held = HeldProject::take(&world, &project).unwrap().unwrap();
        let dead = RunLock::of_this_process("r", Stamp(5));
        held.write(&dead).unwrap();
        drop(held);
        assert_eq!(holder(&world, &project), None, "although its process number is in use");
        assert_eq!(left_behind(&world, &project), Some(dead.clone()));
        // A runner that takes the project and begins no run leaves the record.
        drop(HeldProject::take(&world, &project).unwrap().unwrap());
        assert_eq!(left_behind(&world, &project), Some(dead));
    }

    #[test]
    fn what_runs_beside_the_runner_does_not_keep_its_lock() {
        let (_dir, world, project) = place();
        let held = HeldProject::take(&world, &project).unwrap().unwrap();
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        drop(held);
        let again = HeldProject::take(&world, &project).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(again.is_ok());
    }

    #[test]
    fn a_file_of_the_project_holds_nothing() {
        let (_dir, mut world, project) = place();
        let own = std::process::id();
        for text in ["{\"pid\":1}".to_owned(), format!("{{\"pid\": {own}, \"run_id\": \"r\"}}"), "{".into()] {
            fs::write(marker(&project), &text).unwrap();
            assert_eq!((holder(&world, &project), left_behind(&world, &project)), (None, None), "{text}");
            world.run_id = Some("r".into());
            assert!(!is_runner_child(&world, &project), "{text}");
            drop(HeldProject::take(&world, &project).unwrap().unwrap());
        }
    }

    #[test]
    fn a_runner_drives_only_what_it_started() {
        let (_dir, mut world, project) = place();
        let mut held = HeldProject::take(&world, &project).unwrap().unwrap();
        for container in [None, Some("box".to_owned())] {
            held.publish(RunLock { container: container.clone(), ..RunLock::of_this_process("r", Stamp(5)) })
                .unwrap();
            for (run_id, expected) in [(None, false), (Some("other"), false), (Some("r"), true)] {
                world.run_id = run_id.map(str::to_owned);
                assert_eq!(is_runner_child(&world, &project), expected, "{run_id:?}");
            }
            // Inside a container there is another data folder. This process has no mark of the run.
            let mut inside = World::at(&project.root, &project.root.join("none"));
            inside.run_id = Some("r".into());
            assert!(!is_runner_child(&inside, &project), "{container:?}");
        }
        drop(held);
        assert!(!is_runner_child(&world, &project) && !marker(&project).exists());
    }
}
