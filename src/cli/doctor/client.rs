//! The client: whether it is there, new enough, and has the plugin.

use super::Patient;
use crate::claude::hooks;
use crate::claude::installed::{self, Plugin};
use crate::claude::version::{OLDEST, OLDEST_FOR_PLUGIN, Version};
use crate::core::checkup::{Check, Note};
use crate::core::clean;
use crate::store::command::Ended;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);
const INSTALL: &str = "npm install -g @anthropic-ai/claude-code, or name it with --claude PATH; \
    `ralph run --agent-command CMD` works without it";
const UPDATE: &str = "npm install -g @anthropic-ai/claude-code";

pub fn client(patient: &Patient) -> (Check, Option<Version>) {
    let program = &patient.asked.claude;
    let said = patient.ask(&mut patient.client(&["--version"]), b"", LIMIT);
    let version = Version::parse(&said.stdout).filter(|_| said.is_green());
    let note = match (&said.ended, version) {
        (Ended::NotStarted(why), _) => Note::failure(format!("{program} was not found: {why}"), INSTALL),
        (Ended::Exit(0), None) => {
            let told = clean::excerpt(&said.stdout, 100);
            Note::failure(format!("{program} --version says \"{told}\", which is no version"), INSTALL)
        }
        (_, None) => Note::failure(format!("{program} --version failed: {}", said.complaint()), INSTALL),
        (_, Some(version)) if version < OLDEST => {
            Note::failure(format!("{program} is version {version}: too old, {OLDEST} is the oldest"), UPDATE)
        }
        (_, Some(version)) if version < OLDEST_FOR_PLUGIN => Note::warning(
            format!(
                "{program} is version {version}: fine for `ralph run`, the plugin wants {OLDEST_FOR_PLUGIN}"
            ),
            UPDATE,
        ),
        (_, Some(version)) => Note::ok(format!("Claude Code {version} ({program})")),
    };
    (Check::one("client", note), version)
}

/// The plugin that runs, and the others beside it.
#[derive(Default)]
pub struct Found {
    pub folder: Option<PathBuf>,
    pub others: Vec<Plugin>,
}

pub fn plugin(patient: &Patient, version: Option<Version>) -> (Check, Found) {
    let listed = version.map(|_| list(patient));
    let mut found = Found::default();
    let notes = match (&patient.asked.plugin_dir, listed) {
        (Some(folder), listed) => {
            let plugins = listed.and_then(Result::ok).unwrap_or_default();
            found.others = plugins.into_iter().filter(|plugin| !plugin.is_ours()).collect();
            let folder = patient.world.working_dir.join(folder);
            let folder = folder.canonicalize().unwrap_or(folder);
            let notes = given(&folder);
            found.folder = Some(folder);
            notes
        }
        (None, None) => vec![Note::skipped("there is no client to ask; --plugin-dir DIR looks at a folder")],
        (None, Some(Err(why))) => vec![Note::failure(
            format!("the client does not tell its plugins: {why}"),
            "update it, or say where the plugin is: --plugin-dir DIR",
        )],
        (None, Some(Ok(plugins))) => {
            let (ours, others): (Vec<_>, Vec<_>) = plugins.into_iter().partition(Plugin::is_ours);
            found.others = others;
            // Where none is enabled, the first one is still worth a look.
            found.folder =
                ours.iter().find(|plugin| plugin.enabled).or(ours.first()).map(|p| p.folder.clone());
            registered(&ours)
        }
    };
    (Check { id: "plugin", notes }, found)
}

fn list(patient: &Patient) -> Result<Vec<Plugin>, String> {
    if !installed::client_was_started(patient.world) {
        return Ok(Vec::new());
    }
    let said = patient.ask(&mut patient.client(&["plugin", "list", "--json"]), b"", LIMIT);
    if !said.is_green() {
        return Err(said.complaint());
    }
    installed::parse(&said.stdout).ok_or_else(|| format!("\"{}\"", clean::excerpt(&said.stdout, 100)))
}

fn given(folder: &Path) -> Vec<Note> {
    let version = hooks::version(folder);
    let here = folder.display();
    match version {
        _ if !folder.is_dir() => {
            vec![Note::failure(format!("{here} is not a folder"), "name the plugin's folder")]
        }
        None => vec![Note::failure(
            format!("{here} holds no plugin: no .claude-plugin/plugin.json with a version"),
            format!("ralph install --to \"{here}\""),
        )],
        Some(version) => {
            let mut notes = vec![Note::ok(format!("ralph {version} in {here}, loaded with --plugin-dir"))];
            notes.extend(other_version(&version));
            notes
        }
    }
}

fn registered(ours: &[Plugin]) -> Vec<Note> {
    let enabled: Vec<_> = ours.iter().filter(|plugin| plugin.enabled).collect();
    let mut notes = Vec::new();
    match (enabled.as_slice(), ours) {
        ([], []) => notes.push(Note::failure(
            "the plugin is not registered with Claude Code",
            "ralph install; where you load it with `claude --plugin-dir DIR`: ralph doctor --plugin-dir DIR",
        )),
        ([], [first, ..]) => notes.push(Note::failure(
            format!("the plugin {} is registered, and disabled here", first.id),
            format!("claude plugin enable {}", first.id),
        )),
        ([one], _) => {
            let version = one.version.as_deref().unwrap_or("of no version");
            let scope = one.scope.as_deref().unwrap_or("unknown");
            let place = one.folder.display();
            notes.push(Note::ok(format!("{} {version}, enabled (scope {scope}), in {place}", one.id)));
            notes.extend(one.version.as_deref().and_then(other_version));
        }
        ([first, second, ..], _) => notes.push(Note::warning(
            format!("the plugin is enabled twice, as {} and {}: every hook runs twice", first.id, second.id),
            format!("claude plugin disable {}", second.id),
        )),
    }
    for plugin in enabled {
        if !plugin.folder.is_dir() {
            let why = format!("the folder of {} is gone: {}", plugin.id, plugin.folder.display());
            notes.push(Note::failure(why, "lay it out again: ralph install"));
        }
        for error in &plugin.errors {
            let why = format!("the client says of {}: {}", plugin.id, clean::excerpt(error, 200));
            notes.push(Note::failure(why, "lay it out again: ralph install"));
        }
    }
    notes
}

fn other_version(version: &str) -> Option<Note> {
    let own = env!("CARGO_PKG_VERSION");
    let why = || format!("the plugin is version {version}, this program is {own}");
    (version != own)
        .then(|| Note::warning(why(), "`ralph install` with the newer of the two brings them together"))
}
