//! Every setting by its key: what it is called, what its value must look like, what it is by default.

use super::command;
use serde_json::{Map, Value};
use std::fmt;

/// What a key's value must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number of hours or seconds, zero allowed.
    Number,
    /// A number above zero.
    Positive,
    Count,
    Dollars,
    Text,
    /// `true` or `false`.
    Switch,
    /// A list, as JSON.
    List,
    /// A command line; from a project's file it is not run without the user's trust.
    Command,
    /// Several of them, as a list; one alone may be given as text.
    Commands,
}

impl Kind {
    /// Whether its values are run, and so never taken from where others write.
    pub fn is_run(self) -> bool {
        matches!(self, Kind::Command | Kind::Commands)
    }
}

#[derive(Debug)]
pub struct Key {
    pub name: &'static str,
    /// The flag of `ralph start`, without dashes.
    pub flag: Option<&'static str>,
    pub kind: Kind,
    default: Option<&'static str>,
    pub help: &'static str,
}

const fn key(
    name: &'static str,
    flag: Option<&'static str>,
    kind: Kind,
    default: Option<&'static str>,
    help: &'static str,
) -> Key {
    Key { name, flag, kind, default, help }
}

const fn threshold(name: &'static str, default: &'static str, help: &'static str) -> Key {
    key(name, None, Kind::Count, Some(default), help)
}

/// Every setting there is, in the order people read them.
pub const KEYS: [Key; 33] = [
    key(
        "loop_limits.min_hours",
        Some("min-hours"),
        Kind::Number,
        Some("0"),
        "runtime before completion is accepted",
    ),
    key(
        "loop_limits.max_hours",
        Some("max-hours"),
        Kind::Number,
        Some("9"),
        "runtime at which the loop ends, 0 = no limit",
    ),
    key(
        "loop_limits.min_iterations",
        Some("min-iterations"),
        Kind::Count,
        Some("0"),
        "iterations before completion is accepted",
    ),
    key(
        "loop_limits.max_iterations",
        Some("max-iterations"),
        Kind::Count,
        Some("50"),
        "iterations at which the loop ends, 0 = no limit",
    ),
    key(
        "loop_limits.max_cost_usd",
        Some("max-cost"),
        Kind::Dollars,
        None,
        "cost in US dollars at which the loop ends, 0 = no limit",
    ),
    key(
        "loop_limits.cli_gap_threshold_seconds",
        Some("gap-threshold"),
        Kind::Positive,
        Some("300"),
        "silence of this many seconds is a pause, not runtime",
    ),
    key(
        "completion.promise",
        Some("promise"),
        Kind::Text,
        Some("COMPLETE"),
        "what the agent promises when it is done",
    ),
    key(
        "completion.verify",
        Some("verify"),
        Kind::Commands,
        Some("[]"),
        "command that must pass before completion is believed; may be repeated",
    ),
    key(
        "completion.verify_timeout_seconds",
        None,
        Kind::Positive,
        Some("600"),
        "time each of these commands may take",
    ),
    key(
        "circuit.idle",
        Some("max-idle"),
        Kind::Count,
        Some("5"),
        "turns without any tool before the loop ends as stuck, 0 = off",
    ),
    threshold("circuit.same_error", "5", "turns with the same error before the breaker trips, 0 = off"),
    threshold(
        "circuit.output_decline",
        "70",
        "shrinking of the message in percent that counts, trips the 2nd time, 0 = off",
    ),
    threshold("circuit.test_only", "3", "turns of testing only before the breaker trips, 0 = off"),
    threshold("circuit.stagnation", "5", "turns without progress before the loop ends as stuck, 0 = off"),
    threshold(
        "circuit.repetition",
        "3",
        "times the message may repeat before the loop ends as stuck, 0 = off",
    ),
    threshold(
        "circuit.completion",
        "2",
        "phrases of completion that EXIT_SIGNAL needs beside it, 0 = promise only",
    ),
    threshold("circuit.safety_completion", "5", "turns that speak of completion without a signal, 0 = off"),
    key("guidance.max_age_hours", None, Kind::Number, Some("24"), "age at which guidance is dropped"),
    key("scan.enabled", None, Kind::Switch, Some("true"), "look for constraints at every turn"),
    key("scan.rules", None, Kind::List, Some("[]"), "rules of the project's own, beside the built-in ones"),
    key("scan.exclude", None, Kind::List, Some("[]"), "globs of files the scan leaves out"),
    key(
        "run.session_expiration_hours",
        None,
        Kind::Positive,
        Some("24"),
        "a loop not seen for so long is closed",
    ),
    threshold("run.max_iterations", "50", "iterations at which `ralph run` ends, 0 = no limit"),
    threshold(
        "run.max_stuck",
        "3",
        "iterations without a commit at which `ralph run` ends as stuck, 0 = off",
    ),
    key("run.timeout_minutes", None, Kind::Number, Some("15"), "time one iteration may take, 0 = no limit"),
    threshold("run.calls_per_hour", "100", "iterations begun within any hour, 0 = no limit"),
    key("run.delay_seconds", None, Kind::Number, Some("3"), "pause between two iterations"),
    threshold("run.review_cap", "5", "reviews of one story after which it counts as approved"),
    key(
        "heartbeat.interval_seconds",
        None,
        Kind::Positive,
        Some("60"),
        "silence that counts as one missed beat",
    ),
    threshold("heartbeat.threshold", "5", "missed beats at which a silent agent is stopped"),
    key(
        "heartbeat.startup_grace_seconds",
        None,
        Kind::Number,
        Some("120"),
        "time before the first beat is expected",
    ),
    key(
        "heartbeat.tool_seconds",
        None,
        Kind::Positive,
        Some("1800"),
        "silence allowed while a tool of the agent runs",
    ),
    key("notify.command", Some("notify"), Kind::Command, None, "command run at every ending"),
];

