//! The user's `settings.json` of Claude Code: adds and removes our status line, and changes nothing else.
//!
//! A file that is not valid JSON is never written. `before.json` records what was there before the first change, so
//! that uninstall can restore it.

use super::json_edit;
use crate::store::file::{self, Privacy};
use crate::store::world::World;
use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const STATUS_LINE: &str = "statusLine";
/// Without it, Claude Code asks for the line only after an answer: a wait or a pause would not show.
const REFRESH: &str = "refreshInterval";
const REFRESH_SECONDS: u32 = 5;
const MAX_BYTES: u64 = 16 << 20;
/// Members that Claude Code adds when it installs a plugin, and leaves behind empty.
const PLUGIN_RECORDS: [&str; 2] = ["enabledPlugins", "extraKnownMarketplaces"];

pub struct SettingsFile {
    /// The file itself, also if `settings.json` is a link to it.
    path: PathBuf,
    /// `None` if there is no file.
    text: Option<String>,
}

/// What was there before our first change.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct OriginalSettings {
    /// There was no file.
    created: bool,
    /// The records of Claude Code that were not there yet.
    missing: Vec<String>,
    /// The status line that ours replaced.
    status_line: Option<String>,
}

/// A change that is not written yet.
pub struct SettingsEdit {
    pub before: String,
    pub after: String,
}

/// The status line in the file.
pub enum StatusLine {
    Ours {
        /// It is also run while nothing happens; that of an earlier Ralph was not.
        refreshes: bool,
    },
    /// Another one, as text.
    Other(String),
    None,
}

impl SettingsFile {
    pub fn read(world: &World) -> Result<SettingsFile> {
        let folder = world.claude_config.as_ref();
        let path = folder.context("no home directory: set HOME or CLAUDE_CONFIG_DIR")?.join("settings.json");
        let path = path.canonicalize().unwrap_or(path);
        let Some(bytes) = file::read_bounded(&path, MAX_BYTES)? else {
            return Ok(SettingsFile { path, text: None });
        };
        let invalid = |why: String| anyhow!("{} is not valid JSON: {why}", path.display());
        let text = String::from_utf8(bytes).map_err(|_| invalid("it is not UTF-8".into()))?;
        // Claude Code treats an empty file as no settings.
        if !text.trim().is_empty() {
            json_edit::parse(&text).map_err(invalid)?;
        }
        Ok(SettingsFile { path, text: Some(text) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn text(&self) -> &str {
        self.text.as_deref().filter(|text| !text.trim().is_empty()).unwrap_or("{}\n")
    }

    pub fn status_line(&self, command: &str) -> StatusLine {
        let Some(value) = json_edit::get(self.text(), STATUS_LINE) else { return StatusLine::None };
        let parsed: serde_json::Value = serde_json::from_str(&value).unwrap_or_default();
        match parsed["command"] == command {
            true => StatusLine::Ours { refreshes: parsed.get(REFRESH).is_some() },
            false => StatusLine::Other(value),
        }
    }

    pub fn with_status_line(&self, command: &str) -> Result<SettingsEdit> {
        let new = || format!(r#"{{"type": "command", "command": {}}}"#, serde_json::Value::from(command));
        let is_ours = matches!(self.status_line(command), StatusLine::Ours { .. });
        let value = json_edit::get(self.text(), STATUS_LINE).filter(|_| is_ours).unwrap_or_else(new);
        let fields = value.trim_end().strip_suffix('}').unwrap_or(&value);
        let value = format!(r#"{}, "{REFRESH}": {REFRESH_SECONDS}}}"#, fields.trim_end());
        let after = json_edit::set(self.text(), STATUS_LINE, &value).map_err(|why| anyhow!(why))?;
        Ok(SettingsEdit { before: self.text.clone().unwrap_or_default(), after })
    }

    /// Records the state of the file before Claude Code or we write to it for the first time.
    pub fn record(&self, world: &World) -> Result<()> {
        if record_path(world)?.exists() {
            return Ok(());
        }
        let missing = PLUGIN_RECORDS.iter().filter(|name| json_edit::get(self.text(), name).is_none());
        let missing = missing.map(|name| (*name).to_owned()).collect();
        save(world, &OriginalSettings { created: self.text.is_none(), missing, status_line: None })
    }

    /// Records the status line that ours replaces.
    pub fn record_status_line(&self, world: &World, value: String) -> Result<()> {
        save(world, &OriginalSettings { status_line: Some(value), ..recorded(world) })
    }

    /// Writes a change, unless the file was changed since it was read.
    pub fn write(&self, world: &World, change: &SettingsEdit) -> Result<()> {
        let now = SettingsFile::read(world)?;
        if now.text.unwrap_or_default() != change.before {
            bail!("{} changed in the meantime; nothing was written, try again", self.path.display());
        }
        file::create_dir(self.path.parent().unwrap_or(&self.path))?;
        file::replace(&self.path, change.after.as_bytes(), Privacy::Shared)
    }

    /// Removes our status line and the empty records of Claude Code. Returns what happened to the status line.
    pub fn restore(&self, world: &World, command: &str) -> Result<Option<&'static str>> {
        let Some(before) = self.text.clone().filter(|text| !text.trim().is_empty()) else { return Ok(None) };
        let recorded = recorded(world);
        let (mut after, mut done) = (before.clone(), None);
        if let StatusLine::Ours { .. } = self.status_line(command) {
            (after, done) = match &recorded.status_line {
                Some(value) => {
                    let restored = json_edit::set(&after, STATUS_LINE, value).map_err(|why| anyhow!(why))?;
                    (restored, Some("restored the previous one"))
                }
                None => (json_edit::remove(&after, STATUS_LINE).unwrap_or(after), Some("removed")),
            };
        }
        for name in &recorded.missing {
            let fields = json_edit::parse(&after).unwrap_or_default();
            if fields.get(name).and_then(|value| value.as_object()).is_some_and(|records| records.is_empty())
            {
                after = json_edit::remove(&after, name).unwrap_or(after);
            }
        }
        if recorded.created && json_edit::parse(&after).is_ok_and(|fields| fields.is_empty()) {
            file::remove(&self.path)?;
        } else if after != before {
            self.write(world, &SettingsEdit { before, after })?;
        }
        Ok(done)
    }
}

fn record_path(world: &World) -> Result<PathBuf> {
    Ok(crate::claude::plugin::marketplace::folder(world)?.join("before.json"))
}

fn recorded(world: &World) -> OriginalSettings {
    record_path(world).ok().and_then(|path| file::read_json(&path, MAX_BYTES)).unwrap_or_default()
}

fn save(world: &World, before: &OriginalSettings) -> Result<()> {
    let path = record_path(world)?;
    file::create_dir(path.parent().unwrap_or(&path))?;
    file::replace_locked(&path, serde_json::to_string(before)?.as_bytes(), Privacy::Private)
}
