//! The pilot of the user's plan: when a loop brings its work to a safe point, and until when it waits.

use super::figures::{FigureSource, Window, percent};
use crate::core::record::{FinishUpRequest, Quota, QuotaWait};
use crate::core::settings::QuotaSettings;
use crate::core::time::{self, Stamp};

/// How long to wait for a reset whose time is unknown.
pub const UNKNOWN_RESET_MS: i64 = 15 * 60_000;
/// The service's clock may differ from ours.
pub const CLOCK_MARGIN_MS: i64 = 30_000;

/// What the level of the plan means for a loop.
#[derive(Clone, Debug, PartialEq)]
pub enum QuotaVerdict {
    Fine,
    /// The agent is told to bring the work to a safe point.
    FinishUp(String),
    /// The loop waits until then; `Quota::held` says why.
    Wait(Stamp),
    /// The loop ends, for this reason.
    End(String),
}

/// Judges the level at the end of a turn. `windows` are those that the client told in this turn; `None` if it told
/// nothing. A window that is over says nothing about the present one.
pub fn judge(
    quota: &mut Quota,
    windows: Option<&[Window]>,
    settings: &QuotaSettings,
    now: Stamp,
) -> QuotaVerdict {
    quota.held = None;
    let current: Vec<&Window> = windows.into_iter().flatten().filter(|window| !window.is_over(now)).collect();
    let reserve = settings.reserve_percent.map(|reserve| 100.0 - reserve);
    let in_reserve = |window: &&&Window| reserve.is_some_and(|most| window.percent > most);
    let is_high = |window: &&&Window| settings.land_at_percent.is_some_and(|level| window.percent >= level);
    let high: Vec<&Window> = current.iter().filter(is_high).copied().collect();
    let reserved: Vec<&Window> = current.iter().filter(in_reserve).copied().collect();
    if !reserved.is_empty() {
        let most = percent(settings.reserve_percent.unwrap_or_default());
        let reason = format!("{} used; {most} is reserved", words(&reserved, now));
        return hold(quota, last_reset(&reserved), reason, settings, now);
    }
    let Some(landing) = quota.landing.clone() else {
        if high.is_empty() {
            return QuotaVerdict::Fine;
        }
        let (resets_at, words) = (last_reset(&high), format!("{} used", words(&high, now)));
        quota.landing = Some(FinishUpRequest { resets_at, words: words.clone() });
        return QuotaVerdict::FinishUp(words);
    };
    let is_known = !current.is_empty();
    // The agent has landed: the level counts if it is known, else what it was when the agent was told.
    let resets_at = if high.is_empty() { landing.resets_at } else { last_reset(&high).or(landing.resets_at) };
    let is_over = match resets_at {
        Some(at) => at <= now,
        None => !is_known,
    };
    if settings.land_at_percent.is_none() || is_over || (is_known && high.is_empty()) {
        quota.landing = None;
        return QuotaVerdict::Fine;
    }
    let reason = if high.is_empty() { landing.words } else { format!("{} used", words(&high, now)) };
    hold(quota, resets_at, reason, settings, now)
}

/// Judges before a loop's first turn what was last known: a window whose reset lies ahead is no emptier. There is no work
/// yet to bring to a safe point.
pub fn judge_known(quota: &mut Quota, settings: &QuotaSettings, now: Stamp) -> QuotaVerdict {
    let mut known = quota.windows.clone();
    known.retain(|window| window.resets_at.is_some());
    match judge(quota, Some(&known), settings, now) {
        QuotaVerdict::FinishUp(_) => judge(quota, Some(&known), settings, now),
        verdict => verdict,
    }
}

/// Waits for the reset, or ends if the loop does not wait.
fn hold(
    quota: &mut Quota,
    resets_at: Option<Stamp>,
    reason: String,
    settings: &QuotaSettings,
    now: Stamp,
) -> QuotaVerdict {
    if settings.stops {
        quota.landing = None;
        let when = resets_at.map_or("reset time unknown".into(), |at| format!("resets at {}", at.minute()));
        return QuotaVerdict::End(format!("{reason}; {when}"));
    }
    let until = resets_at.unwrap_or(now.plus_ms(UNKNOWN_RESET_MS));
    quota.held = Some(QuotaWait { until, words: reason });
    QuotaVerdict::Wait(until)
}

