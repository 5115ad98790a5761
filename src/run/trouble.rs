//! What iterations that failed, or were denied their tools, come to: the user is told why, and the same trouble three
//! times in a row without a commit ends the run with that reason.

use super::agent::AgentProgram;
use crate::core::decide::permission;
use crate::core::outcome::Outcome;
use crate::core::signal;

/// Iterations in a row with the same trouble that end a run.
const MAX_IN_A_ROW: u64 = 3;

/// What stood in an iteration's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble<'a> {
    None,
    /// The agent failed, in these words.
    Error(&'a str),
    /// Calls of these tools were denied.
    Denied(&'a [String]),
}

#[derive(Debug, Default)]
pub struct TroubleCount {
    /// What the last iterations failed with, without what changes from one to the next.
    last: String,
    count: u64,
    /// The tools that the user knows to be denied.
    told: Vec<String>,
}

impl TroubleCount {
    /// Counts an iteration; `moved` says that it made progress. Returns how the run ends, if it does.
    pub fn add(
        &mut self,
        trouble: Trouble,
        moved: bool,
        agent: &dyn AgentProgram,
    ) -> Option<(Outcome, String)> {
        let this = match trouble {
            Trouble::None => String::new(),
            // As an error line, so that numbers and ids do not tell two errors apart.
            Trouble::Error(words) => signal::error_signature(&format!("error: {words}")).unwrap_or_default(),
            Trouble::Denied(_) => "denied".into(),
        };
        // An agent that gets on meets the error at a new place.
        self.count = if moved || this != self.last { 1 } else { self.count + 1 };
        self.last = this;
        if self.count < MAX_IN_A_ROW {
            return None;
        }
        let count = self.count;
        match trouble {
            Trouble::None => None,
            Trouble::Error(words) => {
                let words = signal::without_label(words);
                Some((Outcome::Error, format!("same error {count} times in a row: {words}")))
            }
            Trouble::Denied(tools) => Some((
                Outcome::Blocked,
                denied(tools, &format!(" in {count} iterations in a row"), &agent.flags_to_allow(tools)),
            )),
        }
    }

    /// Returns what the user is told of denied tools, once for each.
    pub fn news(&mut self, tools: &[String], agent: &dyn AgentProgram) -> Option<String> {
        let new: Vec<String> = tools.iter().filter(|tool| !self.told.contains(tool)).cloned().collect();
        self.told.extend(new.iter().cloned());
        (!new.is_empty()).then(|| denied(&new, "", &agent.flags_to_allow(&new)))
    }
}

/// Says which tools were denied and how to allow them. Only Claude Code has flags for that.
fn denied(tools: &[String], when: &str, flags: &str) -> String {
    let names = permission::listed(tools);
    let what = match flags {
        "" => format!("the agent was denied {names}"),
        _ => format!("Claude Code denied {names}"),
    };
    format!("{what}{when}; {}", permission::flags_hint(tools.len(), flags))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::agent::{Claude, ShellCommand};

    fn tools(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn the_same_error_three_times_in_a_row_ends_the_run() {
        let ended = |troubles: &[(Trouble, bool)]| {
            let mut count = TroubleCount::default();
            troubles
                .iter()
                .filter_map(|(trouble, moved)| count.add(*trouble, *moved, &Claude::default()))
                .next()
        };
        let (a, b, fine) = (Trouble::Error("no such model (id 17)"), Trouble::Error("x"), Trouble::None);
        let again = Trouble::Error("no such model (id 4711)");
        let reason = "same error 3 times in a row: no such model (id 17)".to_owned();
        assert_eq!(ended(&[(again, false), (a, false), (a, false)]), Some((Outcome::Error, reason)));
        assert_eq!(
            ended(&[(a, false), (a, false), (b, false), (a, false), (a, false)]),
            None,
            "another between"
        );
        assert_eq!(ended(&[(a, false), (a, false), (fine, false), (a, false)]), None, "a good one between");
        assert_eq!(ended(&[(a, true), (a, true), (a, true), (a, true)]), None, "it gets on");
        assert_eq!(ended(&[(fine, false); 9]), None);
    }

    #[test]
    fn denied_tools_are_told_once_and_block_the_run() {
        let (write, both) = (tools(&["Write"]), tools(&["Write", "Bash"]));
        let (mut count, agent) = (TroubleCount::default(), &Claude::default());
        let told = "Claude Code denied Write; to allow it: --permission-mode acceptEdits";
        assert_eq!(count.news(&write, agent).as_deref(), Some(told));
        assert_eq!(count.news(&write, agent), None);
        let told = "Claude Code denied Bash; to allow it: --allowed-tools Bash";
        assert_eq!(count.news(&both, agent).as_deref(), Some(told));
        assert_eq!(count.add(Trouble::Denied(&write), false, agent), None);
        assert_eq!(count.add(Trouble::Denied(&both), false, agent), None);
        let (outcome, reason) = count.add(Trouble::Denied(&both), false, agent).unwrap();
        assert_eq!(outcome, Outcome::Blocked);
        let flags = "--permission-mode acceptEdits --allowed-tools Bash";
        assert_eq!(
            reason,
            format!("Claude Code denied Write and Bash in 3 iterations in a row; to allow them: {flags}")
        );
        let told = "the agent was denied Write; allow it in the agent's own settings";
        let other = ShellCommand("agent".into());
        assert_eq!(TroubleCount::default().news(&write, &other).as_deref(), Some(told));
    }
}
