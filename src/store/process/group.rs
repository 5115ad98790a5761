//! A process group: a program and everything it started, ended together with TERM, a grace period, then KILL.
//!
//! A program that left the group (a daemon, `setsid`) is out of reach. Windows has no groups and no guard: there the
//! tree of processes is killed at once.

#[cfg(unix)]
use super::pid;
use crate::store::world::Instant;
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// From TERM to KILL.
pub(super) const GRACE: Duration = Duration::from_secs(2);
#[cfg(unix)]
const POLL: Duration = Duration::from_millis(10);

/// Makes the command the leader of a group of its own, so that signals to our group do not reach it.
pub fn make_group_leader(command: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(not(unix))]
    let _ = command;
}

/// The group of a running leader. If this process is killed, the group ends with it.
pub struct Group {
    pub leader: u32,
    _guard: Option<GroupGuard>,
}

impl Group {
    pub fn of(leader: &Child) -> Group {
        let leader = leader.id();
        Group { leader, _guard: GroupGuard::over(leader) }
    }
}

#[cfg(unix)]
impl Group {
    /// Ends the group and waits for that. Another thread must wait for the leader, else it stays as a zombie.
    pub fn end(&self) {
        self.end_after(GRACE);
    }

    /// Like [`Group::end`], with this time from TERM to KILL.
    pub(super) fn end_after(&self, grace: Duration) {
        if self.is_empty() {
            return;
        }
        self.signal(Signal::TERM);
        let asked = Instant::now();
        while asked.elapsed() < grace {
            std::thread::sleep(POLL);
            if self.is_empty() {
                return;
            }
        }
        self.signal(Signal::KILL);
    }

    /// Ends what the leader left behind when it ended.
    pub fn end_rest(&self) {
        self.end();
    }

    /// Kills the group at once.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.leader).ok()?)
    }

    fn is_empty(&self) -> bool {
        self.pid().is_none_or(|pid| test_kill_process_group(pid).is_err() || pid::only_zombies(self.leader))
    }

    fn signal(&self, signal: Signal) {
        let _ = self.pid().map(|pid| kill_process_group(pid, signal));
    }
}

#[cfg(not(unix))]
impl Group {
    pub(super) fn end_after(&self, _grace: Duration) {
        self.end();
    }

    pub fn end(&self) {
        let mut kill = super::lookup::command("taskkill");
        kill.args(["/T", "/F", "/PID"]).arg(self.leader.to_string());
        let _ = kill.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }

    /// Does nothing: the tree cannot be found without its root.
    pub fn end_rest(&self) {}

    pub fn kill(&self) {
        self.end();
    }
}

/// A process that ends the group when we are gone, however that happened: its stdin closes then.
struct GroupGuard(Option<Child>);

impl GroupGuard {
    const SCRIPT: &str = r#"trap '' HUP INT TERM
read -r word
kill -s TERM -- "-$1"
left=$2
while [ "$left" -gt 0 ]; do
  sleep 0.1 || { sleep 1; left=$((left - 9)); }
  left=$((left - 1))
  kill -s 0 -- "-$1" || exit 0
done
kill -s KILL -- "-$1""#;

    fn over(leader: u32) -> Option<GroupGuard> {
        if cfg!(not(unix)) {
            return None;
        }
        let tenths = GRACE.as_millis() / 100;
        let mut guard = super::lookup::command("sh");
        guard.args(["-c", GroupGuard::SCRIPT, "ralph-guard", &leader.to_string(), &tenths.to_string()]);
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // A signal to our whole group must not end the guard too.
        make_group_leader(&mut guard);
        guard.spawn().ok().map(|guard| GroupGuard(Some(guard)))
    }
}

impl Drop for GroupGuard {
    fn drop(&mut self) {
        let Some(mut guard) = self.0.take() else { return };
        let _ = guard.kill();
        // Its end may take a while on a busy machine. Without a thread it stays as a zombie until we end.
        let _ = std::thread::Builder::new().spawn(move || guard.wait());
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn zombies_are_not_waited_for() {
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null());
        make_group_leader(&mut command);
        let mut child = command.spawn().unwrap();
        let group = Group::of(&child);
        assert!(!group.is_empty());
        group.kill();
        let stat = format!("/proc/{}/stat", child.id());
        let began = Instant::now();
        while !std::fs::read_to_string(&stat).unwrap().contains(") Z ") {
            assert!(began.elapsed() < Duration::from_secs(120), "it does not end");
            std::thread::sleep(POLL);
        }
        assert!(test_kill_process_group(group.pid().unwrap()).is_ok(), "the system still counts it");
        assert!(group.is_empty());
        child.wait().unwrap();
        assert!(group.is_empty());
    }
}
