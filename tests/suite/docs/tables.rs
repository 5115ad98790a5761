//! The tables in docs/ that repeat what the code defines. `UPDATE_DOCS=1` writes them anew.

use ralph::core::circuit::condition::CONDITIONS;
use ralph::core::outcome::{EXITS, ITERATION_OUTCOMES, OUTCOMES};
use ralph::core::settings::{KEYS, SettingKey};
use ralph::view::monitor::help;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Checks that a page holds exactly this table, between two blank lines.
fn assert_table(page: &str, head: &str, rows: impl IntoIterator<Item = String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(page);
    let text = fs::read_to_string(&path).unwrap();
    let line = format!("|{}", "---|".repeat(head.matches('|').count() - 1));
    let rows: String = rows.into_iter().map(|row| row + "\n").collect();
    let table = format!("\n{head}\n{line}\n{rows}\n");
    let (before, rest) = text.split_once(&format!("\n{head}\n")).expect(head);
    let (_, after) = rest.split_once("\n\n").expect("a blank line after the table");
    let expected = format!("{before}{table}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, &expected).unwrap();
    } else {
        assert_eq!(text, expected, "docs/{page} differs from the code; UPDATE_DOCS=1 updates it");
    }
}

fn default(key: &SettingKey) -> String {
    match key.default() {
        Value::Null => "none".into(),
        Value::String(text) => format!("`{text}`"),
        Value::Array(list) => format!("`{}`", Value::Array(list)),
        other => other.to_string(),
    }
}

#[test]
fn every_setting_is_in_the_reference_with_its_flag_and_default() {
    let rows = KEYS.iter().map(|key| {
        let flag = match (key.flag, key.run_flag) {
            (Some(flag), _) => format!(" `--{flag}` "),
            (None, Some(flag)) => format!(" `run --{flag}` "),
            (None, None) => " ".into(),
        };
        format!("| `{}` |{flag}| {} | {} |", key.name, default(key), key.help)
    });
    assert_table("settings.md", "| key | flag | default | meaning |", rows);
}

#[test]
fn every_breaker_condition_outcome_and_exit_code_is_in_the_reference() {
    let rows = CONDITIONS.iter().map(|condition| {
        let default = match (condition.default, condition.runner_default) {
            (session, runner) if session == runner => session.to_string(),
            (session, runner) => format!("{session}, runner {runner}"),
        };
        let (setting, outcome) = (condition.setting, condition.outcome);
        format!("| {} | `{setting}` | {default} | {} | `{outcome}` |", condition.label, condition.help)
    });
    let head = "| shown as | setting | default | meaning | outcome |";
    assert_table("outcomes.md", head, rows);
    let rows = OUTCOMES.map(|(_, name, words, exit)| format!("| `{name}` | {words} | {} |", exit.code()));
    assert_table("outcomes.md", "| outcome | shown as | exit code of `ralph run` |", rows);
    let rows = ITERATION_OUTCOMES.map(|(_, name, meaning)| format!("| `{name}` | {meaning} |"));
    assert_table("runner.md", "| outcome | meaning |", rows);
    let rows = EXITS.map(|(exit, run, others)| {
        format!("| {} | {run} | {} |", exit.code(), if others.is_empty() { "–" } else { others })
    });
    assert_table("outcomes.md", "| code | `ralph run` | other commands |", rows);
}

#[test]
fn every_key_of_the_monitor_is_in_its_page() {
    let rows = help::KEYS.map(|(keys, does)| {
        let keys: Vec<String> = keys.split(", ").map(|key| format!("`{key}`")).collect();
        format!("| {} | {does} |", keys.join(", "))
    });
    assert_table("monitor.md", "| key | does |", rows);
}
