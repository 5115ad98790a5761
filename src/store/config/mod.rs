//! Settings from where people give them: the run's flags, variables, the project's file and the user's.

pub mod trust;

use super::file::{self, Privacy};
use super::project::Project;
use super::state::Document;
use super::tasks as list;
use super::user::armed;
use super::variables;
use super::world::World;
use crate::core::record::{ArmedLoop, Engine, GivenSettings};
use crate::core::settings::{
    self, Files, KEYS, Layer, Resolved, SettingKey, SettingRow, SettingSource, ValueKind,
};
use crate::core::tasks;
use crate::core::text::{clean, nearest};
use anyhow::{Result, bail};
use serde_json::{Map, Value};
use std::cell::LazyCell;
use std::path::{Path, PathBuf};

type Values = Map<String, Value>;

const MAX_FILE_BYTES: u64 = 1 << 20;
/// More unknown settings of a file are shown by `ralph config` and `ralph doctor` only.
const MAX_UNKNOWN_SETTINGS: usize = 3;

/// Resolves the settings that hold here without a loop.
pub fn load(world: &World, project: &Project) -> Resolved {
    let (given, commands, tasks) = (GivenSettings::default(), Map::new(), tasks::TaskSource::default());
    let start =
        Start { given: &given, commands: &commands, tasks: &tasks, limits: None, engine: Engine::default() };
    resolve(world, project, &start)
}

/// What a loop was given at its start.
struct Start<'a> {
    given: &'a GivenSettings,
    commands: &'a Values,
    tasks: &'a tasks::TaskSource,
    /// The limits of the project's file, once the loop runs.
    limits: Option<&'a Values>,
    engine: Engine,
}

/// Resolves the settings of a loop: what its start was given first. What is not understood is reported, because
/// someone may have written it for this loop.
pub fn load_for(world: &World, project: &Project, run: &ArmedLoop) -> Resolved {
    let ArmedLoop { commands, limits, .. } = run;
    let (given, tasks, limits) = (&run.given, &run.tasks, limits.as_ref());
    let mut resolved = resolve(world, project, &Start { given, commands, tasks, limits, engine: run.engine });
    for (path, values) in
        [(Some(project.config()), &resolved.files.project), (world.user_config(), &resolved.files.user)]
    {
        let (Some(path), Some(values)) = (path, values) else { continue };
        let unknown = unknown_in(&path, values);
        let more = unknown.len().saturating_sub(MAX_UNKNOWN_SETTINGS);
        resolved.warnings.extend(unknown.into_iter().take(MAX_UNKNOWN_SETTINGS));
        if more > 0 {
            let path = clean::line(&path.display().to_string());
            resolved
                .warnings
                .push(format!("{path}: {more} more unknown settings; `ralph config` shows them"));
        }
    }
    resolved
}

