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
use crate::claude::settings::{Settings, managed_folder};
use crate::core::diagnosis::{Check, CheckNote, Report};
use crate::core::outcome::Exit;
use crate::core::settings::Resolved;
use crate::store::config;
use crate::store::process::interrupt::Interrupt;
use crate::store::process::program::{self, Said};
use crate::store::project::Project;
use crate::store::world::World;
use crate::view;
use crate::view::paint::Paint;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

const TOTAL_LIMIT: Duration = Duration::from_secs(150);
const REINSTALL: &str = "reinstall the plugin: ralph install";

#[derive(Clone, Debug, Default)]
pub struct DoctorArgs {
    /// The program of Claude Code.
    pub claude: Option<String>,
    /// A plugin that is loaded with `--plugin-dir` instead of being installed.
    pub plugin_dir: Option<PathBuf>,
    pub container: Option<String>,
    /// Skips the round trip.
    pub quick: bool,
}

/// Runs all checks and returns their text and the exit code.
pub fn run(world: &World, project: &Project, args: &DoctorArgs, json: bool, colour: bool) -> (String, Exit) {
    let context = CheckContext::new(world, project, args, Interrupt::listen());
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
    if context.interrupt.is_set() {
        return (String::new(), Exit::Interrupted);
    }
    let text = match json {
        true => view::doctor::json(&report, &project.root),
        false => view::doctor::human(&report, &project.root, Paint::new(colour)),
    };
    (text, if report.is_healthy() { Exit::Success } else { Exit::Failed })
}

/// Runs the checks of Claude Code, the plugin, its hooks, and all of them together.
pub fn check_installation(world: &World, project: &Project, args: &DoctorArgs) -> Report {
    installation(&CheckContext::new(world, project, args, Interrupt::default())).0
}

fn installation(context: &CheckContext) -> (Report, client::FoundPlugins) {
    let (client, version) = client::client(context);
    let (plugin, found) = client::plugin(context, version.is_some());
    let folder = found.folder.as_deref();
    let checks = vec![
        client,
        plugin,
        hooks::enabled(context),
        hooks::programs(context, folder),
        round_trip::round_trip(context, version, folder),
    ];
    (Report { checks }, found)
}

/// What the checks have in common.
struct CheckContext<'a> {
    world: &'a World,
    project: &'a Project,
    args: &'a DoctorArgs,
    client: Option<Client>,
    settings: Settings,
    resolved: Resolved,
    deadline: Instant,
    interrupt: Interrupt,
}

impl<'a> CheckContext<'a> {
    fn new(world: &'a World, project: &'a Project, args: &'a DoctorArgs, interrupt: Interrupt) -> Self {
        CheckContext {
            world,
            project,
            args,
            client: Client::find(world, args.claude.as_deref()),
            settings: Settings::read(world, project, managed_folder()),
            resolved: config::load(world, project),
            deadline: Instant::now() + TOTAL_LIMIT,
            interrupt,
        }
    }

    fn run(&self, command: &mut Command, input: &[u8], limit: Duration) -> Said {
        let left = self.deadline.saturating_duration_since(Instant::now());
        program::ask(command, input, limit.min(left), &|| self.interrupt.is_set())
    }
}

fn skipped(id: &'static str, why: &str) -> Check {
    Check::one(id, CheckNote::skipped(why))
}
