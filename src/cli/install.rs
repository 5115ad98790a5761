//! `ralph install`: the plugin laid out in the user's data folder, registered with Claude Code, and proven to run.
//! With `--to DIR` it is only laid out there, for `claude --plugin-dir DIR`.

use super::doctor;
use super::failure::Failure;
use super::program::write_line;
use crate::claude::client::Client;
use crate::claude::marketplace::{self, Known};
use crate::claude::plugin::{self, Found, Plugin, VERSION, program, proof};
use crate::claude::settings_file::{SettingsFile, StatusLine};
use crate::claude::statusline;
use crate::core::checkup::{Note, Verdict};
use crate::core::clean;
use crate::core::time::Stamp;
use crate::store::file;
use crate::store::lock::Lock;
use crate::store::project::Project;
use crate::store::world::World;
use crate::view::diff;
use crate::view::paint::{self, Paint};
use anyhow::Context;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// What was asked for, as it was typed.
#[derive(Debug, Default)]
pub struct Asked {
    pub to: Option<PathBuf>,
    pub settings: bool,
    pub yes: bool,
    pub force: bool,
    pub claude: Option<String>,
}

const WITHOUT_CLIENT: &str = "Install it (https://claude.com/claude-code), or name it with --claude PATH, and call this again.\n\
    What works without it: `ralph demo` shows a whole loop, `ralph run --agent-command CMD` loops any other agent, and\n\
    `ralph install --to DIR` lays the plugin out for `claude --plugin-dir DIR` on another machine.";

pub fn run(world: &World, asked: &Asked) -> Result<String, Failure> {
    match &asked.to {
        Some(folder) => lay_out(world, folder, asked.force),
        None => install(world, asked),
    }
}

fn lay_out(world: &World, folder: &Path, force: bool) -> Result<String, Failure> {
    let target = world.working_dir.join(folder);
    let target = target.canonicalize().unwrap_or(target);
    let parent = target.parent().unwrap_or(&target);
    std::fs::create_dir_all(parent)
        .with_context(|| format!("could not create the folder {}", parent.display()))?;
    // Without a folder of ours there is nobody to be told from.
    let _lock = world.data_dir().is_ok().then(|| lock(world)).transpose()?;
    let plugin = own_plugin()?;
    let found = plugin.look(&target)?;
    let keep = kept_for(&found, &target, force, world.now)?;
    match found {
        Found::Current => plugin::tidy(&target)?,
        _ => plugin.stage(&target, keep.as_deref())?,
    }
    let shown = target.display();
    let mut told = match found {
        Found::Current => format!("Nothing to do: Ralph {VERSION} is in {shown}\n"),
        _ => format!("The plugin is in {shown}\n"),
    };
    told.extend(keep.map(|keep| format!("What was edited is in {}\n", keep.display())));
    Ok(format!("{told}Try it: claude --plugin-dir \"{shown}\"\n"))
}

fn install(world: &World, asked: &Asked) -> Result<String, Failure> {
    let client = client(world, asked.claude.as_deref())?;
    let version =
        client.version().map_err(|error| Failure::unavailable(format!("{error:#}")).hint(WITHOUT_CLIENT))?;
    let (folder, target) = (marketplace::folder(world)?, marketplace::plugin(world)?);
    let _lock = lock(world)?;
    // Everything that could speak against it is asked before anything is written.
    let settings = settings(world)?;
    let plugin = own_plugin()?;
    let found = plugin.look(&target)?;
    let keep = kept_for(&found, &target, asked.force, world.now)?;
    let known = Known::ask(&client)?;
    refuse_other(&known, &folder, asked.force)?;

    settings.note(world)?;
    match found {
        Found::Current => plugin::tidy(&target)?,
        _ => plugin.stage(&target, keep.as_deref())?,
    }
    let written = marketplace::write(&folder)?;
    let registered = known.bring_up(&client, &folder)?;
    let proof = prove(world, &client, &target)?;

    let changed = found != Found::Current || written || registered.is_some();
    let mut told = if changed {
        let (shown, staged) = (target.display(), staged(&found, keep.as_deref()));
        let registered = registered.unwrap_or("already registered with");
        let other = known.other(&folder).map(|other| clean::excerpt(&other.place(), 120));
        let other = other
            .map_or_else(String::new, |other| format!("\n          in the place of the one from {other}"));
        format!(
            "Ralph {VERSION} is installed.\n  Plugin  {shown}{staged}\n  Client  {registered} Claude Code {version}, as {}{other}\n  \
             Proof   {proof}\n",
            marketplace::ID,
        )
    } else {
        format!(
            "Nothing to do: Ralph {VERSION} is installed, registered with Claude Code {version}, and runs.\n  Proof   {proof}\n"
        )
    };
    if asked.settings {
        told.push('\n');
        return offer_status_line(world, &program(&target, "ralph"), asked, &told);
    }
    if changed {
        told.push_str(
            "\nIn a project: `claude`, then /ralph:start TASK (an open session first needs /reload-plugins).\n\
             `ralph install --settings` adds a status line, `ralph uninstall` undoes all this.\n",
        );
    }
    Ok(told)
}

