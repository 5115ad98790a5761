//! Settings: layers of given values, and the effective ones.

pub mod command;
pub mod keys;
pub mod loosening;
pub mod tool_rule;

use super::record::Engine;
use crate::core::circuit::condition::PerCondition;
pub use crate::core::settings::keys::{
    KEYS, PRESETS, Preset, SettingKey, ValueKind, aliases, find, find_flag, nearest,
};
use crate::core::text::clean;
use crate::core::time::heartbeat;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Where a value comes from, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingSource {
    Default,
    User,
    Project,
    Environment,
    Preset,
    Flag,
}

impl SettingSource {
    pub fn name(self) -> &'static str {
        match self {
            SettingSource::Default => "default",
            SettingSource::User => "user",
            SettingSource::Project => "project",
            SettingSource::Environment => "environment",
            SettingSource::Preset => "preset",
            SettingSource::Flag => "flag",
        }
    }
}

/// Values given in one place, by key. `place` names it in warnings: a file, a variable, a flag.
#[derive(Clone, Debug)]
pub struct Layer {
    pub source: SettingSource,
    pub place: String,
    pub values: Map<String, Value>,
}

/// One effective value and where it comes from.
#[derive(Clone, Debug)]
pub struct SettingRow {
    pub key: &'static SettingKey,
    pub value: Value,
    pub source: SettingSource,
    pub place: String,
}

#[derive(Clone, Debug)]
pub struct Resolved {
    pub rows: Vec<SettingRow>,
    pub warnings: Vec<String>,
    /// Commands in the project's file that the user has not trusted; they are in no row and are not executed.
    pub withheld: Vec<SettingRow>,
    /// What the files said, as far as they could be read.
    pub files: Files,
    /// The limits that the project's file gives, to be kept with a loop that starts.
    pub limits: Map<String, Value>,
    /// What the project's file loosens at a start.
    pub loosened: Vec<String>,
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

/// The setting of the tools that need no permission.
pub const ALLOWED_TOOLS: &str = "permission.allow";
/// The setting of the check commands.
pub const CHECKS: &str = "completion.verify";

/// Returns the strongest usable value of each key; `layers` are sorted from strong to weak. A bad value is named
/// in a warning, and the next layer counts for its key.
pub fn resolve(layers: &[Layer]) -> Resolved {
    let mut warnings = Vec::new();
    let mut rows = Vec::with_capacity(KEYS.len());
    for key in &KEYS {
        let mut row =
            SettingRow { key, value: key.default(), source: SettingSource::Default, place: String::new() };
        for layer in layers {
            let Some(value) = layer.values.get(key.name).filter(|value| !value.is_null()) else { continue };
            let (value, wrong) = key.usable(value);
            warnings
                .extend(wrong.iter().map(|wrong| format!("{}: {} {wrong}, ignored", layer.place, key.name)));
            if let Some(value) = value {
                row = SettingRow { key, value, source: layer.source, place: layer.place.clone() };
                break;
            }
        }
        rows.push(row);
    }
    let mut resolved = Resolved {
        rows,
        warnings,
        withheld: Vec::new(),
        files: Files::default(),
        limits: Map::new(),
        loosened: Vec::new(),
    };
    for (min, max) in RANGES {
        resolved.reconcile(min, max);
    }
    resolved
}

/// Each minimum with its maximum.
const RANGES: [(&str, &str); 2] = [
    ("loop_limits.min_hours", "loop_limits.max_hours"),
    ("loop_limits.min_iterations", "loop_limits.max_iterations"),
];

impl Resolved {
    pub fn row(&self, name: &str) -> Option<&SettingRow> {
        self.rows.iter().find(|row| row.key.name == name)
    }

    /// Returns the commands of a setting.
    pub fn commands(&self, name: &str) -> Vec<String> {
        self.row(name).map(|row| row.key.commands(&row.value)).unwrap_or_default()
    }

    /// Adds check commands that come from another place than the settings.
    pub fn add_checks(&mut self, commands: &[String], place: &str) {
        let Some(row) = self.rows.iter_mut().find(|row| row.key.name == CHECKS) else { return };
        let mut all = row.key.commands(&row.value);
        let new: Vec<String> = commands.iter().filter(|command| !all.contains(command)).cloned().collect();
        if all.is_empty() {
            (row.source, row.place) = (SettingSource::Project, place.to_owned());
        }
        all.extend(new);
        row.value = all.into();
    }

