//! `ralph trust`: trusts the commands in the project's own file. Running it is the consent; it prints exactly what
//! it recorded.

use crate::cli::{Failure, Invocation};
use crate::store::config;
use crate::store::config::trust;
use crate::view::trust::{Entry, json, text};

pub fn run(call: &Invocation) -> Result<String, Failure> {
    let Invocation { world, project, .. } = call;
    let (show, revoke) = (call.flag("show"), call.flag("revoke"));
    // Revoking must work even if the file cannot be read.
    let done = match revoke {
        true if trust::revoke(world, project)? => "Trust withdrawn.\n",
        true => "Nothing was trusted in this project.\n",
        false => "",
    };
    let (file, commands) = match config::project_commands(project) {
        Ok(found) => found,
        Err(_) if revoke => (project.config(), Vec::new()),
        Err(error) => return Err(Failure::refused(error).hint("fix the file; nothing was changed")),
    };
    if !show && !revoke {
        let values = commands.iter().map(|(key, value)| (key.name.to_owned(), value.clone()));
        trust::grant(world, project, values.collect())?;
    }
    let trusted = trust::load(world, project);
    let entries: Vec<Entry> = commands
        .into_iter()
        .map(|(key, value)| Entry { key, trusted: trusted.allows(key.name, &value), value })
        .collect();
    Ok(match call.flag("json") {
        true => json(&project.root, &file, &entries),
        false => format!("{done}{}", text(&file, &entries)),
    })
}
