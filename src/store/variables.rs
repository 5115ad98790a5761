//! The `RALPH_*` variables that count. Claude Code gives `env` of the project's own settings to its hooks and to what the agent
//! runs, so a repository can set any of them: those that it names do not speak for the user.

use super::file;
use super::project::Project;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const PREFIX: &str = "RALPH_";
/// Claude Code's settings in a project.
const FILES: [&str; 2] = ["settings.local.json", "settings.json"];
/// Settings are small, and a larger file is taken as if it set every variable.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// What is no setting: folders, the clock, and what a runner tells its own programs.
const OTHERS: [&str; 5] =
    ["RALPH_DATA_DIR", "RALPH_CONFIG_DIR", "RALPH_NOW", "RALPH_RUN_ID", "RALPH_VERIFYING"];
/// More names in one file are counted, not named.
const MAX_NAMED: usize = 5;

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
    FILES.iter().filter_map(|name| ProjectEnvFile::read(project, name)?.note()).collect()
}

/// Says which variables of this process were ignored.
pub fn ignored() -> Vec<String> {
    // Most projects name none, and then the environment need not be read.
    if foreign().is_empty() || !names().any(|name| is_foreign(&name)) {
        return Vec::new();
    }
    foreign().iter().filter_map(ProjectEnvFile::note).collect()
}

fn is_foreign(name: &str) -> bool {
    foreign().iter().any(|file| match &file.sets {
        ProjectVariables::Named(names) => names.contains(name),
        ProjectVariables::Any(_) => true,
    })
}

/// Returns the files of settings that set variables which this process may have been given.
fn foreign() -> &'static [ProjectEnvFile] {
    static FOREIGN: OnceLock<Vec<ProjectEnvFile>> = OnceLock::new();
    FOREIGN.get_or_init(|| {
        let projects = projects();
        let files = projects.iter().flat_map(|project| FILES.iter().map(move |file| (project, file)));
        files.filter_map(|(project, file)| ProjectEnvFile::read(project, file)).collect()
    })
}

/// Returns the projects whose settings this process may have been given: none outside the client.
fn projects() -> Vec<Project> {
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
}

/// A file of the project's settings that sets variables of ours.
struct ProjectEnvFile {
    path: PathBuf,
    sets: ProjectVariables,
}

enum ProjectVariables {
    Named(BTreeSet<String>),
    /// Why the file could not be read whole: the client may read what we do not.
    Any(String),
}

impl ProjectEnvFile {
    fn read(project: &Project, name: &str) -> Option<ProjectEnvFile> {
        let path = project.claude_dir().join(name);
        // Links are followed, as the client follows them: nothing but the names is taken from it. Which links the user
        // allows is unknown before the data folder is.
        let sets = match file::read_bounded(&path, MAX_FILE_BYTES).map(|bytes| bytes.unwrap_or_default()) {
            Ok(bytes) if bytes.trim_ascii().is_empty() => return None,
            Ok(bytes) => match serde_json::from_slice::<SettingsEnv>(&bytes) {
                Ok(settings) => ProjectVariables::Named(settings.env.unwrap_or_default().names),
                Err(error) => ProjectVariables::Any(format!("Ralph cannot read its line {}", error.line())),
            },
            Err(_) if path.metadata().is_err() => return None,
            Err(_) => ProjectVariables::Any("Ralph cannot read it".into()),
        };
        let sets_none = matches!(&sets, ProjectVariables::Named(names) if names.is_empty());
        (!sets_none).then_some(ProjectEnvFile { path, sets })
    }

    /// Says what it sets, unless that is unknown and there is nothing to ignore.
    fn note(&self) -> Option<String> {
        let path = self.path.display();
        match &self.sets {
            ProjectVariables::Any(_) if names().next().is_none() => None,
            ProjectVariables::Any(why) => Some(format!(
                "{path} may set RALPH_* variables for Claude Code ({why}): all of them are ignored there, because a project \
                 must not change your variables; repair the file"
            )),
            ProjectVariables::Named(names) => {
                let more = names.len().saturating_sub(MAX_NAMED);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let names: Vec<_> = names.iter().take(MAX_NAMED).map(String::as_str).collect();
                let names = names.join(", ");
                Some(format!(
                    "{path} sets {names}{more} for Claude Code: ignored there, because a project must not change your \
                     variables; set it in your shell or with `ralph config`"
                ))
            }
        }
    }
}

/// The part of Claude Code's settings that we look at. The rest is passed over without being kept. A key that is there
/// twice is an error: of the two the client takes one.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SettingsEnv {
    env: Option<RalphVariables>,
}

#[derive(Default)]
struct RalphVariables {
    names: BTreeSet<String>,
}

impl<'de> Deserialize<'de> for RalphVariables {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = RalphVariables;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RalphVariables, A::Error> {
                let mut ours = RalphVariables::default();
                while let Some((name, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
                    if name.starts_with(PREFIX) {
                        ours.names.insert(name);
                    }
                }
                Ok(ours)
            }
        }
        deserializer.deserialize_map(Names)
    }
}
