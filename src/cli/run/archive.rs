//! `ralph archive`: moves a finished run to `ralph-archive/` and resets `ralph/` for the next one.

use crate::cli::loops::alive;
use crate::cli::{Failure, Invocation, Project, World};
use crate::core::record::{Engine, LoopState};
use crate::core::text::clean;
use crate::run::saved;
use crate::store::project::archive::{self, ArchiveOptions, Archived};
use crate::store::project::layout;
use crate::store::runner::run_lock;
use crate::store::runner::summary::{self, SummaryRow};
use crate::store::tasks::source::{self, Selection};
use crate::store::user::armed::Loaded;
use crate::store::user::history::{self, Run};
use crate::view::progress::ProgressLine;
use crate::view::setup::archive::{self as view, ArchiveInput};

pub fn archive(call: &Invocation) -> Result<String, Failure> {
    let Invocation { world, project, .. } = call;
    refuse_while_active(world, project)?;
    let include_logs = call.flag("include-logs");
    let _lock = archive::lock(world, project)?;
    let mut lines: Vec<String> = archive::recover(world, project)?
        .iter()
        .map(|archived| tell("Finished", project, archived))
        .collect();
    let found = source::find(project, &Selection::Default, &world.working_dir);
    let list = found.map(|found| found.list).map_err(|faults| faults.join("; "));
    let named = list.as_ref().ok().and_then(|list| Some(clean::line(&list.as_ref()?.project)));
    let name = named.filter(|name| !name.is_empty()).unwrap_or_else(|| layout::default_name(project));
    if archive::is_fresh(project, &name, include_logs) {
        if lines.is_empty() {
            return Err(Failure::refused("there is nothing to archive in ralph/")
                .hint("run `ralph init` or `ralph run` first"));
        }
        return Ok(lines.join("\n"));
    }
    let label = match call.value("label") {
        Some(label) => layout::slug(label)
            .ok_or_else(|| Failure::usage(format!("--label '{label}' has no letter or digit in it")))?,
        None => layout::slug(&name).unwrap_or("run".into()),
    };
    // Logs that an earlier archive left in place are about that run.
    let about_this = include_logs || archive::has_new_logs(project);
    let rows = if about_this { summary::read(project) } else { Vec::new() };
    let runs = history::runs(world, project)?;
    let facts = ArchiveInput {
        project: &name,
        now: world.now,
        tasks: list.as_ref().map(Option::as_ref).map_err(String::as_str).transpose(),
        iterations: &rows,
        run: run_of(&runs, &rows),
    };
    let request = ArchiveOptions {
        name: &format!("{}-{label}", world.now.date()),
        project_name: &name,
        include_logs,
        summary: &view::summary(&facts),
    };
    let progress = ProgressLine::show(true, || "archiving…".into());
    let archived = archive::archive(world, project, &request)?;
    drop(progress);
    saved::forget(world, project);
    lines.push(tell("Archived", project, &archived));
    Ok(lines.join("\n"))
}

/// Returns the newest run that the summary can belong to: one that ended before the first row is another.
fn run_of<'a>(runs: &'a [Run], rows: &[SummaryRow]) -> Option<&'a Run> {
    let began = rows.first().and_then(|row| row.timestamp);
    let fits = |run: &&Run| began.is_none_or(|began| run.ended_at >= began);
    let newest = |wanted: &dyn Fn(&Run) -> bool| runs.iter().rev().filter(fits).find(|run| wanted(run));
    newest(&|run| run.engine == Engine::Runner).or_else(|| newest(&|_| true))
}

fn refuse_while_active(world: &World, project: &Project) -> Result<(), Failure> {
    if let Some(holder) = run_lock::holder(world, project) {
        let (pid, since) = (holder.pid, holder.started_at.minute());
        return Err(Failure::refused(format!(
            "a run is active in this project: process {pid}, since {since}"
        ))
        .hint("stop it or wait until it ends, then archive again"));
    }
    let Loaded { loops, faults } = alive(world, project);
    if !faults.is_empty() {
        return Err(Failure::internal(faults.join("\n"))
            .hint("repair or remove that record, then archive again; nothing was moved"));
    }
    let running = loops.into_iter().find(|(_, run)| run.state == LoopState::Running);
    let Some((id, _)) = running else { return Ok(()) };
    Err(Failure::refused(format!("a loop is running here, in session {}", clean::excerpt(&id, 40)))
        .hint("end it with `ralph stop`, then archive again"))
}

fn tell(what: &str, project: &Project, archived: &Archived) -> String {
    let dir = archived.dir.strip_prefix(project.real_root()).unwrap_or(&archived.dir);
    let dir = dir.strip_prefix(&project.root).unwrap_or(dir);
    let mut text = format!("{what}: {}/summary.md\n", clean::line(&dir.to_string_lossy()));
    if archived.logs_left {
        text.push_str("The logs stay in ralph/logs/ (--include-logs moves them into the archive).\n");
    }
    if !archived.left.is_empty() {
        let left = clean::excerpt(&archived.left.join(", "), 200);
        text.push_str(&format!("Copied but not removed (a link, or changed during the copy): {left}\n"));
    }
    text
}
