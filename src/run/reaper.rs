//! Ends stray processes of a run: everything an agent starts inherits `RALPH_RUN_ID`, also what left its process
//! group.

use crate::store::process::program;
use std::process::Command;
use std::time::Duration;

/// Names the run to everything it starts.
pub const VARIABLE: &str = "RALPH_RUN_ID";

/// How long a container engine may take to answer.
const MAX_ENGINE_WAIT: Duration = Duration::from_secs(30);

/// From TERM to KILL inside a container, in tenths of a second: as long as for a local group.
pub const CONTAINER_GRACE: u32 = 20;

/// Ends every process whose environment has the entry `$1`, with nothing but a shell: TERM and a grace period of `$2`
/// tenths of a second, if there is one, then KILL. A zombie shows no environment, so none is waited for.
const SCRIPT: &str = r#"entry=$1 left=$2
marked() {
  for pid; do
    if tr '\0' '\n' 2>/dev/null < "/proc/$pid/environ" | grep -qxF -- "$entry"; then echo "$pid"; fi
  done
}
all() { for dir in /proc/[0-9]*; do echo "${dir#/proc/}"; done; }
found=$(marked $(all))
[ "$found" ] || exit 0
[ "$left" -gt 0 ] && kill -TERM $found 2>/dev/null
while [ "$left" -gt 0 ] && [ "$(marked $found)" ]; do
  sleep 0.1 2>/dev/null || { sleep 1; left=$((left - 9)); }
  left=$((left - 1))
done
for look in 1 2 3 4 5; do
  found=$(marked $(all))
  [ "$found" ] || break
  kill -KILL $found 2>/dev/null
done
exit 0"#;

/// Ends the processes of a run inside a container.
pub fn reap_container(name: &str, run_id: &str, grace: u32) {
    let mut docker = Command::new("docker");
    docker.args(["exec", "-i", name, "sh", "-c", SCRIPT, "sh", &entry(run_id), &grace.to_string()]);
    program::run(docker, b"", MAX_ENGINE_WAIT);
}

fn entry(run_id: &str) -> String {
    format!("{VARIABLE}={run_id}")
}

/// Kills the processes of a run on this machine.
#[cfg(target_os = "linux")]
pub fn reap(run_id: &str) {
    /// A process may start another one while we look.
    const MAX_LOOKS: usize = 5;
    let _ = (0..MAX_LOOKS).take_while(|_| kill_marked(&entry(run_id))).count();
}

/// The environment of other processes cannot be read here; ending the group has to do.
#[cfg(not(target_os = "linux"))]
pub fn reap(_: &str) {}

/// Looks at every process once; returns whether one was killed.
#[cfg(target_os = "linux")]
fn kill_marked(entry: &str) -> bool {
    use rustix::process::{Pid, Signal, kill_process};
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = names.filter_map(|name| name.file_name().to_str()?.parse::<i32>().ok());
    let marked = pids.filter(|pid| *pid != own).filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
    });
    let killed = marked.filter_map(Pid::from_raw).filter(|pid| kill_process(*pid, Signal::KILL).is_ok());
    killed.count() > 0
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::process::Child;

    fn sleeper(variables: &[(&str, &str)]) -> Child {
        let mut command = Command::new("sleep");
        command.arg("600").env_clear().envs(variables.iter().copied()).spawn().unwrap()
    }

    /// Reaps the processes of one run among others, however it is done.
    fn only_this_run_is_killed(run_id: &str, reap: impl FnOnce()) {
        let longer = format!("{run_id}0");
        let large = "x".repeat(100 << 10);
        let mut ours = [
            sleeper(&[(VARIABLE, run_id)]),
            sleeper(&[("A", "b"), (VARIABLE, run_id), ("Z", "y")]),
            sleeper(&[("A", &large), ("B", &large), (VARIABLE, run_id)]),
        ];
        let mut others = [
            sleeper(&[]),
            sleeper(&[(VARIABLE, &longer)]),
            sleeper(&[("NO_RALPH_RUN_ID", run_id), ("X", &entry(run_id))]),
        ];
        reap();
        for child in &mut ours {
            child.wait().unwrap();
        }
        for child in &mut others {
            assert!(child.try_wait().unwrap().is_none(), "it is not of this run");
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn only_processes_with_exactly_this_run_id_are_killed() {
        let run_id = format!("run-{}", std::process::id());
        only_this_run_is_killed(&run_id, || reap(&run_id));
    }

    #[test]
    fn the_script_for_containers_does_the_same() {
        for grace in ["0", "3"] {
            let run_id = format!("container-{grace}-{}", std::process::id());
            only_this_run_is_killed(&run_id, || {
                let script = ["-c", SCRIPT, "sh", &entry(&run_id), grace];
                assert!(Command::new("sh").args(script).status().unwrap().success());
            });
        }
    }
}
