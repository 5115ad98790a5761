//! Whether a turn made progress.

use crate::core::decide::turn::{AfterChecks, Turn};
use crate::core::record::lenient;
use crate::core::signal::StatusBlock;
use serde::{Deserialize, Serialize};

/// What the progress of a turn is measured against.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Baseline {
    /// The git worktree it was taken in; empty for the project itself.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "String::is_empty")]
    pub work_tree: String,
    /// The commit that HEAD names.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Tasks in `ralph/tasks.json` that pass.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub tasks_passing: Option<u64>,
    /// The project's files as the last complete scan saw them.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeState>,
}

/// Identifies one state of the project's files, as a scan saw it. The default is a state that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeState {
    /// The snapshot that the digest was made of. Another snapshot gives another digest for the same files.
    pub snapshot: u64,
    pub digest: u64,
}

impl TreeState {
    /// Returns whether a file changed, was added or removed between two states; nothing where they cannot be compared.
    pub fn changed_since(self, before: TreeState) -> Option<bool> {
        (self.snapshot == before.snapshot).then_some(self.digest != before.digest)
    }
}

impl Baseline {
    /// Takes over what is known of this turn, so that the next one is measured against it. What the check commands
    /// changed after the turn is not progress of the next one.
    pub fn move_to(&mut self, turn: &Turn) {
        let (head, tree) = match turn.after_checks.clone() {
            Some(AfterChecks { head, tree }) => (head, Some(tree)),
            None => (turn.head.clone(), turn.tree),
        };
        self.head = head.or(self.head.take());
        self.tasks_passing = turn.tasks.as_ref().map(|tasks| tasks.passing).or(self.tasks_passing);
        self.tree = tree.or(self.tree);
    }

    /// Returns whether HEAD moved; nothing outside git.
    pub fn committed(&self, turn: &Turn) -> Option<bool> {
        Some(self.head.as_ref()? != turn.head.as_ref()?)
    }

    /// Returns whether a task was ticked.
    pub fn ticked(&self, turn: &Turn) -> bool {
        turn.tasks.as_ref().zip(self.tasks_passing).is_some_and(|(tasks, before)| tasks.passing > before)
    }

    /// Returns whether anything shows progress; nothing where that is unknown.
    pub fn progress(&self, turn: &Turn, status: Option<&StatusBlock>) -> Option<bool> {
        if self.committed(turn) == Some(true) {
            Some(true)
        } else {
            self.progress_beside_commits(turn, status)
        }
    }

    /// Returns whether a commit is all there is of progress.
    pub fn only_committed(&self, turn: &Turn, status: Option<&StatusBlock>) -> bool {
        self.committed(turn) == Some(true) && self.progress_beside_commits(turn, status) == Some(false)
    }

    fn progress_beside_commits(&self, turn: &Turn, status: Option<&StatusBlock>) -> Option<bool> {
        let counted = status.is_some_and(|status| {
            status.files_modified.is_some_and(|n| n > 0) || status.tasks_completed.is_some_and(|n| n > 0)
        });
        if self.ticked(turn) || counted || self.files_changed(turn) {
            return Some(true);
        }
        if turn.wrote_nothing() { Some(false) } else { self.tree_changed(turn) }
    }

    /// Returns whether a file is known to have changed.
    pub fn files_changed(&self, turn: &Turn) -> bool {
        turn.gained.as_ref().is_some_and(|gained| gained.edits > 0) || self.tree_changed(turn) == Some(true)
    }