/// Flags of `ralph run` that set a key; the others are those of `start`.
pub const RUN_FLAGS: [(&str, &str, &str, &str); 10] = [
    (
        "max-iterations",
        "run.max_iterations",
        "N",
        "iterations at which the run ends, 0 = no limit [default: 50]",
    ),
    (
        "max-stuck",
        "run.max_stuck",
        "N",
        "iterations without a commit at which it ends as stuck, 0 = off [default: 3]",
    ),
    ("timeout", "run.timeout_minutes", "MINUTES", "time one iteration may take, 0 = no limit [default: 15]"),
    (
        "calls-per-hour",
        "run.calls_per_hour",
        "N",
        "iterations begun within any hour, 0 = no limit [default: 100]",
    ),
    ("delay", "run.delay_seconds", "SECONDS", "pause between two iterations [default: 3]"),
    (
        "review-cap",
        "run.review_cap",
        "N",
        "reviews of one story after which it counts as approved [default: 5]",
    ),
    (
        "heartbeat-interval",
        "heartbeat.interval_seconds",
        "SECONDS",
        "silence that counts as one missed beat; recommended 30-120s [default: 60]",
    ),
    (
        "heartbeat-threshold",
        "heartbeat.threshold",
        "N",
        "missed beats at which a silent agent is stopped. With interval=60s and threshold=5, stall detection \
         triggers after 300s of no output [default: 5]",
    ),
    (
        "startup-grace-period",
        "heartbeat.startup_grace_seconds",
        "SECONDS",
        "time before the first beat is expected [default: 120]",
    ),
    ("tool-limit", "heartbeat.tool_seconds", "SECONDS", "silence allowed while a tool runs [default: 1800]"),
];

/// The other spelling of a flag, for people who come from the official plugin.
const ALIASES: [(&str, &str); 1] = [("completion-promise", "promise")];

pub struct Preset {
    pub name: &'static str,
    pub help: &'static str,
    values: [(&'static str, &'static str); 4],
}

pub const PRESETS: [Preset; 2] = [
    Preset {
        name: "poc",
        help: "a quick try: 5-10 minutes, 10-20 iterations",
        values: [
            ("loop_limits.min_hours", "0.08333333333333333"),
            ("loop_limits.max_hours", "0.16666666666666666"),
            ("loop_limits.min_iterations", "10"),
            ("loop_limits.max_iterations", "20"),
        ],
    },
    Preset {
        name: "production",
        help: "the long run: 4-9 hours, 50-99 iterations",
        values: [
            ("loop_limits.min_hours", "4"),
            ("loop_limits.max_hours", "9"),
            ("loop_limits.min_iterations", "50"),
            ("loop_limits.max_iterations", "99"),
        ],
    },
];

impl Preset {
    pub fn values(&self) -> Map<String, Value> {
        self.values.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value))).collect()
    }
}

pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