fn resolve(world: &World, project: &Project, start: &Start) -> Resolved {
    let Start { given, commands, tasks, limits, engine } = *start;
    let mut warnings = world.ignored.clone();
    let set = variables::settings();
    warnings.extend(mistyped_variables(&set));
    let mut files = Files::default();
    let layer = |source, place: &str, values| Layer { source, place: place.into(), values };
    let mut layers = vec![
        layer(SettingSource::Flag, "flags", commands.clone()),
        layer(SettingSource::Flag, "flags", without_commands(&given.flags)),
        layer(SettingSource::Preset, "preset", without_commands(&given.preset)),
    ];
    // A loop that runs has those of its start; what its hooks are given may be anyone's.
    let given_now = given_variables(&set);
    if limits.is_none() {
        layers.extend(given_now.iter().cloned());
    }
    layers.push(layer(
        SettingSource::Environment,
        "environment at the start",
        without_commands(&given.environment),
    ));
    let mut withheld = Vec::new();
    let path = project.config();
    files.project = read_or_last(read_own(project), given.files.project.clone(), &mut warnings);
    let values = files.project.clone().unwrap_or_default();
    let mut own = layer(SettingSource::Project, &path.display().to_string(), values);
    withheld.extend(withhold(world, project, &mut own, &mut warnings));
    layers.push(own);
    if let Some(path) = world.user_config() {
        // The copy of the user's file is kept in the project, so it never holds the user's commands.
        let last = given.files.user.as_ref().map(without_commands);
        let values = read_or_last(read(&path), last, &mut warnings);
        files.user = values.as_ref().map(without_commands);
        layers.push(layer(SettingSource::User, &path.display().to_string(), values.unwrap_or_default()));
    }
    files.project.take_if(|values| values.is_empty());
    files.user.take_if(|values| values.is_empty());
    let list = list::checks(world, project, tasks);
    let mut resolved = settings::resolve(&layers);
    let is_project = |layer: &Layer| layer.source == SettingSource::Project;
    let says_something = layers.iter().any(|layer| is_project(layer) && !layer.values.is_empty());
    if says_something || limits.is_some_and(|limits| !limits.is_empty()) {
        layers.retain(|layer| !is_project(layer));
        let own = settings::resolve(&layers);
        warnings.extend(resolved.keep_users_budget(&own));
        match limits {
            Some(limits) => {
                let file = project.config().display().to_string();
                warnings.extend(resolved.hold_to(limits, &own, engine, &file));
            }
            None => {
                resolved.limits = resolved.limits_of_project(&own);
                resolved.loosened = resolved.loosened_by_project(&own, engine);
            }
        }
    }
    if limits.is_some() && !given_now.is_empty() {
        let mut now = settings::resolve(&given_now);
        warnings.append(&mut now.warnings);
        warnings.extend(resolved.tighten(&now, engine));
    }
    warnings.append(&mut resolved.warnings);
    if list.trusted {
        resolved.add_checks(&list.commands, &tasks.file);
    } else if !list.commands.is_empty() {
        let (file, field) = (&tasks.file, list::CHECKS);
        warnings.push(format!("{file}: {field} {}", list.hint));
        let key = command_keys().find(|key| key.name == settings::CHECKS);
        let (value, place) = (Value::from(list.commands), format!("{file} {field}"));
        withheld.extend(key.map(|key| SettingRow { key, value, source: SettingSource::Project, place }));
    }
    // Warnings quote values from files that others may have written.
    let warnings = warnings.iter().map(|warning| clean::line(warning)).collect();
    Resolved { files, withheld, warnings, ..resolved }
}

/// Returns how old guidance may become. While loops run it is the longest of theirs: what the project's file says may be
/// an agent's, and must not drop what the user forbade.
pub fn guidance_max_age_ms(world: &World, project: &Project, document: &Document) -> i64 {
    let loops = armed::load_all(world, project, document);
    let alive = loops.loops.iter().filter(|(_, run)| run.is_alive());
    let ages = alive.map(|(_, run)| load_for(world, project, run).guidance_max_age_ms());
    ages.max().unwrap_or_else(|| load(world, project).guidance_max_age_ms())
}

/// Reads a file's values, or returns its last ones with a warning.
fn read_or_last(read: Result<Values>, last: Option<Values>, warnings: &mut Vec<String>) -> Option<Values> {
    read.map(Some).unwrap_or_else(|error| {
        let instead = if last.is_some() { "its last values are used" } else { "ignored" };
        warnings.push(format!("{error:#}, {instead}"));
        last
    })
}

/// Takes the commands out of the project's layer that this user has not trusted. What could not be run in any case is
/// named too.
fn withhold(
    world: &World,
    project: &Project,
    layer: &mut Layer,
    warnings: &mut Vec<String>,
) -> Vec<SettingRow> {
    let trusted = LazyCell::new(|| trust::load(world, project));
    let mut withheld = Vec::new();
    for key in command_keys() {
        let Some(value) = layer.values.get(key.name) else { continue };
        // An empty list would switch the user's own commands off, so it never counts.
        let is_empty = key.commands(value).is_empty();
        if is_empty || !trusted.allows(key.name, value) {
            let value = layer.values.shift_remove(key.name).unwrap_or_default();
            let wrong = if value.is_null() { Vec::new() } else { key.usable(&value).1 };
            warnings
                .extend(wrong.iter().map(|wrong| format!("{}: {} {wrong}, ignored", layer.place, key.name)));
            let row = SettingRow { key, value, source: layer.source, place: layer.place.clone() };
            if !is_empty {
                let verb =
                    if matches!(key.kind, ValueKind::Url | ValueKind::ToolRules) { "used" } else { "run" };
                warnings.push(format!("{}: {} {}", row.place, key.name, trusted.hint_for(verb)));
                withheld.push(row);
            }
        }
    }
    withheld
}

