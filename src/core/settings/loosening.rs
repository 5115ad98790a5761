//! What a change of the project's settings file may do to a loop that runs: it takes effect at once if it is stricter,
//! and not at all if it is looser.

use super::{Resolved, SettingKey, SettingRow, SettingSource};
use crate::core::circuit::condition::CONDITIONS;
use crate::core::record::Engine;
use crate::core::text::clean;
use serde_json::{Map, Value};

/// Which change of a setting gives the agent more freedom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LooseningRule {
    /// A higher number.
    Higher,
    /// A higher number, and 0 most of all: it means no limit.
    HigherOrZero,
    Lower,
    /// A lower number, but 0 is the strictest.
    LowerNotZero,
    /// `false`.
    Off,
    /// This word.
    To(&'static str),
    /// An element that is added to the list.
    Added,
    /// An element that is removed from the list.
    Removed,
    /// It limits nothing, or another rule protects it: commands need the user's trust.
    Never,
}

impl LooseningRule {
    /// Returns what counts of a changed value: as much of it as is not looser.
    fn strictest(self, value: &Value, before: &Value) -> Value {
        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
        let or_infinite = |value: &Value| if number(value) == 0.0 { f64::INFINITY } else { number(value) };
        let elements = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let is_looser = match self {
            LooseningRule::Higher => number(value) > number(before),
            LooseningRule::HigherOrZero => or_infinite(value) > or_infinite(before),
            LooseningRule::Lower => number(value) < number(before),
            LooseningRule::LowerNotZero => or_infinite(value) < or_infinite(before),
            LooseningRule::Off => value == &Value::Bool(false),
            LooseningRule::To(word) => value == word && before != word,
            LooseningRule::Added => {
                let (value, before) = (elements(value), elements(before));
                return value.into_iter().filter(|element| before.contains(element)).collect();
            }
            LooseningRule::Removed => {
                let (value, mut all) = (elements(value), elements(before));
                let new: Vec<_> = value.into_iter().filter(|element| !all.contains(element)).collect();
                all.extend(new);
                return all.into();
            }
            LooseningRule::Never => false,
        };
        if is_looser { before.clone() } else { value.clone() }
    }

    /// Returns whether the value gives more freedom than the one before.
    fn is_looser(self, value: &Value, before: &Value) -> bool {
        match self {
            // The order of a list means nothing.
            LooseningRule::Added | LooseningRule::Removed => {
                let (kept, value) = (self.strictest(value, before), value.as_array());
                let kept = kept.as_array().map_or(&[][..], Vec::as_slice);
                let value = value.map_or(&[][..], Vec::as_slice);
                kept.len() != value.len() || !kept.iter().all(|element| value.contains(element))
            }
            _ => self.strictest(value, before) != *value,
        }
    }
}

impl SettingRow {
    /// Returns the value for an engine: the runner has breaker defaults of its own.
    fn value_for(&self, engine: Engine) -> Value {
        let condition = CONDITIONS.iter().find(|condition| condition.setting == self.key.name);
        match condition.filter(|_| engine == Engine::Runner && self.source == SettingSource::Default) {
            Some(condition) => condition.runner_default.into(),
            None => self.value.clone(),
        }
    }

    /// Returns whether the project's file could have decided it; what comes from flags and variables is the user's.
    fn is_open(&self) -> bool {
        self.key.loosens != LooseningRule::Never && self.source <= SettingSource::Project
    }
}

/// Returns whether a setting is about all loops of a user: a project may save of it, and not give more.
fn is_of_user(name: &str) -> bool {
    name.starts_with("budget.") || name.starts_with("quota.")
}

