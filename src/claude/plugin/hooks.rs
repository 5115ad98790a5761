//! A plugin's manifest and hooks: `hooks/hooks.json`, and the files or hooks that the manifest names.

use crate::store::file;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};

pub const MANIFEST: &str = ".claude-plugin/plugin.json";
const MAX_BYTES: u64 = 4 << 20;
const ROOT: &str = "${CLAUDE_PLUGIN_ROOT}";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    pub event: String,
    /// The path of the program; for a hook in shell form, the whole command line.
    pub command: PathBuf,
    pub args: Vec<String>,
}

/// Returns every hook that is a command, as Claude Code starts it.
pub fn of(plugin: &Path) -> Result<Vec<Hook>> {
    let mut found = Vec::new();
    if let Some(hooks) = read(&plugin.join("hooks/hooks.json"))? {
        collect(&hooks, plugin, &mut found);
    }
    let manifest = manifest(plugin)?.unwrap_or_default();
    let named = match &manifest["hooks"] {
        Value::Array(list) => list.iter().collect(),
        Value::Null => Vec::new(),
        one => vec![one],
    };
    for entry in named {
        match entry.as_str() {
            None => collect(entry, plugin, &mut found),
            Some(name) => {
                let path = plugin.join(name);
                let hooks = read(&path)?.with_context(|| format!("{} is missing", path.display()))?;
                collect(&hooks, plugin, &mut found);
            }
        }
    }
    Ok(found)
}

/// Returns the version in the manifest.
pub fn version(plugin: &Path) -> Option<String> {
    manifest(plugin).ok()??["version"].as_str().map(str::to_owned)
}

pub fn manifest(plugin: &Path) -> Result<Option<Value>> {
    read(&plugin.join(MANIFEST))
}

fn read(path: &Path) -> Result<Option<Value>> {
    let Some(bytes) = file::read_bounded(path, MAX_BYTES)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).with_context(|| format!("{} is not valid JSON", path.display()))
}

fn collect(file: &Value, plugin: &Path, into: &mut Vec<Hook>) {
    let root = plugin.to_string_lossy();
    let text = |value: &Value| value.as_str().map(|text| text.replace(ROOT, &root));
    for (event, matchers) in file["hooks"].as_object().into_iter().flatten() {
        let entries = matchers.as_array().into_iter().flatten().flat_map(|m| m["hooks"].as_array()).flatten();
        for entry in entries.filter(|entry| entry["type"] == "command") {
            let Some(command) = text(&entry["command"]).map(PathBuf::from) else { continue };
            let args = entry["args"].as_array().into_iter().flatten().filter_map(&text).collect();
            into.push(Hook { event: event.clone(), command, args });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_hooks_are_found_in_both_files() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let hooks = of(root).unwrap();
        let seen: Vec<_> = hooks
            .iter()
            .map(|hook| (hook.event.as_str(), hook.command.file_name().unwrap().to_str().unwrap()))
            .collect();
        for expected in [
            ("Stop", "ralph-stop-hook"),
            ("SessionStart", "ralph-session-start-hook"),
            ("UserPromptExpansion", "ralph-session-start-hook"),
            ("Stop", "ralph"),
        ] {
            assert!(seen.contains(&expected), "{expected:?} in {seen:?}");
        }
        assert!(hooks.iter().all(|hook| hook.command.starts_with(root)), "{hooks:?}");
        assert_eq!(version(root).as_deref(), Some(env!("CARGO_PKG_VERSION")));
    }

    #[test]
    fn a_broken_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(of(dir.path()).unwrap(), []);
        std::fs::create_dir_all(dir.path().join(".claude-plugin")).unwrap();
        let manifest = dir.path().join(".claude-plugin/plugin.json");
        std::fs::write(&manifest, r#"{"hooks": "./gone.json"}"#).unwrap();
        assert!(of(dir.path()).unwrap_err().to_string().contains("gone.json"));
        std::fs::write(&manifest, "{").unwrap();
        assert!(of(dir.path()).unwrap_err().to_string().contains("plugin.json is not valid JSON"));
    }
}