    pub fn number(&self, name: &str) -> f64 {
        self.row(name).and_then(|row| row.value.as_f64()).unwrap_or(0.0)
    }

    fn above_zero(&self, name: &str) -> Option<f64> {
        Some(self.number(name)).filter(|number| *number > 0.0)
    }

    fn count(&self, name: &str) -> u64 {
        self.row(name).and_then(|row| row.value.as_u64()).unwrap_or(0)
    }

    /// Returns a duration in milliseconds. Zero often means no limit, so only zero itself becomes that.
    fn milliseconds(&self, name: &str) -> i64 {
        let Some(SettingRow { key, value, .. }) = self.row(name) else { return 0 };
        let (ValueKind::Duration(unit) | ValueKind::PositiveDuration(unit)) = key.kind else { return 0 };
        let number = value.as_f64().unwrap_or(0.0);
        unit.to_ms(number).max(i64::from(number > 0.0))
    }

    pub fn is_on(&self, name: &str) -> bool {
        self.row(name).is_some_and(|row| row.value == Value::Bool(true))
    }

    /// Returns the elements of a list.
    pub fn list(&self, name: &str) -> &[Value] {
        self.row(name).and_then(|row| row.value.as_array()).map_or(&[], Vec::as_slice)
    }

    /// Resolves a minimum above its maximum, with which the loop could never finish: the value of the weaker
    /// source is changed, between equals the minimum.
    fn reconcile(&mut self, min: &str, max: &str) {
        let (low, high) = (self.number(min), self.number(max));
        if high == 0.0 || low <= high {
            return;
        }
        let source = |name: &str| self.row(name).map(|row| row.source);
        let (changed, to, word) =
            if source(min) > source(max) { (max, min, "raised") } else { (min, max, "lowered") };
        self.warnings.push(format!("{min} {low} is above {max} {high}: {changed} is {word} to it"));
        let value = self.row(to).map(|row| row.value.clone()).unwrap_or_default();
        if let Some(row) = self.rows.iter_mut().find(|row| row.key.name == changed) {
            row.value = value;
        }
    }

    /// Returns the settings of a loop of this engine: the runner has limits and breaker defaults of its own.
    pub fn settings_for(&self, engine: Engine) -> Settings {
        let mut settings = self.settings();
        if engine == Engine::Runner {
            settings.max_iterations = self.count("run.max_iterations");
            settings.max_stuck = self.count("run.max_stuck");
            let is_given = |key: &str| self.row(key).is_some_and(|row| row.source != SettingSource::Default);
            settings.circuit = PerCondition::new(|condition| match is_given(condition.setting) {
                true => self.count(condition.setting),
                false => condition.runner_default,
            });
        }
        settings
    }

    /// Returns the settings that only the runner has.
    pub fn run_settings(&self) -> RunSettings {
        RunSettings {
            timeout_ms: self.milliseconds("run.timeout_minutes"),
            calls_per_hour: self.count("run.calls_per_hour"),
            delay_ms: self.milliseconds("run.delay_seconds"),
            review_cap: self.count("run.review_cap"),
            heartbeat: heartbeat::HeartbeatSettings {
                interval: self.milliseconds("heartbeat.interval_seconds"),
                threshold: u32::try_from(self.count("heartbeat.threshold")).unwrap_or(u32::MAX),
                grace: self.milliseconds("heartbeat.startup_grace_seconds"),
                tool_limit: self.milliseconds("heartbeat.tool_seconds"),
            },
        }
    }

    /// Returns how the user is notified.
    pub fn notify(&self) -> NotifySettings {
        let text = |name: &str| self.row(name).and_then(|row| row.value.as_str()).map(str::to_owned);
        NotifySettings {
            command: text("notify.command"),
            url: text("notify.url"),
            format: text("notify.format").unwrap_or_default(),
            timeout_ms: self.milliseconds("notify.timeout_seconds"),
            answers: text("notify.answers"),
            answer_ms: self.milliseconds("notify.answer_hours"),
            idle_ms: self.milliseconds("notify.idle_minutes"),
            terminal: self.is_on("notify.terminal"),
        }
    }

