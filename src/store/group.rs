//! A started command and everything it started, ended together: asked first, then killed.
//!
//! What is out of reach: a program that left the group (a daemon, `setsid`). On Windows there are no groups
//! and no guard; the tree of processes is killed at once.

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
#[cfg(unix)]
use std::time::Instant;

/// From the request to end to the end by force.
const GRACE: Duration = Duration::from_secs(2);
#[cfg(unix)]
const POLL: Duration = Duration::from_millis(10);

/// Makes the command the leader of a group of its own, so that what reaches us does not reach it.
pub fn lead(command: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(not(unix))]
    let _ = command;
}

/// The group of a running leader. Should this process be killed meanwhile, the group ends with it.
pub struct Group {
    leader: u32,
    _guard: Option<Guard>,
}

impl Group {
    pub fn of(leader: &Child) -> Group {
        let leader = leader.id();
        Group { leader, _guard: Guard::over(leader) }
    }
}

#[cfg(unix)]
impl Group {
    /// Ends the group, the leader too. Somebody else waits for the leader, else it would never be gone.
    pub fn end(&self) {
        if self.is_empty() {
            return;
        }
        self.signal(Signal::TERM);
        let asked = Instant::now();
        while asked.elapsed() < GRACE {
            std::thread::sleep(POLL);
            if self.is_empty() {
                return;
            }
        }
        self.signal(Signal::KILL);
    }

    /// Ends what the leader left behind.
    pub fn end_rest(&self) {
        self.end();
    }

    /// At once, without asking.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.leader).ok()?)
    }

    fn is_empty(&self) -> bool {
        self.pid().is_none_or(|pid| test_kill_process_group(pid).is_err() || only_dead(pid))
    }

    fn signal(&self, signal: Signal) {
        let _ = self.pid().map(|pid| kill_process_group(pid, signal));
    }
}

/// Whether the members of a group are all dead and only wait to be buried, which where nobody buries (a container
/// without an init) is for ever. Asked only where there are members.
#[cfg(target_os = "linux")]
fn only_dead(group: Pid) -> bool {
    let Ok(entries) = std::fs::read_dir("/proc") else { return false };
    let group = group.to_string();
    let lives = |stat: &str| {
        // Its name may hold anything, and stands in the last brackets; then state, parent, group.
        let mut fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
        let state = fields.next();
        fields.nth(1) == Some(group.as_str()) && !matches!(state, Some("Z" | "X"))
    };
    let mut stats =
        entries.flatten().filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    !stats.any(|stat| lives(&stat))
}

/// Elsewhere the dead are not told from the living.
#[cfg(all(unix, not(target_os = "linux")))]
fn only_dead(_: Pid) -> bool {
    false
}

#[cfg(not(unix))]
impl Group {
    pub fn end(&self) {
        let mut kill = Command::new("taskkill");
        kill.args(["/T", "/F", "/PID"]).arg(self.leader.to_string());
        let _ = kill.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }

    /// Without its root the tree cannot be found.
    pub fn end_rest(&self) {}

    pub fn kill(&self) {
        self.end();
    }
}

/// A process that outlives us by as long as it takes to end the group: its stdin closes when we are gone,
/// however that happened.
struct Guard(Option<Child>);

impl Guard {
    const SCRIPT: &str = r#"trap '' HUP INT TERM
read -r word
kill -s TERM -- "-$1"
sleep "$2"
kill -s KILL -- "-$1""#;

    fn over(leader: u32) -> Option<Guard> {
        if cfg!(not(unix)) {
            return None;
        }
        let mut guard = Command::new("sh");
        guard.args(["-c", Guard::SCRIPT, "ralph-guard", &leader.to_string(), &GRACE.as_secs().to_string()]);
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Whoever kills us kills our group, and the guard is to see that through.
        lead(&mut guard);
        guard.spawn().ok().map(|guard| Guard(Some(guard)))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(mut guard) = self.0.take() else { return };
        let _ = guard.kill();
        // On a busy machine its death takes a while, and nobody needs to see it. Without a thread it is buried by
        // whoever buries us.
        let _ = std::thread::Builder::new().spawn(move || guard.wait());
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn the_dead_who_are_not_buried_are_not_waited_for() {
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null());
        lead(&mut command);
        let mut child = command.spawn().unwrap();
        let group = Group::of(&child);
        assert!(!group.is_empty());
        group.kill();
        let stat = format!("/proc/{}/stat", child.id());
        while !std::fs::read_to_string(&stat).unwrap().contains(") Z ") {
            std::thread::sleep(POLL);
        }
        assert!(test_kill_process_group(group.pid().unwrap()).is_ok(), "the system still counts it");
        assert!(group.is_empty());
        child.wait().unwrap();
        assert!(group.is_empty());
    }
}
