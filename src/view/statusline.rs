//! One line about a loop, for Claude Code's status line.

use super::activity::Activity;
use crate::core::decide::{breaker, limits};
use crate::core::guidance::Guidance;
use crate::core::message;
use crate::core::record::{ArmedLoop, Engine, LoopState, StoredLoop};
use crate::core::settings::Settings;
use crate::core::text::clean;
use crate::core::time::Stamp;

const WIDTH: usize = 160;

/// Returns the line of a loop, for example
/// `working · Ralph 47/50 · Runtime: 8.2h/9.0h | Wall: 15.0h · circuit ok · 1 forbidden · ENDING SOON`.
/// It begins with what the loop is doing, so that a narrow screen does not cut that.
pub fn line(
    run: &ArmedLoop,
    activity: &Activity,
    guidance: &Guidance,
    settings: &Settings,
    now: Stamp,
) -> String {
    let mut position = message::position(run, settings, now);
    if run.engine == Engine::Runner {
        position = position.replacen("Ralph", "ralph run", 1);
    }
    let mut parts = vec![activity.line(now), position, breaker::brief(run, settings)];
    parts.extend(run.quota.brief(now));
    let counts = [("encouraged", &guidance.encouraged), ("forbidden", &guidance.forbidden)];
    let counts = counts.into_iter().filter(|(_, list)| !list.is_empty());
    let counts: Vec<String> = counts.map(|(what, list)| format!("{} {what}", list.len())).collect();
    if !counts.is_empty() {
        parts.push(counts.join(", "));
    }
    if run.state == LoopState::Running && limits::ending_soon(run, settings) {
        parts.push("ENDING SOON".into());
    }
    clean::excerpt(&parts.join(" · "), WIDTH)
}

/// Returns the line of a loop that ended: `ended: complete · 12 iterations`.
pub fn ended(run: &StoredLoop, now: Stamp) -> String {
    format!("{} · {}", Activity::Ended(run.outcome).line(now), message::iterations(run.iteration))
}