    /// Returns how old guidance may become.
    pub fn guidance_max_age_ms(&self) -> i64 {
        self.milliseconds("guidance.max_age_hours")
    }

    /// Returns the settings of a loop in a session.
    pub fn settings(&self) -> Settings {
        let promise = self.row("completion.promise").and_then(|row| row.value.as_str());
        Settings {
            min_runtime_ms: self.milliseconds("loop_limits.min_hours"),
            max_runtime_ms: self.milliseconds("loop_limits.max_hours"),
            min_iterations: self.count("loop_limits.min_iterations"),
            max_iterations: self.count("loop_limits.max_iterations"),
            max_cost_usd: self.above_zero("loop_limits.max_cost_usd"),
            max_tokens: self.count("loop_limits.max_tokens"),
            max_context_percent: self.above_zero("loop_limits.max_context_percent"),
            quota: QuotaSettings {
                land_at_percent: self.above_zero("quota.land_at_percent"),
                reserve_percent: self.above_zero("quota.reserve_percent"),
                stops: self.row("quota.on_limit").is_some_and(|row| row.value == "stop"),
            },
            daily_usd: self.above_zero("budget.daily_usd"),
            daily_tokens: self.count("budget.daily_tokens"),
            pause_threshold_ms: self.milliseconds("loop_limits.cli_gap_threshold_seconds"),
            promise: clean::line(promise.unwrap_or_default()),
            checks: self.commands(CHECKS),
            circuit: PerCondition::new(|condition| self.count(condition.setting)),
            completion_phrases: self.count("circuit.completion"),
            max_stuck: 0,
            guidance_max_age_ms: self.guidance_max_age_ms(),
            session_expiration_ms: self.milliseconds("run.session_expiration_hours"),
            allowed_tools: self.commands(ALLOWED_TOOLS),
            permission_wait_ms: self.milliseconds("permission.wait_minutes"),
            background_wait_ms: self.milliseconds("background.wait_minutes"),
            max_outage_ms: self.milliseconds("run.max_outage_hours"),
        }
    }
}

/// The settings of a loop. Zero in a maximum means no limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub min_runtime_ms: i64,
    pub max_runtime_ms: i64,
    pub min_iterations: u64,
    pub max_iterations: u64,
    pub max_cost_usd: Option<f64>,
    pub max_tokens: u64,
    /// The context level at which the agent hands over to a new context.
    pub max_context_percent: Option<f64>,
    pub quota: QuotaSettings,
    /// The limits of one day over all loops of this user.
    pub daily_usd: Option<f64>,
    pub daily_tokens: u64,
    pub pause_threshold_ms: i64,
    pub promise: String,
    /// The commands that must pass before completion is accepted.
    pub checks: Vec<String>,
    /// The setting of each breaker condition; zero switches it off.
    pub circuit: PerCondition,
    /// Completion phrases that an exit signal needs beside it; zero accepts the promise only.
    pub completion_phrases: u64,
    /// Iterations of the runner without a commit.
    pub max_stuck: u64,
    pub guidance_max_age_ms: i64,
    pub session_expiration_ms: i64,
    /// Rules for tools that need no permission.
    pub allowed_tools: Vec<String>,
    /// How long a permission prompt stays open; zero leaves it to the client.
    pub permission_wait_ms: i64,
    /// How long background commands are waited for.
    pub background_wait_ms: i64,
    /// How long a service may fail.
    pub max_outage_ms: i64,
}

/// How a loop treats the windows of the user's plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QuotaSettings {
    pub land_at_percent: Option<f64>,
    pub reserve_percent: Option<f64>,
    /// The loop ends at a usage limit instead of waiting for its reset.
    pub stops: bool,
}

/// The settings that only the runner has. Zero means no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunSettings {
    pub timeout_ms: i64,
    pub calls_per_hour: u64,
    pub delay_ms: i64,
    pub review_cap: u64,
    pub heartbeat: heartbeat::HeartbeatSettings,
}

/// How the user is notified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotifySettings {
    pub command: Option<String>,
    pub url: Option<String>,
    /// `auto`, or the name of a format.
    pub format: String,
    pub timeout_ms: i64,
    /// The topic from which answers are taken.
    pub answers: Option<String>,
    pub answer_ms: i64,
    /// Zero means that the user is not told of a loop without progress.
    pub idle_ms: i64,
    pub terminal: bool,
}

