//! The result of `ralph doctor`: checks, each with notes that carry a verdict, a message and a hint.

use crate::core::text::clean;
use serde::Serialize;

/// Ordered from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// The check does not apply here.
    Skipped,
    Ok,
    Warning,
    Failure,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckNote {
    pub verdict: Health,
    pub message: String,
    pub hint: Option<String>,
}

impl CheckNote {
    pub fn ok(message: impl AsRef<str>) -> CheckNote {
        CheckNote::new(Health::Ok, message.as_ref(), None)
    }

    pub fn skipped(why: impl AsRef<str>) -> CheckNote {
        CheckNote::new(Health::Skipped, why.as_ref(), None)
    }

    pub fn warning(message: impl AsRef<str>, hint: impl AsRef<str>) -> CheckNote {
        CheckNote::new(Health::Warning, message.as_ref(), Some(hint.as_ref()))
    }

    pub fn failure(message: impl AsRef<str>, hint: impl AsRef<str>) -> CheckNote {
        CheckNote::new(Health::Failure, message.as_ref(), Some(hint.as_ref()))
    }

    /// Cleans both texts, because they may quote files and programs.
    fn new(verdict: Health, message: &str, hint: Option<&str>) -> CheckNote {
        CheckNote { verdict, message: clean::line(message), hint: hint.map(clean::line) }
    }

    /// Returns verdict, message and hint on one line.
    pub fn line(&self) -> String {
        let word = match self.verdict {
            Health::Skipped | Health::Ok => "",
            Health::Warning => "warning: ",
            Health::Failure => "FAILURE: ",
        };
        let hint = self.hint.as_ref().map_or_else(String::new, |hint| format!(" → {hint}"));
        format!("{word}{}{hint}", self.message)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoctorCheck {
    /// Stays the same in every release, for scripts.
    pub id: &'static str,
    pub notes: Vec<CheckNote>,
}

impl DoctorCheck {
    /// Returns a check with these problems, or with `ok` if there are none.
    pub fn of(id: &'static str, problems: Vec<CheckNote>, ok: impl AsRef<str>) -> DoctorCheck {
        let notes = if problems.is_empty() { vec![CheckNote::ok(ok)] } else { problems };
        DoctorCheck { id, notes }
    }

    pub fn one(id: &'static str, note: CheckNote) -> DoctorCheck {
        DoctorCheck { id, notes: vec![note] }
    }

    pub fn verdict(&self) -> Health {
        self.notes.iter().map(|note| note.verdict).max().unwrap_or(Health::Skipped)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnosis {
    pub checks: Vec<DoctorCheck>,
}

impl Diagnosis {
    pub fn verdict(&self) -> Health {
        self.checks.iter().map(DoctorCheck::verdict).max().unwrap_or(Health::Skipped)
    }

    pub fn is_healthy(&self) -> bool {
        self.verdict() < Health::Failure
    }

    /// Counts the notes with this verdict.
    pub fn count(&self, verdict: Health) -> usize {
        self.checks.iter().flat_map(|check| &check.notes).filter(|note| note.verdict == verdict).count()
    }
}

/// Compares Claude Code's limit on consecutive blocked turns without a tool (`cap`, 0 = none) with the breaker's
/// `circuit.idle` (0 = off). If the cap is lower, Claude Code ends the loop and gives no reason.
pub fn block_cap(cap: u64, idle: u64) -> CheckNote {
    const OFF: &str = "or set CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0";
    let turns = format!("{cap} turn{} without a tool call", if cap == 1 { "" } else { "s" });
    match (cap, idle) {
        (1.., 0) => CheckNote::warning(
            format!("Claude Code ends a loop after {turns} and gives no reason; circuit.idle is off"),
            format!("set circuit.idle to {cap}, {OFF}"),
        ),
        (1.., idle) if idle > cap => CheckNote::warning(
            format!(
                "Claude Code ends a loop after {turns} and gives no reason; circuit.idle ({idle}) would trip later"
            ),
            format!("set circuit.idle to {cap} or less, {OFF}"),
        ),
        (0, 0) => CheckNote::ok("Claude Code has no limit on turns without a tool call; circuit.idle is off"),
        (0, _) => CheckNote::ok(format!(
            "Claude Code has no limit on turns without a tool call; the circuit breaker trips at {idle}"
        )),
        _ => CheckNote::ok(format!(
            "Claude Code stops after {turns}; the circuit breaker trips first, at {idle}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_note_decides() {
        let report = |notes: Vec<CheckNote>| Diagnosis { checks: vec![DoctorCheck { id: "x", notes }] };
        assert!(report(vec![]).is_healthy());
        assert!(report(vec![CheckNote::ok("a"), CheckNote::warning("b", "c")]).is_healthy());
        let failed = report(vec![CheckNote::failure("a", "b"), CheckNote::ok("c"), CheckNote::skipped("d")]);
        assert!(!failed.is_healthy());
        assert_eq!(failed.count(Health::Failure), 1);
        assert_eq!(DoctorCheck::of("x", vec![], "fine").verdict(), Health::Ok);
        assert_eq!(DoctorCheck::of("x", vec![CheckNote::skipped("no")], "fine").verdict(), Health::Skipped);
    }

    #[test]
    fn quoted_text_is_cleaned() {
        let note = CheckNote::warning("a\u{1b}[2Jb\nc", "\u{7}d");
        assert_eq!((note.message.as_str(), note.hint.as_deref()), ("a[2Jb c", Some("d")));
    }

    #[test]
    fn the_breaker_must_trip_before_the_cap() {
        for (cap, idle, verdict) in [
            (8, 5, Health::Ok),
            (8, 8, Health::Ok),
            (8, 9, Health::Warning),
            (8, 0, Health::Warning),
            (1, 5, Health::Warning),
            (0, 0, Health::Ok),
            (0, 50, Health::Ok),
        ] {
            assert_eq!(block_cap(cap, idle).verdict, verdict, "cap {cap}, idle {idle}");
        }
    }
}
