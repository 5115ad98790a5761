//! `ralph doctor`: diagnoses everything that a loop depends on and leaves nothing behind.
//!
//! Every program it starts has a time limit, and so have all of them together. `ralph install` ends with
//! [`check_installation`].

mod client;
mod docker;
mod files;
mod hooks;
mod leftovers;
mod project;
mod round_trip;

pub use hooks::PROGRAMS as HOOK_PROGRAMS;
pub use round_trip::ID as ROUND_TRIP;

use crate::claude::client::Client;
use crate::claude::settings::{ClientSettings, managed_folder};
use crate::cli::loops::alive;
use crate::cli::{CommandOutput, Invocation, Project, World};
use crate::core::diagnosis::{CheckNote, Diagnosis, DoctorCheck};
use crate::core::outcome::Exit;
use crate::core::record::ArmedLoop;
use crate::core::settings::Resolved;
use crate::store::config;
use crate::store::process::interrupt::Interrupt;
use crate::store::process::program::{self, ProgramOutput};
use crate::store::world::Instant;
use crate::view;
use crate::view::paint::Paint;
use crate::view::progress::ProgressLine;
use std::process::Command;
use std::time::Duration;

const TOTAL_TIMEOUT: Duration = Duration::from_secs(150);
const REINSTALL: &str = "reinstall the plugin: ralph install";

/// Runs all checks and returns their text and the exit code.
pub fn run(call: &Invocation) -> CommandOutput {
    let claude = call.value("claude").unwrap_or("claude");
    let context = CheckContext::new(call, claude, Interrupt::listen());
    let progress = ProgressLine::show(!call.flag("json"), || "checking the installation…".into());
    let (mut report, found) = installation(&context);
    report.checks.extend([
        hooks::block_cap(&context),
        hooks::others(&context, &found.others),
        files::permissions(&context),
        files::lock(&context),
        project::git(&context),
        project::config(&context),
        project::trust(&context),
        docker::container(&context),
        leftovers::leftovers(&context, found.folder.as_deref()),
    ]);
    drop(progress);
    if context.interrupt.is_set() {
        return Ok((String::new(), Exit::Interrupted));
    }
    let text = match call.flag("json") {
        true => view::setup::doctor::json(&report, &call.project.root),
        false => view::setup::doctor::human(&report, &call.project.root, Paint::for_stdout()),
    };
    Ok((text, if report.is_healthy() { Exit::Success } else { Exit::Failed }))
}

/// Runs the checks of Claude Code, the plugin, its hooks, and all of them together.
pub fn check_installation(call: &Invocation, claude: &str) -> Diagnosis {
    installation(&CheckContext::new(call, claude, Interrupt::default())).0
}

fn installation(context: &CheckContext) -> (Diagnosis, client::FoundPlugins) {
    let (client, version) = client::client(context);
    let (plugin, found) = client::plugin(context, version.is_some());
    let folder = found.folder.as_deref();
    let mut checks = vec![client, plugin, hooks::enabled(context), hooks::programs(context, folder)];
    checks.extend(round_trip::round_trip(context, version, folder));
    (Diagnosis { checks }, found)
}

/// What the checks have in common.
struct CheckContext<'a> {
    call: &'a Invocation<'a>,
    world: &'a World,
    project: &'a Project,
    /// The program of Claude Code.
    claude: &'a str,
    client: Option<Client>,
    settings: ClientSettings,
    resolved: Resolved,
    deadline: Instant,
    interrupt: Interrupt,
}

impl<'a> CheckContext<'a> {
    fn new(call: &'a Invocation<'a>, claude: &'a str, interrupt: Interrupt) -> Self {
        let Invocation { world, project, .. } = call;
        CheckContext {
            call,
            world,
            project,
            claude,
            client: Client::find(world, Some(claude)),
            settings: ClientSettings::read(world, project, managed_folder()),
            resolved: config::load(world, project),
            deadline: Instant::now() + TOTAL_TIMEOUT,
            interrupt,
        }
    }

    fn loops(&self) -> Vec<(String, ArmedLoop)> {
        alive(self.world, self.project).loops
    }

    fn run(&self, command: &mut Command, input: &[u8], limit: Duration) -> ProgramOutput {
        let left = self.deadline.saturating_duration_since(Instant::now());
        program::run_cancellable(command, input, limit.min(left), &|| self.interrupt.is_set())
    }
}

fn skipped(id: &'static str, why: &str) -> DoctorCheck {
    DoctorCheck::one(id, CheckNote::skipped(why))
}
