//! The plugins and marketplaces that Claude Code lists. We ask Claude Code instead of reading its files: only it
//! knows how scopes, settings and folders combine.

use crate::claude::plugin::hooks;
use crate::store::file::walk::entries;
use crate::store::process::names;
use crate::store::{World, file};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::{Path, PathBuf};

const MAX_MANIFEST_BYTES: u64 = 1 << 20;
/// The owner in the manifest of this repository's marketplace.
const OWNER: &str = "The Ralph developers";

/// A plugin that Claude Code has installed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InstalledPlugin {
    /// `name@marketplace`.
    pub id: String,
    /// The version that Claude Code registered.
    #[serde(rename = "version")]
    pub registered_version: Option<String>,
    pub scope: Option<String>,
    pub enabled: bool,
    install_path: Option<PathBuf>,
    /// The folder in a marketplace on this disk. Claude Code uses it, not its copy in `install_path`.
    read_from_folder: Option<PathBuf>,
    folder_version: Option<String>,
    /// What Claude Code could not load.
    pub errors: Vec<String>,
}

impl InstalledPlugin {
    /// Returns the folder that Claude Code loads; empty if the list names none.
    pub fn folder(&self) -> &Path {
        self.read_from_folder.as_deref().or(self.install_path.as_deref()).unwrap_or(Path::new(""))
    }

    /// Returns the version in that folder.
    pub fn version(&self) -> Option<&str> {
        self.folder_version.as_deref().or(self.registered_version.as_deref())
    }

    /// Returns whether this is our plugin: by name, and by its hooks if they can be read.
    pub fn is_ours(&self) -> bool {
        let has_our_hook = || {
            let hooks = hooks::of(self.folder());
            hooks.map_or(true, |hooks| hooks.iter().any(|hook| hook.command.ends_with(names::STOP_HOOK)))
        };
        self.id.starts_with("ralph@") && (!self.folder().is_dir() || has_our_hook())
    }

    pub fn has_stop_hook(&self) -> bool {
        hooks::of(self.folder()).is_ok_and(|hooks| hooks.iter().any(|hook| hook.event == "Stop"))
    }
}

/// A marketplace that Claude Code knows.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Marketplace {
    pub name: String,
    /// The kind of source, e.g. `directory` or `github`.
    source: String,
    path: Option<PathBuf>,
    repo: Option<String>,
    url: Option<String>,
    #[serde(rename = "installLocation")]
    location: Option<PathBuf>,
}

impl Marketplace {
    pub fn is_folder(&self, folder: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        self.path.as_deref().is_some_and(|path| real(path) == real(folder))
    }

    /// Returns whether this is a copy of our repository, whatever its name.
    pub fn is_our_repository(&self) -> bool {
        let Some(folder) = &self.location else { return false };
        let path = folder.join(".claude-plugin/marketplace.json");
        let manifest: Option<Value> = file::read_json(&path, MAX_MANIFEST_BYTES);
        manifest.is_some_and(|manifest| manifest["owner"]["name"] == OWNER)
    }

    /// Returns where it comes from, for messages.
    pub fn place(&self) -> String {
        let path = self.path.as_ref().map(|path| path.display().to_string());
        path.or(self.repo.clone()).or(self.url.clone()).unwrap_or_else(|| self.source.clone())
    }
}

/// Parses a JSON list and skips entries of an unknown form; `None` if it is not a list.
pub fn parse<T: DeserializeOwned>(output: &str) -> Option<Vec<T>> {
    let entries: Vec<Value> = serde_json::from_str(output.trim()).ok()?;
    Some(entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect())
}

/// Returns whether Claude Code was ever started for this user. Before that it has no plugins, and asking it would
/// create its files.
pub fn client_was_started(world: &World) -> bool {
    let folders = [&world.claude_config, &world.home].into_iter().flatten();
    folders.into_iter().any(|folder| folder.join(".claude.json").is_file())
}

/// Returns the copies that Claude Code keeps of other versions of our plugin.
pub fn old_copies(claude_config: &Path, version: &str) -> Vec<PathBuf> {
    let marketplaces = entries(&claude_config.join("plugins/cache")).into_iter();
    let copies = marketplaces.flat_map(|marketplace| entries(&marketplace.join("ralph")));
    copies.filter(|copy| copy.is_dir() && !copy.ends_with(version)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by Claude Code 2.1.325.
    const LIST: &str = r#"[
      {"id": "ralph@ralph", "version": "0.1.0", "scope": "user", "enabled": true, "installPath": "/c/ralph/0.1.0",
       "readFromFolder": "/m", "folderVersion": "0.2.0", "installedAt": "2026-11-16T14:36:47.113Z",
       "errors": ["Hook load failed"], "projectEnabled": false},
      {"id": "ralph@inline", "version": "0.1.0", "scope": "session", "enabled": false, "installPath": "/p"},
      {"id": 7}, "text"]"#;

    #[test]
    fn both_versions_and_the_folder_in_use_are_read() {
        let plugins: Vec<InstalledPlugin> = parse(LIST).unwrap();
        let seen: Vec<_> =
            plugins.iter().map(|p| (p.id.as_str(), p.folder().to_str().unwrap(), p.enabled)).collect();
        assert_eq!(seen, [("ralph@ralph", "/m", true), ("ralph@inline", "/p", false)]);
        assert_eq!(plugins[0].registered_version.as_deref(), Some("0.1.0"));
        assert_eq!((plugins[0].version(), plugins[1].version()), (Some("0.2.0"), Some("0.1.0")));
        assert_eq!(plugins[0].errors, ["Hook load failed"]);
        for not_a_list in ["", "No plugins installed", "{}"] {
            assert_eq!(parse::<InstalledPlugin>(not_a_list), None, "{not_a_list}");
        }
    }
}
