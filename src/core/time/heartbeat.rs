//! Whether the agent is still alive: output resets the silence, and a long silence is first a warning, then a stall.
//!
//! Times are milliseconds of a monotonic clock. The caller checks about once a second: a much longer gap between two
//! checks means that the machine slept or Ralph was stopped (Ctrl-Z), and does not count as silence.

/// A busy machine may check this late; a longer gap is a pause.
const MAX_CHECK_GAP_MS: i64 = 5000;

/// Durations in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// 0 switches the heartbeat off.
    pub interval: i64,
    /// How many missed intervals are a stall; 0 switches the heartbeat off.
    pub threshold: u32,
    /// No warning or stall before this much time has passed.
    pub grace: i64,
    /// The silence allowed while a tool runs, if longer than the usual; 0 is unlimited.
    pub tool_limit: i64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { interval: 60_000, threshold: 5, grace: 120_000, tool_limit: 1_800_000 }
    }
}

impl Settings {
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

/// What to report about a silence, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// One interval before a stall.
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

impl Beat {
    /// Returns the message for people.
    pub fn message(&self, iteration: u64) -> String {
        match self {
            Beat::Warning { elapsed, missed, remaining } => format!(
                "Warning: No agent output for {elapsed}s ({missed} heartbeat intervals). Stall detection in \
                 {remaining}s unless activity resumes. (iteration {iteration})"
            ),
            Beat::Stall { elapsed, threshold_seconds, .. } => format!(
                "Agent stall detected: no output for {elapsed}s (exceeded {threshold_seconds}s threshold). \
                 Terminating agent. (iteration {iteration})"
            ),
        }
    }

    /// Returns the message for programs: one line of `key=value`.
    pub fn record(&self, iteration: u64, run_id: &str) -> String {
        let (event, elapsed, missed) = match self {
            Beat::Warning { elapsed, missed, .. } => ("heartbeat_warning", elapsed, missed),
            Beat::Stall { elapsed, missed, .. } => ("stall_detected", elapsed, missed),
        };
        format!(
            "event={event} elapsed_seconds={elapsed} missed_count={missed} iteration={iteration} run_id={run_id}"
        )
    }
}

#[derive(Clone, Debug)]
pub struct Heartbeat {
    settings: Settings,
    started: i64,
    pulse: i64,
    checked: i64,
    tools: usize,
    warned: bool,
    stalled: bool,
}

impl Heartbeat {
    /// Starts with the agent, at `now`.
    pub fn new(settings: Settings, now: i64) -> Self {
        Heartbeat {
            settings,
            started: now,
            pulse: now,
            checked: now,
            tools: 0,
            warned: false,
            stalled: false,
        }
    }

    /// Records output. A pulse may lie ahead: if the agent announces a wait, silence begins after it.
    pub fn pulse(&mut self, now: i64) {
        self.pulse = self.pulse.max(now);
        (self.warned, self.stalled) = (false, false);
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
        self.pulse = shifted(self.pulse);
    }

