//! Every setting: its key, flags, kind of value, default and help.

use super::command;
use super::loosening::LooseningRule;
use super::tool_rule::ToolRule;
use crate::core::circuit::condition::{CONDITIONS, Condition};
use crate::core::event::notice::address::Address;
use crate::core::text::{clean, nearest};
use crate::core::time::duration::{HOURS, MINUTES, SECONDS, Unit};
use serde_json::{Map, Value};
use std::fmt;

/// A wrong value is quoted in so many columns.
const MAX_QUOTED_COLUMNS: usize = 60;

/// What a value must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A duration, kept as a number of this unit; 0 is allowed.
    Duration(Unit),
    /// A duration above 0.
    PositiveDuration(Unit),
    Count,
    Dollars,
    /// A number from 0 to 100; a percent sign may follow it.
    Percent,
    Text,
    /// `true` or `false`.
    Switch,
    /// A list, as JSON.
    List,
    /// A command line.
    Command,
    /// A list of command lines; one alone may be given as text.
    Commands,
    /// A list of rules for tools that need no permission; one alone may be given as text.
    ToolRules,
    /// An address that the user's words are sent to or taken from.
    Url,
    /// One of these words.
    Choice(&'static [&'static str]),
}

impl ValueKind {
    /// Returns whether its values act for the user, as commands and addresses do: from a project's file only with the
    /// user's trust.
    pub fn is_executed(self) -> bool {
        matches!(self, ValueKind::Command | ValueKind::Commands | ValueKind::ToolRules | ValueKind::Url)
    }

    /// Returns whether its flag may be given several times, each time with one element of a list.
    pub fn is_repeatable(self) -> bool {
        matches!(self, ValueKind::Commands | ValueKind::ToolRules)
    }

    /// Says what is wrong with one element of a repeatable list.
    pub fn wrong_element(self, text: &str) -> Option<String> {
        match self {
            ValueKind::ToolRules => ToolRule::parse(text).err(),
            _ => (!command::is_valid(text))
                .then(|| format!("{} is not {}", command::shown(&text.into()), ValueKind::Command)),
        }
    }

    pub fn is_duration(self) -> bool {
        matches!(self, ValueKind::Duration(_) | ValueKind::PositiveDuration(_))
    }

    /// Returns how many milliseconds a value is, if it is a duration.
    pub fn in_ms(self, value: Option<f64>) -> Option<i64> {
        match self {
            ValueKind::Duration(unit) | ValueKind::PositiveDuration(unit) => {
                value.map(|value| unit.to_ms(value))
            }
            _ => None,
        }
    }