/// Returns until when a loop that waits for a reset still waits: a turn in between, which the user or a wake-up brought,
/// is no iteration. It ends early if the client tells of a lower level.
pub fn still_held(
    quota: &Quota,
    windows: Option<&[Window]>,
    settings: &QuotaSettings,
    now: Stamp,
) -> Option<Stamp> {
    let held = quota.held.as_ref().filter(|held| held.until > now && !settings.stops)?;
    let mut again = quota.clone();
    match judge(&mut again, windows, settings, now) {
        QuotaVerdict::Fine
            if windows.is_some_and(|windows| windows.iter().any(|window| !window.is_over(now))) =>
        {
            None
        }
        QuotaVerdict::Fine if quota.landing.is_some() => None,
        _ if settings.land_at_percent.is_none() && settings.reserve_percent.is_none() => None,
        _ => Some(held.until),
    }
}

fn last_reset(windows: &[&Window]) -> Option<Stamp> {
    windows.iter().filter_map(|window| window.resets_at).max()
}

fn words(windows: &[&Window], now: Stamp) -> String {
    let one = |window: &&Window| {
        let resets = window.resets_at.map(|at| format!(" (resets in {})", time::span(at - now)));
        format!("{} of the {} limit{}", percent(window.percent), window.title(), resets.unwrap_or_default())
    };
    windows.iter().map(one).collect::<Vec<_>>().join(" and ")
}

/// Returns the text that asks the agent to finish up before the usage limit.
pub fn finish_up_advice(words: &str) -> String {
    format!(
        "{words}. After this turn the loop waits for the reset. Bring the work to a safe point now: start nothing new, \
         finish or undo what is half done, commit what is verified, and note the current state and the next \
         step. Then end your turn."
    )
}

impl Quota {
    /// Takes over what the client told.
    pub fn note(&mut self, windows: &[Window], at: Stamp, source: FigureSource) {
        if !windows.is_empty() {
            self.windows = windows.iter().map(|window| window.clone().until_its_reset(at)).collect();
            (self.at, self.source) = (Some(at), Some(source));
        }
    }

    /// Returns `5-hour 92% (resets in 12m) · weekly 40% · status line, 3s ago`; nothing if the client told none.
    pub fn line(&self, now: Stamp) -> Option<String> {
        let (at, source) = (self.at?, self.source?);
        let mut parts: Vec<String> = self.windows.iter().map(|window| window.line(now)).collect();
        parts.push(format!("{}, {} ago", source.words(), time::span(now - at)));
        (!self.windows.is_empty()).then(|| parts.join(" · "))
    }

