//! `ralph archive`: moves a finished run to `ralph-archive/` and resets `ralph/` for the next one.

use crate::cli::failure::Failure;
use crate::core::record::{Engine, LoopState};
use crate::core::text::clean;
use crate::store::project::Project;
use crate::store::project::archive::{self, Archived, Request};
use crate::store::project::layout;
use crate::store::runner::run_lock;
use crate::store::runner::summary::{self, Row};
use crate::store::state;
use crate::store::tasks::source::{self, Selection};
use crate::store::user::history::Run;
use crate::store::user::{armed, history};
use crate::store::world::World;
use crate::view::archive::{self as view, Facts};

pub fn archive(
    world: &World,
    project: &Project,
    label: Option<&str>,
    include_logs: bool,
) -> Result<String, Failure> {
    refuse_while_active(world, project)?;
    let _lock = archive::lock(world, project)?;
    let mut told: Vec<String> =
        archive::recover(project)?.iter().map(|archived| tell("Finished", project, archived)).collect();
    let list = source::find(project, &Selection::Default, &world.working_dir).map(|found| found.list);
    let named = list.as_ref().ok().and_then(|list| Some(clean::line(&list.as_ref()?.project)));
    let name = named.filter(|name| !name.is_empty()).unwrap_or_else(|| layout::default_name(project));
    if archive::is_fresh(project, &name, include_logs) {
        if told.is_empty() {
            return Err(Failure::refused("there is nothing to archive in ralph/")
                .hint("`ralph init` creates it, `ralph run` works in it."));
        }
        return Ok(told.join("\n"));
    }
    let label = match label {
        Some(label) => layout::slug(label)
            .ok_or_else(|| Failure::usage(format!("--label '{label}' has no letter or digit in it")))?,
        None => layout::slug(&name).unwrap_or("run".into()),
    };
    // Logs that an earlier archive left in place are about that run.
    let about_this = include_logs || archive::has_new_logs(project);
    let rows = if about_this { summary::read(project) } else { Vec::new() };
    let runs = history::runs(world, project)?;
    let faults = list.as_ref().err().map(|faults| faults.join("; "));
    let facts = Facts {
        project: &name,
        now: world.now,
        tasks: match (&list, &faults) {
            (Ok(list), _) => list.as_ref().map(Ok),
            (_, faults) => faults.as_deref().map(Err),
        },
        iterations: &rows,
        run: run_of(&runs, &rows),
    };
    let archived = archive::archive(
        project,
        &Request {
            name: &format!("{}-{label}", world.now.date()),
            project_name: &name,
            include_logs,
            summary: &view::summary(&facts),
        },
    )?;
    told.push(tell("Archived", project, &archived));
    Ok(told.join("\n"))
}

/// Returns the newest run that the summary can belong to: one that ended before the first row is another.
fn run_of<'a>(runs: &'a [Run], rows: &[Row]) -> Option<&'a Run> {
    let began = rows.first().and_then(|row| row.timestamp);
    let fits = |run: &&Run| began.is_none_or(|began| run.ended_at >= began);
    let newest = |wanted: &dyn Fn(&Run) -> bool| runs.iter().rev().filter(fits).find(|run| wanted(run));
    newest(&|run| run.engine == Engine::Runner).or_else(|| newest(&|_| true))
}

fn refuse_while_active(world: &World, project: &Project) -> Result<(), Failure> {
    if let Some(holder) = run_lock::holder(project) {
        return Err(Failure::refused(format!(
            "a run is active here: process {}, since {}",
            holder.pid,
            holder.started_at.minute()
        ))
        .hint("Stop it or wait until it ends, then archive."));
    }
    let Ok(Some(document)) = state::peek(project) else { return Ok(()) };
    let running = document.loops().into_iter().find(|(id, run)| {
        run.state == LoopState::Running && armed::is_armed(world, project, id, &run.run_id)
    });
    match running {
        Some((id, _)) => {
            Err(Failure::refused(format!("a loop is running here, in session {}", clean::excerpt(&id, 40)))
                .hint("`ralph stop` ends it; then archive."))
        }
        None => Ok(()),
    }
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
        text.push_str(&format!("Copied but left in place (a link, or changed meanwhile): {left}\n"));
    }
    text
}
