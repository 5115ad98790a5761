//! Finds the task list of a run: the file the user named, else one that is clearly meant for Ralph.
//!
//! Projects contain many lists that are not tasks, so outside `ralph/` only a `prd.json` with user stories is used
//! unless the user names another file.

use crate::core::tasks::{DEFAULT_FILE, TaskFormat, TaskList, TaskSource};
use crate::core::text::clean;
use crate::store::{Project, tasks};
use std::path::{Path, PathBuf};

/// Which task list the user selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    #[default]
    Default,
    /// This file, relative to the working directory.
    File(PathBuf),
    None,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundTasks {
    pub source: TaskSource,
    pub list: Option<TaskList>,
    /// Lists that are not used.
    pub notes: Vec<String>,
}

/// In order of preference; a checklist counts only if it has boxes.
const PLACES: [&str; 8] = [
    DEFAULT_FILE,
    "ralph/prd.json",
    "prd.json",
    "ralph/tasks.md",
    "ralph/fix_plan.md",
    "ralph/@fix_plan.md",
    "ralph/TODO.md",
    "ralph/PLAN.md",
];

/// Plans of other loops, mentioned if nothing else is found.
const OTHER_PLANS: [&str; 4] =
    ["fix_plan.md", "@fix_plan.md", ".ralph/fix_plan.md", "IMPLEMENTATION_PLAN.md"];

/// Returns the list, or everything that is wrong with it, a sentence each.
pub fn find(project: &Project, selection: &Selection, working_dir: &Path) -> Result<FoundTasks, Vec<String>> {
    match selection {
        Selection::None => Ok(FoundTasks { source: TaskSource::none(), ..FoundTasks::default() }),
        Selection::File(path) => {
            let source = named(project, path, working_dir).map_err(|why| vec![why])?;
            reload(project, &source)
        }
        Selection::Default => default(project),
    }
}

/// Returns the list of a resumed run.
pub fn reload(project: &Project, source: &TaskSource) -> Result<FoundTasks, Vec<String>> {
    let list = tasks::load(project, source)?;
    Ok(FoundTasks { source: source.clone(), list, notes: Vec::new() })
}

fn named(project: &Project, path: &Path, working_dir: &Path) -> Result<TaskSource, String> {
    let shown = clean::line(&path.to_string_lossy());
    let whole = working_dir.join(path);
    // Links are resolved in the folder only: whether the file itself is a link is checked when it is read.
    let (parent, name) = (whole.parent().and_then(|parent| parent.canonicalize().ok()), whole.file_name());
    let (Some(parent), Some(name)) = (parent, name) else {
        return Err(format!("--tasks {shown}: no such file"));
    };
    let whole = parent.join(name);
    let Ok(below) = whole.strip_prefix(project.real_root()) else {
        return Err(format!(
            "--tasks {shown} is outside the project {}: move it into the project",
            project.root.display()
        ));
    };
    let Some(file) = below.to_str().map(|file| file.replace(std::path::MAIN_SEPARATOR, "/")) else {
        return Err(format!("--tasks {shown}: the name is not valid UTF-8"));
    };
    if whole.symlink_metadata().is_err() {
        return Err(format!("--tasks {shown}: no such file"));
    }
    source(project, file)
}

/// Returns the format of a file by its name and content.
fn source(project: &Project, file: String) -> Result<TaskSource, String> {
    if !is_json(&file) {
        return Ok(TaskSource::of_markdown(file));
    }
    let unread = TaskSource { file: file.clone(), form: TaskFormat::Stories };
    let named = |why| format!("{file} {why}");
    let bytes = tasks::bytes(project, &unread).map_err(named)?.unwrap_or_default();
    let document = tasks::document(&bytes).map_err(named)?;
    Ok(TaskSource::of_json(file, &document))
}

fn is_json(file: &str) -> bool {
    file.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case("json"))
}

fn default(project: &Project) -> Result<FoundTasks, Vec<String>> {
    let mut found: Option<FoundTasks> = None;
    for place in PLACES.into_iter().filter(|place| project.root.join(place).symlink_metadata().is_ok()) {
        let is_tasks = match place {
            "prd.json" => has_user_stories(project, place),
            _ => is_json(place) || open_items(project, place).is_some(),
        };
        if !is_tasks {
            continue;
        }
        match &mut found {
            Some(found) => {
                found.notes.push(format!("{place} exists but is not used; use it with --tasks {place}"))
            }
            None => {
                let source = source(project, place.to_owned()).map_err(|why| vec![why])?;
                found = Some(reload(project, &source)?);
            }
        }
    }
    Ok(found.unwrap_or_else(|| FoundTasks { notes: other_plans(project), ..FoundTasks::default() }))
}

