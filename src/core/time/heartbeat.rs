//! Whether the agent is still alive: output resets the silence, and a long silence is first a warning, then a stall.
//!
//! Times are milliseconds of a monotonic clock. The caller checks about once a second: a much longer gap between two
//! checks means that the machine slept or Ralph was stopped (Ctrl-Z), and does not count as silence.

/// A busy machine may check this late; a longer gap is a pause.
const MAX_CHECK_GAP_MS: i64 = 5000;

/// Durations in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatSettings {
    /// 0 switches the heartbeat off.
    pub interval: i64,
    /// How many missed intervals are a stall; 0 switches the heartbeat off.
    pub threshold: u32,
    /// No warning or stall before this much time has passed.
    pub grace: i64,
    /// The silence allowed while a tool runs, if longer than the usual; 0 is unlimited.
    pub tool_limit: i64,
}

impl Default for HeartbeatSettings {
    fn default() -> Self {
        HeartbeatSettings { interval: 60_000, threshold: 5, grace: 120_000, tool_limit: 1_800_000 }
    }
}

impl HeartbeatSettings {
    /// Returns the silence that is a stall while a tool runs, if any is.
    pub fn tool_limit(&self) -> Option<i64> {
        self.limit(true)
    }

    /// Returns the silence that is a stall, if any is.
    fn limit(&self, in_tool: bool) -> Option<i64> {
        let usual = self.interval.saturating_mul(i64::from(self.threshold));
        match in_tool {
            _ if self.interval <= 0 || self.threshold == 0 => None,
            false => Some(usual),
            true => (self.tool_limit > 0).then(|| self.tool_limit.max(usual)),
        }
    }
}

/// A silence that was long enough for a warning, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    pub seconds: i64,
    /// The silence that is a stall.
    pub limit_seconds: i64,
    /// A tool was running.
    pub in_tool: bool,
    /// The agent was stopped for it; otherwise output ended it.
    pub stalled: bool,
}

/// What to report about a silence, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SilenceReport {
    /// One interval before a stall, or half the time with a threshold of one.
    Warning {
        elapsed: i64,
        missed: i64,
        remaining: i64,
    },
    Stall {
        elapsed: i64,
        missed: i64,
        threshold_seconds: i64,
    },
}

impl SilenceReport {
    /// Returns the message for people.
    pub fn message(&self, iteration: u64) -> String {
        match self {
            SilenceReport::Warning { elapsed, missed, remaining } => format!(
                "Warning: No agent output for {elapsed}s ({missed} heartbeat intervals). Stall detection in \
                 {remaining}s unless activity resumes. (iteration {iteration})"
            ),
            SilenceReport::Stall { elapsed, threshold_seconds, .. } => format!(
                "Agent stall detected: no output for {elapsed}s (exceeded {threshold_seconds}s threshold). \
                 Terminating agent. (iteration {iteration})"
            ),
        }
    }

    /// Returns its name for programs, the silence so far, and the missed intervals.
    pub fn parts(&self) -> (&'static str, i64, i64) {
        match *self {
            SilenceReport::Warning { elapsed, missed, .. } => ("heartbeat_warning", elapsed, missed),
            SilenceReport::Stall { elapsed, missed, .. } => ("stall_detected", elapsed, missed),
        }
    }

    /// Returns the message for programs: one line of `key=value`.
    pub fn record(&self, iteration: u64, run_id: &str) -> String {
        let (event, elapsed, missed) = self.parts();
        format!(
            "event={event} elapsed_seconds={elapsed} missed_count={missed} iteration={iteration} run_id={run_id}"
        )
    }
}

#[derive(Clone, Debug)]
pub struct Heartbeat {
    settings: HeartbeatSettings,
    started: i64,
    last_output: i64,
    checked: i64,
    tools: usize,
    /// How long this silence was at its warning.
    warned: Option<i64>,
    stalled: bool,
}

impl Heartbeat {
    /// Starts with the agent, at `now`.
    pub fn new(settings: HeartbeatSettings, now: i64) -> Self {
        Heartbeat {
            settings,
            started: now,
            last_output: now,
            checked: now,
            tools: 0,
            warned: None,
            stalled: false,
        }
    }

    /// Records output, and returns the silence it ended if there was a warning about it. A pulse may lie ahead: if the
    /// agent announces a wait, silence begins after it.
    pub fn record_output(&mut self, now: i64) -> Option<Silence> {
        let ended = if self.warned.is_some() && !self.stalled { self.silence(now) } else { None };
        self.last_output = self.last_output.max(now);
        (self.warned, self.stalled) = (None, false);
        ended
    }

