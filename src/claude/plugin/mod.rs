//! The plugin as Claude Code loads it. Its files are part of the program, so every copy of Ralph can install it.

pub mod hooks;
pub mod marketplace;
mod record;

use crate::store::file::swap;
use crate::store::file::{self, Privacy};
use crate::store::hinted::Hinted;
use crate::store::process::names;
use anyhow::{Context, Result, ensure};
use record::InstallRecord;
use std::path::{Path, PathBuf};

const NAME_ANOTHER: &str = "name another folder";

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

const FILES: &[(&str, &str)] = &[
    (hooks::MANIFEST, include_str!("../../../.claude-plugin/plugin.json")),
    ("README.md", include_str!("../../../README.md")),
    ("hooks/hooks.json", include_str!("../../../hooks/hooks.json")),
    ("hooks/steering.json", include_str!("../../../hooks/steering.json")),
    ("hooks/module.json", include_str!("../../../hooks/module.json")),
    ("hooks/register.js", include_str!("../../../hooks/register.js")),
    ("commands/start.md", include_str!("../../../commands/start.md")),
    ("skills/start/SKILL.md", include_str!("../../../skills/start/SKILL.md")),
    ("commands/stop.md", include_str!("../../../commands/stop.md")),
    ("commands/status.md", include_str!("../../../commands/status.md")),
    ("commands/config.md", include_str!("../../../commands/config.md")),
    ("commands/encourage.md", include_str!("../../../commands/encourage.md")),
    ("commands/forbid.md", include_str!("../../../commands/forbid.md")),
    ("commands/answer.md", include_str!("../../../commands/answer.md")),
    ("commands/scan.md", include_str!("../../../commands/scan.md")),
    ("commands/history.md", include_str!("../../../commands/history.md")),
    ("commands/reset.md", include_str!("../../../commands/reset.md")),
    ("commands/help.md", include_str!("../../../commands/help.md")),
];

const PROGRAMS: [&str; 4] = [names::RALPH, names::STOP_HOOK, names::SESSION_START_HOOK, names::GUIDANCE];

/// The files of the plugin and the programs that belong to it.
pub struct PluginFiles {
    /// Each program's file name and path.
    programs: Vec<(String, PathBuf)>,
    record: InstallRecord,
}

/// What is in the folder to which the plugin is copied.
#[derive(Debug, PartialEq, Eq)]
pub enum TargetState {
    Empty,
    /// Exactly this plugin.
    Current,
    /// Our plugin from another build, with its version.
    Other(String),
    /// Our plugin, in which these files were changed, added or removed.
    Edited(Vec<String>),
}

impl PluginFiles {
    pub fn with_programs(folder: &Path) -> Result<PluginFiles> {
        let find = |name: &&str| {
            let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
            let path = folder.join(&name);
            let hint = "build all programs first (cargo build --release --bins)";
            ensure!(path.is_file(), "{} is missing: {hint}", path.display());
            Ok((name, path))
        };
        let programs = PROGRAMS.iter().map(find).collect::<Result<Vec<_>>>()?;
        let record = InstallRecord::of(FILES, &programs)?;
        Ok(PluginFiles { programs, record })
    }

    /// Inspects a folder. Fails if it contains something else than our plugin.
    pub fn inspect(&self, target: &Path) -> Result<TargetState> {
        if target.symlink_metadata().is_err() {
            return Ok(TargetState::Empty);
        }
        let entries = std::fs::read_dir(target);
        if entries.with_context(|| format!("could not read {}", target.display()))?.next().is_none() {
            return Ok(TargetState::Empty);
        }
        let Some(version) = version_of_ours(target) else {
            let what = format!("{} is not empty and contains no Ralph plugin", target.display());
            return Err(Hinted::error(what, NAME_ANOTHER));
        };
        if target.join("Cargo.toml").exists() {
            return Err(Hinted::error(format!("{} is Ralph's own source", target.display()), NAME_ANOTHER));
        }
        let Some(found) = InstallRecord::read(target) else { return Ok(TargetState::Other(version)) };
        let edited = found.edited(target)?;
        Ok(match edited.is_empty() {
            false => TargetState::Edited(edited),
            true if found == self.record => TargetState::Current,
            true => TargetState::Other(version),
        })
    }

    /// Replaces the content of `target` with the plugin in one step: a hook that starts in the meantime finds the
    /// old program or the new one. Copies the old content to `backup` first, if one is given.
    pub fn install(&self, target: &Path, backup: Option<&Path>) -> Result<()> {
        remove_unfinished(target)?;
        let new = unfinished(target);
        self.write(&new)?;
        if let Some(backup) = backup {
            for name in record::names_in(target)? {
                copy(&target.join(&name), &backup.join(&name))?;
            }
        }
        swap::folders(&new, target)?;
        file::remove_folder(&new)
    }

    fn write(&self, folder: &Path) -> Result<()> {
        for (name, text) in FILES {
            let path = folder.join(name);
            file::create_shared_dir(path.parent().unwrap_or(&path))?;
            file::replace(&path, text.as_bytes(), Privacy::Shared)?;
        }
        for (name, source) in &self.programs {
            copy(source, &folder.join("bin").join(name))?;
        }
        self.record.write(folder)
    }
}

/// Returns the path of a program in a plugin.
pub fn program(folder: &Path, name: &str) -> PathBuf {
    folder.join("bin").join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// Returns the version of the plugin in a folder, if it is ours.
pub fn version_of_ours(folder: &Path) -> Option<String> {
    let manifest = hooks::manifest(folder).ok()??;
    let version = manifest["version"].as_str().unwrap_or("of an unknown version");
    (manifest["name"] == "ralph").then(|| version.to_owned())
}

/// Returns the files of our plugin that were changed or added after it was installed.
pub fn edited(folder: &Path) -> Vec<String> {
    InstallRecord::read(folder).and_then(|record| record.edited(folder).ok()).unwrap_or_default()
}

/// Removes what a killed install left.
pub fn remove_unfinished(target: &Path) -> Result<()> {
    file::remove_folder(&unfinished(target))
}

/// Returns the folder in which a new plugin is prepared. It is always the same, so a killed install can be cleaned up.
fn unfinished(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    target.with_file_name(format!(".{name}.ralph-new"))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    file::create_shared_dir(to.parent().unwrap_or(to))?;
    file::copy(from, to)
}
