//! The task list on disk: `ralph/tasks.json`, a `prd.json` or a Markdown checklist. A session reads it leniently, the
//! runner strictly; Ralph writes only the format with reviews.

pub mod source;

use super::config::trust;
use super::file::{self, Privacy};
use super::project::Project;
use super::world::World;
use crate::core::decide::turn::Tasks;
use crate::core::tasks::{self, TaskFormat, TaskList, TaskSource};
use crate::core::text::clean;
use crate::core::time::Stamp;
use anyhow::{Result, ensure};
use serde_json::Value;
use std::path::{Component, Path, PathBuf};

const MAX_BYTES: u64 = 8 << 20;
const MAX_OPEN_NAMED: usize = 5;
/// More errors than an agent fixes at once are only counted.
const MAX_ERRORS: usize = 10;

/// Returns where the list is. Its name may come from a file of the project, so it must be one below the project.
fn path(project: &Project, source: &TaskSource) -> Result<PathBuf> {
    let mut parts = Path::new(&source.file).components();
    ensure!(parts.all(|part| matches!(part, Component::Normal(_))), "{} is not in the project", source.file);
    project.file(&project.root.join(&source.file))
}

/// Returns the bytes if the file exists. An error is a phrase to follow the file's name.
pub fn bytes(project: &Project, source: &TaskSource) -> Result<Option<Vec<u8>>, String> {
    if source.is_none() {
        return Ok(None);
    }
    // Most loops have no list, and a hook looks for one at every turn: no path is resolved for that.
    let missing = |error: std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    if project.root.join(&source.file).symlink_metadata().is_err_and(missing) {
        return Ok(None);
    }
    let path = path(project, source).map_err(|error| format!("cannot be used: {error:#}"))?;
    file::read_unlinked(&path, MAX_BYTES).map_err(|error| format!("cannot be read: {error:#}"))
}

pub fn document(bytes: &[u8]) -> Result<Value, String> {
    // Some editors write a byte order mark.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    serde_json::from_slice(bytes).map_err(|error| format!("is not valid JSON: {error}"))
}

fn boxes(bytes: &[u8]) -> Result<TaskList, String> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let list = tasks::checklist(text.ok_or("is not valid UTF-8 text")?);
    if list.stories.is_empty() {
        return Err("has no checklist item: a line like \"- [ ] what to do\"".into());
    }
    Ok(list)
}

/// Returns the tasks of a session's loop if the file exists; only whether each passes counts. An unusable file is
/// reported as such, because completion cannot be checked against it.
pub fn read(project: &Project, source: &TaskSource) -> Option<Tasks> {
    let read = || {
        let Some(bytes) = bytes(project, source)? else { return Ok(None) };
        if source.form == TaskFormat::Checklist {
            let list = boxes(&bytes)?;
            return Ok(Some(of_list(&list, true)));
        }
        let document = document(&bytes)?;
        let stories = document["userStories"].as_array().ok_or("has no list \"userStories\"")?;
        let open = stories.iter().enumerate().filter(|(_, story)| story["passes"] != Value::Bool(true));
        let name = |(at, story): (usize, &Value)| {
            story["id"].as_str().map_or(format!("story {}", at + 1), |id| clean::excerpt(id, 40))
        };
        Ok(Some(summed(stories.len(), open.map(name).collect())))
    };
    let unusable =
        |why: String| Tasks { unusable: Some(format!("{} {why}", source.file)), ..Tasks::default() };
    read().unwrap_or_else(|why| Some(unusable(why)))
}

/// Returns the tasks of a run: the file must be valid, and in a format with reviews a story counts when approved.
pub fn read_reviewed(project: &Project, source: &TaskSource, skip_review: bool) -> Option<Tasks> {
    match load(project, source) {
        Ok(None) => None,
        Ok(Some(list)) => Some(of_list(&list, list.skips_review(skip_review))),
        Err(errors) => {
            // The first error is enough to name the file.
            let prefix = format!("{}: ", source.file);
            let errors: Vec<&str> = errors
                .iter()
                .enumerate()
                .map(|(at, error)| if at == 0 { error } else { error.strip_prefix(&prefix).unwrap_or(error) })
                .collect();
            Some(Tasks { unusable: Some(errors.join("; ")), ..Tasks::default() })
        }
    }
}

