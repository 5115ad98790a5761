//! Hooks: whether they may run, whether their programs answer, and who else has a say at the end of a turn.

use super::{Patient, skipped};
use crate::claude::hooks::{self, Hook};
use crate::claude::installed::Plugin;
use crate::claude::settings::{MODES, Scope, is_truthy};
use crate::core::checkup::{self, Check, Note};
use crate::core::clean;
use crate::core::record::Engine;
use crate::scan;
use crate::store::command::Ended;
use crate::store::scratch::Scratch;
use crate::store::world;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(3);
/// A hook runs at every turn: what takes longer is felt.
const SLOW: Duration = Duration::from_secs(1);
const CAP: &str = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP";
const DEFAULT_CAP: u64 = 8;

pub fn enabled(patient: &Patient) -> Check {
    let mut problems = Vec::new();
    for layer in &patient.settings.layers {
        let Some(fault) = &layer.fault else { continue };
        let why = format!("{fault}; Claude Code leaves the whole file out");
        let mend = "mend it by hand: Ralph never touches it";
        problems.push(match layer.scope {
            // It is the one that says which plugins are enabled.
            Scope::User => Note::failure(why, mend),
            _ => Note::warning(why, mend),
        });
    }
    for (name, path) in patient.settings.against_hooks() {
        let way_out = match name {
            "allowManagedHooksOnly" => {
                "an administrator decides that; `ralph run` works without hooks".to_owned()
            }
            _ => format!("take {name} out of that file"),
        };
        problems.push(Note::failure(
            format!("{name} in {}: no hook of the plugin runs", path.display()),
            way_out,
        ));
    }
    for name in MODES {
        if world::text(name).is_some_and(|value| is_truthy(&value)) {
            let why = format!("{name} is set here: a client started from this shell runs no hooks");
            problems.push(Note::failure(why, format!("unset {name}")));
        }
    }
    Check::of("hooks", problems, "no setting switches them off")
}

pub fn programs(patient: &Patient, plugin: Option<&Path>) -> Check {
    const ID: &str = "hook-programs";
    let Some(plugin) = plugin.filter(|plugin| plugin.is_dir()) else {
        return skipped(ID, "no plugin to look at");
    };
    let found = match hooks::of(plugin) {
        Ok(hooks) => hooks,
        Err(error) => {
            return Check::one(
                ID,
                Note::failure(format!("{error:#}"), "lay the plugin out again: ralph install"),
            );
        }
    };
    if !found.iter().any(|hook| hook.event == "Stop") {
        let why = format!("the plugin in {} has no Stop hook", plugin.display());
        return Check::one(ID, Note::failure(why, "lay the plugin out again: ralph install"));
    }
    let scratch = match Scratch::new("ralph-doctor") {
        Ok(scratch) => scratch,
        Err(error) => return skipped(ID, &format!("no throw-away folder: {error:#}")),
    };
    let mut slowest = Duration::ZERO;
    let mut problems: Vec<Note> = Vec::new();
    for hook in &found {
        let (note, took) = answers(patient, hook, plugin, &scratch);
        slowest = slowest.max(took);
        // A program that is missing is missing for each of its events.
        problems.extend(note.filter(|note| !problems.contains(note)));
    }
    let well = format!("{} hooks answered, the slowest in {} ms", found.len(), slowest.as_millis());
    Check::of(ID, problems, well)
}

