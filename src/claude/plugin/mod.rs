//! The plugin as Claude Code loads it: its files are part of the program, so any copy can lay it out.

pub mod proof;
mod record;

use crate::core::clean;
use crate::store::file::{self, Privacy};
use crate::store::swap;
use anyhow::{Context, Result, bail};
use record::Record;
use std::path::{Path, PathBuf};

pub use record::MANIFEST;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

const FILES: [(&str, &str); 12] = [
    (MANIFEST, include_str!("../../../.claude-plugin/plugin.json")),
    ("README.md", include_str!("../../../README.md")),
    ("hooks/hooks.json", include_str!("../../../hooks/hooks.json")),
    ("hooks/steering.json", include_str!("../../../hooks/steering.json")),
    ("commands/start.md", include_str!("../../../commands/start.md")),
    ("commands/stop.md", include_str!("../../../commands/stop.md")),
    ("commands/status.md", include_str!("../../../commands/status.md")),
    ("commands/config.md", include_str!("../../../commands/config.md")),
    ("commands/encourage.md", include_str!("../../../commands/encourage.md")),
    ("commands/forbid.md", include_str!("../../../commands/forbid.md")),
    ("commands/scan.md", include_str!("../../../commands/scan.md")),
    ("commands/help.md", include_str!("../../../commands/help.md")),
];

const PROGRAMS: [&str; 4] = ["ralph", "ralph-stop-hook", "ralph-session-start-hook", "ralph-guidance"];

/// A plugin that could be laid out: our files, and the programs that go with them.
pub struct Plugin {
    programs: Vec<(String, PathBuf)>,
    record: Record,
}

/// What is in a folder where the plugin is to be.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    Nothing,
    /// Exactly this plugin.
    Current,
    /// A plugin of ours from another build, by its version.
    Other(String),
    /// A plugin of ours in which somebody changed, added or removed these files.
    Edited(Vec<String>),
}

impl Plugin {
    /// The plugin with the programs found in this folder.
    pub fn with_programs(folder: &Path) -> Result<Plugin> {
        let programs: Result<Vec<(String, PathBuf)>> =
            PROGRAMS.iter().map(|name| find(folder, name)).collect();
        let programs = programs?;
        let record = Record::of(&FILES, &programs)?;
        Ok(Plugin { programs, record })
    }

    /// Looks at a folder; one that holds something else is not ours to fill.
    pub fn look(&self, target: &Path) -> Result<Found> {
        match std::fs::read_dir(target).map(|mut entries| entries.next().is_some()) {
            Ok(true) => {}
            Ok(false) => return Ok(Found::Nothing),
            Err(_) if target.symlink_metadata().is_err() => return Ok(Found::Nothing),
            Err(error) => {
                return Err(error).with_context(|| format!("could not read the folder {}", target.display()));
            }
        }
        let version = record::version_of(target)?.with_context(|| {
            format!("{} is not empty and holds no Ralph plugin: name another folder", target.display())
        })?;
        if target.join("Cargo.toml").exists() {
            bail!("{} is Ralph's own source: name another folder", target.display());
        }
        let Some(found) = Record::read(target) else { return Ok(Found::Other(version)) };
        let edited = found.edited(target)?;
        Ok(match edited.is_empty() {
            false => Found::Edited(edited),
            true if found == self.record => Found::Current,
            true => Found::Other(version),
        })
    }

    /// Lays the plugin out in `target`, in the place of what is there: in one step where the system can
    /// exchange folders, file by file where it cannot. Programs that run go on, and a hook that starts meanwhile
    /// finds the old program or the new one. With `keep`, a copy of what was there is in that folder.
    pub fn stage(&self, target: &Path, keep: Option<&Path>) -> Result<()> {
        tidy(target)?;
        let new = beside(target);
        create_dir(&new)?;
        self.lay_out(&new)?;
        // Before anything is exchanged: wherever this is cut off, it is kept.
        keep.map_or(Ok(()), |keep| copy_folder(target, keep))?;
        if !swap::folders(&new, target)? {
            self.lay_out(target)?;
            self.remove_others(target);
        }
        remove_folder(&new)
    }

    fn lay_out(&self, folder: &Path) -> Result<()> {
        for (name, text) in FILES {
            let path = folder.join(name);
            create_dir(path.parent().unwrap_or(folder))?;
            file::replace(&path, text.as_bytes(), Privacy::Shared)?;
        }
        create_dir(&folder.join("bin"))?;
        for (name, source) in &self.programs {
            let (path, new) = (folder.join("bin").join(name), folder.join("bin").join(format!("{name}.new")));
            file::copy(source, &new)?;
            // Renamed over the old one: a running session keeps the program it started.
            std::fs::rename(&new, &path).with_context(|| format!("could not write {}", path.display()))?;
        }
        self.record.write(folder)
    }

    /// Files of an earlier plugin that this one no longer has.
    fn remove_others(&self, folder: &Path) {
        for name in record::names_in(folder).unwrap_or_default() {
            if !self.record.has(&name) {
                let _ = std::fs::remove_file(folder.join(name));
            }
        }
    }
}

/// The program of this name in a plugin that was laid out.
pub fn program(folder: &Path, name: &str) -> PathBuf {
    folder.join("bin").join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// Whether a folder holds a plugin of ours, whoever laid it out.
pub fn is_ours(folder: &Path) -> bool {
    matches!(record::version_of(folder), Ok(Some(_)))
}

/// Files of a plugin of ours that somebody changed since it was laid out, or added.
pub fn edited(folder: &Path) -> Vec<String> {
    Record::read(folder).and_then(|record| record.edited(folder).ok()).unwrap_or_default()
}

/// Removes what an install left that was killed between two steps.
pub fn tidy(target: &Path) -> Result<()> {
    remove_folder(&beside(target))
}

/// Where the next plugin is made ready: always the same place, so that what a killed install left is found.
fn beside(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    target.with_file_name(format!(".{name}.ralph-new"))
}

fn find(folder: &Path, name: &str) -> Result<(String, PathBuf)> {
    let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if !path.is_file() {
        bail!("{} is missing: build all programs first (cargo build --release --bins)", path.display());
    }
    Ok((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), path))
}

/// Removes a folder and says which where it cannot; one that is not there is removed.
pub fn remove_folder(path: &Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("could not remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    for name in record::names_in(from)? {
        let target = to.join(&name);
        create_dir(target.parent().unwrap_or(to))?;
        file::copy(&from.join(&name), &target)?;
    }
    Ok(())
}

fn create_dir(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).with_context(|| {
        format!("could not create the folder {}", clean::visible(&path.display().to_string()))
    })
}
