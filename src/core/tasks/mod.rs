//! The task list: its stories, their states, and what an iteration may change in it. It comes from
//! `ralph/tasks.json`, a `prd.json` or a Markdown checklist; [`TaskSource`] knows the differences.
//!
//! People, agents and other tools write these files, so unknown fields and the order are kept.

mod checklist;
mod mode;
mod review;
mod source;
mod transition;
mod validation;

pub use checklist::checklist;
pub use mode::{Mode, assignment, mode, pick};
pub use review::{apply_review_cap, keep_review};
pub use source::{DEFAULT_FILE, TaskFormat, TaskSource, prompt, summary};
pub use transition::transitions;
pub use validation::validate;

use crate::core::text::clean;
use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Value, json};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskList {
    /// Where it came from.
    pub source: TaskSource,
    pub project: String,
    pub branch_name: String,
    pub description: String,
    pub stories: Vec<Story>,
    /// The file as it was read, with unknown fields.
    document: Value,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Story {
    pub id: String,
    pub title: String,
    /// 1 comes before 2; a story without a number comes last.
    pub priority: Option<f64>,
    pub passes: bool,
    pub review: Review,
    pub review_count: u64,
    pub review_feedback: String,
    pub notes: String,
    pub depends_on: Vec<String>,
    /// Approved by the review cap, not by a reviewer.
    pub approved_at_cap: bool,
}

/// `reviewStatus`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Review {
    #[default]
    Open,
    Needed,
    ChangesRequested,
    Approved,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub total: u64,
    pub passing: u64,
    pub approved: u64,
    /// Stories that need no more work, as counted in telemetry and summary.
    pub done: u64,
}

impl Review {
    /// Returns the value in the file, as JSON.
    pub fn json(self) -> &'static str {
        match self {
            Review::Open => "null",
            Review::Needed => "\"needs_review\"",
            Review::ChangesRequested => "\"changes_requested\"",
            Review::Approved => "\"approved\"",
        }
    }

    fn value(self) -> Value {
        serde_json::from_str(self.json()).unwrap_or_default()
    }
}

impl Story {
    /// Returns whether the story is said to be done and has not been reviewed.
    pub fn awaits_review(&self) -> bool {
        self.review == Review::Needed || (self.passes && self.review == Review::Open)
    }

    /// Returns the fields that Ralph writes.
    fn written(&self) -> [(&'static str, Value); 6] {
        [
            ("passes", json!(self.passes)),
            ("reviewStatus", self.review.value()),
            ("reviewCount", json!(self.review_count)),
            ("reviewFeedback", json!(self.review_feedback)),
            ("notes", json!(self.notes)),
            (APPROVED_AT_CAP, json!(self.approved_at_cap)),
        ]
    }

    pub fn is_done(&self, skip_review: bool) -> bool {
        self.passes && (skip_review || self.review == Review::Approved)
    }

    /// Returns id and title, for sentences.
    pub fn name(&self) -> String {
        if self.title.is_empty() { self.id.clone() } else { format!("{} ({})", self.id, self.title) }
    }
}

/// Returns whether every story is done. An empty list is done.
pub fn is_done(list: &TaskList, skip_review: bool) -> bool {
    let skip_review = list.skips_review(skip_review);
    list.stories.iter().all(|story| story.is_done(skip_review))
}

pub fn counts(list: &TaskList, skip_review: bool) -> Counts {
    let skip_review = list.skips_review(skip_review);
    let count =
        |wanted: &dyn Fn(&Story) -> bool| list.stories.iter().filter(|story| wanted(story)).count() as u64;
    Counts {
        total: list.stories.len() as u64,
        passing: count(&|story| story.passes),
        approved: count(&|story| story.review == Review::Approved),
        done: count(&|story| story.is_done(skip_review)),
    }
}

impl TaskList {
    pub fn empty(source: TaskSource) -> TaskList {
        TaskList { source, ..TaskList::default() }
    }

    /// Returns whether reviews are skipped, by the user or by a format without reviews.
    pub fn skips_review(&self, asked: bool) -> bool {
        asked || !self.source.form.has_reviews()
    }

    /// Returns the file's text with the changes in the stories, in the layout of `like`, its previous text.
    pub fn text(&self, like: &str) -> String {
        let document = self.document();
        let ending = if like.ends_with('\n') { "\n" } else { "" };
        match indent(like) {
            Some(indent) => pretty(&document, indent) + ending,
            None => document.to_string() + ending,
        }
    }

