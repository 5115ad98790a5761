//! Checks git, Ralph's settings, and commands that are not trusted.

use super::{CheckContext, CheckNote, DoctorCheck};
use crate::core::text::clean;
use crate::store::process::command::ProgramEnd;
use crate::store::project::{git, git_process};
use crate::store::user::given_guidance;
use crate::store::{config, state, variables};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);

pub fn git(context: &CheckContext) -> DoctorCheck {
    let root = &context.project.root;
    let mut command = match git_process::command(root) {
        Ok(command) => command,
        Err(why) => {
            return DoctorCheck::one(
                "git",
                CheckNote::warning(why, "remove it, or clone the repository again"),
            );
        }
    };
    command.args(["rev-parse", "--is-inside-work-tree"]);
    let answer = context.run(&mut command, b"", TIMEOUT);
    let is_repository = git::dir(root).is_some();
    let note = match &answer.ended {
        ProgramEnd::NotStarted(why) => CheckNote::warning(
            format!("git was not found: {why}"),
            "install git: without it the runner cannot check that the agent commits its work",
        ),
        ProgramEnd::Exit(0) if is_repository => {
            let head = git::head(root).unwrap_or_default();
            let head = clean::excerpt(head.trim_start_matches("refs/heads/"), 12);
            let head = if head.is_empty() { head } else { format!(", HEAD at {head}") };
            CheckNote::ok(format!("a repository{head}"))
        }
        _ if is_repository => CheckNote::warning(
            format!("git does not work in {}: {}", root.display(), answer.complaint()),
            "run `git status` there and fix what it reports",
        ),
        _ => CheckNote::warning(
            format!("{} is not in a git repository; progress is measured by changed files", root.display()),
            "git init, to count commits as progress and to undo changes",
        ),
    };
    DoctorCheck::one("git", note)
}

pub fn config(context: &CheckContext) -> DoctorCheck {
    let mut notes = Vec::new();
    let faults = config::faults(context.world, context.project);
    for fault in &faults {
        notes.push(CheckNote::failure(format!("{fault}; the whole file is ignored"), "fix it, or remove it"));
    }
    // Both have notes of their own: untrusted commands in the check `trust`, broken files above.
    let is_repeated = |warning: &str| {
        let mut withheld = context.resolved.withheld.iter();
        withheld.any(|row| warning.starts_with(&format!("{}: {} is not run", row.place, row.key.name)))
            || faults.iter().any(|fault| warning.starts_with(&clean::line(fault)))
    };
    for warning in context.resolved.warnings.iter().filter(|warning| !is_repeated(warning)) {
        notes.push(CheckNote::warning(warning, "`ralph config` shows the value in use"));
    }
    for unknown in config::unknown(context.world, context.project) {
        notes.push(CheckNote::warning(unknown, "check the spelling: `ralph config` lists all keys"));
    }
    for note in variables::foreign_notes(context.project) {
        let note = clean::line(&note);
        if !context.resolved.warnings.contains(&note) {
            notes.push(CheckNote::warning(note, "remove them from that file"));
        }
    }
    DoctorCheck::of("config", notes, "all values are valid")
}

pub fn trust(context: &CheckContext) -> DoctorCheck {
    let notes = context.resolved.withheld.iter().map(|row| {
        let why = format!("{}: {} is not trusted and does not run", row.place, row.key.name);
        CheckNote::warning(why, "read it with `ralph trust --show`, then run `ralph trust`")
    });
    let document = state::peek(context.project).ok().flatten();
    let foreign =
        document.and_then(|document| given_guidance::foreign_note(context.world, context.project, &document));
    let foreign = foreign.map(|why| CheckNote::warning(why, "read it with `ralph-guidance list`"));
    DoctorCheck::of("trust", notes.chain(foreign).collect(), "no untrusted commands or guidance")
}
