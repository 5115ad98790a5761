//! From JSON to a task list, or to everything that is wrong with it, each with its story and field.

use super::{MARK, Review, Row, Source, Story, TaskList};
use crate::core::clean;
use serde_json::Value;
use std::collections::BTreeMap;

/// Absent and `null` mean the default; only `id` and `passes` must be there. Unknown fields are nobody's fault.
pub fn validate(document: &Value) -> Result<TaskList, Vec<String>> {
    let Some(top) = document.as_object() else {
        return Err(vec![format!("it is {}, not an object with \"userStories\"", shown(document))]);
    };
    let mut reader = Reader { row: top, whose: String::new(), errors: Vec::new() };
    let mut list = TaskList {
        project: reader.text("project"),
        branch_name: reader.text("branchName"),
        description: reader.text("description"),
        verify_commands: reader.texts("verifyCommands"),
        stories: Vec::new(),
        source: Source::default(),
        document: document.clone(),
    };
    let mut errors = reader.errors;
    match top.get("userStories") {
        Some(Value::Array(rows)) => {
            for (at, row) in rows.iter().enumerate() {
                let story = read(row, at, &mut errors);
                list.stories.push(story);
            }
        }
        None => errors.push("userStories is missing: it is the list of stories".into()),
        Some(other) => errors.push(format!("userStories is {}, not a list", shown(other))),
    }
    errors.extend(ids(&list.stories));
    if errors.is_empty() { Ok(list) } else { Err(errors) }
}

/// A story that was found valid before.
pub fn story(row: &Row) -> Story {
    Reader { row, whose: String::new(), errors: Vec::new() }.story()
}

