//! What the agent is told beside its task: fresh guidance and fresh findings, merged.

use super::Scan;
use crate::core::clean;
use crate::core::finding::{Finding, Severity};
use crate::core::guidance::{self, Entry, Guidance, Sitting};
use crate::core::merge::{Lists, merge};
use crate::core::record::Loop;
use crate::core::settings::Resolved;
use crate::core::time;
use crate::store::armed;
use crate::store::project::Project;
use crate::store::state::Document;
use crate::store::world::World;
use anyhow::Result;

/// Where the findings come from.
#[derive(Clone, Debug)]
pub enum Look {
    /// Nothing can have changed since the last scan.
    Remembered,
    Made(Scan),
}

/// Whose brief it is.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    pub world: &'a World,
    pub project: &'a Project,
    pub session: &'a str,
    pub lap: &'a Loop,
    pub resolved: &'a Resolved,
    /// The agent is going to read it; otherwise nothing counts as delivered.
    pub told: bool,
}

pub struct Brief {
    pub lists: Lists,
    /// What the user should know: purged guidance, a scan that is not whole.
    pub notes: Vec<String>,
    /// Rules that cannot be used.
    pub warnings: Vec<String>,
    /// Critical findings that nobody overruled.
    pub critical: Vec<Finding>,
}

/// More findings than this help nobody; `ralph scan` has all.
const MOST_KEPT: usize = 100;

/// Brings the document's guidance and constraints up to now, and says what follows for the agent.
pub fn brief(reader: &Reader, document: &mut Document, look: Look) -> Result<Brief> {
    let Reader { world, lap, resolved, .. } = *reader;
    let (mut notes, mut warnings) = (Vec::new(), Vec::new());
    let guidance = freshen(reader, document, &mut notes)?;
    let own =
        guidance.fresh_for(&sitting(reader.session, lap), world.now, resolved.settings().guidance_max_age_ms);

    let mut findings = Vec::new();
    if resolved.is_on("scan.enabled") {
        findings = document.findings();
        let made = match look {
            Look::Remembered => None,
            Look::Made(scan) => Some(scan),
        };
        if let Some(scan) = made {
            warnings.clone_from(&scan.warnings);
            findings = weigh(world, document, scan, findings, &mut notes)?;
        }
    } else if !document.findings().is_empty() {
        document.set_findings(&Vec::new(), world.now)?;
    }
    let waived = own.waived();
    let lists = merge(&Lists::of(&own), &findings, &waived);
    notes.extend(held_back(&own, &lists));
    if reader.told {
        let mut guidance = guidance;
        guidance.deliver(&lists.told());
        document.set_guidance(&guidance)?;
    }
    findings.retain(|finding| finding.severity == Severity::Critical && !waived.contains(&finding.id));
    Ok(Brief { lists, notes, warnings, critical: findings })
}

fn sitting<'a>(session: &'a str, lap: &Loop) -> Sitting<'a> {
    Sitting { session, started_at: lap.started_at, previous_ended_at: lap.previous_ended_at }
}

/// Drops what is stale for every loop that is alive here: another loop's words are not ours to throw away.
fn freshen(reader: &Reader, document: &mut Document, notes: &mut Vec<String>) -> Result<Guidance> {
    let Reader { world, project, session, lap, resolved, .. } = *reader;
    let mut guidance = document.guidance();
    guidance.bring_back_to(world.now);
    let max_age = resolved.settings().guidance_max_age_ms;
    // The other loops are only asked where there is something to drop.
    let stale = guidance.clone().purge_stale(&[sitting(session, lap)], world.now, max_age);
    let loops = if stale.is_empty() { Vec::new() } else { document.loops() };
    let others = loops
        .iter()
        .filter(|(id, lap)| id != session && lap.is_alive() && armed::is_armed(world, project, id, lap));
    let sittings: Vec<Sitting> =
        std::iter::once(sitting(session, lap)).chain(others.map(|(id, lap)| sitting(id, lap))).collect();
    let purged = guidance.purge_stale(&sittings, world.now, max_age);
    notes.extend(guidance::purged(&purged));
    document.set_guidance(&guidance)?;
    Ok(guidance)
}

/// A word of the user's that the scan stands against, told while it has not reached the agent.
fn held_back(guidance: &Guidance, lists: &Lists) -> Option<String> {
    let told = |entry: &&Entry| {
        lists.encouraged.iter().any(|word| guidance::key(&word.text) == guidance::key(&entry.text))
    };
    let held: Vec<_> = guidance
        .encouraged
        .iter()
        .filter(|entry| !entry.delivered && !told(entry))
        .map(|entry| format!("\"{}\"", clean::excerpt(&entry.text, 60)))
        .collect();
    (!held.is_empty()).then(|| {
        format!(
            "held back, a finding stands against it: {} (`ralph-guidance allow ID` overrules)",
            held.join(", ")
        )
    })
}

/// Takes a scan's findings, or while the first one has not come round the last whole scan's with their age. In a
/// project too large for one turn every file is as it was when its turn last came.
fn weigh(
    world: &World,
    document: &mut Document,
    scan: Scan,
    remembered: Vec<Finding>,
    notes: &mut Vec<String>,
) -> Result<Vec<Finding>> {
    let mut findings = scan.findings;
    let Some(at) = scan.at else {
        let last = document.scanned_at();
        let age = last.map_or("there was none".into(), |at| format!("{} old", time::span(world.now - at)));
        notes.push(format!(
            "the scan of this project goes on at the next turn ({} files so far); the last whole one: {age}",
            scan.files
        ));
        return Ok(if last.is_some() { remembered } else { findings });
    };
    findings.retain(|finding| finding.severity > Severity::Low);
    findings.truncate(MOST_KEPT);
    document.set_findings(&findings, at)?;
    Ok(findings)
}

/// The lists as they were last told, for whoever only repeats them.
pub fn remembered(document: &Document) -> Lists {
    let guidance = document.guidance();
    merge(&Lists::of(&guidance), &document.findings(), &guidance.waived())
}
