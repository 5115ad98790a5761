//! `ralph trust`: trusts the commands in the project's own file. Running it is the consent; it prints exactly what
//! it recorded.

use crate::cli::failure::Failure;
use crate::store::config;
use crate::store::config::trust;
use crate::store::project::Project;
use crate::store::world::World;
use crate::view::trust::{Entry, json, text};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Trust,
    Show,
    Revoke,
}

pub fn run(world: &World, project: &Project, request: Request, as_json: bool) -> Result<String, Failure> {
    // Revoking must work even if the file cannot be read.
    let done = match request {
        Request::Revoke if trust::revoke(world, project)? => "Trust withdrawn.\n",
        Request::Revoke => "Nothing was trusted in this project.\n",
        Request::Trust | Request::Show => "",
    };
    let (file, commands) = match config::project_commands(project) {
        Ok(found) => found,
        Err(_) if request == Request::Revoke => (project.config(), Vec::new()),
        Err(error) => {
            return Err(Failure::refused(format!("{error:#}")).hint("fix the file; nothing was changed"));
        }
    };
    if request == Request::Trust {
        let values = commands.iter().map(|(key, value)| (key.name.to_owned(), value.clone()));
        trust::grant(world, project, values.collect())?;
    }
    let trusted = trust::load(world, project);
    let entries: Vec<Entry> = commands
        .into_iter()
        .map(|(key, value)| Entry { key, trusted: trusted.allows(key.name, &value), value })
        .collect();
    Ok(match as_json {
        true => json(&project.root, &file, &entries),
        false => format!("{done}{}", text(&file, &entries)),
    })
}
