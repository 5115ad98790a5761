//! `ralph/run.lock`: says who runs here, and which agent is its own, so that the next run can end a survivor.

use super::target::Target;
use crate::core::time::Stamp;
use crate::store::file;
use crate::store::project::Project;
use crate::store::run_lock;
use anyhow::Result;
use serde_json::{Value, json};

const LARGEST: u64 = 64 << 10;

/// Takes the project, for this process and run.
pub fn take(project: &Project, run_id: &str, target: &Target, now: Stamp) -> Result<()> {
    file::create_dir(&project.work_dir())?;
    let pid = std::process::id();
    let mut lock = json!({"pid": pid, "started_at": now, "run_id": run_id, "process": birth(pid)});
    if let Target::Container { name, .. } = target {
        lock["container"] = name.as_str().into();
    }
    write(project, &lock)
}

fn write(project: &Project, lock: &Value) -> Result<()> {
    let path = project.resolve(&run_lock::path(project))?;
    // It outlives us, and need not outlive the machine.
    file::replace_quickly(&path, lock.to_string().as_bytes())
}

fn read(project: &Project) -> Option<Value> {
    let path = project.resolve(&run_lock::path(project)).ok()?;
    serde_json::from_slice(&file::read_bounded(&path, LARGEST).ok()??).ok()
}

/// Notes the agent that runs now. One that is gone may stay noted: nobody else has its number and its birth.
pub fn note_child(project: &Project, pid: u32) {
    let Some(mut lock) = read(project) else { return };
    lock["child"] = json!({"pid": pid, "process": birth(pid)});
    let _ = write(project, &lock);
}

pub fn release(project: &Project) {
    if read(project).is_some_and(|lock| lock["pid"] == std::process::id())
        && let Ok(path) = project.resolve(&run_lock::path(project))
    {
        let _ = std::fs::remove_file(path);
    }
}

/// Whether the process that wrote the lock is still there: the same number may be another's by now.
pub fn is_held(project: &Project) -> bool {
    let Some(lock) = read(project) else { return false };
    let Some(pid) = run_lock::holder(project).map(|holder| holder.pid) else { return false };
    same(&lock["process"], pid)
}

/// The run that holds or held the project, and the container it works in, where it is one.
pub fn container(project: &Project) -> Option<(String, String)> {
    let lock = read(project)?;
    Some((lock["run_id"].as_str()?.to_owned(), lock["container"].as_str()?.to_owned()))
}

/// The run that a runner left behind when it died, and the process of its agent where that still lives.
pub fn left_behind(project: &Project) -> Option<(String, Option<u32>)> {
    let lock = read(project).filter(|_| !is_held(project))?;
    Some((lock["run_id"].as_str().unwrap_or_default().to_owned(), living_child(&lock)))
}

/// The agent, by number and moment of birth: the file may come with a repository, and who is not known by his
/// birth is not ours.
fn living_child(lock: &Value) -> Option<u32> {
    let pid = lock["child"]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    let noted = lock["child"]["process"].as_str();
    pid.filter(|pid| noted.is_some() && birth(*pid).as_deref() == noted)
}

/// Ends what a runner that died left running: its agent, and whatever bears the run's mark. Nobody else is
/// touched. Returns whether there was something.
pub fn end_survivor(project: &Project) -> bool {
    let Some(lock) = read(project) else { return false };
    if is_held(project) {
        return false;
    }
    let alive = living_child(&lock);
    #[cfg(unix)]
    if let Some(pid) = alive.and_then(|pid| rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)) {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
    if let Some(run_id) = lock["run_id"].as_str().filter(|id| !id.is_empty()) {
        Target::Local.sweep(run_id, true, None);
        // What begins with a dash would be an option.
        let named = lock["container"].as_str().filter(|name| !name.starts_with('-'));
        if let Some(name) = named.map(str::to_owned) {
            Target::Container { name, workdir: None }.sweep(run_id, false, None);
        }
    }
    alive.is_some()
}

fn same(noted: &Value, pid: u32) -> bool {
    noted.as_str().is_none_or(|noted| birth(pid).as_deref() == Some(noted))
}

/// When a process was born, as its system counts; nothing where it is not there or not to be asked.
fn birth(pid: u32) -> Option<String> {
    #[cfg(target_os = "linux")]
    {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Its name may hold anything, and stands in the last brackets.
        let (_, fields) = stat.rsplit_once(')')?;
        // One that has ended, and that nobody has asked about yet, is not there.
        let ended = fields.trim_start().starts_with(['Z', 'X']);
        fields.split_whitespace().nth(19).filter(|_| !ended).map(str::to_owned)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let output = std::process::Command::new("ps")
            .args(["-o", "lstart=", "-p", &pid.to_string()])
            .stderr(std::process::Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }
}