/// One hook, given an event that concerns no loop, in a project and folders that are thrown away.
fn answers(patient: &Patient, hook: &Hook, plugin: &Path, scratch: &Scratch) -> (Option<Note>, Duration) {
    // The client leaves the ending of a program to Windows.
    let path = if cfg!(windows) { hook.command.with_extension("exe") } else { hook.command.clone() };
    let program = path.display();
    if !path.is_file() {
        let way_out = "a plugin without programs does nothing: `ralph install` lays out one that has them";
        return (Some(Note::failure(format!("{program} is missing"), way_out)), Duration::ZERO);
    }
    let project = scratch.path().join("project");
    if let Err(error) =
        ["project", "data", "config"].iter().try_for_each(|name| scratch.folder(name).map(drop))
    {
        return (Some(Note::skipped(format!("{error:#}"))), Duration::ZERO);
    }
    let event = json!({
        "session_id": "00000000-0000-4000-8000-000000000000", "hook_event_name": hook.event, "cwd": project,
        "transcript_path": scratch.path().join("none.jsonl"), "permission_mode": "default",
        "stop_hook_active": false, "last_assistant_message": "Hello.", "source": "startup", "reason": "other",
        "command_name": "ralph-doctor", "command_args": "", "background_tasks": [], "session_crons": [],
    });
    let mut command = Command::new(&path);
    command.args(&hook.args).current_dir(&project);
    command.env("CLAUDE_PROJECT_DIR", &project).env("CLAUDE_PLUGIN_ROOT", plugin);
    command
        .env("RALPH_DATA_DIR", scratch.path().join("data"))
        .env("RALPH_CONFIG_DIR", scratch.path().join("config"));
    command.env_remove("RALPH_RUN_ID").env_remove("CLAUDE_CODE_SESSION_ID");
    let said = patient.ask(&mut command, event.to_string().as_bytes(), LIMIT);
    let what = format!("{program} at {}", hook.event);
    let note = match &said.ended {
        Ended::NotStarted(why) => Some(Note::failure(
            format!("{program} cannot be started: {why}"),
            format!("chmod +x \"{program}\""),
        )),
        Ended::Exit(0) => said_well(&what, &said.stdout),
        _ => Some(Note::failure(
            format!("{what}: {}", said.complaint()),
            "lay the plugin out again: ralph install",
        )),
    };
    let slow = || {
        Note::warning(
            format!("{what} took {:.1} s", said.took.as_secs_f64()),
            "a slow disk, or a scanner of files?",
        )
    };
    (note.or_else(|| (said.took > SLOW).then(slow)), said.took)
}

/// A hook that has no loop says nothing; what it says otherwise is a complaint.
fn said_well(what: &str, stdout: &str) -> Option<Note> {
    if stdout.trim().is_empty() {
        return None;
    }
    let told = clean::excerpt(stdout, 200);
    Some(match serde_json::from_str::<Value>(stdout) {
        Ok(Value::Object(_)) => Note::warning(format!("{what} says {told}"), "see what it complains about"),
        _ => Note::failure(
            format!("{what} answers no JSON: {told}"),
            "lay the plugin out again: ralph install",
        ),
    })
}

/// The client's own limit on blocked turns, against our breaker's.
pub fn block_cap(patient: &Patient) -> Check {
    let number = |text: String| text.trim().parse().ok();
    let set = patient.settings.variable(CAP).map(|(_, text)| text).or_else(|| world::text(CAP));
    let cap = set.and_then(number).unwrap_or(DEFAULT_CAP);
    let idle = patient.resolved.settings_for(Engine::InSession).circuit.idle;
    Check::one("block-cap", checkup::block_cap(cap, idle))
}

/// Other Stop hooks: the scanner's rule for settings, and the plugins the client has.
pub fn others(patient: &Patient, plugins: &[Plugin]) -> Check {
    let advice = "where loops are held or ended for no visible reason, switch it off";
    let in_files = scan::other_stop_hooks(patient.world, patient.project);
    let mut notes: Vec<Note> = in_files
        .iter()
        .map(|finding| {
            Note::warning(
                format!("{}: {}; it runs beside Ralph's", finding.file, finding.description),
                advice,
            )
        })
        .collect();
    for plugin in plugins.iter().filter(|plugin| plugin.enabled && plugin.has_stop_hook()) {
        let way_out = format!("{advice}: claude plugin disable {}", plugin.id);
        notes.push(Note::warning(
            format!("the plugin {} has a Stop hook; it runs beside Ralph's", plugin.id),
            way_out,
        ));
    }
    Check::of("stop-hooks", notes, "no other Stop hook")
}
