//! Checks that hooks are enabled, that their programs answer, and which other hooks run at the end of a turn.

use super::super::pages;
use super::{CheckContext, REINSTALL, skipped};
use crate::claude::client::plugins::InstalledPlugin;
use crate::claude::plugin::hooks::{self, Hook};
use crate::claude::settings::{MODES, Scope, is_truthy};
use crate::core::diagnosis::{self, CheckNote, DoctorCheck};
use crate::core::record::Engine;
use crate::core::text::clean;
use crate::scan;
use crate::store::file::{self, temporary};
use crate::store::process::command::ProgramEnd;
use crate::store::process::lookup;
use crate::store::world;
use serde_json::{Value, json};
use std::env::consts::EXE_SUFFIX;
use std::path::Path;
use std::time::Duration;

pub const PROGRAMS: &str = "hook-programs";
const TIMEOUT: Duration = Duration::from_secs(3);
/// Hooks run at every turn, so a slower one is noticed.
const SLOW: Duration = Duration::from_secs(1);
const BLOCK_CAP: &str = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP";
const DEFAULT_BLOCK_CAP: u64 = 8;

pub fn enabled(context: &CheckContext) -> DoctorCheck {
    let mut problems = Vec::new();
    for layer in &context.settings.layers {
        let Some(fault) = &layer.fault else { continue };
        let why = format!("{fault}; Claude Code ignores the whole file");
        let hint = "fix it by hand: Ralph does not change it";
        problems.push(match layer.scope {
            // It says which plugins are enabled.
            Scope::User => CheckNote::failure(why, hint),
            _ => CheckNote::warning(why, hint),
        });
    }
    for (name, path) in context.settings.against_hooks() {
        let hint = match name {
            "allowManagedHooksOnly" => "ask your administrator; `ralph run` works without hooks".to_owned(),
            _ => format!("remove {name} from that file"),
        };
        let why = format!("{name} in {} disables the plugin's hooks", path.display());
        problems.push(CheckNote::failure(why, hint));
    }
    for name in MODES {
        if world::text(name).is_some_and(|value| is_truthy(&value)) {
            let why = format!("{name} is set in this shell: Claude Code runs no hooks");
            problems.push(CheckNote::failure(why, format!("unset {name}")));
        }
    }
    DoctorCheck::of("hooks", problems, "no setting disables them")
}

pub fn programs(context: &CheckContext, plugin: Option<&Path>) -> DoctorCheck {
    let Some(plugin) = plugin.filter(|plugin| plugin.is_dir()) else {
        return skipped(PROGRAMS, "skipped: the plugin was not found");
    };
    let hooks = match hooks::of(plugin) {
        Ok(hooks) => hooks,
        Err(error) => return DoctorCheck::one(PROGRAMS, CheckNote::failure(format!("{error:#}"), REINSTALL)),
    };
    if !hooks.iter().any(|hook| hook.event == "Stop") {
        let why = format!("the plugin in {} has no Stop hook", plugin.display());
        return DoctorCheck::one(PROGRAMS, CheckNote::failure(why, REINSTALL));
    }
    let folder = temporary::folder("ralph-doctor-").and_then(|folder| {
        file::create_dir(&folder.path().join("project"))?;
        Ok(folder)
    });
    let folder = match &folder {
        Ok(folder) => folder.path(),
        Err(error) => return skipped(PROGRAMS, &format!("{error:#}")),
    };
    let mut slowest = Duration::ZERO;
    let mut problems: Vec<CheckNote> = Vec::new();
    for hook in &hooks {
        let (note, took) = call(context, hook, plugin, folder);
        slowest = slowest.max(took);
        // One program may serve several events.
        problems.extend(note.filter(|note| !problems.contains(note)));
    }
    problems.extend(guidance_program(context, plugin));
    let ok = format!("{} hooks answered, the slowest in {} ms", hooks.len(), slowest.as_millis().max(1));
    DoctorCheck::of(PROGRAMS, problems, ok)
}

/// Checks the program that no hook calls, only the files of `/ralph:encourage` and `/ralph:forbid`.
fn guidance_program(context: &CheckContext, plugin: &Path) -> Option<CheckNote> {
    let path = plugin.join("bin").join(format!("{}{EXE_SUFFIX}", pages::PROGRAMS[1]));
    let program = path.display();
    if !plugin.join("commands/forbid.md").is_file() {
        return None;
    }
    if !path.is_file() {
        return Some(CheckNote::failure(format!("{program} is missing"), REINSTALL));
    }
    let answer = context.run(lookup::command(&path).arg("--version"), b"", TIMEOUT);
    let is_ok = matches!(answer.ended, ProgramEnd::Exit(0));
    (!is_ok).then(|| CheckNote::failure(format!("{program}: {}", answer.complaint()), REINSTALL))
}

