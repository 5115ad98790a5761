//! `ralph scan`: the constraints of this project.

use crate::cli::failure::Failure;
use crate::core::guidance::finding::{Finding, Severity};
use crate::core::outcome::Exit;
use crate::scan::{self, Scan, ScanBudget};
use crate::store::project::Project;
use crate::store::world::World;
use crate::store::{config, state};
use crate::view;
use crate::view::paint::Paint;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Human,
    Json,
    Ndjson,
}

pub fn now(world: &World, project: &Project) -> Scan {
    scan::scan(world, project, &config::load(world, project), ScanBudget::Command)
}

/// Returns the text and the exit code.
pub fn run(
    world: &World,
    project: &Project,
    least: Severity,
    format: Format,
    colour: bool,
) -> Result<(String, Exit), Failure> {
    let mut scan = now(world, project);
    let waived = waived(project);
    scan.findings.retain(|finding| finding.severity >= least);
    let stands = |finding: &Finding| finding.severity == Severity::Critical && !waived.contains(&finding.id);
    let exit = if scan.findings.iter().any(stands) { Exit::Blocked } else { Exit::Success };
    let text = match format {
        Format::Human => view::scan::human(&scan, &waived, Paint::new(colour)),
        Format::Json => view::scan::json(&scan, &waived),
        Format::Ndjson => view::scan::ndjson(&scan, &waived),
    };
    Ok((text, exit))
}

/// Returns the ids of the findings that the user allowed.
pub fn waived(project: &Project) -> Vec<String> {
    let guidance =
        state::peek(project).ok().flatten().map(|document| document.guidance()).unwrap_or_default();
    guidance.waived()
}
