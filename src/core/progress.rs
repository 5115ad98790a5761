//! Whether a turn brought the work forward.

use super::record::lenient;
use super::signal::Status;
use super::turn::Turn;
use serde::{Deserialize, Serialize};

/// How things stood when the loop last looked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Baseline {
    /// The commit that HEAD names.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Tasks in `ralph/tasks.json` that pass.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub tasks_passing: Option<u64>,
    /// The last look at the project's files.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub files: Option<Sight>,
    /// How often they were looked at.
    #[serde(deserialize_with = "lenient")]
    pub looks: u64,
    /// There are files that were not looked at since then.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "std::ops::Not::not")]
    pub behind: bool,
}

/// A look at the project's files, by the clock that stamps them. It lags behind: what changed just before the
/// look and what changed right after may bear the same stamp, so the former is remembered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sight {
    pub at: i64,
    /// Prints of the files that changed just before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edge: Vec<u64>,
    /// For which files that is known.
    pub edge_of: Edge,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Edge {
    #[default]
    Nothing,
    /// Those the scan looks into.
    LookedInto,
    All,
}

impl Baseline {
    /// Takes this turn as the one that the next is compared with. What could not be read leaves what was known.
    pub fn move_to(&mut self, turn: &Turn) {
        self.head = turn.head.clone().or(self.head.take());
        self.tasks_passing = turn.tasks.as_ref().map(|tasks| tasks.passing).or(self.tasks_passing);
        if let Some(files) = &turn.files {
            self.looks = self.looks.wrapping_add(1);
            self.behind = files.sight.is_none();
            self.files = files.sight.clone().or(self.files.take());
        }
    }

    /// Whether HEAD moved; nothing outside git.
    pub fn committed(&self, turn: &Turn) -> Option<bool> {
        Some(self.head.as_ref()? != turn.head.as_ref()?)
    }

    /// Whether a task was ticked.
    pub fn ticked(&self, turn: &Turn) -> bool {
        turn.tasks.as_ref().zip(self.tasks_passing).is_some_and(|(tasks, before)| tasks.passing > before)
    }

    /// The union of everything that shows progress; nothing where the one thing that would tell is unknown.
    pub fn progress(&self, turn: &Turn, status: Option<&Status>) -> Option<bool> {
        let moved = self.committed(turn) == Some(true);
        let ticked = self.ticked(turn);
        let edited = turn.gained.as_ref().is_some_and(|gained| gained.edits > 0);
        let counted = status.is_some_and(|status| {
            status.files_modified.is_some_and(|n| n > 0) || status.tasks_completed.is_some_and(|n| n > 0)
        });
        let changed = turn.files.as_ref().and_then(|files| files.changed);
        if moved || ticked || edited || counted || changed == Some(true) {
            return Some(true);
        }
        if turn.wrote_nothing() { Some(false) } else { changed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::turn::{Files, Gained, Tasks};

    fn files(changed: Option<bool>) -> Option<Files> {
        Some(Files { changed, sight: Some(Sight { at: 7, ..Sight::default() }) })
    }

    fn tasks(passing: u64) -> Option<Tasks> {
        Some(Tasks { passing, ..Tasks::default() })
    }

    #[test]
    fn anything_that_moved_is_progress_and_the_unknown_is_unknown() {
        let before = Baseline { head: Some("a".into()), tasks_passing: Some(2), ..Baseline::default() };
        let read = |edits| Some(Gained { edits, last_text: Some("x".into()), ..Gained::default() });
        let says = |gained| Turn { message: Some("x".into()), gained, ..Turn::default() };
        let still = Turn { files: files(Some(false)), ..Turn::default() };
        let cases = [
            ("nothing known", Turn::default(), None),
            ("a scan without news", still.clone(), Some(false)),
            ("a scan that was not whole", Turn { files: files(None), ..Turn::default() }, None),
            ("a changed file", Turn { files: files(Some(true)), ..Turn::default() }, Some(true)),
            ("HEAD moved", Turn { head: Some("b".into()), ..still.clone() }, Some(true)),
            ("HEAD stayed", Turn { head: Some("a".into()), ..still.clone() }, Some(false)),
            ("HEAD stayed, files unknown", Turn { head: Some("a".into()), ..Turn::default() }, None),
            ("a task more", Turn { tasks: tasks(3), ..still.clone() }, Some(true)),
            ("the same tasks", Turn { tasks: tasks(2), ..still.clone() }, Some(false)),
            ("a task less", Turn { tasks: tasks(1), ..still.clone() }, Some(false)),
            ("an edit", says(read(1)), Some(true)),
            ("only reading", says(read(0)), Some(false)),
        ];
        for (name, turn, expected) in cases {
            assert_eq!(before.progress(&turn, None), expected, "{name}");
        }
        let status = Status { files_modified: Some(2), ..Status::default() };
        assert_eq!(before.progress(&still, Some(&status)), Some(true));
        let status = Status { files_modified: Some(0), tasks_completed: Some(0), ..Status::default() };
        assert_eq!(before.progress(&still, Some(&status)), Some(false));
        assert_eq!(
            Baseline::default().progress(&Turn { head: Some("b".into()), ..still }, None),
            Some(false)
        );
    }

    #[test]
    fn a_baseline_keeps_what_a_turn_does_not_tell() {
        let sight = |at| Some(Sight { at, ..Sight::default() });
        let before = Baseline {
            head: Some("a".into()),
            tasks_passing: Some(2),
            files: sight(3),
            looks: 1,
            behind: true,
        };
        let after = |files| {
            let mut baseline = before.clone();
            baseline.move_to(&Turn { head: Some("b".into()), files, ..Turn::default() });
            assert_eq!((baseline.head.as_deref(), baseline.tasks_passing), (Some("b"), Some(2)));
            (baseline.files, baseline.looks, baseline.behind)
        };
        assert_eq!(after(None), (sight(3), 1, true));
        assert_eq!(after(files(None)), (sight(7), 2, false));
        let partial = Files { changed: Some(false), sight: None };
        assert_eq!(after(Some(partial)), (sight(3), 2, true), "the earlier look stands");
    }

    #[test]
    fn a_status_shows_progress_by_either_count() {
        let still = Turn { files: files(Some(false)), ..Turn::default() };
        let status =
            |files_modified, tasks_completed| Status { files_modified, tasks_completed, ..Status::default() };
        for (name, status, expected) in [
            ("no counts", status(None, None), false),
            ("zeroes", status(Some(0), Some(0)), false),
            ("a file", status(Some(1), None), true),
            ("a file, no task", status(Some(1), Some(0)), true),
            ("a task", status(None, Some(1)), true),
            ("a task, no file", status(Some(0), Some(1)), true),
        ] {
            assert_eq!(Baseline::default().progress(&still, Some(&status)), Some(expected), "{name}");
        }
    }
}
