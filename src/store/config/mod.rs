//! Settings from where people give them: the run's flags, variables, the project's file and the user's.

pub mod trust;

use super::file::{self, Privacy};
use super::project::Project;
use super::tasks as list;
use super::world::{self, World};
use crate::core::record::{ArmedLoop, Given};
use crate::core::settings::{self, Files, KEYS, Key, Layer, Resolved, Row, Source};
use crate::core::tasks;
use crate::core::text::clean;
use anyhow::{Result, bail};
use serde_json::{Map, Value};
use std::cell::LazyCell;
use std::path::{Path, PathBuf};

type Values = Map<String, Value>;

const MAX_FILE_BYTES: u64 = 1 << 20;

/// Resolves the settings that hold here without a loop.
pub fn load(world: &World, project: &Project) -> Resolved {
    resolve(world, project, &Given::default(), &Map::new(), &tasks::Source::default())
}

/// Resolves the settings of a loop: what its start was given first.
pub fn load_for(world: &World, project: &Project, run: &ArmedLoop) -> Resolved {
    resolve(world, project, &run.given, &run.commands, &run.tasks)
}

fn resolve(
    world: &World,
    project: &Project,
    given: &Given,
    commands: &Values,
    tasks: &tasks::Source,
) -> Resolved {
    let mut warnings = Vec::new();
    let mut files = Files::default();
    let layer = |source, place: &str, values| Layer { source, place: place.into(), values };
    let mut layers = vec![
        layer(Source::Flag, "flags", commands.clone()),
        layer(Source::Flag, "flags", without_commands(&given.flags)),
        layer(Source::Preset, "preset", without_commands(&given.preset)),
    ];
    layers.extend(variables());
    layers.push(layer(Source::Environment, "environment at the start", without_commands(&given.environment)));
    let mut withheld = Vec::new();
    // A settings file behind a link out of the project is not the project's.
    if let Ok(path) = project.resolve(&project.config()) {
        files.project = read_or_last(&path, given.files.project.clone(), &mut warnings);
        let values = files.project.clone().unwrap_or_default();
        let mut layer = layer(Source::Project, &path.display().to_string(), values);
        withheld = withhold(world, project, &mut layer);
        layers.push(layer);
    }
    if let Some(path) = world.user_config() {
        // The copy of the user's file is kept in the project, so it never holds the user's commands.
        let last = given.files.user.as_ref().map(without_commands);
        let values = read_or_last(&path, last, &mut warnings);
        files.user = values.as_ref().map(without_commands);
        layers.push(layer(Source::User, &path.display().to_string(), values.unwrap_or_default()));
    }
    files.project.take_if(|values| values.is_empty());
    files.user.take_if(|values| values.is_empty());
    let list = list::checks(world, project, tasks);
    warnings.extend(withheld.iter().map(|row| {
        format!("{}: {} is not run until you trust it with `ralph trust`", row.place, row.key.name)
    }));
    let mut resolved = settings::resolve(&layers);
    warnings.append(&mut resolved.warnings);
    if list.trusted {
        resolved.add_checks(&list.commands, &tasks.file);
    } else if !list.commands.is_empty() {
        let (file, field) = (&tasks.file, list::CHECKS);
        warnings.push(format!("{file}: {field} is not run until you trust it with `ralph trust`"));
        let key = command_keys().find(|key| key.name == settings::CHECKS);
        let (value, place) = (Value::from(list.commands), format!("{file} {field}"));
        withheld.extend(key.map(|key| Row { key, value, source: Source::Project, place }));
    }
    // Warnings quote values from files that others may have written.
    let warnings = warnings.iter().map(|warning| clean::line(warning)).collect();
    Resolved { files, withheld, warnings, ..resolved }
}

/// Reads a file's values, or returns its last ones with a warning.
fn read_or_last(path: &Path, last: Option<Values>, warnings: &mut Vec<String>) -> Option<Values> {
    read(path).map(Some).unwrap_or_else(|error| {
        let instead = if last.is_some() { "its last values are used" } else { "ignored" };
        warnings.push(format!("{error:#}, {instead}"));
        last
    })
}

