//! From what was typed to what will happen: a new run, or one that continues.

use super::run_args::RunArgs;
use super::{refusals, saved};
use crate::cli::failure::Failure;
use crate::cli::loops::start;
use crate::core::decide::turn::Turn;
use crate::core::outcome::Outcome;
use crate::core::record::{ArmedLoop, Engine};
use crate::core::request::StartRequest;
use crate::core::tasks::{prompt as tasks_prompt, summary as tasks_summary};
use crate::run::{RunPlan, SESSION};
use crate::scan::Scan;
use crate::scan::briefing::{self, BriefingContext};
use crate::store::project::{Project, git};
use crate::store::runner::{logs, run_lock, snapshot, summary};
use crate::store::state::question::Question;
use crate::store::state::{self, Locked, ending, expiry, question, stop as stops};
use crate::store::tasks::source::{self, Found, Selection};
use crate::store::user::{armed, circuit, history};
use crate::store::world::World;
use crate::store::{config, file, tasks};

const MAX_PROMPT_BYTES: u64 = 64 << 20;
/// How much of a long prompt is in the state.
const MAX_TASK_CHARS: usize = 2000;

/// A plan, and what to report of it.
pub struct Planned {
    pub plan: RunPlan,
    pub resumed: bool,
    /// What was understood of the task list.
    pub tasks: Option<String>,
    pub notes: Vec<String>,
    question: Option<Question>,
    tripped: Option<circuit::Record>,
    /// The run that this one replaces.
    replaced: Option<ArmedLoop>,
}

/// Takes the agent and target of the run that will be continued, unless others were given.
pub fn continue_agent(world: &World, project: &Project, args: &mut RunArgs) {
    if !args.names_agent
        && continues(world, project, args)
        && let Some((agent, target)) = saved::agent(world, project)
    {
        (args.agent, args.target) = (agent, target);
    }
}

/// Returns whether this is an earlier run: one whose runner is gone, or the last one once more.
fn continues(world: &World, project: &Project, args: &RunArgs) -> bool {
    let given = given_prompt(world, project, args).ok().flatten();
    let document = state::peek(project).ok().flatten();
    let present = document.and_then(|document| armed::load_armed(world, project, SESSION, &document));
    match (present.filter(|run| run.is_alive()), given) {
        (Some(run), given) => given.is_none_or(|task| shorten(&task) == run.task),
        (None, given) => given.is_none() && unfinished(world, project).is_some(),
    }
}

/// Plans the run and arms it, or refuses.
pub fn arm(world: &World, project: &Project, args: RunArgs) -> Result<Planned, Failure> {
    let question = refusals::open_question(project, &args)?;
    let scan = start::scan_before_start(world, project, &args.start);
    let mut state = Locked::open(project, world.now)?;
    refusals::active_run(project)?;
    let tripped = refusals::tripped(world, project, &args)?;
    let mut planned = plan(world, project, args, scan, &mut state)?;
    (planned.question, planned.tripped) = (question, tripped);
    planned.arm(world, project, state)
}

/// Plans the run. Nothing is written.
fn plan(
    world: &World,
    project: &Project,
    args: RunArgs,
    scan: Option<Scan>,
    state: &mut Locked,
) -> Result<Planned, Failure> {
    let given = given_prompt(world, project, &args)?;
    let present = armed::load_armed(world, project, SESSION, &state.document).filter(|run| run.is_alive());
    let resumed =
        present.as_ref().is_some_and(|run| given.as_ref().is_none_or(|task| shorten(task) == run.task));
    let found = find_tasks(world, project, &args, present.as_ref().filter(|_| resumed))?;
    let mut replaced = None;
    let (mut run, task) = match present {
        Some(run) if resumed => {
            let saved = || saved::prompt(world, project);
            let task = given.or_else(saved).unwrap_or_else(|| run.task.clone());
            (run, task)
        }
        present => {
            let task = given.or_else(|| own_prompt(&found)).or_else(|| unfinished(world, project));
            let task = task.ok_or_else(refusals::nothing_to_run)?;
            replaced = present;
            let request = StartRequest { task: shorten(&task), ..args.start.clone() };
            let mut run = start::begin(world, project, &request);
            run.engine = Engine::Runner;
            (run, task)
        }
    };
    run.tasks = found.source;
    run.given.flags.extend(args.start.flags.clone());
    let commands = config::take_commands(&mut run.given);
    run.commands.extend(commands);
    if !args.start.preset.is_empty() {
        run.given.preset.clone_from(&args.start.preset);
    }
    run.timing.stop_all_seen = stops::stopped_all_at(world);
    run.timing.armed_at = world.now;
    run.last_hook_timestamp = world.now.seconds();
    let resolved = config::load_for(world, project, &run);
    config::freeze_checks(&mut run, &resolved);
    run.given.files = resolved.files.clone();
    if resumed {
        // The runner may have died after it wrote a row and before it counted it.
        let last = summary::read(project).last().map_or(0, |row| row.iteration);
        run.iteration = run.iteration.max(last);
        refusals::at_limit(&run, &resolved)?;
    }
    let tasks = found.list.as_ref().map(|list| tasks_summary(list, args.skip_review));
    let mut notes: Vec<String> = state.moved_aside.iter().cloned().chain(tasks.clone()).collect();
    notes.extend(found.notes);
    let tree = scan.as_ref().and_then(|scan| scan.tree);
    let context =
        BriefingContext { world, project, session: SESSION, run: &run, resolved: &resolved, told: false };
    let brief = briefing::prepare(&context, &mut state.document, scan)?;
    refusals::critical(&brief.critical, &args)?;
    notes.extend(brief.notes);
    notes.extend(brief.warnings);
    notes.extend(resolved.warnings.iter().map(|warning| format!("settings: {warning}")));
    run.circuit.baseline.move_to(&Turn {
        head: git::head(&project.root),
        tasks: tasks::read_reviewed(project, &run.tasks, args.skip_review),
        tree,
        ..Turn::default()
    });
    let RunArgs { agent, target, context, on_limit, skip_review, .. } = args;
    let plan = RunPlan { run, task, agent, target, context, on_limit, skip_review };
    Ok(Planned { plan, resumed, tasks, notes, question: None, tripped: None, replaced })
}

