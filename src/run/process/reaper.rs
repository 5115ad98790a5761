//! Ends stray processes of a run. Everything an agent starts inherits `RALPH_RUN_ID` and, on Linux and so inside
//! every container, a mark that a cleared environment leaves as it is (`store::process::mark`).

use crate::store::process::program::{self, ProgramEnd};
use crate::store::process::{group, lookup, mark};
use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread::Builder;
use std::time::Duration;

/// Names the run to everything it starts.
pub const VARIABLE: &str = "RALPH_RUN_ID";
/// Names the run to its guard inside a container.
const GUARD_VARIABLE: &str = "RALPH_GUARD_OF";

/// How long a container engine may take to answer.
const MAX_ENGINE_WAIT: Duration = Duration::from_secs(30);

/// From TERM to KILL inside a container, in tenths of a second: as long as for a local group.
pub const CONTAINER_GRACE: u32 = 20;

/// Starts the words after `$1` with this limit on their resident memory, which Linux reports and does not enforce.
const MARKED: &str = r#"ulimit -m "$1" 2>/dev/null; shift; exec "$@""#;

/// Ends every process that has the entry `$1` or `$2` in its environment or the limit `$4`, with nothing but a shell: TERM
/// and a grace period of `$3` tenths of a second, if there is one, then KILL. Zombies do not count. Fails if one is left.
const REAP: &str = r#"entry=$1 other=$2 grace=$3 limit="^Max resident set  *$4 "
marked() {
  for pid; do
    read -r stat 2>/dev/null < "/proc/$pid/stat"
    case ${stat##*) } in Z* | X*) continue ;; esac
    if grep -q "$limit" "/proc/$pid/limits" 2>/dev/null ||
      tr '\0' '\n' 2>/dev/null < "/proc/$pid/environ" | grep -qxF -e "$entry" -e "$other"; then echo "$pid"; fi
  done
}
all() { for dir in /proc/[0-9]*; do echo "${dir#/proc/}"; done; }
rest() { sleep 0.1 2>/dev/null || { sleep 1; left=$((left - 9)); }; left=$((left - 1)); }
reap() {
  left=$grace
  found=$(marked $(all))
  [ "$found" ] || return 0
  [ "$left" -gt 0 ] && kill -TERM $found 2>/dev/null
  while [ "$left" -gt 0 ] && [ "$(marked $found)" ]; do rest; done
  left=50
  while found=$(marked $(all)); [ "$found" ]; do
    [ "$left" -gt 0 ] || return 1
    kill -KILL $found 2>/dev/null
    rest
  done
}
"#;

/// Waits until stdin closes without a word, which means that we are gone. The agent may be just starting then, so it
/// looks more than once.
const GUARD: &str =
    "echo ready; exec >/dev/null 2>&1; read -r word && exit 0; for look in 1 2 3; do reap; sleep 1; done";

/// Does the same for a sandbox, from outside: the words stop it.
const SANDBOX_GUARD: &str =
    r#"trap '' HUP INT TERM; echo ready; read -r word && exit 0; exec "$@" >/dev/null 2>&1"#;

/// Returns words that start the others inside a container so that they and everything they start can be found.
pub fn marked(words: &[String], run_id: &str) -> Vec<String> {
    let start = ["sh", "-c", MARKED, "sh", &mark::limit_kib(run_id).to_string()].map(str::to_owned);
    start.into_iter().chain(words.iter().cloned()).collect()
}

/// Returns the arguments of [`REAP`] for processes with one of these variables.
fn arguments(run_id: &str, variables: [&str; 2], grace: u32) -> [String; 4] {
    let [entry, other] = variables.map(|variable| entry(variable, run_id));
    [entry, other, grace.to_string(), (mark::limit_kib(run_id) * 1024).to_string()]
}

/// Ends the processes of a run inside a container. An error says why they may still run.
pub fn reap_container(name: &str, run_id: &str, grace: u32) -> Result<(), String> {
    let mut docker = lookup::command("docker");
    docker.args(["exec", "-i", name, "sh", "-c", &format!("{REAP}reap"), "sh"]);
    // Guards are ended too: one must not mistake the next agent of this run for its own.
    docker.args(arguments(run_id, [VARIABLE, GUARD_VARIABLE], grace));
    let output = program::run(docker, b"", MAX_ENGINE_WAIT);
    let lower = output.stderr.to_lowercase();
    // Nothing runs in a container that does not run.
    let is_down =
        ["no such container", "is not running", "is restarting"].iter().any(|words| lower.contains(words));
    match output.ended {
        ProgramEnd::Exit(0) => Ok(()),
        ProgramEnd::Exit(1) if is_down => Ok(()),
        ProgramEnd::Exit(1) if output.stderr.is_empty() => Err("a process is still there after KILL".into()),
        _ => Err(output.complaint()),
    }
}

/// Stops a sandbox, and the agent with it.
pub fn stop_sandbox(name: &str) -> Result<(), String> {
    let mut docker = lookup::command("docker");
    docker.args(["sandbox", "stop", name]);
    let output = program::run(docker, b"", MAX_ENGINE_WAIT);
    if output.passed() { Ok(()) } else { Err(output.complaint()) }
}

fn entry(variable: &str, run_id: &str) -> String {
    format!("{variable}={run_id}")
}

/// A process that ends an agent which no signal of ours reaches, if we are gone: its stdin closes then, however that
/// happened. Inside a container even the end of every process on this side closes it.
pub struct ReaperGuard(Child);

impl ReaperGuard {
    pub fn in_container(name: &str, run_id: &str) -> Result<ReaperGuard, String> {
        let mut docker = lookup::command("docker");
        docker.args(["exec", "-i", "-e", &entry(GUARD_VARIABLE, run_id), name]);
        docker.args(["sh", "-c", &format!("{REAP}{GUARD}"), "sh"]);
        // It does not find itself.
        ReaperGuard::start(docker.args(arguments(run_id, [VARIABLE, VARIABLE], CONTAINER_GRACE)))
    }

    pub fn of_sandbox(name: &str) -> Result<ReaperGuard, String> {
        let docker = lookup::command("docker");
        let mut shell = lookup::command("sh");
        shell
            .args(["-c", SANDBOX_GUARD, "ralph-guard"])
            .arg(docker.get_program())
            .args(["sandbox", "stop", name]);
        ReaperGuard::start(&mut shell)
    }

    /// Starts it and waits until it is ready: an agent that begins before it could be left behind.
    fn start(command: &mut Command) -> Result<ReaperGuard, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A signal to our whole group must not end the guard too.
        group::make_group_leader(command);
        let mut guard = ReaperGuard(command.spawn().map_err(|error| error.to_string())?);
        let (sender, ready) = channel();
        let (stdout, stderr) = (guard.0.stdout.take(), guard.0.stderr.take());
        let listen = move || {
            let is_ready = stdout.is_some_and(|mut stdout| stdout.read_exact(&mut [0]).is_ok());
            let mut output = String::new();
            if !is_ready {
                let _ = stderr.map(|stderr| stderr.take(4096).read_to_string(&mut output));
            }
            let _ = sender.send(is_ready.then_some(()).ok_or(output));
        };
        Builder::new().spawn(listen).map_err(|error: io::Error| error.to_string())?;
        let silent = || Err(format!("no answer within {}s", MAX_ENGINE_WAIT.as_secs()));
        ready.recv_timeout(MAX_ENGINE_WAIT).unwrap_or_else(|_| silent()).map(|()| guard)
    }

    /// Lets it do its work while we are still here.
    pub fn leave(mut self) {
        drop(self.0.stdin.take());
    }

    /// Returns whether it ended although we are here, as in a container that stopped; `soon` waits a moment for that.
    pub fn ends(&mut self, soon: bool) -> bool {
        const POLL: Duration = Duration::from_millis(20);
        const MAX_POLLS: usize = 250;
        let polls = if soon { MAX_POLLS } else { 0 };
        for _ in 0..polls {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return true;
            }
            std::thread::sleep(POLL);
        }
        !matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for ReaperGuard {
    /// Sends it away: the agent has ended.
    fn drop(&mut self) {
        if let Some(mut stdin) = self.0.stdin.take() {
            let _ = stdin.write_all(b"done\n");
        }
        self.ends(true);
    }
}

/// Kills the processes of a run on this machine, as far as they are this user's. An error says what is left.
#[cfg(target_os = "linux")]
pub fn reap(run_id: &str) -> Result<(), String> {
    // A process may start another one while we look, and its end takes a moment, on a busy machine a long one.
    const MAX_PROC_SCANS: usize = 3000;
    const POLL: Duration = Duration::from_millis(10);
    for _ in 0..MAX_PROC_SCANS {
        if kill_marked(run_id).is_empty() {
            return Ok(());
        }
        std::thread::sleep(POLL);
    }
    let left: Vec<String> = kill_marked(run_id).iter().map(i32::to_string).collect();
    if left.is_empty() { Ok(()) } else { Err(format!("still there after KILL: process {}", left.join(", "))) }
}

/// Does nothing: this system shows neither the environment nor the mark of other processes. Only the group is ended.
#[cfg(not(target_os = "linux"))]
pub fn reap(_: &str) -> Result<(), String> {
    Ok(())
}

/// Looks at every process once and kills those of the run. Returns them.
#[cfg(target_os = "linux")]
fn kill_marked(run_id: &str) -> Vec<i32> {
    use crate::store::process::pid;
    use rustix::process::{Pid, Signal, getuid, kill_process};
    let (own, user) = (i32::try_from(std::process::id()).unwrap_or(0), getuid().as_raw());
    let entry = entry(VARIABLE, run_id);
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = names.filter_map(|name| name.file_name().to_str()?.parse::<i32>().ok());
    let is_marked = |pid: &i32| {
        let environment = || std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        pid::is_running_of(*pid, user)
            && (mark::is_on(&pid.to_string(), run_id)
                || environment().split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes()))
    };
    let marked: Vec<i32> = pids.filter(|pid| *pid != own).filter(is_marked).collect();
    for pid in marked.iter().copied().filter_map(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
    marked
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    fn sleeper(variables: &[(&str, &str)]) -> Child {
        let mut command = Command::new("sleep");
        command.arg("600").env_clear().envs(variables.iter().copied()).spawn().unwrap()
    }

    /// Reaps the processes of one run among others, however it is done.
    fn only_this_run_is_killed(run_id: &str, more: Option<Child>, reap: impl FnOnce()) {
        let longer = format!("{run_id}0");
        let large = "x".repeat(100 << 10);
        let mut ours = vec![
            sleeper(&[(VARIABLE, run_id)]),
            sleeper(&[("A", "b"), (VARIABLE, run_id), ("Z", "y")]),
            sleeper(&[("A", &large), ("B", &large), (VARIABLE, run_id)]),
        ];
        let mut others = [
            sleeper(&[]),
            sleeper(&[(VARIABLE, &longer)]),
            sleeper(&[("NO_RALPH_RUN_ID", run_id), ("X", &entry(VARIABLE, run_id))]),
        ];
        ours.extend(more);
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
        only_this_run_is_killed(&run_id, None, || reap(&run_id).unwrap());
    }

    /// Starts a process that has nothing of the run but its mark.
    fn cleared(run_id: &str) -> Child {
        let words = marked(&["env", "-i", "setsid", "sleep", "600"].map(str::to_owned), run_id);
        let cleared = Command::new(&words[0]).args(&words[1..]).spawn().unwrap();
        let name = || std::fs::read_to_string(format!("/proc/{}/comm", cleared.id())).unwrap();
        let began = std::time::Instant::now();
        while name() != "sleep\n" {
            assert!(began.elapsed() < Duration::from_secs(120), "it is still {}", name());
            std::thread::sleep(Duration::from_millis(5));
        }
        cleared
    }

    #[test]
    fn a_cleared_environment_hides_no_process() {
        let run_id = format!("cleared-{}", std::process::id());
        let mut other = cleared(&format!("{run_id}0"));
        only_this_run_is_killed(&run_id, Some(cleared(&run_id)), || reap(&run_id).unwrap());
        assert!(other.try_wait().unwrap().is_none(), "it is of another run");
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn the_script_for_containers_finds_cleared_environments_too() {
        for grace in [0, 3] {
            let run_id = format!("container-{grace}-{}", std::process::id());
            only_this_run_is_killed(&run_id, Some(cleared(&run_id)), || {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("{REAP}reap"), "sh"]);
                shell.args(arguments(&run_id, [VARIABLE, GUARD_VARIABLE], grace));
                assert!(shell.status().unwrap().success());
            });
        }
    }
}