    /// Writes only fields whose meaning changed, so that absent fields and other spellings stay.
    fn document(&self) -> Value {
        let mut document = self.document.clone();
        let Some(rows) = document["userStories"].as_array_mut() else { return document };
        for (story, row) in self.stories.iter().zip(rows.iter_mut().filter_map(Value::as_object_mut)) {
            let before = validation::story(row);
            for ((field, was), (_, is)) in before.written().into_iter().zip(story.written()) {
                if was != is {
                    row.insert(field.into(), is);
                }
            }
        }
        document
    }
}

/// Returns the indentation of the second line, or `None` if all is on one line.
fn indent(text: &str) -> Option<&str> {
    let line = text.trim_end().lines().nth(1)?;
    let indent = &line[..line.len() - line.trim_start().len()];
    Some(if indent.is_empty() { "  " } else { indent })
}

fn pretty(document: &Value, indent: &str) -> String {
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(indent.as_bytes());
    let written = document.serialize(&mut Serializer::with_formatter(&mut bytes, formatter));
    written.ok().and_then(|()| String::from_utf8(bytes).ok()).unwrap_or_else(|| document.to_string())
}

type Row = Map<String, Value>;

/// The field that marks a story approved by the review cap.
const APPROVED_AT_CAP: &str = "approvedAtCap";

fn short_id(id: &str) -> String {
    clean::excerpt(id, 40)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A list with these stories, each given as JSON.
    #[allow(clippy::needless_pass_by_value, reason = "callers pass a literal")]
    pub fn list(stories: Value) -> TaskList {
        validate(&json!({"userStories": stories})).unwrap_or_else(|errors| panic!("{errors:?}"))
    }

    #[test]
    fn a_story_is_done_when_it_passes_and_is_approved_unless_reviews_are_skipped() {
        let cases = [
            ("nothing to do", json!([]), true, true),
            ("open", json!([{"id": "a", "passes": false}]), false, false),
            ("passes", json!([{"id": "a", "passes": true}]), false, true),
            ("approved", json!([{"id": "a", "passes": true, "reviewStatus": "approved"}]), true, true),
            (
                "one of two",
                json!([{"id": "a", "passes": true, "reviewStatus": "approved"}, {"id": "b", "passes": false}]),
                false,
                false,
            ),
            (
                "up for review",
                json!([{"id": "a", "passes": true, "reviewStatus": "needs_review"}]),
                false,
                true,
            ),
        ];
        for (name, stories, reviewed, skipped) in cases {
            let list = list(stories);
            assert_eq!((is_done(&list, false), is_done(&list, true)), (reviewed, skipped), "{name}");
        }
        let list = list(json!([
            {"id": "a", "passes": true, "reviewStatus": "approved"}, {"id": "b", "passes": true}, {"id": "c", "passes": false}
        ]));
        assert_eq!(counts(&list, false), Counts { total: 3, passing: 2, approved: 1, done: 1 });
        assert_eq!(counts(&list, true).done, 2);
    }

    #[test]
    fn a_rewrite_keeps_everything_that_did_not_change() {
        let text = "{\n    \"zeta\": [1],\n    \"userStories\": [\n        {\n            \"passes\": false,\n            \
                    \"mine\": {\"b\": 1, \"a\": 2},\n            \"id\": \"a\",\n            \"reviewStatus\": null\n        \
                    }\n    ],\n    \"alpha\": null\n}\n";
        let mut list = validate(&serde_json::from_str(text).unwrap()).unwrap();
        let same: Value = serde_json::from_str(&list.text(text)).unwrap();
        assert_eq!(same.to_string(), serde_json::from_str::<Value>(text).unwrap().to_string());
        list.stories[0].passes = true;
        list.stories[0].review = Review::Needed;
        let written = list.text(text);
        let expected = text
            .replace("false", "true")
            .replace("\"reviewStatus\": null", "\"reviewStatus\": \"needs_review\"")
            .replace("[1]", "[\n        1\n    ]")
            .replace(
                "{\"b\": 1, \"a\": 2}",
                "{\n                \"b\": 1,\n                \"a\": 2\n            }",
            );
        assert_eq!(written, expected);
    }

    fn any_list() -> impl Strategy<Value = TaskList> {
        let status = prop::sample::select(vec![
            Review::Open,
            Review::Needed,
            Review::ChangesRequested,
            Review::Approved,
        ]);
        let story =
            (any::<bool>(), status, 0..9_u64, prop::option::of(0..5_u8), any::<prop::sample::Index>());
        prop::collection::vec(story, 0..8).prop_map(|stories| {
            let story = |(at, (passes, review, count, priority, on)): (usize, &(bool, Review, u64, Option<u8>, prop::sample::Index))| {
                // Only on stories before it, so that there is no circle.
                let on: Vec<_> = (at > 0).then(|| format!("s{}", on.index(at))).into_iter().collect();
                json!({"id": format!("s{at}"), "passes": *passes || *review == Review::Approved, "reviewStatus": review.value(),
                    "reviewCount": count, "reviewFeedback": "f", "priority": priority, "dependsOn": on})
            };
            list(stories.iter().enumerate().map(story).collect())
        })
    }

    proptest! {
        #[test]
        fn there_is_a_story_for_every_iteration_until_all_are_done(list in any_list(), skip_review: bool) {
            let story = pick(&list, mode(&list, skip_review));
            prop_assert_eq!(story.is_none(), is_done(&list, skip_review));
        }

        #[test]
        fn no_change_is_always_allowed(list in any_list()) {
            for mode in [Mode::Implement, Mode::Review, Mode::ReviewFix] {
                prop_assert_eq!(transitions(&list, &list, mode), Ok(()));
            }
        }

        #[test]
        fn a_written_list_is_read_back_unchanged(before in any_list(), after in any_list(), cap in 0..4_u64) {
            let mut changed = after;
            keep_review(&before, &mut changed);
            apply_review_cap(&mut changed, cap);
            let text = changed.text("{\n}");
            let again = validate(&serde_json::from_str(&text).unwrap()).unwrap();
            prop_assert_eq!(&again.stories, &changed.stories);
            prop_assert_eq!(again.text(&text), text);
        }
    }

    #[test]
    fn the_layout_is_kept() {
        let cases = [
            ("{\"userStories\":[]}", "{\"userStories\":[]}"),
            ("{\"userStories\":[]}\n", "{\"userStories\":[]}\n"),
            ("{\n\t\"userStories\": []\n}", "{\n\t\"userStories\": []\n}"),
            ("{\n\"userStories\": []\n}\n", "{\n  \"userStories\": []\n}\n"),
        ];
        for (text, expected) in cases {
            let list = validate(&serde_json::from_str(text).unwrap()).unwrap();
            assert_eq!(list.text(text), expected);
        }
    }
}
