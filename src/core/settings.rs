//! Settings: one table of keys, and the rule by which layers of given values become effective ones.

use super::clean;
use serde::{Deserialize, Serialize};
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

/// Every setting there is, in the order people read them.
pub const KEYS: [Key; 14] = [
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
        "circuit.idle",
        Some("max-idle"),
        Kind::Count,
        Some("5"),
        "turns without any tool before the loop ends as stuck, 0 = off",
    ),
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
    key("notify.command", Some("notify"), Kind::Command, None, "command run at every ending"),
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
    /// Environment variables that set this key: by its whole name, and by its flag.
    pub fn variables(&self) -> impl Iterator<Item = String> {
        [self.flag, Some(self.name)].into_iter().flatten().map(|text| {
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
            Kind::Text | Kind::Command => {
                let Value::String(text) = value else { return Err(wrong()) };
                if text.trim().is_empty() || text.chars().count() > 2000 {
                    Err(wrong())
                } else {
                    Ok(value.clone())
                }
            }
        }
    }

    fn default(&self) -> Value {
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
        })
    }
}

/// Where a value came from, strongest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Flag,
    Preset,
    Environment,
    Project,
    User,
    Default,
}

impl Source {
    fn weight(&self) -> u8 {
        match self {
            Source::Flag => 5,
            Source::Preset => 4,
            Source::Environment => 3,
            Source::Project => 2,
            Source::User => 1,
            Source::Default => 0,
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Source::Flag => "flag",
            Source::Preset => "preset",
            Source::Environment => "environment",
            Source::Project => "project",
            Source::User => "user",
            Source::Default => "default",
        }
    }
}

/// Values given in one place, by key. `place` names it in warnings: a file, a variable, a flag.
#[derive(Clone, Debug)]
pub struct Layer {
    pub source: Source,
    pub place: String,
    pub values: Map<String, Value>,
}

/// One effective value and where it stands.
#[derive(Clone, Debug)]
pub struct Row {
    pub key: &'static Key,
    pub value: Value,
    pub source: Source,
    pub place: String,
}

#[derive(Clone, Debug)]
pub struct Resolved {
    pub rows: Vec<Row>,
    pub warnings: Vec<String>,
    /// What the files said, as far as they could be read.
    pub files: Files,
}

/// The values of the two files; `None` where one could not be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Files {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Map<String, Value>>,
}

impl Files {
    pub fn is_empty(&self) -> bool {
        self.project.is_none() && self.user.is_none()
    }
}

/// The strongest usable value of each key. A bad one falls to the next layer alone, and is named.
pub fn resolve(layers: &[Layer]) -> Resolved {
    let mut warnings = Vec::new();
    let mut rows = Vec::with_capacity(KEYS.len());
    for key in &KEYS {
        let mut row = Row { key, value: key.default(), source: Source::Default, place: String::new() };
        for layer in layers {
            let Some(value) = layer.values.get(key.name).filter(|value| !value.is_null()) else { continue };
            match key.read(value) {
                Ok(value) => {
                    row = Row { key, value, source: layer.source.clone(), place: layer.place.clone() };
                    break;
                }
                Err(wrong) => warnings.push(format!("{}: {} {wrong}, ignored", layer.place, key.name)),
            }
        }
        rows.push(row);
    }
    let mut resolved = Resolved { rows, warnings, files: Files::default() };
    resolved.reconcile("loop_limits.min_hours", "loop_limits.max_hours");
    resolved.reconcile("loop_limits.min_iterations", "loop_limits.max_iterations");
    resolved
}

impl Resolved {
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.key.name == name)
    }

    fn number(&self, name: &str) -> f64 {
        self.row(name).and_then(|row| row.value.as_f64()).unwrap_or(0.0)
    }

    fn count(&self, name: &str) -> u64 {
        self.row(name).and_then(|row| row.value.as_u64()).unwrap_or(0)
    }

    pub fn is_on(&self, name: &str) -> bool {
        self.row(name).is_some_and(|row| row.value == Value::Bool(true))
    }

    /// A list's elements.
    pub fn list(&self, name: &str) -> &[Value] {
        self.row(name).and_then(|row| row.value.as_array()).map_or(&[], Vec::as_slice)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.row(name).and_then(|row| row.value.as_str()).map(str::to_owned)
    }

    /// A minimum over its maximum would never let the loop finish: the one that was said with less weight
    /// gives way, between equals the minimum.
    fn reconcile(&mut self, min: &str, max: &str) {
        let (low, high) = (self.number(min), self.number(max));
        if high == 0.0 || low <= high {
            return;
        }
        let weight = |name: &str| self.row(name).map_or(0, |row| row.source.weight());
        let (moved, to, word) =
            if weight(min) > weight(max) { (max, min, "raised") } else { (min, max, "lowered") };
        self.warnings.push(format!("{min} {low} is over {max} {high}: {moved} is {word} to it"));
        let value = self.row(to).map(|row| row.value.clone()).unwrap_or_default();
        if let Some(row) = self.rows.iter_mut().find(|row| row.key.name == moved) {
            row.value = value;
        }
    }

    pub fn settings(&self) -> Settings {
        let ms = |name: &str, unit: f64| (self.number(name) * unit).round() as i64;
        const HOUR: f64 = 3_600_000.0;
        Settings {
            min_runtime_ms: ms("loop_limits.min_hours", HOUR),
            max_runtime_ms: ms("loop_limits.max_hours", HOUR),
            min_iterations: self.count("loop_limits.min_iterations"),
            max_iterations: self.count("loop_limits.max_iterations"),
            max_cost_usd: Some(self.number("loop_limits.max_cost_usd")).filter(|usd| *usd > 0.0),
            pause_threshold_ms: ms("loop_limits.cli_gap_threshold_seconds", 1000.0).max(1),
            promise: clean::line(&self.text("completion.promise").unwrap_or_default()),
            idle: self.count("circuit.idle"),
            guidance_max_age_ms: ms("guidance.max_age_hours", HOUR),
            session_expiration_ms: ms("run.session_expiration_hours", HOUR),
        }
    }
}

