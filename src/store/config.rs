//! Settings from where people write them: flags kept with the run, variables, the project's and the
//! user's file.

use super::file::{self, Privacy};
use super::project::Project;
use super::trust;
use super::world::{self, World};
use crate::core::clean;
use crate::core::record::Given;
use crate::core::settings::{self, Files, KEYS, Key, Layer, Resolved, Row, Source};
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

const LARGEST: u64 = 1 << 20;
/// Where an older Ralph kept guidance; read at a start, and no settings.
const LEGACY: [&str; 3] = ["guidance.encouraged", "guidance.forbidden", "guidance.timestamp"];

/// The effective settings of a loop that was started with `given`.
pub fn load(world: &World, project: &Project, given: &Given) -> Resolved {
    let mut warnings = Vec::new();
    let layer = |source: Source, place: &str, values: Map<String, Value>| Layer {
        source,
        place: place.into(),
        values,
    };
    let mut layers = vec![
        layer(Source::Flag, "flags", given.commands.clone()),
        layer(Source::Flag, "flags", without_commands(&given.flags)),
        layer(Source::Preset, "preset", without_commands(&given.preset)),
    ];
    layers.extend(variables());
    layers.push(layer(Source::Environment, "environment at the start", without_commands(&given.environment)));
    let mut from_file = |source: Source, path: &Path, last: &Option<Map<String, Value>>| {
        let values = match read(path) {
            Ok(values) => Some(values),
            Err(error) => {
                let instead = if last.is_some() { "its last values stand" } else { "ignored" };
                warnings.push(format!("{error:#}, {instead}"));
                // The project's last commands, too, run only where they are trusted; the user's are only
                // the user's while they stand in that file.
                last.as_ref().map(|values| match source {
                    Source::Project => values.clone(),
                    _ => without_commands(values),
                })
            }
        };
        layers.extend(values.clone().map(|values| layer(source, &path.display().to_string(), values)));
        values.filter(|values| !values.is_empty())
    };
    let mut files = Files::default();
    // A settings file behind a link out of the project is not the project's.
    if let Ok(path) = project.resolve(&project.config()) {
        files.project = from_file(Source::Project, &path, &given.files.project);
    }
    if let Some(path) = world.user_config() {
        // The copy is kept in the project, where the user's commands have no business.
        files.user = from_file(Source::User, &path, &given.files.user).map(|mut values| {
            command_keys().for_each(|key| drop(values.shift_remove(key.name)));
            values
        });
        files.user.take_if(|values| values.is_empty());
    }
    let mut withheld = Vec::new();
    for layer in layers.iter_mut().filter(|layer| layer.source == Source::Project) {
        withheld.extend(withhold(world, project, layer));
    }
    warnings.extend(withheld.iter().map(|row| {
        format!("{}: {} is not run: `ralph trust` shows it and lets it run", row.place, row.key.name)
    }));
    let mut resolved = settings::resolve(&layers);
    resolved.files = files;
    resolved.withheld = withheld;
    warnings.append(&mut resolved.warnings);
    // They quote values from files that anybody may have written.
    resolved.warnings = warnings.iter().map(|warning| clean::line(warning)).collect();
    resolved
}

/// Takes the commands out of a project's layer that this user has not trusted.
fn withhold(world: &World, project: &Project, layer: &mut Layer) -> Vec<Row> {
    // A list that runs nothing would switch the user's own off, and needs no less trust than one that runs.
    for key in command_keys() {
        if layer.values.get(key.name).is_some_and(|value| key.commands(value).is_empty()) {
            layer.values.shift_remove(key.name);
        }
    }
    let given = commands_in(&layer.values);
    if given.is_empty() {
        return Vec::new();
    }
    let trusted = trust::load(world, project);
    let untrusted = given.into_iter().filter(|(key, value)| !trusted.allows(key.name, value));
    untrusted
        .map(|(key, value)| {
            layer.values.shift_remove(key.name);
            Row { key, value, source: layer.source.clone(), place: layer.place.clone() }
        })
        .collect()
}

/// The values that would run something. What cannot run needs no trust.
fn commands_in(values: &Map<String, Value>) -> Vec<(&'static Key, Value)> {
    command_keys()
        .filter_map(|key| Some((key, values.get(key.name)?.clone())))
        .filter(|(key, value)| !key.commands(value).is_empty())
        .collect()
}

