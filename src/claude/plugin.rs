//! The plugin as Claude Code loads it: its files are part of the program, so any copy can lay it out.

use crate::store::file::{self, Privacy};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

const FILES: [(&str, &str); 12] = [
    (".claude-plugin/plugin.json", include_str!("../../.claude-plugin/plugin.json")),
    ("README.md", include_str!("../../README.md")),
    ("hooks/hooks.json", include_str!("../../hooks/hooks.json")),
    ("hooks/steering.json", include_str!("../../hooks/steering.json")),
    ("commands/start.md", include_str!("../../commands/start.md")),
    ("commands/stop.md", include_str!("../../commands/stop.md")),
    ("commands/status.md", include_str!("../../commands/status.md")),
    ("commands/config.md", include_str!("../../commands/config.md")),
    ("commands/encourage.md", include_str!("../../commands/encourage.md")),
    ("commands/forbid.md", include_str!("../../commands/forbid.md")),
    ("commands/scan.md", include_str!("../../commands/scan.md")),
    ("commands/help.md", include_str!("../../commands/help.md")),
];

const PROGRAMS: [&str; 4] = ["ralph", "ralph-stop-hook", "ralph-session-start-hook", "ralph-guidance"];

/// Lays out a complete plugin in `target` with the programs found in `programs`.
pub fn stage(target: &Path, programs: &Path) -> Result<()> {
    let found: Result<Vec<(String, PathBuf)>> = PROGRAMS.iter().map(|name| find(programs, name)).collect();
    let found = found?;
    refuse_foreign(target)?;
    for (name, text) in FILES {
        let path = target.join(name);
        create_parent(&path)?;
        file::replace(&path, text.as_bytes(), Privacy::Shared)?;
    }
    for (name, source) in found {
        let path = target.join("bin").join(name);
        create_parent(&path)?;
        replace_program(&source, &path)?;
    }
    Ok(())
}

/// A folder that holds something else is not ours to fill.
fn refuse_foreign(target: &Path) -> Result<()> {
    let Ok(mut entries) = std::fs::read_dir(target) else { return Ok(()) };
    if entries.next().is_none() {
        return Ok(());
    }
    let manifest =
        file::read_bounded(&target.join(".claude-plugin/plugin.json"), 1 << 20)?.unwrap_or_default();
    let ours = serde_json::from_slice::<serde_json::Value>(&manifest)
        .is_ok_and(|manifest| manifest["name"] == "ralph");
    if !ours {
        bail!("{} is not empty and holds no Ralph plugin: name another folder", target.display());
    }
    Ok(())
}

fn find(programs: &Path, name: &str) -> Result<(String, PathBuf)> {
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let path = programs.join(&name);
    if !path.is_file() {
        bail!("{} is missing: build all programs first (cargo build --release --bins)", path.display());
    }
    Ok((name, path))
}

/// Beside the old one, then renamed over it: a running session keeps the program it started.
fn replace_program(source: &Path, target: &Path) -> Result<()> {
    let temporary = target.with_extension("new");
    std::fs::copy(source, &temporary)
        .and_then(|_| std::fs::rename(&temporary, target))
        .with_context(|| format!("could not copy {} to {}", source.display(), target.display()))
}

fn create_parent(path: &Path) -> Result<()> {
    let parent = path.parent().unwrap_or(path);
    std::fs::create_dir_all(parent)
        .with_context(|| format!("could not create the folder {}", parent.display()))
}
