//! The project: git, settings, and commands that wait for the user's word.

use super::Patient;
use crate::core::checkup::{Check, Note};
use crate::core::clean;
use crate::store::command::Ended;
use crate::store::{config, git};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(10);

pub fn git(patient: &Patient) -> Check {
    let root = &patient.project.root;
    let mut ask = Command::new("git");
    // Read only: git must not refresh its index for us.
    ask.env("GIT_OPTIONAL_LOCKS", "0").arg("-C").arg(root).args(["rev-parse", "--is-inside-work-tree"]);
    let said = patient.ask(&mut ask, b"", LIMIT);
    let is_repository = git::dir(root).is_some();
    let note = match said.ended {
        Ended::NotStarted(why) => Note::warning(
            format!("git was not found: {why}"),
            "install git: without it the runner cannot hold an agent to committing its work",
        ),
        Ended::Exit(0) if is_repository => Note::ok(git::head(root).map_or("a repository".into(), |head| {
            format!("a repository, HEAD at {}", clean::excerpt(head.trim_start_matches("refs/heads/"), 12))
        })),
        _ if is_repository => Note::warning(
            format!("git does not work in {}: {}", root.display(), said.complaint()),
            "do what git says",
        ),
        _ => Note::warning(
            format!("{} is in no git repository: progress is what changes in the files", root.display()),
            "git init, where you want commits to count and work to be undone",
        ),
    };
    Check::one("git", note)
}

pub fn config(patient: &Patient) -> Check {
    let mut notes = Vec::new();
    let faults = config::faults(patient.world, patient.project);
    for fault in &faults {
        notes.push(Note::failure(format!("{fault}: the whole file is left out"), "mend it, or remove it"));
    }
    let withheld = |warning: &str| {
        patient.resolved.withheld.iter().any(|row| warning.contains(&format!("{} is not run", row.key.name)))
    };
    let told = |warning: &str| faults.iter().any(|fault| warning.starts_with(&clean::line(fault)));
    for warning in patient.resolved.warnings.iter().filter(|warning| !withheld(warning) && !told(warning)) {
        notes.push(Note::warning(warning, "`ralph config` shows what holds instead"));
    }
    for unknown in config::unknown(patient.world, patient.project) {
        notes.push(Note::warning(unknown, "mind the spelling: `ralph config` lists every key"));
    }
    Check::of("config", notes, "every value makes sense")
}

pub fn trust(patient: &Patient) -> Check {
    let notes = patient.resolved.withheld.iter().map(|row| {
        let why = format!("{}: {} is not trusted, and not run", row.place, row.key.name);
        Note::warning(why, "read it with `ralph trust --show`; `ralph trust` lets it run")
    });
    Check::of("trust", notes.collect(), "no command of the project's waits for you")
}