/// Takes the commands out of the project's layer that this user has not trusted.
fn withhold(world: &World, project: &Project, layer: &mut Layer) -> Vec<Row> {
    let trusted = LazyCell::new(|| trust::load(world, project));
    let mut withheld = Vec::new();
    for key in command_keys() {
        let Some(value) = layer.values.get(key.name) else { continue };
        // An empty list would switch the user's own commands off, so it never counts.
        let is_empty = key.commands(value).is_empty();
        if is_empty || !trusted.allows(key.name, value) {
            let value = layer.values.shift_remove(key.name).unwrap_or_default();
            let row = Row { key, value, source: layer.source, place: layer.place.clone() };
            withheld.extend((!is_empty).then_some(row));
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
    let file = project.resolve(&project.config())?;
    let values = read(&file)?;
    let own = command_keys().filter_map(|key| {
        let value = values.get(key.name)?.clone();
        Some(ProjectCommands { file: file.clone(), name: key.name, commands: key.commands(&value), value })
    });
    let source = tasks::Source::default();
    let list = list::check_commands(project, &source).map(|value| ProjectCommands {
        file: project.root.join(&source.file),
        name: list::CHECKS,
        commands: list::texts(&value),
        value,
    });
    Ok(own.chain(list).filter(|found| !found.commands.is_empty()).collect())
}

/// Takes the commands out of what was given, to be kept where only the user writes.
pub fn take_commands(given: &mut Given) -> Map<String, Value> {
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

/// Keeps the checks of a run's start, so that a later change of the project's file cannot weaken them.
pub fn freeze_checks(run: &mut ArmedLoop, resolved: &Resolved) {
    let commands = resolved.commands(settings::CHECKS);
    if !commands.is_empty() {
        run.commands.insert(settings::CHECKS.into(), commands.into());
    }
}

/// Returns the values without commands: what the project's state file says is not the user's word.
fn without_commands(values: &Values) -> Values {
    let mut values = values.clone();
    command_keys().for_each(|key| drop(values.shift_remove(key.name)));
    values
}

fn command_keys() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(|key| key.kind.is_executed())
}

/// Returns one layer for each variable that is set, so that a warning names it.
fn variables() -> Vec<Layer> {
    // Reading all at once is cheaper for a hook than asking for each name.
    let set = world::variables_of_ours();
    let mut layers = Vec::new();
    for key in KEYS.iter().filter(|_| !set.is_empty()) {
        for name in key.variables() {
            let Some((_, value)) = set.iter().find(|(set, _)| *set == name) else { continue };
            let values = Map::from_iter([(key.name.to_owned(), Value::from(value.as_str()))]);
            layers.push(Layer { source: Source::Environment, place: name, values });
        }
    }
    layers
}

/// Returns what the environment gives now, to be kept with the run: its hooks have another environment.
pub fn environment() -> Values {
    // The strongest variable of a key comes first, so it is inserted last.
    variables().into_iter().rev().flat_map(|layer| layer.values).collect()
}

/// Reads a file's values by dotted key; nested objects and dotted names both work.
fn read(path: &Path) -> Result<Values> {
    document(path).map(by_dotted_key)
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
    let bytes = file::read_bounded(path, MAX_FILE_BYTES)?;
    bytes.map_or_else(|| Ok(Map::new()), |bytes| file::parse_object(path, &bytes))
}

/// Returns why a file could not be read at all, for each such file.
pub fn faults(world: &World, project: &Project) -> Vec<String> {
    let own = project.resolve(&project.config());
    let paths = [Some(own), world.user_config().map(Ok)].into_iter().flatten();
    let read = paths.map(|path| path.and_then(|path| read(&path)));
    read.filter_map(|read| read.err().map(|error| format!("{error:#}"))).collect()
}

/// Returns the keys in the files that this version does not know, with their file.
pub fn unknown(world: &World, project: &Project) -> Vec<String> {
    let mut found = Vec::new();
    for path in [Some(project.config()), world.user_config()].into_iter().flatten() {
        let values = read(&path).unwrap_or_default();
        let is_known = |name: &str| settings::find(name).is_some();
        let unknown = values.keys().filter(|name| !is_known(name));
        found.extend(unknown.map(|name| format!("{}: unknown setting {name}", path.display())));
    }
    found
}

/// Sets one key in a file, or removes it; everything else in the file stays. Returns whether the file changed.
pub fn set(path: &Path, key: &Key, value: Option<Value>) -> Result<bool> {
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
