//! The rule by which layers of given values become effective ones.

use super::clean;
use super::heartbeat;
pub use super::keys::{KEYS, Key, Kind, PRESETS, Preset, RUN_FLAGS, aliases, find, find_flag};
use super::record::Engine;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
    /// Commands in the project's file that the user has not trusted: they stand in no row and are not run.
    pub withheld: Vec<Row>,
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
            let (value, wrong) = key.usable(value);
            warnings
                .extend(wrong.iter().map(|wrong| format!("{}: {} {wrong}, ignored", layer.place, key.name)));
            if let Some(value) = value {
                row = Row { key, value, source: layer.source.clone(), place: layer.place.clone() };
                break;
            }
        }
        rows.push(row);
    }
    let mut resolved = Resolved { rows, warnings, withheld: Vec::new(), files: Files::default() };
    resolved.reconcile("loop_limits.min_hours", "loop_limits.max_hours");
    resolved.reconcile("loop_limits.min_iterations", "loop_limits.max_iterations");
    resolved
}

impl Resolved {
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.key.name == name)
    }

    pub fn number(&self, name: &str) -> f64 {
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

    /// What a loop of this engine goes by: the runner has limits of its own, and counts on progress every time.
    pub fn settings_for(&self, engine: Engine) -> Settings {
        let mut settings = self.settings();
        if engine == Engine::Runner {
            settings.max_iterations = self.count("run.max_iterations");
            settings.max_stuck = self.count("run.max_stuck");
            let said = self.row("circuit.stagnation").is_some_and(|row| row.source != Source::Default);
            if !said {
                settings.circuit.stagnation = RUNNERS_STAGNATION;
            }
        }
        settings
    }

    /// What only the runner goes by.
    pub fn run_settings(&self) -> RunSettings {
        let ms = |name: &str, unit: f64| (self.number(name) * unit).round() as i64;
        RunSettings {
            timeout_ms: ms("run.timeout_minutes", 60_000.0),
            calls_per_hour: self.count("run.calls_per_hour"),
            delay_ms: ms("run.delay_seconds", 1000.0),
            review_cap: self.count("run.review_cap"),
            heartbeat: heartbeat::Settings {
                interval: ms("heartbeat.interval_seconds", 1000.0),
                threshold: u32::try_from(self.count("heartbeat.threshold")).unwrap_or(u32::MAX),
                grace: ms("heartbeat.startup_grace_seconds", 1000.0),
                tool_limit: ms("heartbeat.tool_seconds", 1000.0),
            },
        }
    }

    pub fn settings(&self) -> Settings {
        let ms = |name: &str, unit: f64| {
            let number = self.number(name);
            // Zero is no limit: a small one must not become that.
            ((number * unit).round() as i64).max(i64::from(number > 0.0))
        };
        const HOUR: f64 = 3_600_000.0;
        Settings {
            min_runtime_ms: ms("loop_limits.min_hours", HOUR),
            max_runtime_ms: ms("loop_limits.max_hours", HOUR),
            min_iterations: self.count("loop_limits.min_iterations"),
            max_iterations: self.count("loop_limits.max_iterations"),
            max_cost_usd: Some(self.number("loop_limits.max_cost_usd")).filter(|usd| *usd > 0.0),
            pause_threshold_ms: ms("loop_limits.cli_gap_threshold_seconds", 1000.0).max(1),
            promise: clean::line(&self.text("completion.promise").unwrap_or_default()),
            circuit: Thresholds {
                same_error: self.count("circuit.same_error"),
                output_decline: self.count("circuit.output_decline").min(100),
                test_only: self.count("circuit.test_only"),
                stagnation: self.count("circuit.stagnation"),
                idle: self.count("circuit.idle"),
                repetition: self.count("circuit.repetition"),
                completion: self.count("circuit.completion"),
                safety_completion: self.count("circuit.safety_completion"),
            },
            max_stuck: 0,
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
    pub circuit: Thresholds,
    /// Iterations of the runner without a commit.
    pub max_stuck: u64,
    pub guidance_max_age_ms: i64,
    pub session_expiration_ms: i64,
}

/// In a session research is allowed; an iteration of the runner is to bring the work forward.
const RUNNERS_STAGNATION: u64 = 3;

/// What only the runner goes by. Zero means no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunSettings {
    pub timeout_ms: i64,
    pub calls_per_hour: u64,
    pub delay_ms: i64,
    pub review_cap: u64,
    pub heartbeat: heartbeat::Settings,
}

/// When the circuit breaker trips; zero switches a condition off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thresholds {
    pub same_error: u64,
    /// In percent.
    pub output_decline: u64,
    pub test_only: u64,
    pub stagnation: u64,
    pub idle: u64,
    pub repetition: u64,
    /// Phrases of completion that an exit signal needs beside it.
    pub completion: u64,
    pub safety_completion: u64,
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
            (settings.pause_threshold_ms, settings.circuit.idle, settings.promise.as_str()),
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
        assert_eq!((settings.promise.as_str(), settings.circuit.idle), ("DONE", 0));
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
    fn a_bad_command_falls_alone_and_the_next_layer_stands_where_none_is_left() {
        let layers = [
            layer(Source::Project, "p.json", json!({"completion.verify": ["cargo test", 5, ""]})),
            layer(Source::User, "u.json", json!({"completion.verify": ["make"]})),
        ];
        let resolved = resolve(&layers);
        assert_eq!(resolved.list("completion.verify"), [json!("cargo test")]);
        assert_eq!(resolved.warnings.len(), 2, "{:?}", resolved.warnings);
        assert_eq!(
            resolved.warnings[0],
            "p.json: completion.verify 5 is not a command of 1 to 2000 characters, ignored"
        );
        let none = [layer(Source::Project, "p.json", json!({"completion.verify": [5]})), layers[1].clone()];
        assert_eq!(resolve(&none).list("completion.verify"), [json!("make")]);
        let empty = [layer(Source::Project, "p.json", json!({"completion.verify": []})), layers[1].clone()];
        assert!(resolve(&empty).list("completion.verify").is_empty(), "an empty list is a word");
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
    fn a_limit_stays_one_however_small() {
        let small = json!({"loop_limits.max_hours": 1e-8, "loop_limits.cli_gap_threshold_seconds": 1e-8});
        let settings = resolve(&[layer(Source::Flag, "flags", small)]).settings();
        assert_eq!((settings.max_runtime_ms, settings.pause_threshold_ms), (1, 1));
    }

    #[test]
    fn a_promise_shows() {
        let promise = find("completion.promise").unwrap();
        for useless in ["", " ", "\u{200b}", "\u{1b}", "<promise>DONE</promise>"] {
            assert!(promise.read(&json!(useless)).is_err(), "{useless:?}");
        }
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
        let of = |key: &str| find(key).unwrap().variables().collect::<Vec<_>>();
        assert_eq!(of("loop_limits.max_iterations")[0], "RALPH_MAX_ITERATIONS");
        assert_eq!(of("run.max_iterations"), ["RALPH_RUN_MAX_ITERATIONS", "RALPH_MAX_ITERATIONS"]);
        for (flag, key, ..) in RUN_FLAGS {
            let name = format!("RALPH_{}", flag.to_uppercase().replace('-', "_"));
            assert!(of(key).contains(&name), "{key}: {:?}", of(key));
        }
    }
}
