//! Checks the container of `ralph run --container`.

use super::{CheckContext, CheckNote, DoctorCheck, skipped};
use crate::claude::client::version::{OLDEST, Version};
use crate::core::text::clean;
use crate::store::process::command::ProgramEnd;
use crate::store::process::lookup;
use crate::store::runner::run_lock;
use std::time::Duration;

const ID: &str = "docker";
const TIMEOUT: Duration = Duration::from_secs(15);

pub fn container(context: &CheckContext) -> DoctorCheck {
    match context
        .call
        .value("container")
        .map(str::to_owned)
        .or_else(|| run_lock::container(context.world, context.project))
    {
        None => skipped(ID, "not used here; --container NAME checks one"),
        // Docker would take it for an option.
        Some(name) if name.starts_with('-') => {
            let why = format!("'{}' is not a container name", clean::excerpt(&name, 60));
            DoctorCheck::one(ID, CheckNote::failure(why, "`docker ps` lists the running containers"))
        }
        Some(name) => DoctorCheck::one(ID, check(context, &name)),
    }
}

fn check(context: &CheckContext, name: &str) -> CheckNote {
    let docker = |args: &[&str]| context.run(lookup::command("docker").args(args), b"", TIMEOUT);
    let state = docker(&["inspect", "--format", "{{.State.Running}}", name]);
    match &state.ended {
        ProgramEnd::NotStarted(why) => {
            let hint = "install Docker, or run without --container";
            return CheckNote::failure(format!("docker was not found: {why}"), hint);
        }
        ProgramEnd::Exit(0) if state.stdout.trim() == "true" => {}
        ProgramEnd::Exit(0) => {
            let why = format!("container {name} is not running");
            return CheckNote::failure(why, format!("docker start {name}"));
        }
        _ => {
            let why = format!("docker cannot inspect container {name}: {}", state.complaint());
            return CheckNote::failure(
                why,
                "check with `docker ps` that Docker and the container are running",
            );
        }
    }
    let client = docker(&["exec", name, context.claude, "--version"]);
    match Version::parse(&client.stdout).filter(|_| client.passed()) {
        Some(version) if version >= OLDEST => {
            CheckNote::ok(format!("container {name} is running, with Claude Code {version}"))
        }
        Some(version) => {
            let why = format!("Claude Code in container {name} is too old: {version}, needs {OLDEST}");
            CheckNote::failure(why, "update it in the container")
        }
        None => CheckNote::warning(
            format!("container {name} is running, without Claude Code: {}", client.complaint()),
            "install it in the container, name it with --claude PATH, or use --agent-command",
        ),
    }
}
