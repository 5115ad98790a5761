//! What the system tells about a process by its number.

/// Returns whether the process is there.
#[cfg(unix)]
pub fn is_alive(pid: u32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    // A process of another user may not be signalled, which says that it is there.
    !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}

/// Returns whether the number can be a process: there is no cheap way to ask.
#[cfg(not(unix))]
pub fn is_alive(pid: u32) -> bool {
    pid > 0
}

/// Returns the process that started this one; another number once it is gone.
#[cfg(unix)]
pub fn parent() -> Option<u32> {
    Some(std::os::unix::process::parent_id())
}

#[cfg(not(unix))]
pub fn parent() -> Option<u32> {
    None
}

/// Returns when the process started, as its system counts; `None` if it is not there or cannot be asked. Number and
/// start time together name a process: a number alone is given again.
#[cfg(target_os = "linux")]
pub fn start_time(pid: u32) -> Option<String> {
    let stat = stat(&std::path::Path::new("/proc").join(pid.to_string())).filter(|stat| !is_zombie(stat))?;
    stat.get(19).cloned()
}

#[cfg(not(target_os = "linux"))]
pub fn start_time(pid: u32) -> Option<String> {
    let mut ps = super::lookup::command("ps");
    ps.args(["-o", "lstart=", "-p", &pid.to_string()]).stderr(std::process::Stdio::null());
    let text = String::from_utf8_lossy(&ps.output().ok()?.stdout).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Returns the name of the namespace in which this process sees the numbers of others, such as `pid:[4026531836]`.
pub fn namespace() -> Option<String> {
    Some(std::fs::read_link("/proc/self/ns/pid").ok()?.to_str()?.to_owned())
}

/// Returns whether every process of the group is a zombie. Without an init process, as in many containers, a zombie
/// stays forever.
#[cfg(target_os = "linux")]
pub fn only_zombies(group: u32) -> bool {
    let Ok(entries) = std::fs::read_dir("/proc") else { return false };
    let group = Some(group.to_string());
    let mut stats = entries.flatten().filter_map(|entry| stat(&entry.path()));
    !stats.any(|stat| stat.get(2) == group.as_ref() && !is_zombie(&stat))
}

#[cfg(not(target_os = "linux"))]
pub fn only_zombies(_: u32) -> bool {
    false
}

/// Returns whether the process is one of this user's and not a zombie.
#[cfg(target_os = "linux")]
pub fn is_running_of(pid: i32, user: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
    !field("State:").starts_with(['Z', 'X'])
        && field("Uid:").split_whitespace().next().and_then(|uid| uid.parse().ok()) == Some(user)
}

/// Returns the fields of `/proc/PID/stat` from the state on. The name before it may hold anything, in brackets.
#[cfg(target_os = "linux")]
fn stat(dir: &std::path::Path) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(dir.join("stat")).ok()?;
    Some(stat.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

#[cfg(target_os = "linux")]
fn is_zombie(stat: &[String]) -> bool {
    matches!(stat.first().map(String::as_str), Some("Z" | "X"))
}
