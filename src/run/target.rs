//! Where the agent runs. Another target is another variant here.

use super::agent::{MAX_ANSWER_WAIT, Unavailable, ask};
use super::reaper::{self, CONTAINER_GRACE};
use crate::store::process::group::Group;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::{Command, Stdio};

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

impl Target {
    /// Returns the command that runs these words there, in the project, with piped streams.
    pub fn command(&self, words: &[String], project: &Path, run_id: &str) -> Command {
        let mut command = Command::new("docker");
        match self {
            Target::Local => {
                command = Command::new(&words[0]);
                // Its session would be taken for one inside the session in which Ralph was started.
                command.args(&words[1..]).env(reaper::VARIABLE, run_id).env_remove("CLAUDECODE");
            }
            Target::Container { name, workdir } => {
                command.args(["exec", "-i", "-e", &format!("{}={run_id}", reaper::VARIABLE)]);
                command.args(workdir.iter().flat_map(|dir| ["-w", dir])).arg(name).args(words);
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
        const INSTALL: &str = "Install Docker, or run without --container and --sandbox.";
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
                Err(Unavailable::new(message, format!("docker start {name}")))
            }
            Err(failure) if is_missing(&failure.message) => {
                let hint = "`docker ps` lists those that run; `--container` takes a name or an id.";
                Err(Unavailable::new(format!("there is no container {name}"), hint))
            }
            Err(failure) if failure.message.contains(" failed: ") => {
                let why = failure.message.split_once(" failed: ").map_or("", |(_, why)| why);
                Err(Unavailable::new(
                    format!("docker does not work: {why}"),
                    "Start Docker; `docker ps` shows whether it works.",
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

    /// Ends a running iteration: TERM, a grace period, then KILL. `docker exec` passes no signal on, so inside a
    /// container a second call does it, while the first still delivers the agent's last output.
    pub fn end(&self, run_id: &str, group: &Group) {
        self.container().into_iter().for_each(|name| reaper::reap_container(name, run_id, CONTAINER_GRACE));
        group.end();
    }

    /// Ends what is left of an iteration: processes inside a container do not end with the client that started
    /// them, and local ones may have left their group. `at_once` skips the grace period.
    pub fn reap(&self, run_id: &str, at_once: bool) {
        let grace = if at_once { 0 } else { CONTAINER_GRACE };
        match self {
            Target::Local => reaper::reap(run_id),
            Target::Container { name, .. } => reaper::reap_container(name, run_id, grace),
            Target::Sandbox { .. } => {}
        }
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
