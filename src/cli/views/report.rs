//! `ralph report`: a page about a run, or about all runs.

use super::report_facts as facts;
use crate::cli::{Failure, Invocation, Project, World};
use crate::core::event::timeline::Timeline;
use crate::core::text::clean;
use crate::store::events::{self, RunFile};
use crate::store::file::{self, Privacy};
use crate::store::process::opener;
use crate::store::user::history::{self, Run};
use crate::view::progress::ProgressLine;
use crate::view::report::{Report, all, html, markdown};
use std::path::{Path, PathBuf};

const FILE: &str = "report.html";

/// The run that a report is about.
pub(super) struct ReportedRun {
    pub run_id: String,
    pub project: Project,
    pub timeline: Timeline,
    pub has_events: bool,
}

pub fn command(call: &Invocation) -> Result<String, Failure> {
    let Invocation { world, project, .. } = call;
    let is_markdown = call.flag("markdown");
    let _progress = ProgressLine::show(true, || "making the report…".into());
    let (text, default) = if call.flag("all") {
        let runs = facts::all(world)?;
        let text = if is_markdown { all::markdown(&runs, world.now) } else { all::page(&runs, world.now) };
        (text, world.data_dir()?.join(FILE))
    } else {
        let chosen = choose(world, project, call.value("run"))?;
        let path = events::folder(world, &chosen.run_id)?.join(FILE);
        let report = Report::of(facts::gather(world, chosen)?);
        (if is_markdown { markdown::page(&report) } else { html::page(&report) }, path)
    };
    match call.parsed::<PathBuf>("out") {
        None if is_markdown => return Ok(text),
        None => file::replace_private(&default, text.as_bytes())?,
        Some(out) => write_to(&world.working_dir.join(out), &text)?,
    }
    let path = call.parsed::<PathBuf>("out").map_or(default, |out| world.working_dir.join(out));
    if call.flag("open") {
        show(&path)?;
    }
    Ok(format!("{}\n", clean::visible(&path.to_string_lossy())))
}

/// Writes the report of a run into the run's folder.
pub fn write(world: &World, project: &Project, run_id: &str) -> Result<PathBuf, Failure> {
    let chosen = choose(world, project, Some(run_id))?;
    let path = events::folder(world, &chosen.run_id)?.join(FILE);
    let report = Report::of(facts::gather(world, chosen)?);
    file::replace_private(&path, html::page(&report).as_bytes())?;
    Ok(path)
}

/// Writes the report of a run into the run's folder and opens it.
pub fn open(world: &World, project: &Project, run_id: &str) -> Result<PathBuf, Failure> {
    let path = write(world, project, run_id)?;
    show(&path)?;
    Ok(path)
}

/// Writes to the file that the user named. What is no regular file, such as `/dev/stdout`, is not replaced.
fn write_to(path: &Path, text: &str) -> Result<(), Failure> {
    let shown = clean::visible(&path.to_string_lossy());
    match path.metadata() {
        Ok(meta) if meta.is_dir() => {
            Err(Failure::usage(format!("--out is a folder: {shown}")).hint("name a file in it"))
        }
        Ok(meta) if !meta.is_file() => Err(Failure::usage(format!("--out is not a regular file: {shown}"))
            .hint("`--markdown` without `--out` prints to stdout")),
        _ => Ok(file::replace(path, text.as_bytes(), Privacy::Shared)?),
    }
}

fn show(path: &Path) -> Result<(), Failure> {
    opener::open(path).map_err(|why| {
        Failure::unavailable(format!("could not open the report: {why}"))
            .hint(format!("open it yourself: {}", clean::visible(&path.to_string_lossy())))
    })
}

/// Finds the run: by its id or the beginning of it, else the newest of this project.
fn choose(world: &World, project: &Project, wanted: Option<&str>) -> Result<ReportedRun, Failure> {
    let Some(wanted) = wanted else { return newest(world, project) };
    let mut found: Vec<(String, Project)> =
        events::find(world, wanted)?.iter().map(|run| (run.run_id.clone(), run.project())).collect();
    // Exactly named, no other that only begins like it is meant.
    let is_known = |found: &[(String, Project)], id: &str| found.iter().any(|(known, _)| known == id);
    if !is_known(&found, wanted) {
        for project in std::iter::once(project.clone()).chain(history::projects(world)) {
            for run in history::runs(world, &project)? {
                if run.run_id.starts_with(wanted) && !is_known(&found, &run.run_id) {
                    found.push((run.run_id, project.clone()));
                }
            }
        }
    }
    if let Some(at) = found.iter().position(|(id, _)| id == wanted) {
        found = vec![found.swap_remove(at)];
    }
    let shown = clean::excerpt(wanted, 60);
    match found.len() {
        0 => Err(Failure::usage(format!("no such run: {shown}"))
            .hint("`ralph history` lists the runs of this project")),
        1 => load(world, found.swap_remove(0)),
        count => Err(Failure::usage(format!("{count} runs begin with {shown}")).hint("give more of the id")),
    }
}

fn newest(world: &World, project: &Project) -> Result<ReportedRun, Failure> {
    let with_events = events::of_project(world, project)?.into_iter().next();
    let ended = history::runs(world, project)?.pop();
    let newer = |run: &RunFile, ended: &Run| run.run_id == ended.run_id || run.started_at >= ended.started_at;
    let run_id = match (with_events, ended) {
        (Some(run), Some(ended)) if !newer(&run, &ended) => ended.run_id,
        (Some(run), _) => run.run_id,
        (None, Some(ended)) => ended.run_id,
        (None, None) => {
            let place = clean::visible(&project.root.to_string_lossy());
            return Err(Failure::refused(format!("no run of this project yet: {place}"))
                .hint("name a run of another project by its id, or use --all"));
        }
    };
    load(world, (run_id, project.clone()))
}

fn load(world: &World, (run_id, project): (String, Project)) -> Result<ReportedRun, Failure> {
    if let Some(timeline) = events::load(world, &run_id)? {
        return Ok(ReportedRun { run_id, project, timeline, has_events: true });
    }
    let run = history::runs(world, &project)?.into_iter().rfind(|run| run.run_id == run_id);
    let run = run.ok_or_else(|| Failure::internal(format!("the records of run {run_id} are gone")))?;
    let timeline = facts::of_history(&run);
    Ok(ReportedRun { run_id, project, timeline, has_events: false })
}
