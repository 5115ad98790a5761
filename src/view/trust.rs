//! The commands in a project's own file, and whether the user trusts them.

use crate::core::settings::Key;
use crate::core::text::clean;
use serde_json::{Map, Value, json};
use std::path::Path;

/// The commands of one key in the project's file.
#[derive(Clone, Debug)]
pub struct Entry {
    pub key: &'static Key,
    pub value: Value,
    pub trusted: bool,
}

pub fn text(file: &Path, entries: &[Entry]) -> String {
    let file = clean::visible(&file.display().to_string());
    if entries.is_empty() {
        return format!("There are no commands in {file}.\n");
    }
    let mut out = format!("Commands in {file}:\n");
    for entry in entries {
        out.push_str(&format!("{} ({})\n", entry.key.name, word(entry.trusted)));
        for command in entry.key.commands(&entry.value) {
            out.push_str(&format!("  {}\n", clean::visible(&command)));
        }
    }
    out.push_str(match entries.iter().all(|entry| entry.trusted) {
        true => "`ralph trust --revoke` withdraws trust. A changed command needs it again.\n",
        false => "Read them, then run `ralph trust` to trust them.\n",
    });
    out
}

pub fn json(project: &Path, file: &Path, entries: &[Entry]) -> String {
    let commands: Map<String, Value> = entries
        .iter()
        .map(|entry| {
            let commands = entry.key.commands(&entry.value);
            (entry.key.name.to_owned(), json!({"commands": commands, "trusted": entry.trusted}))
        })
        .collect();
    let trusted = !entries.is_empty() && entries.iter().all(|entry| entry.trusted);
    format!("{}\n", json!({"project": project, "file": file, "trusted": trusted, "keys": commands}))
}

pub fn word(trusted: bool) -> &'static str {
    if trusted { "trusted" } else { "not trusted, not run" }
}
