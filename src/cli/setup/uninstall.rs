//! `ralph uninstall`: removes what `ralph install` added; with `--purge` also the user's records and settings.

use super::{first_few, install};
use crate::claude::client::Client;
use crate::claude::plugin;
use crate::claude::plugin::marketplace::{self, Registration};
use crate::claude::settings::statusline;
use crate::cli::loops::alive;
use crate::cli::{Failure, Invocation, Project, World};
use crate::core::record::LoopState;
use crate::core::text::clean;
use crate::store::file;
use crate::store::project::leftovers;
use crate::store::user::armed;
use anyhow::Result;
use std::path::Path;

pub fn uninstall(call: &Invocation) -> Result<String, Failure> {
    let (world, is_purge) = (&call.world, call.flag("purge"));
    let target = marketplace::plugin(world)?;
    let lock = world.data_dir()?.exists().then(|| install::lock(world)).transpose()?;
    install::settings(world)?;
    if !call.flag("force") {
        refuse_running(world)?;
        refuse_edited(&target)?;
    }
    let mut lines = Vec::new();
    let client = Client::find(world, call.value("claude"));
    lines.extend(unregister(world, client.as_ref(), &target)?);
    // Read after Claude Code has changed it.
    let settings = install::settings(world)?;
    let command = statusline::command(&plugin::program(&target, "ralph"));
    if let Some(done) = settings.restore(world, &command)? {
        lines.push(format!("Status line: {done}, in {}", settings.path().display()));
    }
    lines.extend(remove_plugin(&marketplace::folder(world)?)?);
    if is_purge {
        lines.extend(purge(world)?);
    } else {
        leftovers::remove_empty_data(world)?;
    }
    drop(lock);
    if lines.is_empty() {
        return Ok("Nothing to do: Ralph is not installed.\n".into());
    }
    if !is_purge && world.data_dir().is_ok_and(Path::exists) {
        lines.push(format!("Kept your records in {}; --purge removes them", world.data_dir()?.display()));
    }
    if let Ok(program) = std::env::current_exe() {
        lines.push(format!("Kept this program: {}", program.display()));
    }
    Ok(clean::block(&(lines.join("\n") + "\n")))
}

/// Refuses while a loop runs: its session would lose its hooks and stop without a reason.
fn refuse_running(world: &World) -> Result<(), Failure> {
    let is_running = |project: &Project| {
        alive(world, project).loops.iter().any(|(_, run)| run.state == LoopState::Running)
    };
    let running = armed::projects(world).into_iter().filter(is_running);
    let running: Vec<_> = running.map(|project| project.root.display().to_string()).collect();
    if running.is_empty() {
        return Ok(());
    }
    Err(Failure::refused(format!("a loop is running in {}", first_few(running)))
        .hint("stop it with `ralph stop --all`, or uninstall anyway with --force; nothing was changed"))
}

fn refuse_edited(target: &Path) -> Result<(), Failure> {
    let edited = plugin::edited(target);
    if edited.is_empty() {
        return Ok(());
    }
    Err(Failure::refused(format!("{} was edited: {}", target.display(), first_few(edited)))
        .hint("save what you need, then use --force; nothing was changed"))
}

/// Removes our plugin and marketplace from Claude Code, but no others of the same name.
fn unregister(world: &World, client: Option<&Client>, target: &Path) -> Result<Vec<String>, Failure> {
    let Some(client) = client else {
        let hint = "Claude Code was not found, so the plugin is still registered there. Remove it with `claude plugin \
                    uninstall ralph@ralph` and `claude plugin marketplace remove ralph`";
        return Ok(target.exists().then(|| hint.to_owned()).into_iter().collect());
    };
    let registration = Registration::read(client)?;
    if let Some(other) = registration.other(&marketplace::folder(world)?) {
        let place = clean::excerpt(&other.place(), 120);
        return Ok(vec![format!("Kept the marketplace '{}' from {place}", marketplace::NAME)]);
    }
    let mut lines = Vec::new();
    if registration.plugin.is_some() {
        client.uninstall(marketplace::ID)?;
        lines.push(format!("Uninstalled the plugin {} from Claude Code", marketplace::ID));
    }
    if registration.marketplace.is_some() {
        client.remove_marketplace(marketplace::NAME)?;
        lines.push(format!("Removed the marketplace {} from Claude Code", marketplace::NAME));
    }
    if let Some(cached) = marketplace::cached(world) {
        file::remove_folder(&cached)?;
        // Only succeeds if the folder is empty.
        cached.parent().map(file::remove_empty_folder);
        lines.push(format!("Removed Claude Code's copies in {}", cached.display()));
    }
    Ok(lines)
}

/// Removes what install wrote, but not the copies of edited plugins.
fn remove_plugin(folder: &Path) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    if folder.join("ralph").exists() {
        lines.push(format!("Removed the plugin in {}", folder.display()));
    }
    for name in ["ralph", ".ralph.ralph-new", ".claude-plugin"] {
        file::remove_folder(&folder.join(name))?;
    }
    for path in ["before.json", "before.json.tmp-new"].map(|name| folder.join(name)) {
        file::remove(&path)?;
    }
    if folder.exists() && !file::remove_empty_folder(folder) {
        lines.push(format!("Kept the copies of edited plugins in {}", folder.display()));
    }
    Ok(lines)
}

fn purge(world: &World) -> Result<Vec<String>> {
    // Read first: the records name the projects.
    let in_projects = leftovers::in_projects(world);
    let purged = leftovers::purge(world)?;
    let mut lines = Vec::new();
    for (title, paths) in [
        ("Removed:", purged.removed),
        ("Kept, not ours:", purged.kept),
        ("Kept in your projects (remove what you no longer need):", in_projects),
    ] {
        if !paths.is_empty() {
            lines.push(title.to_owned());
            lines.extend(paths.iter().map(|path| format!("  {}", path.display())));
        }
    }
    Ok(lines)
}
