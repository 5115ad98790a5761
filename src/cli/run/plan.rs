//! From what was typed to what will happen: a new run, or one that continues.

use super::refusals;
use super::run_args::RunArgs;
use crate::cli::loops::{answer, start};
use crate::cli::{Failure, World};
use crate::core::decide::turn::Turn;
use crate::core::event::EventKind;
use crate::core::outcome::Outcome;
use crate::core::record::{ArmedLoop, Engine, StoredLoop};
use crate::core::settings::ALLOWED_TOOLS;
use crate::core::tasks::{counts, prompt as tasks_prompt, summary as tasks_summary};
use crate::run::agent::Agent;
use crate::run::saved::{self, RunOptions, SavedRun};
use crate::run::{Context, RunPlan, SESSION};
use crate::scan::Scan;
use crate::scan::briefing::{self, BriefingContext};
use crate::store::file::Backup;
use crate::store::project::{Project, git};
use crate::store::runner::run_lock::{HeldProject, RunLock};
use crate::store::runner::{logs, snapshot, summary};
use crate::store::state::question::{self, Question};
use crate::store::state::{Locked, ending, expiry, stop as stops};
use crate::store::tasks::source::{self, FoundTasks, Selection};
use crate::store::user::{armed, circuit, given_guidance, history};
use crate::store::{config, file, tasks, variables};
use std::path::{Path, PathBuf};

const MAX_PROMPT_BYTES: u64 = 64 << 20;
/// How much of a long prompt is in the state.
const MAX_TASK_CHARS: usize = 2000;

/// A plan, and what to report of it.
pub struct Planned {
    pub plan: RunPlan,
    pub continued: bool,
    /// What was understood of the task list.
    pub tasks: Option<String>,
    /// `3 of 7 stories`.
    pub stories: Option<String>,
    /// Entries of guidance that the agent will read.
    pub guidance: usize,
    pub notes: Vec<String>,
    /// What changed in guidance and findings.
    pub changes: Vec<EventKind>,
    question: Option<Question>,
    tripped: Option<circuit::BreakerRecord>,
    /// The run that this one replaces.
    replaced: Option<ArmedLoop>,
}

/// A prompt, and the file it was read from.
struct Prompt {
    text: String,
    file: Option<PathBuf>,
}

/// Returns the run that this call continues: the last one that did not complete, unless another task was given. The
/// task of a run whose runner died may be given again.
pub fn continued(world: &World, project: &Project, args: &RunArgs) -> Result<Option<SavedRun>, Failure> {
    let unfinished = if args.new { Ok(None) } else { saved::unfinished(world, project) };
    let Some(saved) = unfinished.map_err(refusals::unreadable_run)? else { return Ok(None) };
    let same_task = match given_prompt(world, project, args)? {
        Some(prompt) => saved.run.is_alive() && shorten(&prompt.text) == saved.run.task,
        None => true,
    };
    let same_tasks = match &args.tasks {
        Selection::File(_) => find_tasks(world, project, args, None)?.source == saved.run.tasks,
        _ => true,
    };
    Ok(Some(saved).filter(|_| same_task && same_tasks))
}

/// Returns whether what was typed asks for this run: it names no other task.
pub fn is_of(world: &World, project: &Project, args: &RunArgs, run: &StoredLoop) -> Result<bool, Failure> {
    let given = given_prompt(world, project, args)?;
    Ok(!args.new && given.is_none_or(|prompt| shorten(&prompt.text) == run.task))
}

/// Plans the run and arms it, or refuses.
pub fn arm(
    world: &World,
    project: &Project,
    args: RunArgs,
    options: RunOptions,
    continued: Option<SavedRun>,
    held: &mut HeldProject,
) -> Result<Planned, Failure> {
    let question = refusals::open_question(world, project, &args)?;
    let scan = start::scan_before_start(world, project, project, &args.start);
    let mut state = Locked::open(project, world.now)?;
    let tripped = refusals::tripped(world, project, &args)?;
    let mut planned = plan(world, project, (args, options), continued, scan, &mut state)?;
    (planned.question, planned.tripped) = (question, tripped);
    planned.arm(world, project, state, held)
}

