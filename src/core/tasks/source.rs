//! The file that holds the tasks and its format, with everything that differs between formats.

use super::{TaskList, counts};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The task list unless another file is named or found.
pub const DEFAULT_FILE: &str = "ralph/tasks.json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSource {
    /// The path below the project, with slashes. Empty if the user wants no list.
    pub file: String,
    pub form: TaskFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskFormat {
    /// JSON with stories that are reviewed and approved.
    #[default]
    Reviewed,
    /// JSON with stories that only pass or fail, as in `prd.json`.
    Stories,
    /// Boxes in a Markdown list.
    Checklist,
}

impl Default for TaskSource {
    fn default() -> Self {
        TaskSource { file: DEFAULT_FILE.into(), form: TaskFormat::Reviewed }
    }
}

impl TaskSource {
    pub fn none() -> TaskSource {
        TaskSource { file: String::new(), form: TaskFormat::Stories }
    }

    pub fn is_none(&self) -> bool {
        self.file.is_empty()
    }

    pub fn is_default(&self) -> bool {
        *self == TaskSource::default()
    }

    /// Returns the source for a JSON list, which has reviews if it is ours or any story has a review field.
    pub fn of_json(file: String, document: &Value) -> TaskSource {
        let fields = ["reviewStatus", "reviewCount", "reviewFeedback"];
        let has_field = |story: &Value| fields.iter().any(|field| story.get(field).is_some());
        let stories = document["userStories"].as_array();
        let reviewed = file == DEFAULT_FILE || stories.is_some_and(|stories| stories.iter().any(has_field));
        TaskSource { file, form: if reviewed { TaskFormat::Reviewed } else { TaskFormat::Stories } }
    }

    pub fn of_markdown(file: String) -> TaskSource {
        TaskSource { file, form: TaskFormat::Checklist }
    }
}

impl TaskFormat {
    /// Returns whether a story is done only when it is approved.
    pub fn has_reviews(self) -> bool {
        self == TaskFormat::Reviewed
    }

    /// Returns what one task is called.
    pub fn noun(self) -> &'static str {
        if self == TaskFormat::Checklist { "item" } else { "story" }
    }

    pub fn nouns(self) -> &'static str {
        if self == TaskFormat::Checklist { "items" } else { "stories" }
    }

    /// Returns the verb for tasks that are done.
    pub fn done(self) -> &'static str {
        if self == TaskFormat::Checklist { "are ticked" } else { "pass" }
    }
}

/// Returns one line about the list, shown at the start of a run.
pub fn summary(list: &TaskList, skip_review: bool) -> String {
    let TaskSource { file, form } = &list.source;
    let counts = counts(list, skip_review);
    if counts.total == 0 {
        return format!("{file}: no {}, so completion does not depend on it", form.nouns());
    }
    let mut text = format!("{file}: {} of {} {} {}", counts.passing, counts.total, form.nouns(), form.done());
    text.push_str(&match form {
        TaskFormat::Reviewed if skip_review => "; reviews are skipped: implement only".to_owned(),
        TaskFormat::Reviewed => format!(", {} approved", counts.approved),
        TaskFormat::Stories => "; no review fields: implement only".to_owned(),
        TaskFormat::Checklist => "; a checklist has no reviews: implement only".to_owned(),
    });
    text
}

/// Returns how the agent marks a task as done, for formats that our prompt template does not explain.
pub fn how_to_tick(source: &TaskSource) -> String {
    let file = &source.file;
    match source.form {
        TaskFormat::Reviewed => String::new(),
        TaskFormat::Stories => format!(
            " The stories are in {file}. When this one is done and verified, set its passes to true there and commit that \
             with the work. Work on no other story in this iteration; add stories with passes false for missing work; \
             remove none."
        ),
        TaskFormat::Checklist => format!(
            " The items are lines of {file}. When this one is done and verified, change its [ ] to [x] there and commit \
             that with the work. Add new work as a line with [ ]; keep every open item and its words."
        ),
    }
}

/// Returns the prompt of a run that has a task list and no other prompt.
pub fn prompt(source: &TaskSource) -> String {
    let TaskSource { file, form } = source;
    let branch = if *form == TaskFormat::Checklist {
        ""
    } else {
        " If branchName is set there, work on that branch; create it if it does not exist."
    };
    format!(
        "Work through the {} of {file}, one per iteration, until all are done.{branch} First read the file and the code \
         around your {}, and verify the work with the project's own checks before you mark it as done.",
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
        let source = TaskSource::of_json(file.into(), document);
        TaskList { source, ..validate(document).unwrap() }
    }

    #[test]
    fn a_json_list_has_reviews_if_a_story_has_a_review_field() {
        let plain = json!({"userStories": [{"id": "a", "passes": true}, {"id": "b", "passes": false}]});
        let reviewed = json!({"userStories": [{"id": "a", "passes": true}, {"id": "b", "passes": false, "reviewStatus": null}]});
        for (file, document, form) in [
            ("prd.json", &plain, TaskFormat::Stories),
            ("ralph/prd.json", &plain, TaskFormat::Stories),
            ("prd.json", &reviewed, TaskFormat::Reviewed),
            (DEFAULT_FILE, &plain, TaskFormat::Reviewed),
            ("prd.json", &json!({"userStories": []}), TaskFormat::Stories),
            ("prd.json", &json!([]), TaskFormat::Stories),
        ] {
            assert_eq!(TaskSource::of_json(file.into(), document).form, form, "{file} {document}");
        }
    }

    #[test]
    fn the_summary_is_one_line() {
        let plain = json!({"userStories": [{"id": "a", "passes": true}, {"id": "b", "passes": false}]});
        for (list, skip, expected) in [
            (
                of("prd.json", &plain),
                false,
                "prd.json: 1 of 2 stories pass; no review fields: implement only",
            ),
            (of(DEFAULT_FILE, &plain), false, "ralph/tasks.json: 1 of 2 stories pass, 0 approved"),
            (
                of(DEFAULT_FILE, &plain),
                true,
                "ralph/tasks.json: 1 of 2 stories pass; reviews are skipped: implement only",
            ),
            (
                of("prd.json", &json!({"userStories": []})),
                false,
                "prd.json: no stories, so completion does not depend on it",
            ),
            (
                TaskList {
                    source: TaskSource::of_markdown("TODO.md".into()),
                    ..checklist("- [x] a\n- [ ] b")
                },
                false,
                "TODO.md: 1 of 2 items are ticked; a checklist has no reviews: implement only",
            ),
        ] {
            assert_eq!(summary(&list, skip), expected);
        }
    }
}
