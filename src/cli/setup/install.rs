//! `ralph install`: copies the plugin to the user's data folder, registers it with Claude Code and checks that it works.
//! With `--to DIR` it only copies the plugin there, for `claude --plugin-dir DIR`.

use super::{doctor, first_few};
use crate::claude::client::Client;
use crate::claude::plugin::marketplace::{self, Registration};
use crate::claude::plugin::{self, PluginFiles, TargetState, VERSION};
use crate::claude::settings::settings_file::{SettingsFile, StatusLine};
use crate::claude::settings::statusline;
use crate::cli::program::write_line;
use crate::cli::{Failure, Invocation, World};
use crate::core::diagnosis::{CheckNote, Health};
use crate::core::outcome::Exit;
use crate::core::text::clean;
use crate::store::file;
use crate::store::file::lock::Lock;
use crate::view::diff;
use crate::view::paint::Paint;
use crate::view::progress::ProgressLine;
use anyhow::Context;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

const WITHOUT_CLAUDE: &str = "install it (https://claude.com/claude-code), or name it with --claude PATH, and try again;\n\
    without Claude Code, `ralph demo` shows a whole loop, `ralph run --agent-command CMD` runs any other agent, and\n\
    `ralph install --to DIR` copies the plugin for `claude --plugin-dir DIR` on another machine";
const BROKEN: &str =
    "the plugin is installed but does not work; `ralph doctor` says more, `ralph uninstall` removes it";

pub fn run(call: &Invocation) -> Result<String, Failure> {
    if call.flag("yes") && !call.flag("settings") {
        return Err(Failure::usage("--yes needs --settings"));
    }
    match call.parsed::<PathBuf>("to") {
        Some(folder) => copy_to(&call.world, &folder, call.flag("force")),
        None => install(call),
    }
}

fn copy_to(world: &World, folder: &Path, force: bool) -> Result<String, Failure> {
    let target = world.working_dir.join(folder);
    let target = target.canonicalize().unwrap_or(target);
    let parent = target.parent().unwrap_or(&target);
    file::create_shared_dir(parent)?;
    let _lock = world.data_dir().is_ok().then(|| lock(world)).transpose()?;
    let (found, backup) = copy_plugin(world, &target, force)?;
    let shown = target.display();
    let mut text = match found {
        TargetState::Current => format!("Nothing to do: Ralph {VERSION} is in {shown}\n"),
        _ => format!("The plugin is in {shown}\n"),
    };
    text.extend(backup.map(|backup| format!("The edited one is in {}\n", backup.display())));
    Ok(format!("{text}Try it: claude --plugin-dir \"{shown}\"\n"))
}

fn install(call: &Invocation) -> Result<String, Failure> {
    let (world, force) = (&call.world, call.flag("force"));
    let client = Client::find(world, call.value("claude")).ok_or_else(|| {
        let name = call.value("claude").unwrap_or("claude");
        Failure::unavailable(format!("Claude Code was not found: no program '{name}'")).hint(WITHOUT_CLAUDE)
    })?;
    let version = client.version().map_err(|error| Failure::unavailable(error).hint(WITHOUT_CLAUDE))?;
    let (folder, target) = (marketplace::folder(world)?, marketplace::plugin(world)?);
    let _lock = lock(world)?;
    // Everything that could fail is checked before anything is written.
    let settings = settings(world)?;
    let registration = Registration::read(&client)?;
    refuse_other(&registration, &folder, force)?;
    let (found, backup) = copy_plugin(world, &target, force)?;
    settings.record(world)?;
    let written = marketplace::write(&folder)?;
    let progress = ProgressLine::show(true, || "registering the plugin with Claude Code…".into());
    let registered = registration.complete(&client, &folder)?;
    drop(progress);
    let checks = check(call, &client)?;

    let changed = found != TargetState::Current || written || registered.is_some();
    let mut text = if changed {
        let registered = registered.unwrap_or("registered with");
        let other = registration.other(&folder).map(|other| clean::excerpt(&other.place(), 120));
        let other = other.map_or_else(String::new, |other| format!(", replaces the one from {other}"));
        format!(
            "Ralph {VERSION} is installed.\n  Plugin  {}{}\n  Client  {registered} Claude Code {version} as {}{other}\n  \
             Checks  {checks}\n",
            target.display(),
            replaced(&found, backup.as_deref()),
            marketplace::ID,
        )
    } else {
        format!(
            "Nothing to do: Ralph {VERSION} is installed in Claude Code {version} and works.\n  Checks  {checks}\n"
        )
    };
    if call.flag("settings") {
        text.push('\n');
        return offer_status_line(call, &plugin::program(&target, "ralph"), &text);
    }
    if changed {
        text.push_str(
            "\nIn a project, run `claude` and type /ralph:start TASK (open sessions need /reload-plugins first).\n\
             `ralph install --settings` adds a status line. `ralph uninstall` removes everything.\n",
        );
    }
    Ok(text)
}