/// Calls a hook in a temporary project, with an event that belongs to no loop.
fn call(context: &CheckContext, hook: &Hook, plugin: &Path, folder: &Path) -> (Option<CheckNote>, Duration) {
    // hooks.json names programs without Windows' extension.
    let path = if cfg!(windows) { hook.command.with_extension("exe") } else { hook.command.clone() };
    let program = path.display();
    if !path.is_file() {
        let note = CheckNote::failure(format!("{program} is missing"), REINSTALL);
        return (Some(note), Duration::ZERO);
    }
    let project = folder.join("project");
    let event = json!({
        "session_id": "00000000-0000-4000-8000-000000000000", "hook_event_name": hook.event, "cwd": project,
        "transcript_path": folder.join("none.jsonl"), "permission_mode": "default",
        "stop_hook_active": false, "last_assistant_message": "Hello.", "source": "startup", "reason": "other",
        "command_name": "ralph-doctor", "command_args": "", "background_tasks": [], "session_crons": [],
    });
    let mut command = lookup::command(&path);
    command.args(&hook.args).current_dir(&project);
    command.env("CLAUDE_PROJECT_DIR", &project).env("CLAUDE_PLUGIN_ROOT", plugin);
    command.env("RALPH_DATA_DIR", folder.join("data")).env("RALPH_CONFIG_DIR", folder.join("config"));
    command.env_remove("RALPH_RUN_ID").env_remove("CLAUDE_CODE_SESSION_ID");
    let answer = context.run(&mut command, event.to_string().as_bytes(), TIMEOUT);
    let name = format!("{program} at {}", hook.event);
    let output = clean::excerpt(&answer.stdout, 200);
    let is_json = || serde_json::from_str::<Value>(&answer.stdout).is_ok_and(|answer| answer.is_object());
    let note = match &answer.ended {
        ProgramEnd::NotStarted(why) => {
            let why = format!("{program} cannot be started: {why}");
            CheckNote::failure(why, format!("chmod +x \"{program}\""))
        }
        // Without a loop a hook prints nothing, or a problem.
        ProgramEnd::Exit(0) if output.is_empty() && answer.took <= SLOW => return (None, answer.took),
        ProgramEnd::Exit(0) if output.is_empty() => {
            let why = format!("{name} took {:.1} s", answer.took.as_secs_f64());
            CheckNote::warning(why, "check for a slow disk or a virus scanner")
        }
        ProgramEnd::Exit(0) if is_json() => {
            CheckNote::warning(format!("{name} printed {output}"), "fix what it reports")
        }
        ProgramEnd::Exit(0) => {
            CheckNote::failure(format!("{name} did not answer in JSON: {output}"), REINSTALL)
        }
        _ => CheckNote::failure(format!("{name}: {}", answer.complaint()), REINSTALL),
    };
    (Some(note), answer.took)
}

/// Compares Claude Code's limit on blocked turns with the circuit breaker's.
pub fn block_cap(context: &CheckContext) -> DoctorCheck {
    let set = context.settings.variable(BLOCK_CAP).map(|(_, text)| text).or_else(|| world::text(BLOCK_CAP));
    let cap = set.and_then(|text| text.trim().parse().ok()).unwrap_or(DEFAULT_BLOCK_CAP);
    let idle = context.resolved.settings_for(Engine::InSession).circuit.get("idle");
    DoctorCheck::one("block-cap", diagnosis::block_cap(cap, idle))
}

/// Looks for Stop hooks in settings and in other plugins.
pub fn others(context: &CheckContext, plugins: &[InstalledPlugin]) -> DoctorCheck {
    const HINT: &str = "if loops end or hang for no visible reason, disable it";
    let mut notes = Vec::new();
    for finding in scan::other_stop_hooks(context.world, context.project) {
        let why = format!("{}: {}; it also runs at the end of each turn", finding.file, finding.description);
        notes.push(CheckNote::warning(why, HINT));
    }
    for plugin in plugins.iter().filter(|plugin| plugin.enabled && plugin.has_stop_hook()) {
        let why = format!("the plugin {} has a Stop hook; it also runs at the end of each turn", plugin.id);
        notes.push(CheckNote::warning(why, format!("{HINT}: claude plugin disable {}", plugin.id)));
    }
    DoctorCheck::of("stop-hooks", notes, "no other Stop hook")
}
