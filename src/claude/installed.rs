//! Which plugins Claude Code has, as `claude plugin list --json` tells it. The client is asked rather than its
//! files read: it alone knows how scopes, settings and folders that are used in place come together.

use super::hooks::{self, Hook};
use crate::store::world::World;
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Listed {
    id: String,
    version: Option<String>,
    scope: Option<String>,
    enabled: bool,
    install_path: Option<PathBuf>,
    /// A marketplace that is a folder is used in place; the copy at `install_path` is then not what runs.
    read_from_folder: Option<PathBuf>,
    folder_version: Option<String>,
    errors: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugin {
    /// `name@marketplace`.
    pub id: String,
    pub version: Option<String>,
    pub scope: Option<String>,
    pub enabled: bool,
    /// Where it is loaded from.
    pub folder: PathBuf,
    /// What the client could not load of it.
    pub errors: Vec<String>,
}

impl Plugin {
    /// A plugin of our name with other hook programs is somebody else's; one that cannot be read is a broken one
    /// of ours.
    pub fn is_ours(&self) -> bool {
        let ours = |hooks: &[Hook]| hooks.iter().any(|hook| hook.command.ends_with("ralph-stop-hook"));
        self.id.split('@').next() == Some("ralph")
            && (!self.folder.is_dir() || hooks::of(&self.folder).map_or(true, |hooks| ours(&hooks)))
    }

    pub fn has_stop_hook(&self) -> bool {
        hooks::of(&self.folder).is_ok_and(|hooks| hooks.iter().any(|hook| hook.event == "Stop"))
    }
}

/// `None` where this is no list. An entry that makes no sense is passed over.
pub fn parse(told: &str) -> Option<Vec<Plugin>> {
    let list: Vec<Value> = serde_json::from_str(told.trim()).ok()?;
    let entries = list.into_iter().filter_map(|entry| serde_json::from_value::<Listed>(entry).ok());
    let plugins = entries.filter_map(|entry| {
        Some(Plugin {
            version: entry.folder_version.or(entry.version),
            scope: entry.scope,
            enabled: entry.enabled,
            folder: entry.read_from_folder.or(entry.install_path)?,
            errors: entry.errors,
            id: Some(entry.id).filter(|id| !id.is_empty())?,
        })
    });
    Some(plugins.collect())
}

/// Whether the client was ever started for this user. It makes its own files at the first start, also where it is
/// only asked something, and a client without them has no plugins.
pub fn client_was_started(world: &World) -> bool {
    let folders = [&world.claude_config, &world.home].into_iter().flatten();
    folders.into_iter().any(|folder| folder.join(".claude.json").is_file())
}

/// Other versions of the plugin that the client keeps copies of.
pub fn old_copies(claude_config: &Path, in_use: &str) -> Vec<PathBuf> {
    let folders = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        entries.filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let marketplaces = folders(&claude_config.join("plugins").join("cache"));
    let mut copies: Vec<_> = marketplaces.iter().flat_map(|market| folders(&market.join("ralph"))).collect();
    copies.retain(|copy| copy.file_name().is_none_or(|version| version != in_use));
    copies.sort();
    copies
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As 2.1.325 prints it.
    const TOLD: &str = r#"[
      {"id": "ralph@ralph", "version": "0.1.0", "scope": "user", "enabled": true, "installPath": "/c/ralph/0.1.0",
       "readFromFolder": "/m", "folderVersion": "0.2.0", "installedAt": "2026-11-16T14:36:47.113Z",
       "errors": ["Hook load failed"], "projectEnabled": false},
      {"id": "ralph@inline", "version": "0.1.0", "scope": "session", "enabled": false, "installPath": "/p"},
      {"id": "nowhere@x"}, {"id": 7}, "text"]"#;

    #[test]
    fn a_folder_used_in_place_comes_before_the_copy() {
        let plugins = parse(TOLD).unwrap();
        let seen: Vec<_> =
            plugins.iter().map(|p| (p.id.as_str(), p.folder.to_str().unwrap(), p.enabled)).collect();
        assert_eq!(seen, [("ralph@ralph", "/m", true), ("ralph@inline", "/p", false)]);
        assert_eq!(plugins[0].version.as_deref(), Some("0.2.0"));
        assert_eq!(plugins[0].errors, ["Hook load failed"]);
        for not_a_list in ["", "No plugins installed", "{}"] {
            assert_eq!(parse(not_a_list), None, "{not_a_list}");
        }
    }
}