/// Commands in a file of the project that can be executed.
#[derive(Clone, Debug)]
pub struct ProjectCommands {
    pub file: PathBuf,
    /// The setting, or the field of the task list.
    pub name: &'static str,
    /// As the file gives them, which is what the user trusts.
    pub value: Value,
    pub commands: Vec<String>,
}

/// Returns the commands in the project's own file and in its task list.
pub fn project_commands(project: &Project) -> Result<Vec<ProjectCommands>> {
    let (file, values) = (project.config(), read_own(project)?);
    let own = command_keys().filter_map(|key| {
        let value = values.get(key.name)?.clone();
        Some(ProjectCommands { file: file.clone(), name: key.name, commands: key.commands(&value), value })
    });
    let source = tasks::TaskSource::default();
    let list = list::check_commands(project, &source).map(|value| ProjectCommands {
        file: project.root.join(&source.file),
        name: list::CHECKS,
        commands: list::texts(&value),
        value,
    });
    Ok(own.chain(list).filter(|found| !found.commands.is_empty()).collect())
}

/// Takes the commands out of what was given, to be kept where only the user writes.
pub fn take_commands(given: &mut GivenSettings) -> Map<String, Value> {
    let mut commands = Map::new();
    for values in [&mut given.environment, &mut given.flags] {
        for key in command_keys() {
            if let Some(value) = values.shift_remove(key.name) {
                commands.insert(key.name.to_owned(), value);
            }
        }
    }
    commands
}

/// Keeps the checks, allowed tools and limits of a run's start, so that a later change of the project's file cannot weaken
/// them.
pub fn freeze(run: &mut ArmedLoop, resolved: &Resolved) {
    run.limits = Some(resolved.limits.clone());
    for name in [settings::CHECKS, settings::ALLOWED_TOOLS] {
        let commands = resolved.commands(name);
        if !commands.is_empty() {
            run.commands.insert(name.into(), commands.into());
        }
    }
}

/// Returns the values without commands: what the project's state file says is not the user's word.
fn without_commands(values: &Values) -> Values {
    let mut values = values.clone();
    command_keys().for_each(|key| drop(values.shift_remove(key.name)));
    values
}

fn command_keys() -> impl Iterator<Item = &'static SettingKey> {
    KEYS.iter().filter(|key| key.kind.is_executed())
}

/// Returns one layer for each variable that is set, so that a warning names it.
fn given_variables(set: &[(String, String)]) -> Vec<Layer> {
    let mut layers = Vec::new();
    for key in KEYS.iter().filter(|_| !set.is_empty()) {
        for name in key.variables() {
            let Some((_, value)) = set.iter().find(|(set, _)| *set == name) else { continue };
            let values = Map::from_iter([(key.name.to_owned(), Value::from(value.as_str()))]);
            layers.push(Layer { source: SettingSource::Environment, place: name, values });
        }
    }
    layers
}

/// Warns about variables that are a slip away from a setting's. Others that begin like ours may be another program's.
fn mistyped_variables(set: &[(String, String)]) -> Vec<String> {
    if set.is_empty() {
        return Vec::new();
    }
    let own = |name: &str| name.strip_prefix("RALPH_").unwrap_or(name).to_owned();
    let known: Vec<String> = KEYS.iter().flat_map(SettingKey::variables).map(|name| own(&name)).collect();
    let mistyped = set.iter().map(|(name, _)| own(name)).filter(|name| !known.contains(name));
    let warn = |name: String| {
        let meant = nearest::nearest(&name, known.iter().map(String::as_str))?;
        Some(format!("RALPH_{name} is not a setting, did you mean RALPH_{meant}?"))
    };
    mistyped.filter_map(warn).collect()
}

/// Returns what the environment gives now, to be kept with the run: its hooks have another environment.
pub fn environment() -> Values {
    // The strongest variable of a key comes first, so it is inserted last.
    given_variables(&variables::settings()).into_iter().rev().flat_map(|layer| layer.values).collect()
}

