//! Commands that show what happens, or have it shown elsewhere.

pub mod logs;
pub mod monitor;
pub mod notify;
pub mod report;
mod report_facts;
mod sources;
pub mod watch;

use crate::cli::{Failure, Invocation};
use crate::core::text::clean;
use crate::store::events::{self, RunFile};

/// Returns the run that a command is for: the one it names, else this session's, else the newest of the project.
pub fn chosen_run(call: &Invocation) -> Result<RunFile, Failure> {
    let Some(id) = call.value("run-id") else {
        let runs = events::of_project(&call.world, &call.project)?;
        let is_own = |run: &&RunFile| Some(run.started.session_id.as_str()) == call.session();
        let own = runs.iter().find(is_own).or(runs.first()).cloned();
        return own.ok_or_else(|| {
            Failure::refused("no run of this project has been recorded yet")
                .hint("start one with /ralph:start TASK in Claude Code, or with `ralph run`")
        });
    };
    let mut found = events::find(&call.world, id)?;
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::refused(format!("no run with this id: {}", clean::excerpt(id, 60))).hint(
            "`ralph history` lists the runs of this project; those of an earlier version have no events",
        )),
        _ => {
            let ids: Vec<&str> = found.iter().take(5).map(|run| run.run_id.as_str()).collect();
            Err(Failure::refused(format!("several runs begin with {}", clean::excerpt(id, 60)))
                .hint(format!("give more of the id: {}", ids.join(", "))))
        }
    }
}
