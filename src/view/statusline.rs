//! One line about a loop, for Claude Code's status line.

use crate::core::decide::limits;
use crate::core::guidance::Guidance;
use crate::core::message;
use crate::core::record::{ArmedLoop, LoopState};
use crate::core::settings::Settings;
use crate::core::text::clean;
use crate::core::time::Stamp;

const WIDTH: usize = 160;

/// `Ralph 12/50 · Runtime: 3.2h/9.0h | Wall: 15.0h · circuit ok · 2 encouraged, 1 forbidden · ENDING SOON`.
pub fn line(run: &ArmedLoop, guidance: &Guidance, settings: &Settings, now: Stamp) -> String {
    let mut parts = vec![message::position(run, settings, now), circuit(run, settings)];
    let counts = [("encouraged", &guidance.encouraged), ("forbidden", &guidance.forbidden)];
    let counts = counts.into_iter().filter(|(_, list)| !list.is_empty());
    let counts: Vec<String> = counts.map(|(what, list)| format!("{} {what}", list.len())).collect();
    if !counts.is_empty() {
        parts.push(counts.join(", "));
    }
    match run.state {
        LoopState::Paused => parts.push("PAUSED".into()),
        LoopState::Running if limits::ending_soon(run, settings) => parts.push("ENDING SOON".into()),
        _ => {}
    }
    clean::excerpt(&parts.join(" · "), WIDTH)
}

/// Returns the breaker condition that is nearest to a trip.
fn circuit(run: &ArmedLoop, settings: &Settings) -> String {
    if run.circuit.is_tripped() {
        return "circuit TRIPPED".into();
    }
    let counting = run.circuit.counters.counting(&settings.circuit);
    match counting.into_iter().min_by_key(|(_, count, most)| most.saturating_sub(*count)) {
        Some((what, count, most)) => format!("{what} {count}/{most}"),
        None => "circuit ok".into(),
    }
}
