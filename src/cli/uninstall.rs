//! `ralph uninstall`: takes away what `ralph install` brought; with `--purge` everything of ours but projects' files.

use super::failure::Failure;
use super::install;
use super::start::genuine_loops;
use crate::claude::client::Client;
use crate::claude::marketplace::{self, Known};
use crate::claude::{plugin, statusline};
use crate::core::clean;
use crate::core::record::LoopState;
use crate::store::leftovers;
use crate::store::project::Project;
use crate::store::world::World;
use crate::store::{armed, state};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// What was asked for, as it was typed.
#[derive(Debug, Default)]
pub struct Asked {
    pub purge: bool,
    pub force: bool,
    pub claude: Option<String>,
}

pub fn uninstall(world: &World, asked: &Asked) -> Result<String, Failure> {
    let target = marketplace::plugin(world)?;
    // A folder that is not there is not made to be locked.
    let lock = world.data_dir()?.exists().then(|| install::lock(world)).transpose()?;
    let settings = install::settings(world)?;
    if !asked.force {
        refuse_running(world)?;
        refuse_edited(&target)?;
    }
    let mut told = Vec::new();
    let client = Client::find(world, asked.claude.as_deref());
    told.extend(unregister(world, client.as_ref(), &target)?);
    // The client has written to it meanwhile.
    let settings = if client.is_some() { install::settings(world)? } else { settings };
    let command = statusline::command(&plugin::program(&target, "ralph"));
    if let Some(done) = settings.take_out(world, &command)? {
        told.push(format!("Status line: {done}, in {}", settings.path().display()));
    }
    told.extend(remove_staged(&marketplace::folder(world)?)?);
    if asked.purge {
        told.extend(purge(world)?);
    } else {
        leftovers::tidy(world)?;
    }
    drop(lock);
    if told.is_empty() {
        return Ok("Nothing to do: Ralph is not installed.\n".into());
    }
    if !asked.purge && world.data_dir().is_ok_and(Path::exists) {
        told.push(format!("Your records stay in {}: --purge removes them too", world.data_dir()?.display()));
    }
    if let Ok(program) = std::env::current_exe() {
        told.push(format!("This program stays: {}", program.display()));
    }
    Ok(clean::block(&(told.join("\n") + "\n")))
}

/// Sessions in a loop would lose their hooks, and nobody would be told why they stop.
fn refuse_running(world: &World) -> Result<(), Failure> {
    let runs = |project: &Project| {
        let document = state::peek(project).ok().flatten().unwrap_or_default();
        genuine_loops(world, project, &document).iter().any(|(_, lap)| lap.state == LoopState::Running)
    };
    let running: Vec<_> = armed::projects(world).into_iter().filter(runs).collect();
    if running.is_empty() {
        return Ok(());
    }
    let named: Vec<_> = running.iter().map(|project| project.root.display().to_string()).collect();
    Err(Failure::refused(format!("a loop is running in {}", install::some(&named)))
        .hint("Nothing was changed. `ralph stop --all` ends it, with a word to its session; or --force."))
}

fn refuse_edited(target: &Path) -> Result<(), Failure> {
    let edited = plugin::edited(target);
    if edited.is_empty() {
        return Ok(());
    }
    Err(Failure::refused(format!("{} was edited: {}", target.display(), install::some(&edited)))
        .hint("Nothing was changed. Keep what you need of it, then --force."))
}

/// Takes us out of the client's records: what is ours there, and no other plugin of our name.
fn unregister(world: &World, client: Option<&Client>, target: &Path) -> Result<Vec<String>, Failure> {
    let folder = marketplace::folder(world)?;
    let Some(client) = client else {
        let advice = "Claude Code was not found, so its own records stay; where it is: `claude plugin uninstall \
                      ralph@ralph` and `claude plugin marketplace remove ralph`";
        return Ok(target.exists().then(|| advice.to_owned()).into_iter().collect());
    };
    let known = Known::ask(client)?;
    if let Some(other) = known.other(&folder) {
        let place = clean::excerpt(&other.place(), 120);
        return Ok(vec![format!(
            "Claude Code has a marketplace '{}' from {place}, which stays",
            marketplace::NAME
        )]);
    }
    let mut told = Vec::new();
    if known.plugin.is_some() {
        client.uninstall(marketplace::ID)?;
        told.push(format!("Claude Code: plugin {} uninstalled", marketplace::ID));
    }
    if known.marketplace.is_some() {
        client.remove_marketplace(marketplace::NAME)?;
        told.push(format!("Claude Code: marketplace {} removed", marketplace::NAME));
    }
    if let Some(cached) = marketplace::cached(world) {
        plugin::remove_folder(&cached)?;
        // Only where it is empty now.
        let _ = cached.parent().map(std::fs::remove_dir);
        told.push(format!("Removed the client's copies in {}", cached.display()));
    }
    Ok(told)
}

/// Removes what install wrote; a copy of an edited plugin is the user's.
fn remove_staged(folder: &Path) -> Result<Vec<String>> {
    let there = folder.join("ralph").exists();
    for name in ["ralph", ".ralph.ralph-new", ".claude-plugin"] {
        plugin::remove_folder(&folder.join(name))?;
    }
    for name in ["before.json", "before.json.tmp-new"] {
        let note = folder.join(name);
        if note.exists() {
            std::fs::remove_file(&note).with_context(|| format!("could not remove {}", note.display()))?;
        }
    }
    let mut told = Vec::new();
    if there {
        told.push(format!("Removed the plugin in {}", folder.display()));
    }
    if folder.exists() && std::fs::remove_dir(folder).is_err() {
        told.push(format!("Copies of edited plugins stay in {}", folder.display()));
    }
    Ok(told)
}

fn purge(world: &World) -> Result<Vec<String>> {
    let lines = |title: &str, paths: Vec<PathBuf>| {
        let paths = paths.iter().map(|path| format!("  {}", path.display()));
        std::iter::once(title.to_owned()).chain(paths).collect::<Vec<_>>()
    };
    // Before the records go that know of them.
    let in_projects = leftovers::in_projects(world);
    let removed = leftovers::purge(world)?;
    let mut told = Vec::new();
    for (title, paths) in [
        ("Removed:", removed.gone),
        ("Not ours, and left:", removed.left),
        ("In your projects, and left (remove what you no longer need):", in_projects),
    ] {
        if !paths.is_empty() {
            told.extend(lines(title, paths));
        }
    }
    Ok(told)
}
