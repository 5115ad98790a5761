//! The user's own settings of Claude Code: a status line put in or taken out, and not a byte more.
//!
//! A file that is not valid JSON is never written. What was there before us is noted in our own folder, so that
//! taking ours out leaves what was before.

use crate::core::json_text;
use crate::store::file::{self, Privacy};
use crate::store::world::World;
use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const STATUS_LINE: &str = "statusLine";
const LARGEST: u64 = 16 << 20;
/// Objects the client makes for its records of plugins, and leaves behind empty.
const OF_PLUGINS: [&str; 2] = ["enabledPlugins", "extraKnownMarketplaces"];

/// The settings file as it was read.
pub struct SettingsFile {
    /// Where its bytes are: behind a link, where it is one.
    path: PathBuf,
    text: Option<String>,
}

/// What we found before the first of our changes.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Before {
    /// There was no file.
    created: bool,
    /// The client's records that were not there yet.
    missing: Vec<String>,
    /// A status line that gave way to ours.
    status_line: Option<String>,
}

/// A change, not made yet.
pub struct Change {
    pub before: String,
    pub after: String,
}

/// What stands in the way of our status line, or does not.
pub enum StatusLine {
    Ours,
    /// Somebody else's, as it stands in the file.
    Other(String),
    None,
}

impl SettingsFile {
    pub fn read(world: &World) -> Result<SettingsFile> {
        let folder = world.claude_config.as_ref();
        let path = folder.context("no home directory: set HOME or CLAUDE_CONFIG_DIR")?.join("settings.json");
        let path = path.canonicalize().unwrap_or(path);
        let Some(bytes) = file::read_bounded(&path, LARGEST)? else {
            return Ok(SettingsFile { path, text: None });
        };
        let wrong = |why: String| anyhow!("{} is not valid JSON and is left as it is: {why}", path.display());
        let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".into()))?;
        // The client takes an empty file for no settings, and so do we.
        if !text.trim().is_empty() {
            json_text::parse(&text).map_err(wrong)?;
        }
        Ok(SettingsFile { path, text: Some(text) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn text(&self) -> &str {
        self.text.as_deref().filter(|text| !text.trim().is_empty()).unwrap_or("{\n}\n")
    }

    pub fn status_line(&self, command: &str) -> StatusLine {
        let Some(value) = json_text::value_of(self.text(), STATUS_LINE) else { return StatusLine::None };
        let parsed: serde_json::Value = serde_json::from_str(value).unwrap_or_default();
        match parsed["command"] == command {
            true => StatusLine::Ours,
            false => StatusLine::Other(value.to_owned()),
        }
    }

    pub fn with_status_line(&self, command: &str) -> Result<Change> {
        let value = format!(r#"{{"type": "command", "command": {}}}"#, serde_json::Value::from(command));
        let after = json_text::with(self.text(), STATUS_LINE, &value).map_err(|why| anyhow!(why))?;
        Ok(Change { before: self.text.clone().unwrap_or_default(), after })
    }

    /// Notes what is there, before the client or we write to it for the first time.
    pub fn note(&self, world: &World) -> Result<()> {
        if note_path(world)?.exists() {
            return Ok(());
        }
        let missing = OF_PLUGINS.iter().filter(|name| json_text::value_of(self.text(), name).is_none());
        let missing = missing.map(|name| (*name).to_owned()).collect();
        save(world, &Before { created: self.text.is_none(), missing, status_line: None })
    }

    /// Notes the status line that gives way to ours.
    pub fn note_status_line(&self, world: &World, value: String) -> Result<()> {
        save(world, &Before { status_line: Some(value), ..noted(world).unwrap_or_default() })
    }

    /// Writes a change, unless the file has become another one meanwhile.
    pub fn write(&self, world: &World, change: &Change) -> Result<()> {
        let now = SettingsFile::read(world)?;
        if now.text.unwrap_or_default() != change.before {
            bail!("{} was changed meanwhile: nothing was written, call this again", self.path.display());
        }
        file::create_dir(self.path.parent().unwrap_or(&self.path))?;
        file::replace(&self.path, change.after.as_bytes(), Privacy::Shared)
    }

    /// Takes ours out again, and the empty records the client left of us. Says what was done with the status line.
    pub fn take_out(&self, world: &World, command: &str) -> Result<Option<&'static str>> {
        let Some(before) = self.text.clone().filter(|text| !text.trim().is_empty()) else { return Ok(None) };
        let noted = noted(world).unwrap_or_default();
        let (mut after, mut told) = (before.clone(), None);
        if let StatusLine::Ours = self.status_line(command) {
            after = match &noted.status_line {
                Some(value) => json_text::with(&after, STATUS_LINE, value).map_err(|why| anyhow!(why))?,
                None => json_text::without(&after, STATUS_LINE).unwrap_or(after),
            };
            told = Some(if noted.status_line.is_some() { "put back the one before" } else { "removed" });
        }
        for name in &noted.missing {
            let empty =
                json_text::value_of(&after, name).is_some_and(|value| value.replace([' ', '\n'], "") == "{}");
            after = empty.then(|| json_text::without(&after, name)).flatten().unwrap_or(after);
        }
        if noted.created && json_text::parse(&after).is_ok_and(|fields| fields.is_empty()) {
            std::fs::remove_file(&self.path)
                .with_context(|| format!("could not remove {}", self.path.display()))?;
        } else if after != before {
            self.write(world, &Change { before, after })?;
        }
        Ok(told)
    }
}

fn note_path(world: &World) -> Result<PathBuf> {
    Ok(super::marketplace::folder(world)?.join("before.json"))
}

fn noted(world: &World) -> Option<Before> {
    serde_json::from_slice(&file::read_bounded(&note_path(world).ok()?, LARGEST).ok()??).ok()
}

fn save(world: &World, before: &Before) -> Result<()> {
    let path = note_path(world)?;
    file::create_dir(path.parent().unwrap_or(&path))?;
    file::replace_alone(&path, serde_json::to_string(before)?.as_bytes(), Privacy::Private)
}
