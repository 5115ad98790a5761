//! The settings of Claude Code that decide whether our hooks run. Found by experiment on 2.1.325: managed settings win, then
//! local, project and user ones; a switch that is not a boolean is ignored; `allowManagedHooksOnly` counts only in managed
//! settings; `env` of every file applies to Claude Code itself.

mod json_edit;
pub mod permissions;
pub mod settings_file;
pub mod statusline;

use crate::store::file::walk::entries;
use crate::store::{Project, World, file};
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

const MAX_BYTES: u64 = 4 << 20;
/// Variables that disable hooks and plugins, like `--bare` and `--safe-mode`.
pub const MODES: [&str; 2] = ["CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"];
/// Counts only in managed settings.
const MANAGED_ONLY: &str = "allowManagedHooksOnly";
const SWITCHES: [&str; 2] = ["disableAllHooks", MANAGED_ONLY];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Managed,
    Local,
    Project,
    User,
}

/// One existing file.
#[derive(Clone, Debug)]
pub struct ClientLayer {
    pub scope: Scope,
    pub path: PathBuf,
    pub values: Map<String, Value>,
    /// Why it could not be read.
    pub fault: Option<String>,
}

/// Strongest first.
#[derive(Clone, Debug, Default)]
pub struct ClientSettings {
    pub layers: Vec<ClientLayer>,
}

/// Returns the folder of the administrator's settings.
pub fn managed_folder() -> &'static Path {
    Path::new(if cfg!(target_os = "macos") {
        "/Library/Application Support/ClaudeCode"
    } else if cfg!(windows) {
        r"C:\Program Files\ClaudeCode"
    } else {
        "/etc/claude-code"
    })
}

impl ClientSettings {
    pub fn read(world: &World, project: &Project, managed: &Path) -> ClientSettings {
        let parts = entries(&managed.join("managed-settings.d")).into_iter().rev();
        let parts = parts.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
        let user = world.claude_config.as_ref().map(|dir| (Scope::User, dir.join("settings.json")));
        let named = [
            (Scope::Managed, managed.join("managed-settings.json")),
            (Scope::Local, project.claude_dir().join("settings.local.json")),
            (Scope::Project, project.claude_dir().join("settings.json")),
        ];
        let paths = parts.map(|path| (Scope::Managed, path)).chain(named).chain(user);
        let layer = |(scope, path): (Scope, PathBuf)| {
            let bytes = match scope {
                Scope::Local | Scope::Project => project.read(&path, MAX_BYTES),
                Scope::Managed | Scope::User => file::read_bounded(&path, MAX_BYTES),
            };
            layer(scope, path, bytes.transpose()?)
        };
        ClientSettings { layers: paths.filter_map(layer).collect() }
    }

    /// Returns the strongest boolean of this name, and its file.
    fn switch(&self, name: &str) -> Option<(&ClientLayer, bool)> {
        self.layers.iter().find_map(|layer| Some((layer, layer.values.get(name)?.as_bool()?)))
    }

    /// Returns a variable that a file sets for Claude Code.
    pub fn variable(&self, name: &str) -> Option<(&ClientLayer, String)> {
        self.layers.iter().find_map(|layer| {
            let text = match layer.values.get("env")?.get(name)? {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Some((layer, text))
        })
    }

    /// Returns the switches that disable our hooks, each with its file.
    pub fn against_hooks(&self) -> Vec<(&'static str, &Path)> {
        let switches = SWITCHES.into_iter().filter_map(|name| {
            let (layer, is_on) = self.switch(name)?;
            let counts = name != MANAGED_ONLY || layer.scope == Scope::Managed;
            (is_on && counts).then_some((name, layer.path.as_path()))
        });
        let modes = MODES.into_iter().filter_map(|name| {
            let (layer, value) = self.variable(name)?;
            is_truthy(&value).then_some((name, layer.path.as_path()))
        });
        switches.chain(modes).collect()
    }

    /// Returns only the switches of one scope, for a session in another home.
    pub fn switches_of(&self, scope: Scope) -> Value {
        let mut kept = Map::new();
        let mut variables = Map::new();
        for layer in self.layers.iter().filter(|layer| layer.scope == scope) {
            for name in SWITCHES {
                kept.extend(layer.values.get(name).map(|value| (name.to_owned(), value.clone())));
            }
            for name in MODES {
                let value = layer.values.get("env").and_then(|env| env.get(name));
                variables.extend(value.map(|value| (name.to_owned(), value.clone())));
            }
        }
        if !variables.is_empty() {
            kept.insert("env".into(), json!(variables));
        }
        Value::Object(kept)
    }
}

/// Returns whether Claude Code treats the value of a variable as true.
pub fn is_truthy(value: &str) -> bool {
    ["1", "true", "yes", "on"].contains(&value.trim().to_ascii_lowercase().as_str())
}

fn layer(scope: Scope, path: PathBuf, bytes: Result<Vec<u8>>) -> Option<ClientLayer> {
    let values = bytes.and_then(|bytes| match bytes.trim_ascii() {
        b"" => Ok(Map::new()),
        bytes => file::parse_object(&path, bytes),
    });
    let fault = values.as_ref().err().map(|error| format!("{error:#}"));
    Some(ClientLayer { scope, path, values: values.unwrap_or_default(), fault })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(files: &[(&str, &str)]) -> (tempfile::TempDir, ClientSettings) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let mut world = World::at(dir.path(), dir.path());
        world.claude_config = Some(dir.path().join("user"));
        let project = Project { root: dir.path().join("project") };
        let read = ClientSettings::read(&world, &project, &dir.path().join("managed"));
        (dir, read)
    }

