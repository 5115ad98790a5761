//! The commands in a project's own files, and whether the user trusts them.

use crate::core::text::clean;
use crate::store::config::ProjectCommands;
use serde_json::{Map, Value, json};
use std::path::Path;

#[derive(Clone, Debug)]
pub struct Entry {
    pub found: ProjectCommands,
    pub trusted: bool,
}

pub fn text(file: &Path, entries: &[Entry]) -> String {
    let shown = |file: &Path| clean::visible(&file.display().to_string());
    if entries.is_empty() {
        return format!("There are no commands in {}.\n", shown(file));
    }
    let (mut out, mut last) = (String::new(), None);
    for Entry { found, trusted } in entries {
        if last.replace(&found.file) != Some(&found.file) {
            out.push_str(&format!("Commands in {}:\n", shown(&found.file)));
        }
        out.push_str(&format!("{} ({})\n", found.name, word(*trusted)));
        for command in &found.commands {
            out.push_str(&format!("  {}\n", clean::visible(command)));
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
            let Entry { found, trusted } = entry;
            (found.name.to_owned(), json!({"commands": found.commands, "trusted": trusted}))
        })
        .collect();
    let trusted = !entries.is_empty() && entries.iter().all(|entry| entry.trusted);
    format!("{}\n", json!({"project": project, "file": file, "trusted": trusted, "keys": commands}))
}

pub fn word(trusted: bool) -> &'static str {
    if trusted { "trusted" } else { "not trusted, not run" }
}