/// Plans the run. Nothing is written.
fn plan(
    world: &World,
    project: &Project,
    (args, mut options): (RunArgs, RunOptions),
    continued: Option<SavedRun>,
    scan: Option<Scan>,
    state: &mut Locked,
) -> Result<Planned, Failure> {
    let found = find_tasks(world, project, &args, continued.as_ref().map(|saved| &saved.run))?;
    let present = armed::load_armed(world, project, SESSION, &state.document)?.filter(|run| run.is_alive());
    let is_continued = continued.is_some();
    let (mut replaced, mut conversation, mut notes) = (None, None, Vec::new());
    let (mut run, prompt) = match continued {
        Some(SavedRun { run, commands, conversation: last, options: before, prompt: saved }) => {
            let mut run = armed::continued(world, project, SESSION, run, commands)?;
            let same_agent = (&before.agent, &before.target) == (&options.agent, &options.target);
            conversation = last.filter(|_| same_agent && options.context == Context::Continue);
            let died = present.as_ref().is_some_and(|present| present.run_id == run.run_id);
            if !died {
                run.resume(world.now);
                replaced = present;
            }
            let prompt = continued_prompt(world, project, &args, &options, saved, &mut notes)?;
            let prompt = prompt.unwrap_or_else(|| Prompt { text: run.task.clone(), file: None });
            (run, prompt)
        }
        None => {
            let prompt = new_prompt(world, project, &args, &found)?.ok_or_else(refusals::nothing_to_run)?;
            replaced = present;
            let mut run = start::begin(world, project, &args.start)?;
            run.engine = Engine::Runner;
            (run, prompt)
        }
    };
    run.task = shorten(&prompt.text);
    options.prompt_file = prompt.file;
    run.tasks = found.source;
    run.given.environment.extend(config::environment());
    start::add_settings(&mut run, &args.start);
    run.timing.stop_all_seen = stops::stopped_all_at(world)?;
    run.timing.armed_at = world.now;
    (run.session.waiting, run.session.outage) = (None, None);
    run.last_hook_timestamp = world.now.seconds();
    run.timing.slept_mark_ms = world.slept_ms;
    let resolved = config::load_for(world, project, &run);
    config::freeze(&mut run, &resolved);
    allow_tools(&mut options.agent, &resolved.settings().allowed_tools, &args)?;
    run.told.warnings = resolved.warnings.join("\n");
    run.given.files = resolved.files.clone();
    if is_continued {
        // The runner may have died after it wrote a row and before it counted it.
        let last = summary::read(project).last().map_or(0, |row| row.iteration);
        run.iteration = run.iteration.max(last);
        refusals::at_limit(&run, &resolved)?;
    }
    notes.extend(refusals::spent_day(world, &resolved)?);
    let tasks = found.list.as_ref().map(|list| tasks_summary(list, options.skip_review));
    state.keep_unreadable(SESSION, world.now)?;
    notes.extend(state.moved_aside.iter().cloned().chain(tasks.clone()).chain(found.notes));
    let tree = scan.as_ref().and_then(|scan| scan.tree);
    let context =
        BriefingContext { world, project, session: SESSION, run: &run, resolved: &resolved, told: false };
    let brief = briefing::prepare(&context, &mut state.document, scan)?;
    refusals::critical(&brief.critical, &args)?;
    notes.extend(given_guidance::foreign_note(world, project, &state.document));
    notes.extend(question::foreign_notes(world, project));
    notes.extend(brief.notes);
    notes.extend(brief.warnings);
    notes.extend(start::settings_notes(&resolved, &variables::foreign_notes(project)));
    run.circuit.baseline.move_to(&Turn {
        head: git::head(&project.root),
        tasks: tasks::read_reviewed(project, &run.tasks, options.skip_review),
        tree,
        ..Turn::default()
    });
    let guidance = brief.lists.encouraged.len() + brief.lists.forbidden.len();
    let plan = RunPlan { run, task: prompt.text, options, conversation };
    let continued = is_continued;
    let stories = found.list.as_ref().filter(|list| !list.stories.is_empty()).map(|list| {
        let counts = counts(list, plan.options.skip_review);
        format!("{} of {} {} done", counts.done, counts.total, list.source.form.nouns())
    });
    let changes = brief.events;
    let (question, tripped) = (None, None);
    Ok(Planned { plan, continued, tasks, stories, guidance, notes, changes, question, tripped, replaced })
}