    const USER: &str = "user/settings.json";
    const PROJECT: &str = "project/.claude/settings.json";
    const LOCAL: &str = "project/.claude/settings.local.json";
    const MANAGED: &str = "managed/managed-settings.json";
    const PART: &str = "managed/managed-settings.d/10-hooks.json";

    /// Each row was tried on the real Claude Code.
    #[test]
    fn the_strongest_switch_decides() {
        let on = r#"{"disableAllHooks": true}"#;
        let off = r#"{"disableAllHooks": false}"#;
        let only = r#"{"allowManagedHooksOnly": true}"#;
        type Case = (&'static [(&'static str, &'static str)], &'static [(&'static str, &'static str)]);
        let off_local: [(&str, &str); 2] = [(USER, on), (LOCAL, off)];
        assert!(settings(&off_local).1.against_hooks().is_empty());
        assert!(settings(&[(PROJECT, on), (LOCAL, off)]).1.against_hooks().is_empty());
        let cases: &[Case] = &[
            (&[], &[]),
            (&[(USER, r#"{"disableAllHooks": true}"#)], &[("disableAllHooks", USER)]),
            (&[(PROJECT, r#"{"disableAllHooks": true}"#)], &[("disableAllHooks", PROJECT)]),
            (&[(LOCAL, r#"{"disableAllHooks": true}"#)], &[("disableAllHooks", LOCAL)]),
            (&[(USER, r#"{"disableAllHooks": "true"}"#)], &[]),
            (&[(USER, r#"{"allowManagedHooksOnly": true}"#)], &[]),
            (&[(MANAGED, r#"{"allowManagedHooksOnly": true}"#)], &[("allowManagedHooksOnly", MANAGED)]),
            (&[(PART, r#"{"allowManagedHooksOnly": true}"#)], &[("allowManagedHooksOnly", PART)]),
            (&[(USER, r#"{"env": {"CLAUDE_CODE_SIMPLE": "1"}}"#)], &[("CLAUDE_CODE_SIMPLE", USER)]),
            (&[(USER, r#"{"env": {"CLAUDE_CODE_SAFE_MODE": 1}}"#)], &[("CLAUDE_CODE_SAFE_MODE", USER)]),
            (&[(USER, r#"{"env": {"CLAUDE_CODE_SIMPLE": "0"}}"#)], &[]),
        ];
        for (files, expected) in cases {
            let (dir, settings) = settings(files);
            let expected: Vec<_> =
                expected.iter().map(|(name, file)| (*name, dir.path().join(file))).collect();
            let found: Vec<_> =
                settings.against_hooks().into_iter().map(|(name, path)| (name, path.to_owned())).collect();
            assert_eq!(found, expected, "{files:?}");
        }
        let (_dir, both) = settings(&[(PART, off), (MANAGED, on), (USER, only)]);
        assert!(both.against_hooks().is_empty(), "a part wins over the file");
    }

    #[test]
    fn an_invalid_file_has_a_fault_and_no_switches() {
        for (text, why) in [("{ nope", "not valid JSON"), ("[]", "not a JSON object")] {
            let (_dir, settings) = settings(&[(USER, text)]);
            assert!(settings.layers[0].fault.as_deref().unwrap().contains(why), "{text}");
            assert!(settings.against_hooks().is_empty());
        }
        assert!(settings(&[(USER, " \n")]).1.layers[0].fault.is_none(), "an empty file is valid");
    }

    #[test]
    fn only_switches_are_copied() {
        let text = r#"{"disableAllHooks": true, "apiKeyHelper": "secret", "env": {"TOKEN": "x", "CLAUDE_CODE_SIMPLE": "1"},
            "hooks": {"Stop": []}}"#;
        let (_dir, settings) = settings(&[(USER, text)]);
        let expected = json!({"disableAllHooks": true, "env": {"CLAUDE_CODE_SIMPLE": "1"}});
        assert_eq!(settings.switches_of(Scope::User), expected);
        assert_eq!(settings.switches_of(Scope::Local), json!({}));
    }
}