    fn tree_changed(&self, turn: &Turn) -> Option<bool> {
        turn.tree.zip(self.tree).and_then(|(now, before)| now.changed_since(before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::decide::turn::{Tasks, TranscriptGain};

    fn tree(digest: u64) -> Option<TreeState> {
        Some(TreeState { snapshot: 1, digest })
    }

    fn checks(digest: u64) -> Option<AfterChecks> {
        let tree = TreeState { snapshot: 1, digest };
        Some(AfterChecks { head: Some("c".into()), tree })
    }

    fn tasks(passing: u64) -> Option<Tasks> {
        Some(Tasks { passing, ..Tasks::default() })
    }

    #[test]
    fn anything_that_moved_is_progress_and_the_unknown_is_unknown() {
        let before =
            Baseline { head: Some("a".into()), tasks_passing: Some(2), tree: tree(7), ..Baseline::default() };
        let read =
            |edits| Some(TranscriptGain { edits, last_text: Some("x".into()), ..TranscriptGain::default() });
        let says = |gained| Turn { message: Some("x".into()), gained, ..Turn::default() };
        let still = Turn { tree: tree(7), ..Turn::default() };
        let other_snapshot = Some(TreeState { snapshot: 2, digest: 8 });
        let cases = [
            ("nothing known", Turn::default(), None),
            ("no file changed", still.clone(), Some(false)),
            ("a file changed", Turn { tree: tree(8), ..Turn::default() }, Some(true)),
            (
                "only the checks changed a file",
                Turn { after_checks: checks(8), ..still.clone() },
                Some(false),
            ),
            ("a snapshot made anew", Turn { tree: other_snapshot, ..Turn::default() }, None),
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
        let status = StatusBlock { files_modified: Some(2), ..StatusBlock::default() };
        assert_eq!(before.progress(&still, Some(&status)), Some(true));
        let status =
            StatusBlock { files_modified: Some(0), tasks_completed: Some(0), ..StatusBlock::default() };
        assert_eq!(before.progress(&still, Some(&status)), Some(false));
        assert_eq!(Baseline::default().progress(&Turn { head: Some("b".into()), ..still }, None), None);
    }

    #[test]
    fn a_commit_without_a_change_is_no_work() {
        let before =
            Baseline { head: Some("a".into()), tasks_passing: Some(2), tree: tree(7), ..Baseline::default() };
        let commit = Turn { head: Some("b".into()), tree: tree(7), ..Turn::default() };
        for (name, turn, only) in [
            ("nothing else", commit.clone(), true),
            ("no commit", Turn { head: Some("a".into()), ..commit.clone() }, false),
            ("a changed file", Turn { tree: tree(8), ..commit.clone() }, false),
            ("files unknown", Turn { tree: None, ..commit.clone() }, false),
            ("a task more", Turn { tasks: tasks(3), ..commit }, false),
        ] {
            assert_eq!(before.only_committed(&turn, None), only, "{name}");
        }
    }

    #[test]
    fn a_baseline_keeps_what_a_turn_does_not_tell() {
        let before =
            Baseline { head: Some("a".into()), tasks_passing: Some(2), tree: tree(3), ..Baseline::default() };
        let after = |tree, after_checks| {
            let mut baseline = before.clone();
            baseline.move_to(&Turn { head: Some("b".into()), tree, after_checks, ..Turn::default() });
            (baseline.head.unwrap(), baseline.tasks_passing.unwrap(), baseline.tree)
        };
        assert_eq!(after(None, None), ("b".into(), 2, tree(3)), "no complete scan");
        assert_eq!(after(tree(7), None), ("b".into(), 2, tree(7)));
        let next = ("c".into(), 2, tree(8));
        assert_eq!(after(tree(7), checks(8)), next, "the next turn is measured from after the checks");
        assert_eq!(after(None, checks(8)), next);
    }

    #[test]
    fn a_status_shows_progress_by_either_count() {
        let still = Turn { tree: tree(7), ..Turn::default() };
        let status = |files_modified, tasks_completed| StatusBlock {
            files_modified,
            tasks_completed,
            ..StatusBlock::default()
        };
        for (name, status, expected) in [
            ("no counts", status(None, None), false),
            ("zeroes", status(Some(0), Some(0)), false),
            ("a file", status(Some(1), None), true),
            ("a file, no task", status(Some(1), Some(0)), true),
            ("a task", status(None, Some(1)), true),
            ("a task, no file", status(Some(0), Some(1)), true),
        ] {
            let baseline = Baseline { tree: tree(7), ..Baseline::default() };
            assert_eq!(baseline.progress(&still, Some(&status)), Some(expected), "{name}");
        }
    }
}