/// Passes the rules for tools on to the agent. If it has only its own permissions, a rule that was typed is refused.
fn allow_tools(agent: &mut Agent, rules: &[String], args: &RunArgs) -> Result<(), Failure> {
    if !agent.allow(rules) && args.start.flags.contains_key(ALLOWED_TOOLS) {
        return Err(Failure::usage("--allow-tool is for Claude Code, not for --agent-command")
            .hint("set the permissions of that agent with its own flags"));
    }
    Ok(())
}

impl Planned {
    /// Arms the run and takes the project.
    fn arm(
        mut self,
        world: &World,
        project: &Project,
        mut state: Locked,
        held: &mut HeldProject,
    ) -> Result<Planned, Failure> {
        let run = &mut self.plan.run;
        // Before anything says that the run is there: a resumed run must not take another's rows for its own.
        let logs = logs::create(project);
        let make_room = |dir: &std::path::PathBuf| logs::make_room(dir, world.now);
        logs.and_then(|dir| if self.continued { Ok(()) } else { make_room(&dir) })
            .map_err(refusals::unwritable_logs)?;
        let had_switch = stops::kill_switch(project);
        stops::clear_kill_switch(project);
        self.notes.extend((had_switch && !stops::kill_switch(project)).then(|| stops::REMOVED.to_owned()));
        self.notes.extend(answer::hand_over(world, project, run, self.question.as_ref())?);
        self.notes.extend(answer::keep_answers(world, project, run));
        ending::record_missing(world, project, SESSION, &state.document)?;
        let expired = self.write(world, project, &mut state, held)?;
        let run = &self.plan.run;
        if let Err(error) = circuit::save(world, project, SESSION, &run.run_id, &run.circuit) {
            self.notes.push(format!("could not save the circuit breaker: {error:#}"));
        }
        drop(state);
        self.notes.extend(logs::create(project).ok().and_then(|dir| logs::remove_earlier(&dir)));
        ending::announce_all(world, project, &expired);
        if self.replaced.is_some() {
            snapshot::forget(world, project);
        }
        if let Err(error) = git::exclude_ours(project) {
            self.notes.push(format!("git still sees Ralph's files: {error:#}"));
        }
        self.notes.extend(start::file_away(self.question.as_ref(), world, project));
        Ok(self)
    }

    /// Writes the run down. If that fails, everything is put back as it was. Returns the loops that expired.
    fn write(
        &mut self,
        world: &World,
        project: &Project,
        state: &mut Locked,
        held: &mut HeldProject,
    ) -> Result<Vec<ArmedLoop>, Failure> {
        let before = [
            saved::backup(world, project)?,
            armed::backup(world, project, SESSION)?,
            circuit::backup(world, project, SESSION)?,
        ];
        self.write_all(world, project, state, held).inspect_err(|_| {
            before.iter().for_each(Backup::restore);
            if let Some(alive) = &self.replaced {
                let _ = history::take_back(world, project, &alive.run_id);
            }
        })
    }

    fn write_all(
        &mut self,
        world: &World,
        project: &Project,
        state: &mut Locked,
        held: &mut HeldProject,
    ) -> Result<Vec<ArmedLoop>, Failure> {
        let run = &mut self.plan.run;
        if let Some(record) = self.tripped.take() {
            record.reset(world, project)?;
            run.circuit.reset();
        }
        // Before anything forgets it: killed in between, it is in the history and in the state.
        if let Some(replaced) = &mut self.replaced {
            replaced.end(
                Outcome::Interrupted,
                "its runner was killed, and another task was started",
                world.now,
            );
            history::record(world, project, SESSION, replaced)?;
        }
        // Before the state says that the run is there: killed here, the next call continues this run.
        saved::save(world, project, &self.plan)?;
        let RunPlan { run, options, .. } = &self.plan;
        let expiration_ms = config::load_for(world, project, run).settings().session_expiration_ms;
        let expired = expiry::close(world, project, SESSION, &mut state.document, expiration_ms)?;
        state.document.set_loop(SESSION, run)?;
        armed::arm(world, project, SESSION, run, self.replaced.as_ref())?;
        held.publish(options.target.told(RunLock::of_this_process(&run.run_id, world.now)))?;
        state.save()?;
        given_guidance::prune(world, project, &state.document);
        Ok(expired)
    }
}