/// What the loop goes by. Zero in a maximum means no limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub min_runtime_ms: i64,
    pub max_runtime_ms: i64,
    pub min_iterations: u64,
    pub max_iterations: u64,
    pub max_cost_usd: Option<f64>,
    pub pause_threshold_ms: i64,
    pub promise: String,
    pub idle: u64,
    pub guidance_max_age_ms: i64,
    pub session_expiration_ms: i64,
}

impl Default for Settings {
    fn default() -> Self {
        resolve(&[]).settings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn layer(source: Source, place: &str, values: Value) -> Layer {
        let Value::Object(values) = values else { panic!("an object") };
        Layer { source, place: place.into(), values }
    }

    #[test]
    fn defaults_are_safe() {
        let settings = Settings::default();
        assert_eq!((settings.max_iterations, settings.max_runtime_ms), (50, 9 * 3_600_000));
        assert_eq!(
            (settings.pause_threshold_ms, settings.idle, settings.promise.as_str()),
            (300_000, 5, "COMPLETE")
        );
        assert_eq!(settings.max_cost_usd, None);
    }

    #[test]
    fn the_stronger_layer_wins_even_where_it_equals_the_default() {
        let layers = [
            layer(Source::Flag, "flags", json!({"loop_limits.max_iterations": "50"})),
            layer(Source::Environment, "RALPH_MAX_HOURS", json!({"loop_limits.max_hours": "08"})),
            layer(
                Source::Project,
                "p.json",
                json!({"loop_limits.max_iterations": 7, "loop_limits.max_hours": 3}),
            ),
            layer(Source::User, "u.json", json!({"completion.promise": "DONE", "circuit.idle": 0})),
        ];
        let resolved = resolve(&layers);
        let settings = resolved.settings();
        assert_eq!((settings.max_iterations, settings.max_runtime_ms), (50, 8 * 3_600_000));
        assert_eq!((settings.promise.as_str(), settings.idle), ("DONE", 0));
        assert_eq!(resolved.row("loop_limits.max_iterations").unwrap().source, Source::Flag);
        assert_eq!(resolved.warnings, Vec::<String>::new());
    }

    #[test]
    fn one_bad_value_falls_back_alone_and_is_named() {
        let layers = [
            layer(
                Source::Project,
                "p.json",
                json!({"loop_limits.max_hours": "soon", "loop_limits.max_iterations": 7,
                "circuit.idle": -1, "completion.promise": 5, "loop_limits.min_hours": null, "guidance.max_age_hours": [1]}),
            ),
            layer(Source::User, "u.json", json!({"loop_limits.max_hours": 4})),
        ];
        let resolved = resolve(&layers);
        assert_eq!(resolved.settings().max_runtime_ms, 4 * 3_600_000);
        assert_eq!(resolved.settings().max_iterations, 7);
        assert_eq!(resolved.warnings.len(), 4, "{:?}", resolved.warnings);
        assert_eq!(
            resolved.warnings[0],
            "p.json: loop_limits.max_hours 'soon' is not a number of 0 or more, ignored"
        );
    }

    #[test]
    fn a_minimum_over_its_maximum_is_lowered() {
        let resolved = resolve(&[layer(
            Source::Flag,
            "flags",
            json!({"loop_limits.min_hours": 5, "loop_limits.max_hours": 2}),
        )]);
        assert_eq!(resolved.settings().min_runtime_ms, 2 * 3_600_000);
        assert_eq!(resolved.warnings.len(), 1);
        let preset = layer(Source::Preset, "preset", json!({"loop_limits.max_hours": 1}));
        let flag = layer(Source::Flag, "flags", json!({"loop_limits.min_hours": 2}));
        assert_eq!(
            resolve(&[flag, preset]).settings().max_runtime_ms,
            2 * 3_600_000,
            "a flag wins over a preset"
        );
    }

    #[test]
    fn numbers_are_strict() {
        let count = find_flag("max-iterations").unwrap();
        assert_eq!(count.read(&json!("08")), Ok(json!(8)));
        for bad in ["3.5", "-1", "", "0x10", "1e3", "three", "99999999999"] {
            assert!(count.read(&json!(bad)).is_err(), "{bad}");
        }
        let hours = find_flag("max-hours").unwrap();
        assert_eq!(hours.read(&json!("0.5")), Ok(json!(0.5)));
        for bad in ["NaN", "inf", "-0.1", "4h"] {
            assert!(hours.read(&json!(bad)).is_err(), "{bad}");
        }
        assert!(find_flag("gap-threshold").unwrap().read(&json!(0)).is_err());
    }

    #[test]
    fn variables_follow_from_flag_and_key() {
        let names: Vec<_> = find_flag("completion-promise").unwrap().variables().collect();
        assert_eq!(names, ["RALPH_PROMISE", "RALPH_COMPLETION_PROMISE"]);
    }
}