/// What is staged must run, else every session would be without a loop and nobody would be told. Then the doctor
/// tries it in the client.
fn prove(world: &World, client: &Client, target: &Path) -> Result<String, Failure> {
    const BROKEN: &str = "The plugin is laid out and registered, but does not work. `ralph doctor` says more, and \
        `ralph uninstall` takes it away again.";
    let took = proof::run(target).map_err(|error| Failure::internal(format!("{error:#}")).hint(BROKEN))?;
    let asked = doctor::Asked { claude: client.program().display().to_string(), ..doctor::Asked::default() };
    let report = doctor::examine_installation(world, &Project::find(world, None), &asked);
    let mut lines =
        vec![format!("each program was run, the slowest hook answered in {} ms", took.as_millis().max(1))];
    for check in &report.checks {
        let told =
            check.notes.iter().filter(|note| note.verdict > Verdict::Ok || check.id == doctor::ROUND_TRIP);
        lines.extend(told.map(Note::in_words));
    }
    let told = lines.join("\n          ");
    if report.is_healthy() { Ok(told) } else { Err(Failure::internal(told).hint(BROKEN)) }
}

fn staged(found: &Found, keep: Option<&Path>) -> String {
    let kept = keep.map_or_else(String::new, |keep| format!("; what was edited is in {}", keep.display()));
    let before = match found {
        Found::Nothing | Found::Current => return String::new(),
        Found::Other(version) => clean::excerpt(version, 30),
        Found::Edited(_) => "an edited one".into(),
    };
    format!("\n          in the place of {before}{kept}; running sessions go on with it at their next hook")
}

pub fn client(world: &World, named: Option<&str>) -> Result<Client, Failure> {
    Client::find(world, named).ok_or_else(|| {
        let name = named.unwrap_or("claude");
        Failure::unavailable(format!("Claude Code was not found: there is no program '{name}' on PATH"))
            .hint(WITHOUT_CLIENT)
    })
}

/// One install at a time: the second would take the first one's half-made folder away.
pub fn lock(world: &World) -> Result<Lock, Failure> {
    let folder = world.data_dir()?;
    file::create_dir(folder).map_err(|error| {
        Failure::refused(format!("{error:#}")).hint("Set RALPH_DATA_DIR to a folder that you can write.")
    })?;
    Lock::acquire(&folder.join("install.lock")).map_err(|error| {
        Failure::refused(format!("{error:#}")).hint(
            "Another `ralph install` or `ralph uninstall` may be at work: wait for it, then call this again.",
        )
    })
}

pub fn settings(world: &World) -> Result<SettingsFile, Failure> {
    SettingsFile::read(world).map_err(|error| {
        Failure::refused(format!("{error:#}")).hint("Correct it and call this again; nothing was changed.")
    })
}

fn own_plugin() -> Result<Plugin, Failure> {
    let program = std::env::current_exe().context("this program cannot find itself")?;
    let program = program.canonicalize().unwrap_or(program);
    Ok(Plugin::with_programs(program.parent().unwrap_or(Path::new(".")))?)
}

/// Where a copy of an edited plugin goes; without `force` it is not replaced.
fn kept_for(found: &Found, target: &Path, force: bool, now: Stamp) -> Result<Option<PathBuf>, Failure> {
    let Found::Edited(files) = found else { return Ok(None) };
    if !force {
        return Err(Failure::refused(format!("{} was edited: {}", target.display(), some(files))).hint(
            "Nothing was changed. --force puts the plugin as it should be in its place, and keeps a copy.",
        ));
    }
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stamp = now.compact();
    Ok(Some(target.with_file_name(format!("{name}-edited-{stamp}"))))
}

pub fn some(files: &[String]) -> String {
    let named: Vec<_> = files.iter().take(5).map(|name| clean::excerpt(name, 60)).collect();
    let more = files.len().saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}

fn refuse_other(known: &Known, folder: &Path, force: bool) -> Result<(), Failure> {
    match known.other(folder) {
        // One that came from git has given way to the programs it asked for.
        Some(other) if !force && !other.is_our_repository() => Err(Failure::refused(format!(
            "Claude Code already has a marketplace called '{}', from {}",
            marketplace::NAME,
            clean::excerpt(&other.place(), 120)
        ))
        .hint("Nothing was changed. --force lets this installation take its place; its plugin goes on with these programs.")),
        _ => Ok(()),
    }
}

/// Shows the change to the user's settings, and makes it where the user agrees.
fn offer_status_line(world: &World, program: &Path, asked: &Asked, told: &str) -> Result<String, Failure> {
    let settings = settings(world)?;
    let (command, path) = (statusline::command(program), settings.path().display().to_string());
    let before = match settings.status_line(&command) {
        StatusLine::Ours => return Ok(format!("{told}The status line is in {path} already.\n")),
        StatusLine::Other(value) if !asked.force => {
            let value = clean::excerpt(&value, 100);
            return Ok(format!(
                "{told}{path} has another status line, which stays:\n  {value}\n--force puts Ralph's in its place, and \
                 `ralph uninstall` puts it back.\n"
            ));
        }
        StatusLine::Other(value) => Some(value),
        StatusLine::None => None,
    };
    let change = settings.with_status_line(&command)?;
    let paint = Paint::new(paint::wanted());
    let shown =
        format!("{told}The status line, in {path}:\n{}", diff::lines(&change.before, &change.after, paint));
    let person = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if !asked.yes && !person {
        return Ok(format!("{shown}Not written: --yes does, or answer on a terminal.\n"));
    }
    let mut out = std::io::stdout().lock();
    if !asked.yes {
        let answered = write_line(&mut out, &shown).and_then(|()| ask(&mut out)).unwrap_or(false);
        if !answered {
            return Ok("Not written.\n".into());
        }
    }
    before.map_or(Ok(()), |value| settings.note_status_line(world, value))?;
    settings.write(world, &change)?;
    Ok(format!(
        "{}Written; an open session shows it at its next update.\n",
        if asked.yes { &shown } else { "" }
    ))
}

fn ask(out: &mut impl Write) -> std::io::Result<bool> {
    out.write_all(b"Write it? [y/N] ")?;
    out.flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}
