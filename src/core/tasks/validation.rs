//! Validates the JSON of a task list, and names story and field in every error.

use super::{APPROVED_AT_CAP, Review, Row, Story, TaskList, TaskSource, short_id};
use crate::core::text::clean;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the task list, or everything that is wrong with it. Absent and `null` mean the default; only `id` and
/// `passes` are required. Unknown fields are ignored.
pub fn validate(document: &Value) -> Result<TaskList, Vec<String>> {
    let Some(top) = document.as_object() else {
        return Err(vec![format!(
            "the file contains {}; expected an object with \"userStories\"",
            shown(document)
        )]);
    };
    let mut reader = Reader { row: top, prefix: String::new(), errors: Vec::new() };
    // The agent runs these commands; here only their form matters.
    reader.texts("verifyCommands");
    let mut list = TaskList {
        project: reader.text("project"),
        branch_name: reader.text("branchName"),
        description: reader.text("description"),
        stories: Vec::new(),
        source: TaskSource::default(),
        document: document.clone(),
    };
    let mut errors = reader.errors;
    match top.get("userStories") {
        Some(Value::Array(rows)) => {
            list.stories = rows.iter().enumerate().map(|(at, row)| read(row, at, &mut errors)).collect();
        }
        None => errors.push("userStories is missing; expected a list of stories".into()),
        Some(other) => errors.push(format!("userStories is {}; expected a list of stories", shown(other))),
    }
    errors.extend(id_errors(&list.stories));
    if errors.is_empty() { Ok(list) } else { Err(errors) }
}

/// Reads a story that is known to be valid.
pub fn story(row: &Row) -> Story {
    Reader { row, prefix: String::new(), errors: Vec::new() }.story()
}

fn read(row: &Value, at: usize, errors: &mut Vec<String>) -> Story {
    let Some(row) = row.as_object() else {
        errors.push(format!("story {} is {}; expected an object", at + 1, shown(row)));
        return Story::default();
    };
    let id = row.get("id").and_then(Value::as_str).filter(|id| !id.trim().is_empty());
    let name = id.map_or_else(|| (at + 1).to_string(), short_id);
    let mut reader = Reader { row, prefix: format!("story {name}: "), errors: Vec::new() };
    let story = reader.story();
    if id.is_none() {
        reader.wrong("id", "a non-empty string");
    }
    if !row.get("passes").is_some_and(Value::is_boolean) {
        reader.wrong("passes", "true or false");
    }
    if reader.errors.is_empty() {
        if story.review == Review::Approved && !story.passes {
            reader.say("reviewStatus is \"approved\" although passes is false: correct one of them");
        }
        if story.review == Review::ChangesRequested && story.review_feedback.trim().is_empty() {
            reader.say("reviewFeedback is empty although changes were requested: say what has to change");
        }
    }
    errors.append(&mut reader.errors);
    story
}

struct Reader<'a> {
    row: &'a Row,
    prefix: String,
    errors: Vec<String>,
}

impl Reader<'_> {
    fn story(&mut self) -> Story {
        self.texts("acceptanceCriteria");
        Story {
            id: self.row.get("id").and_then(Value::as_str).unwrap_or_default().to_owned(),
            title: self.text("title"),
            priority: self.value("priority", "a number", Value::as_f64),
            passes: self.row.get("passes").and_then(Value::as_bool).unwrap_or_default(),
            review: self.value("reviewStatus", REVIEW_STATUS, review).unwrap_or_default(),
            review_count: self
                .value("reviewCount", "a whole number of 0 or more", Value::as_u64)
                .unwrap_or_default(),
            review_feedback: self.text("reviewFeedback"),
            notes: self.text("notes"),
            depends_on: self.texts("dependsOn"),
            approved_at_cap: self.row.get(APPROVED_AT_CAP) == Some(&Value::Bool(true)),
        }
    }

    /// Parses a field that is there, and records an error if its value is not what is wanted.
    fn value<T>(&mut self, field: &str, wanted: &str, parse: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let parsed = parse(self.row.get(field).filter(|value| !value.is_null())?);
        if parsed.is_none() {
            self.wrong(field, wanted);
        }
        parsed
    }

    fn text(&mut self, field: &str) -> String {
        self.value(field, "a string", |value| value.as_str().map(str::to_owned)).unwrap_or_default()
    }

    fn texts(&mut self, field: &str) -> Vec<String> {
        let parse = |value: &Value| {
            value
                .as_array()?
                .iter()
                .map(|value| value.as_str().map(str::to_owned))
                .collect::<Option<Vec<_>>>()
        };
        self.value(field, "a list of strings", parse).unwrap_or_default()
    }

    fn say(&mut self, what: &str) {
        self.errors.push(format!("{}{what}", self.prefix));
    }

    fn wrong(&mut self, field: &str, wanted: &str) {
        let is = self.row.get(field).map_or_else(|| "missing".into(), shown);
        self.say(&format!("{field} is {is}; expected {wanted}"));
    }
}

const REVIEW_STATUS: &str = "null, \"needs_review\", \"changes_requested\" or \"approved\"";

