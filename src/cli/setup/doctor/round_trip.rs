//! Checks that a loop continues, with the real Claude Code, the plugin, and a scripted model.
//!
//! It uses a temporary home and a fake key; of the user's settings only the switches that disable hooks are copied. It takes
//! two seconds and no tokens, and no other check proves that the parts work together.

use super::{CheckContext, CheckNote, DoctorCheck, skipped};
use crate::claude::client::Client;
use crate::claude::client::version::{OLDEST_FOR_PLUGIN, Version};
use crate::claude::round_trip::{self, Model, RoundTrip};
use crate::claude::settings::settings_file::{SettingsFile, StatusLine};
use crate::claude::settings::{MODES, Scope};
use crate::store::file::{self, Privacy, temporary};
use crate::store::process::command::ProgramEnd;
use crate::store::process::lookup;
use anyhow::{Context, Result};
use std::path::Path;
use std::time::Duration;

pub const ID: &str = "round-trip";
const STEERING: &str = "steering";
const FIGURES: &str = "figures";
const TIMEOUT: Duration = Duration::from_secs(60);
/// What Claude Code needs of the environment.
const KEPT_VARIABLES: [&str; 9] =
    ["PATH", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "SystemRoot", "ComSpec", "PATHEXT"];

/// Returns the check of the round trip, and those of what it shows about steering and about the session's figures.
pub fn round_trip(
    context: &CheckContext,
    version: Option<Version>,
    plugin: Option<&Path>,
) -> [DoctorCheck; 3] {
    let figures = |module: Option<bool>| DoctorCheck::one(FIGURES, figures(context, module));
    let skipped = |why: &str| [skipped(ID, why), skipped(STEERING, why), figures(None)];
    let Some(plugin) = plugin.filter(|plugin| plugin.is_dir()) else {
        return skipped("skipped: the plugin was not found");
    };
    let (Some(client), Some(version)) = (&context.client, version) else {
        return skipped("skipped: no working Claude Code was found");
    };
    if version < OLDEST_FOR_PLUGIN {
        let queue =
            format!("queue (Claude Code {version}): guidance and commands wait for the end of the turn");
        let [round_trip, ..] = skipped("Claude Code is too old");
        return [round_trip, DoctorCheck::one(STEERING, CheckNote::ok(queue)), figures(Some(false))];
    }
    if context.call.flag("quick") {
        return skipped("skipped by --quick");
    }
    match run(context, client, plugin) {
        Ok(round_trip) => {
            let steering = match round_trip.turns.is_empty() {
                true => CheckNote::skipped("the round trip called no model"),
                false => round_trip.steering(version),
            };
            let module = (!round_trip.turns.is_empty()).then(|| round_trip.loads_module());
            [
                DoctorCheck::one(ID, round_trip.diagnose()),
                DoctorCheck::one(STEERING, steering),
                figures(module),
            ]
        }
        Err(error) => skipped(&format!("could not be tried: {error:#}")),
    }
}

/// Says what tells cost, context and quota of a session. Whether the client loads the module may be unknown.
fn figures(context: &CheckContext, module: Option<bool>) -> CheckNote {
    let is_ours = |line: &str| line.contains("ralph") && line.contains("statusline");
    let line = SettingsFile::read(context.world).map(|settings| settings.status_line(""));
    let has_line = matches!(&line, Ok(StatusLine::Other(line)) if is_ours(line));
    let what = "cost, context and quota of a session";
    match module {
        Some(true) => CheckNote::ok(format!("the plugin's module reports {what}")),
        _ if has_line => CheckNote::ok(format!("the status line reports {what}")),
        Some(false) => CheckNote::ok(format!(
            "nothing reports {what}, so limits on them are not enforced; `ralph install --settings` adds the status line"
        )),
        None => CheckNote::skipped("only the round trip shows whether the module is loaded"),
    }
}

fn run(context: &CheckContext, client: &Client, plugin: &Path) -> Result<RoundTrip> {
    let folder = temporary::folder("ralph-doctor-")?;
    let path = |name: &str| folder.path().join(name);
    let model = Model::start().context("no free port on 127.0.0.1")?;
    for (scope, name) in [
        (Scope::User, "claude/settings.json"),
        (Scope::Project, "project/.claude/settings.json"),
        (Scope::Local, "project/.claude/settings.local.json"),
    ] {
        file::create_dir(path(name).parent().unwrap_or(folder.path()))?;
        let switches = context.settings.switches_of(scope).to_string();
        file::replace(&path(name), switches.as_bytes(), Privacy::Private)?;
    }
    let mut command = client.command(&round_trip::arguments(plugin), &path("project"));
    command.env_clear();
    let kept = KEPT_VARIABLES.iter().chain(&MODES);
    command.envs(kept.filter_map(|name| Some((name, std::env::var_os(name)?))));
    lookup::set_path(&mut command);
    for (variable, name) in [
        ("HOME", "home"),
        ("USERPROFILE", "home"),
        ("CLAUDE_CONFIG_DIR", "claude"),
        ("RALPH_DATA_DIR", "data"),
        ("RALPH_CONFIG_DIR", "config"),
    ] {
        file::create_dir(&path(name))?;
        command.env(variable, path(name));
    }
    command.env("ANTHROPIC_API_KEY", round_trip::KEY).env("ANTHROPIC_BASE_URL", model.url());
    command.env("DISABLE_AUTOUPDATER", "1").env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    command.env("CLAUDE_CODE_MAX_RETRIES", "1");
    let answer = context.run(&mut command, b"", TIMEOUT);
    Ok(RoundTrip {
        in_time: !matches!(answer.ended, ProgramEnd::TimedOut(_) | ProgramEnd::Cancelled),
        ended: answer.ended.to_string(),
        stdout: answer.stdout,
        stderr: answer.stderr,
        turns: model.turns(),
        seconds: answer.took.as_secs_f64(),
    })
}
