//! Checks that Claude Code is there and new enough, and that it has the plugin.

use super::{CheckContext, CheckNote, DoctorCheck, REINSTALL};
use crate::claude::client::plugins::{self, InstalledPlugin};
use crate::claude::client::version::{OLDEST, OLDEST_FOR_PLUGIN, Version};
use crate::claude::plugin::hooks;
use crate::core::text::clean;
use crate::store::process::lookup;
use std::path::{Path, PathBuf};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(20);
const INSTALL: &str = "npm install -g @anthropic-ai/claude-code, or name it with --claude PATH; \
    `ralph run --agent-command CMD` works without it";
const UPDATE: &str = "npm install -g @anthropic-ai/claude-code";

pub fn client(context: &CheckContext) -> (DoctorCheck, Option<Version>) {
    let Some(client) = &context.client else {
        let note = CheckNote::failure(format!("{} was not found", context.claude), INSTALL);
        return (check(note), None);
    };
    let answer = context.run(&mut client.command(&["--version"], &context.project.root), b"", TIMEOUT);
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
    (check(note), version)
}

fn check(note: CheckNote) -> DoctorCheck {
    DoctorCheck { id: "client", notes: [note].into_iter().chain(unused_path()).collect() }
}

fn unused_path() -> Option<CheckNote> {
    let unused: Vec<String> = lookup::unused_entries().iter().map(|entry| format!("'{entry}'")).collect();
    (!unused.is_empty()).then(|| {
        let unused = clean::excerpt(&unused.join(", "), 200);
        let why =
            format!("PATH has entries that are not absolute; Ralph and what it starts ignore them: {unused}");
        CheckNote::warning(why, "write them in PATH as absolute folders, or remove them")
    })
}

/// The folder of our plugin, and the other plugins.
pub struct FoundPlugins {
    pub folder: Option<PathBuf>,
    pub others: Vec<InstalledPlugin>,
}

pub fn plugin(context: &CheckContext, client_works: bool) -> (DoctorCheck, FoundPlugins) {
    let (plugins, problem) = match client_works.then(|| list(context)) {
        Some(Ok(plugins)) => (plugins, None),
        Some(Err(why)) => {
            let hint = "update it, or name the plugin's folder: --plugin-dir DIR";
            let why = format!("Claude Code did not list its plugins: {why}");
            (Vec::new(), Some(CheckNote::failure(why, hint)))
        }
        None => {
            let why = "skipped: no working Claude Code was found; --plugin-dir DIR checks a folder";
            (Vec::new(), Some(CheckNote::skipped(why)))
        }
    };
    let (ours, others): (Vec<_>, Vec<_>) = plugins.into_iter().partition(InstalledPlugin::is_ours);
    let in_use = ours.iter().find(|plugin| plugin.enabled).or(ours.first());
    let in_use = in_use.map(|plugin| plugin.folder().to_owned());
    let named = context.call.value("plugin-dir").map(|folder| context.world.working_dir.join(folder));
    let named = named.map(|folder| folder.canonicalize().unwrap_or(folder));
    let notes = match (&named, problem) {
        (Some(folder), _) => in_folder(folder),
        (None, Some(problem)) => vec![problem],
        (None, None) => installed(&ours),
    };
    (DoctorCheck { id: "plugin", notes }, FoundPlugins { folder: named.or(in_use), others })
}

fn list(context: &CheckContext) -> Result<Vec<InstalledPlugin>, String> {
    let Some(client) = context.client.as_ref().filter(|_| plugins::client_was_started(context.world)) else {
        return Ok(Vec::new());
    };
    let mut command = client.command(&["plugin", "list", "--json"], &context.project.root);
    let answer = context.run(&mut command, b"", TIMEOUT);
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
