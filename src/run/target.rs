//! Where the agent runs. Another target is another row here.

use super::mark;
use crate::store::group;
use std::path::PathBuf;
use std::process::{Command, Stdio};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

    /// Ends what is left of an iteration: inside a container nothing ends with the client that started it, and
    /// here a program may have left its group. Only what bears our mark is touched.
    pub fn sweep(&self, mark: &str) {
        match self {
            Target::Local => mark::end_marked(mark),
            Target::Container { name, .. } => {
                let mut sweep = Command::new("docker");
                sweep.args(["exec", "-i", name, "sh", "-c", mark::SWEEP, "sh", &mark::entry(mark)]);
                let _ = sweep.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
            }
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