    /// Returns the silence as it is now.
    pub fn silence(&self, now: i64) -> Option<Silence> {
        let in_tool = self.tools > 0;
        let limit_seconds = self.settings.limit(in_tool)? / 1000;
        let seconds = now.saturating_sub(self.last_output) / 1000;
        Some(Silence { seconds, limit_seconds, in_tool, stalled: self.stalled })
    }

    /// Sets how many tools are running.
    pub fn set_tools(&mut self, running: usize) {
        self.tools = running;
    }

    /// Removes a span from silence and grace.
    fn pause(&mut self, from: i64, to: i64) {
        let shifted = |at: i64| match at <= from {
            true => at.saturating_add(to.saturating_sub(from)),
            false => at.max(to),
        };
        self.started = shifted(self.started);
        self.last_output = shifted(self.last_output);
    }

    /// Returns what to report now: a warning and a stall at most once for each silence.
    pub fn check(&mut self, now: i64) -> Option<SilenceReport> {
        if now.saturating_sub(self.checked) > MAX_CHECK_GAP_MS {
            self.pause(self.checked, now);
        }
        self.checked = self.checked.max(now);
        let limit = self.settings.limit(self.tools > 0)?;
        if now.saturating_sub(self.started) < self.settings.grace {
            return None;
        }
        let silence = now.saturating_sub(self.last_output);
        let (elapsed, missed) = (silence / 1000, silence / self.settings.interval);
        // With a threshold of one there is no missed interval to warn at.
        let notice = if limit > self.settings.interval { self.settings.interval } else { limit / 2 };
        let Some(warned) = self.warned else {
            if silence < limit - notice {
                return None;
            }
            self.warned = Some(silence);
            let remaining = if silence < limit { limit / 1000 - elapsed } else { notice / 1000 };
            return Some(SilenceReport::Warning { elapsed, missed, remaining });
        };
        // A warning that came late, because of the grace, gets its notice too.
        let stall_at = if warned < limit { limit } else { warned.saturating_add(notice) };
        if silence < stall_at || self.stalled {
            return None;
        }
        self.stalled = true;
        Some(SilenceReport::Stall { elapsed, missed, threshold_seconds: limit / 1000 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks every second up to and including `to`, and returns what was reported when.
    fn reports(heart: &mut Heartbeat, from: i64, to: i64) -> Vec<(i64, SilenceReport)> {
        let seconds = from..=to;
        seconds.filter_map(|second| Some((second, heart.check(second * 1000)?))).collect()
    }

    const WARNING: SilenceReport = SilenceReport::Warning { elapsed: 240, missed: 4, remaining: 60 };
    const STALL: SilenceReport = SilenceReport::Stall { elapsed: 300, missed: 5, threshold_seconds: 300 };

    #[test]
    fn a_silence_is_one_warning_and_then_one_stall() {
        let mut heart = Heartbeat::new(HeartbeatSettings::default(), 0);
        assert_eq!(reports(&mut heart, 0, 1000), [(240, WARNING), (300, STALL)]);
    }

    #[test]
    fn the_messages_are_exact() {
        assert_eq!(
            WARNING.message(3),
            "Warning: No agent output for 240s (4 heartbeat intervals). Stall detection in 60s unless activity \
             resumes. (iteration 3)"
        );
        assert_eq!(
            STALL.message(3),
            "Agent stall detected: no output for 300s (exceeded 300s threshold). Terminating agent. (iteration 3)"
        );
        assert_eq!(
            WARNING.record(3, "r1"),
            "event=heartbeat_warning elapsed_seconds=240 missed_count=4 iteration=3 run_id=r1"
        );
        assert_eq!(
            STALL.record(3, "r1"),
            "event=stall_detected elapsed_seconds=300 missed_count=5 iteration=3 run_id=r1"
        );
    }

    #[test]
    fn each_silence_has_its_own_warning() {
        let mut heart = Heartbeat::new(HeartbeatSettings::default(), 0);
        assert_eq!(reports(&mut heart, 0, 299), [(240, WARNING)]);
        heart.record_output(299_000);
        assert_eq!(reports(&mut heart, 299, 700), [(299 + 240, WARNING), (299 + 300, STALL)]);
    }

    #[test]
    fn a_running_tool_has_a_longer_limit() {
        let mut heart = Heartbeat::new(HeartbeatSettings::default(), 0);
        heart.set_tools(1);
        let warning = SilenceReport::Warning { elapsed: 1740, missed: 29, remaining: 60 };
        let stall = SilenceReport::Stall { elapsed: 1800, missed: 30, threshold_seconds: 1800 };
        assert_eq!(reports(&mut heart, 0, 4000), [(1740, warning), (1800, stall)]);
        heart.set_tools(0);
        heart.record_output(4_000_000);
        assert_eq!(reports(&mut heart, 4001, 4400), [(4240, WARNING), (4300, STALL)]);
    }

    #[test]
    fn limits_of_tools() {
        for (name, tool_limit, stalls_at) in
            [("never shorter than the usual", 10_000, Some(300)), ("none", 0, None)]
        {
            let mut heart =
                Heartbeat::new(HeartbeatSettings { tool_limit, ..HeartbeatSettings::default() }, 0);
            heart.set_tools(1);
            let said = reports(&mut heart, 0, 10_000);
            let stall = said.iter().find(|(_, beat)| matches!(beat, SilenceReport::Stall { .. }));
            assert_eq!(stall.map(|(at, _)| *at), stalls_at, "{name}");
        }
    }

    #[test]
    fn edges_of_the_settings() {
        let usual = HeartbeatSettings::default();
        let cases: [(&str, HeartbeatSettings, &[i64]); 7] = [
            ("a grace longer than the limit", HeartbeatSettings { grace: 400_000, ..usual }, &[400, 460]),
            ("a grace as long as the limit", HeartbeatSettings { grace: 300_000, ..usual }, &[300, 360]),
            (
                "a grace that hides only the warning's beginning",
                HeartbeatSettings { grace: 250_000, ..usual },
                &[250, 300],
            ),
            ("no grace", HeartbeatSettings { grace: 0, ..usual }, &[240, 300]),
            ("a threshold of one", HeartbeatSettings { threshold: 1, grace: 0, ..usual }, &[30, 60]),
            ("off", HeartbeatSettings { threshold: 0, ..usual }, &[]),
            ("off as well", HeartbeatSettings { interval: 0, ..usual }, &[]),
        ];
        for (name, settings, expected) in cases {
            let said = reports(&mut Heartbeat::new(settings, 0), 0, 1000);
            assert_eq!(said.iter().map(|(at, _)| *at).collect::<Vec<_>>(), expected, "{name}");
            let kinds: Vec<bool> =
                said.iter().map(|(_, beat)| matches!(beat, SilenceReport::Stall { .. })).collect();
            assert_eq!(kinds, &[false, true][..expected.len()], "{name}: a warning, then the stall");
        }
        let mut heart = Heartbeat::new(HeartbeatSettings { grace: 400_000, ..usual }, 0);
        let (late, stall) = (
            SilenceReport::Warning { elapsed: 400, missed: 6, remaining: 60 },
            SilenceReport::Stall { elapsed: 460, missed: 7, threshold_seconds: 300 },
        );
        assert_eq!(reports(&mut heart, 0, 1000), [(400, late), (460, stall)]);
    }

    #[test]
    fn a_silence_that_ends_after_its_warning_is_known() {
        let mut heart = Heartbeat::new(HeartbeatSettings::default(), 0);
        reports(&mut heart, 0, 200);
        assert_eq!(heart.record_output(200_000), None, "no warning yet");
        reports(&mut heart, 200, 200 + 270);
        let silence = Silence { seconds: 270, limit_seconds: 300, in_tool: false, stalled: false };
        assert_eq!(heart.record_output(470_000), Some(silence));
        reports(&mut heart, 470, 470 + 300);
        let stalled = Silence { seconds: 300, stalled: true, ..silence };
        assert_eq!(heart.silence(770_000), Some(stalled));
        assert_eq!(heart.record_output(771_000), None, "the last words of a stalled agent end no silence");
    }

    #[test]
    fn sleep_of_the_machine_is_no_silence() {
        let mut heart = Heartbeat::new(HeartbeatSettings::default(), 0);
        assert_eq!(reports(&mut heart, 0, 200), []);
        let woken = 50_000;
        assert_eq!(reports(&mut heart, woken, woken + 39), [], "200 seconds of silence so far");
        assert_eq!(
            reports(&mut heart, woken + 40, woken + 100),
            [(woken + 40, WARNING), (woken + 100, STALL)]
        );

        let mut heart = Heartbeat::new(HeartbeatSettings::default(), 0);
        heart.check(1000);
        heart.record_output(90_000_000);
        let from = 90_000;
        let said = reports(&mut heart, from, from + 400);
        assert_eq!(said, [(from + 240, WARNING), (from + 300, STALL)], "a pulse after it is not moved ahead");

        let mut heart =
            Heartbeat::new(HeartbeatSettings { grace: 400_000, ..HeartbeatSettings::default() }, 0);
        assert_eq!(reports(&mut heart, 0, 10), []);
        let said = reports(&mut heart, 110, 600);
        assert_eq!(said.first().map(|(at, _)| *at), Some(500), "the grace waits too");
    }

    #[test]
    fn an_announced_wait_is_no_silence() {
        let mut heart = Heartbeat::new(HeartbeatSettings { grace: 0, ..HeartbeatSettings::default() }, 0);
        heart.record_output(1_000_000);
        assert_eq!(reports(&mut heart, 0, 1300), [(1240, WARNING), (1300, STALL)]);
    }

    proptest! {
        #[test]
        fn rules_hold_for_any_agent(
            interval in 1i64..90, threshold in 1u32..8, grace in 0i64..400,
            pulses in proptest::collection::btree_set(0i64..2000, 0..12),
        ) {
            let settings =
                HeartbeatSettings { interval: interval * 1000, threshold, grace: grace * 1000, tool_limit: 0 };
            let mut heart = Heartbeat::new(settings, 0);
            let limit = interval * i64::from(threshold);
            let (mut last, mut warned, mut stalled, mut warned_at) = (0, 0, 0, 0);
            for second in 0..2000 {
                if pulses.contains(&second) {
                    heart.record_output(second * 1000);
                    (last, warned, stalled, warned_at) = (second, 0, 0, 0);
                }
                let silence = second - last;
                match heart.check(second * 1000) {
                    Some(SilenceReport::Warning { elapsed, missed, remaining }) => {
                        warned += 1;
                        warned_at = silence;
                        prop_assert!(second >= grace && stalled == 0);
                        prop_assert_eq!((elapsed, missed), (silence, silence / interval));
                        prop_assert!(remaining <= interval);
                        if silence < limit {
                            prop_assert_eq!(missed, i64::from(threshold) - 1);
                            prop_assert_eq!(elapsed + remaining, limit);
                        } else {
                            // Half a second is less than the time between two checks.
                            prop_assert!(second == grace || limit < 2, "as soon as it may be said");
                        }
                    }
                    Some(SilenceReport::Stall { elapsed, threshold_seconds, .. }) => {
                        stalled += 1;
                        prop_assert_eq!(warned, 1, "never without its warning");
                        prop_assert_eq!((elapsed, threshold_seconds), (silence, limit));
                        let notice = if threshold > 1 { interval } else { (interval + 1) / 2 };
                        prop_assert!(silence == limit || (warned_at >= limit && silence - warned_at <= notice));
                    }
                    None => prop_assert!(stalled == 1 || silence < limit || second < grace || warned_at >= limit),
                }
                prop_assert!(warned <= 1 && stalled <= 1);
            }
        }

        #[test]
        fn pauses_of_any_length_change_nothing(gaps in proptest::collection::vec((0i64..60, 6i64..100_000), 0..6)) {
            let mut heart = Heartbeat::new(HeartbeatSettings::default(), 0);
            let (mut now, mut awake) = (0, 0);
            let mut said = Vec::new();
            for (run, gap) in gaps {
                for _ in 0..run {
                    now += 1;
                    awake += 1;
                    said.extend(heart.check(now * 1000).map(|_| awake));
                }
                now += gap;
                said.extend(heart.check(now * 1000).map(|_| awake));
            }
            while awake < 400 {
                now += 1;
                awake += 1;
                said.extend(heart.check(now * 1000).map(|_| awake));
            }
            prop_assert_eq!(said, [240, 300]);
        }

        #[test]
        fn no_clock_panics(times in proptest::collection::vec(any::<i64>(), 0..20), tool in any::<bool>()) {
            let mut heart = Heartbeat::new(HeartbeatSettings::default(), times.first().copied().unwrap_or(0));
            heart.set_tools(usize::from(tool));
            for time in times {
                heart.check(time);
                heart.record_output(time);
            }
        }
    }
}
