//! A context that fills up: the agent writes down what a new context needs, then the loop continues there.

use super::NextTurn;
use super::figures::percent;
use crate::core::record::Handover;

/// Where the agent writes its handover, in the checkout in which it works.
pub const FILE: &str = "ralph/handover.md";

/// Judges how full the context is at the end of a turn; `None` if the client did not tell.
pub fn judge(handover: &mut Option<Handover>, level: Option<f64>, limit: Option<f64>) -> NextTurn {
    let Some(limit) = limit else {
        *handover = None;
        return NextTurn::Continue;
    };
    match (*handover, level) {
        (None, Some(level)) if level >= limit => {
            *handover = Some(Handover::Asked);
            NextTurn::WriteHandover(format!("{} of the context is used", percent(level)))
        }
        // The agent has had its turn, whether the client told the level in it or not.
        (Some(Handover::Asked), level) if level.is_none_or(|level| level >= limit) => {
            *handover = Some(Handover::Written);
            NextTurn::NewContext
        }
        // It was compacted meanwhile.
        (Some(_), Some(level)) if level < limit => {
            *handover = None;
            NextTurn::Continue
        }
        _ => NextTurn::Continue,
    }
}

/// Returns the text that asks the agent to write the handover.
pub fn advice(words: &str) -> String {
    format!(
        "{words}, and the work continues in a new context after this turn. Write {FILE} for it: what is done, what is \
         decided and why, what comes next, and which files matter. Overwrite the file. Commit what is verified. \
         Then end your turn."
    )
}

/// Returns what the agent is told in its new context.
pub fn told_after() -> String {
    format!("This context is new. Your handover from the earlier one is {FILE}: read it first.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_context_is_handed_over_once() {
        use Handover::{Asked, Written};
        let full = || NextTurn::WriteHandover("80% of the context is used".into());
        let cases = [
            ("below", None, Some(79.9), None, NextTurn::Continue),
            ("reached", None, Some(80.0), Some(Asked), full()),
            ("unknown", None, None, None, NextTurn::Continue),
            ("the agent has written it", Some(Asked), Some(83.0), Some(Written), NextTurn::NewContext),
            ("without a figure", Some(Asked), None, Some(Written), NextTurn::NewContext),
            ("compacted meanwhile", Some(Asked), Some(10.0), None, NextTurn::Continue),
            ("told already", Some(Written), Some(90.0), Some(Written), NextTurn::Continue),
            ("in the new context", Some(Written), Some(10.0), None, NextTurn::Continue),
        ];
        for (name, mut state, level, expected, course) in cases {
            assert_eq!(judge(&mut state, level, Some(80.0)), course, "{name}");
            assert_eq!(state, expected, "{name}");
        }
        let mut state = Some(Asked);
        assert_eq!((judge(&mut state, Some(99.0), None), state), (NextTurn::Continue, None), "switched off");
    }
}
