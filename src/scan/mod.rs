//! The scanner: finds what limits the agent in this project, or must not be touched.
//!
//! It runs at the end of every turn that could have written, so a file that did not change since the last scan is
//! not read again: [`snapshot`] keeps the fingerprint of every file, [`refresh`] compares them.

pub mod briefing;
mod directory;
mod fingerprint;
mod ignore_budget;
mod refresh;
mod rules;
mod snapshot;
mod walk;

use crate::core::circuit::progress::TreeState;
use crate::core::guidance::finding::Finding;
use crate::core::settings::Resolved;
use crate::core::time::Stamp;
use crate::store::project::Project;
use crate::store::world::{Instant, World, file_clock};
use rules::{Rules, grouping, surroundings};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

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

/// How many files a scan has compared so far.
#[derive(Clone, Debug, Default)]
pub struct FileCounter(Arc<AtomicU64>);

impl FileCounter {
    fn add(&self, files: usize) {
        self.0.fetch_add(files as u64, Ordering::Relaxed);
    }

    pub fn files(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
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
            ScanBudget::Hook => Duration::from_millis(700),
            ScanBudget::Start => Duration::from_secs(10),
            ScanBudget::Command => Duration::from_secs(600),
        }
    }
}

/// More directories that are left out are counted, not named.
const MAX_NAMED: usize = 3;
/// How far a scan may be over its deadline before its result is not waited for.
const GRACE: Duration = Duration::from_millis(100);
/// How long to wait before the clock is looked at again.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Scans the project within the budget. A rule of the project's own cannot be interrupted, so with such rules the scan
/// runs in a thread, and one that is late is left to itself: what an earlier scan found still counts.
pub fn scan(world: &World, project: &Project, resolved: &Resolved, budget: ScanBudget) -> Scan {
    scan_counted(world, project, resolved, budget, &FileCounter::default())
}

/// Scans as [`scan`] does, and counts the files meanwhile.
pub fn scan_counted(
    world: &World,
    project: &Project,
    resolved: &Resolved,
    budget: ScanBudget,
    counter: &FileCounter,
) -> Scan {
    let deadline = Instant::now() + budget.duration();
    if resolved.list("scan.rules").is_empty() {
        return scan_until(world, project, resolved, deadline, counter);
    }
    let (world, project, resolved) = (world.clone(), project.clone(), resolved.clone());
    let counter = counter.clone();
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(scan_until(&world, &project, &resolved, deadline, &counter)));
    receive(&receiver, deadline + GRACE).unwrap_or_else(|| Scan {
        warnings: vec!["scan.rules: the rules take too long, so the scan was stopped; simplify them".into()],
        ..Scan::default()
    })
}

/// Waits for the result of a scan until then.
fn receive(scan: &Receiver<Scan>, until: Instant) -> Option<Scan> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match scan.recv_timeout(left.min(POLL_INTERVAL)) {
            Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
            result => return result.ok(),
        }
    }
}

fn scan_until(
    world: &World,
    project: &Project,
    resolved: &Resolved,
    deadline: Instant,
    counter: &FileCounter,
) -> Scan {
    let rules = Rules::new(world.home.as_deref(), resolved);
    let (snapshot, complete) = refresh::refresh(world, project, &rules, deadline, (file_clock(), counter));
    let (at, tree) = (snapshot.completed_at, complete.then(|| snapshot.state()));
    let sizes = snapshot.directories.iter().map(|(path, directory)| (path.as_str(), directory.files.len()));
    let found = snapshot.files().flat_map(|file| file.findings.iter().cloned()).collect();
    let mut findings = grouping::group(found, sizes);
    findings.extend(surroundings::findings(world, project));
    findings.sort_by(|a, b| a.rank().cmp(&b.rank()));
    let mut ids = std::collections::HashSet::new();
    findings.retain(|finding| ids.insert(finding.id.clone()));
    let mut warnings = rules.warnings;
    warnings.extend(left_out_notes(&snapshot.left_out));
    Scan { findings, files: snapshot.files().count(), complete, at, tree, warnings }
}

/// Says what is left out because of its ignore files, the first few by name.
fn left_out_notes(left_out: &BTreeMap<String, u64>) -> Vec<String> {
    let mut told: Vec<String> =
        left_out.keys().take(MAX_NAMED).map(|path| ignore_budget::left_out_note(path)).collect();
    if left_out.len() > MAX_NAMED {
        told.push(format!("scan: {} more folders are skipped", left_out.len() - MAX_NAMED));
    }
    told
}
