//! Settings as a table: key, value, source.

use crate::core::clean;
use crate::core::settings::{Key, Resolved, Row, Source};
use serde_json::{Map, Value, json};

pub fn table(resolved: &Resolved, unknown: &[String]) -> String {
    let mut out = String::new();
    for row in &resolved.rows {
        out.push_str(&line(row));
    }
    for note in resolved.warnings.iter().chain(unknown) {
        out.push_str(&format!("Note: {}\n", clean::line(note)));
    }
    out
}

pub fn one(resolved: &Resolved, key: &Key) -> String {
    resolved.row(key.name).map(line).unwrap_or_default()
}

pub fn json(resolved: &Resolved, only: Option<&Key>) -> String {
    let rows = resolved.rows.iter().filter(|row| only.is_none_or(|key| key.name == row.key.name));
    let settings: Map<String, Value> = rows
        .map(|row| {
            (
                row.key.name.to_owned(),
                json!({"value": row.value, "source": row.source.name(), "place": place(row)}),
            )
        })
        .collect();
    format!("{}\n", json!({"settings": settings, "warnings": resolved.warnings}))
}

fn line(row: &Row) -> String {
    let value = match &row.value {
        Value::Null => "none".into(),
        Value::String(text) => clean::excerpt(text, 24),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), |n| n.to_string()),
        other => other.to_string(),
    };
    let source = match row.source {
        Source::Default | Source::Flag | Source::Preset => row.source.name().to_owned(),
        _ => format!("{}: {}", row.source.name(), clean::line(&row.place)),
    };
    format!("{:<38} {value:<12} {source}\n", row.key.name)
}

fn place(row: &Row) -> Option<&str> {
    (!row.place.is_empty()).then_some(row.place.as_str())
}
