//! `ralph config`: every effective value and where it comes from, or one value set.

use super::failure::Failure;
use crate::core::record::{Given, LoopState};
use crate::core::settings::{self, KEYS, Key};
use crate::store::project::Project;
use crate::store::world::World;
use crate::store::{armed, config, state};
use crate::view;
use serde_json::Value;

#[derive(Clone, Debug)]
pub enum Request {
    Show,
    ShowOne(String),
    Set { key: String, value: String, user: bool },
    Unset { key: String, user: bool },
}

pub fn run(world: &World, project: &Project, request: &Request, json: bool) -> Result<String, Failure> {
    let (key, value, user) = match request {
        Request::Show => return show(world, project, None, json),
        Request::ShowOne(name) => return show(world, project, Some(find(name)?), json),
        Request::Set { key, value, user } => {
            let key = find(key)?;
            let value = key
                .read(&Value::from(value.as_str()))
                .map_err(|wrong| Failure::usage(format!("{}: {wrong}", key.name)))?;
            (key, Some(value), *user)
        }
        Request::Unset { key, user } => (find(key)?, None, *user),
    };
    let path = if user {
        world
            .user_config()
            .ok_or_else(|| Failure::refused("no home directory: set HOME or RALPH_CONFIG_DIR"))?
    } else {
        project.resolve(&project.config())?
    };
    let done = match (config::set(&path, key, value.clone())?, value) {
        (true, _) => "Written to",
        (false, Some(_)) => "It was so already in",
        (false, None) => "It was not set in",
    };
    let resolved = config::load(world, project, &Given::default());
    let mut text = view::config::one(&resolved, key);
    text.push_str(&format!("{done} {}\n", path.display()));
    for warning in &resolved.warnings {
        text.push_str(&format!("Note: {warning}\n"));
    }
    Ok(text)
}

fn show(world: &World, project: &Project, only: Option<&'static Key>, json: bool) -> Result<String, Failure> {
    // In a session with a running loop the run's own flags are what counts.
    let own = world.session_id.as_deref().and_then(|id| {
        let lap = state::peek(project).ok()??.loop_of(id)?;
        armed::claim(world, project, id, lap)
    });
    let given = own.filter(|lap| lap.state == LoopState::Running).map(|lap| lap.given).unwrap_or_default();
    let resolved = config::load(world, project, &given);
    Ok(match (json, only) {
        (true, only) => view::config::json(&resolved, only),
        (false, Some(key)) => {
            let own = resolved.warnings.iter().filter(|warning| warning.contains(key.name));
            own.fold(view::config::one(&resolved, key), |text, warning| text + &format!("Note: {warning}\n"))
        }
        (false, None) => view::config::table(&resolved, &config::unknown(world, project)),
    })
}

fn find(name: &str) -> Result<&'static Key, Failure> {
    settings::find(name).or_else(|| settings::find_flag(name.trim_start_matches("--"))).ok_or_else(|| {
        let names: Vec<_> = KEYS.iter().map(|key| key.name).collect();
        let name = crate::core::clean::excerpt(name, 60);
        Failure::usage(format!("there is no setting '{name}'"))
            .hint(format!("Settings: {}", names.join(", ")))
    })
}