/// The commands in the project's own file, as it stands, and that file.
pub fn project_commands(project: &Project) -> Result<(PathBuf, Vec<(&'static Key, Value)>)> {
    let path = project.resolve(&project.config())?;
    let found = commands_in(&read(&path)?);
    Ok((path, found))
}

/// Takes the commands out of what was given, to be kept where only the user writes.
pub fn split_commands(given: &mut Given) {
    for values in [&mut given.environment, &mut given.flags] {
        for key in command_keys() {
            if let Some(value) = values.shift_remove(key.name) {
                given.commands.insert(key.name.to_owned(), value);
            }
        }
    }
}

/// The checks of a run are those of its start: who can write the project's file cannot lessen them later.
pub fn freeze_checks(given: &mut Given, resolved: &Resolved) {
    const CHECKS: &str = "completion.verify";
    if let Some(row) = resolved.row(CHECKS).filter(|row| !row.key.commands(&row.value).is_empty()) {
        given.commands.insert(CHECKS.into(), row.value.clone());
    }
}

/// The state file lies in the project: a command in it is not the user's word.
fn without_commands(values: &Map<String, Value>) -> Map<String, Value> {
    let mut values = values.clone();
    command_keys().for_each(|key| drop(values.shift_remove(key.name)));
    values
}

fn command_keys() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(|key| key.kind.is_run())
}

/// One layer for each variable that is set, so that a warning names it.
fn variables() -> Vec<Layer> {
    // Read once: to ask for every name that might be set costs a hook more than all the rest of its settings.
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

/// What the environment gives now, to be kept with a run that other processes will judge.
pub fn environment() -> Map<String, Value> {
    let mut values = Map::new();
    for layer in variables() {
        for (key, value) in layer.values {
            values.entry(key).or_insert(value);
        }
    }
    values
}

/// A file's values by dotted key; nested objects and dotted names both work.
fn read(path: &Path) -> Result<Map<String, Value>> {
    document(path).map(by_dotted_key)
}

#[doc(hidden)]
pub fn by_dotted_key(fields: Map<String, Value>) -> Map<String, Value> {
    let mut values = Map::new();
    flatten("", fields, &mut values);
    values
}

fn flatten(prefix: &str, fields: Map<String, Value>, into: &mut Map<String, Value>) {
    for (name, value) in fields {
        let name = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match value {
            Value::Object(fields) if settings::find(&name).is_none() => flatten(&name, fields, into),
            value => drop(into.insert(name, value)),
        }
    }
}

fn document(path: &Path) -> Result<Map<String, Value>> {
    let Some(bytes) = file::read_bounded(path, LARGEST)? else { return Ok(Map::new()) };
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => bail!("{} is not a JSON object", path.display()),
        Err(error) => Err(error).with_context(|| format!("{} is not valid JSON", path.display())),
    }
}

/// Files that give nothing at all, and why.
pub fn faults(world: &World, project: &Project) -> Vec<String> {
    let own = project.resolve(&project.config());
    let users = world.user_config().map(Ok);
    let read = [Some(own), users].into_iter().flatten().map(|path| path.and_then(|path| read(&path)));
    read.filter_map(|read| read.err().map(|error| format!("{error:#}"))).collect()
}

/// Keys in the files that this version does not know, with their file.
pub fn unknown(world: &World, project: &Project) -> Vec<String> {
    let mut found = Vec::new();
    for path in [Some(project.config()), world.user_config()].into_iter().flatten() {
        for name in read(&path)
            .unwrap_or_default()
            .keys()
            .filter(|name| settings::find(name).is_none() && !LEGACY.contains(&name.as_str()))
        {
            found.push(format!("{}: {name} is not a setting this version knows", path.display()));
        }
    }
    found
}

/// Sets one key in a file, or removes it; everything else in the file stays. Returns whether it was otherwise.
pub fn set(path: &Path, key: &Key, value: Option<Value>) -> Result<bool> {
    // A link, as dotfile managers make them, stays one.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut fields = document(path).context("fix or remove it first; nothing was changed")?;
    let before = fields.clone();
    fields.shift_remove(key.name);
    let (group, name) = key.name.split_once('.').unwrap_or(("", key.name));
    let slot = fields.entry(group).or_insert_with(|| Value::Object(Map::new()));
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    let Value::Object(group_fields) = slot else {
        bail!("{}: {group} is not an object; nothing was changed", path.display());
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
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)
            .with_context(|| format!("could not create the folder {}", dir.display()))?;
    }
    file::replace(path, text.as_bytes(), Privacy::Shared).map(|()| true)
}
