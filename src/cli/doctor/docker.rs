//! The container in which `ralph run` works, where one is named or was used here.

use super::leftovers::genuine;
use super::{Patient, skipped};
use crate::claude::version::{OLDEST, Version};
use crate::core::checkup::{Check, Note};
use crate::core::clean;
use crate::run::lock;
use crate::store::command::Ended;
use crate::store::program::Said;
use std::process::Command;
use std::time::Duration;

const ID: &str = "docker";
const LIMIT: Duration = Duration::from_secs(15);

pub fn container(patient: &Patient) -> Check {
    let named = patient.asked.container.clone().or_else(|| used_here(patient));
    match named {
        None => skipped(ID, "not used here; --container NAME looks at one"),
        // It would be an option.
        Some(name) if name.starts_with('-') => {
            let why = format!("'{}' is no container's name", clean::excerpt(&name, 60));
            Check::one(ID, Note::failure(why, "`docker ps` lists those that run"))
        }
        Some(name) => Check::one(ID, look(patient, &name)),
    }
}

/// The container of a run that is not over. The lock may come with a repository: it counts for a run of this user.
fn used_here(patient: &Patient) -> Option<String> {
    let (run, container) = lock::container(patient.project)?;
    let ours = genuine(patient).iter().any(|(_, lap)| lap.is_alive() && lap.run_id == run);
    ours.then_some(container)
}

fn look(patient: &Patient, name: &str) -> Note {
    let state = docker(patient, &["inspect", "--format", "{{.State.Running}}", name]);
    match &state.ended {
        Ended::NotStarted(why) => {
            let way_out = "install Docker, or run without --container";
            return Note::failure(format!("docker was not found: {why}"), way_out);
        }
        Ended::Exit(0) if state.stdout.trim() == "true" => {}
        Ended::Exit(0) => {
            return Note::failure(format!("container {name} is not running"), format!("docker start {name}"));
        }
        _ => {
            let why = format!("docker does not know container {name}: {}", state.complaint());
            return Note::failure(why, "is Docker running? `docker ps` lists its containers");
        }
    }
    let client = docker(patient, &["exec", name, &patient.asked.claude, "--version"]);
    match Version::parse(&client.stdout).filter(|_| client.is_green()) {
        Some(version) if version >= OLDEST => {
            Note::ok(format!("container {name} runs, with Claude Code {version}"))
        }
        Some(version) => {
            let why = format!("Claude Code {version} in container {name} is too old, {OLDEST} is the oldest");
            Note::failure(why, "update it there")
        }
        None => Note::warning(
            format!("container {name} runs, without Claude Code: {}", client.complaint()),
            "install it there, name it with --claude PATH, or use --agent-command",
        ),
    }
}

fn docker(patient: &Patient, args: &[&str]) -> Said {
    patient.ask(Command::new("docker").args(args), b"", LIMIT)
}
