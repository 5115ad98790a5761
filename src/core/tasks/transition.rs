//! What an iteration may change in the task list, by its mode. Only a review judges, only one story at a time moves,
//! and no story disappears. Everything else (titles, criteria, order, new stories) is up to the agent.

use super::{Mode, Review, Story, TaskFormat, TaskList, checklist, short_id};
use crate::core::text::clean;
use std::collections::{BTreeMap, BTreeSet};

/// Checks the changes of an iteration; each problem is a sentence the agent can act on. No change is always allowed:
/// an iteration may fail.
pub fn transitions(before: &TaskList, after: &TaskList, mode: Mode) -> Result<(), Vec<String>> {
    if before.source.form == TaskFormat::Checklist {
        return checklist::kept(before, after);
    }
    let present: BTreeSet<&str> = after.stories.iter().map(|story| story.id.as_str()).collect();
    let mut problems: Vec<String> = before
        .stories
        .iter()
        .filter(|story| !present.contains(story.id.as_str()))
        .map(|story| {
            format!(
                "story {} is missing: restore it (to split it, add stories and name them in its dependsOn)",
                short_id(&story.id)
            )
        })
        .collect();
    let earlier: BTreeMap<_, _> = before.stories.iter().map(|story| (story.id.as_str(), story)).collect();
    let mut moved = Vec::new();
    for story in &after.stories {
        let new = Story::default();
        let was = earlier.get(story.id.as_str()).copied();
        let change = StoryChange { before: was.unwrap_or(&new), after: story };
        if !change.has_changes() {
            continue;
        }
        let problem = match mode {
            Mode::Implement => change.implemented(),
            _ if was.is_none() => Some(
                " is new: set passes to false, reviewStatus to null and reviewCount to 0, and leave reviewFeedback empty".into(),
            ),
            Mode::Review => change.reviewed(),
            Mode::ReviewFix => change.fixed(),
        };
        problems.extend(problem.map(|problem| format!("story {}{problem}", short_id(&story.id))));
        if mode != Mode::Implement || change.is_marked_done() {
            moved.push(short_id(&story.id));
        }
    }
    if moved.len() > 1 {
        let what = match mode {
            Mode::Implement => "marked as done",
            Mode::Review => "reviewed",
            Mode::ReviewFix => "changed",
        };
        let stories = clean::excerpt(&moved.join(", "), 200);
        problems.push(format!(
            "stories {stories} were {what} in one iteration: keep one, and restore {FIELDS} of the others"
        ));
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

const FIELDS: &str = "passes, reviewStatus, reviewCount and reviewFeedback";

/// A story before and after an iteration. A problem is returned without "story ID" before it.
struct StoryChange<'a> {
    before: &'a Story,
    after: &'a Story,
}

impl StoryChange<'_> {
    fn has_changes(&self) -> bool {
        let fields = |story: &Story| (story.passes, story.review, story.review_count);
        fields(self.before) != fields(self.after) || self.after.review_feedback != self.before.review_feedback
    }

    fn is_marked_done(&self) -> bool {
        self.after.passes && !self.before.passes
            || self.after.review == Review::Needed && self.before.review != Review::Needed
    }

    /// Checks that an implementing iteration asked for a review at most.
    fn implemented(&self) -> Option<String> {
        let StoryChange { before, after } = self;
        if before.review == Review::Approved {
            return Some(format!(" is approved: restore {FIELDS}; add a new story for what is missing"));
        }
        if after.review != before.review && after.review != Review::Needed {
            return Some(self.judged());
        }
        self.counted().or_else(|| {
            let changed = after.review_feedback != before.review_feedback;
            changed.then(|| ": reviewFeedback changed, and only a review writes it: restore it".into())
        })
    }

    /// Checks that a review gave a verdict and was counted.
    fn reviewed(&self) -> Option<String> {
        let StoryChange { before, after } = self;
        if !before.awaits_review() {
            return Some(format!(" did not need a review: restore its {FIELDS}"));
        }
        if !matches!(after.review, Review::Approved | Review::ChangesRequested) {
            return Some(
                " has no verdict: set reviewStatus to \"approved\" with passes true, or to \"changes_requested\" with \
                 reviewFeedback, or restore its fields"
                    .into(),
            );
        }
        let expected = before.review_count.saturating_add(1);
        let count = after.review_count;
        (count != expected)
            .then(|| format!(": reviewCount is {count}, and a review adds one: set it to {expected}"))
    }

    /// Checks that a fix asked for the next review.
    fn fixed(&self) -> Option<String> {
        if self.before.review != Review::ChangesRequested {
            return Some(format!(" had no changes requested: restore its {FIELDS}"));
        }
        match self.after.review {
            Review::Needed => self.counted(),
            Review::ChangesRequested => Some(
                " still has changes requested: answer all of reviewFeedback and set reviewStatus to \"needs_review\", or \
                 restore its fields"
                    .into(),
            ),
            _ => Some(self.judged()),
        }
    }

    fn judged(&self) -> String {
        let (before, after, wanted) =
            (self.before.review.json(), self.after.review.json(), Review::Needed.json());
        format!(
            ": reviewStatus changed from {before} to {after}, and only a review judges: set it to {wanted}"
        )
    }

    fn counted(&self) -> Option<String> {
        let (before, after) = (self.before.review_count, self.after.review_count);
        (before != after).then(|| {
            format!(
                ": reviewCount changed from {before} to {after}, and only a review counts: set it to {before}"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::list;
    use super::*;
    use serde_json::{Value, json};

    /// `id passes status count feedback`, one story a line.
    fn stories(lines: &[&str]) -> TaskList {
        let story = |line: &&str| {
            let mut words = line.splitn(5, ' ');
            let mut word = || words.next().unwrap_or_default().to_owned();
            let (id, passes, status) = (word(), word() == "yes", word());
            let status = if status == "-" || status.is_empty() { Value::Null } else { json!(status) };
            let count: u64 = word().parse().unwrap_or(0);
            json!({"id": id, "passes": passes, "reviewStatus": status, "reviewCount": count, "reviewFeedback": word()})
        };
        list(lines.iter().map(story).collect())
    }

    /// Its name, the stories before and after, and a part of the expected problem.
    type Case<'a> = (&'a str, &'a [&'a str], &'a [&'a str], Option<&'a str>);

    fn check(mode: Mode, cases: &[Case]) {
        for (name, before, after, expected) in cases {
            let found = transitions(&stories(before), &stories(after), mode).err();
            match (expected, &found) {
                (None, None) => {}
                (Some(part), Some(problems)) if problems.iter().any(|problem| problem.contains(part)) => {}
                _ => panic!("{mode}, {name}: {found:?}, expected {expected:?}"),
            }
        }
    }

    #[test]
    fn implementing_puts_one_story_forward_and_judges_nothing() {
        let before: &[&str] = &["a no", "b no", "ok yes approved 1"];
        check(
            Mode::Implement,
            &[
                ("nothing", before, before, None),
                ("it passes", before, &["a yes", "b no", "ok yes approved 1"], None),
                ("it is up for review", before, &["a yes needs_review", "b no", "ok yes approved 1"], None),
                ("without passing", before, &["a no needs_review", "b no", "ok yes approved 1"], None),
                ("another than the first", before, &["a no", "b yes", "ok yes approved 1"], None),
                ("in another order", before, &["ok yes approved 1", "b no", "a yes"], None),
                ("a new story", before, &["a no", "b no", "ok yes approved 1", "c no"], None),
                (
                    "a new story, done",
                    before,
                    &["a no", "b no", "ok yes approved 1", "c yes needs_review"],
                    None,
                ),
                (
                    "a new story, approved",
                    before,
                    &["a no", "b no", "ok yes approved 1", "c yes approved 1"],
                    Some(
                        "story c: reviewStatus changed from null to \"approved\", and only a review judges: set it to \"needs_review\"",
                    ),
                ),
                (
                    "approved",
                    before,
                    &["a yes approved", "b no", "ok yes approved 1"],
                    Some("story a: reviewStatus changed from null to \"approved\", and only a review judges"),
                ),
                (
                    "counted",
                    before,
                    &["a yes needs_review 1", "b no", "ok yes approved 1"],
                    Some("story a: reviewCount changed from 0 to 1, and only a review counts: set it to 0"),
                ),
                (
                    "feedback",
                    before,
                    &["a yes needs_review 0 fine", "b no", "ok yes approved 1"],
                    Some("story a: reviewFeedback changed"),
                ),
                (
                    "two at once",
                    before,
                    &["a yes", "b no needs_review", "ok yes approved 1"],
                    Some("stories a, b were marked as done in one iteration: keep one"),
                ),
                ("gone", before, &["a no", "ok yes approved 1"], Some("story b is missing: restore it")),
                (
                    "an approved one opened again",
                    before,
                    &["a no", "b no", "ok no - 1"],
                    Some("story ok is approved: restore passes"),
                ),
                ("taken back", &["a yes"], &["a no"], None),
            ],
        );
    }

    #[test]
    fn a_review_judges_one_story_that_waited_for_it() {
        let before: &[&str] = &["a yes needs_review 1", "b yes", "c no", "ok yes approved 1"];
        let with_a = |a: &'static str| [a, "b yes", "c no", "ok yes approved 1"];
        check(
            Mode::Review,
            &[
                ("nothing: blocked, or failed", before, before, None),
                ("approved", before, &with_a("a yes approved 2"), None),
                ("approved, and passes with it", &["a no needs_review"], &["a yes approved 1"], None),
                ("changes requested", before, &with_a("a yes changes_requested 2 mend it"), None),
                ("and it does not pass", before, &with_a("a no changes_requested 2 mend it"), None),
                (
                    "which only passed",
                    before,
                    &["a yes needs_review 1", "b yes approved 1", "c no", "ok yes approved 1"],
                    None,
                ),
                ("with a new story", &["a yes"], &["a yes approved 1", "follow-up no"], None),
                (
                    "with a new story that passes",
                    &["a yes"],
                    &["a yes approved 1", "n yes"],
                    Some("story n is new: set passes to false"),
                ),
                (
                    "not counted",
                    before,
                    &with_a("a yes approved 1"),
                    Some("story a: reviewCount is 1, and a review adds one: set it to 2"),
                ),
                ("counted twice", before, &with_a("a no changes_requested 3 x"), Some("set it to 2")),
                ("counted only", before, &with_a("a yes needs_review 2"), Some("story a has no verdict")),
                ("taken off", before, &with_a("a no - 1"), Some("story a has no verdict")),
                ("feedback only", before, &with_a("a yes needs_review 1 hm"), Some("story a has no verdict")),
                (
                    "two verdicts",
                    before,
                    &["a yes approved 2", "b yes approved 1", "c no", "ok yes approved 1"],
                    Some("stories a, b were reviewed in one iteration"),
                ),
                (
                    "not put up for review",
                    before,
                    &["a yes needs_review 1", "b yes", "c yes approved 1", "ok yes approved 1"],
                    Some("story c did not need a review"),
                ),
                (
                    "what is approved",
                    before,
                    &["a yes needs_review 1", "b yes", "c no", "ok no changes_requested 2 x"],
                    Some("story ok did not need a review"),
                ),
                ("gone", before, &["b yes", "c no", "ok yes approved 1"], Some("story a is missing")),
            ],
        );
    }

    #[test]
    fn a_fix_answers_feedback_and_asks_for_the_next_review() {
        let before: &[&str] = &["a no changes_requested 1 mend it", "b no", "c yes needs_review"];
        let with_a = |a: &'static str| [a, "b no", "c yes needs_review"];
        check(
            Mode::ReviewFix,
            &[
                ("nothing", before, before, None),
                ("answered", before, &with_a("a yes needs_review 1"), None),
                ("the feedback may stay", before, &with_a("a no needs_review 1 mend it"), None),
                (
                    "approved by itself",
                    before,
                    &with_a("a yes approved 1"),
                    Some(
                        "story a: reviewStatus changed from \"changes_requested\" to \"approved\", and only a review judges: set it to \"needs_review\"",
                    ),
                ),
                (
                    "the status dropped",
                    before,
                    &with_a("a yes - 1"),
                    Some("from \"changes_requested\" to null"),
                ),
                ("counted", before, &with_a("a yes needs_review 2"), Some("set it to 1")),
                (
                    "the feedback rewritten",
                    before,
                    &with_a("a no changes_requested 1 less"),
                    Some("story a still has changes requested"),
                ),
                (
                    "other work",
                    before,
                    &["a no changes_requested 1 mend it", "b yes", "c yes needs_review"],
                    Some("story b had no changes requested"),
                ),
                (
                    "a new story",
                    before,
                    &["a yes needs_review 1", "b no", "c yes needs_review", "n no"],
                    None,
                ),
            ],
        );
    }
}
