//! Checks for what earlier runs and crashes left behind.

use super::{CheckContext, CheckNote, DoctorCheck};
use crate::claude::client::plugins;
use crate::claude::plugin::hooks;
use crate::core::message;
use crate::core::text::clean;
use crate::store::file::walk::entries;
use crate::store::runner::run_lock;
use crate::store::state::stop;
use crate::store::user::armed;
use crate::store::world::{file_clock, nanoseconds};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A temporary file exists only for a moment; an older one was left by a crash.
const STALE: Duration = Duration::from_secs(600);

pub fn leftovers(context: &CheckContext, plugin: Option<&Path>) -> DoctorCheck {
    let mut notes = Vec::new();
    notes.extend(dead_run(context));
    notes.extend(pending_stops(context));
    notes.extend(loops(context));
    notes.extend(files(context));
    notes.extend(old_plugins(context, plugin));
    DoctorCheck::of("leftovers", notes, "none")
}

fn remove(path: &Path) -> String {
    format!("rm \"{}\"", path.display())
}

fn dead_run(context: &CheckContext) -> Option<CheckNote> {
    let Some(lock) = run_lock::left_behind(context.world, context.project) else {
        let (path, run_id) = run_lock::stray_marker(context.world, context.project)?;
        let run_id = message::short_id(&run_id);
        let why = format!("{} is of run {run_id}, which is not active here", path.display());
        return Some(CheckNote::warning(why, remove(&path)));
    };
    let run_id = message::short_id(&lock.run_id);
    Some(match lock.living_agent() {
        Some(pid) => CheckNote::warning(
            format!("the runner of run {run_id} died, and its agent (process {pid}) is still running"),
            "`ralph run` ends it and resumes the run",
        ),
        None if !context.loops().iter().any(|(_, run)| run.run_id == lock.run_id) => CheckNote::warning(
            format!("run {run_id} ended, and its agent may still be running"),
            "`ralph stop` ends it",
        ),
        None => CheckNote::warning(
            format!("the runner of run {run_id} died before the run ended"),
            "`ralph run` resumes it, `ralph stop` ends it",
        ),
    })
}

/// Stops that no loop has seen yet.
fn pending_stops(context: &CheckContext) -> Vec<CheckNote> {
    let mut notes = Vec::new();
    if stop::kill_switch(context.project) {
        let path = context.project.kill_switch();
        let why = format!("{} stops the next loop here when its turn ends", path.display());
        notes.push(CheckNote::warning(why, remove(&path)));
    }
    if let Some(error) = stop::odd_kill_switch(context.project) {
        let hint = "replace it with a regular file; as it is, it stops no loop";
        notes.push(CheckNote::warning(format!("{error:#}"), hint));
    }
    let stopped = stop::stopped_all_at(context.world).ok().flatten();
    let is_pending = context.loops().iter().any(|(_, run)| run.timing.stop_all_seen != stopped);
    if let Some(stopped) = stopped.filter(|_| is_pending) {
        let why = format!("`ralph stop --all` of {} is pending for a loop here", stopped.minute());
        notes.push(CheckNote::warning(why, "the loop ends when its turn ends; `ralph stop` ends it now"));
    }
    notes
}

fn loops(context: &CheckContext) -> Vec<CheckNote> {
    let mut notes = Vec::new();
    for (_, run) in context.loops().iter().filter(|(_, run)| run.session.orphaned_at.is_some()) {
        let (id, task) = (message::short_id(&run.run_id), clean::excerpt(&run.task, 40));
        let why = format!("the session of run {id} (\"{task}\") was cleared");
        notes.push(CheckNote::warning(why, "`/ralph:start --resume` resumes it, `ralph stop` ends it"));
    }
    for why in armed::unreadable(context.world) {
        notes.push(CheckNote::warning(why, "make it readable, or remove it to give up its loop"));
    }
    for (record, root) in armed::records(context.world).iter().filter(|(_, root)| !root.exists()) {
        let why = format!("a loop is still active in {}, which no longer exists", root.display());
        notes.push(CheckNote::warning(why, remove(record)));
    }
    notes
}

/// Reports damaged state files that were moved aside, and temporary files of crashed processes.
fn files(context: &CheckContext) -> Vec<CheckNote> {
    let mut notes = Vec::new();
    let data = context.world.data_dir().ok();
    let in_data = data.map(entries).unwrap_or_default().into_iter().filter(|path| path.is_dir());
    let folders =
        [Some(context.project.claude_dir()), Some(context.project.work_dir()), data.map(Path::to_owned)];
    for path in folders.into_iter().flatten().chain(in_data).flat_map(|folder| entries(&folder)) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("ralph-state.json.corrupt-") {
            let why = format!("{} is a damaged state file that was set aside", path.display());
            notes.push(CheckNote::warning(why, format!("save what you need of it, then {}", remove(&path))));
        } else if name.contains(".json.corrupt-")
            && path.parent().is_some_and(|folder| folder.ends_with("ledger"))
        {
            let why = format!("{} is a damaged record of a day's cost that was set aside", path.display());
            notes.push(CheckNote::warning(why, remove(&path)));
        } else if is_temporary(&name) && is_stale(&path) {
            let why = format!("{} is an unfinished temporary file", path.display());
            notes.push(CheckNote::warning(why, remove(&path)));
        }
    }
    notes
}

/// Returns whether `store::file` makes such names: `NAME.tmp-` with eight hexadecimal digits, or `new`.
fn is_temporary(name: &str) -> bool {
    name.rsplit_once(".tmp-").is_some_and(|(base, suffix)| {
        let is_number = suffix.len() == 8 && suffix.bytes().all(|byte| byte.is_ascii_hexdigit());
        !base.is_empty() && (suffix == "new" || is_number)
    })
}

fn is_stale(path: &Path) -> bool {
    let written = path.symlink_metadata().and_then(|meta| meta.modified());
    let age = written.map_or(0, |time| file_clock().saturating_sub(nanoseconds(time)));
    age > i64::try_from(STALE.as_nanos()).unwrap_or(i64::MAX)
}

fn old_plugins(context: &CheckContext, plugin: Option<&Path>) -> Vec<CheckNote> {
    let (Some(config), Some(version)) = (&context.world.claude_config, plugin.and_then(hooks::version))
    else {
        return Vec::new();
    };
    let note = |copy: PathBuf| {
        let why = format!("{} is a copy of the plugin in another version than {version}", copy.display());
        CheckNote::warning(why, "remove it once no open session uses it")
    };
    plugins::old_copies(config, &version).into_iter().map(note).collect()
}
