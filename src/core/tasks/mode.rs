//! The mode and the story of an iteration. Both follow from the task list alone.

use super::checklist::words;
use super::source::how_to_tick;
use super::{Review, Story, TaskFormat, TaskList, counts};
use crate::core::text::clean;
use std::collections::BTreeSet;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Implement,
    Review,
    ReviewFix,
}

impl Mode {
    /// Returns the name used in telemetry and prompts.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Implement => "implement",
            Mode::Review => "review",
            Mode::ReviewFix => "review-fix",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns the mode of the next iteration. Feedback is answered before anything is reviewed, and work is reviewed
/// before anything new is started.
pub fn mode(list: &TaskList, skip_review: bool) -> Mode {
    let skip_review = list.skips_review(skip_review);
    let any = |wanted: &dyn Fn(&Story) -> bool| !skip_review && list.stories.iter().any(wanted);
    if any(&|story| story.review == Review::ChangesRequested) {
        Mode::ReviewFix
    } else if any(&Story::awaits_review) {
        Mode::Review
    } else {
        Mode::Implement
    }
}

/// Returns the story of an iteration in this mode: the first by priority, then by position, whose dependencies pass.
pub fn pick(list: &TaskList, mode: Mode) -> Option<&Story> {
    let passing: BTreeSet<&str> =
        list.stories.iter().filter(|story| story.passes).map(|story| story.id.as_str()).collect();
    let wanted = |story: &&Story| match mode {
        Mode::ReviewFix => story.review == Review::ChangesRequested,
        Mode::Review => story.awaits_review(),
        Mode::Implement => !story.passes && story.depends_on.iter().all(|id| passing.contains(id.as_str())),
    };
    let rank = |story: &Story| story.priority.unwrap_or(f64::INFINITY);
    list.stories.iter().filter(wanted).min_by(|a, b| rank(a).total_cmp(&rank(b)))
}

/// Returns what the runner tells the agent about its story, in one paragraph after the prompt.
pub fn assignment(list: &TaskList, skip_review: bool, review_cap: u64) -> String {
    let mode = mode(list, skip_review);
    let counts = counts(list, skip_review);
    let form = list.source.form;
    let (noun, nouns) = (form.noun(), form.nouns());
    let so_far = format!("{} of {} {nouns} done.", counts.done, counts.total);
    let Some(story) = pick(list, mode) else {
        let file = &list.source.file;
        return format!("Mode of this iteration: {mode}. {so_far} No {noun} is left in {file}.");
    };
    let (title, name) = match form {
        TaskFormat::Checklist => ("Item", words(story).to_owned()),
        _ => ("Story", story.name()),
    };
    let name = clean::excerpt(&name, 120);
    let mut text = format!("Mode of this iteration: {mode}. {title}: {name}. {so_far}");
    text.push_str(&how_to_tick(&list.source));
    if mode == Mode::Review && review_cap > 0 {
        let number = story.review_count + 1;
        text.push_str(&format!(" This is review {number} of at most {review_cap}."));
    }
    if skip_review && form.has_reviews() {
        text.push_str(" Reviews are switched off: a story is done when it passes.");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::list;
    use super::super::{TaskSource, checklist};
    use super::*;
    use serde_json::json;

    #[test]
    fn the_mode_and_its_story_follow_from_the_list() {
        let open = |id: &str, priority: u64| json!({"id": id, "passes": false, "priority": priority});
        let approved = |id: &str| json!({"id": id, "passes": true, "reviewStatus": "approved"});
        let with = |id: &str, passes: bool, status: &str| json!({"id": id, "passes": passes, "reviewStatus": status, "reviewFeedback": "f"});
        let after = |id: &str, on: &str| json!({"id": id, "passes": false, "priority": 1, "dependsOn": [on]});
        let cases = [
            ("an empty list", json!([]), "implement", None),
            ("by priority", json!([open("a", 2), open("b", 1)]), "implement", Some("b")),
            ("the same priority", json!([open("a", 1), open("b", 1)]), "implement", Some("a")),
            ("none comes last", json!([{"id": "a", "passes": false}, open("b", 9)]), "implement", Some("b")),
            ("what it depends on goes first", json!([after("a", "b"), open("b", 9)]), "implement", Some("b")),
            ("which passes", json!([open("c", 2), after("a", "b"), approved("b")]), "implement", Some("a")),
            ("all done", json!([approved("a")]), "implement", None),
            ("it passes", json!([open("a", 1), {"id": "b", "passes": true}]), "review", Some("b")),
            ("up for review", json!([open("a", 1), with("b", true, "needs_review")]), "review", Some("b")),
            ("up for review, not passing", json!([with("b", false, "needs_review")]), "review", Some("b")),
            (
                "changes come first",
                json!([open("a", 1), with("b", true, "needs_review"), with("c", false, "changes_requested")]),
                "review-fix",
                Some("c"),
            ),
        ];
        for (name, stories, expected, story) in cases {
            let list = list(stories);
            let mode = mode(&list, false);
            assert_eq!(
                (mode.name(), pick(&list, mode).map(|story| story.id.as_str())),
                (expected, story),
                "{name}"
            );
        }
    }

    #[test]
    fn without_reviews_every_iteration_implements() {
        let list = list(json!([
            {"id": "a", "passes": false, "reviewStatus": "changes_requested", "reviewFeedback": "f"}, {"id": "b", "passes": true}
        ]));
        assert_eq!(mode(&list, true), Mode::Implement);
        assert_eq!(pick(&list, Mode::Implement).map(|story| story.id.as_str()), Some("a"));
    }

    #[test]
    fn the_assignment_names_mode_story_and_count() {
        let list = list(json!([
            {"id": "a", "title": "Dates", "passes": true, "reviewCount": 1},
            {"id": "b", "title": "Times", "passes": false}
        ]));
        assert_eq!(
            assignment(&list, false, 5),
            "Mode of this iteration: review. Story: a (Dates). 0 of 2 stories done. This is review 2 of at most 5."
        );
        assert_eq!(
            assignment(&list, true, 5),
            "Mode of this iteration: implement. Story: b (Times). 1 of 2 stories done. Reviews are switched off: a \
             story is done when it passes."
        );
    }

    #[test]
    fn other_formats_are_explained_in_the_assignment() {
        let list = |source: TaskSource, list: TaskList| TaskList { source, ..list };
        let prd = list(
            TaskSource { file: "prd.json".into(), form: TaskFormat::Stories },
            super::super::tests::list(
                json!([{"id": "a", "title": "Dates", "passes": true}, {"id": "b", "passes": false}]),
            ),
        );
        let text = assignment(&prd, false, 5);
        assert!(
            text.starts_with("Mode of this iteration: implement. Story: b. 1 of 2 stories done. The stories are in prd.json. When")
                && text.contains("set its passes to true")
                && !text.contains("review"),
            "{text}"
        );
        let boxes = list(TaskSource::of_markdown("fix_plan.md".into()), checklist("- [x] a\n- [ ] b"));
        let text = assignment(&boxes, true, 5);
        assert!(
            text.starts_with("Mode of this iteration: implement. Item: b. 1 of 2 items done. The items are lines of fix_plan.md.")
                && text.contains("[ ] to [x]")
                && !text.contains("review"),
            "{text}"
        );
        let done = list(TaskSource::of_markdown("p.md".into()), checklist("- [x] a"));
        assert_eq!(
            assignment(&done, false, 5),
            "Mode of this iteration: implement. 1 of 1 items done. No item is left in p.md."
        );
    }
}
