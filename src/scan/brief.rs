//! What the agent is told beside its task: fresh guidance and fresh findings, merged.

use super::{Patience, Scan, scan};
use crate::core::finding::{Finding, Severity};
use crate::core::guidance::{self, Sitting};
use crate::core::merge::{Lists, merge};
use crate::core::record::Loop;
use crate::core::settings::Resolved;
use crate::core::time;
use crate::store::project::Project;
use crate::store::state::Document;
use crate::store::world::World;
use anyhow::Result;

/// Where the findings come from.
#[derive(Clone, Debug)]
pub enum Look {
    /// Nothing can have changed since the last scan.
    Remembered,
    /// Made before the state was locked, where it may take long.
    Made(Scan),
    /// Now, under the state's lock: within the time that others wait for it.
    Now,
}

pub struct Brief {
    pub lists: Lists,
    /// What the user should know: purged guidance, a scan that is not whole.
    pub notes: Vec<String>,
    /// Critical findings that nobody overruled.
    pub critical: Vec<Finding>,
}

/// More findings than this help nobody; `ralph scan` has all.
const MOST_KEPT: usize = 100;

/// Brings the document's guidance and constraints up to now, and says what follows for the agent.
pub fn brief(
    world: &World,
    project: &Project,
    session: &str,
    lap: &Loop,
    resolved: &Resolved,
    document: &mut Document,
    look: Look,
) -> Result<Brief> {
    let settings = resolved.settings();
    let mut notes = Vec::new();
    let mut guidance = document.guidance();
    let sitting = Sitting { session, started_at: lap.started_at, previous_ended_at: lap.previous_ended_at };
    let purged = guidance.purge_stale(&sitting, world.now, settings.guidance_max_age_ms);
    notes.extend(guidance::purged(&purged));

    let mut findings = Vec::new();
    if resolved.is_on("scan.enabled") {
        findings = document.findings();
        let made = match look {
            Look::Remembered => None,
            Look::Made(scan) => Some(scan),
            Look::Now => Some(scan(world, project, resolved, Patience::Hook)),
        };
        if let Some(scan) = made {
            notes.extend(scan.warnings.iter().cloned());
            findings = weigh(world, document, scan, findings, &mut notes)?;
        }
    }
    let waived = guidance.waived();
    let lists = merge(&Lists::of(&guidance), &findings, &waived);
    if guidance.deliver() || !purged.is_empty() {
        document.set_guidance(&guidance)?;
    }
    findings.retain(|finding| finding.severity == Severity::Critical && !waived.contains(&finding.id));
    Ok(Brief { lists, notes, critical: findings })
}

/// Takes a scan's findings, or where it ran out of time the last whole scan's with their age.
fn weigh(
    world: &World,
    document: &mut Document,
    scan: Scan,
    remembered: Vec<Finding>,
    notes: &mut Vec<String>,
) -> Result<Vec<Finding>> {
    let mut findings = scan.findings;
    if !scan.complete {
        let last = document.scanned_at();
        let age = last.map_or("there was none".into(), |at| format!("{} old", time::span(world.now - at)));
        notes.push(format!(
            "the scan of this project goes on at the next turn ({} files so far); the last whole one: {age}",
            scan.files
        ));
        if last.is_some() {
            return Ok(remembered);
        }
        return Ok(findings);
    }
    findings.retain(|finding| finding.severity > Severity::Low);
    findings.truncate(MOST_KEPT);
    document.set_findings(&findings, scan.at)?;
    Ok(findings)
}

/// The lists as they were last told, for whoever only repeats them.
pub fn remembered(document: &Document) -> Lists {
    let guidance = document.guidance();
    merge(&Lists::of(&guidance), &document.findings(), &guidance.waived())
}
