//! `ralph run`: plans the run, takes the project, and hands over to the runner.

pub mod archive;
pub mod init;
mod plan;
mod refusals;
pub mod run_args;
mod saved;

use super::failure::Failure;
use crate::core::outcome::Exit;
use crate::core::record::Engine;
use crate::core::text::clean;
use crate::run::screen::Screen;
use crate::run::{self, Context, Runner};
use crate::store::config;
use crate::store::project::{Project, git};
use crate::store::world::World;
use plan::Planned;
use run_args::RunArgs;

pub fn run(world: &World, project: &Project, mut args: RunArgs) -> Result<Exit, Failure> {
    plan::continue_agent(world, project, &mut args);
    refusals::unavailable(project, &args)?;
    let reaped = run::reap_left_behind(project);
    let (style, colour) = (args.style, args.colour);
    let mut planned = plan::arm(world, project, args)?;
    if reaped {
        planned.notes.insert(0, "ended an agent that a dead run had left running".into());
    }
    let mut screen = Screen::new(world, style, colour, &planned.plan.run.run_id);
    report_start(world, project, &planned, &mut screen);
    Ok(Runner::new(world, project, planned.plan, screen)?.run())
}

fn report_start(world: &World, project: &Project, planned: &Planned, screen: &mut Screen) {
    let plan = &planned.plan;
    let resolved = config::load_for(world, project, &plan.run);
    let settings = resolved.settings_for(Engine::Runner);
    let word = if planned.resumed { "continues" } else { "starts" };
    let of =
        if settings.max_iterations > 0 { format!("/{}", settings.max_iterations) } else { String::new() };
    let (target, iteration) = (plan.target.name(), plan.run.iteration + 1);
    let (id, task) =
        (plan.run.run_id.get(..8).unwrap_or(&plan.run.run_id), clean::excerpt(&plan.run.task, 100));
    screen.say(&format!("Ralph run {id} {word} {target} at iteration {iteration}{of}: {task}"));
    let agent = plan.agent.program();
    screen.event(
        "started",
        serde_json::json!({"resumed": planned.resumed, "iteration": iteration, "agent": agent.name(),
                           "tasks": planned.tasks}),
    );
    if git::head(&project.root).is_none() {
        screen.note("no git repository here, so progress is what changes in the work tree");
    }
    if plan.context == Context::Continue && !agent.abilities().resumes {
        screen.note("this agent cannot continue a conversation, so every iteration begins a new one");
    }
    if agent.abilities().reports_tools
        && let Some(note) = run::timeout_note(&resolved.run_settings())
    {
        screen.note(&note);
    }
    planned.notes.iter().for_each(|note| screen.note(note));
}
