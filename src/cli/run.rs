//! `ralph run`: checks what was asked, takes the project, and hands over to the runner.

use super::failure::{Exit, Failure};
use super::run_kept;
use super::start::{self, open_question, refuse_critical, refuse_tripped};
use crate::claude::version::{OLDEST, Version};
use crate::core::outcome::Outcome;
use crate::core::record::{Engine, Given, Loop, LoopState};
use crate::core::request::StartRequest;
use crate::core::settings::Resolved;
use crate::core::tasks::{prompt as tasks_prompt, understood};
use crate::core::turn::{Files, Turn};
use crate::core::{clean, limits};
use crate::run::agent::{self, Agent};
use crate::run::log::Folder;
use crate::run::screen::{Screen, Style};
use crate::run::target::Target;
use crate::run::{Context, OnLimit, Order, Runner, SESSION, lock};
use crate::scan::brief::{Look, Reader, brief};
use crate::store::command::Ended;
use crate::store::project::Project;
use crate::store::question::Question;
use crate::store::state::{self, Locked};
use crate::store::task_source::{self, Found};
use crate::store::world::World;
use crate::store::{
    armed, circuit, config, ending, file, git, history, program, question, run_lock, snapshot, stop as stops,
    tasks,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// `ralph run` as it was typed.
pub struct Asked {
    /// Settings and switches that it shares with `start`; the task is the prompt.
    pub start: StartRequest,
    pub file: Option<PathBuf>,
    pub agent: Agent,
    pub target: Target,
    /// Anything was said about agent or target; else a run that goes on keeps its own.
    pub chosen: bool,
    pub context: Context,
    pub on_limit: OnLimit,
    pub skip_review: bool,
    pub tasks: task_source::Asked,
    pub style: Style,
    pub colour: bool,
}

const LARGEST_PROMPT: u64 = 64 << 20;
/// Of a long prompt so much stands in the state, to be known by.
const KEPT_OF_TASK: usize = 2000;
/// A program that is asked about itself answers within this time, also on a slow machine.
const ANSWER: Duration = Duration::from_secs(60);

pub fn run(world: &World, project: &Project, mut asked: Asked) -> Result<u8, Failure> {
    let kept =
        (!asked.chosen && goes_on(world, project, &asked)).then(|| run_kept::agent(world, project)).flatten();
    if let Some((agent, target)) = kept {
        (asked.agent, asked.target) = (agent, target);
    }
    check_agent(&asked, project)?;
    let survivor = lock::end_survivor(project);
    let Taken { lap, resumed, task, tasks, notes } = take_over(world, project, &asked)?;
    let mut screen = Screen::new(asked.style, asked.colour, &lap.run_id);
    let resolved = config::load(world, project, &lap.given);
    let settings = resolved.settings_for(Engine::Runner);
    let word = if resumed { "goes on" } else { "starts" };
    let of =
        if settings.max_iterations > 0 { format!("/{}", settings.max_iterations) } else { String::new() };
    screen.say(&format!(
        "Ralph run {} {word} {} at iteration {}{of}: {}",
        &lap.run_id[..lap.run_id.len().min(8)],
        asked.target.name(),
        lap.iteration + 1,
        clean::excerpt(&lap.task, 100)
    ));
    screen.event(
        "started",
        serde_json::json!({"resumed": resumed, "iteration": lap.iteration + 1, "agent": asked.agent.name(),
                           "tasks": tasks}),
    );
    if survivor {
        screen.note("an agent of a run that died was still at work, and was ended");
    }
    if git::head(&project.root).is_none() {
        screen.note("no git repository here, so progress is what changes in the work tree");
    }
    notes.iter().for_each(|note| screen.note(note));
    let order = Order {
        agent: asked.agent,
        target: asked.target,
        context: asked.context,
        on_limit: asked.on_limit,
        skip_review: asked.skip_review,
        preface: String::new(),
        task,
    };
    let logs = Folder::of(project)?;
    let runner = Runner::new(world, project, order, lap, screen, logs).map_err(Failure::from)?;
    Ok(runner.run()?.code)
}

/// Makes the folder of the logs ready, before anything says that the run is there: whoever goes on with it must
/// not take the rows of another for its own.
fn ready_logs(world: &World, project: &Project, resumed: bool) -> Result<(), Failure> {
    let ready = Folder::of(project).and_then(|logs| if resumed { Ok(()) } else { logs.make_room(world.now) });
    ready
        .map_err(|error| Failure::from(error).hint("The runner keeps its logs in ralph/logs of the project."))
}

/// A run that did not begin says why by the code it would have ended with: a trip, a question, a limit that is
/// reached. Whatever else is in the way is an error, lest a script take it for a limit.
fn refuse<T>(refused: Result<T, Failure>, exit: Exit) -> Result<T, Failure> {
    refused.map_err(|failure| if failure.exit == Exit::Refused { failure.exit(exit) } else { failure })
}

/// A run that is armed, and what is to be said of it.
struct Taken {
    lap: Loop,
    resumed: bool,
    /// The whole prompt.
    task: String,
    /// What was understood of its tasks.
    tasks: Option<String>,
    notes: Vec<String>,
}

/// The tasks of this run: those that were named, those it had, or those that are found.
fn find_tasks(world: &World, project: &Project, asked: &Asked, had: Option<&Loop>) -> Result<Found, Failure> {
    let had =
        had.map(|lap| &lap.tasks).filter(|had| asked.tasks == task_source::Asked::Usual && !had.is_default());
    let found = match had {
        Some(had) => task_source::again(project, had),
        None => task_source::find(project, &asked.tasks, &world.working_dir),
    };
    found.map_err(|faults| {
        Failure::internal(faults.join("\n"))
            .hint("Mend the file, name another with --tasks FILE, or run without tasks: --no-tasks.")
    })
}

/// Arms the run in the project's state: goes on with one whose runner is gone, or begins a new one.
fn take_over(world: &World, project: &Project, asked: &Asked) -> Result<Taken, Failure> {
    let question = refuse(open_question(project, &asked.start), Exit::Undecided)?;
    let look = start::look(world, project, &asked.start);
    let mut state = Locked::open(project, world.now)?;
    if lock::is_held(project)
        && let Some(holder) = run_lock::holder(project)
    {
        return Err(Failure::internal(format!(
            "a run is active here: process {}, run {}, since {}",
            holder.pid,
            clean::excerpt(&holder.run_id, 8).replace('…', ""),
            holder.started_at.rfc3339()
        ))
        .hint("`ralph status` shows it, `ralph stop` ends it."));
    }
    let tripped = refuse(refuse_tripped(world, project, SESSION, &asked.start), Exit::Tripped)?;
    let given = given_prompt(world, project, asked)?;
    let present = state.document.loop_of(SESSION).and_then(|lap| armed::claim(world, project, SESSION, lap));
    let present = present.filter(Loop::is_alive);
    let goes_on = |lap: &Loop| given.as_ref().is_none_or(|task| shortened(task) == lap.task);
    let resumed = present.as_ref().is_some_and(goes_on);
    let found = find_tasks(world, project, asked, present.as_ref().filter(|_| resumed))?;
    let given = given.or_else(|| own_prompt(&found).filter(|_| !resumed));
    let given = given.or_else(|| unfinished(world, project).filter(|_| !resumed));
    let mut over = None;
    let (mut lap, task) = match (present, given) {
        (Some(mut lap), given) if resumed => {
            let task = given.or_else(|| run_kept::prompt(world, project)).unwrap_or_else(|| lap.task.clone());
            lap.circuit = circuit::load(world, project, SESSION, &lap.run_id);
            (lap, task)
        }
        (present, Some(task)) => {
            over = present;
            (begin(world, project, &task), task)
        }
        (_, None) => {
            return Err(Failure::usage("there is nothing to run: no prompt, no ralph/prompt.md").hint(
                "ralph run \"TASK\", or ralph run -f FILE, or ralph run --tasks FILE, or `ralph init` for a prompt to \
                 start from.",
            ));
        }
    };
    lap.tasks = found.source;
    lap.answered.extend(question.as_ref().map(Question::whole));
    lap.given.flags.extend(asked.start.flags.clone());
    config::split_commands(&mut lap.given);
    if !asked.start.preset.is_empty() {
        lap.given.preset.clone_from(&asked.start.preset);
    }
    lap.stop_all_seen = stops::stopped_all_at(world);
    lap.armed_at = world.now;
    lap.last_hook_timestamp = world.now.seconds();
    let resolved = config::load(world, project, &lap.given);
    config::freeze_checks(&mut lap.given, &resolved);
    lap.given.files = resolved.files.clone();
    let tasks = found.list.as_ref().map(|list| understood(list, asked.skip_review));
    let mut notes: Vec<String> = state.moved_aside.iter().cloned().chain(tasks.clone()).collect();
    notes.extend(found.notes);
    if resumed {
        adopt_rows(project, &mut lap);
        refuse_at_limit(&lap, &resolved)?;
    }
    stops::clear_kill_switch(project);
    let sight = if let Look::Made(scan) = &look { scan.sight.clone() } else { None };
    let reader = Reader { world, project, session: SESSION, lap: &lap, resolved: &resolved, told: false };
    let brief = brief(&reader, &mut state.document, look)?;
    if !asked.start.skip_constraint_scan {
        refuse(refuse_critical(&brief.critical), Exit::Internal)?;
    }
    notes.extend(brief.notes);
    notes.extend(brief.warnings);
    notes.extend(resolved.warnings.iter().map(|warning| format!("settings: {warning}")));
    lap.circuit.baseline.move_to(&Turn {
        head: git::head(&project.root),
        tasks: tasks::read_reviewed(project, &lap.tasks, asked.skip_review),
        files: sight.map(|sight| Files { changed: None, sight: Some(sight) }),
        ..Turn::default()
    });
    ready_logs(world, project, resumed)?;
    if let Some(record) = tripped {
        record.reset(world, project)?;
        lap.circuit.reset();
    }
    state.document.set_loop(SESSION, &lap)?;
    armed::arm(world, project, SESSION, &lap)?;
    lock::take(project, &lap.run_id, &asked.target, world.now)?;
    if let Err(error) = state.save() {
        lock::release(project);
        armed::disarm(world, project, SESSION);
        return Err(error.into());
    }
    drop(state);
    circuit::save(world, project, SESSION, &lap.run_id, &lap.circuit)?;
    run_kept::keep(world, project, &task, &asked.agent, &asked.target)?;
    if let Some(mut earlier) = over {
        earlier.end(Outcome::Interrupted, "its runner died, and another task was begun", world.now);
        ending::record(world, project, SESSION, &earlier);
        snapshot::forget(world, project);
    }
    if let Err(error) = git::exclude_ours(project) {
        notes.push(format!("git still sees Ralph's files: {error:#}"));
    }
    if let Some(question) = &question
        && let Err(error) = question::file_away(question, world.now)
    {
        notes.push(format!("{} could not be filed away: {error:#}", question.path.display()));
    }
    Ok(Taken { lap, resumed, task, tasks, notes })
}

/// A list that explains itself needs no prompt beside it; the one with reviews has `ralph/prompt.md`.
fn own_prompt(found: &Found) -> Option<String> {
    let list = found.list.as_ref().filter(|list| !list.source.form.has_reviews())?;
    (!list.stories.is_empty()).then(|| tasks_prompt(&list.source))
}

/// The prompt of the last run here, where that did not complete: what its ending says goes on with it.
fn unfinished(world: &World, project: &Project) -> Option<String> {
    let last = history::runs(world, project).ok()?.pop()?;
    let ended = last.engine == Engine::Runner && last.outcome != Outcome::Complete;
    ended.then(|| run_kept::prompt(world, project)).flatten()
}

/// Whether this is a run that was there before: one whose runner is gone, or the last one once more.
fn goes_on(world: &World, project: &Project, asked: &Asked) -> bool {
    let given = given_prompt(world, project, asked).ok().flatten();
    let found = state::peek(project).ok().flatten().and_then(|document| document.loop_of(SESSION));
    let alive = found.and_then(|lap| armed::claim(world, project, SESSION, lap)).filter(Loop::is_alive);
    match (alive, given) {
        (Some(lap), given) => given.is_none_or(|task| shortened(&task) == lap.task),
        (None, given) => given.is_none() && unfinished(world, project).is_some(),
    }
}

fn begin(world: &World, project: &Project, task: &str) -> Loop {
    let mut given = Given { environment: config::environment(), ..Given::default() };
    config::split_commands(&mut given);
    Loop {
        run_id: format!("{:032x}", crate::store::world::unique()),
        engine: Engine::Runner,
        state: LoopState::Running,
        task: shortened(task),
        started_at: world.now,
        previous_ended_at: history::last_ending(world, project),
        given,
        ..Loop::default()
    }
}

/// A row that was written and not yet counted when the runner died.
fn adopt_rows(project: &Project, lap: &mut Loop) {
    if let Some(last) = Folder::of(project).ok().and_then(|logs| logs.last_row()) {
        lap.iteration = lap.iteration.max(last);
    }
}

fn refuse_at_limit(lap: &Loop, resolved: &Resolved) -> Result<(), Failure> {
    match limits::reached(lap, &resolved.settings_for(Engine::Runner)) {
        None => Ok(()),
        Some((_, reason)) => Err(Failure::refused(format!("the run is at its limit: {reason}"))
            .hint("Raise the limit with a flag, or end the run with `ralph stop`.")),
    }
}

fn shortened(task: &str) -> String {
    task.trim().chars().take(KEPT_OF_TASK).collect()
}

/// The prompt as it was given: words, a file, or the project's own.
fn given_prompt(world: &World, project: &Project, asked: &Asked) -> Result<Option<String>, Failure> {
    if !asked.start.task.trim().is_empty() {
        return Ok(Some(asked.start.task.clone()));
    }
    let own = project.work_dir().join("prompt.md");
    let path = match &asked.file {
        Some(path) => world.working_dir.join(path),
        None => own,
    };
    let text = file::read_bounded(&path, LARGEST_PROMPT)?;
    match text {
        None if asked.file.is_some() => Err(Failure::usage(format!("{} is not there", path.display()))),
        None => Ok(None),
        Some(bytes) => match String::from_utf8(bytes) {
            Ok(text) if text.trim().is_empty() => Err(Failure::usage(format!("{} is empty", path.display()))),
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(Failure::usage(format!("{} is not text (UTF-8)", path.display()))),
        },
    }
}

/// A missing or too old program is told before anything is begun.
fn check_agent(asked: &Asked, project: &Project) -> Result<(), Failure> {
    match &asked.target {
        Target::Local => {}
        Target::Container { name, .. } => check_container(name)?,
        Target::Sandbox { .. } => return version("docker", &["--version"], ANSWER).map(drop),
    }
    let claude = match &asked.agent {
        Agent::Claude(claude) => claude,
        Agent::Command(line) => return check_command(line, &asked.target, project),
    };
    let told = match &asked.target {
        Target::Container { name, .. } => {
            version("docker", &["exec", name, &claude.program, "--version"], ANSWER).map_err(|failure| {
                failure.hint("Install Claude Code in the container, or name it there with --claude PATH.")
            })?
        }
        _ => version(&claude.program, &["--version"], ANSWER)?,
    };
    if Version::parse(&told).is_some_and(|version| version < OLDEST) {
        return Err(Failure::unavailable(format!("{} is version {}: too old", claude.program, told.trim()))
            .hint("npm install -g @anthropic-ai/claude-code"));
    }
    Ok(())
}

/// Its shell has to know the first word: otherwise every iteration would fail alike.
fn check_command(line: &str, target: &Target, project: &Project) -> Result<(), Failure> {
    const ASK: [&str; 4] = ["sh", "-c", "command -v \"$1\"", "sh"];
    let Some(word) = agent::first_word(line).filter(|_| cfg!(unix)) else { return Ok(()) };
    let words: Vec<String> = ASK.into_iter().chain([word]).map(str::to_owned).collect();
    let place =
        if let Target::Container { name, .. } = target { format!(" in {name}") } else { String::new() };
    match program::run(target.command(&words, &project.root, "ask"), b"", ANSWER).ended {
        Ended::Exit(code) if code != 0 => Err(Failure::unavailable(format!("{word} was not found{place}"))
            .hint("Install it, or give --agent-command the path of your agent.")),
        _ => Ok(()),
    }
}

fn check_container(name: &str) -> Result<(), Failure> {
    let told = version("docker", &["inspect", "--format", "{{.State.Running}}", name], ANSWER);
    match told {
        Ok(told) if told.trim() == "true" => Ok(()),
        Ok(_) => Err(Failure::unavailable(format!("container {name} is not running"))
            .hint(format!("docker start {name}"))),
        Err(failure) if failure.message.contains("not found") || failure.message.contains("no answer") => {
            Err(failure)
        }
        Err(_) => Err(Failure::unavailable(format!("there is no container {name}"))
            .hint("`docker ps` lists those that run; `--container` takes a name or an id.")),
    }
}

/// What a program prints about itself.
fn version(program: &str, args: &[&str], limit: Duration) -> Result<String, Failure> {
    let mut command = Command::new(program);
    command.args(args);
    let said = program::run(command, b"", limit);
    let asked = args.join(" ");
    match said.ended {
        Ended::Exit(0) => Ok(said.stdout),
        Ended::NotStarted(why) => {
            let hint = if Path::new(program).file_stem().is_some_and(|stem| stem == "docker") {
                "Install Docker, or run without --container and --sandbox."
            } else {
                "Install Claude Code (npm install -g @anthropic-ai/claude-code), name it with --claude PATH, or use \
                 another program with --agent-command."
            };
            Err(Failure::unavailable(format!("{program} was not found: {why}")).hint(hint))
        }
        Ended::TimedOut(limit) => {
            let told = format!("{program} {asked}: no answer within {} s", limit.as_secs());
            Err(Failure::unavailable(told).hint("Run it by hand and see what it waits for."))
        }
        _ => Err(Failure::unavailable(format!("{program} {asked} failed: {}", said.complaint()))),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_answer_is_named_with_the_way_out() {
        let failure = version("sleep", &["600"], Duration::from_millis(50)).unwrap_err();
        assert_eq!(failure.exit, Exit::Unavailable);
        assert!(failure.message.starts_with("sleep 600: no answer within"), "{failure}");
        assert!(failure.hint.is_some_and(|hint| hint.contains("by hand")));
    }
}
