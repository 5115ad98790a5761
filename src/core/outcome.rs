//! How a loop ended, and the exit codes of every command.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How a loop ended, the same in hooks, runner, history and status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Complete,
    MaxIterations,
    MaxRuntime,
    MaxCost,
    Blocked,
    Decide,
    Stuck,
    Circuit,
    Stopped,
    Killed,
    UsageLimit,
    Interrupted,
    Error,
}

/// Every outcome in the order of the enum: its name, its words for people, and the exit code of `ralph run`.
pub const OUTCOMES: [(Outcome, &str, &str, Exit); 13] = [
    (Outcome::Complete, "complete", "task complete", Exit::Success),
    (Outcome::MaxIterations, "max-iterations", "iteration limit reached", Exit::Failed),
    (Outcome::MaxRuntime, "max-runtime", "runtime limit reached", Exit::Failed),
    (Outcome::MaxCost, "max-cost", "cost or token limit reached", Exit::Failed),
    (Outcome::Blocked, "blocked", "needs a person", Exit::Blocked),
    (Outcome::Decide, "decide", "waiting for a decision", Exit::Decide),
    (Outcome::Stuck, "stuck", "stuck", Exit::Stuck),
    (Outcome::Circuit, "circuit", "circuit breaker tripped", Exit::Stuck),
    (Outcome::Stopped, "stopped", "stopped by you", Exit::Interrupted),
    (Outcome::Killed, "killed", "stopped by the kill switch", Exit::Interrupted),
    (Outcome::UsageLimit, "usage-limit", "usage limit reached", Exit::UsageLimit),
    (Outcome::Interrupted, "interrupted", "interrupted", Exit::Interrupted),
    (Outcome::Error, "error", "failed", Exit::Internal),
];

impl Outcome {
    pub fn name(self) -> &'static str {
        OUTCOMES[self as usize].1
    }

    /// Returns the ending in words, to be followed by its reason.
    pub fn words(self) -> &'static str {
        OUTCOMES[self as usize].2
    }

    /// Returns the exit code of a run that ended this way.
    pub fn exit(self) -> Exit {
        OUTCOMES[self as usize].3
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How one iteration of a run ended, as its row in the summary tells: as the run, if that ended with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum IterationOutcome {
    Ok,
    Failed,
    Stalled,
    TimedOut,
    Denied,
    Rejected,
    Run(Outcome),
}

/// Every outcome of an iteration that does not end the run: its name, and what it means.
pub const ITERATION_OUTCOMES: [(IterationOutcome, &str, &str); 6] = [
    (IterationOutcome::Ok, "ok", "the agent ended its turn"),
    (IterationOutcome::Failed, "failed", "the agent program failed"),
    (IterationOutcome::Stalled, "stalled", "the agent was silent for too long and was stopped"),
    (IterationOutcome::TimedOut, "timed-out", "the agent was stopped at `--timeout`"),
    (IterationOutcome::Denied, "denied", "the agent was refused a tool"),
    (IterationOutcome::Rejected, "rejected", "the agent's completion was rejected"),
];

impl IterationOutcome {
    pub fn name(self) -> &'static str {
        match self {
            IterationOutcome::Run(outcome) => outcome.name(),
            own => {
                ITERATION_OUTCOMES.iter().find(|(known, ..)| *known == own).map_or("", |(_, name, _)| name)
            }
        }
    }
}

impl TryFrom<String> for IterationOutcome {
    type Error = String;

    fn try_from(text: String) -> Result<IterationOutcome, String> {
        let own = ITERATION_OUTCOMES.iter().find(|(_, name, _)| *name == text).map(|(outcome, ..)| *outcome);
        let of_run = || OUTCOMES.iter().find(|(_, name, ..)| *name == text);
        own.or_else(|| of_run().map(|(outcome, ..)| IterationOutcome::Run(*outcome)))
            .ok_or_else(|| format!("no such outcome: {text}"))
    }
}

impl From<IterationOutcome> for String {
    fn from(outcome: IterationOutcome) -> String {
        outcome.name().to_owned()
    }
}

/// The exit code of a command. Usage errors are 64, not 2: 2 means BLOCKED, and Claude Code reads a hook's 2 as
/// "block".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Success = 0,
    Failed = 1,
    Blocked = 2,
    Decide = 3,
    Stuck = 4,
    UsageLimit = 5,
    Usage = 64,
    Unavailable = 69,
    Internal = 70,
    Interrupted = 130,
}

/// Every exit code: what it means for `ralph run`, and for other commands that exit with it.
pub const EXITS: [(Exit, &str, &str); 10] = [
    (Exit::Success, "complete", "success"),
    (Exit::Failed, "iteration, runtime, cost or token limit reached", "refused; `doctor`: a check failed"),
    (Exit::Blocked, "BLOCKED: see `ralph/blocked.txt`", "`scan`: a critical constraint was found"),
    (Exit::Decide, "DECIDE: see `ralph/decide.txt`; refused while it is unanswered", ""),
    (Exit::Stuck, "stuck, or the circuit breaker tripped; refused until it is reset", ""),
    (Exit::UsageLimit, "usage limit reached, with `--on-limit stop`", ""),
    (Exit::Usage, "usage error", "usage error"),
    (Exit::Unavailable, "agent program not found or not responding", "`install`: Claude Code not found"),
    (Exit::Internal, "error, or the run cannot start", "error; `demo`: a step failed"),
    (Exit::Interrupted, "interrupted or stopped", "interrupted"),
];

impl Exit {
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Returns the exit codes of `ralph run`, a line each, for its help.
    pub fn help() -> String {
        let lines = EXITS.map(|(exit, run, _)| format!("\n{:>5}  {}", exit.code(), run.replace('`', "")));
        format!("Exit codes:{}", lines.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_in_its_place_of_the_table_and_written_by_its_name() {
        for (index, (outcome, name, ..)) in OUTCOMES.into_iter().enumerate() {
            assert_eq!(outcome as usize, index, "{name}");
            assert_eq!(serde_json::to_value(outcome).unwrap(), name);
        }
    }

    #[test]
    fn every_outcome_of_an_iteration_is_written_by_its_name_and_read_again() {
        let of_runs = OUTCOMES.map(|(outcome, ..)| IterationOutcome::Run(outcome));
        let all = ITERATION_OUTCOMES.into_iter().map(|(outcome, ..)| outcome).chain(of_runs);
        for outcome in all {
            let name = serde_json::to_value(outcome).unwrap();
            assert_eq!(name, outcome.name());
            assert!(
                outcome.name() != "" && serde_json::from_value::<IterationOutcome>(name).unwrap() == outcome
            );
        }
        assert!(IterationOutcome::try_from("a, b".to_owned()).is_err());
    }

    #[test]
    fn exit_codes_never_change() {
        assert_eq!(EXITS.map(|(exit, ..)| exit.code()), [0, 1, 2, 3, 4, 5, 64, 69, 70, 130]);
        let codes = OUTCOMES.map(|(.., exit)| exit.code());
        assert_eq!(codes, [0, 1, 1, 1, 2, 3, 4, 4, 130, 130, 5, 130, 70]);
    }
}
