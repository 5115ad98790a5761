//! What the agent is told beside its task: current guidance and current findings, merged.

use super::Scan;
use crate::core::event::{EventKind, changes};
use crate::core::guidance::finding::{Finding, Severity};
use crate::core::guidance::merge::GuidanceLists;
use crate::core::guidance::{self, Guidance, GuidanceScope};
use crate::core::record::{ArmedLoop, StoredLoop};
use crate::core::settings::Resolved;
use crate::core::time;
use crate::store::state::Document;
use crate::store::user::{armed, given_guidance};
use crate::store::{Project, World};
use anyhow::Result;
use std::collections::HashSet;

/// The loop that a briefing is for.
#[derive(Clone, Copy)]
pub struct BriefingContext<'a> {
    pub world: &'a World,
    pub project: &'a Project,
    pub session: &'a str,
    pub run: &'a ArmedLoop,
    pub resolved: &'a Resolved,
    /// The agent is going to read it; otherwise nothing counts as delivered.
    pub told: bool,
}

pub struct Briefing {
    pub lists: GuidanceLists,
    /// What the user should know: purged guidance, a scan that is not finished.
    pub notes: Vec<String>,
    /// Rules that cannot be used.
    pub warnings: Vec<String>,
    /// Critical findings that the user did not allow.
    pub critical: Vec<Finding>,
    /// What changed since the last briefing.
    pub events: Vec<EventKind>,
}

/// More findings are not kept in the state; `ralph scan` shows all.
const MAX_FINDINGS: usize = 100;

/// Updates the document's guidance and constraints, and returns what the agent is told. Without a scan, nothing can
/// have changed since the last one.
pub fn prepare(context: &BriefingContext, document: &mut Document, scan: Option<Scan>) -> Result<Briefing> {
    let BriefingContext { world, run, resolved, .. } = *context;
    let (mut notes, mut warnings) = (Vec::new(), Vec::new());
    let before = given_guidance::guidance(world, context.project, document)?;
    notes.extend(given_guidance::restored_note(context.project, &before));
    let max_age = resolved.guidance_max_age_ms();
    let guidance = freshen(context, document, before.clone(), max_age, &mut notes)?;
    let own = guidance.fresh_for(&scope(context.session, run), world.now, max_age);

    let earlier = document.findings();
    let mut changed = None;
    let mut findings = match scan.filter(|_| resolved.is_on("scan.enabled")) {
        Some(scan) => {
            warnings.clone_from(&scan.warnings);
            let is_complete = scan.at.is_some();
            let findings = keep(world, document, scan, earlier.clone(), &mut notes)?;
            if is_complete {
                document.set_scanned_in(&run.session.work_tree)?;
            }
            // As many as are kept, or every further one would be news at each turn.
            changed = changes::findings(&earlier, &findings[..findings.len().min(MAX_FINDINGS)]);
            findings
        }
        None if resolved.is_on("scan.enabled") => earlier,
        None => {
            if !earlier.is_empty() {
                document.set_findings(&Vec::new(), world.now)?;
                changed = changes::findings(&earlier, &[]);
            }
            Vec::new()
        }
    };
    let allowed_ids = own.allowed_findings();
    let lists = GuidanceLists::merge(&own, context.session, &findings);
    let told = if context.told { lists.told() } else { HashSet::new() };
    let mut guidance = guidance;
    let overruled = guidance.deliver(context.session, &told, &lists.overruled);
    notes.extend(guidance::words::withheld(&overruled));
    document.set_guidance(&guidance)?;
    let mut events = changes::guidance(&before, &guidance, context.session, run.iteration);
    events.extend(changed);
    findings.retain(|finding| finding.severity == Severity::Critical && !allowed_ids.contains(&finding.id));
    Ok(Briefing { lists, notes, warnings, critical: findings, events })
}

fn scope<'a>(session: &'a str, run: &StoredLoop) -> GuidanceScope<'a> {
    GuidanceScope { session, started_at: run.started_at, previous_ended_at: run.timing.previous_ended_at }
}

/// Drops the guidance that is stale for every loop that is alive in this project.
fn freshen(
    context: &BriefingContext,
    document: &mut Document,
    mut guidance: Guidance,
    max_age: i64,
    notes: &mut Vec<String>,
) -> Result<Guidance> {
    let BriefingContext { world, project, session, run, .. } = *context;
    guidance.bring_back_to(world.now);
    // Other loops are read only where there is something to drop.
    let stale = guidance.clone().purge_stale(&[scope(session, run)], world.now, max_age);
    let loops = if stale.is_empty() { Vec::new() } else { armed::load_all(world, project, document).loops };
    let others = loops.iter().filter(|(id, run)| id != session && run.is_alive());
    let scopes: Vec<GuidanceScope> =
        std::iter::once(scope(session, run)).chain(others.map(|(id, run)| scope(id, run))).collect();
    let purged = guidance.purge_stale(&scopes, world.now, max_age);
    notes.extend(guidance::words::purged(&purged));
    document.set_guidance(&guidance)?;
    Ok(guidance)
}

/// Keeps the findings of a scan. While the first scan is not finished, those of the last finished one are used, and
/// the user is told their age.
fn keep(
    world: &World,
    document: &mut Document,
    scan: Scan,
    last: Vec<Finding>,
    notes: &mut Vec<String>,
) -> Result<Vec<Finding>> {
    let mut findings = scan.findings;
    let Some(at) = scan.at else {
        let scanned_at = document.scanned_at();
        let shown = scanned_at.map_or("the findings are those so far".to_owned(), |at| {
            format!("the findings are {} old", time::span(world.now - at))
        });
        let files = scan.files;
        notes.push(format!("the scan continues at the next turn ({files} files listed so far); {shown}"));
        return Ok(if scanned_at.is_some() { last } else { findings });
    };
    findings.retain(|finding| finding.severity > Severity::Low);
    document.set_findings(&findings.iter().take(MAX_FINDINGS).cloned().collect(), at)?;
    Ok(findings)
}

/// Returns the guidance that the loop's agent has not read, and what happened by that; nothing if it has read all. It
/// counts as delivered. Nothing is purged or scanned: the end of the turn does that, and tells the user.
pub fn news(
    context: &BriefingContext,
    document: &mut Document,
) -> Result<Option<(GuidanceLists, Vec<EventKind>)>> {
    let BriefingContext { world, project, session, run, .. } = *context;
    let lists = stored(context, document)?.news();
    if lists.is_empty() {
        return Ok(None);
    }
    let before = given_guidance::guidance(world, project, document)?;
    let mut guidance = before.clone();
    guidance.note_told(session, &lists.told());
    document.set_guidance(&guidance)?;
    let events = changes::guidance(&before, &guidance, session, run.iteration);
    Ok(Some((lists, events)))
}

/// Returns the lists for a loop as the state has them.
pub fn stored(context: &BriefingContext, document: &Document) -> Result<GuidanceLists> {
    let BriefingContext { world, project, session, run, resolved, .. } = *context;
    let max_age = resolved.guidance_max_age_ms();
    let guidance = given_guidance::guidance(world, project, document)?;
    let own = guidance.fresh_for(&scope(session, run), world.now, max_age);
    Ok(GuidanceLists::merge(&own, session, &document.findings()))
}