    /// Returns the placeholder of a value in help texts.
    pub fn value_name(self) -> &'static str {
        match self {
            ValueKind::Duration(unit) | ValueKind::PositiveDuration(unit) => unit.name,
            ValueKind::Count => "N",
            ValueKind::Dollars => "USD",
            ValueKind::Percent => "PERCENT",
            ValueKind::Text => "TEXT",
            ValueKind::Switch => "BOOL",
            ValueKind::List => "JSON",
            ValueKind::Command | ValueKind::Commands => "CMD",
            ValueKind::ToolRules => "RULE",
            ValueKind::Url => "URL",
            ValueKind::Choice(_) => "WORD",
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum DefaultValue {
    Unset,
    Number(u64),
    Text(&'static str),
    On,
    EmptyList,
}

#[derive(Clone, Copy, Debug)]
pub struct SettingKey {
    pub name: &'static str,
    /// Flag of `ralph start`, without dashes; also of `ralph run`, unless another key has it there.
    pub flag: Option<&'static str>,
    /// Flag of `ralph run` alone.
    pub run_flag: Option<&'static str>,
    pub kind: ValueKind,
    /// What a project's file may not do to a loop that runs.
    pub loosens: LooseningRule,
    default: DefaultValue,
    /// The highest number of its unit.
    most: f64,
    pub help: &'static str,
}

/// A number above this is a mistake in any unit.
const MAX_NUMBER: f64 = 1e9;

const fn key(
    name: &'static str,
    kind: ValueKind,
    default: DefaultValue,
    loosens: LooseningRule,
    help: &'static str,
) -> SettingKey {
    SettingKey { name, flag: None, run_flag: None, kind, loosens, default, most: MAX_NUMBER, help }
}

impl SettingKey {
    const fn flag(self, flag: &'static str) -> SettingKey {
        SettingKey { flag: Some(flag), ..self }
    }

    const fn run_flag(self, flag: &'static str) -> SettingKey {
        SettingKey { run_flag: Some(flag), ..self }
    }

    const fn at_most(self, most: f64) -> SettingKey {
        SettingKey { most, ..self }
    }
}

use DefaultValue::{EmptyList, Number, On, Unset};
use LooseningRule::{Added, Higher, HigherOrZero, Lower, LowerNotZero, Never, Off, Removed, To};
use ValueKind::{Count, Duration, PositiveDuration};

/// Every setting but those of the breaker's conditions.
#[rustfmt::skip]
const OTHER_KEYS: &[SettingKey] = &[
    key("loop_limits.min_hours", Duration(HOURS), Number(0), Lower,
        "runtime before completion is accepted").flag("min-hours"),
    key("loop_limits.max_hours", Duration(HOURS), Number(9), HigherOrZero,
        "runtime limit, 0 = none").flag("max-hours"),
    key("loop_limits.min_iterations", Count, Number(0), Lower,
        "iterations before completion is accepted").flag("min-iterations"),
    key("loop_limits.max_iterations", Count, Number(50), HigherOrZero,
        "iteration limit, 0 = none").flag("max-iterations"),
    key("loop_limits.max_cost_usd", ValueKind::Dollars, Unset, HigherOrZero,
        "cost limit in US dollars, if Claude Code reports costs, 0 = none").flag("max-cost"),
    key("loop_limits.max_tokens", Count, Number(0), HigherOrZero,
        "token limit, cached tokens included, 0 = none").flag("max-tokens"),
    key("loop_limits.max_context_percent", ValueKind::Percent, Number(0), HigherOrZero,
        "context level at which the agent writes a handover and continues in a new context, 0 = off").flag("max-context"),
    key("loop_limits.cli_gap_threshold_seconds", PositiveDuration(SECONDS), Number(300), Lower,
        "silence that counts as a pause, not as runtime").flag("gap-threshold"),
    key("quota.land_at_percent", ValueKind::Percent, Number(0), HigherOrZero,
        "percentage of a usage limit at which the agent finishes up and the loop waits for the reset, 0 = off").flag("land-at"),
    key("quota.reserve_percent", ValueKind::Percent, Number(0), Lower,
        "percentage of each usage limit to leave unused, 0 = none").flag("reserve"),
    key("quota.on_limit", ValueKind::Choice(&["wait", "stop"]), DefaultValue::Text("wait"), To("wait"),
        "at a usage limit: wait for the reset (default), or stop").flag("on-limit"),
    key("budget.daily_usd", ValueKind::Dollars, Unset, HigherOrZero,
        "cost limit in US dollars of all your loops in one day (UTC), 0 = none"),
    key("budget.daily_tokens", Count, Number(0), HigherOrZero,
        "token limit of all your loops in one day (UTC), 0 = none"),
    key("completion.promise", ValueKind::Text, DefaultValue::Text("COMPLETE"), Never,
        "text inside `<promise>…</promise>` with which the agent claims completion").flag("promise"),
    key("completion.verify", ValueKind::Commands, EmptyList, Never,
        "check: a command that must pass before completion is accepted; may be repeated").flag("verify"),
    key("completion.verify_timeout_seconds", PositiveDuration(SECONDS), Number(600), Higher,
        "time limit of each check; all together at most 3500 seconds"),
    // The client ends the hook that waits a little after a day, see `hooks/steering.json`.
    key("permission.wait_minutes", Duration(MINUTES), Number(5), HigherOrZero,
        "time for you to answer a permission prompt of a loop before it is denied (at most 24 hours), 0 = leave it to Claude Code")
        .at_most(1440.0),
    key("permission.allow", ValueKind::ToolRules, EmptyList, Never,
        "a tool that the loop may use without asking: Tool, 'Bash(command)' or 'Bash(prefix:*)'; may be repeated")
        .flag("allow-tool"),
    key("background.wait_minutes", Duration(MINUTES), Number(10), Higher,
        "time for background commands to end before the loop continues without them, 0 = do not wait"),
    key("guidance.max_age_hours", Duration(HOURS), Number(24), Lower,
        "age at which guidance expires"),
    key("scan.enabled", ValueKind::Switch, On, Off,
        "scan for constraints at every turn"),
    key("scan.rules", ValueKind::List, EmptyList, Removed,
        "your own scan rules, in addition to the built-in ones"),
    key("scan.exclude", ValueKind::List, EmptyList, Added,
        "globs of files that are not scanned"),
    key("run.session_expiration_hours", PositiveDuration(HOURS), Number(24), Never,
        "time without activity after which a loop of another session ends, and after which an ended loop is removed from the state file"),
    key("run.max_outage_hours", Duration(HOURS), Number(12), HigherOrZero,
        "how long a loop waits while the API fails, 0 = no limit").flag("max-outage"),
    key("run.max_iterations", Count, Number(50), HigherOrZero,
        "iteration limit of `ralph run`, 0 = none").run_flag("max-iterations"),
    key("run.max_stuck", Count, Number(3), HigherOrZero,
        "iterations in a row without a commit before the run ends as stuck, 0 = off").run_flag("max-stuck"),
    key("run.timeout_minutes", Duration(MINUTES), Number(15), HigherOrZero,
        "time limit of one iteration, 0 = none").run_flag("timeout"),
    key("run.calls_per_hour", Count, Number(100), HigherOrZero,
        "iterations started within any hour, 0 = no limit").run_flag("calls-per-hour"),
    key("run.delay_seconds", Duration(SECONDS), Number(3), Lower,
        "pause between two iterations").run_flag("delay"),
    key("run.review_cap", Count, Number(5), LowerNotZero,
        "reviews of one story after which it is approved automatically").run_flag("review-cap"),
    key("heartbeat.interval_seconds", PositiveDuration(SECONDS), Number(60), Higher,
        "silence that counts as one missed heartbeat; recommended 30-120s").run_flag("heartbeat-interval"),
    key("heartbeat.threshold", Count, Number(5), HigherOrZero,
        "missed heartbeats at which a silent agent is stopped. With interval=60s and threshold=5, stall detection \
         triggers after 300s of no output").run_flag("heartbeat-threshold"),
    key("heartbeat.startup_grace_seconds", Duration(SECONDS), Number(120), Higher,
        "time before the first heartbeat is expected").run_flag("startup-grace-period"),
    key("heartbeat.tool_seconds", PositiveDuration(SECONDS), Number(1800), Higher,
        "silence allowed while a tool of the agent runs").run_flag("tool-limit"),
    key("notify.command", ValueKind::Command, Unset, Never,
        "command executed when a loop ends, asks, waits for a permission or makes no progress").flag("notify"),
    key("notify.url", ValueKind::Url, Unset, Never,
        "address to which every notification is sent as JSON: ntfy, Slack or any webhook").flag("notify-url"),
    key("notify.format", ValueKind::Choice(&["auto", "json", "ntfy", "slack"]), DefaultValue::Text("auto"), Never,
        "format of the requests to `notify.url`: json, ntfy, slack, or auto (by its host)"),
    key("notify.timeout_seconds", PositiveDuration(SECONDS), Number(10), Never,
        "time limit of a request to `notify.url` or `notify.answers`"),
    key("notify.answers", ValueKind::Url, Unset, Never,
        "ntfy topic from which answers to questions are read; its name must be secret"),
    key("notify.answer_hours", PositiveDuration(HOURS), Number(12), Never,
        "how long `ralph run` or a session waits for an answer from `notify.answers`"),
    key("notify.idle_minutes", Duration(MINUTES), Number(30), Never,
        "time without progress after which you are notified, 0 = off"),
    key("notify.terminal", ValueKind::Switch, On, Off,
        "bell and, where supported, desktop notification in the terminal of `ralph run`"),
    key("circuit.completion", Count, Number(2), LowerNotZero,
        "completion phrases required with `EXIT_SIGNAL: true`, 0 = accept only the promise"),
];

/// Every setting; the breaker's conditions come last.
pub static KEYS: [SettingKey; OTHER_KEYS.len() + CONDITIONS.len()] = {
    let mut keys = [OTHER_KEYS[0]; OTHER_KEYS.len() + CONDITIONS.len()];
    let mut at = 0;
    while at < keys.len() {
        keys[at] = match at.checked_sub(OTHER_KEYS.len()) {
            None => OTHER_KEYS[at],
            Some(at) => {
                let Condition { setting, flag, default, help, .. } = CONDITIONS[at];
                SettingKey { flag, ..key(setting, Count, Number(default), HigherOrZero, help) }
            }
        };
        at += 1;
    }
    keys
};

/// Another spelling of a flag, as in the official plugin.
const ALIASES: [(&str, &str); 1] = [("completion-promise", "promise")];

pub struct Preset {
    pub name: &'static str,
    pub help: &'static str,
    values: [&'static str; 4],
}

pub const PRESETS: [Preset; 2] = [
    Preset { name: "poc", help: "preset: 5-10 minutes, 10-20 iterations", values: ["5m", "10m", "10", "20"] },
    Preset {
        name: "production",
        help: "preset: 4-9 hours, 50-99 iterations",
        values: ["4h", "9h", "50", "99"],
    },
];

impl Preset {
    /// Returns the values by key.
    pub fn values(&self) -> Map<String, Value> {
        let keys = ["min_hours", "max_hours", "min_iterations", "max_iterations"];
        let values = keys.iter().zip(self.values);
        values.map(|(key, value)| (format!("loop_limits.{key}"), Value::from(value))).collect()
    }
}

pub fn find(name: &str) -> Option<&'static SettingKey> {
    KEYS.iter().find(|key| key.name == name)
}

/// Finds the key that a mistyped name or flag was probably meant to be; the name may lack its group.
pub fn nearest(name: &str) -> Option<&'static str> {
    let own = |key: &'static SettingKey| key.name.rsplit('.').next().unwrap_or(key.name);
    let by = |spelling: fn(&'static SettingKey) -> Option<&'static str>| {
        let meant = nearest::nearest(name, KEYS.iter().filter_map(spelling))?;
        KEYS.iter().find(|key| spelling(key) == Some(meant)).map(|key| key.name)
    };
    by(|key| Some(key.name)).or_else(|| by(|key| key.flag)).or_else(|| by(|key| key.run_flag)).or_else(|| {
        let meant = nearest::nearest(name, KEYS.iter().map(own))?;
        KEYS.iter().find(|key| own(key) == meant).map(|key| key.name)
    })
}

/// Finds a key by its flag of `ralph start`.
pub fn find_flag(flag: &str) -> Option<&'static SettingKey> {
    let flag = ALIASES.iter().find(|(alias, _)| *alias == flag).map_or(flag, |(_, flag)| flag);
    KEYS.iter().find(|key| key.flag == Some(flag))
}

pub fn aliases(flag: &str) -> impl Iterator<Item = &'static str> + '_ {
    ALIASES.iter().filter(move |(_, of)| *of == flag).map(|(alias, _)| *alias)
}

impl SettingKey {
    /// Returns the environment variables that set this key, the strongest first. A flag of `ralph run` that
    /// `ralph start` has too comes last: the key's own name is more specific.
    pub fn variables(&self) -> impl Iterator<Item = String> {
        let shared = self.run_flag.is_some_and(|flag| find_flag(flag).is_some());
        let (own, shared) = if shared { (None, self.run_flag) } else { (self.run_flag, None) };
        [self.flag, own, Some(self.name), shared]
            .into_iter()
            .flatten()
            .map(|text| format!("RALPH_{}", text.to_ascii_uppercase().replace(['.', '-'], "_")))
    }

    /// Parses a value into the key's own type, or says what is wrong with it. Numbers may be given as text: `08`
    /// is eight.
    pub fn read(&self, value: &Value) -> Result<Value, String> {
        if self.kind.is_repeatable() {
            return command::all(self.kind, value);
        }
        let text = match value {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            Value::Bool(on) => on.to_string(),
            Value::Array(_) if self.kind == ValueKind::List => return Ok(value.clone()),
            other => {
                return Err(format!(
                    "{} is not {}",
                    clean::excerpt(&other.to_string(), MAX_QUOTED_COLUMNS),
                    self.kind
                ));
            }
        };
        let quoted = || clean::excerpt(&text, MAX_QUOTED_COLUMNS);
        let wrong = || format!("'{}' is not {}", quoted(), self.kind);
        let number = |number: Option<f64>, least: f64| {
            let number = number.filter(|number| (least..=MAX_NUMBER).contains(number)).ok_or_else(wrong)?;
            if number > self.most {
                return Err(format!("'{}' is above {}", quoted(), self.most));
            }
            // Written back into a file, six is 6 and not 6.0.
            Ok(if number.fract() == 0.0 { Value::from(number as u64) } else { Value::from(number) })
        };
        match self.kind {
            ValueKind::Count => text.parse::<u32>().map(Value::from).map_err(|_| wrong()),
            ValueKind::Duration(unit) => number(unit.parse(&text), 0.0),
            ValueKind::PositiveDuration(unit) => number(unit.parse(&text), f64::MIN_POSITIVE),
            ValueKind::Dollars => number(text.parse().ok(), 0.0),
            ValueKind::Percent => {
                let percent = text.trim_end_matches('%').trim_end().parse().ok();
                number(percent.filter(|percent| *percent <= 100.0), 0.0)
            }
            ValueKind::Switch => text.parse::<bool>().map(Value::from).map_err(|_| wrong()),
            ValueKind::List => serde_json::from_str(&text).ok().filter(Value::is_array).ok_or_else(wrong),
            ValueKind::Choice(words) => match words.iter().find(|word| **word == text) {
                Some(word) => Ok(Value::from(*word)),
                None => Err(wrong()),
            },
            ValueKind::Url => match Address::parse(&text) {
                Ok(_) => Ok(Value::from(text)),
                Err(why) => Err(format!("'{}' {why}", clean::excerpt(&text, 60))),
            },
            ValueKind::Text if text.contains("<promise>") || text.contains("</promise>") => {
                Err(format!("'{}' contains the tag: give only the text inside it", quoted()))
            }
            ValueKind::Text | ValueKind::Command | ValueKind::Commands | ValueKind::ToolRules => {
                value.as_str().filter(|text| command::is_valid(text)).map(Value::from).ok_or_else(wrong)
            }
        }
    }

    /// Returns what can be used of a value, and what is wrong with the rest: a bad command in a list is left out.
    pub fn usable(&self, value: &Value) -> (Option<Value>, Vec<String>) {
        match self.read(value) {
            Ok(value) => (Some(value), Vec::new()),
            Err(_) if self.kind.is_repeatable() => command::usable(self.kind, value),
            Err(wrong) => (None, vec![wrong]),
        }
    }

    /// Returns the command lines that a value of this key would execute.
    pub fn commands(&self, value: &Value) -> Vec<String> {
        match self.usable(value).0 {
            Some(Value::String(text)) if self.kind.is_executed() => vec![text],
            Some(Value::Array(list)) if self.kind.is_executed() => {
                list.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
            }
            _ => Vec::new(),
        }
    }

    pub fn default(&self) -> Value {
        match self.default {
            Unset => Value::Null,
            Number(number) => number.into(),
            DefaultValue::Text(text) => text.into(),
            On => true.into(),
            EmptyList => Value::Array(Vec::new()),
        }
    }

    /// Returns the help text with the default, where there is a number to tell.
    pub fn help_with_default(&self) -> String {
        match self.default {
            Number(number) => format!("{} [default: {number}]", self.help),
            _ => self.help.to_owned(),
        }
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |unit: &Unit| format!("90m, 1h30m or a number of {}", unit.name.to_lowercase());
        match self {
            ValueKind::Duration(unit) => write!(f, "a duration such as {}", number(unit)),
            ValueKind::PositiveDuration(unit) => write!(f, "a duration above 0, such as {}", number(unit)),
            ValueKind::Count => f.write_str("a whole number of 0 or more"),
            ValueKind::Dollars => f.write_str("an amount of 0 or more"),
            ValueKind::Percent => f.write_str("a percentage from 0 to 100"),
            ValueKind::Switch => f.write_str("true or false"),
            ValueKind::List => f.write_str("a JSON list"),
            ValueKind::Text => f.write_str("a text of 1 to 2000 characters"),
            ValueKind::Command => f.write_str("a command of 1 to 2000 characters"),
            ValueKind::Commands => f.write_str("a list of commands"),
            ValueKind::ToolRules => f.write_str("a list of rules for tools"),
            ValueKind::Url => f.write_str("an http or https address"),
            ValueKind::Choice(words) => write!(f, "one of {}", words.join(", ")),
        }
    }
}
