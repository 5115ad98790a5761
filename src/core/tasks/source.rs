//! Which file holds the tasks, and in which format. Everything that differs between the formats is asked of here.

use super::{TaskList, counts};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where the tasks are unless something else is found or named.
pub const USUAL: &str = "ralph/tasks.json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Below the project's folder, with slashes. An empty name is no list: the user wants none.
    pub file: String,
    pub form: Form,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// JSON with stories that are put forward, reviewed and approved.
    #[default]
    Reviewed,
    /// JSON with stories that pass or do not, as in `prd.json`.
    Stories,
    /// Boxes in a Markdown list.
    Checklist,
}

impl Default for Source {
    fn default() -> Self {
        Source { file: USUAL.into(), form: Form::Reviewed }
    }
}

impl Source {
    pub fn none() -> Source {
        Source { file: String::new(), form: Form::Stories }
    }

    pub fn is_none(&self) -> bool {
        self.file.is_empty()
    }

    pub fn is_default(&self) -> bool {
        *self == Source::default()
    }

    /// A JSON list of another tool: it has reviews where a story speaks of them.
    pub fn of_json(file: String, document: &Value) -> Source {
        let fields = ["reviewStatus", "reviewCount", "reviewFeedback"];
        let speaks = |story: &Value| fields.iter().any(|field| story.get(field).is_some());
        let stories = document["userStories"].as_array();
        let reviewed = file == USUAL || stories.is_some_and(|stories| stories.iter().any(speaks));
        Source { file, form: if reviewed { Form::Reviewed } else { Form::Stories } }
    }

    pub fn of_markdown(file: String) -> Source {
        Source { file, form: Form::Checklist }
    }
}

impl Form {
    /// Whether a story is done only when somebody else has approved it.
    pub fn has_reviews(self) -> bool {
        self == Form::Reviewed
    }

    /// What one task is called.
    pub fn noun(self) -> &'static str {
        if self == Form::Checklist { "item" } else { "story" }
    }

    pub fn nouns(self) -> &'static str {
        if self == Form::Checklist { "items" } else { "stories" }
    }

    /// What a task that is done does.
    pub fn done(self) -> &'static str {
        if self == Form::Checklist { "are ticked" } else { "pass" }
    }
}

/// What was understood of a list, told once at the start.
pub fn understood(list: &TaskList, skip_review: bool) -> String {
    let Source { file, form } = &list.source;
    let counts = counts(list, skip_review);
    if counts.total == 0 {
        return format!("{file}: no {} in it, so it holds nothing back", form.nouns());
    }
    let mut text = format!("{file}: {} of {} {} {}", counts.passing, counts.total, form.nouns(), form.done());
    text.push_str(&match form {
        Form::Reviewed if skip_review => "; reviews are skipped: implement only".to_owned(),
        Form::Reviewed => format!(", {} approved", counts.approved),
        Form::Stories => "; no review fields: implement only".to_owned(),
        Form::Checklist => "; a checklist has no reviews: implement only".to_owned(),
    });
    text
}

/// How the agent ticks a task off, where no prompt of ours explains the file.
pub fn how_to_tick(source: &Source) -> String {
    let file = &source.file;
    match source.form {
        Form::Reviewed => String::new(),
        Form::Stories => format!(
            " The stories are in {file}. Once this one is done and proven, set its passes to true there and commit that \
             with the work. Do no other story in this iteration; add stories where work is missing, with passes false; \
             remove none."
        ),
        Form::Checklist => format!(
            " The items are lines of {file}. Once this one is done and proven, change its [ ] to [x] there and commit \
             that with the work. What you find to do is a new line with [ ]; keep every open item and its words."
        ),
    }
}

/// The prompt of a run that was given a list and nothing else.
pub fn prompt(source: &Source) -> String {
    let Source { file, form } = source;
    let branch = if *form == Form::Checklist {
        ""
    } else {
        " If branchName is set there, work on that branch; create it if it is not there."
    };
    format!(
        "Work through the {} of {file}, one an iteration, until every one is done.{branch} Read the file and the code around \
         your {} first, and prove the work with the project's own checks before you tick it off.",
        form.nouns(),
        form.noun()
    )
}

#[cfg(test)]
mod tests {
    use super::super::{checklist, validate};
    use super::*;
    use serde_json::json;

    fn of(file: &str, document: &Value) -> TaskList {
        let source = Source::of_json(file.into(), document);
        TaskList { source, ..validate(document).unwrap() }
    }

    #[test]
    fn a_json_list_has_reviews_where_it_speaks_of_them() {
        let plain = json!({"userStories": [{"id": "a", "passes": true}, {"id": "b", "passes": false}]});
        let reviewed = json!({"userStories": [{"id": "a", "passes": true}, {"id": "b", "passes": false, "reviewStatus": null}]});
        for (file, document, form) in [
            ("prd.json", &plain, Form::Stories),
            ("ralph/prd.json", &plain, Form::Stories),
            ("prd.json", &reviewed, Form::Reviewed),
            (USUAL, &plain, Form::Reviewed),
            ("prd.json", &json!({"userStories": []}), Form::Stories),
            ("prd.json", &json!([]), Form::Stories),
        ] {
            assert_eq!(Source::of_json(file.into(), document).form, form, "{file} {document}");
        }
    }

    #[test]
    fn what_was_understood_is_one_line() {
        let plain = json!({"userStories": [{"id": "a", "passes": true}, {"id": "b", "passes": false}]});
        for (list, skip, expected) in [
            (
                of("prd.json", &plain),
                false,
                "prd.json: 1 of 2 stories pass; no review fields: implement only",
            ),
            (of(USUAL, &plain), false, "ralph/tasks.json: 1 of 2 stories pass, 0 approved"),
            (
                of(USUAL, &plain),
                true,
                "ralph/tasks.json: 1 of 2 stories pass; reviews are skipped: implement only",
            ),
            (
                of("prd.json", &json!({"userStories": []})),
                false,
                "prd.json: no stories in it, so it holds nothing back",
            ),
            (
                TaskList { source: Source::of_markdown("TODO.md".into()), ..checklist("- [x] a\n- [ ] b") },
                false,
                "TODO.md: 1 of 2 items are ticked; a checklist has no reviews: implement only",
            ),
        ] {
            assert_eq!(understood(&list, skip), expected);
        }
    }
}
