//! A checkup: what each check found, how bad that is, and the way out.

use super::clean;
use serde::Serialize;

/// Worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// There was nothing to look at, or no way to look.
    Skipped,
    Ok,
    Warning,
    Failure,
}

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    pub verdict: Verdict,
    pub message: String,
    pub way_out: Option<String>,
}

impl Note {
    pub fn ok(message: impl AsRef<str>) -> Note {
        Note::new(Verdict::Ok, message.as_ref(), None)
    }

    pub fn skipped(why: impl AsRef<str>) -> Note {
        Note::new(Verdict::Skipped, why.as_ref(), None)
    }

    pub fn warning(message: impl AsRef<str>, way_out: impl AsRef<str>) -> Note {
        Note::new(Verdict::Warning, message.as_ref(), Some(way_out.as_ref()))
    }

    pub fn failure(message: impl AsRef<str>, way_out: impl AsRef<str>) -> Note {
        Note::new(Verdict::Failure, message.as_ref(), Some(way_out.as_ref()))
    }

    /// In one line, the way out with it.
    pub fn in_words(&self) -> String {
        let word = match self.verdict {
            Verdict::Skipped | Verdict::Ok => "",
            Verdict::Warning => "warning: ",
            Verdict::Failure => "FAILURE: ",
        };
        let way_out = self.way_out.as_ref().map_or_else(String::new, |way_out| format!(" → {way_out}"));
        format!("{word}{}{way_out}", self.message)
    }

    /// Whoever makes a note may quote a file or a program: what it says is cleaned once, here.
    fn new(verdict: Verdict, message: &str, way_out: Option<&str>) -> Note {
        Note { verdict, message: clean::line(message), way_out: way_out.map(clean::line) }
    }
}

/// What one check saw. Its id never changes, so that scripts may ask for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub id: &'static str,
    pub notes: Vec<Note>,
}

impl Check {
    /// Of problems alone; without any, all is well in these words.
    pub fn of(id: &'static str, problems: Vec<Note>, well: impl AsRef<str>) -> Check {
        let notes = if problems.is_empty() { vec![Note::ok(well)] } else { problems };
        Check { id, notes }
    }

    pub fn one(id: &'static str, note: Note) -> Check {
        Check { id, notes: vec![note] }
    }

    pub fn verdict(&self) -> Verdict {
        self.notes.iter().map(|note| note.verdict).max().unwrap_or(Verdict::Skipped)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub checks: Vec<Check>,
}

impl Report {
    pub fn verdict(&self) -> Verdict {
        self.checks.iter().map(Check::verdict).max().unwrap_or(Verdict::Skipped)
    }

    pub fn is_healthy(&self) -> bool {
        self.verdict() < Verdict::Failure
    }

    /// How many notes have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.checks.iter().flat_map(|check| &check.notes).filter(|note| note.verdict == verdict).count()
    }
}

/// Whether Claude Code would end an idle loop before the breaker does. `cap` is the number of turns without a tool
/// that it lets a hook block in a row, 0 = any number; `idle` is the breaker's, 0 = off.
pub fn block_cap(cap: u64, idle: u64) -> Note {
    let shown = if cap == 0 { "lifted".to_owned() } else { format!("{cap} idle turns") };
    match (cap, idle) {
        (1.., 0) => Note::warning(
            format!("Claude Code ends a loop after {shown}, without a reason, and circuit.idle is off"),
            "set circuit.idle below that, or CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0",
        ),
        (1.., idle) if idle > cap => Note::warning(
            format!(
                "Claude Code ends a loop after {shown}, without a reason; circuit.idle ({idle}) comes too late"
            ),
            "set circuit.idle to at most that, or CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0",
        ),
        (_, 0) => Note::ok(format!("{shown}; circuit.idle is off")),
        _ => Note::ok(format!("{shown}; Ralph's own breaker comes first, at {idle}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_note_decides() {
        let report = |notes: Vec<Note>| Report { checks: vec![Check { id: "x", notes }] };
        assert!(report(vec![]).is_healthy());
        assert!(report(vec![Note::ok("a"), Note::warning("b", "c")]).is_healthy());
        let sick = report(vec![Note::failure("a", "b"), Note::ok("c"), Note::skipped("d")]);
        assert!(!sick.is_healthy());
        assert_eq!(sick.count(Verdict::Failure), 1);
        assert_eq!(Check::of("x", vec![], "fine").verdict(), Verdict::Ok);
        assert_eq!(Check::of("x", vec![Note::skipped("no")], "fine").verdict(), Verdict::Skipped);
    }

    #[test]
    fn what_a_note_quotes_is_cleaned() {
        let note = Note::warning("a\u{1b}[2Jb\nc", "\u{7}d");
        assert_eq!((note.message.as_str(), note.way_out.as_deref()), ("a[2Jb c", Some("d")));
    }

    #[test]
    fn the_breaker_must_come_before_the_cap() {
        for (cap, idle, verdict) in [
            (8, 5, Verdict::Ok),
            (8, 8, Verdict::Ok),
            (8, 9, Verdict::Warning),
            (8, 0, Verdict::Warning),
            (1, 5, Verdict::Warning),
            (0, 0, Verdict::Ok),
            (0, 50, Verdict::Ok),
        ] {
            assert_eq!(block_cap(cap, idle).verdict, verdict, "cap {cap}, idle {idle}");
        }
    }
}
