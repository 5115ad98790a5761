//! `ralph scan`: the constraints of this project.

use crate::cli::{Answer, Invocation, Project, World};
use crate::core::guidance::finding::{Finding, Severity};
use crate::core::outcome::Exit;
use crate::scan::{self, Scan, ScanBudget};
use crate::store::user::given;
use crate::store::{config, state};
use crate::view;
use crate::view::paint::Paint;

pub fn now(world: &World, project: &Project) -> Scan {
    let work_tree = project.work_tree(&world.working_dir);
    scan::scan(world, &work_tree, &config::load(world, project), ScanBudget::Command)
}

/// Formats a scan, given the ids of the findings that the user allowed.
type Format = fn(&Scan, &[String]) -> String;

pub fn command(call: &Invocation) -> Answer {
    let format: Format = match (call.flag("json"), call.flag("ndjson")) {
        (true, _) => view::scan::json,
        (_, true) => view::scan::ndjson,
        _ => |scan, waived| view::scan::human(scan, waived, Paint::for_stdout()),
    };
    let least = call.value("severity").and_then(Severity::named).unwrap_or_default();
    Ok(run(&call.world, &call.project, least, format))
}

/// Returns the text and the exit code.
pub fn run(world: &World, project: &Project, least: Severity, format: Format) -> (String, Exit) {
    let mut scan = now(world, project);
    let waived = waived(world, project);
    scan.findings.retain(|finding| finding.severity >= least);
    let stands = |finding: &Finding| finding.severity == Severity::Critical && !waived.contains(&finding.id);
    let exit = if scan.findings.iter().any(stands) { Exit::Blocked } else { Exit::Success };
    (format(&scan, &waived), exit)
}

/// Returns the ids of the findings that the user allowed.
pub fn waived(world: &World, project: &Project) -> Vec<String> {
    let document = state::peek(project).ok().flatten();
    let guidance = document.and_then(|document| given::guidance(world, project, &document).ok());
    guidance.map(|guidance| guidance.waived()).unwrap_or_default()
}
