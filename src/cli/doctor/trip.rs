//! The round trip: the real client, the plugin, and a loop that has to go on, against a model on loopback.
//!
//! Nothing of the user's goes along but the switches that decide whether hooks run: own home, own settings, a key that
//! is none. It costs two seconds and no tokens, and it is the only proof that the parts fit together, so it is made
//! unless somebody says `--quick`.

use super::{Patient, skipped};
use crate::claude::loopback::Loopback;
use crate::claude::settings::{MODES, Scope};
use crate::claude::trip::{self, Trip};
use crate::claude::version::{OLDEST_FOR_PLUGIN, Version};
use crate::core::checkup::Check;
use crate::store::command::Ended;
use crate::store::file::{self, Privacy};
use crate::store::scratch::Scratch;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub const ID: &str = "round-trip";
const LIMIT: Duration = Duration::from_secs(60);
/// What a program needs to find others, to speak and, on Windows, to run at all.
const KEPT: [&str; 9] =
    ["PATH", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "SystemRoot", "ComSpec", "PATHEXT"];

pub fn round_trip(patient: &Patient, version: Option<Version>, plugin: Option<&Path>) -> Check {
    let Some(plugin) = plugin.filter(|plugin| plugin.is_dir()) else {
        return skipped(ID, "no plugin to try");
    };
    match version {
        None => return skipped(ID, "no client to try it with"),
        Some(version) if version < OLDEST_FOR_PLUGIN => return skipped(ID, "the client is too old for it"),
        Some(_) if patient.asked.quick => return skipped(ID, "left out: --quick"),
        Some(_) => {}
    }
    match make(patient, plugin) {
        Ok(trip) => Check::one(ID, trip.judge()),
        Err(error) => skipped(ID, &format!("could not be tried: {error:#}")),
    }
}

fn make(patient: &Patient, plugin: &Path) -> Result<Trip> {
    let scratch = Scratch::new("ralph-doctor")?;
    let model = Loopback::start(&trip::REPLIES).context("no port on loopback")?;
    let mut command = Command::new(patient.program());
    command.args(trip::arguments(plugin)).current_dir(scratch.folder("project")?).env_clear();
    command.envs(KEPT.iter().chain(&MODES).filter_map(|name| Some((name, std::env::var_os(name)?))));
    for (variable, folder) in [
        ("HOME", "home"),
        ("USERPROFILE", "home"),
        ("CLAUDE_CONFIG_DIR", "claude"),
        ("RALPH_DATA_DIR", "data"),
        ("RALPH_CONFIG_DIR", "config"),
    ] {
        command.env(variable, scratch.folder(folder)?);
    }
    command.env("ANTHROPIC_API_KEY", trip::KEY).env("ANTHROPIC_BASE_URL", model.url());
    command.env("DISABLE_AUTOUPDATER", "1").env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    command.env("CLAUDE_CODE_MAX_RETRIES", "1");
    same_switches(patient, &scratch)?;
    let said = patient.ask(&mut command, b"", LIMIT);
    Ok(Trip {
        in_time: !matches!(said.ended, Ended::TimedOut(_) | Ended::Cancelled),
        ended: said.ended.to_string(),
        stdout: said.stdout,
        stderr: said.stderr,
        turns: model.turns(),
        seconds: said.took.as_secs_f64(),
    })
}

/// The client itself judges what the user's and the project's files say about hooks.
fn same_switches(patient: &Patient, scratch: &Scratch) -> Result<()> {
    let project = scratch.folder("project")?.join(".claude");
    file::create_dir(&project)?;
    for (scope, path) in [
        (Scope::User, scratch.path().join("claude").join("settings.json")),
        (Scope::Project, project.join("settings.json")),
        (Scope::Local, project.join("settings.local.json")),
    ] {
        let switches = patient.settings.switches_of(scope).to_string();
        file::replace(&path, switches.as_bytes(), Privacy::Private)?;
    }
    Ok(())
}
