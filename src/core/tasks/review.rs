//! Ralph's own changes to review fields: the review cap, and undoing the review of an iteration that gave up.

use super::{Review, TaskList};
use std::collections::BTreeMap;

/// Approves and marks stories that have been reviewed `cap` times and still need changes: another round would not
/// help. They keep the feedback. Returns their ids; a cap of 0 is off.
pub fn apply_review_cap(list: &mut TaskList, cap: u64) -> Vec<String> {
    let mut approved = Vec::new();
    for story in &mut list.stories {
        if cap == 0 || story.review != Review::ChangesRequested || story.review_count < cap {
            continue;
        }
        story.review = Review::Approved;
        story.passes = true;
        story.approved_at_cap = true;
        let note = format!(
            "Approved at the review cap ({} reviews); open points are in reviewFeedback.",
            story.review_count
        );
        story.notes = if story.notes.trim().is_empty() { note } else { format!("{}\n{note}", story.notes) };
        approved.push(story.id.clone());
    }
    approved
}

/// Restores the review fields after BLOCKED or DECIDE: an iteration that gave up has not reviewed anything. Leaves
/// `passes` as it is. Returns the ids of the stories that had changed.
pub fn keep_review(before: &TaskList, after: &mut TaskList) -> Vec<String> {
    let earlier: BTreeMap<_, _> = before.stories.iter().map(|story| (story.id.as_str(), story)).collect();
    let mut restored = Vec::new();
    for story in &mut after.stories {
        let Some(was) = earlier.get(story.id.as_str()) else { continue };
        let same = story.review == was.review
            && story.review_count == was.review_count
            && story.review_feedback == was.review_feedback;
        if same {
            continue;
        }
        story.review = was.review;
        story.review_count = was.review_count;
        story.review_feedback = was.review_feedback.clone();
        // An approved story passes, or the file would contradict itself.
        story.passes |= was.review == Review::Approved;
        restored.push(story.id.clone());
    }
    restored
}

#[cfg(test)]
mod tests {
    use super::super::tests::list;
    use super::super::{is_done, validate};
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn at_the_cap_a_review_approves_and_is_marked() {
        let asked = |id: &str, count: u64| json!({"id": id, "passes": false, "reviewStatus": "changes_requested", "reviewCount": count, "reviewFeedback": "Off by one", "notes": "n"});
        let mut capped = list(
            json!([asked("a", 4), asked("b", 5), asked("c", 6), {"id": "d", "passes": true, "reviewCount": 9}]),
        );
        assert_eq!(apply_review_cap(&mut capped, 0), [""; 0]);
        assert_eq!(apply_review_cap(&mut capped, 5), ["b", "c"]);
        assert_eq!(apply_review_cap(&mut capped, 5), [""; 0], "once");
        let written: Value = serde_json::from_str(&capped.text("{}")).unwrap();
        let story = &written["userStories"][1];
        assert_eq!((&story["reviewStatus"], &story["passes"]), (&json!("approved"), &json!(true)));
        assert_eq!((&story["approvedAtCap"], &story["reviewFeedback"]), (&json!(true), &json!("Off by one")));
        assert!(
            story["notes"].as_str().unwrap().starts_with("n\nApproved at the review cap (5 reviews)"),
            "{story}"
        );
        assert_eq!(written["userStories"][0], asked("a", 4));
        let again = validate(&written).unwrap();
        assert!(again.stories[1].approved_at_cap && !is_done(&again, false));
    }

    #[test]
    fn a_blocked_iteration_has_not_reviewed() {
        let before = list(json!([
            {"id": "a", "passes": true, "reviewStatus": "needs_review", "reviewCount": 1},
            {"id": "b", "passes": false},
            {"id": "c", "passes": true, "reviewStatus": "approved"},
        ]));
        let mut after = list(json!([
            {"id": "a", "passes": false, "reviewStatus": "changes_requested", "reviewCount": 2, "reviewFeedback": "x"},
            {"id": "b", "passes": true},
            {"id": "c", "passes": false},
            {"id": "new", "passes": false, "notes": "found on the way"},
        ]));
        assert_eq!(keep_review(&before, &mut after), ["a", "c"]);
        let written: Value = serde_json::from_str(&after.text("{}")).unwrap();
        let expected = json!([
            {"id": "a", "passes": false, "reviewStatus": "needs_review", "reviewCount": 1, "reviewFeedback": ""},
            {"id": "b", "passes": true},
            {"id": "c", "passes": true, "reviewStatus": "approved"},
            {"id": "new", "passes": false, "notes": "found on the way"},
        ]);
        assert_eq!(written["userStories"], expected);
        assert!(validate(&written).is_ok());
        assert_eq!(keep_review(&before, &mut after), [""; 0]);
    }
}