fn of_list(list: &TaskList, skip_review: bool) -> Tasks {
    let open = list.stories.iter().filter(|story| !story.is_done(skip_review));
    let name = |story: &tasks::Story| {
        let waits = if story.passes { " (not approved)" } else { "" };
        format!("{}{waits}", clean::excerpt(&story.id, 40))
    };
    summed(list.stories.len(), open.map(name).collect())
}

fn summed(total: usize, open: Vec<String>) -> Tasks {
    let (total, passing) = (total as u64, (total - open.len()) as u64);
    Tasks { total, passing, open: open.into_iter().take(MAX_OPEN_NAMED).collect(), ..Tasks::default() }
}

/// Returns the task list if the file exists, or everything that is wrong with it, a sentence each.
pub fn load(project: &Project, source: &TaskSource) -> Result<Option<TaskList>, Vec<String>> {
    let found = bytes(project, source).map_err(|why| vec![format!("{} {why}", source.file)])?;
    found.map(|bytes| parse(source, &bytes)).transpose()
}

/// Parses a task list that was read before, as `load` does.
pub fn parse(source: &TaskSource, bytes: &[u8]) -> Result<TaskList, Vec<String>> {
    let name = &source.file;
    let broken = |why| vec![format!("{name} {why}")];
    let mut list = match source.form {
        TaskFormat::Checklist => boxes(bytes).map_err(broken)?,
        _ => tasks::validate(&document(bytes).map_err(broken)?).map_err(|mut errors| {
            let more = errors.len().saturating_sub(MAX_ERRORS);
            errors.truncate(MAX_ERRORS);
            let more = (more > 0).then(|| format!("{more} more errors"));
            errors.into_iter().chain(more).map(|error| format!("{name}: {error}")).collect::<Vec<_>>()
        })?,
    };
    list.source = source.clone();
    Ok(list)
}

/// Writes the list in the file's layout, if anything changed.
fn save(project: &Project, list: &TaskList) -> Result<()> {
    let path = path(project, &list.source)?;
    let before = file::read_unlinked(&path, MAX_BYTES)?.unwrap_or_default();
    let text = list.text(&String::from_utf8_lossy(&before));
    let same = |document: &Value| serde_json::from_str::<Value>(&text).is_ok_and(|new| new == *document);
    if document(&before).is_ok_and(|document| same(&document)) {
        return Ok(());
    }
    file::replace(&path, text.as_bytes(), Privacy::Shared)
}

/// Puts a file back that is missing or that cannot be used, as `text`. Returns where the unusable one is now.
pub fn restore(project: &Project, source: &TaskSource, text: &str, now: Stamp) -> Result<Option<PathBuf>> {
    let path = path(project, source)?;
    let aside = path.with_file_name(format!(
        "{}.corrupt-{}",
        path.file_name().unwrap_or_default().to_string_lossy(),
        now.compact()
    ));
    let moved = path.exists().then(|| std::fs::rename(&path, &aside)).transpose()?;
    file::replace(&path, text.as_bytes(), Privacy::Shared)?;
    Ok(moved.map(|()| aside))
}

/// The check commands in `ralph/tasks.json`. An agent can write that file, so they run only if the user trusts them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListChecks {
    pub commands: Vec<String>,
    pub trusted: bool,
    /// What to do if they are not trusted.
    pub hint: String,
}

/// The field of the check commands, under which `ralph trust` knows them.
pub const CHECKS: &str = "verifyCommands";

