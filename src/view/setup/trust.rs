//! The commands in a project's own files, and whether the user trusts them.

use crate::core::text::clean;
use crate::store::config::ProjectCommands;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub struct Entry {
    pub found: ProjectCommands,
    pub trusted: bool,
}

/// Links of the project that are followed, each with its target.
type Links = BTreeMap<PathBuf, PathBuf>;

pub fn text(file: &Path, entries: &[Entry], links: &Links) -> String {
    let mut out: String = links.iter().map(|(link, target)| followed(link, target)).collect();
    let mut last = None;
    if entries.is_empty() {
        return format!("There are no commands in {}.\n{out}", shown(file));
    }
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
        true => "`ralph trust --revoke` withdraws trust. A changed command must be trusted again.\n",
        false => "Read them, then run `ralph trust` to trust them.\n",
    });
    out
}

fn shown(path: &Path) -> String {
    clean::visible(&path.display().to_string())
}

fn followed(link: &Path, target: &Path) -> String {
    format!("The link {} is followed to {}\n", shown(link), shown(target))
}

/// Says that a link is followed from now on.
pub fn allowed(link: &Path, target: &Path) -> String {
    let more = "`ralph trust --revoke` withdraws trust. A link that leads elsewhere must be trusted again.\n";
    followed(link, target) + more
}

pub fn json(project: &Path, file: &Path, entries: &[Entry], links: &Links) -> String {
    let commands: Map<String, Value> = entries
        .iter()
        .map(|entry| {
            let Entry { found, trusted } = entry;
            (found.name.to_owned(), json!({"commands": found.commands, "trusted": trusted}))
        })
        .collect();
    let trusted = !entries.is_empty() && entries.iter().all(|entry| entry.trusted);
    let fields =
        json!({"project": project, "file": file, "trusted": trusted, "keys": commands, "links": links});
    format!("{fields}\n")
}

pub fn word(trusted: bool) -> &'static str {
    if trusted { "trusted" } else { "not trusted, not run" }
}
