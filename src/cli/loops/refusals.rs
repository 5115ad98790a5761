//! What the start of a loop of either engine refuses: a limit that is reached already, a critical constraint.

use crate::cli::{Failure, World};
use crate::core::decide::figures::Figures;
use crate::core::decide::limits;
use crate::core::decide::quota::{self, QuotaVerdict};
use crate::core::guidance::finding::Finding;
use crate::core::guidance::merge;
use crate::core::record::{ArmedLoop, Quota};
use crate::core::settings::Settings;
use crate::core::time::Stamp;
use crate::store::user::ledger;

/// Refuses a loop that would end at its next turn.
pub fn at_limit(run: &ArmedLoop, settings: &Settings) -> Result<(), Failure> {
    let Some((outcome, reason)) = limits::reached(run, settings) else { return Ok(()) };
    let raised = limits::raise(outcome, &reason).unwrap_or_default();
    Err(Failure::refused(format!("limit already reached: {reason}")).hint(format!("raise it with {raised}")))
}

/// Refuses if all loops of this user have spent what a day allows. Returns what the user should know.
pub fn spent_day(world: &World, settings: &Settings) -> Result<Option<String>, Failure> {
    let (spent, told) = if settings.limits_a_day() { ledger::today(world)? } else { Default::default() };
    match limits::reached_today(spent, settings) {
        None => Ok(told),
        Some((_, reason)) => Err(Failure::refused(format!("limit already reached: {reason}"))
            .hint("start after 00:00 UTC, or raise budget.daily_usd or budget.daily_tokens")),
    }
}

/// Returns what the user should know of the plan's level as the client last told it: a session starts all the same, and
/// its first Stop waits.
pub fn known_quota(figures: Option<Figures>, settings: &Settings, now: Stamp) -> Option<String> {
    let mut quota = Quota { windows: figures?.windows, ..Quota::default() };
    match quota::judge_known(&mut quota, &settings.quota, now) {
        QuotaVerdict::Wait(until) => {
            let words = quota.held?.words;
            Some(format!(
                "{words}; the loop waits for the reset after its first turn, until {}",
                until.minute()
            ))
        }
        QuotaVerdict::End(reason) => Some(format!("{reason}; the loop ends after its first turn")),
        QuotaVerdict::Fine | QuotaVerdict::FinishUp(_) => None,
    }
}

/// Refuses while there is a critical constraint.
pub fn critical(critical: &[Finding]) -> Result<(), Failure> {
    if critical.is_empty() {
        return Ok(());
    }
    let line = |finding: &Finding| format!("\n  {} ({})", merge::sentence(finding), finding.id);
    let lines: String = critical.iter().take(5).map(line).collect();
    Err(Failure::refused(format!("critical constraint found:{lines}"))
        .hint("fix it, allow it with `ralph-guidance allow ID`, or start with --skip-constraint-scan"))
}
