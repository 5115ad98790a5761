//! `ralph config`: shows every effective value and its source, or sets one.

use crate::cli::loops::alive;
use crate::cli::{Failure, Invocation, Project, World};
use crate::core::record::{ArmedLoop, Engine, LoopState};
use crate::core::settings::loosening::LooseningRule;
use crate::core::settings::{self, KEYS, SettingKey, SettingRow, SettingSource};
use crate::core::text::clean;
use crate::store::state::Locked;
use crate::store::user::armed;
use crate::store::{config, state};
use crate::view;
use serde_json::Value;

/// Which settings to show; with a value or `unset`, the one to change.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConfigArgs<'a> {
    pub key: Option<&'a str>,
    pub value: Option<&'a str>,
    pub unset: bool,
    /// Change the user's own file.
    pub user: bool,
    pub json: bool,
    /// The session whose loop is meant; without one, every loop of the project.
    pub session: Option<&'a str>,
}

const FLAGS: [&str; 3] = ["--unset", "--user", "--json"];

pub fn command(call: &Invocation) -> Result<String, Failure> {
    let key = call.value("key").filter(|key| !key.is_empty());
    let [unset, user, json] = ["unset", "user", "json"].map(|name| call.flag(name));
    let (value, session) = (call.value("value"), call.session());
    run(&call.world, &call.project, ConfigArgs { key, value, unset, user, json, session })
}

pub fn run(world: &World, project: &Project, request: ConfigArgs) -> Result<String, Failure> {
    let key = request.key.map(find).transpose()?;
    // No setting has such a value, and a mistyped flag would become one.
    let flag = request.value.filter(|value| value.starts_with("--") && !value.contains(' '));
    if let Some(flag) = flag.filter(|_| !request.unset) {
        return Err(Failure::unknown_flag(flag, &FLAGS, "see `ralph config --help`"));
    }
    let (Some(key), true) = (key, request.unset || request.value.is_some()) else {
        return Ok(show(world, project, key, &request));
    };
    let read = |value: &str| {
        key.read(&Value::from(value)).map_err(|wrong| Failure::usage(format!("{}: {wrong}", key.name)))
    };
    let value = request.value.filter(|_| !request.unset).map(read).transpose()?;
    let path = if request.user {
        world
            .user_config()
            .ok_or_else(|| Failure::refused("no home directory").hint("set HOME or RALPH_CONFIG_DIR"))?
    } else {
        project.file(&project.config())?
    };
    let changed = config::set(&path, key, value.clone())
        .map_err(|error| Failure::from(error).hint("fix or remove the file; nothing was changed"))?;
    if !request.user {
        record_limit(world, project, key, value.as_ref())?;
    }
    let done = match (changed, value) {
        (true, Some(_)) => "Saved to",
        (true, None) => "Removed from",
        (false, Some(_)) => "Unchanged: already set in",
        (false, None) => "Unchanged: not set in",
    };
    let resolved = config::load(world, project);
    let mut text = view::setup::config::one(&resolved, key);
    text.push_str(&format!("{done} {}\n", path.display()));
    let kept = resolved.row(key.name).map(|row| overrides(world, project, request.session, row));
    for note in resolved.warnings.iter().chain(kept.iter().flatten()) {
        text.push_str(&format!("Note: {note}\n"));
    }
    Ok(text)
}

/// Records for every loop that runs that the user changed this setting: what only the file says could be the agent's.
fn record_limit(
    world: &World,
    project: &Project,
    key: &SettingKey,
    value: Option<&Value>,
) -> Result<(), Failure> {
    let loops = alive(world, project).loops;
    if loops.is_empty() || key.loosens == LooseningRule::Never {
        return Ok(());
    }
    let _lock = Locked::open(project, world.now)?;
    for (session, _) in loops {
        armed::set_limit(world, project, &session, key.name, value)?;
    }
    Ok(())
}

/// Names the loops that keep another value of a setting, because they were given one at their start.
fn overrides(world: &World, project: &Project, session: Option<&str>, now: &SettingRow) -> Vec<String> {
    let key = now.key;
    let mut loops = alive(world, project).loops;
    if loops.iter().any(|(id, _)| session == Some(id)) {
        loops.retain(|(id, _)| session == Some(id));
    }
    let note = |(id, run): (String, ArmedLoop)| {
        let resolved = config::load_for(world, project, &run);
        let given = [&run.commands, &run.given.flags, &run.given.preset, &run.given.environment];
        given.iter().find(|values| values.contains_key(key.name))?;
        let row = resolved.row(key.name).filter(|row| row.source > now.source && row.value != now.value)?;
        let whose = if session == Some(&id) { "this session's loop" } else { "the loop" };
        let task = clean::excerpt(&run.task, 40);
        let given = match (row.source, key.flag) {
            (SettingSource::Flag, Some(flag)) => format!("--{flag}"),
            (SettingSource::Preset, _) => "a preset".into(),
            _ => clean::line(&row.place),
        };
        let value = view::setup::config::value(row);
        let mut note = format!("{whose} \"{task}\" keeps {value}, which {given} gave it at its start");
        if let (Engine::InSession, Some(flag)) = (run.engine, key.flag) {
            note.push_str(&format!("; change it there with /ralph:start --resume --{flag}"));
        }
        Some(note)
    };
    loops.into_iter().filter_map(note).collect()
}

fn show(world: &World, project: &Project, only: Option<&SettingKey>, request: &ConfigArgs) -> String {
    // In a session with a running loop the run's own flags are what counts.
    let own = request
        .session
        .and_then(|id| armed::load_armed(world, project, id, &state::peek(project).ok()??).ok()?);
    let resolved = match own.filter(|run| run.state == LoopState::Running) {
        Some(run) => config::load_for(world, project, &run),
        None => config::load(world, project),
    };
    match (request.json, only) {
        (true, only) => view::setup::config::json(&resolved, only),
        (false, Some(key)) => {
            let own = resolved.warnings.iter().filter(|warning| warning.contains(key.name));
            own.fold(view::setup::config::one(&resolved, key), |text, warning| {
                text + &format!("Note: {warning}\n")
            })
        }
        (false, None) => view::setup::config::table(&resolved, &config::unknown(world, project)),
    }
}

/// Finds a setting by its name or its flag.
pub fn find(name: &str) -> Result<&'static SettingKey, Failure> {
    settings::find(name).or_else(|| settings::find_flag(name.trim_start_matches("--"))).ok_or_else(|| {
        let names: Vec<_> = KEYS.iter().map(|key| key.name).collect();
        Failure::usage(format!("unknown setting: {}", clean::excerpt(name, 60)))
            .did_you_mean(settings::nearest(name), format!("the settings are {}", names.join(", ")))
    })
}
