//! The scanner: what in this project limits the agent, or must not be touched, as it is now.
//!
//! It runs at every end of turn, so what did not change is not read again: [`tree`] remembers every file by
//! size, time and inode, and a warm scan is little more than asking for those.

pub mod brief;
mod cache;
mod check;
mod env;
mod files;
mod gather;
mod looking;
mod mark;
mod marker;
mod paths;
mod place;
mod rules;
mod surroundings;
mod tree;
mod walk;

use crate::core::finding::Finding;
use crate::core::progress::Sight;
use crate::core::settings::Resolved;
use crate::core::time::Stamp;
use crate::store::project::Project;
use crate::store::world::World;
use rules::Rules;
use std::time::{Duration, Instant};

/// A hook gives a scan so long; what is left is done at the next turn.
const HOOK_BUDGET: Duration = Duration::from_millis(1000);
/// A look on which a loop's end depends; shorter than others wait for the state.
const VERDICT_BUDGET: Duration = Duration::from_millis(1800);
const START_BUDGET: Duration = Duration::from_secs(10);
/// A person who asks waits longer.
const PATIENT: Duration = Duration::from_secs(600);

#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Worst first.
    pub findings: Vec<Finding>,
    pub files: usize,
    /// False where time ran out: the rest follows at the next scan.
    pub complete: bool,
    /// When everything had been looked at, in one scan or in several; nothing before the first time.
    pub at: Option<Stamp>,
    /// Whether a file of the project has changed, come or gone since the moment asked for; nothing where that
    /// is unknown.
    pub changed: Option<bool>,
    /// This look itself, from which the next one counts; nothing where the one before stays the one to count from.
    pub sight: Option<Sight>,
    /// Rules that could not be used.
    pub warnings: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// The end of a turn, after so many others: of a large project not every file is looked at each time.
    Turn(u64),
    Hook,
    /// The loop may end by it: nothing less than every file.
    Verdict,
    /// Somebody starts a loop and waits for the answer.
    Start,
    /// Somebody asked for the scan itself.
    Person,
}

/// Changes after the look `since` are news.
pub fn scan(
    world: &World,
    project: &Project,
    resolved: &Resolved,
    patience: Patience,
    since: Option<&Sight>,
) -> Scan {
    let budget = match patience {
        Patience::Turn(_) | Patience::Hook => HOOK_BUDGET,
        Patience::Verdict => VERDICT_BUDGET,
        Patience::Start => START_BUDGET,
        Patience::Person => PATIENT,
    };
    let deadline = Instant::now() + budget;
    let rules = Rules::new(world.home.as_deref(), resolved);
    // Where progress is known without the files, those few microseconds each are saved.
    let whole_edge = since.is_some() || patience == Patience::Start;
    let look = if let Patience::Turn(look) = patience { Some(look) } else { None };
    let once = patience == Patience::Verdict;
    let aim = tree::Aim { rules: &rules, deadline, since, whole_edge, look, once };
    let mut tree = tree::update(world, project, &aim);
    let mut findings = gather::folders(std::mem::take(&mut tree.findings), &tree.folders);
    findings.extend(surroundings::findings(world, project));
    findings.sort_by(|a, b| a.rank().cmp(&b.rank()));
    let mut ids = std::collections::HashSet::new();
    findings.retain(|finding| ids.insert(finding.id.clone()));
    let tree::Outcome { files, complete, whole_at, changed, sight, .. } = tree;
    Scan { findings, files, complete, at: whole_at, changed, sight, warnings: rules.warnings }
}

/// Stop hooks in the client's settings, which are not ours.
pub fn other_stop_hooks(world: &World, project: &Project) -> Vec<Finding> {
    surroundings::stop_hooks(world, project)
}

/// A memory read and written again, for the fuzzer: `None` where it is damaged.
#[doc(hidden)]
pub fn rewrite_memory(bytes: &[u8]) -> Option<Vec<u8>> {
    cache::parse(bytes).map(|tree| cache::write(&tree))
}