fn review(value: &Value) -> Option<Review> {
    match value.as_str()?.trim().to_lowercase().replace(['-', ' '], "_").as_str() {
        // What other tools write for "not reviewed yet".
        "" | "none" | "pending" => Some(Review::Open),
        "needs_review" => Some(Review::Needed),
        "changes_requested" => Some(Review::ChangesRequested),
        "approved" => Some(Review::Approved),
        _ => None,
    }
}

/// Returns what is wrong between stories: duplicate ids and dependencies that cannot be met.
fn id_errors(stories: &[Story]) -> Vec<String> {
    let mut errors = Vec::new();
    let mut known = BTreeMap::new();
    for story in stories.iter().filter(|story| !story.id.trim().is_empty()) {
        if known.insert(story.id.as_str(), story).is_some() {
            errors.push(format!("story {}: id is used by two stories", short_id(&story.id)));
        }
    }
    for story in stories {
        for missing in story.depends_on.iter().filter(|id| !known.contains_key(id.as_str())) {
            let (id, missing) = (short_id(&story.id), short_id(missing));
            errors.push(format!("story {id}: dependsOn names {missing:?}, which does not exist"));
        }
    }
    if errors.is_empty() {
        errors.extend(cycle(stories, &known));
    }
    errors
}

/// Finds stories that depend on each other, so that none of them can be started.
fn cycle<'a>(stories: &'a [Story], known: &BTreeMap<&'a str, &'a Story>) -> Option<String> {
    let mut free: BTreeSet<&str> = BTreeSet::new();
    for story in stories {
        let (mut path, mut on_path) = (vec![story], BTreeSet::from([story.id.as_str()]));
        while let Some(last) = path.last() {
            let Some(next) = last.depends_on.iter().find(|id| !free.contains(id.as_str())) else {
                free.insert(&last.id);
                on_path.remove(last.id.as_str());
                path.pop();
                continue;
            };
            if !on_path.insert(next) {
                let from = path.iter().position(|story| story.id == *next).unwrap_or_default();
                let ids: Vec<_> = path[from..].iter().take(10).map(|story| short_id(&story.id)).collect();
                let more = if path.len() - from > 10 { " → …" } else { "" };
                let (first, ids) = (short_id(next), ids.join(" → "));
                return Some(format!("story {first}: dependsOn is circular: {ids}{more} → {first}"));
            }
            path.push(known.get(next.as_str())?);
        }
    }
    None
}

fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".into(),
        Value::Array(items) if items.len() > 3 => "a list".into(),
        other => clean::excerpt(&other.to_string(), 40),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[allow(clippy::needless_pass_by_value, reason = "callers pass a literal")]
    fn errors(document: Value) -> Vec<String> {
        validate(&document).expect_err("it should be refused")
    }

    #[test]
    fn a_full_list_is_read() {
        let list = validate(&json!({
            "project": "P", "branchName": "b", "description": "d", "verifyCommands": ["make"], "other": 1,
            "userStories": [{"id": "US-1", "title": "t", "acceptanceCriteria": ["c"], "priority": 2, "passes": false,
                "reviewStatus": "changes_requested", "reviewCount": 3, "reviewFeedback": "f", "notes": "n",
                "dependsOn": ["US-2"], "approvedAtCap": true, "mine": []}, {"id": "US-2", "passes": true}],
        }))
        .unwrap();
        let whole = Story {
            id: "US-1".into(),
            title: "t".into(),
            priority: Some(2.0),
            passes: false,
            review: Review::ChangesRequested,
            review_count: 3,
            review_feedback: "f".into(),
            notes: "n".into(),
            depends_on: vec!["US-2".into()],
            approved_at_cap: true,
        };
        assert_eq!(list.stories[0], whole);
        assert_eq!(list.stories[1], Story { id: "US-2".into(), passes: true, ..Story::default() });
        assert_eq!((list.project.as_str(), list.branch_name.as_str()), ("P", "b"));
        assert_eq!(list.description, "d");
    }

    #[test]
    fn null_is_absent_and_status_words_are_read_as_people_write_them() {
        let nothing = json!({"id": "a", "passes": false, "title": null, "acceptanceCriteria": null, "priority": null,
            "reviewStatus": null, "reviewCount": null, "reviewFeedback": null, "notes": null, "dependsOn": null});
        let list =
            validate(&json!({"project": null, "verifyCommands": null, "userStories": [nothing]})).unwrap();
        assert_eq!(list.stories[0], Story { id: "a".into(), ..Story::default() });
        let words = [
            ("", Review::Open),
            ("pending", Review::Open),
            ("needs-review", Review::Needed),
            ("Needs Review", Review::Needed),
            ("approved", Review::Approved),
        ];
        for (word, expected) in words {
            let list = validate(&json!({"userStories": [{"id": "a", "passes": true, "reviewStatus": word}]}))
                .unwrap();
            assert_eq!(list.stories[0].review, expected, "{word}");
        }
    }

    #[test]
    fn an_error_names_story_and_field() {
        let status = "expected null, \"needs_review\", \"changes_requested\" or \"approved\"";
        let cases = [
            (
                json!({"id": "US-2", "passes": "yes"}),
                "story US-2: passes is \"yes\"; expected true or false".to_owned(),
            ),
            (json!({"id": "US-2"}), "story US-2: passes is missing; expected true or false".into()),
            (
                json!({"id": "US-2", "passes": null}),
                "story US-2: passes is null; expected true or false".into(),
            ),
            (json!({"passes": true}), "story 1: id is missing; expected a non-empty string".into()),
            (json!({"id": 7, "passes": true}), "story 1: id is 7; expected a non-empty string".into()),
            (json!({"id": " ", "passes": true}), "story 1: id is \" \"; expected a non-empty string".into()),
            (json!({"id": "x", "passes": true, "title": 1}), "story x: title is 1; expected a string".into()),
            (
                json!({"id": "x", "passes": true, "notes": {}}),
                "story x: notes is an object; expected a string".into(),
            ),
            (
                json!({"id": "x", "passes": true, "priority": "high"}),
                "story x: priority is \"high\"; expected a number".into(),
            ),
            (
                json!({"id": "x", "passes": true, "acceptanceCriteria": "all of it"}),
                "story x: acceptanceCriteria is \"all of it\"; expected a list of strings".into(),
            ),
            (
                json!({"id": "x", "passes": true, "acceptanceCriteria": ["a", 1]}),
                "story x: acceptanceCriteria is [\"a\",1]; expected a list of strings".into(),
            ),
            (
                json!({"id": "x", "passes": true, "reviewCount": -1}),
                "story x: reviewCount is -1; expected a whole number of 0 or more".into(),
            ),
            (
                json!({"id": "x", "passes": true, "reviewCount": 1.5}),
                "story x: reviewCount is 1.5; expected a whole number of 0 or more".into(),
            ),
            (
                json!({"id": "x", "passes": true, "reviewStatus": "ok"}),
                format!("story x: reviewStatus is \"ok\"; {status}"),
            ),
            (
                json!({"id": "x", "passes": true, "reviewStatus": 1}),
                format!("story x: reviewStatus is 1; {status}"),
            ),
            (
                json!({"id": "x", "passes": false, "reviewStatus": "approved"}),
                "story x: reviewStatus is \"approved\" although passes is false: correct one of them".into(),
            ),
            (
                json!({"id": "x", "passes": true, "reviewStatus": "changes_requested", "reviewFeedback": " "}),
                "story x: reviewFeedback is empty although changes were requested: say what has to change"
                    .into(),
            ),
            (
                json!({"id": "x", "passes": true, "dependsOn": ["y"]}),
                "story x: dependsOn names \"y\", which does not exist".into(),
            ),
            (
                json!({"id": "x", "passes": true, "dependsOn": ["x"]}),
                "story x: dependsOn is circular: x → x".into(),
            ),
            (json!("US-1"), "story 1 is \"US-1\"; expected an object".into()),
        ];
        for (story, expected) in cases {
            assert_eq!(errors(json!({"userStories": [story]})), [expected]);
        }
    }

    #[test]
    fn the_list_itself_can_be_wrong() {
        let cases = [
            (json!([]), "the file contains []; expected an object with \"userStories\""),
            (json!({}), "userStories is missing; expected a list of stories"),
            (json!({"userStories": "none"}), "userStories is \"none\"; expected a list of stories"),
            (json!({"userStories": [], "project": 1}), "project is 1; expected a string"),
            (
                json!({"userStories": [], "verifyCommands": "make"}),
                "verifyCommands is \"make\"; expected a list of strings",
            ),
        ];
        for (document, expected) in cases {
            assert_eq!(errors(document), [expected]);
        }
    }

    #[test]
    fn every_error_is_reported_and_ids_are_compared() {
        let found = errors(json!({"project": 1, "userStories": [
            {"id": "a", "passes": 1, "title": 2}, {"id": "b", "passes": true}, {"id": "b", "passes": true}
        ]}));
        let expected = [
            "project is 1; expected a string",
            "story a: title is 2; expected a string",
            "story a: passes is 1; expected true or false",
            "story b: id is used by two stories",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_cycle_is_found_behind_stories_that_lead_to_it() {
        let story = |id: &str, on: &[&str]| json!({"id": id, "passes": false, "dependsOn": on});
        let found = errors(json!({"userStories": [
            story("free", &[]), story("led", &["a", "free"]), story("a", &["free", "b"]), story("b", &["c"]), story("c", &["a"])
        ]}));
        assert_eq!(found, ["story a: dependsOn is circular: a → b → c → a"]);
        let chain: Vec<_> = (0..2000)
            .map(|n: usize| story(&format!("s{n}"), &[&format!("s{}", n + 1)]))
            .chain([story("s2000", &[])])
            .collect();
        assert!(validate(&json!({"userStories": chain})).is_ok());
    }

    #[test]
    fn quoted_values_are_short_and_clean() {
        let found = errors(json!({"userStories": [{"id": "\u{1b}[31mx\n", "passes": "y".repeat(500)}]}));
        assert!(found[0].chars().count() < 160 && !found[0].contains(['\u{1b}', '\n']), "{found:?}");
    }
}