impl Settings {
    /// Returns whether what all loops of the user spend in a day is limited.
    pub fn limits_a_day(&self) -> bool {
        self.daily_usd.is_some() || self.daily_tokens > 0
    }
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

    fn layer(source: SettingSource, place: &str, values: Value) -> Layer {
        let Value::Object(values) = values else { panic!("an object") };
        Layer { source, place: place.into(), values }
    }

    #[test]
    fn defaults_are_safe() {
        let settings = Settings::default();
        assert_eq!((settings.max_iterations, settings.max_runtime_ms), (50, 9 * 3_600_000));
        assert_eq!(
            (settings.pause_threshold_ms, settings.circuit.get("idle"), settings.promise.as_str()),
            (300_000, 5, "COMPLETE")
        );
        assert_eq!(settings.max_cost_usd, None);
    }

    #[test]
    fn the_stronger_layer_wins_even_where_it_equals_the_default() {
        let layers = [
            layer(SettingSource::Flag, "flags", json!({"loop_limits.max_iterations": "50"})),
            layer(SettingSource::Environment, "RALPH_MAX_HOURS", json!({"loop_limits.max_hours": "08"})),
            layer(
                SettingSource::Project,
                "p.json",
                json!({"loop_limits.max_iterations": 7, "loop_limits.max_hours": 3}),
            ),
            layer(SettingSource::User, "u.json", json!({"completion.promise": "DONE", "circuit.idle": 0})),
        ];
        let resolved = resolve(&layers);
        let settings = resolved.settings();
        assert_eq!((settings.max_iterations, settings.max_runtime_ms), (50, 8 * 3_600_000));
        assert_eq!((settings.promise.as_str(), settings.circuit.get("idle")), ("DONE", 0));
        assert_eq!(resolved.row("loop_limits.max_iterations").unwrap().source, SettingSource::Flag);
        assert_eq!(resolved.warnings, Vec::<String>::new());
    }

    #[test]
    fn a_bad_value_is_ignored_alone_and_named() {
        let layers = [
            layer(
                SettingSource::Project,
                "p.json",
                json!({"loop_limits.max_hours": "soon", "loop_limits.max_iterations": 7,
                "circuit.idle": -1, "completion.promise": 5, "loop_limits.min_hours": null, "guidance.max_age_hours": [1]}),
            ),
            layer(SettingSource::User, "u.json", json!({"loop_limits.max_hours": 4})),
        ];
        let resolved = resolve(&layers);
        assert_eq!(resolved.settings().max_runtime_ms, 4 * 3_600_000);
        assert_eq!(resolved.settings().max_iterations, 7);
        assert_eq!(resolved.warnings.len(), 4, "{:?}", resolved.warnings);
        assert_eq!(
            resolved.warnings[0],
            "p.json: loop_limits.max_hours 'soon' is not a duration such as 90m, 1h30m or a number of hours, ignored"
        );
    }

    #[test]
    fn a_bad_command_is_left_out_and_without_a_valid_one_the_next_layer_counts() {
        let layers = [
            layer(SettingSource::Project, "p.json", json!({"completion.verify": ["cargo test", 5, ""]})),
            layer(SettingSource::User, "u.json", json!({"completion.verify": ["make"]})),
        ];
        let resolved = resolve(&layers);
        assert_eq!(resolved.list("completion.verify"), [json!("cargo test")]);
        assert_eq!(resolved.warnings.len(), 2, "{:?}", resolved.warnings);
        assert_eq!(
            resolved.warnings[0],
            "p.json: completion.verify 5 is not a command of 1 to 2000 characters, ignored"
        );
        let none =
            [layer(SettingSource::Project, "p.json", json!({"completion.verify": [5]})), layers[1].clone()];
        assert_eq!(resolve(&none).list("completion.verify"), [json!("make")]);
        let empty =
            [layer(SettingSource::Project, "p.json", json!({"completion.verify": []})), layers[1].clone()];
        assert!(resolve(&empty).list("completion.verify").is_empty(), "an empty list is a value");
    }