impl Resolved {
    /// Puts back what the user's own settings say of budget and quota where the project's file is looser. `own` are the
    /// settings without that file. Returns what the user should know.
    pub fn keep_users_budget(&mut self, own: &Resolved) -> Vec<String> {
        let mut notes = Vec::new();
        for (row, own) in self.rows.iter_mut().zip(&own.rows) {
            let SettingKey { name, loosens, .. } = *row.key;
            if row.source == SettingSource::Project
                && is_of_user(name)
                && loosens.is_looser(&row.value, &own.value)
            {
                let (place, value, kept) = (&row.place, shown(&row.value), shown(&own.value));
                notes.push(format!(
                    "{place}: {name} {value} ignored, because it is looser than your own {kept}"
                ));
                *row = own.clone();
            }
        }
        notes
    }

    /// Returns the limits that the project's file gives; `own` are the settings without that file.
    pub fn limits_of_project(&self, own: &Resolved) -> Map<String, Value> {
        let pairs = self.rows.iter().zip(&own.rows).filter(|(row, own)| {
            row.is_open() && (row.source == SettingSource::Project || row.value != own.value)
        });
        pairs.map(|(row, _)| (row.key.name.to_owned(), row.value.clone())).collect()
    }

    /// Says which values of the project's file are looser than those that hold without it.
    pub fn loosened_by_project(&self, own: &Resolved, engine: Engine) -> Vec<String> {
        let pairs = self.rows.iter().zip(&own.rows).filter(|(row, _)| row.is_open());
        let note = |(row, own): (&SettingRow, &SettingRow)| {
            let (value, without) = (row.value_for(engine), own.value_for(engine));
            let (name, place) = (row.key.name, &row.place);
            row.key
                .loosens
                .is_looser(&value, &without)
                .then(|| format!("{place} loosens {name}: {} instead of {}", shown(&value), shown(&without)))
        };
        pairs.filter_map(note).collect()
    }

    /// Holds a running loop to the limits of its start. `start` has those that the project's file gave then; the others
    /// are those of `own`, the settings without that file. Returns what the user should know.
    pub fn hold_to(
        &mut self,
        start: &Map<String, Value>,
        own: &Resolved,
        engine: Engine,
        file: &str,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        for (row, own) in self.rows.iter_mut().zip(&own.rows).filter(|(row, _)| row.is_open()) {
            let SettingKey { name, loosens, .. } = *row.key;
            let before = start.get(name).cloned().unwrap_or_else(|| own.value_for(engine));
            let value = row.value_for(engine);
            if value == before {
                continue;
            }
            if !loosens.is_looser(&value, &before) {
                let (value, before) = (shown(&value), shown(&before));
                notes.push(format!("{file}: {name} is now {value}, stricter than at the start ({before})"));
                continue;
            }
            row.value = loosens.strictest(&value, &before);
            if start.contains_key(name) {
                (row.source, row.place) = (SettingSource::Project, format!("{file} at the start"));
            } else {
                (row.source, row.place) = (own.source, own.place.clone());
            }
            self.warnings.retain(|warning| !warning.ends_with(&format!("{name} is raised to it")));
            let (value, kept) = (shown(&value), shown(&row.value_for(engine)));
            notes.push(format!(
                "{file}: {name} {value} ignored, because it is looser than {kept}, the value at the start; change it with \
                 `ralph config {name} VALUE`"
            ));
        }
        for (min, max) in super::RANGES {
            self.lower(min, max);
        }
        notes
    }

    /// Holds a running loop to what it was given at its start: a variable that its hooks are given since then counts as far as
    /// it is stricter. Returns what the user should know.
    pub fn tighten(&mut self, now: &Resolved, engine: Engine) -> Vec<String> {
        let mut notes = Vec::new();
        let given = now.rows.iter().filter(|row| row.source == SettingSource::Environment);
        for given in given {
            let Some(row) = self.rows.iter_mut().find(|row| row.key.name == given.key.name) else { continue };
            let SettingKey { name, loosens, .. } = *row.key;
            let (value, before) = (given.value.clone(), row.value_for(engine));
            if value == before || row.source > SettingSource::Environment {
                continue;
            }
            let (variable, shown_before) = (&given.place, shown(&before));
            if loosens == LooseningRule::Never {
                notes
                    .push(format!("{variable} ignored: {name} stays {shown_before}, the value at the start"));
                continue;
            }
            let is_looser = loosens.is_looser(&value, &before);
            row.value = loosens.strictest(&value, &before);
            if row.value != before {
                (row.source, row.place) = (given.source, given.place.clone());
            }
            let value = shown(&value);
            notes.push(if is_looser {
                format!(
                    "{variable}: {name} {value} ignored, because it is looser than {shown_before}, the value at the start"
                )
            } else {
                format!("{variable}: {name} is now {value}, stricter than at the start ({shown_before})")
            });
        }
        for (min, max) in super::RANGES {
            self.lower(min, max);
        }
        notes
    }

