//! Checks that Claude Code is there and new enough, and that it has the plugin.

use super::{CheckContext, REINSTALL};
use crate::claude::client::plugins::{self, InstalledPlugin};
use crate::claude::client::version::{OLDEST, OLDEST_FOR_PLUGIN, Version};
use crate::claude::plugin::hooks;
use crate::core::diagnosis::{Check, CheckNote};
use crate::core::text::clean;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);
const INSTALL: &str = "npm install -g @anthropic-ai/claude-code, or name it with --claude PATH; \
    `ralph run --agent-command CMD` works without it";
const UPDATE: &str = "npm install -g @anthropic-ai/claude-code";

pub fn client(context: &CheckContext) -> (Check, Option<Version>) {
    let Some(client) = &context.client else {
        let note = CheckNote::failure(format!("{} was not found", context.claude), INSTALL);
        return (Check::one("client", note), None);
    };
    let answer = context.run(&mut client.command(&["--version"], &context.project.root), b"", LIMIT);
    let version = Version::parse(&answer.stdout).filter(|_| answer.passed());
    let program = client.program().display();
    let note = match version {
        None if answer.passed() => {
            let output = clean::excerpt(&answer.stdout, 100);
            CheckNote::failure(format!("{program} --version printed no version: {output}"), INSTALL)
        }
        None => CheckNote::failure(format!("{program} --version failed: {}", answer.complaint()), INSTALL),
        Some(version) if version < OLDEST => {
            CheckNote::failure(format!("{program} is too old: {version}, needs {OLDEST}"), UPDATE)
        }
        Some(version) if version < OLDEST_FOR_PLUGIN => CheckNote::warning(
            format!("{program} is {version}: fine for `ralph run`, the plugin needs {OLDEST_FOR_PLUGIN}"),
            UPDATE,
        ),
        Some(version) => CheckNote::ok(format!("Claude Code {version} ({program})")),
    };
    (Check::one("client", note), version)
}

/// The folder of our plugin, and the other plugins.
#[derive(Default)]
pub struct FoundPlugins {
    pub folder: Option<PathBuf>,
    pub others: Vec<InstalledPlugin>,
}

pub fn plugin(context: &CheckContext, client_works: bool) -> (Check, FoundPlugins) {
    let listed = client_works.then(|| list(context));
    let mut found = FoundPlugins::default();
    let notes = match (context.plugin_dir, listed) {
        (Some(folder), listed) => {
            let plugins = listed.and_then(Result::ok).unwrap_or_default();
            found.others = plugins.into_iter().filter(|plugin| !plugin.is_ours()).collect();
            let folder = context.world.working_dir.join(folder);
            let folder = folder.canonicalize().unwrap_or(folder);
            let notes = in_folder(&folder);
            found.folder = Some(folder);
            notes
        }
        (None, None) => vec![CheckNote::skipped("no Claude Code to ask; --plugin-dir DIR checks a folder")],
        (None, Some(Err(why))) => vec![CheckNote::failure(
            format!("Claude Code did not list its plugins: {why}"),
            "update it, or name the plugin's folder: --plugin-dir DIR",
        )],
        (None, Some(Ok(plugins))) => {
            let (ours, others): (Vec<_>, Vec<_>) = plugins.into_iter().partition(InstalledPlugin::is_ours);
            found.others = others;
            let in_use = ours.iter().find(|plugin| plugin.enabled).or(ours.first());
            found.folder = in_use.map(|plugin| plugin.folder().to_owned());
            installed(&ours)
        }
    };
    (Check { id: "plugin", notes }, found)
}

fn list(context: &CheckContext) -> Result<Vec<InstalledPlugin>, String> {
    let Some(client) = context.client.as_ref().filter(|_| plugins::client_was_started(context.world)) else {
        return Ok(Vec::new());
    };
    let mut command = client.command(&["plugin", "list", "--json"], &context.project.root);
    let answer = context.run(&mut command, b"", LIMIT);
    let list = plugins::parse(&answer.stdout).filter(|_| answer.passed());
    list.ok_or_else(|| answer.complaint())
}

fn in_folder(folder: &Path) -> Vec<CheckNote> {
    let here = folder.display();
    match hooks::version(folder) {
        _ if !folder.is_dir() => {
            vec![CheckNote::failure(format!("{here} is not a folder"), "name the plugin's folder")]
        }
        None => vec![CheckNote::failure(
            format!("{here} contains no plugin: .claude-plugin/plugin.json with a version is missing"),
            format!("ralph install --to \"{here}\""),
        )],
        Some(version) => {
            let mut notes = vec![CheckNote::ok(format!("ralph {version} in {here}, for --plugin-dir"))];
            notes.extend(other_version(&version));
            notes
        }
    }
}

fn installed(ours: &[InstalledPlugin]) -> Vec<CheckNote> {
    let enabled: Vec<_> = ours.iter().filter(|plugin| plugin.enabled).collect();
    let mut notes = Vec::new();
    match (enabled.as_slice(), ours) {
        ([], []) => notes.push(CheckNote::failure(
            "the plugin is not installed in Claude Code",
            "ralph install; if you use `claude --plugin-dir DIR`: ralph doctor --plugin-dir DIR",
        )),
        ([], [first, ..]) => notes.push(CheckNote::failure(
            format!("the plugin {} is disabled", first.id),
            format!("claude plugin enable {}", first.id),
        )),
        ([one], _) => {
            let version = one.version().unwrap_or("without a version");
            let scope = one.scope.as_deref().unwrap_or("unknown");
            let folder = one.folder().display();
            notes.push(CheckNote::ok(format!("{} {version}, enabled (scope {scope}), in {folder}", one.id)));
            notes.extend(one.version().and_then(other_version));
        }
        ([first, second, ..], _) => notes.push(CheckNote::warning(
            format!("the plugin is enabled twice, as {} and {}; every hook runs twice", first.id, second.id),
            format!("claude plugin disable {}", second.id),
        )),
    }
    for plugin in enabled {
        if !plugin.folder().is_dir() {
            let why = format!("the folder of {} is missing: {}", plugin.id, plugin.folder().display());
            notes.push(CheckNote::failure(why, REINSTALL));
        }
        for error in &plugin.errors {
            let why = format!("Claude Code cannot load {}: {}", plugin.id, clean::excerpt(error, 200));
            notes.push(CheckNote::failure(why, REINSTALL));
        }
    }
    notes
}

fn other_version(version: &str) -> Option<CheckNote> {
    let own = env!("CARGO_PKG_VERSION");
    let why = || format!("the plugin is version {version}, this program is {own}");
    (version != own).then(|| CheckNote::warning(why(), "run `ralph install` with the newer one"))
}