fn read(row: &Value, at: usize, errors: &mut Vec<String>) -> Story {
    let Some(row) = row.as_object() else {
        errors.push(format!("story {}: it is {}, not an object", at + 1, shown(row)));
        return Story::default();
    };
    let id = row.get("id").and_then(Value::as_str).filter(|id| !id.trim().is_empty());
    let whose =
        id.map_or_else(|| format!("story {}", at + 1), |id| format!("story {}", clean::excerpt(id, 40)));
    let mut reader = Reader { row, whose: format!("{whose}: "), errors: Vec::new() };
    let story = reader.story();
    if id.is_none() {
        reader.wrong("id", "a text that names it");
    }
    if !row.get("passes").is_some_and(Value::is_boolean) {
        reader.wrong("passes", "true or false");
    }
    if reader.errors.is_empty() {
        // Nobody could tell what such a story waits for.
        if story.review == Review::Approved && !story.passes {
            reader.say("reviewStatus is \"approved\" although passes is false: set one of them right");
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
    whose: String,
    errors: Vec<String>,
}

impl Reader<'_> {
    fn story(&mut self) -> Story {
        Story {
            id: self.row.get("id").and_then(Value::as_str).unwrap_or_default().to_owned(),
            title: self.text("title"),
            acceptance_criteria: self.texts("acceptanceCriteria"),
            priority: self.priority(),
            passes: self.row.get("passes").and_then(Value::as_bool).unwrap_or_default(),
            review: self.review(),
            review_count: self.count(),
            review_feedback: self.text("reviewFeedback"),
            notes: self.text("notes"),
            depends_on: self.texts("dependsOn"),
            approved_at_cap: self.value(MARK).is_some_and(|value| *value == Value::Bool(true)),
        }
    }

    fn value(&self, field: &str) -> Option<&Value> {
        self.row.get(field).filter(|value| !value.is_null())
    }

    fn say(&mut self, what: &str) {
        self.errors.push(format!("{}{what}", self.whose));
    }

    fn wrong(&mut self, field: &str, wanted: &str) {
        let is = self.row.get(field).map_or_else(|| "missing".into(), shown);
        self.say(&format!("{field} is {is}, not {wanted}"));
    }

    fn text(&mut self, field: &str) -> String {
        match self.value(field) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(_) => {
                self.wrong(field, "a text");
                String::new()
            }
        }
    }

    fn texts(&mut self, field: &str) -> Vec<String> {
        let texts = match self.value(field) {
            None => return Vec::new(),
            Some(Value::Array(values)) => {
                values.iter().map(|value| value.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
            }
            Some(_) => None,
        };
        if texts.is_none() {
            self.wrong(field, "a list of texts");
        }
        texts.unwrap_or_default()
    }

    fn priority(&mut self) -> Option<f64> {
        let value = self.value("priority")?;
        let number = value.as_f64();
        if number.is_none() {
            self.wrong("priority", "a number");
        }
        number
    }

    fn count(&mut self) -> u64 {
        let count = self.value("reviewCount").map(Value::as_u64);
        if count == Some(None) {
            self.wrong("reviewCount", "a whole number from 0");
        }
        count.flatten().unwrap_or_default()
    }

    fn review(&mut self) -> Review {
        let word = match self.value("reviewStatus") {
            None => return Review::Open,
            Some(value) => value.as_str().map(|word| word.trim().to_lowercase().replace(['-', ' '], "_")),
        };
        match word.as_deref() {
            // What others write for "nobody has looked yet".
            Some("" | "none" | "pending") => Review::Open,
            Some("needs_review") => Review::Needed,
            Some("changes_requested") => Review::ChangesRequested,
            Some("approved") => Review::Approved,
            _ => {
                self.wrong("reviewStatus", "null, \"needs_review\", \"changes_requested\" or \"approved\"");
                Review::Open
            }
        }
    }
}

/// What only the stories together can have wrong.
fn ids(stories: &[Story]) -> Vec<String> {
    let mut errors = Vec::new();
    let mut known = BTreeMap::new();
    for (at, story) in stories.iter().enumerate().filter(|(_, story)| !story.id.trim().is_empty()) {
        if known.insert(story.id.as_str(), at).is_some() {
            errors.push(format!("story {}: id is used by two stories", clean::excerpt(&story.id, 40)));
        }
    }
    for story in stories {
        for missing in story.depends_on.iter().filter(|id| !known.contains_key(id.as_str())) {
            let (id, missing) = (clean::excerpt(&story.id, 40), clean::excerpt(missing, 40));
            errors.push(format!("story {id}: dependsOn names {missing:?}, and there is no such story"));
        }
    }
    if errors.is_empty() {
        errors.extend(circle(stories, &known));
    }
    errors
}

/// Stories that wait for each other, so that none of them can ever be begun.
fn circle(stories: &[Story], known: &BTreeMap<&str, usize>) -> Option<String> {
    let on = |story: &Story| -> Vec<usize> {
        story.depends_on.iter().filter_map(|id| known.get(id.as_str()).copied()).collect()
    };
    let on: Vec<Vec<usize>> = stories.iter().map(on).collect();
    let mut waiting_for_it = vec![Vec::new(); stories.len()];
    for (at, on) in on.iter().enumerate() {
        on.iter().for_each(|on| waiting_for_it[*on].push(at));
    }
    let mut held_by: Vec<usize> = on.iter().map(Vec::len).collect();
    let mut free: Vec<usize> = (0..stories.len()).filter(|at| held_by[*at] == 0).collect();
    while let Some(at) = free.pop() {
        for &next in &waiting_for_it[at] {
            held_by[next] -= 1;
            if held_by[next] == 0 {
                free.push(next);
            }
        }
    }
    // Whoever is still held leads into a circle: follow it until a story comes again.
    let mut path = vec![held_by.iter().position(|held| *held > 0)?];
    let mut place = BTreeMap::from([(path[0], 0)]);
    loop {
        let next = *on[*path.last()?].iter().find(|on| held_by[**on] > 0)?;
        if let Some(from) = place.insert(next, path.len()) {
            let name = |at: &usize| clean::excerpt(&stories[*at].id, 40);
            let mut ids: Vec<_> = path[from..].iter().take(10).map(name).collect();
            if path.len() - from > 10 {
                ids.push("…".into());
            }
            return Some(format!(
                "story {0}: dependsOn goes round in a circle: {1} → {0}",
                name(&next),
                ids.join(" → ")
            ));
        }
        path.push(next);
    }
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

    #[allow(clippy::needless_pass_by_value, reason = "made where it is used")]
    fn errors(document: Value) -> Vec<String> {
        validate(&document).expect_err("it should be refused")
    }

    #[test]
    fn a_whole_list_is_read() {
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
            acceptance_criteria: vec!["c".into()],
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
        assert_eq!((list.description.as_str(), list.verify_commands.len()), ("d", 1));
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
        let status = "not null, \"needs_review\", \"changes_requested\" or \"approved\"";
        let cases = [
            (
                json!({"id": "US-2", "passes": "yes"}),
                "story US-2: passes is \"yes\", not true or false".to_owned(),
            ),
            (json!({"id": "US-2"}), "story US-2: passes is missing, not true or false".into()),
            (json!({"id": "US-2", "passes": null}), "story US-2: passes is null, not true or false".into()),
            (json!({"passes": true}), "story 1: id is missing, not a text that names it".into()),
            (json!({"id": 7, "passes": true}), "story 1: id is 7, not a text that names it".into()),
            (json!({"id": " ", "passes": true}), "story 1: id is \" \", not a text that names it".into()),
            (json!({"id": "x", "passes": true, "title": 1}), "story x: title is 1, not a text".into()),
            (
                json!({"id": "x", "passes": true, "notes": {}}),
                "story x: notes is an object, not a text".into(),
            ),
            (
                json!({"id": "x", "passes": true, "priority": "high"}),
                "story x: priority is \"high\", not a number".into(),
            ),
            (
                json!({"id": "x", "passes": true, "acceptanceCriteria": "all of it"}),
                "story x: acceptanceCriteria is \"all of it\", not a list of texts".into(),
            ),
            (
                json!({"id": "x", "passes": true, "acceptanceCriteria": ["a", 1]}),
                "story x: acceptanceCriteria is [\"a\",1], not a list of texts".into(),
            ),
            (
                json!({"id": "x", "passes": true, "reviewCount": -1}),
                "story x: reviewCount is -1, not a whole number from 0".into(),
            ),
            (
                json!({"id": "x", "passes": true, "reviewCount": 1.5}),
                "story x: reviewCount is 1.5, not a whole number from 0".into(),
            ),
            (
                json!({"id": "x", "passes": true, "reviewStatus": "ok"}),
                format!("story x: reviewStatus is \"ok\", {status}"),
            ),
            (
                json!({"id": "x", "passes": true, "reviewStatus": 1}),
                format!("story x: reviewStatus is 1, {status}"),
            ),
            (
                json!({"id": "x", "passes": false, "reviewStatus": "approved"}),
                "story x: reviewStatus is \"approved\" although passes is false: set one of them right"
                    .into(),
            ),
            (
                json!({"id": "x", "passes": true, "reviewStatus": "changes_requested", "reviewFeedback": " "}),
                "story x: reviewFeedback is empty although changes were requested: say what has to change"
                    .into(),
            ),
            (
                json!({"id": "x", "passes": true, "dependsOn": ["y"]}),
                "story x: dependsOn names \"y\", and there is no such story".into(),
            ),
            (
                json!({"id": "x", "passes": true, "dependsOn": ["x"]}),
                "story x: dependsOn goes round in a circle: x → x".into(),
            ),
            (json!("US-1"), "story 1: it is \"US-1\", not an object".into()),
        ];
        for (story, expected) in cases {
            assert_eq!(errors(json!({"userStories": [story]})), [expected]);
        }
    }

    #[test]
    fn the_list_itself_can_be_wrong() {
        let cases = [
            (json!([]), "it is [], not an object with \"userStories\""),
            (json!({}), "userStories is missing: it is the list of stories"),
            (json!({"userStories": "none"}), "userStories is \"none\", not a list"),
            (json!({"userStories": [], "project": 1}), "project is 1, not a text"),
            (
                json!({"userStories": [], "verifyCommands": "make"}),
                "verifyCommands is \"make\", not a list of texts",
            ),
        ];
        for (document, expected) in cases {
            assert_eq!(errors(document), [expected]);
        }
    }

    #[test]
    fn every_error_is_told_and_ids_are_compared() {
        let found = errors(json!({"project": 1, "userStories": [
            {"id": "a", "passes": 1, "title": 2}, {"id": "b", "passes": true}, {"id": "b", "passes": true}
        ]}));
        let expected = [
            "project is 1, not a text",
            "story a: title is 2, not a text",
            "story a: passes is 1, not true or false",
            "story b: id is used by two stories",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_circle_is_found_behind_stories_that_only_lead_to_it() {
        let story = |id: &str, on: &[&str]| json!({"id": id, "passes": false, "dependsOn": on});
        let found = errors(json!({"userStories": [
            story("free", &[]), story("led", &["a", "free"]), story("a", &["free", "b"]), story("b", &["c"]), story("c", &["a"])
        ]}));
        assert_eq!(found, ["story a: dependsOn goes round in a circle: a → b → c → a"]);
        let chain: Vec<_> = (0..2000)
            .map(|n: usize| story(&format!("s{n}"), &[&format!("s{}", n + 1)]))
            .chain([story("s2000", &[])])
            .collect();
        assert!(validate(&json!({"userStories": chain})).is_ok());
    }

    #[test]
    fn what_an_error_quotes_is_short_and_harmless() {
        let found = errors(json!({"userStories": [{"id": "\u{1b}[31mx\n", "passes": "y".repeat(500)}]}));
        assert!(found[0].chars().count() < 160 && !found[0].contains(['\u{1b}', '\n']), "{found:?}");
    }
}