    /// Lowers a minimum to its maximum: a running loop's maximum is not raised.
    fn lower(&mut self, min: &str, max: &str) {
        let (low, high) = (self.number(min), self.number(max));
        let value = self.row(max).map(|row| row.value.clone()).unwrap_or_default();
        if high > 0.0
            && low > high
            && let Some(row) = self.rows.iter_mut().find(|row| row.key.name == min)
        {
            row.value = value;
            self.warnings.push(format!("{min} {low} is above {max} {high}: {min} is lowered to it"));
        }
    }
}

fn shown(value: &Value) -> String {
    if value.is_null() { "none".into() } else { clean::excerpt(&value.to_string(), 60) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::settings::{KEYS, ValueKind};
    use serde_json::json;

    #[test]
    fn each_direction_tells_looser_from_stricter() {
        for (loosens, before, looser, stricter) in [
            (LooseningRule::Higher, json!(5), json!(6), json!(0)),
            (LooseningRule::HigherOrZero, json!(5), json!(6), json!(4)),
            (LooseningRule::HigherOrZero, json!(5), json!(0), json!(1)),
            (LooseningRule::HigherOrZero, json!(5.5), Value::Null, json!(5)),
            (LooseningRule::Lower, json!(5), json!(0), json!(6)),
            (LooseningRule::LowerNotZero, json!(5), json!(4), json!(0)),
            (LooseningRule::LowerNotZero, json!(0), json!(4), json!(0)),
            (LooseningRule::Off, json!(true), json!(false), json!(true)),
            (LooseningRule::Added, json!(["a"]), json!(["b", "a"]), json!([])),
            (LooseningRule::Removed, json!(["a", "b"]), json!(["b"]), json!(["b", "c", "a"])),
        ] {
            assert!(loosens.is_looser(&looser, &before), "{loosens:?} {looser}");
            assert!(!loosens.is_looser(&stricter, &before), "{loosens:?} {stricter}");
            assert!(!loosens.is_looser(&before, &before), "{loosens:?} {before}");
        }
    }

    #[test]
    fn of_a_mixed_change_the_stricter_part_counts() {
        let list = json!(["a", "b"]);
        assert_eq!(LooseningRule::Added.strictest(&json!(["b", "c"]), &list), json!(["b"]));
        assert_eq!(LooseningRule::Removed.strictest(&json!(["b", "c"]), &list), json!(["a", "b", "c"]));
    }

    #[test]
    fn every_limit_has_a_direction_that_fits_its_kind() {
        for key in &KEYS {
            let fits = match key.loosens {
                LooseningRule::Off => key.kind == ValueKind::Switch,
                LooseningRule::To(_) => matches!(key.kind, ValueKind::Choice(_)),
                LooseningRule::Added | LooseningRule::Removed => key.kind == ValueKind::List,
                LooseningRule::Never => !matches!(
                    key.kind,
                    ValueKind::Count | ValueKind::Dollars | ValueKind::Switch | ValueKind::List
                ),
                _ => {
                    matches!(key.kind, ValueKind::Count | ValueKind::Dollars | ValueKind::Percent)
                        || key.kind.is_duration()
                }
            };
            assert!(fits, "{}", key.name);
        }
    }
}
