//! What a turn took: time, tokens and cost.

use super::figures::{FigureSource, Figures};
use super::turn::{TranscriptGain, Turn};
use crate::core::record::{ArmedLoop, Usage};
use crate::core::settings::Settings;
use crate::core::time::runtime::Clock;
use crate::core::time::sleep::Sleep;
use crate::core::time::{self, Stamp};

/// Adds the turn's time, tokens and cost.
pub fn add_turn(run: &mut ArmedLoop, turn: &Turn, settings: &Settings, now: Stamp) {
    let mark = Stamp::from_seconds(run.last_hook_timestamp);
    let slept = Sleep::between((mark, run.timing.slept_mark_ms), (now, turn.slept_ms));
    let slept = Sleep { earlier_ms: run.timing.slept_ms, ..slept };
    let mut clock = Clock::restore(run.timing.clock.take(), run.runtime_ms(), slept.awake_before(mark));
    let before = clock.clone();
    let evidence = turn.gained.as_ref().map_or(&[][..], |gained| &gained.evidence);
    let (evidence, awake_now) = slept.leave_out(evidence, mark, now);
    let threshold_ms = settings.pause_threshold_ms;
    let runtime = clock.observe(&evidence, awake_now, turn.hook, threshold_ms).max(run.runtime_ms());
    (run.timing.slept_ms, run.timing.slept_mark_ms) = (slept.total_ms(), turn.slept_ms);
    let left_out_ms = match &turn.gained {
        Some(_) => clock.left_out_since(&before).saturating_add(slept.ms),
        None if mark > Stamp(0) => (now - mark) - (runtime - run.runtime_ms()),
        None => 0,
    };
    // Less than nothing was left out where an answer arrived that proves work.
    if left_out_ms < 0 || left_out_ms >= settings.pause_threshold_ms {
        run.timing.paused_ms = run.timing.paused_ms.saturating_add(left_out_ms).max(0);
    }
    run.accumulated_runtime_seconds = Stamp(runtime).seconds();
    run.last_hook_timestamp = now.seconds();
    run.timing.clock = Some(clock);
    run.session.closed_at = None;
    run.session.turn_end_id = turn.end_id.or(run.session.turn_end_id);
    run.session.unscanned |= !turn.wrote_nothing();
    if let Some(TranscriptGain { usage, reading, interrupted_at, .. }) = &turn.gained {
        run.note_interruption(*interrupted_at);
        count_usage(run, usage, turn.figures.as_ref());
        run.session.transcript = reading.clone();
    } else {
        count_usage(run, &Usage::default(), turn.figures.as_ref());
    }
    if let Some(figures) = &turn.figures {
        run.usage.context_percent = figures.context_percent.or(run.usage.context_percent);
        run.quota.note(&figures.windows, figures.at, figures.source);
    }
}

/// Adds what the turn used. The client's own running cost counts, where it tells that; the transcript has it only after
/// the session has ended.
fn count_usage(run: &mut ArmedLoop, told: &Usage, figures: Option<&Figures>) {
    let mut usage = Usage { cost_source: Some(FigureSource::Transcript), ..told.clone() };
    if let Some(figures) = figures
        && let Some(spent) = figures.spent_usd
    {
        // In a session that was looked at only after the loop began, what it had cost until then is not the loop's,
        // unless the session began with it.
        let began_with_loop = run.session.transcript.session_cost_usd == Some(0.0);
        let first = if began_with_loop { 0.0 } else { figures.first_usd.unwrap_or(spent) };
        let counted = run.session.counted_usd.unwrap_or(first);
        usage.cost_usd = Some((spent - counted).max(0.0));
        usage.cost_source = Some(figures.source);
    } else if run.session.counted_usd.is_some() {
        usage.cost_usd = None;
    }
    if let Some(spent) = figures.and_then(|figures| figures.spent_usd) {
        // A sum that is smaller has begun anew, because its file was lost.
        run.session.counted_usd = Some(spent);
    }
    run.usage.add(&usage);
}

/// Returns why a cost limit cannot act although the client told a cost before. The figure of a turn's last reply may come
/// after its end, so only the second turn without one says so, once until a figure comes again.
pub fn cost_unknown(
    run: &mut ArmedLoop,
    turn: &Turn,
    is_told: bool,
    settings: &Settings,
    now: Stamp,
) -> Option<String> {
    let is_limited = settings.max_cost_usd.or(settings.daily_usd).is_some();
    let has_worked = turn.gained.as_ref().is_none_or(|gained| gained.answered_at.is_some());
    if is_told || !is_limited || run.session.counted_usd.is_none() {
        run.told.turns_without_cost = 0;
        return None;
    }
    run.told.turns_without_cost = run.told.turns_without_cost.saturating_add(u64::from(has_worked));
    if !has_worked || run.told.turns_without_cost != 2 {
        return None;
    }
    let last = turn.figures.as_ref().map_or_else(
        || "the last cost figure is unknown".to_owned(),
        |figures| {
            let (age, source) = (time::span((now - figures.at).max(0)), figures.source.words());
            format!("the last cost figure is {age} old ({source})")
        },
    );
    Some(format!("cost limit inactive: {last}"))
}
