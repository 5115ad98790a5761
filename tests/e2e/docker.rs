//! `ralph run --container` with a real engine: what runs inside, and that nothing of it stays.
//!
//! They need a Docker engine and a static busybox (`apt-get install docker.io busybox-static`), from which the image
//! is made; nothing is pulled.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output as Answer, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tempfile::TempDir;

use crate::clock::{Clock, MAX_WAIT, wait_until};
use crate::run::{Output, Running};
use crate::signals::with_default_signals;
use crate::skip::skip;

const BUSYBOX: &str = "/bin/busybox";

fn docker(args: &[&str]) -> Answer {
    Command::new("docker").args(args).stdin(Stdio::null()).output().expect("docker runs")
}

fn text(answer: &Answer) -> String {
    assert!(answer.status.success(), "docker: {}", String::from_utf8_lossy(&answer.stderr));
    String::from_utf8_lossy(&answer.stdout).trim().to_owned()
}

/// The image, made once; nothing where there is no engine, and then the test has said so.
fn image() -> Option<&'static str> {
    static IMAGE: OnceLock<Result<String, String>> = OnceLock::new();
    match IMAGE.get_or_init(make_image) {
        Ok(image) => Some(image),
        Err(reason) => {
            skip(reason);
            None
        }
    }
}

fn make_image() -> Result<String, String> {
    let asked = Command::new("docker").args(["info", "--format", "{{.ServerVersion}}"]).output();
    if !asked.is_ok_and(|answer| answer.status.success()) {
        return Err("no Docker engine answers".into());
    }
    if !Path::new(BUSYBOX).is_file() {
        return Err(format!("no {BUSYBOX} to make an image from (apt-get install busybox-static)"));
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["bin", "proc", "tmp", "w"] {
        fs::create_dir(folder.path().join(name)).expect("a folder of the image");
    }
    fs::copy(BUSYBOX, folder.path().join("bin/busybox")).expect("busybox for the image");
    for name in ["sh", "cat", "echo", "env", "grep", "kill", "ps", "pwd", "setsid", "sleep", "touch", "tr"] {
        std::os::unix::fs::symlink("busybox", folder.path().join("bin").join(name))
            .expect("a link in the image");
    }
    let tar = Command::new("tar").arg("-C").arg(folder.path()).args(["-c", "."]).output().expect("tar runs");
    let mut import = Command::new("docker");
    let mut import =
        import.args(["import", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    import.stdin.take().unwrap().write_all(&tar.stdout).unwrap();
    Ok(text(&import.wait_with_output().unwrap()))
}

/// A running container; it goes away when dropped.
struct Container {
    name: String,
}

impl Container {
    fn start() -> Option<Container> {
        static CONTAINERS: AtomicUsize = AtomicUsize::new(0);
        let image = image()?;
        let number = CONTAINERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("ralph-e2e-{}-{number}", std::process::id());
        text(&docker(&["run", "-d", "--network", "none", "--name", &name, image, "/bin/sleep", "100000"]));
        Some(Container { name })
    }

    /// What runs inside beside the container's own process and the question itself.
    fn processes(&self) -> Vec<String> {
        let listed = text(&docker(&["top", &self.name, "-o", "pid,args"]));
        let processes =
            listed.lines().skip(1).map(str::trim).filter(|line| !line.ends_with("/bin/sleep 100000"));
        processes.map(str::to_owned).collect()
    }

    fn wait_until_empty(&self) {
        wait_until("the container is empty", || self.processes().is_empty());
    }

    fn wait_for_process(&self, words: &str) {
        wait_until(words, || self.processes().iter().any(|process| process.contains(words)));
    }

    /// Sends a signal to the processes that end the agent: they name its mark among their words.
    fn signal_the_reapers(&self, name: &str) {
        let line = format!(
            "for file in $(grep -l 'RALPH_RUN_ID[=]' /proc/[0-9]*/cmdline); do kill -{name} $(echo $file | tr -dc 0-9); done"
        );
        drop(docker(&["exec", &self.name, "sh", "-c", &line]));
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        drop(docker(&["rm", "-f", &self.name]));
    }
}

/// A user with a project, on this side of the container.
struct User {
    _folder: TempDir,
    root: PathBuf,
    /// It stands still unless the test moves it.
    clock: Clock,
}

impl User {
    fn new() -> User {
        let folder = tempfile::Builder::new().prefix("ralph-e2e-").tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["home", "project", "data", "config"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let clock = Clock::new(root.join("clock"), 1_794_816_000_000);
        User { _folder: folder, root, clock }
    }

    fn start(&self, args: &[&str]) -> Running {
        self.start_by(with_default_signals(env!("CARGO_BIN_EXE_ralph")), args)
    }

    /// Starts `ralph` where it cannot see the container's processes, as for users who are not root, and where the
    /// engine runs in its own machine.
    fn start_apart(&self, args: &[&str]) -> Running {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc", env!("CARGO_BIN_EXE_ralph")]);
        self.start_by(command, args)
    }

    fn start_by(&self, mut command: Command, args: &[&str]) -> Running {
        command.args(["run", "make it", "--delay", "0", "--max-iterations", "1"]).args(args);
        self.start_in_project(command)
    }

    fn start_in_project(&self, mut command: Command) -> Running {
        command.env_clear();
        // How docker is reached is the only thing that is inherited.
        let kept = std::env::vars_os()
            .filter(|(name, _)| name == "PATH" || name.to_string_lossy().starts_with("DOCKER_"));
        command.envs(kept).env("HOME", self.root.join("home"));
        command
            .env("RALPH_DATA_DIR", self.root.join("data"))
            .env("RALPH_CONFIG_DIR", self.root.join("config"))
            .env("RALPH_NOW", self.clock.variable());
        command.current_dir(self.root.join("project"));
        Running::start(command, &self.root, MAX_WAIT)
    }

    /// Runs `ralph stop` to its end.
    fn stop(&self) -> Output {
        let mut command = with_default_signals(env!("CARGO_BIN_EXE_ralph"));
        command.arg("stop");
        self.start_in_project(command).wait()
    }

    fn run(&self, args: &[&str]) -> Output {
        self.start(args).wait()
    }

    /// Runs an agent until its time is over, which it is once the agent has printed all of this.
    fn run_out_of_time(&self, container: &Container, agent: &str, ready: &[&str]) -> Output {
        let args = ["--container", &container.name, "--agent-command", agent, "--timeout", "10"];
        let mut running = self.start(&args);
        running.wait_until(|output| ready.iter().all(|part| output.stdout.contains(part)));
        self.clock.advance(600);
        running.wait()
    }

    fn summary(&self) -> String {
        fs::read_to_string(self.root.join("project/ralph/logs/summary.csv")).unwrap()
    }
}

/// Works in the foreground, in the background, detached and without its environment, and does not go when asked.
const STUBBORN: &str = "trap '' TERM INT; sleep 7001 & setsid sleep 7002 >/dev/null 2>&1 </dev/null & \
                        (env -i /bin/setsid /bin/sh -c '/bin/sleep 7006 & /bin/sleep 7007 &' >/dev/null 2>&1 </dev/null &); \
                        setsid sh -c 'trap \"\" TERM; sleep 7003' & echo begun; sleep 7004";

#[test]
fn an_agent_in_a_container_reads_its_prompt_there_and_is_heard() {
    let Some(container) = Container::start() else { return };
    let user = User::new();
    let agent = "pwd; echo \"marked $RALPH_RUN_ID\"; cat; echo; echo '<promise>COMPLETE</promise>'";

    let output = user.run(&["--container", &container.name, "--workdir", "/w", "--agent-command", agent]);

    assert_eq!(output.code, Some(0), "{output:?}");
    for said in [&format!("in container {}", container.name), "\n/w\n", "\nmarked ", "Task:\n", "make it\n"] {
        assert!(output.stdout.contains(said), "{said}\n{output:?}");
    }
    assert_eq!(container.processes(), [""; 0]);
    let output = user.run(&["--container", &container.name, "--agent-command", "git status"]);
    assert_eq!(output.code, Some(69), "what is installed here need not be there: {output:?}");
    assert!(output.stderr.contains(&format!("git was not found in {}", container.name)), "{output:?}");
}

#[test]
fn what_outlives_a_good_iteration_in_a_container_is_ended_too() {
    let Some(container) = Container::start() else { return };
    let agent = "setsid sleep 7005 >/dev/null 2>&1 </dev/null & \
                 env -i /bin/setsid /bin/sleep 7006 >/dev/null 2>&1 </dev/null & echo '<promise>COMPLETE</promise>'";

    let output = User::new().run(&["--container", &container.name, "--agent-command", agent]);

    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(container.processes(), [""; 0]);
}

#[test]
fn a_timed_out_iteration_leaves_no_process_in_the_container() {
    let Some(container) = Container::start() else { return };
    let user = User::new();
    text(&docker(&["exec", "-d", &container.name, "/bin/sleep", "8000"]));

    let output = user.run_out_of_time(&container, STUBBORN, &["begun"]);

    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stdout.contains("timed out after 10m"), "{output:?}");
    assert!(
        user.summary().contains(",failed,") || user.summary().contains(",max-iterations,"),
        "{}",
        user.summary()
    );
    let left = container.processes();
    assert!(
        left.len() == 1 && left[0].ends_with("/bin/sleep 8000"),
        "only the process of another user: {left:?}"
    );
}

#[test]
fn an_agent_in_a_container_is_asked_before_it_is_killed() {
    let Some(container) = Container::start() else { return };
    let user = User::new();
    // One in the foreground and one that left it: both may tidy up.
    let agent = "tidy() { trap \"echo $1 tidied up; touch /w/$1; exit 0\" TERM; echo $1 begun; \
                 while :; do sleep 0.05; done; }; (tidy second) & tidy first";

    let output = user.run_out_of_time(&container, agent, &["first begun", "second begun"]);

    assert_eq!(output.code, Some(1), "{output:?}");
    for said in ["timed out after 10m", "first tidied up", "second tidied up"] {
        assert!(output.stdout.contains(said), "{said}: {output:?}");
    }
    text(&docker(&["exec", &container.name, "cat", "/w/first", "/w/second"]));
    assert_eq!(container.processes(), [""; 0]);
}

#[test]
fn a_second_ctrl_c_asks_no_process_in_the_container() {
    let Some(container) = Container::start() else { return };
    let user = User::new();
    let agent = "trap 'echo asked; sleep 600; echo still here; exit 0' TERM; while :; do sleep 0.05; done";

    let mut running = user.start(&["--container", &container.name, "--agent-command", agent]);
    container.wait_for_process("sleep 0.05");
    running.signal("INT");
    running.wait_until(|output| output.stdout.contains("asked"));
    // Without this the first Ctrl-C would kill it soon, too.
    container.signal_the_reapers("STOP");
    running.signal("INT");
    let output = running.wait();

    assert_eq!(output.code, Some(130), "{output:?}");
    assert!(!output.stdout.contains("still here"), "{output:?}");
    assert!(!container.processes().iter().any(|process| process.contains("still here")), "the agent is gone");
    // What was asking it at the first Ctrl-C sees that, and ends too.
    container.signal_the_reapers("CONT");
    container.wait_until_empty();
}

#[test]
fn ctrl_c_leaves_no_process_in_the_container() {
    let Some(container) = Container::start() else { return };
    let user = User::new();

    let running = user.start(&["--container", &container.name, "--agent-command", STUBBORN]);
    container.wait_for_process("sleep 7004");
    running.signal("INT");
    let output = running.wait();

    assert_eq!(output.code, Some(130), "{output:?}");
    assert_eq!(container.processes(), [""; 0]);
}

#[test]
fn an_agent_in_a_container_ends_with_a_killed_runner() {
    let Some(container) = Container::start() else { return };
    let user = User::new();
    let args = ["--container", &container.name, "--agent-command", STUBBORN];

    // The runner alone, then with it every process on this side.
    let starts: [&dyn Fn() -> Running; 2] = [&|| user.start(&args), &|| user.start_apart(&args)];
    for start in starts {
        let running = start();
        container.wait_for_process("sleep 7004");
        container.wait_for_process("sleep 7007");
        running.kill();
        container.wait_until_empty();
    }
}

#[test]
fn a_stop_is_reported_once_nothing_of_the_agent_is_left_in_the_container() {
    let Some(container) = Container::start() else { return };
    let user = User::new();
    let args = ["--container", &container.name, "--agent-command", STUBBORN];

    let running = user.start(&args);
    container.wait_for_process("sleep 7007");
    let stopped = user.stop();
    assert_eq!(container.processes(), [""; 0], "{stopped:?}");
    assert!(stopped.code == Some(0) && stopped.stdout.contains("stopped"), "{stopped:?}");
    assert_eq!(running.wait().code, Some(130));

    let running = user.start_apart(&args);
    container.wait_for_process("sleep 7007");
    text(&docker(&["pause", &container.name]));
    running.kill();
    let stopped = user.stop();
    assert_eq!(stopped.code, Some(70), "an agent that may work on is no ending: {stopped:?}");
    assert!(stopped.stderr.contains("has not ended yet") && stopped.stderr.contains("paused"), "{stopped:?}");
    text(&docker(&["unpause", &container.name]));
    let stopped = user.stop();
    assert_eq!((stopped.code, container.processes()), (Some(0), vec![]), "{stopped:?}");
}

#[test]
fn a_container_that_stops_during_the_run_is_named() {
    let Some(container) = Container::start() else { return };
    let user = User::new();
    for (how, words) in
        [("kill", "stopped during the run"), ("restart", "was restarted during the run"), ("rm", "")]
    {
        let agent = "echo begun; sleep 7008";
        let mut running = user.start(&["--new", "--container", &container.name, "--agent-command", agent]);
        running.wait_until(|output| output.stdout.contains("begun"));
        let args: &[&str] = match how {
            "rm" => &["rm", "-f"],
            "restart" => &["restart", "-t", "0"],
            _ => &["kill"],
        };
        text(&docker(&[args, &[container.name.as_str()]].concat()));
        let output = running.wait();
        let named = format!("container {} {words}", container.name);
        assert!(
            output.stdout.contains(&named) && output.stdout.contains("during the run"),
            "{how}: {output:?}"
        );
        assert_eq!(output.code, Some(if how == "restart" { 1 } else { 70 }), "{how}: {output:?}");
        if how == "kill" {
            text(&docker(&["start", &container.name]));
        }
    }
}

#[test]
fn the_next_run_ends_what_a_killed_one_left_in_the_container() {
    let Some(container) = Container::start() else { return };
    let user = User::new();

    let running = user.start_apart(&["--container", &container.name, "--agent-command", STUBBORN]);
    container.wait_for_process("sleep 7004");
    running.kill();
    let lists = "ps; echo '<promise>COMPLETE</promise>'";
    let again = ["--container", &container.name, "--agent-command", lists];
    let output = user.start_apart(&again).wait();

    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(!output.stdout.contains("sleep 70"), "no two agents at once: {output:?}");
    assert_eq!(container.processes(), [""; 0]);
}

#[test]
fn a_container_that_is_not_there_does_not_run_or_has_no_client_is_told() {
    let Some(container) = Container::start() else { return };
    let user = User::new();

    let output = user.run(&["--container", "ralph-e2e-nobody", "--agent-command", "cat"]);
    assert_eq!(output.code, Some(69), "{output:?}");
    assert!(output.stderr.contains("there is no container ralph-e2e-nobody"), "{output:?}");
    text(&docker(&["kill", &container.name]));
    let output = user.run(&["--container", &container.name, "--agent-command", "cat"]);
    assert_eq!(output.code, Some(69), "{output:?}");
    assert!(output.stderr.contains(&format!("docker start {}", container.name)), "{output:?}");
    text(&docker(&["start", &container.name]));
    let output = user.run(&["--container", &container.name]);
    assert_eq!(output.code, Some(69), "{output:?}");
    assert!(output.stderr.contains("install Claude Code in the container"), "{output:?}");
    assert!(!user.root.join("project/ralph").exists(), "nothing was begun");
}

#[test]
fn an_event_stream_says_how_it_went_in_the_container() {
    let Some(container) = Container::start() else { return };
    let output = User::new().run(&["--json", "--container", &container.name, "--agent-command", "exit 7"]);
    let last: &Value = output.events.last().unwrap();
    assert_eq!((&last["event"], &last["exit_code"]), (&Value::from("ended"), &Value::from(1)), "{output:?}");
    assert!(output.stdout.contains("exit code 7"), "{output:?}");
}