/// Copies the plugin to `target`. Returns what was there, and where a copy of an edited plugin is.
fn copy_plugin(world: &World, target: &Path, force: bool) -> Result<(TargetState, Option<PathBuf>), Failure> {
    let program = std::env::current_exe().context("could not find the path of this program")?;
    let program = program.canonicalize().unwrap_or(program);
    let files = PluginFiles::with_programs(program.parent().unwrap_or(Path::new(".")))?;
    let found = files.inspect(target)?;
    let backup = match &found {
        TargetState::Edited(names) if !force => {
            let why = format!("{} was edited: {}", target.display(), first_few(names.iter().cloned()));
            return Err(Failure::refused(why)
                .hint("replace it with --force, which keeps a copy; nothing was changed"));
        }
        TargetState::Edited(_) => {
            let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Some(target.with_file_name(format!("{name}-edited-{}", world.now.compact())))
        }
        _ => None,
    };
    match found {
        TargetState::Current => plugin::remove_unfinished(target)?,
        _ => files.install(target, backup.as_deref())?,
    }
    Ok((found, backup))
}

/// Runs the doctor's checks of the installation and returns their lines.
fn check(call: &Invocation, client: &Client) -> Result<String, Failure> {
    let claude = client.program().display().to_string();
    let progress = ProgressLine::show(true, || "checking that the plugin works…".into());
    let report = doctor::check_installation(call, &claude);
    drop(progress);
    let mut lines = Vec::new();
    for check in &report.checks {
        let always = [doctor::HOOK_PROGRAMS, doctor::ROUND_TRIP].contains(&check.id);
        let notes = check.notes.iter().filter(|note| always || note.verdict > Health::Ok);
        lines.extend(notes.map(CheckNote::line));
    }
    let text = lines.join("\n          ");
    if report.is_healthy() { Ok(text) } else { Err(Failure::internal(text).hint(BROKEN)) }
}

fn replaced(found: &TargetState, backup: Option<&Path>) -> String {
    let backup = backup.map_or_else(String::new, |backup| format!(", which is in {}", backup.display()));
    let before = match found {
        TargetState::Empty | TargetState::Current => return String::new(),
        TargetState::Other(version) => clean::excerpt(version, 30),
        TargetState::Edited(_) => "an edited one".into(),
    };
    format!("\n          replaces {before}{backup}; open sessions use it from their next hook")
}

/// Takes the lock of install and uninstall: a second install would remove the first one's unfinished folder.
pub fn lock(world: &World) -> Result<Lock, Failure> {
    let folder = world.data_dir()?;
    file::create_dir(folder)
        .map_err(|error| Failure::refused(error).hint("set RALPH_DATA_DIR to a folder that you can write"))?;
    Lock::acquire(&folder.join("install.lock")).map_err(|error| {
        Failure::from(error)
            .exit(Exit::Failed)
            .hint("another `ralph install` or `ralph uninstall` may be running: wait for it, then try again")
    })
}

pub fn settings(world: &World) -> Result<SettingsFile, Failure> {
    SettingsFile::read(world)
        .map_err(|error| Failure::refused(error).hint("fix the file and try again; nothing was changed"))
}

fn refuse_other(registration: &Registration, folder: &Path, force: bool) -> Result<(), Failure> {
    match registration.other(folder) {
        // Our own repository, added as a marketplace, asks the user to run this command.
        Some(other) if !force && !other.is_our_repository() => {
            let place = clean::excerpt(&other.place(), 120);
            let why = format!("Claude Code already has a marketplace '{}' from {place}", marketplace::NAME);
            Err(Failure::refused(why).hint("replace it with --force; nothing was changed"))
        }
        _ => Ok(()),
    }
}

/// Shows the change to the user's settings, and writes it if the user agrees.
fn offer_status_line(call: &Invocation, program: &Path, text: &str) -> Result<String, Failure> {
    let (world, yes) = (&call.world, call.flag("yes"));
    let settings = settings(world)?;
    let (command, path) = (statusline::command(program), settings.path().display().to_string());
    let previous = match settings.status_line(&command) {
        StatusLine::Ours { refreshes: true } => {
            return Ok(format!("{text}The status line is already in {path}.\n"));
        }
        StatusLine::Other(value) if !call.flag("force") => {
            let value = clean::excerpt(&value, 100);
            return Ok(format!(
                "{text}{path} keeps its own status line:\n  {value}\n--force replaces it; `ralph uninstall` restores it.\n"
            ));
        }
        StatusLine::Other(value) => Some(value),
        StatusLine::Ours { refreshes: false } | StatusLine::None => None,
    };
    let change = settings.with_status_line(&command)?;
    let lines = diff::lines(&change.before, &change.after, Paint::for_stdout());
    let shown = format!("{text}The change in {path}:\n{lines}");
    if !yes {
        if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
            return Ok(format!("{shown}Not written: confirm on a terminal, or use --yes.\n"));
        }
        let mut out = std::io::stdout().lock();
        if !write_line(&mut out, &shown).and_then(|()| confirm(&mut out)).unwrap_or(false) {
            return Ok("Not written.\n".into());
        }
    }
    if let Some(value) = previous {
        settings.record_status_line(world, value)?;
    }
    settings.write(world, &change)?;
    let shown = if yes { &shown } else { "" };
    Ok(format!("{shown}Written. Open sessions show it at their next update.\n"))
}

fn confirm(out: &mut impl Write) -> std::io::Result<bool> {
    out.write_all(b"Write it? [y/N] ")?;
    out.flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}