    /// Returns what to report now: a warning and a stall at most once for each silence.
    pub fn check(&mut self, now: i64) -> Option<Beat> {
        if now.saturating_sub(self.checked) > MAX_CHECK_GAP_MS {
            self.pause(self.checked, now);
        }
        self.checked = self.checked.max(now);
        let limit = self.settings.limit(self.tools > 0)?;
        if now.saturating_sub(self.started) < self.settings.grace {
            return None;
        }
        let silence = now.saturating_sub(self.pulse);
        let (elapsed, missed) = (silence / 1000, silence / self.settings.interval);
        if silence >= limit && !self.stalled {
            (self.warned, self.stalled) = (true, true);
            return Some(Beat::Stall { elapsed, missed, threshold_seconds: limit / 1000 });
        }
        // With a threshold of one there is no interval left to warn in.
        if silence < limit && silence >= limit - self.settings.interval && missed > 0 && !self.warned {
            self.warned = true;
            return Some(Beat::Warning { elapsed, missed, remaining: limit / 1000 - elapsed });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks every second up to and including `to`, and returns what was reported when.
    fn reports(heart: &mut Heartbeat, from: i64, to: i64) -> Vec<(i64, Beat)> {
        let seconds = from..=to;
        seconds.filter_map(|second| Some((second, heart.check(second * 1000)?))).collect()
    }

    const WARNING: Beat = Beat::Warning { elapsed: 240, missed: 4, remaining: 60 };
    const STALL: Beat = Beat::Stall { elapsed: 300, missed: 5, threshold_seconds: 300 };

    #[test]
    fn a_silence_is_one_warning_and_then_one_stall() {
        let mut heart = Heartbeat::new(Settings::default(), 0);
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
        let mut heart = Heartbeat::new(Settings::default(), 0);
        assert_eq!(reports(&mut heart, 0, 299), [(240, WARNING)]);
        heart.pulse(299_000);
        assert_eq!(reports(&mut heart, 299, 700), [(299 + 240, WARNING), (299 + 300, STALL)]);
    }

    #[test]
    fn a_running_tool_has_a_longer_limit() {
        let mut heart = Heartbeat::new(Settings::default(), 0);
        heart.set_tools(1);
        let warning = Beat::Warning { elapsed: 1740, missed: 29, remaining: 60 };
        let stall = Beat::Stall { elapsed: 1800, missed: 30, threshold_seconds: 1800 };
        assert_eq!(reports(&mut heart, 0, 4000), [(1740, warning), (1800, stall)]);
        heart.set_tools(0);
        heart.pulse(4_000_000);
        assert_eq!(reports(&mut heart, 4001, 4400), [(4240, WARNING), (4300, STALL)]);
    }

    #[test]
    fn limits_of_tools() {
        for (name, tool_limit, stalls_at) in
            [("never shorter than the usual", 10_000, Some(300)), ("none", 0, None)]
        {
            let mut heart = Heartbeat::new(Settings { tool_limit, ..Settings::default() }, 0);
            heart.set_tools(1);
            let said = reports(&mut heart, 0, 10_000);
            let stall = said.iter().find(|(_, beat)| matches!(beat, Beat::Stall { .. }));
            assert_eq!(stall.map(|(at, _)| *at), stalls_at, "{name}");
        }
    }

    #[test]
    fn edges_of_the_settings() {
        let usual = Settings::default();
        let cases: [(&str, Settings, &[i64]); 6] = [
            ("a long grace", Settings { grace: 400_000, ..usual }, &[400]),
            (
                "a grace that hides only the warning's beginning",
                Settings { grace: 250_000, ..usual },
                &[250, 300],
            ),
            ("no grace", Settings { grace: 0, ..usual }, &[240, 300]),
            ("no interval to warn in", Settings { threshold: 1, grace: 0, ..usual }, &[60]),
            ("off", Settings { threshold: 0, ..usual }, &[]),
            ("off as well", Settings { interval: 0, ..usual }, &[]),
        ];
        for (name, settings, expected) in cases {
            let said = reports(&mut Heartbeat::new(settings, 0), 0, 1000);
            assert_eq!(said.iter().map(|(at, _)| *at).collect::<Vec<_>>(), expected, "{name}");
        }
    }

    #[test]
    fn sleep_of_the_machine_is_no_silence() {
        let mut heart = Heartbeat::new(Settings::default(), 0);
        assert_eq!(reports(&mut heart, 0, 200), []);
        let woken = 50_000;
        assert_eq!(reports(&mut heart, woken, woken + 39), [], "200 seconds of silence so far");
        assert_eq!(
            reports(&mut heart, woken + 40, woken + 100),
            [(woken + 40, WARNING), (woken + 100, STALL)]
        );

        let mut heart = Heartbeat::new(Settings::default(), 0);
        heart.check(1000);
        heart.pulse(90_000_000);
        let from = 90_000;
        let said = reports(&mut heart, from, from + 400);
        assert_eq!(said, [(from + 240, WARNING), (from + 300, STALL)], "a pulse after it is not moved ahead");

        let mut heart = Heartbeat::new(Settings { grace: 400_000, ..Settings::default() }, 0);
        assert_eq!(reports(&mut heart, 0, 10), []);
        let said = reports(&mut heart, 110, 600);
        assert_eq!(said.first().map(|(at, _)| *at), Some(500), "the grace waits too");
    }

    #[test]
    fn an_announced_wait_is_no_silence() {
        let mut heart = Heartbeat::new(Settings { grace: 0, ..Settings::default() }, 0);
        heart.pulse(1_000_000);
        assert_eq!(reports(&mut heart, 0, 1300), [(1240, WARNING), (1300, STALL)]);
    }

    proptest! {
        #[test]
        fn rules_hold_for_any_agent(
            interval in 1i64..90, threshold in 1u32..8, grace in 0i64..400,
            pulses in proptest::collection::btree_set(0i64..2000, 0..12),
        ) {
            let settings =
                Settings { interval: interval * 1000, threshold, grace: grace * 1000, tool_limit: 0 };
            let mut heart = Heartbeat::new(settings, 0);
            let limit = interval * i64::from(threshold);
            let (mut last, mut warned, mut stalled) = (0, 0, 0);
            for second in 0..2000 {
                if pulses.contains(&second) {
                    heart.pulse(second * 1000);
                    (last, warned, stalled) = (second, 0, 0);
                }
                let silence = second - last;
                match heart.check(second * 1000) {
                    Some(Beat::Warning { elapsed, missed, remaining }) => {
                        warned += 1;
                        prop_assert!(second >= grace && stalled == 0);
                        prop_assert_eq!((elapsed, missed), (silence, silence / interval));
                        prop_assert_eq!(missed, i64::from(threshold) - 1);
                        prop_assert_eq!(elapsed + remaining, limit);
                    }
                    Some(Beat::Stall { elapsed, threshold_seconds, .. }) => {
                        stalled += 1;
                        prop_assert!(second >= grace);
                        prop_assert_eq!((elapsed, threshold_seconds), (silence, limit));
                        prop_assert!(silence == limit || second == grace, "as soon as it can be known");
                    }
                    None => prop_assert!(stalled == 1 || silence < limit || second < grace),
                }
                prop_assert!(warned <= 1 && stalled <= 1);
            }
        }

        #[test]
        fn pauses_of_any_length_change_nothing(gaps in proptest::collection::vec((0i64..60, 6i64..100_000), 0..6)) {
            let mut heart = Heartbeat::new(Settings::default(), 0);
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
            let mut heart = Heartbeat::new(Settings::default(), times.first().copied().unwrap_or(0));
            heart.set_tools(usize::from(tool));
            for time in times {
                heart.check(time);
                heart.pulse(time);
            }
        }
    }
}
