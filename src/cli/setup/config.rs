//! `ralph config`: shows every effective value and its source, or sets one.

use crate::cli::{Failure, Invocation, Project, World};
use crate::core::record::LoopState;
use crate::core::settings::{self, KEYS, Key};
use crate::store::user::armed;
use crate::store::{config, state};
use crate::view;
use serde_json::Value;

/// Which settings to show; with a value or `unset`, the one to change.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    pub key: Option<&'a str>,
    pub value: Option<&'a str>,
    pub unset: bool,
    /// Change the user's own file.
    pub user: bool,
    pub json: bool,
}

pub fn command(call: &Invocation) -> Result<String, Failure> {
    let key = call.value("key").filter(|key| !key.is_empty());
    let [unset, user, json] = ["unset", "user", "json"].map(|name| call.flag(name));
    run(&call.world, &call.project, Request { key, value: call.value("value"), unset, user, json })
}

pub fn run(world: &World, project: &Project, request: Request) -> Result<String, Failure> {
    let key = request.key.map(find).transpose()?;
    let (Some(key), true) = (key, request.unset || request.value.is_some()) else {
        return Ok(show(world, project, key, request.json));
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
        project.resolve(&project.config())?
    };
    let changed = config::set(&path, key, value.clone())
        .map_err(|error| Failure::from(error).hint("fix or remove the file; nothing was changed"))?;
    let done = match (changed, value) {
        (true, Some(_)) => "Saved to",
        (true, None) => "Removed from",
        (false, Some(_)) => "Unchanged: already set in",
        (false, None) => "Unchanged: not set in",
    };
    let resolved = config::load(world, project);
    let mut text = view::config::one(&resolved, key);
    text.push_str(&format!("{done} {}\n", path.display()));
    for warning in &resolved.warnings {
        text.push_str(&format!("Note: {warning}\n"));
    }
    Ok(text)
}

fn show(world: &World, project: &Project, only: Option<&Key>, json: bool) -> String {
    // In a session with a running loop the run's own flags are what counts.
    let own = world
        .session_id
        .as_deref()
        .and_then(|id| armed::load_armed(world, project, id, &state::peek(project).ok()??));
    let resolved = match own.filter(|run| run.state == LoopState::Running) {
        Some(run) => config::load_for(world, project, &run),
        None => config::load(world, project),
    };
    match (json, only) {
        (true, only) => view::config::json(&resolved, only),
        (false, Some(key)) => {
            let own = resolved.warnings.iter().filter(|warning| warning.contains(key.name));
            own.fold(view::config::one(&resolved, key), |text, warning| text + &format!("Note: {warning}\n"))
        }
        (false, None) => view::config::table(&resolved, &config::unknown(world, project)),
    }
}

fn find(name: &str) -> Result<&'static Key, Failure> {
    settings::find(name).or_else(|| settings::find_flag(name.trim_start_matches("--"))).ok_or_else(|| {
        let names: Vec<_> = KEYS.iter().map(|key| key.name).collect();
        let name = crate::core::text::clean::excerpt(name, 60);
        Failure::usage(format!("unknown setting: {name}"))
            .hint(format!("the settings are {}", names.join(", ")))
    })
}
