//! `ralph trust`: lets the project's own file run its commands, exactly as they are now. To run it is the
//! consent; what was consented to is printed, from the same reading that is recorded.

use super::failure::Failure;
use crate::store::project::Project;
use crate::store::world::World;
use crate::store::{config, trust};
use crate::view::trust::{Entry, Told, json, text};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Trust,
    Show,
    Revoke,
}

pub fn run(world: &World, project: &Project, request: Request, as_json: bool) -> Result<String, Failure> {
    // Taking it back must work whatever has become of the file.
    let told = match request {
        Request::Revoke => Told::Revoked(trust::revoke(world, project)?),
        Request::Trust => Told::Granted,
        Request::Show => Told::Show,
    };
    let (file, commands) = match config::project_commands(project) {
        Ok(found) => found,
        Err(_) if request == Request::Revoke => (project.config(), Vec::new()),
        Err(error) => return Err(Failure::refused(format!("{error:#}")).hint("Nothing was changed.")),
    };
    if request == Request::Trust {
        let values = commands.iter().map(|(key, value)| (key.name.to_owned(), value.clone()));
        if commands.is_empty() {
            trust::revoke(world, project)?;
        } else {
            trust::grant(world, project, values.collect())?;
        }
    }
    let trusted = trust::load(world, project);
    let entries: Vec<Entry> = commands
        .into_iter()
        .map(|(key, value)| Entry { key, trusted: trusted.allows(key.name, &value), value })
        .collect();
    Ok(if as_json { json(&project.root, &file, &entries) } else { text(&file, &entries, told) })
}
