//! The scanner: finds what limits the agent in this project, or must not be touched.
//!
//! It runs at the end of every turn that could have written, so a file that did not change since the last scan is
//! not read again: [`snapshot`] keeps the fingerprint of every file, [`refresh`] compares them.

pub mod briefing;
mod directory;
mod fingerprint;
mod refresh;
mod rules;
mod snapshot;
mod walk;

use crate::core::circuit::progress::TreeState;
use crate::core::guidance::finding::Finding;
use crate::core::settings::Resolved;
use crate::core::time::Stamp;
use crate::store::project::Project;
use crate::store::world::{World, file_clock};
use rules::{Rules, grouping, surroundings};
use std::time::{Duration, Instant};

#[doc(hidden)]
pub use snapshot::rewrite as rewrite_snapshot;

/// Returns the Stop hooks in the client's settings, which are not Ralph's.
pub use surroundings::stop_hooks as other_stop_hooks;

#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Worst first.
    pub findings: Vec<Finding>,
    pub files: usize,
    /// False where time ran out: the next scan continues.
    pub complete: bool,
    /// When every file had last been compared, by one scan or by several; nothing before the first time.
    pub at: Option<Stamp>,
    /// The state of the project's files, if the scan is complete.
    pub tree: Option<TreeState>,
    /// Rules that could not be used.
    pub warnings: Vec<String>,
}

/// How long a scan may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanBudget {
    /// The client waits for the hook.
    Hook,
    /// The user waits for a loop to start.
    Start,
    /// The user asked for the scan itself.
    Command,
}

impl ScanBudget {
    fn duration(self) -> Duration {
        match self {
            ScanBudget::Hook => Duration::from_secs(1),
            ScanBudget::Start => Duration::from_secs(10),
            ScanBudget::Command => Duration::from_secs(600),
        }
    }
}

pub fn scan(world: &World, project: &Project, resolved: &Resolved, budget: ScanBudget) -> Scan {
    let deadline = Instant::now() + budget.duration();
    let rules = Rules::new(world.home.as_deref(), resolved);
    let (snapshot, complete) = refresh::refresh(world, project, &rules, deadline, file_clock());
    let (at, tree) = (snapshot.completed_at, complete.then(|| snapshot.state()));
    let sizes = snapshot.directories.iter().map(|(path, directory)| (path.as_str(), directory.files.len()));
    let found = snapshot.files().flat_map(|file| file.findings.iter().cloned()).collect();
    let mut findings = grouping::group(found, sizes);
    findings.extend(surroundings::findings(world, project));
    findings.sort_by(|a, b| a.rank().cmp(&b.rank()));
    let mut ids = std::collections::HashSet::new();
    findings.retain(|finding| ids.insert(finding.id.clone()));
    Scan { findings, files: snapshot.files().count(), complete, at, tree, warnings: rules.warnings }
}
