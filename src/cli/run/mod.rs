//! `ralph run`: plans the run, takes the project, and hands over to the runner.

pub mod archive;
pub mod init;
mod plan;
mod refusals;
pub mod run_args;
mod saved;

use super::failure::Failure;
use crate::claude::settings::{self, permissions};
use crate::core::outcome::Exit;
use crate::core::record::Engine;
use crate::core::text::clean;
use crate::run::agent::{Agent, flags_that_allow};
use crate::run::screen::Screen;
use crate::run::target::Target;
use crate::run::{self, Context, RunPlan, Runner};
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
    let mut screen = Screen::new(style, colour, &planned.plan.run.run_id);
    report_start(world, project, &planned, &mut screen);
    Ok(Runner::new(world, project, planned.plan, screen)?.run())
}

fn report_start(world: &World, project: &Project, planned: &Planned, screen: &mut Screen) {
    let plan = &planned.plan;
    let settings = config::load_for(world, project, &plan.run).settings_for(Engine::Runner);
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
    planned.notes.iter().for_each(|note| screen.note(note));
    if let Some(note) = permission_note(world, project, plan) {
        screen.note(&note);
    }
}

/// Returns what to say if Claude Code will deny every edit: it asks, and nobody is there to answer. What the settings
/// in a container or a sandbox allow is not known here.
fn permission_note(world: &World, project: &Project, plan: &RunPlan) -> Option<String> {
    let Agent::Claude(claude) = &plan.agent else { return None };
    if plan.target != Target::Local || claude.names_allowed_tools() {
        return None;
    }
    let settings = settings::Settings::read(world, project, settings::managed_folder());
    let mode = permissions::mode_without_edits(&settings, claude.permission_mode.as_deref())?;
    let flags = flags_that_allow(&["Edit", "Bash"].map(str::to_owned));
    Some(format!(
        "Claude Code may edit nothing in permission mode {mode}, and denies what it would ask for; to allow it: {flags}"
    ))
}
