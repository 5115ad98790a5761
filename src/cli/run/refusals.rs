//! Why a run does not begin. It exits with the code a run would have ended with (a trip, an open question, a limit);
//! everything else is an error, so that no script takes it for a limit.

use super::run_args::RunArgs;
use crate::cli::loops::{answer, refusals, start};
use crate::cli::{Failure, Project, World};
use crate::core::decide::limits;
use crate::core::guidance::finding::Finding;
use crate::core::message;
use crate::core::outcome::Exit;
use crate::core::record::{ArmedLoop, Engine};
use crate::core::settings::Resolved;
use crate::run::agent::Unavailable;
use crate::run::process::target::Target;
use crate::run::saved::RunOptions;
use crate::run::{LeftBehind, SESSION};
use crate::store::runner::run_lock::HeldProject;
use crate::store::state::question::Question;
use crate::store::user::circuit;

fn with_exit<T>(refused: Result<T, Failure>, exit: Exit) -> Result<T, Failure> {
    refused.map_err(|failure| if failure.exit == Exit::Failed { failure.exit(exit) } else { failure })
}

/// Refuses if the agent or the target cannot be used.
pub fn unavailable(project: &Project, options: &RunOptions) -> Result<(), Failure> {
    let RunOptions { agent, target, .. } = options;
    let sandboxed = matches!(target, Target::Sandbox { .. });
    // A sandbox brings its own agent.
    let agent = || if sandboxed { Ok(()) } else { agent.program().check(target, &project.root) };
    target.check().and_then(|()| agent()).map_err(|Unavailable { message, hint }| {
        let failure = Failure::unavailable(message);
        if hint.is_empty() { failure } else { failure.hint(hint) }
    })
}

/// Refuses while a question is unanswered; returns an answered one.
pub fn open_question(world: &World, project: &Project, args: &RunArgs) -> Result<Option<Question>, Failure> {
    with_exit(answer::refuse_unanswered(world, project, &args.start), Exit::Decide)
}

/// Takes the project, or refuses while another run is active.
pub fn active_run(world: &World, project: &Project) -> Result<HeldProject, Failure> {
    let lock = match HeldProject::take(world, project)? {
        Ok(held) => return Ok(held),
        Err(lock) => lock,
    };
    let run_id = message::short_id(&lock.run_id);
    let started_at = lock.started_at.minute();
    Err(Failure::internal(format!(
        "a run is already active in this project: process {}, run {run_id}, since {started_at}",
        lock.pid
    ))
    .hint("`ralph status` shows it, `ralph stop` ends it"))
}

/// Refuses a second agent in a container while one that a dead run left there could not be ended.
pub fn agent_left(left: &LeftBehind, options: &RunOptions) -> Result<(), Failure> {
    match (&left.unended, &left.container) {
        (Some(why), Some(name)) if options.target.container() == Some(name) => {
            Err(Failure::internal(format!("a dead run left an agent behind: {why}"))
                .hint(format!("`docker restart {name}` ends it")))
        }
        _ => Ok(()),
    }
}

/// Refuses while the breaker is tripped, unless `--reset` is given. Returns the tripped breaker.
pub fn tripped(
    world: &World,
    project: &Project,
    args: &RunArgs,
) -> Result<Option<circuit::BreakerRecord>, Failure> {
    with_exit(start::refuse_tripped(world, project, SESSION, &args.start), Exit::Stuck)
}

/// Refuses to continue a run that would end at once.
pub fn at_limit(run: &ArmedLoop, resolved: &Resolved) -> Result<(), Failure> {
    match limits::reached(run, &resolved.settings_for(Engine::Runner)) {
        None => Ok(()),
        Some((outcome, reason)) => {
            let raised = limits::raise(outcome, &reason).unwrap_or_default();
            Err(Failure::refused(format!("limit already reached: {reason}"))
                .hint(format!("raise it with {raised}, or begin a new run with --new")))
        }
    }
}

/// Refuses if all loops of this user have spent what a day allows. Returns what the user should know.
pub fn spent_day(world: &World, resolved: &Resolved) -> Result<Option<String>, Failure> {
    refusals::spent_day(world, &resolved.settings_for(Engine::Runner))
}

/// Refuses while there is a critical constraint, unless `--skip-constraint-scan` is given.
pub fn critical(findings: &[Finding], args: &RunArgs) -> Result<(), Failure> {
    let findings = if args.start.skip_constraint_scan { &[] } else { findings };
    with_exit(refusals::critical(findings), Exit::Internal)
}

pub fn unusable_tasks(faults: &[String]) -> Failure {
    Failure::internal(faults.join("\n"))
        .hint("fix the file, name another with --tasks FILE, or use --no-tasks")
}

pub fn unreadable_run(error: anyhow::Error) -> Failure {
    Failure::internal(error.context("the last run cannot be continued"))
        .hint("begin a new run with --new; give its checks and limits again")
}

pub fn nothing_to_run() -> Failure {
    Failure::usage("nothing to run: no prompt given and no ralph/prompt.md").hint(
        "use `ralph run \"TASK\"`, `ralph run -f FILE` or `ralph run --tasks FILE`, or create a prompt with `ralph init`",
    )
}

pub fn unwritable_logs(error: anyhow::Error) -> Failure {
    Failure::from(error).hint("make ralph/logs writable; the runner keeps its logs there")
}
