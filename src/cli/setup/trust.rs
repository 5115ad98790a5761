//! `ralph trust`: trusts the commands in the project's own files. Running it is the consent; it prints exactly what
//! it recorded.

use crate::cli::{Failure, Invocation};
use crate::store::config::trust;
use crate::store::config::{self, ProjectCommands};
use crate::store::project::links;
use crate::view::setup::trust::{self as view, Entry, json, text};
use std::path::Path;

pub fn run(call: &Invocation) -> Result<String, Failure> {
    let Invocation { world, project, .. } = call;
    if let Some(link) = call.value("link") {
        return allow(call, Path::new(link));
    }
    let (show, revoke) = (call.flag("show"), call.flag("revoke"));
    // Revoking must work even if the file cannot be read.
    let had_links = revoke && links::revoke(project)?;
    let done = match revoke {
        true if trust::revoke(world, project)? || had_links => "Trust withdrawn.\n",
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
        true => json(&project.root, &project.config(), &entries, &links::load(project)),
        false => format!("{done}{}", text(&project.config(), &entries, &links::load(project))),
    })
}

/// Allows a link of the project.
fn allow(call: &Invocation, link: &Path) -> Result<String, Failure> {
    let Invocation { world, project, .. } = call;
    let here = world.working_dir.join(link);
    // Messages name a link by its path in the project, wherever they are read.
    let link = if here.is_symlink() { here } else { project.root.join(link) };
    let (link, target) = links::allow(project, &link)
        .map_err(|error| Failure::refused(error).hint("name a symbolic link in the project"))?;
    Ok(match call.flag("json") {
        true => format!("{}\n", serde_json::json!({"project": project.root, "link": link, "target": target})),
        false => view::allowed(&link, &target),
    })
}
