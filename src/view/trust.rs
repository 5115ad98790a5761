//! What a project's own file would run, to the letter, and whether the user lets it.

use crate::core::clean;
use crate::core::settings::Key;
use serde_json::{Map, Value, json};
use std::path::Path;

/// One key's commands in the project's file.
#[derive(Clone, Debug)]
pub struct Entry {
    pub key: &'static Key,
    pub value: Value,
    pub trusted: bool,
}

/// What to say above and below the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Show,
    Granted,
    /// Whether there was anything to take back.
    Revoked(bool),
}

pub fn text(file: &Path, entries: &[Entry], told: Told) -> String {
    let file = clean::visible(&file.display().to_string());
    let revoked = match told {
        Told::Revoked(true) => "What you trusted in this project is forgotten.\n",
        Told::Revoked(false) => "Nothing was trusted in this project.\n",
        _ => "",
    };
    if entries.is_empty() {
        return format!("{revoked}{file} gives no commands: there is nothing to trust.\n");
    }
    let mut out = match told {
        Told::Granted => format!("Trusted: {file} runs these for you from now on.\n"),
        _ => format!("{revoked}{file} would run:\n"),
    };
    for entry in entries {
        out.push_str(&format!("{} ({})\n", entry.key.name, word(entry.trusted)));
        for command in entry.key.commands(&entry.value) {
            out.push_str(&format!("  {}\n", clean::visible(&command)));
        }
    }
    out.push_str(match told {
        Told::Granted => "Any change of them asks again; `ralph trust --revoke` takes it back.\n",
        _ if entries.iter().all(|entry| entry.trusted) => "`ralph trust --revoke` takes it back.\n",
        _ => "Where you have read and want that: `ralph trust`.\n",
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

/// The word for it, wherever it is shown.
pub fn word(trusted: bool) -> &'static str {
    if trusted { "trusted" } else { "not trusted, not run" }
}