pub fn find_flag(flag: &str) -> Option<&'static Key> {
    let flag = ALIASES.iter().find(|(alias, _)| *alias == flag).map_or(flag, |(_, flag)| flag);
    KEYS.iter().find(|key| key.flag == Some(flag))
}

pub fn aliases(flag: &str) -> impl Iterator<Item = &'static str> + '_ {
    ALIASES.iter().filter(move |(_, of)| *of == flag).map(|(alias, _)| *alias)
}

impl Key {
    /// Environment variables that set this key, the strongest first: by its flag and by its whole name. What only
    /// `ralph run` has is also known by its flag there, and is stronger by its own name than by one it shares.
    pub fn variables(&self) -> impl Iterator<Item = String> {
        let runs = RUN_FLAGS.iter().find(|(_, key, ..)| *key == self.name).map(|(flag, ..)| *flag);
        let shared = runs.is_some_and(|flag| find_flag(flag).is_some());
        let (own, shared) = if shared { (None, runs) } else { (runs, None) };
        [self.flag, own, Some(self.name), shared].into_iter().flatten().map(|text| {
            // Made at every turn for every key, so without a detour through a formatter.
            let mut name = String::with_capacity(text.len() + 6);
            name.push_str("RALPH_");
            name.extend(
                text.bytes().map(|b| {
                    if b.is_ascii_alphanumeric() { char::from(b.to_ascii_uppercase()) } else { '_' }
                }),
            );
            name
        })
    }

    /// The value in its own type, or what is wrong with it. Numbers may be given as text: `08` is eight.
    pub fn read(&self, value: &Value) -> Result<Value, String> {
        if self.kind == Kind::Commands {
            return command::all(value);
        }
        let text = match value {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            Value::Bool(on) => on.to_string(),
            Value::Array(_) if self.kind == Kind::List => return Ok(value.clone()),
            other => return Err(format!("{other} is not {}", self.kind)),
        };
        let wrong = || format!("'{text}' is not {}", self.kind);
        match self.kind {
            Kind::Count => text.parse::<u32>().map(Value::from).map_err(|_| wrong()),
            Kind::Number | Kind::Positive | Kind::Dollars => {
                let number = text.parse::<f64>().map_err(|_| wrong())?;
                let low = if self.kind == Kind::Positive { number > 0.0 } else { number >= 0.0 };
                if !low || number > 1e9 {
                    return Err(wrong());
                }
                // Written back into a file, six is 6 and not 6.0.
                Ok(if number.fract() == 0.0 { Value::from(number as u64) } else { Value::from(number) })
            }
            Kind::Switch => text.parse::<bool>().map(Value::from).map_err(|_| wrong()),
            Kind::List => serde_json::from_str(&text).ok().filter(Value::is_array).ok_or_else(wrong),
            Kind::Text if text.contains("<promise>") || text.contains("</promise>") => {
                Err(format!("'{text}' holds the tag itself: give only the text within it"))
            }
            Kind::Text | Kind::Command | Kind::Commands => {
                value.as_str().filter(|text| command::is_sound(text)).map(Value::from).ok_or_else(wrong)
            }
        }
    }

    /// What can be used of a value, and what is wrong with the rest: of several commands a bad one falls alone.
    pub fn usable(&self, value: &Value) -> (Option<Value>, Vec<String>) {
        match self.read(value) {
            Ok(value) => (Some(value), Vec::new()),
            Err(_) if self.kind == Kind::Commands => command::usable(value),
            Err(wrong) => (None, vec![wrong]),
        }
    }

    /// The command lines that a value of this key would run.
    pub fn commands(&self, value: &Value) -> Vec<String> {
        match self.usable(value).0 {
            Some(Value::String(text)) if self.kind.is_run() => vec![text],
            Some(Value::Array(list)) if self.kind.is_run() => {
                list.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
            }
            _ => Vec::new(),
        }
    }

    pub fn default(&self) -> Value {
        self.default.and_then(|text| self.read(&Value::from(text)).ok()).unwrap_or(Value::Null)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Number => "a number of 0 or more",
            Kind::Positive => "a number above 0",
            Kind::Count => "a whole number of 0 or more",
            Kind::Dollars => "an amount of 0 or more",
            Kind::Switch => "true or false",
            Kind::List => "a JSON list",
            Kind::Text => "a text of 1 to 2000 characters",
            Kind::Command => "a command of 1 to 2000 characters",
            Kind::Commands => "a list of commands",
        })
    }
}