/// Returns the tasks of this run: those that were named, those it had, or those that are found.
fn find_tasks(
    world: &World,
    project: &Project,
    args: &RunArgs,
    continued: Option<&StoredLoop>,
) -> Result<FoundTasks, Failure> {
    let had = continued.map(|run| &run.tasks);
    let had = had.filter(|had| args.tasks == Selection::Default && !had.is_default());
    let found = match had {
        Some(had) => source::reload(project, had),
        None => source::find(project, &args.tasks, &world.working_dir),
    };
    found.map_err(|faults| refusals::unusable_tasks(&faults))
}

/// Returns the prompt of a list that explains itself; the one with reviews has `ralph/prompt.md`.
fn own_prompt(found: &FoundTasks) -> Option<String> {
    let list = found.list.as_ref().filter(|list| !list.source.form.has_reviews())?;
    (!list.stories.is_empty()).then(|| tasks_prompt(&list.source))
}

fn shorten(task: &str) -> String {
    task.trim().chars().take(MAX_TASK_CHARS).collect()
}

/// Returns the prompt that was given, as words or as a file.
fn given_prompt(world: &World, project: &Project, args: &RunArgs) -> Result<Option<Prompt>, Failure> {
    if !args.start.task.trim().is_empty() {
        return Ok(Some(Prompt { text: args.start.task.clone(), file: None }));
    }
    let Some(path) = args.file.as_ref().map(|path| world.working_dir.join(path)) else { return Ok(None) };
    let missing = || Failure::usage(format!("no such file: {}", path.display()));
    read_prompt(project, &path)?.ok_or_else(missing).map(Some)
}

/// Returns the prompt of a new run: the one that was given, `ralph/prompt.md`, or the task list's own.
fn new_prompt(
    world: &World,
    project: &Project,
    args: &RunArgs,
    found: &FoundTasks,
) -> Result<Option<Prompt>, Failure> {
    if let Some(given) = given_prompt(world, project, args)? {
        return Ok(Some(given));
    }
    let own = read_prompt(project, &project.work_dir().join("prompt.md"))?;
    Ok(own.or_else(|| own_prompt(found).map(|text| Prompt { text, file: None })))
}

/// Returns the prompt of a run that continues. One that was read from a file is read again: the user may have improved
/// it meanwhile.
fn continued_prompt(
    world: &World,
    project: &Project,
    args: &RunArgs,
    options: &RunOptions,
    saved: Option<String>,
    notes: &mut Vec<String>,
) -> Result<Option<Prompt>, Failure> {
    if let Some(given) = given_prompt(world, project, args)? {
        return Ok(Some(given));
    }
    let saved = saved.map(|text| Prompt { text, file: options.prompt_file.clone() });
    let Some(path) = &options.prompt_file else { return Ok(saved) };
    let present = read_prompt(project, path).ok().flatten();
    if let (Some(present), Some(saved)) = (&present, &saved)
        && present.text != saved.text
    {
        notes.push(format!("{} has changed: continuing with its new text", path.display()));
    }
    Ok(present.or(saved))
}

/// Reads a prompt. Only a file outside the project may be behind a link: it did not come with the repository.
fn read_prompt(project: &Project, path: &Path) -> Result<Option<Prompt>, Failure> {
    let shown = path.display();
    let bytes = match path.starts_with(&project.root) {
        true => project.read(path, MAX_PROMPT_BYTES)?,
        false => file::read_bounded(path, MAX_PROMPT_BYTES)?,
    };
    match bytes.map(String::from_utf8) {
        None => Ok(None),
        Some(Ok(text)) if text.trim().is_empty() => Err(Failure::usage(format!("{shown} is empty"))),
        Some(Ok(text)) => Ok(Some(Prompt { text, file: Some(path.to_owned()) })),
        Some(Err(_)) => Err(Failure::usage(format!("{shown} is not text (UTF-8)"))),
    }
}
