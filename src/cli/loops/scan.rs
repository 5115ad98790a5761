//! `ralph scan`: the constraints of this project.

use crate::cli::{CommandOutput, Invocation, Project, World};
use crate::core::guidance::finding::{Finding, Severity};
use crate::core::outcome::Exit;
use crate::core::settings::Resolved;
use crate::scan::{self, FileCounter, Scan, ScanBudget};
use crate::store::user::given_guidance;
use crate::store::{config, state};
use crate::view;
use crate::view::paint::Paint;
use crate::view::progress::{self, ProgressLine};

pub fn scan_project(world: &World, project: &Project, shows: bool) -> Scan {
    let work_tree = project.work_tree(&world.working_dir);
    scan_with_progress(world, &work_tree, &config::load(world, project), ScanBudget::Command, shows)
}

/// Scans, and on a terminal shows how far it is.
pub fn scan_with_progress(
    world: &World,
    work_tree: &Project,
    resolved: &Resolved,
    budget: ScanBudget,
    shows: bool,
) -> Scan {
    let counter = FileCounter::default();
    let count = counter.clone();
    let line = move || format!("scanning… {} files", progress::grouped(count.files()));
    let _progress = ProgressLine::show(shows, line);
    scan::scan_counted(world, work_tree, resolved, budget, &counter)
}

/// Formats a scan, given the ids of the findings that the user allowed.
type Format = fn(&Scan, &[String]) -> String;

pub fn command(call: &Invocation) -> CommandOutput {
    let format: Format = match (call.flag("json"), call.flag("ndjson")) {
        (true, _) => view::scan::json,
        (_, true) => view::scan::ndjson,
        _ => |scan, allowed_ids| view::scan::human(scan, allowed_ids, Paint::for_stdout()),
    };
    let shows = !call.flag("json") && !call.flag("ndjson");
    let least = call.value("severity").and_then(Severity::named).unwrap_or_default();
    Ok(run(&call.world, &call.project, least, format, shows))
}

/// Returns the text and the exit code.
pub fn run(world: &World, project: &Project, least: Severity, format: Format, shows: bool) -> (String, Exit) {
    let mut scan = scan_project(world, project, shows);
    let allowed_ids = allowed_findings(world, project);
    scan.findings.retain(|finding| finding.severity >= least);
    let blocks_start =
        |finding: &Finding| finding.severity == Severity::Critical && !allowed_ids.contains(&finding.id);
    let exit = if scan.findings.iter().any(blocks_start) { Exit::Blocked } else { Exit::Success };
    (format(&scan, &allowed_ids), exit)
}

/// Returns the ids of the findings that the user allowed.
pub fn allowed_findings(world: &World, project: &Project) -> Vec<String> {
    let document = state::peek(project).ok().flatten();
    let guidance = document.and_then(|document| given_guidance::guidance(world, project, &document).ok());
    guidance.map(|guidance| guidance.allowed_findings()).unwrap_or_default()
}