impl Planned {
    /// Arms the run and takes the project.
    fn arm(mut self, world: &World, project: &Project, mut state: Locked) -> Result<Planned, Failure> {
        let RunPlan { run, task, agent, target, .. } = &mut self.plan;
        // Before anything says that the run is there: a resumed run must not take another's rows for its own.
        let logs = logs::dir(project);
        let make_room = |dir: &std::path::PathBuf| logs::make_room(dir, world.now);
        logs.and_then(|dir| if self.resumed { Ok(()) } else { make_room(&dir) })
            .map_err(refusals::unwritable_logs)?;
        stops::clear_kill_switch(project);
        run.pending.answers.extend(self.question.as_ref().map(Question::whole));
        if let Some(record) = self.tripped.take() {
            record.reset(world, project)?;
            run.circuit.reset();
        }
        let expiration_ms = config::load_for(world, project, run).settings().session_expiration_ms;
        let expired = expiry::close(world, project, SESSION, &mut state.document, expiration_ms)?;
        state.document.set_loop(SESSION, run)?;
        armed::arm(world, project, SESSION, run)?;
        run_lock::take(project, &run.run_id, target.container(), world.now)?;
        if let Err(error) = state.save() {
            run_lock::release(project);
            armed::disarm(world, project, SESSION);
            return Err(error.into());
        }
        drop(state);
        ending::announce_all(world, project, &expired);
        circuit::save(world, project, SESSION, &run.run_id, &run.circuit)?;
        saved::save(world, project, task, agent, target)?;
        if let Some(mut replaced) = self.replaced.take() {
            replaced.end(Outcome::Interrupted, "its runner died, and another task was started", world.now);
            ending::record(world, project, SESSION, &replaced);
            snapshot::forget(world, project);
        }
        if let Err(error) = git::exclude_ours(project) {
            self.notes.push(format!("git still sees Ralph's files: {error:#}"));
        }
        if let Some(question) = &self.question
            && let Err(error) = question::file_away(question, world.now)
        {
            self.notes.push(format!("could not file away {}: {error:#}", question.path.display()));
        }
        Ok(self)
    }
}

/// Returns the tasks of this run: those that were named, those it had, or those that are found.
fn find_tasks(
    world: &World,
    project: &Project,
    args: &RunArgs,
    resumed: Option<&ArmedLoop>,
) -> Result<Found, Failure> {
    let had = resumed.map(|run| &run.tasks);
    let had = had.filter(|had| args.tasks == Selection::Default && !had.is_default());
    let found = match had {
        Some(had) => source::reload(project, had),
        None => source::find(project, &args.tasks, &world.working_dir),
    };
    found.map_err(|faults| refusals::unusable_tasks(&faults))
}

/// Returns the prompt of a list that explains itself; the one with reviews has `ralph/prompt.md`.
fn own_prompt(found: &Found) -> Option<String> {
    let list = found.list.as_ref().filter(|list| !list.source.form.has_reviews())?;
    (!list.stories.is_empty()).then(|| tasks_prompt(&list.source))
}

/// Returns the prompt of the last run here if that did not complete.
fn unfinished(world: &World, project: &Project) -> Option<String> {
    let last = history::runs(world, project).ok()?.pop()?;
    let ended = last.engine == Engine::Runner && last.outcome != Outcome::Complete;
    ended.then(|| saved::prompt(world, project)).flatten()
}

fn shorten(task: &str) -> String {
    task.trim().chars().take(MAX_TASK_CHARS).collect()
}

/// Returns the prompt that was given: as words, as a file, or in `ralph/prompt.md`.
fn given_prompt(world: &World, project: &Project, args: &RunArgs) -> Result<Option<String>, Failure> {
    if !args.start.task.trim().is_empty() {
        return Ok(Some(args.start.task.clone()));
    }
    let own = || project.work_dir().join("prompt.md");
    let path = args.file.as_ref().map_or_else(own, |path| world.working_dir.join(path));
    let shown = path.display();
    match file::read_bounded(&path, MAX_PROMPT_BYTES)?.map(String::from_utf8) {
        None if args.file.is_some() => Err(Failure::usage(format!("{shown} is not there"))),
        None => Ok(None),
        Some(Ok(text)) if text.trim().is_empty() => Err(Failure::usage(format!("{shown} is empty"))),
        Some(Ok(text)) => Ok(Some(text)),
        Some(Err(_)) => Err(Failure::usage(format!("{shown} is not text (UTF-8)"))),
    }
}
