//! What can be done next: the commands to resume, rewind and archive.

use super::{NextStep, ReportInput};
use crate::core::decide::limits;
use crate::core::message;
use crate::core::outcome::Outcome;
use crate::core::record::{Engine, StoredLoop};

pub fn of(facts: &ReportInput) -> Vec<NextStep> {
    let mut steps = Vec::new();
    let started = facts.timeline.started.clone().unwrap_or_default();
    let id = message::short_id(&facts.run_id);
    if facts.is_alive {
        let command = match started.engine {
            Engine::InSession => "/ralph:stop",
            Engine::Runner => "ralph stop",
        };
        steps.push(NextStep { what: "End it", command: command.into() });
    } else if let Some(command) = resume(facts, started.engine, &id) {
        steps.push(NextStep { what: "Resume it", command });
    }
    steps.extend(rewind(facts, &id));
    if started.engine == Engine::Runner && facts.is_newest && !facts.is_alive {
        let command = "ralph archive --include-logs".into();
        steps.push(NextStep { what: "Archive it and reset ralph/ for the next run", command });
    }
    steps.push(NextStep { what: "Read what the agent did", command: format!("ralph logs {id}") });
    steps.push(NextStep {
        what: "The same facts for a pull request",
        command: format!("ralph report {id} --markdown"),
    });
    steps
}

fn resume(facts: &ReportInput, engine: Engine, id: &str) -> Option<String> {
    let outcome = facts.timeline.outcome().unwrap_or(Outcome::Interrupted);
    let run = StoredLoop { engine, ..StoredLoop::default() };
    let resume = message::resume_command(&run);
    if outcome == Outcome::Complete {
        return None;
    }
    match engine {
        Engine::Runner if !facts.is_newest => None,
        Engine::InSession if !facts.is_newest => Some(format!("{resume} --run {id}")),
        _ => Some(match limits::raise(outcome, facts.timeline.reason()) {
            Some(raised) => format!("{resume} {raised}"),
            None if matches!(outcome, Outcome::Stuck | Outcome::Circuit) => format!("{resume} --reset"),
            None => resume.to_owned(),
        }),
    }
}

/// Returns how to undo the commits of the run. They stay on a branch, and what is not committed is never lost.
fn rewind(facts: &ReportInput, id: &str) -> Option<NextStep> {
    let commits =
        facts.commits.as_ref().ok().filter(|commits| !commits.list.is_empty() && !commits.is_cut)?;
    let started = facts.timeline.started.as_ref()?;
    let from = started.head.as_ref().filter(|head| head.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    let from: String = from.chars().take(12).collect();
    let last = commits.list.last()?.id.get(..12)?;
    Some(NextStep {
        what: "Rewind: keep the commits of the run on a branch, and reset to the commit before it",
        command: format!("git branch ralph-{id} {last} && git reset --keep {from}"),
    })
}
