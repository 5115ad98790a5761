//! What the client says about cost, context and the windows of the user's plan. A figure that cannot be true is unknown.

use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use serde::{Deserialize, Serialize};

/// Usage beyond a plan's limit is more than 100 percent; more than this is no level.
const MAX_PERCENT: f64 = 200.0;
/// More than any session costs; sums of more lose their cents, and those of much more overflow.
const MAX_USD: f64 = 1e6;
const MAX_WINDOWS: usize = 8;
const MAX_NAME_CHARS: usize = 40;
/// No window resets later than this: a month, and a day for the clocks.
pub const MAX_RESET_MS: i64 = 32 * 86_400_000;
/// Two processes of one moment read the clock in any order.
const CLOCK_SLACK_MS: i64 = 60_000;

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureSource {
    /// What the client gives to its status line.
    #[default]
    StatusLine,
    /// What the client gives to the plugin's module.
    Module,
    /// The session's transcript.
    Transcript,
    /// What the agent of a runner printed.
    Stream,
}

impl FigureSource {
    pub fn words(self) -> &'static str {
        match self {
            FigureSource::StatusLine => "status line",
            FigureSource::Module => "client",
            FigureSource::Transcript => "transcript",
            FigureSource::Stream => "agent's output",
        }
    }
}

/// How much is used of one window of the user's plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// The client's own name: `five_hour`, `seven_day`.
    #[serde(rename = "window")]
    pub name: String,
    pub percent: f64,
    pub resets_at: Option<Stamp>,
}

impl Window {
    /// Returns a window if the figure can be true.
    pub fn new(name: &str, percent: Option<f64>, resets_at: Option<Stamp>) -> Option<Window> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let is_name = (1..=MAX_NAME_CHARS).contains(&name.len()) && name.chars().all(is_plain);
        let percent = usable_percent(percent).filter(|_| is_name)?;
        Some(Window { name: name.to_owned(), percent, resets_at })
    }

    /// Returns whether the figure is of a window that is over, so that the level of the present one is unknown.
    pub fn is_over(&self, now: Stamp) -> bool {
        self.resets_at.is_some_and(|at| at <= now)
    }

    /// Returns the window with a reset that can be true: none is further away than the window is long.
    pub fn until_its_reset(self, now: Stamp) -> Window {
        let longest_ms = match self.name.as_str() {
            "five_hour" => 6 * 3_600_000,
            "seven_day" => 8 * 86_400_000,
            _ => MAX_RESET_MS,
        };
        let resets_at = self.resets_at.filter(|at| *at - now <= longest_ms);
        Window { resets_at, ..self }
    }

    /// Returns `5-hour` or `weekly`, as the client calls its limits.
    pub fn title(&self) -> String {
        match self.name.as_str() {
            "five_hour" => "5-hour".into(),
            "seven_day" => "weekly".into(),
            name => clean::line(&name.replace('_', " ")),
        }
    }

    /// Returns `5-hour 92%`.
    pub fn level(&self) -> String {
        format!("{} {}", self.title(), percent(self.percent))
    }

    /// Returns `5-hour 92% (resets in 12m)`.
    pub fn line(&self, now: Stamp) -> String {
        match self.resets_at {
            _ if self.is_over(now) => format!("{} unknown since its reset", self.title()),
            Some(at) => format!("{} (resets in {})", self.level(), time::span(at - now)),
            None => self.level(),
        }
    }
}

/// Returns a percentage if it can be one.
pub fn usable_percent(percent: Option<f64>) -> Option<f64> {
    percent.filter(|percent| percent.is_finite() && (0.0..=MAX_PERCENT).contains(percent))
}

/// Returns a cost in US dollars if it can be one.
pub fn usable_usd(usd: Option<f64>) -> Option<f64> {
    usd.filter(|usd| (0.0..=MAX_USD).contains(usd))
}

/// Returns the windows that are kept.
pub fn usable_windows(windows: impl Iterator<Item = Window>) -> Vec<Window> {
    windows.take(MAX_WINDOWS).collect()
}

/// Returns `92%`: never 100 while something is left.
pub fn percent(percent: f64) -> String {
    format!("{}%", percent.floor())
}

/// What the client tells of cost, context and quota. What is missing or cannot be true is unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientFigures {
    pub source: FigureSource,
    /// What this process of the client says the session has cost.
    pub cost_usd: Option<f64>,
    /// When this process or the session began, if that was told.
    pub began_at: Option<Stamp>,
    /// How long this process has had the session, in milliseconds.
    pub duration_ms: Option<i64>,
    /// How long it has waited for the model: it grows with every reply.
    pub api_duration_ms: Option<i64>,
    pub context_percent: Option<f64>,
    pub windows: Vec<Window>,
}

impl ClientFigures {
    pub fn is_empty(&self) -> bool {
        self.cost_usd.is_none() && self.context_percent.is_none() && self.windows.is_empty()
    }
}

/// Figures of one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    pub at: Stamp,
    pub source: FigureSource,
    /// What the session has cost since it was first looked at; it never shrinks.
    pub spent_usd: Option<f64>,
    /// What it had cost before that.
    pub first_usd: Option<f64>,
    pub context_percent: Option<f64>,
    pub windows: Vec<Window>,
    /// The session has the plugin's module, which can compact the context.
    pub has_module: bool,
}

impl Figures {
    /// Returns whether they tell of the turn that ends `now`; the turn before ended at `since`.
    pub fn is_of_turn(&self, since: Stamp, now: Stamp) -> bool {
        self.at >= since && self.at - now <= CLOCK_SLACK_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_cannot_be_true_is_unknown() {
        for (percent, expected) in [
            (Some(0.0), true),
            (Some(92.0), true),
            (Some(100.0), true),
            (Some(104.0), true),
            (Some(250.0), false),
            (Some(-1.0), false),
            (Some(f64::NAN), false),
            (Some(f64::INFINITY), false),
            (None, false),
        ] {
            assert_eq!(Window::new("five_hour", percent, None).is_some(), expected, "{percent:?}");
        }
        for name in ["", "\u{1b}[31m", "a b", &"x".repeat(41)] {
            assert_eq!(Window::new(name, Some(1.0), None), None, "{name:?}");
        }
    }

    #[test]
    fn a_window_reads_as_the_client_calls_it() {
        let now = Stamp(1_000_000_000);
        let window = |name: &str, at| Window::new(name, Some(92.9), at).unwrap().line(now);
        assert_eq!(window("five_hour", Some(now.plus_ms(720_000))), "5-hour 92% (resets in 12m)");
        assert_eq!(window("seven_day", None), "weekly 92%");
        assert_eq!(window("seven_day_opus", Some(now)), "seven day opus unknown since its reset");
    }

    #[test]
    fn figures_count_for_the_turn_in_which_they_were_given() {
        let at = |at| Figures {
            at: Stamp(at),
            source: FigureSource::StatusLine,
            spent_usd: None,
            first_usd: None,
            context_percent: None,
            windows: Vec::new(),
            has_module: false,
        };
        let (since, now) = (Stamp(1_000_000), Stamp(2_000_000));
        for (name, given, expected) in [
            ("at the end of the turn before", 1_000_000, true),
            ("within the turn", 1_500_000, true),
            ("a moment after", 2_000_300, true),
            ("before the turn before ended", 999_999, false),
            ("from a clock that was set back since", 9_000_000, false),
        ] {
            assert_eq!(at(given).is_of_turn(since, now), expected, "{name}");
        }
    }
}
