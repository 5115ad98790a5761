//! A loop in one line, for Claude Code's status line.

use crate::core::circuit::CircuitState;
use crate::core::guidance::Guidance;
use crate::core::record::{Loop, LoopState};
use crate::core::settings::Settings;
use crate::core::time::Stamp;
use crate::core::{clean, limits, message};

const WIDTH: usize = 160;

/// `Ralph 12/50 · Runtime: 3.2h/9.0h | Wall: 15.0h · circuit closed · 2 encouraged, 1 forbidden · ENDING SOON`.
pub fn line(lap: &Loop, guidance: &Guidance, settings: &Settings, now: Stamp) -> String {
    let mut parts = vec![message::position(lap, settings, now), circuit(lap, settings)];
    let counts = [("encouraged", &guidance.encouraged), ("forbidden", &guidance.forbidden)];
    let counts = counts.into_iter().filter(|(_, list)| !list.is_empty());
    let counts: Vec<String> = counts.map(|(what, list)| format!("{} {what}", list.len())).collect();
    if !counts.is_empty() {
        parts.push(counts.join(", "));
    }
    match lap.state {
        LoopState::Paused => parts.push("PAUSED".into()),
        LoopState::Running if limits::ending_soon(lap, settings) => parts.push("ENDING SOON".into()),
        _ => {}
    }
    clean::excerpt(&parts.join(" · "), WIDTH)
}

/// How near the breaker is to a trip, by the condition that is nearest.
fn circuit(lap: &Loop, settings: &Settings) -> String {
    if lap.circuit.state == CircuitState::Tripped {
        return "circuit TRIPPED".into();
    }
    let counting = lap.circuit.counters.counting(&settings.circuit);
    match counting.into_iter().min_by_key(|(_, count, most)| most.saturating_sub(*count)) {
        Some((what, count, most)) => format!("{what} {count}/{most}"),
        None => "circuit closed".into(),
    }
}
