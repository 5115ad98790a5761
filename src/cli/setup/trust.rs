//! `ralph trust`: trusts the commands in the project's own files. Running it is the consent; it prints exactly what
//! it recorded.

use crate::cli::{Failure, Invocation};
use crate::store::config::trust;
use crate::store::config::{self, ProjectCommands};
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
    let found = match config::project_commands(project) {
        Ok(found) => found,
        Err(_) if revoke => Vec::new(),
        Err(error) => return Err(Failure::refused(error).hint("fix the file; nothing was changed")),
    };
    if !show && !revoke {
        let values = found.iter().map(|found| (found.name.to_owned(), found.value.clone()));
        trust::grant(world, project, values.collect())?;
    }
    let trusted = trust::load(world, project);
    let allows = |found: &ProjectCommands| trusted.allows(found.name, &found.value);
    let entries: Vec<Entry> =
        found.into_iter().map(|found| Entry { trusted: allows(&found), found }).collect();
    Ok(match call.flag("json") {
        true => json(&project.root, &project.config(), &entries),
        false => format!("{done}{}", text(&project.config(), &entries)),
    })
}
