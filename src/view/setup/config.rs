//! Settings as a table: key, value, source.

use super::trust;
use crate::core::settings::{Resolved, SettingKey, SettingRow, SettingSource};
use crate::core::text::clean;
use crate::core::time;
use serde_json::{Map, Value, json};

pub fn table(resolved: &Resolved, unknown: &[String]) -> String {
    let rows = resolved.rows.iter().map(|row| one(resolved, row.key));
    let notes = resolved.warnings.iter();
    let notes = notes.chain(unknown.iter().filter(|note| !resolved.warnings.contains(note)));
    rows.chain(notes.map(|note| format!("Note: {}\n", clean::line(note)))).collect()
}

pub fn one(resolved: &Resolved, key: &SettingKey) -> String {
    let withheld = resolved.withheld.iter().filter(|row| row.key.name == key.name);
    let effective = resolved.row(key.name).map(|row| line(row, true));
    effective.into_iter().chain(withheld.map(|row| line(row, false))).collect()
}

pub fn json(resolved: &Resolved, only: Option<&SettingKey>) -> String {
    let rows = resolved.rows.iter().filter(|row| only.is_none_or(|key| key.name == row.key.name));
    let settings: Map<String, Value> = rows
        .map(|row| {
            let place = Some(&row.place).filter(|place| !place.is_empty());
            let mut shown = json!({"value": row.value, "source": row.source.name(), "place": place});
            if row.key.kind.is_executed() && row.source == SettingSource::Project {
                shown["trusted"] = json!(true);
            }
            if let Some(withheld) = resolved.withheld.iter().find(|other| other.key.name == row.key.name) {
                shown["trusted"] = json!(false);
                shown["withheld"] = json!({"value": withheld.value, "place": withheld.place});
            }
            (row.key.name.to_owned(), shown)
        })
        .collect();
    format!("{}\n", json!({"settings": settings, "warnings": resolved.warnings}))
}

/// Returns the value as people read it.
pub fn value(row: &SettingRow) -> String {
    match &row.value {
        Value::Null => "none".into(),
        Value::String(text) => clean::excerpt(text, 24),
        Value::Number(number) => match (row.key.kind.in_ms(number.as_f64()), number.as_f64()) {
            (Some(ms), Some(n)) if n.fract() != 0.0 => time::span(ms),
            (_, n) => n.map_or_else(|| number.to_string(), |n| n.to_string()),
        },
        other => clean::visible(&other.to_string()),
    }
}

/// Renders a setting. `trusted` says whether a command in the project's file is executed.
fn line(row: &SettingRow, trusted: bool) -> String {
    let value = value(row);
    let mut source = match row.source {
        SettingSource::Default | SettingSource::Flag | SettingSource::Preset => row.source.name().to_owned(),
        _ => format!("{}: {}", row.source.name(), clean::line(&row.place)),
    };
    if row.key.kind.is_executed() && row.source == SettingSource::Project {
        source.push_str(&format!(" ({})", trust::word(trusted)));
    }
    format!("{:<38} {value:<12} {source}\n", row.key.name)
}
