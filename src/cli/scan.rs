//! `ralph scan`: the constraints of this project, as they are now.

use super::failure::Failure;
use crate::core::finding::{Finding, Severity};
use crate::scan::{self, Patience, Scan};
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

/// The exit code where a critical constraint stands.
const CRITICAL: u8 = 2;

pub fn now(world: &World, project: &Project) -> Scan {
    scan::scan(world, project, &config::load(world, project, &Default::default()), Patience::Person, None)
}

/// The text, and the exit code.
pub fn run(
    world: &World,
    project: &Project,
    least: Severity,
    format: Format,
    colour: bool,
) -> Result<(String, u8), Failure> {
    let mut scan = now(world, project);
    let waived = waived(project);
    scan.findings.retain(|finding| finding.severity >= least);
    let stands = |finding: &Finding| finding.severity == Severity::Critical && !waived.contains(&finding.id);
    let code = if scan.findings.iter().any(stands) { CRITICAL } else { 0 };
    let text = match format {
        Format::Human => view::scan::human(&scan, &waived, Paint::new(colour)),
        Format::Json => view::scan::json(&scan, &waived),
        Format::Ndjson => view::scan::ndjson(&scan, &waived),
    };
    Ok((text, code))
}

/// Ids the user has overruled.
pub fn waived(project: &Project) -> Vec<String> {
    let guidance =
        state::peek(project).ok().flatten().map(|document| document.guidance()).unwrap_or_default();
    guidance.waived()
}
