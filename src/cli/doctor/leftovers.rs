//! What earlier runs and crashes left lying about.

use super::Patient;
use crate::claude::{hooks, installed};
use crate::cli::start::genuine_loops;
use crate::core::checkup::{Check, Note};
use crate::core::clean;
use crate::run::lock;
use crate::store::state::{self, Document};
use crate::store::world::{file_clock, nanoseconds};
use crate::store::{armed, run_lock, stop};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A temporary file lives for a moment: one as old as this has lost its writer.
const STALE: Duration = Duration::from_secs(600);

pub fn leftovers(patient: &Patient, plugin: Option<&Path>) -> Check {
    let mut notes = Vec::new();
    notes.extend(dead_run(patient));
    notes.extend(switches(patient));
    notes.extend(loops(patient));
    notes.extend(files(patient));
    notes.extend(old_plugins(patient, plugin));
    Check::of("leftovers", notes, "none")
}

fn short(run_id: &str) -> String {
    clean::line(run_id).chars().take(8).collect()
}

fn dead_run(patient: &Patient) -> Option<Note> {
    let (run, agent) = lock::left_behind(patient.project)?;
    let path = run_lock::path(patient.project);
    let goes_on = genuine(patient).iter().any(|(_, lap)| lap.is_alive() && lap.run_id == run);
    let run = short(&run);
    Some(match agent {
        Some(pid) => Note::warning(
            format!("run {run} died, and its agent (process {pid}) is still at work"),
            "`ralph run` ends it and goes on with the run",
        ),
        None if goes_on => Note::warning(
            format!("the runner of run {run} is gone, and its run is not over"),
            "`ralph run` goes on with it; `ralph stop` ends it",
        ),
        None => Note::warning(
            format!("{} is of run {run}, whose runner is gone", path.display()),
            format!("rm \"{}\"", path.display()),
        ),
    })
}

/// Stops that were given and have not been seen yet.
fn switches(patient: &Patient) -> Vec<Note> {
    let mut notes = Vec::new();
    if stop::kill_switch(patient.project) {
        let path = patient.project.kill_switch();
        let why = format!("{} stops the next loop here at its next turn", path.display());
        notes.push(Note::warning(why, format!("rm \"{}\"", path.display())));
    }
    let given = stop::stopped_all_at(patient.world);
    let waiting =
        genuine(patient).into_iter().filter(|(_, lap)| lap.is_alive() && lap.stop_all_seen != given);
    if let Some(given) = given.filter(|_| waiting.count() > 0) {
        let why = format!("`ralph stop --all` of {} waits for a loop here", given.minute());
        notes.push(Note::warning(why, "the loop ends at its next turn, or now with `ralph stop`"));
    }
    notes
}

/// The loops here that this user armed.
pub fn genuine(patient: &Patient) -> Vec<(String, crate::core::record::Loop)> {
    let document: Document = state::peek(patient.project).ok().flatten().unwrap_or_default();
    genuine_loops(patient.world, patient.project, &document)
}

fn loops(patient: &Patient) -> Vec<Note> {
    let mut notes = Vec::new();
    for (_, lap) in genuine(patient).iter().filter(|(_, lap)| lap.is_alive() && lap.orphaned_at.is_some()) {
        let why = format!(
            "run {} (\"{}\") has lost its session",
            short(&lap.run_id),
            clean::excerpt(&lap.task, 40)
        );
        notes.push(Note::warning(why, "`/ralph:start --resume` adopts it, `ralph stop` ends it"));
    }
    for (record, root) in armed::records(patient.world).iter().filter(|(_, root)| !root.exists()) {
        let why = format!("a loop is armed in {}, which is gone", root.display());
        notes.push(Note::warning(why, format!("rm \"{}\"", record.display())));
    }
    notes
}

/// Damaged state that was kept, and temporary files nobody will rename any more.
fn files(patient: &Patient) -> Vec<Note> {
    let mut notes = Vec::new();
    let claude = patient.project.claude_dir();
    let data = patient.world.data_dir().ok();
    let below = data.map(entries).unwrap_or_default().into_iter().filter(|path| path.is_dir());
    let folders = [Some(claude), Some(patient.project.work_dir()), data.map(Path::to_owned)];
    for path in folders.into_iter().flatten().chain(below).flat_map(|folder| entries(&folder)) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let remove = format!("rm \"{}\"", path.display());
        if name.starts_with("ralph-state.json.corrupt-") {
            let why = format!("{} is damaged state that was set aside", path.display());
            notes.push(Note::warning(why, format!("look whether you need anything of it, then {remove}")));
        } else if is_temporary(&name) && is_stale(&path) {
            notes.push(Note::warning(format!("{} was left half written", path.display()), remove));
        }
    }
    notes
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// As `store::file` names them: `NAME.tmp-` and eight hexadecimal digits, or `new`.
fn is_temporary(name: &str) -> bool {
    name.rsplit_once(".tmp-").is_some_and(|(of, mark)| {
        let ours = mark == "new" || (mark.len() == 8 && mark.bytes().all(|byte| byte.is_ascii_hexdigit()));
        ours && !of.is_empty()
    })
}

fn is_stale(path: &Path) -> bool {
    let written = path.symlink_metadata().and_then(|meta| meta.modified());
    let age = written.map_or(0, |time| file_clock().saturating_sub(nanoseconds(time)));
    age > i64::try_from(STALE.as_nanos()).unwrap_or(i64::MAX)
}

fn old_plugins(patient: &Patient, plugin: Option<&Path>) -> Vec<Note> {
    let (Some(config), Some(version)) = (&patient.world.claude_config, plugin.and_then(hooks::version))
    else {
        return Vec::new();
    };
    let copies = installed::old_copies(config, &version).into_iter();
    copies
        .map(|copy| {
            let why = format!("{} is the plugin in another version than {version}", copy.display());
            Note::warning(why, "sessions that began with it still use it; afterwards it can be removed")
        })
        .collect()
}
