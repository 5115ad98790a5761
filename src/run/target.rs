//! Where the agent runs. Another target is another row here.

use super::mark::{self, Moment};
use crate::store::group::{self, Group};
use crate::store::program;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// From the request to end to the end by force inside a container, in tenths of a second; as long as here.
const GRACE: u32 = 20;
/// An engine that does not answer holds nothing up for longer.
const ENGINE: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    #[default]
    Local,
    /// A running container, through `docker exec`: no terminal, stdin piped.
    Container {
        name: String,
        /// The project's folder inside; where docker starts a process without it.
        workdir: Option<String>,
    },
    /// `docker sandbox run`.
    Sandbox { name: String },
}

impl Target {
    /// The command that runs these words there, in the project, marked as ours.
    pub fn command(&self, words: &[String], project: &PathBuf, mark: &str) -> Command {
        let variable = format!("{}={mark}", mark::VARIABLE);
        let mut command = match self {
            Target::Local => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]).env(mark::VARIABLE, mark);
                command
            }
            Target::Container { name, workdir } => {
                let mut command = Command::new("docker");
                command.args(["exec", "-i", "-e", &variable]);
                if let Some(dir) = workdir {
                    command.args(["-w", dir]);
                }
                command.arg(name).args(words);
                command
            }
            Target::Sandbox { name } => {
                let mut command = Command::new("docker");
                // The sandbox knows its agent; it takes the agent's arguments behind the dashes.
                command.args(["sandbox", "run", name, "--"]).args(&words[1..]);
                command
            }
        };
        command.current_dir(project).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        group::lead(&mut command);
        command
    }

    /// Ends a running iteration: asked first, then by force. No signal passes from `docker exec` to what it started,
    /// so inside a container the agent is asked by a second call, and the client hears its last words meanwhile.
    pub fn end(&self, mark: &str, group: &Group) {
        if let Target::Container { name, .. } = self {
            sweep_container(name, mark, GRACE);
        }
        group.end();
    }

    /// Ends what is left of an iteration: inside a container nothing ends with the client that started it, and
    /// here a program may have left its group. Only what bears our mark is touched. `at_once` is without asking;
    /// nothing of it was started before `since`.
    pub fn sweep(&self, mark: &str, at_once: bool, since: Option<Moment>) {
        match self {
            Target::Local => mark::end_marked(mark, since),
            Target::Container { name, .. } => sweep_container(name, mark, if at_once { 0 } else { GRACE }),
            Target::Sandbox { .. } => {}
        }
    }

    /// For people.
    pub fn name(&self) -> String {
        match self {
            Target::Local => "here".into(),
            Target::Container { name, .. } => format!("in container {name}"),
            Target::Sandbox { name } => format!("in sandbox {name}"),
        }
    }
}

fn sweep_container(name: &str, mark: &str, grace: u32) {
    let mut sweep = Command::new("docker");
    sweep.args(["exec", "-i", name, "sh", "-c", mark::SWEEP, "sh", &mark::entry(mark), &grace.to_string()]);
    program::run(sweep, b"", ENGINE);
}