    #[test]
    fn a_minimum_over_its_maximum_is_lowered() {
        let resolved = resolve(&[layer(
            SettingSource::Flag,
            "flags",
            json!({"loop_limits.min_hours": 5, "loop_limits.max_hours": 2}),
        )]);
        assert_eq!(resolved.settings().min_runtime_ms, 2 * 3_600_000);
        assert_eq!(resolved.warnings.len(), 1);
        let preset = layer(SettingSource::Preset, "preset", json!({"loop_limits.max_hours": 1}));
        let flag = layer(SettingSource::Flag, "flags", json!({"loop_limits.min_hours": 2}));
        assert_eq!(
            resolve(&[flag, preset]).settings().max_runtime_ms,
            2 * 3_600_000,
            "a flag wins over a preset"
        );
    }

    #[test]
    fn a_limit_stays_one_however_small() {
        let small = json!({"loop_limits.max_hours": 1e-8, "loop_limits.cli_gap_threshold_seconds": 1e-8});
        let settings = resolve(&[layer(SettingSource::Flag, "flags", small)]).settings();
        assert_eq!((settings.max_runtime_ms, settings.pause_threshold_ms), (1, 1));
    }

    #[test]
    fn a_promise_must_be_visible_text() {
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
        for bad in ["NaN", "inf", "-0.1", "4w", "2e9"] {
            assert!(hours.read(&json!(bad)).is_err(), "{bad}");
        }
        assert!(find_flag("gap-threshold").unwrap().read(&json!(0)).is_err());
        assert!(find_flag("gap-threshold").unwrap().read(&json!("0s")).is_err());
    }

    #[test]
    fn a_wait_for_the_user_is_at_most_a_day() {
        let wait = find("permission.wait_minutes").unwrap();
        assert_eq!(wait.read(&json!("24h")), Ok(json!(1440)));
        assert_eq!(wait.read(&json!(100_000)), Err("'100000' is above 1440".into()));
        assert!(wait.read(&json!("25h")).is_err());
    }

    #[test]
    fn a_duration_is_kept_as_a_number_of_the_keys_unit() {
        for (key, text, number) in [
            ("loop_limits.max_hours", "4h", json!(4)),
            ("loop_limits.max_hours", "90m", json!(1.5)),
            ("loop_limits.max_hours", "1h 30m", json!(1.5)),
            ("run.timeout_minutes", "1h30m", json!(90)),
            ("run.delay_seconds", "1m", json!(60)),
            ("guidance.max_age_hours", "2d", json!(48)),
            ("run.delay_seconds", "7.5", json!(7.5)),
        ] {
            assert_eq!(find(key).unwrap().read(&json!(text)), Ok(number), "{key} {text}");
        }
    }

    #[test]
    fn the_runner_has_breaker_defaults_of_its_own_and_a_given_value_counts_in_both() {
        let stagnation =
            |resolved: &Resolved, engine| resolved.settings_for(engine).circuit.get("stagnation");
        let defaults = resolve(&[]);
        assert_eq!(stagnation(&defaults, Engine::InSession), 5);
        assert_eq!(stagnation(&defaults, Engine::Runner), 3);
        let given = resolve(&[layer(SettingSource::User, "u.json", json!({"circuit.stagnation": 5}))]);
        assert_eq!(stagnation(&given, Engine::Runner), 5);
    }

    #[test]
    fn variables_follow_from_flag_and_key() {
        let names: Vec<_> = find_flag("completion-promise").unwrap().variables().collect();
        assert_eq!(names, ["RALPH_PROMISE", "RALPH_COMPLETION_PROMISE"]);
        let of = |key: &str| find(key).unwrap().variables().collect::<Vec<_>>();
        assert_eq!(of("loop_limits.max_iterations")[0], "RALPH_MAX_ITERATIONS");
        assert_eq!(of("run.max_iterations"), ["RALPH_RUN_MAX_ITERATIONS", "RALPH_MAX_ITERATIONS"]);
        for (flag, key) in KEYS.iter().filter_map(|key| Some((key.run_flag?, key.name))) {
            let name = format!("RALPH_{}", flag.to_uppercase().replace('-', "_"));
            assert!(of(key).contains(&name), "{key}: {:?}", of(key));
        }
    }
}