/// Reads the values of the user's file by dotted key; nested objects and dotted names both work.
fn read(path: &Path) -> Result<Values> {
    document(path).map(by_dotted_key)
}

/// Reads the values of the project's file.
fn read_own(project: &Project) -> Result<Values> {
    let path = project.config();
    parsed(&path, project.read(&path, MAX_FILE_BYTES)?).map(by_dotted_key)
}

#[doc(hidden)]
pub fn by_dotted_key(fields: Values) -> Values {
    let mut values = Map::new();
    flatten("", fields, &mut values);
    values
}

fn flatten(prefix: &str, fields: Values, into: &mut Values) {
    for (name, value) in fields {
        let name = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match value {
            Value::Object(fields) if settings::find(&name).is_none() => flatten(&name, fields, into),
            value => drop(into.insert(name, value)),
        }
    }
}

fn document(path: &Path) -> Result<Values> {
    parsed(path, file::read_bounded(path, MAX_FILE_BYTES)?)
}

fn parsed(path: &Path, bytes: Option<Vec<u8>>) -> Result<Values> {
    bytes.map_or_else(|| Ok(Map::new()), |bytes| file::parse_object(path, &bytes))
}

/// Returns why a file could not be read at all, for each such file.
pub fn faults(world: &World, project: &Project) -> Vec<String> {
    let read = [Some(read_own(project)), world.user_config().map(|path| read(&path))].into_iter().flatten();
    read.filter_map(|read| read.err().map(|error| format!("{error:#}"))).collect()
}

/// Returns the keys in the files that this version does not know, with their file.
pub fn unknown(world: &World, project: &Project) -> Vec<String> {
    let own = (project.config(), read_own(project));
    let user = world.user_config().map(|path| (path.clone(), read(&path)));
    let files = [Some(own), user].into_iter().flatten();
    files.flat_map(|(path, values)| unknown_in(&path, &values.unwrap_or_default())).collect()
}

/// Returns a note about each key that is no setting. Guidance comes first: it may be meant for the loop that runs.
fn unknown_in(path: &Path, values: &Values) -> Vec<String> {
    let is_guidance = |name: &str| {
        let group = name.split('.').next().unwrap_or_default();
        matches!(group, "guidance" | "encourage" | "encouraged" | "forbid" | "forbidden")
    };
    let unknown = values.keys().filter(|name| settings::find(name).is_none());
    let (notes, other): (Vec<_>, Vec<_>) = unknown.partition(|name| is_guidance(name));
    let note = |name: &String| {
        let (path, name) = (path.display(), clean::excerpt(name, 60));
        clean::line(&if is_guidance(&name) {
            format!(
                "{path}: {name} is not read; use `ralph-guidance encourage TEXT` or `ralph-guidance forbid TEXT`"
            )
        } else {
            let meant =
                settings::nearest(&name).map_or_else(String::new, |meant| format!(", did you mean {meant}?"));
            format!("{path}: unknown setting {name}{meant}")
        })
    };
    notes.into_iter().chain(other).map(note).collect()
}

/// Sets one key in a file, or removes it; everything else in the file stays. Returns whether the file changed.
pub fn set(path: &Path, key: &SettingKey, value: Option<Value>) -> Result<bool> {
    // Dotfile managers make this file a link, which must stay one.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut fields = document(path)?;
    let before = fields.clone();
    fields.shift_remove(key.name);
    let (group, name) = key.name.split_once('.').unwrap_or(("", key.name));
    if fields.get(group).is_none_or(Value::is_null) {
        fields.insert(group.to_owned(), Value::Object(Map::new()));
    }
    let Some(Value::Object(group_fields)) = fields.get_mut(group) else {
        bail!("{}: {group} is not an object", path.display());
    };
    match value {
        Some(value) => drop(group_fields.insert(name.to_owned(), value)),
        None => drop(group_fields.shift_remove(name)),
    }
    if group_fields.is_empty() {
        fields.shift_remove(group);
    }
    if fields == before {
        return Ok(false);
    }
    let text = serde_json::to_string_pretty(&Value::Object(fields))? + "\n";
    file::create_shared_dir(path.parent().unwrap_or(path))?;
    file::replace(path, text.as_bytes(), Privacy::Shared).map(|()| true)
}
