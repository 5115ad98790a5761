//! Where the agent runs. Another target is another variant here.

use super::reaper::{self, CONTAINER_GRACE, ReaperGuard};
use super::supervisor::AgentEnd;
use crate::run::agent::{MAX_ANSWER_WAIT, Unavailable, ask};
use crate::store::process::group::Group;
use crate::store::process::lookup;
use crate::store::runner::run_lock::RunLock;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    #[default]
    Local,
    /// A running container, through `docker exec` without a terminal.
    Container {
        name: String,
        /// The project's folder inside, if it is not where docker starts a process.
        workdir: Option<String>,
    },
    /// `docker sandbox run`.
    Sandbox { name: String },
}

/// How an iteration came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reap {
    /// The agent ended by itself.
    Rest,
    /// The agent was cut off, or its runner died.
    CutOff,
    /// The agent was cut off and gets no grace period.
    AtOnce,
}

impl Target {
    /// Returns the command that runs these words there, in the project, with piped streams.
    pub fn command(&self, words: &[String], project: &Path, run_id: &str) -> Command {
        let mut command = lookup::command("docker");
        match self {
            Target::Local => {
                command = lookup::command(&words[0]);
                // Its session would be taken for one inside the session in which Ralph was started.
                command.args(&words[1..]).env(reaper::VARIABLE, run_id).env_remove("CLAUDECODE");
            }
            Target::Container { name, workdir } => {
                command.args(["exec", "-i", "-e", &format!("{}={run_id}", reaper::VARIABLE)]);
                command.args(workdir.iter().flat_map(|dir| ["-w", dir])).arg(name);
                command.args(reaper::marked(words, run_id));
            }
            // The sandbox knows its agent and takes only the arguments for it.
            Target::Sandbox { name } => {
                command.args(["sandbox", "run", name, "--"]).args(&words[1..]);
            }
        }
        command.current_dir(project).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Checks that the target can be used.
    pub fn check(&self) -> Result<(), Unavailable> {
        const INSTALL: &str = "install Docker, or run without --container and --sandbox";
        let name = match self {
            Target::Local => return Ok(()),
            Target::Sandbox { .. } => {
                return ask("docker", &["--version"], MAX_ANSWER_WAIT, INSTALL).map(drop);
            }
            Target::Container { name, .. } => name,
        };
        let inspect = ["inspect", "--format", "{{.State.Running}}", name];
        match ask("docker", &inspect, MAX_ANSWER_WAIT, INSTALL) {
            Ok(told) if told.trim() == "true" => Ok(()),
            Ok(_) => {
                let message = format!("container {name} is not running");
                Err(Unavailable::new(message, format!("start it with `docker start {name}`")))
            }
            Err(failure) if is_missing(&failure.message) => {
                let hint = "`docker ps` lists the running ones; --container takes a name or an id";
                Err(Unavailable::new(format!("there is no container {name}"), hint))
            }
            Err(failure) if failure.message.contains(" failed: ") => {
                let why = failure.message.split_once(" failed: ").map_or("", |(_, why)| why);
                Err(Unavailable::new(
                    format!("docker does not work: {why}"),
                    "start Docker; `docker ps` shows whether it works",
                ))
            }
            Err(failure) => Err(failure),
        }
    }

    pub fn container(&self) -> Option<&str> {
        match self {
            Target::Container { name, .. } => Some(name),
            Target::Local | Target::Sandbox { .. } => None,
        }
    }

    /// Adds where the agent runs to what others are told of the run.
    pub fn told(&self, mut told: RunLock) -> RunLock {
        match self {
            Target::Local => {}
            Target::Container { name, .. } => told.container = Some(name.clone()),
            Target::Sandbox { name } => told.sandbox = Some(name.clone()),
        }
        told
    }

    /// Starts what ends the agent if we are killed; a local one has the guard of its process group.
    pub fn guard(&self, run_id: &str) -> Result<Option<ReaperGuard>, String> {
        match self {
            Target::Local => Ok(None),
            Target::Container { name, .. } => ReaperGuard::in_container(name, run_id).map(Some),
            Target::Sandbox { name } => ReaperGuard::of_sandbox(name).map(Some),
        }
    }

    /// Ends a running iteration: TERM, a grace period, then KILL. `docker exec` passes no signal on, so inside a
    /// container a second call does it, while the first still delivers the agent's last output. Whether that worked
    /// is asked by [`Target::reap`].
    pub fn end(&self, run_id: &str, group: &Group) {
        if let Target::Container { name, .. } = self {
            let _ = reaper::reap_container(name, run_id, CONTAINER_GRACE);
        }
        group.end();
    }

    /// Ends what is left of an iteration: an agent inside a container or a sandbox does not end with the client that
    /// started it, and local processes may have left their group. An error says why something may still run.
    pub fn reap(&self, run_id: &str, how: Reap) -> Result<(), String> {
        let grace = if how == Reap::AtOnce { 0 } else { CONTAINER_GRACE };
        let ended = match self {
            Target::Local => reaper::reap(run_id),
            Target::Container { name, .. } => reaper::reap_container(name, run_id, grace),
            Target::Sandbox { .. } if how == Reap::Rest => Ok(()),
            Target::Sandbox { name } => reaper::stop_sandbox(name),
        };
        let place = || self.place().map_or_else(String::new, |place| format!(" {place}"));
        ended.map_err(|why| format!("the agent{} could not be ended: {why}", place()))
    }

    /// Returns when the container was started, which changes with a restart.
    pub fn started_at(&self) -> Option<String> {
        ask(
            "docker",
            &["inspect", "--format", "{{.State.StartedAt}}", self.container()?],
            MAX_ANSWER_WAIT,
            "",
        )
        .ok()
    }

    /// Returns what happened to a container that ended the agent in it. The engine may learn of its end a moment later,
    /// so it is asked more than once.
    pub fn lost(&self, started_at: Option<&str>) -> Option<AgentEnd> {
        const MAX_ATTEMPTS: usize = 20;
        let name = self.container()?;
        let during_run = |what: &str| format!("container {name} {what} during the run");
        let mut lost = None;
        for attempt in 0..MAX_ATTEMPTS {
            std::thread::sleep(if attempt == 0 { Duration::ZERO } else { Duration::from_millis(100) });
            lost = match self.check() {
                Ok(()) if started_at.is_some() && self.started_at().as_deref() != started_at => {
                    return Some(AgentEnd::Restarted(during_run("was restarted")));
                }
                Ok(()) => None,
                Err(failure) if failure.message.starts_with("there is no container") => {
                    return Some(AgentEnd::Lost(during_run("was removed")));
                }
                Err(failure) if failure.message.ends_with("is not running") => {
                    Some(AgentEnd::Lost(during_run("stopped")))
                }
                Err(_) => return None,
            };
        }
        lost
    }

    /// Returns where the agent runs, if that is not here.
    pub fn place(&self) -> Option<String> {
        match self {
            Target::Local => None,
            Target::Container { name, .. } => Some(format!("in container {name}")),
            Target::Sandbox { name } => Some(format!("in sandbox {name}")),
        }
    }
}

/// Returns whether Docker says that the container does not exist.
fn is_missing(message: &str) -> bool {
    let message = message.to_lowercase();
    message.contains("no such object") || message.contains("no such container")
}