/// Returns the list found by default if it is in `ralph/` and not the default file.
pub fn other_in_ralph(project: &Project) -> Option<String> {
    let source = default(project).ok()?.source;
    source.file.strip_prefix("ralph/").filter(|_| !source.is_default()).map(str::to_owned)
}

fn other_plans(project: &Project) -> Vec<String> {
    let note = |place: &&str| {
        let open = open_items(project, place).filter(|open| *open > 0)?;
        let items = if open == 1 { "item" } else { "items" };
        Some(format!("{place} has {open} open {items}; use it with --tasks {place}"))
    };
    OTHER_PLANS.iter().filter_map(note).collect()
}

/// Returns how many boxes of a checklist are open, or `None` without a box or file.
fn open_items(project: &Project, place: &str) -> Option<u64> {
    let tasks = tasks::read(project, &TaskSource::of_markdown(place.into()))?;
    tasks.unusable.is_none().then(|| tasks.total - tasks.passing)
}

fn has_user_stories(project: &Project, place: &str) -> bool {
    let source = TaskSource { file: place.into(), form: TaskFormat::Stories };
    let bytes = tasks::bytes(project, &source).ok().flatten().unwrap_or_default();
    String::from_utf8_lossy(&bytes).contains("\"userStories\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const STORIES: &str = "{\"userStories\": [{\"id\": \"a\", \"passes\": false}]}";
    const BOXES: &str = "- [x] a\n- [ ] b\n";

    fn place(files: &[(&str, &str)]) -> (tempfile::TempDir, Project) {
        let dir = tempfile::tempdir().unwrap();
        let project = Project { root: dir.path().canonicalize().unwrap().join("p") };
        fs::create_dir_all(project.root.join("sub")).unwrap();
        for (name, text) in files {
            let path = project.root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        (dir, project)
    }

    #[test]
    fn a_list_that_is_clearly_meant_for_ralph_is_found() {
        type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, TaskFormat, &'a [&'a str]);
        let cases: &[Case] = &[
            ("nothing", &[], DEFAULT_FILE, TaskFormat::Reviewed, &[]),
            (
                "ours",
                &[(DEFAULT_FILE, STORIES), ("src/TODO.md", BOXES)],
                DEFAULT_FILE,
                TaskFormat::Reviewed,
                &[],
            ),
            (
                "ours before others",
                &[(DEFAULT_FILE, STORIES), ("prd.json", STORIES)],
                DEFAULT_FILE,
                TaskFormat::Reviewed,
                &["prd.json exists but is not used"],
            ),
            ("a prd.json", &[("prd.json", STORIES)], "prd.json", TaskFormat::Stories, &[]),
            (
                "one in ralph/",
                &[("prd.json", STORIES), ("ralph/prd.json", STORIES)],
                "ralph/prd.json",
                TaskFormat::Stories,
                &["prd.json exists but is not used"],
            ),
            (
                "a prd.json of another kind",
                &[("prd.json", "{\"product\": 1}")],
                DEFAULT_FILE,
                TaskFormat::Reviewed,
                &[],
            ),
            ("a binary prd.json", &[("prd.json", "\0\u{1}")], DEFAULT_FILE, TaskFormat::Reviewed, &[]),
            (
                "a plan in ralph/",
                &[("ralph/fix_plan.md", BOXES)],
                "ralph/fix_plan.md",
                TaskFormat::Checklist,
                &[],
            ),
            ("another", &[("ralph/@fix_plan.md", BOXES)], "ralph/@fix_plan.md", TaskFormat::Checklist, &[]),
            (
                "a plan without boxes",
                &[("ralph/PLAN.md", "# Plan\n- a\n")],
                DEFAULT_FILE,
                TaskFormat::Reviewed,
                &[],
            ),
            (
                "lists of the project",
                &[("TODO.md", BOXES), ("PLAN.md", BOXES), ("tasks.md", BOXES)],
                DEFAULT_FILE,
                TaskFormat::Reviewed,
                &[],
            ),
            (
                "a plan of another loop",
                &[("@fix_plan.md", BOXES)],
                DEFAULT_FILE,
                TaskFormat::Reviewed,
                &["@fix_plan.md has 1 open item; use it with --tasks @fix_plan.md"],
            ),
            ("one that is done", &[("fix_plan.md", "- [x] a")], DEFAULT_FILE, TaskFormat::Reviewed, &[]),
        ];
        for (name, files, file, form, notes) in cases {
            let (_dir, project) = place(files);
            let found = find(&project, &Selection::Default, &project.root).unwrap();
            assert_eq!((found.source.file.as_str(), found.source.form), (*file, *form), "{name}");
            assert_eq!(found.notes.len(), notes.len(), "{name}: {:?}", found.notes);
            assert!(
                found.notes.iter().zip(*notes).all(|(note, part)| note.contains(part)),
                "{name}: {:?}",
                found.notes
            );
        }
    }

    #[test]
    fn a_broken_list_is_reported_and_not_skipped() {
        for (files, part) in [
            (&[("prd.json", "{\"userStories\": [")][..], "prd.json is not valid JSON"),
            (&[("ralph/prd.json", "[]")], "ralph/prd.json: the file contains []; expected an object with"),
            (
                &[(
                    "prd.json",
                    "{\"userStories\": [{\"id\": \"a\", \"passes\": 1}, {\"id\": \"a\", \"passes\": true}]}",
                )],
                "story a: passes is 1",
            ),
        ] {
            let (_dir, project) = place(files);
            let faults = find(&project, &Selection::Default, &project.root).unwrap_err();
            assert!(faults[0].contains(part), "{faults:?}");
        }
    }

    #[test]
    fn a_named_file_is_relative_to_the_working_directory() {
        let (_dir, project) = place(&[("TODO.md", BOXES), ("sub/list.JSON", STORIES), ("sub/notes", BOXES)]);
        let sub = project.root.join("sub");
        for (from, name, file, form) in [
            (&project.root, "TODO.md", "TODO.md", TaskFormat::Checklist),
            (&sub, "../TODO.md", "TODO.md", TaskFormat::Checklist),
            (&sub, "list.JSON", "sub/list.JSON", TaskFormat::Stories),
            (&project.root, "./sub/../sub/notes", "sub/notes", TaskFormat::Checklist),
        ] {
            let found = find(&project, &Selection::File(name.into()), from).unwrap();
            assert_eq!((found.source.file.as_str(), found.source.form), (file, form), "{name}");
            assert_eq!(reload(&project, &found.source).unwrap().list, found.list);
        }
        assert!(find(&project, &Selection::None, &sub).unwrap().source.is_none());
    }

    #[test]
    fn a_named_file_that_cannot_be_used_says_why() {
        let (dir, project) =
            place(&[("empty.md", ""), ("data.md", "- [ ] a\0"), ("x.json", "{"), ("notes.md", "# Notes\n")]);
        fs::write(dir.path().join("out.md"), BOXES).unwrap();
        for (name, part) in [
            ("gone.md", "--tasks gone.md: no such file"),
            ("no/such/x.md", "no such file"),
            ("..", "no such file"),
            ("../out.md", "--tasks ../out.md is outside the project"),
            ("/etc/passwd", "is outside the project"),
            ("sub", "sub is a folder, not a regular file"),
            ("empty.md", "empty.md has no checklist item"),
            ("notes.md", "notes.md has no checklist item: a line like \"- [ ] what to do\""),
            ("data.md", "data.md is not valid UTF-8 text"),
            ("x.json", "x.json is not valid JSON"),
        ] {
            let faults = find(&project, &Selection::File(name.into()), &project.root).unwrap_err();
            assert!(faults[0].contains(part), "{name}: {faults:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_project_is_refused() {
        let (dir, project) = place(&[]);
        fs::write(dir.path().join("out.json"), STORIES).unwrap();
        std::os::unix::fs::symlink(dir.path().join("out.json"), project.root.join("prd.json")).unwrap();
        let faults = find(&project, &Selection::File("prd.json".into()), &project.root).unwrap_err();
        assert!(faults[0].contains("is a symbolic link"), "{faults:?}");
        let found = find(&project, &Selection::Default, &project.root).unwrap();
        assert!(found.source.is_default(), "and it is not followed by default");
    }
}
