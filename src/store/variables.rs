//! The `RALPH_*` variables that count. Claude Code gives `env` of the project's own settings to its hooks and to what the agent
//! runs, so a repository can set any of them: those that it names do not speak for the user.

use super::file;
use super::project::Project;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const PREFIX: &str = "RALPH_";
/// Claude Code's settings in a project.
const FILES: [&str; 2] = ["settings.local.json", "settings.json"];
const MAX_FILE_BYTES: u64 = 8 << 20;
/// What is no setting: folders, the clock, and what a runner tells its own programs.
const OTHERS: [&str; 5] =
    ["RALPH_DATA_DIR", "RALPH_CONFIG_DIR", "RALPH_NOW", "RALPH_RUN_ID", "RALPH_VERIFYING"];
/// More names in one file are counted, not named.
const MAX_NAMED: usize = 5;
/// Far more than there are settings.
const MAX_NAMES: usize = 1000;

/// Returns a variable that is set, not empty, and not the project's.
pub fn get(name: &str) -> Option<OsString> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
    (!name.starts_with(PREFIX) || !is_foreign(name)).then_some(value)
}

/// Returns every variable that may be a setting, with its value; folders and the clock are none.
pub fn settings() -> Vec<(String, String)> {
    let ours = names().filter(|name| !OTHERS.contains(&name.as_str()));
    ours.filter_map(|name| Some((get(&name)?.into_string().ok()?, name)).map(|(value, name)| (name, value)))
        .collect()
}

fn names() -> impl Iterator<Item = String> {
    let is_ours = |name: &OsString| name.as_encoded_bytes().starts_with(PREFIX.as_bytes());
    let ours = std::env::vars_os().map(|(name, _)| name).filter(is_ours);
    ours.filter_map(|name| name.into_string().ok())
}

/// Says which variables the project's own settings set.
pub fn foreign_notes(project: &Project) -> Vec<String> {
    let note = |name: &str| {
        let (path, names) = named_in(project, name)?;
        let more = names.len().saturating_sub(MAX_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let (path, names) = (path.display(), names[..names.len().min(MAX_NAMED)].join(", "));
        Some(format!(
            "{path} sets {names}{more} for Claude Code: ignored there, a project cannot speak for you; set it in your shell \
             or with `ralph config`"
        ))
    };
    FILES.iter().filter_map(|name| note(name)).collect()
}

/// Says which variables of this process were ignored.
pub fn ignored() -> Vec<String> {
    // Most projects name none, and then the environment need not be read.
    if !foreign_names().is_empty() && names().any(|name| is_foreign(&name)) {
        foreign().iter().flat_map(foreign_notes).collect()
    } else {
        Vec::new()
    }
}

fn is_foreign(name: &str) -> bool {
    foreign_names().iter().any(|foreign| foreign == name)
}

/// Returns the variables that the project's settings name, as far as this process may have been given them.
fn foreign_names() -> &'static [String] {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    let names = || {
        let files = foreign().iter().flat_map(|project| FILES.iter().map(move |file| (project, file)));
        files.filter_map(|(project, file)| named_in(project, file)).flat_map(|(_, names)| names).collect()
    };
    NAMES.get_or_init(names)
}

/// Returns the projects whose settings this process may have been given: none outside the client.
fn foreign() -> &'static [Project] {
    static PROJECTS: OnceLock<Vec<Project>> = OnceLock::new();
    PROJECTS.get_or_init(|| {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let launched = set("CLAUDE_PROJECT_DIR").map(PathBuf::from);
        if launched.is_none() && set("CLAUDECODE").is_none() {
            return Vec::new();
        }
        // What the agent runs is not told where the client was launched.
        let above = || {
            let folder = std::env::current_dir().unwrap_or_default();
            folder.ancestors().map(Path::to_owned).collect()
        };
        let roots = launched.map_or_else(above, |root| vec![root]);
        roots.into_iter().map(|root| Project { root }).collect()
    })
}

/// Returns a file of the project's settings and the names of our variables that it sets.
fn named_in(project: &Project, name: &str) -> Option<(PathBuf, Vec<String>)> {
    let path = project.claude_dir().join(name);
    // Links are followed, as the client follows them: nothing but the names is taken from it. Which links the user allows
    // is unknown before the data folder is.
    let names: Vec<String> = match file::read_bounded(&path, MAX_FILE_BYTES) {
        Ok(bytes) => serde_json::from_slice::<ClientSettings>(&bytes?).ok()?.env.names,
        // The client may read what we do not, so any setting may be the project's.
        Err(_) => self::names().filter(|name| !OTHERS.contains(&name.as_str())).collect(),
    };
    (!names.is_empty()).then_some((path, names))
}

/// The part of Claude Code's settings that we look at. The rest is passed over without being kept.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ClientSettings {
    env: OurNames,
}

#[derive(Default)]
struct OurNames {
    names: Vec<String>,
}

impl<'de> Deserialize<'de> for OurNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = OurNames;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OurNames, A::Error> {
                let mut ours = OurNames::default();
                while let Some((name, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
                    if name.starts_with(PREFIX) && ours.names.len() < MAX_NAMES {
                        ours.names.push(name);
                    }
                }
                Ok(ours)
            }
        }
        deserializer.deserialize_map(Names)
    }
}
