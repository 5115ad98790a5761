//! `ralph doctor`: looks at everything a loop depends on, proves what can be proven, and leaves nothing behind.
//!
//! [`examine_installation`] is for an install, which ends with it; [`run`] looks at everything and prints it. Every program it starts has
//! a limit, and all of them together have one.

mod client;
mod docker;
mod files;
mod hooks;
mod leftovers;
mod project;
mod trip;

pub use trip::ID as ROUND_TRIP;

use super::failure::Failure;
use crate::claude::settings::{Settings, managed_folder};
use crate::core::checkup::{Check, Note, Report};
use crate::store::config;
use crate::store::program::{self, Said};
use crate::store::project::Project;
use crate::store::world::World;
use crate::view;
use crate::view::paint::Paint;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const OVERALL: Duration = Duration::from_secs(150);
/// The exit code where something failed.
const SICK: u8 = 1;
const INTERRUPTED: u8 = 130;

#[derive(Clone, Debug)]
pub struct Asked {
    /// The client's program.
    pub claude: String,
    /// A plugin that is loaded with `--plugin-dir` instead of being registered.
    pub plugin_dir: Option<PathBuf>,
    pub container: Option<String>,
    /// Leaves out the round trip through the client.
    pub quick: bool,
}

impl Default for Asked {
    fn default() -> Self {
        Asked { claude: "claude".into(), plugin_dir: None, container: None, quick: false }
    }
}

/// The text, and the exit code.
pub fn run(
    world: &World,
    project: &Project,
    asked: &Asked,
    json: bool,
    colour: bool,
) -> Result<(String, u8), Failure> {
    let cancelled = Arc::new(AtomicBool::new(false));
    // An interrupt ends what runs and still clears the throw-away folders.
    #[cfg(unix)]
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let _ = signal_hook::flag::register(signal, Arc::clone(&cancelled));
    }
    let report = examine_unless(world, project, asked, &cancelled);
    if cancelled.load(Ordering::Acquire) {
        return Ok((String::new(), INTERRUPTED));
    }
    let text = match json {
        true => view::doctor::json(&report, &project.root),
        false => view::doctor::human(&report, &project.root, Paint::new(colour)),
    };
    Ok((text, if report.is_healthy() { 0 } else { SICK }))
}

/// Looks at what an installation is made of: client, plugin, hooks, and all of them together.
pub fn examine_installation(world: &World, project: &Project, asked: &Asked) -> Report {
    installation(&Patient::new(world, project, asked, &Arc::default())).0
}

fn installation(patient: &Patient) -> (Report, client::Found) {
    let (client, version) = client::client(patient);
    let (plugin, found) = client::plugin(patient, version);
    let checks = vec![
        client,
        plugin,
        hooks::enabled(patient),
        hooks::programs(patient, found.folder.as_deref()),
        trip::round_trip(patient, version, found.folder.as_deref()),
    ];
    (Report { checks }, found)
}

fn examine_unless(world: &World, project: &Project, asked: &Asked, cancelled: &Arc<AtomicBool>) -> Report {
    let patient = Patient::new(world, project, asked, cancelled);
    let (mut report, found) = installation(&patient);
    report.checks.extend([
        hooks::block_cap(&patient),
        hooks::others(&patient, &found.others),
        files::permissions(&patient),
        files::lock(&patient),
        project::git(&patient),
        project::config(&patient),
        project::trust(&patient),
        docker::container(&patient),
        leftovers::leftovers(&patient, found.folder.as_deref()),
    ]);
    report
}

/// Who is examined, and how long that may still take.
struct Patient<'a> {
    world: &'a World,
    project: &'a Project,
    asked: &'a Asked,
    settings: Settings,
    resolved: crate::core::settings::Resolved,
    until: Instant,
    cancelled: Arc<AtomicBool>,
}

impl<'a> Patient<'a> {
    fn new(
        world: &'a World,
        project: &'a Project,
        asked: &'a Asked,
        cancelled: &Arc<AtomicBool>,
    ) -> Patient<'a> {
        Patient {
            world,
            project,
            asked,
            settings: Settings::read(world, project, managed_folder()),
            resolved: config::load(world, project, &Default::default()),
            until: Instant::now() + OVERALL,
            cancelled: Arc::clone(cancelled),
        }
    }

    fn ask(&self, command: &mut Command, input: &[u8], limit: Duration) -> Said {
        let left = self.until.saturating_duration_since(Instant::now());
        program::ask(command, input, limit.min(left), &|| self.cancelled.load(Ordering::Acquire))
    }

    /// The client's program: a path is meant from where the user is, wherever it is started.
    fn program(&self) -> PathBuf {
        let named = PathBuf::from(&self.asked.claude);
        if named.components().count() > 1 { self.world.working_dir.join(named) } else { named }
    }

    /// The client, in the project, on the user's own settings and asked for nothing but the answer.
    fn client(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.program());
        command.args(args).current_dir(&self.project.root);
        command.env("DISABLE_AUTOUPDATER", "1").env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        // Within a session of its own it would take itself for part of that.
        command.env_remove("CLAUDECODE").env_remove("CLAUDE_CODE_SESSION_ID");
        command
    }
}

/// A check that had nothing to look at.
fn skipped(id: &'static str, why: &str) -> Check {
    Check::one(id, Note::skipped(why))
}
