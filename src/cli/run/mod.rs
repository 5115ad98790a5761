//! `ralph run`: plans the run, takes the project, and hands over to the runner.

pub mod archive;
pub mod init;
mod plan;
mod refusals;
pub mod run_args;

use crate::cli::{CommandOutput, Invocation, Project, World};
use crate::core::decide::limits;
use crate::core::event::{Event, EventKind, RunStarted};
use crate::core::message;
use crate::core::outcome::Outcome;
use crate::core::record::Engine;
use crate::core::settings::SettingSource;
use crate::core::text::clean;
use crate::run::screen::RunOutput;
use crate::run::{self, Context, RunPlan, Runner, SESSION};
use crate::store::project::git;
use crate::store::{config, events, state};
use plan::Planned;

pub fn run(call: &Invocation) -> CommandOutput {
    let Invocation { world, project, .. } = call;
    let args = run_args::parse(call)?;
    let ended = run::end_left_behind(world, project)?;
    if let Some(run) = ended.filter(|run| run.outcome == Some(Outcome::Complete))
        && plan::is_of(world, project, &args, &run)?
    {
        // Done is done: the task would begin anew.
        let settings = config::load_for(world, project, &run).settings_for(Engine::Runner);
        return Ok((message::ended(&run, &settings, world.now) + "\n", Outcome::Complete.exit()));
    }
    let mut held = refusals::active_run(world, project)?;
    let continued = plan::continued(world, project, &args)?;
    let options = args.options(continued.as_ref().map(|saved| &saved.options));
    refusals::unavailable(project, &options)?;
    let left = run::reap_left_behind(&held);
    refusals::agent_left(&left, &options)?;
    let (style, colour) = (args.style, args.colour);
    let mut planned = plan::arm(world, project, args, options, continued, &mut held)?;
    if left.agent {
        planned.notes.insert(0, "ended an agent that an earlier run had left running".into());
    }
    planned.notes.extend(left.unended);
    let mut screen = RunOutput::new(world, style, colour, &planned.plan.run.run_id);
    report_start(world, project, &planned, &mut screen);
    Ok((String::new(), Runner::new(world, project, planned.plan, held, screen)?.run()))
}

/// Says everything the run works by: its position, checks, limits and task.
fn report_start(world: &World, project: &Project, planned: &Planned, screen: &mut RunOutput) {
    let RunPlan { run, options, .. } = &planned.plan;
    let resolved = config::load_for(world, project, run);
    let settings = resolved.settings_for(Engine::Runner);
    let checks = &settings.checks;
    let agent = options.agent.program();
    let iteration = run.iteration + 1;
    let verb = if planned.continued { "Continuing" } else { "Starting" };
    let (id, at) = (message::short_id(&run.run_id), message::of(iteration, settings.max_iterations));
    let mut parts = vec![format!("{verb} run {id} at iteration {at}")];
    let count = |count: usize, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    };
    parts.extend(count(checks.len(), "check", "checks"));
    parts.extend(limits::words(&settings));
    parts.extend(count(planned.guidance, "guidance entry", "guidance entries"));
    parts.extend(count(run.pending.answers.len(), "answer", "answers"));
    parts.extend(planned.stories.clone());
    if planned.continued {
        parts.push(format!("agent: {}", clean::excerpt(&agent.name(), 40)));
    }
    parts.extend(options.target.place());
    screen.say(&parts.join(" · "));
    screen.say(&format!("Task: {}", clean::excerpt(&run.task, 100)));
    checks.iter().for_each(|check| screen.say(&format!("Check: {}", clean::excerpt(check, 100))));
    let started = RunStarted {
        continued: planned.continued,
        iteration,
        agent: Some(agent.name().to_owned()),
        tasks: planned.tasks.clone(),
        head: git::head(&project.root),
        ..RunStarted::of(run, SESSION, &project.root.to_string_lossy(), &settings)
    };
    let first = std::iter::once(EventKind::Started(started.clone())).chain(planned.changes.clone());
    first.for_each(|what| screen.emit(&Event::new(world.now, what)));
    let failed = events::begin(world, run, started, planned.changes.clone());
    failed.iter().for_each(|failed| screen.warn(failed));
    if git::head(&project.root).is_none() {
        screen.note("not in a git repository; progress is measured by changed files");
    }
    if options.context == Context::Continue && !agent.abilities().resumes {
        screen.note("this agent cannot continue a conversation, so every iteration begins a new one");
    }
    let is_given = |key: &str| resolved.row(key).is_some_and(|row| row.source != SettingSource::Default);
    if agent.abilities().reports_tools
        && (is_given("run.timeout_minutes") || is_given("heartbeat.tool_seconds"))
        && let Some(note) = run::timeout_note(&resolved.run_settings())
    {
        screen.note(&note);
    }
    planned.notes.iter().for_each(|note| screen.note(note));
    state::take_damage_notices(&planned.notes.join(
        "
",
    ))
    .iter()
    .for_each(|note| screen.note(note));
    if let Some(note) = agent.warning(world, project, &options.target) {
        screen.note(&note);
    }
}