/// Returns the check commands of the task list, if it has any.
pub fn checks(world: &World, project: &Project, source: &TaskSource) -> ListChecks {
    let Some(value) = check_commands(project, source) else { return ListChecks::default() };
    let trusted = trust::load(world, project);
    ListChecks { commands: texts(&value), trusted: trusted.allows(CHECKS, &value), hint: trusted.hint() }
}

/// Returns the texts of a list.
pub fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the field as the file gives it, unless it is empty.
pub fn check_commands(project: &Project, source: &TaskSource) -> Option<Value> {
    if source.file != tasks::DEFAULT_FILE {
        return None;
    }
    let value = document(&bytes(project, source).ok()??).ok()?.get_mut(CHECKS)?.take();
    (!texts(&value).is_empty()).then_some(value)
}

/// Changes review fields and writes the list back, if its format has any. Returns what the change returns.
pub fn edit<T>(
    project: &Project,
    source: &TaskSource,
    change: impl FnOnce(&mut TaskList) -> T,
) -> Result<Option<T>> {
    if !source.form.has_reviews() {
        return Ok(None);
    }
    let list = load(project, source).map_err(|errors| anyhow::anyhow!(errors.join("; ")))?;
    let Some(mut list) = list else { return Ok(None) };
    let result = change(&mut list);
    save(project, &list)?;
    Ok(Some(result))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tasks::Review;
    use serde_json::json;
    use std::fs;

    fn usual() -> TaskSource {
        TaskSource::default()
    }

    fn with(text: &str) -> (tempfile::TempDir, Project) {
        let dir = tempfile::tempdir().unwrap();
        let project = Project { root: dir.path().canonicalize().unwrap() };
        fs::create_dir(project.work_dir()).unwrap();
        fs::write(project.work_dir().join("tasks.json"), text).unwrap();
        (dir, project)
    }

    #[test]
    fn a_session_counts_passing_stories_and_a_run_approved_ones() {
        let stories = json!([
            {"id": "a", "passes": true, "reviewStatus": "approved"}, {"id": "b", "passes": true}, {"id": "c", "passes": false}
        ]);
        let (_dir, project) = with(&json!({"userStories": stories}).to_string());
        let session = read(&project, &usual()).unwrap();
        assert_eq!((session.total, session.passing, session.open), (3, 2, vec!["c".to_owned()]));
        let runner = read_reviewed(&project, &usual(), false).unwrap();
        assert_eq!((runner.total, runner.passing), (3, 1));
        assert_eq!(runner.open, ["b (not approved)", "c"]);
        assert_eq!(read_reviewed(&project, &usual(), true).unwrap().passing, 2);
    }

    #[test]
    fn a_session_accepts_what_a_run_refuses() {
        let (_dir, project) =
            with("{\"userStories\": [{\"passes\": true, \"priority\": \"high\"}, {\"id\": 1}]}");
        let session = read(&project, &usual()).unwrap();
        assert_eq!((session.passing, session.open), (1, vec!["story 2".to_owned()]));
        let why = read_reviewed(&project, &usual(), false).unwrap().unusable.unwrap();
        assert!(
            why.starts_with(
                "ralph/tasks.json: story 1: priority is \"high\"; expected a number; story 1: id"
            ),
            "{why}"
        );
        assert!(
            load(&project, &usual())
                .unwrap_err()
                .iter()
                .all(|fault| fault.starts_with("ralph/tasks.json: story "))
        );
    }

    #[test]
    fn without_the_file_there_are_no_tasks() {
        let (_dir, project) = with("x");
        fs::remove_file(project.work_dir().join("tasks.json")).unwrap();
        assert!(read(&project, &usual()).is_none() && read_reviewed(&project, &usual(), false).is_none());
        assert_eq!(load(&project, &usual()), Ok(None));
        assert_eq!(edit(&project, &usual(), |_| 1).unwrap(), None);
        assert!(!project.work_dir().join("tasks.json").exists());
    }

    #[test]
    fn only_what_changed_is_written() {
        let text = "{\n  \"userStories\": [\n    {\n      \"id\": \"a\",\n      \"passes\": true,\n      \"x\": 1\n    }\n  ]\n}\n";
        let (_dir, project) = with(text);
        let path = project.work_dir().join("tasks.json");
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        edit(&project, &usual(), |_| ()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before, "nothing changed");
        edit(&project, &usual(), |list| list.stories[0].review = Review::Approved).unwrap();
        let expected = text.replace("\"x\": 1", "\"x\": 1,\n      \"reviewStatus\": \"approved\"");
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        assert_eq!(fs::read_dir(project.work_dir()).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn many_errors_are_cut() {
        let stories: Vec<_> = (0..30).map(|n| json!({"id": format!("s{n}"), "passes": 1})).collect();
        let faults = parse(&usual(), json!({"userStories": stories}).to_string().as_bytes()).unwrap_err();
        assert_eq!((faults.len(), faults[10].as_str()), (11, "ralph/tasks.json: 20 more errors"));
        let faults = parse(&usual(), b"{").unwrap_err();
        assert!(faults[0].starts_with("ralph/tasks.json is not valid JSON"), "{faults:?}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_project_is_neither_read_nor_written() {
        let (_other, elsewhere) = with("{\"userStories\": []}");
        let (_dir, project) = with("x");
        let path = project.work_dir().join("tasks.json");
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(elsewhere.work_dir().join("tasks.json"), &path).unwrap();
        assert!(load(&project, &usual()).unwrap_err()[0].contains("is a symbolic link"));
        assert!(read(&project, &usual()).unwrap().unusable.unwrap().contains("is a symbolic link"));
        let list = load(&elsewhere, &usual()).unwrap().unwrap();
        assert!(save(&project, &list).is_err());
    }

    #[test]
    fn each_format_is_read_and_counted_in_its_own_way() {
        let boxes = TaskSource::of_markdown("ralph/tasks.json".into());
        let (_dir, project) = with("# Plan\n- [x] a\n- [ ] b\n- [ ] b\n");
        let tasks = read(&project, &boxes).unwrap();
        assert_eq!((tasks.total, tasks.passing, tasks.open), (3, 1, vec!["b".to_owned(), "b (2)".into()]));
        assert_eq!(read_reviewed(&project, &boxes, false).unwrap().passing, 1, "there are no reviews");
        assert_eq!(edit(&project, &boxes, |_| ()).unwrap(), None, "Ralph does not write it");
        let (_dir, project) = with("{\"userStories\": [{\"id\": \"a\", \"passes\": true}]}");
        let stories = TaskSource { form: TaskFormat::Stories, ..usual() };
        assert_eq!(read_reviewed(&project, &stories, false).unwrap().passing, 1);
        assert_eq!(read_reviewed(&project, &usual(), false).unwrap().passing, 0);
        assert!(
            load(&project, &TaskSource::none()).unwrap().is_none()
                && read(&project, &TaskSource::none()).is_none()
        );
    }

    #[test]
    fn a_checklist_that_cannot_be_used_says_why() {
        let boxes = TaskSource::of_markdown("ralph/tasks.json".into());
        for (text, why) in [
            ("", "ralph/tasks.json has no checklist item"),
            ("# All done\n- a\n", "ralph/tasks.json has no checklist item"),
            ("- [ ] a\0", "ralph/tasks.json is not valid UTF-8 text"),
        ] {
            let (_dir, project) = with(text);
            let faults = load(&project, &boxes).unwrap_err();
            assert!(faults[0].starts_with(why), "{text:?}: {faults:?}");
            assert!(read(&project, &boxes).unwrap().unusable.is_some());
        }
        assert_eq!(parse(&boxes, &[b'-', 0xff]).unwrap_err(), ["ralph/tasks.json is not valid UTF-8 text"]);
        assert!(parse(&usual(), b"\xef\xbb\xbf{\"userStories\": []}").is_ok(), "after a byte order mark");
    }
}