    /// Returns the highest level that is still known: `5-hour 92%`.
    pub fn brief(&self, now: Stamp) -> Option<String> {
        let current = self.windows.iter().filter(|window| !window.is_over(now));
        current.max_by(|a, b| a.percent.total_cmp(&b.percent)).map(Window::level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Stamp = Stamp(1_794_816_000_000);
    const DAY: i64 = 86_400_000;

    fn window(name: &str, percent: f64, resets_in_ms: Option<i64>) -> Window {
        Window::new(name, Some(percent), resets_in_ms.map(|ms| NOW.plus_ms(ms))).unwrap()
    }

    fn five(percent: f64, resets_in_ms: i64) -> Vec<Window> {
        vec![window("five_hour", percent, Some(resets_in_ms))]
    }

    fn landing_at(percent: f64) -> QuotaSettings {
        QuotaSettings { land_at_percent: Some(percent), ..QuotaSettings::default() }
    }

    #[test]
    fn the_agent_lands_once_and_then_the_loop_waits_for_the_reset() {
        let (mut quota, settings) = (Quota::default(), landing_at(90.0));
        assert_eq!(judge(&mut quota, Some(&five(50.0, 60_000)), &settings, NOW), QuotaVerdict::Fine);
        let words = "92% of the 5-hour limit (resets in 1m) used".to_owned();
        let high = five(92.0, 60_000);
        assert_eq!(judge(&mut quota, Some(&high), &settings, NOW), QuotaVerdict::FinishUp(words.clone()));
        let until = NOW.plus_ms(60_000);
        assert_eq!(judge(&mut quota, Some(&high), &settings, NOW), QuotaVerdict::Wait(until));
        assert_eq!(quota.held.as_ref().unwrap().words, words);
        assert_eq!(still_held(&quota, Some(&high), &settings, NOW), Some(until));
        assert_eq!(still_held(&quota, None, &settings, NOW), Some(until), "without a figure");
        assert_eq!(still_held(&quota, Some(&five(3.0, DAY)), &settings, NOW), None, "the level fell");
        assert_eq!(still_held(&quota, Some(&high), &settings, until), None, "the reset has passed");
        assert_eq!(still_held(&quota, Some(&high), &QuotaSettings::default(), NOW), None, "switched off");
        assert_eq!(
            judge(&mut quota, Some(&high), &settings, until),
            QuotaVerdict::Fine,
            "the window is over"
        );
        assert_eq!(quota.landing, None);
        assert!(judge(&mut quota, Some(&five(95.0, DAY)), &settings, until).is_land(), "the next window");
    }

    impl QuotaVerdict {
        fn is_land(&self) -> bool {
            matches!(self, QuotaVerdict::FinishUp(_))
        }
    }

    #[test]
    fn odd_levels_and_resets_have_a_defined_answer() {
        let settings = landing_at(90.0);
        let landed = || {
            let mut quota = Quota::default();
            assert!(judge(&mut quota, Some(&five(92.0, 60_000)), &settings, NOW).is_land());
            quota
        };
        let judged = |windows: Option<Vec<Window>>| judge(&mut landed(), windows.as_deref(), &settings, NOW);
        let wait = |ms: i64| match judged(Some(vec![window("five_hour", 93.0, Some(ms))])) {
            QuotaVerdict::Wait(until) => until - NOW,
            other => panic!("{other:?}"),
        };
        assert_eq!(judged(Some(five(50.0, 60_000))), QuotaVerdict::Fine, "a level that goes backwards");
        let told_before = QuotaVerdict::Wait(NOW.plus_ms(60_000));
        assert_eq!(judged(Some(five(99.0, -1))), told_before, "a reset in the past says nothing");
        assert_eq!(wait(3 * DAY), 3 * DAY, "a reset in three days");
        assert_eq!(judged(None), told_before, "no figure");
        let mut unknown = Quota::default();
        let windows = [window("five_hour", 95.0, None)];
        assert!(judge(&mut unknown, Some(&windows), &settings, NOW).is_land());
        let waits = judge(&mut unknown, Some(&windows), &settings, NOW);
        assert_eq!(waits, QuotaVerdict::Wait(NOW.plus_ms(UNKNOWN_RESET_MS)));
        assert_eq!(
            judge(&mut unknown, None, &settings, NOW),
            QuotaVerdict::Fine,
            "nothing is known any more"
        );
        assert_eq!(judge(&mut Quota::default(), Some(&five(99.0, -1)), &settings, NOW), QuotaVerdict::Fine);
    }

    #[test]
    fn the_reserve_is_not_touched_and_the_last_reset_is_waited_for() {
        let settings = QuotaSettings { reserve_percent: Some(30.0), ..QuotaSettings::default() };
        let judged = |percent, settings: &QuotaSettings| {
            let windows =
                [window("five_hour", percent, Some(60_000)), window("seven_day", percent, Some(DAY))];
            judge(&mut Quota::default(), Some(&windows), settings, NOW)
        };
        assert_eq!(judged(70.0, &settings), QuotaVerdict::Fine, "exactly the reserve is left");
        let words = "71% of the 5-hour limit (resets in 1m) and 71% of the weekly limit (resets in 24h) used; 30% is reserved";
        assert_eq!(judged(71.0, &settings), QuotaVerdict::Wait(NOW.plus_ms(DAY)));
        let stops = QuotaSettings { stops: true, ..settings };
        let QuotaVerdict::End(reason) = judged(71.0, &stops) else { panic!() };
        assert!(
            reason.starts_with(words) && reason.ends_with("; resets at 2026-11-17 08:00 UTC"),
            "{reason}"
        );
    }

    #[test]
    fn what_is_known_before_a_turn_waits_only_for_a_reset_ahead() {
        let reserve = QuotaSettings { reserve_percent: Some(30.0), ..QuotaSettings::default() };
        let until = QuotaVerdict::Wait(NOW.plus_ms(DAY));
        for (name, resets_in_ms, settings, expected) in [
            ("in the reserve", Some(DAY), reserve, until.clone()),
            ("above the level", Some(DAY), landing_at(90.0), until),
            ("a window that is over", Some(-1), reserve, QuotaVerdict::Fine),
            ("an unknown reset", None, reserve, QuotaVerdict::Fine),
            ("without a limit", Some(DAY), QuotaSettings::default(), QuotaVerdict::Fine),
        ] {
            let windows = vec![window("five_hour", 95.0, resets_in_ms)];
            let mut quota = Quota { windows, ..Quota::default() };
            assert_eq!(judge_known(&mut quota, &settings, NOW), expected, "{name}");
        }
    }

    #[test]
    fn a_loop_that_does_not_wait_lands_and_ends() {
        let settings = QuotaSettings { stops: true, ..landing_at(90.0) };
        let mut quota = Quota::default();
        let high = five(92.0, 60_000);
        assert!(judge(&mut quota, Some(&high), &settings, NOW).is_land());
        assert!(matches!(judge(&mut quota, Some(&high), &settings, NOW), QuotaVerdict::End(_)));
        assert_eq!(quota, Quota::default());
    }
}
