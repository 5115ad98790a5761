//! Everything known about a turn before anything is decided.

use crate::core::circuit::progress::TreeState;
use crate::core::decide::turn::{AfterChecks, Checks, Tasks, Turn};
use crate::core::decide::{Decision, decide};
use crate::core::record::ArmedLoop;
use crate::core::settings::{Resolved, Settings};
use crate::core::time::Stamp;
use crate::scan::{self, Scan, ScanBudget};
use crate::store::process::checks::{CheckCommands, CheckRun};
use crate::store::project::{Project, git};
use crate::store::world::World;

pub struct Facts {
    pub run: ArmedLoop,
    pub resolved: Resolved,
    pub settings: Settings,
    pub turn: Turn,
    /// What the last scan found, if one was made.
    pub scan: Option<Scan>,
    pub checks: CheckCommands,
    /// What the user should know of how they were gathered.
    pub notes: Vec<String>,
}

impl Facts {
    /// Takes what the agent's side told of the turn.
    pub fn new(run: ArmedLoop, resolved: Resolved, turn: Turn) -> Facts {
        let checks = CheckCommands::of(&resolved);
        let turn = Turn { checks: Checks::NotRun(checks.commands.len()), ..turn };
        let settings = resolved.settings_for(run.engine);
        Facts { run, resolved, settings, turn, scan: None, checks, notes: Vec::new() }
    }

    /// Adds the facts from the agent's checkout: HEAD, the task list, and changed files if something may have been
    /// written since the last scan.
    pub fn gather_project(
        mut self,
        world: &World,
        work_tree: &Project,
        tasks: Option<Tasks>,
        was_scanned: bool,
    ) -> Facts {
        self.turn.head = git::head(&work_tree.root);
        self.turn.tasks = tasks;
        if !was_scanned || !self.turn.wrote_nothing() {
            self.turn.tree = self.scan(world, work_tree);
        }
        self
    }

    /// Scans the checkout, if scans are enabled, and returns the state of its files.
    fn scan(&mut self, world: &World, work_tree: &Project) -> Option<TreeState> {
        if self.resolved.is_on("scan.enabled") {
            self.scan = Some(scan::scan(world, work_tree, &self.resolved, ScanBudget::Hook));
        }
        self.scan.as_ref()?.tree
    }

    pub fn decide(&self, now: Stamp) -> (ArmedLoop, Decision) {
        decide(self.run.clone(), &self.turn, &self.settings, now)
    }

    /// Adds how the check commands ran. What they changed is not the agent's progress, so the next turn is measured
    /// against the checkout as it is now. If the commands were replaced while they ran, the results do not count.
    pub fn with_checks(mut self, world: &World, work_tree: &Project, runs: &[CheckRun]) -> Facts {
        self.turn.checks = self.checks.summarize(runs);
        // The turn is judged at the time after them, which includes what the machine slept meanwhile.
        self.turn.slept_ms = world.slept_ms;
        self.turn.check_results = runs.iter().map(|run| run.result(world.now)).collect();
        self.turn.after_checks = Some(AfterChecks {
            head: git::head(&work_tree.root),
            tree: self.scan(world, work_tree).unwrap_or_default(),
        });
        self
    }
}
