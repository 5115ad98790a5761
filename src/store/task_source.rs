//! Finds the list a run works through: the one that was named, else one that can only be meant for us.
//!
//! A project is full of lists that are nobody's tasks, so nothing outside `ralph/` is taken unasked but a `prd.json`
//! that speaks of user stories.

use super::file;
use super::project::Project;
use super::tasks;
use crate::core::clean;
use crate::core::tasks::{Form, Source, TaskList, USUAL};
use std::path::{Path, PathBuf};

/// What the user says about tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Asked {
    #[default]
    Usual,
    /// This file, from the working directory.
    File(PathBuf),
    /// No list, whatever is there.
    None,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub source: Source,
    pub list: Option<TaskList>,
    /// What else there is to know: lists that are not used.
    pub notes: Vec<String>,
}

/// Looked for in this order; a checklist only where it has boxes.
const PLACES: [&str; 8] = [
    USUAL,
    "ralph/prd.json",
    "prd.json",
    "ralph/tasks.md",
    "ralph/fix_plan.md",
    "ralph/@fix_plan.md",
    "ralph/TODO.md",
    "ralph/PLAN.md",
];

/// Plans of other loops, named where nothing else is found.
const ELSEWHERE: [&str; 4] = ["fix_plan.md", "@fix_plan.md", ".ralph/fix_plan.md", "IMPLEMENTATION_PLAN.md"];
const LARGEST_LOOKED_INTO: u64 = 8 << 20;

/// The list, or everything that is wrong with it, a sentence each.
pub fn find(project: &Project, asked: &Asked, working_dir: &Path) -> Result<Found, Vec<String>> {
    let source = match asked {
        Asked::None => return Ok(Found { source: Source::none(), ..Found::default() }),
        Asked::File(path) => named(project, path, working_dir).map_err(|why| vec![why])?,
        Asked::Usual => return usual(project),
    };
    let list = tasks::load(project, &source)?;
    Ok(Found { source, list, notes: Vec::new() })
}

/// The list of a run that goes on.
pub fn again(project: &Project, source: &Source) -> Result<Found, Vec<String>> {
    let list = tasks::load(project, source)?;
    Ok(Found { source: source.clone(), list, notes: Vec::new() })
}

fn named(project: &Project, path: &Path, working_dir: &Path) -> Result<Source, String> {
    let shown = clean::line(&path.to_string_lossy());
    let whole = working_dir.join(path);
    // The folder without links and dots, the file as it is named: whether that is a link is looked at when it is read.
    let (parent, name) = (whole.parent().and_then(|parent| parent.canonicalize().ok()), whole.file_name());
    let (Some(parent), Some(name)) = (parent, name) else {
        return Err(format!("--tasks {shown} is not there"));
    };
    let whole = parent.join(name);
    let Ok(below) = whole.strip_prefix(project.real_root()) else {
        return Err(format!(
            "--tasks {shown} is outside the project {}: its tasks are part of the work, put them there",
            project.root.display()
        ));
    };
    let Some(file) = below.to_str().map(|file| file.replace(std::path::MAIN_SEPARATOR, "/")) else {
        return Err(format!("--tasks {shown} has a name that is not text (UTF-8)"));
    };
    if whole.symlink_metadata().is_err() {
        return Err(format!("--tasks {shown} is not there"));
    }
    source(project, file)
}

/// What a file's name and content say of its format.
fn source(project: &Project, file: String) -> Result<Source, String> {
    if !is_json(&file) {
        return Ok(Source::of_markdown(file));
    }
    let unread = Source { file: file.clone(), form: Form::Stories };
    let told = |why| format!("{file} {why}");
    let bytes = tasks::bytes(project, &unread).map_err(told)?.unwrap_or_default();
    let document = tasks::document(&bytes).map_err(told)?;
    Ok(Source::of_json(file, &document))
}

fn is_json(file: &str) -> bool {
    file.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case("json"))
}

fn usual(project: &Project) -> Result<Found, Vec<String>> {
    let mut found: Option<Found> = None;
    for place in PLACES.into_iter().filter(|place| project.root.join(place).symlink_metadata().is_ok()) {
        if place == "prd.json" && !text(project, place).contains("\"userStories\"") {
            continue;
        }
        if !is_json(place) && open_items(project, place).is_none() {
            continue;
        }
        match &mut found {
            Some(found) => found
                .notes
                .push(format!("{place} is there too and not used; --tasks {place} takes it instead")),
            None => {
                let source = source(project, place.to_owned()).map_err(|why| vec![why])?;
                found = Some(again(project, &source)?);
            }
        }
    }
    Ok(found.unwrap_or_else(|| Found { notes: elsewhere(project), ..Found::default() }))
}

/// The file of the list that is found unasked, where it lies in `ralph/` and is not the usual one.
pub fn other_in_ralph(project: &Project) -> Option<String> {
    let source = usual(project).ok()?.source;
    source.file.strip_prefix("ralph/").filter(|_| !source.is_default()).map(str::to_owned)
}

fn elsewhere(project: &Project) -> Vec<String> {
    let note = |place: &&str| {
        let open = open_items(project, place).filter(|open| *open > 0)?;
        let (items, them) = if open == 1 { ("item", "it") } else { ("items", "them") };
        Some(format!("{place} has {open} open {items}; --tasks {place} makes {them} this run's tasks"))
    };
    ELSEWHERE.iter().filter_map(note).collect()
}

/// How many boxes of a checklist are open; nothing where there is no box, or no such file.
fn open_items(project: &Project, place: &str) -> Option<u64> {
    let tasks = tasks::read(project, &Source::of_markdown(place.into()))?;
    tasks.unusable.is_none().then(|| tasks.total - tasks.passing)
}

fn text(project: &Project, place: &str) -> String {
    let path = project.resolve(&project.root.join(place)).ok();
    let bytes = path.and_then(|path| file::read_bounded(&path, LARGEST_LOOKED_INTO).ok().flatten());
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
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
    fn what_can_only_be_meant_for_us_is_found() {
        type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, Form, &'a [&'a str]);
        let cases: &[Case] = &[
            ("nothing", &[], USUAL, Form::Reviewed, &[]),
            ("ours", &[(USUAL, STORIES), ("src/TODO.md", BOXES)], USUAL, Form::Reviewed, &[]),
            (
                "ours before others",
                &[(USUAL, STORIES), ("prd.json", STORIES)],
                USUAL,
                Form::Reviewed,
                &["prd.json is there too"],
            ),
            ("a prd.json", &[("prd.json", STORIES)], "prd.json", Form::Stories, &[]),
            (
                "one in ralph/",
                &[("prd.json", STORIES), ("ralph/prd.json", STORIES)],
                "ralph/prd.json",
                Form::Stories,
                &["prd.json is there too"],
            ),
            ("a prd.json of another kind", &[("prd.json", "{\"product\": 1}")], USUAL, Form::Reviewed, &[]),
            ("a binary prd.json", &[("prd.json", "\0\u{1}")], USUAL, Form::Reviewed, &[]),
            ("a plan in ralph/", &[("ralph/fix_plan.md", BOXES)], "ralph/fix_plan.md", Form::Checklist, &[]),
            ("another", &[("ralph/@fix_plan.md", BOXES)], "ralph/@fix_plan.md", Form::Checklist, &[]),
            ("a plan without boxes", &[("ralph/PLAN.md", "# Plan\n- a\n")], USUAL, Form::Reviewed, &[]),
            (
                "lists of the project",
                &[("TODO.md", BOXES), ("PLAN.md", BOXES), ("tasks.md", BOXES)],
                USUAL,
                Form::Reviewed,
                &[],
            ),
            (
                "a plan of another loop",
                &[("@fix_plan.md", BOXES)],
                USUAL,
                Form::Reviewed,
                &["@fix_plan.md has 1 open item; --tasks @fix_plan.md"],
            ),
            ("one that is done", &[("fix_plan.md", "- [x] a")], USUAL, Form::Reviewed, &[]),
        ];
        for (name, files, file, form, notes) in cases {
            let (_dir, project) = place(files);
            let found = find(&project, &Asked::Usual, &project.root).unwrap();
            assert_eq!((found.source.file.as_str(), found.source.form), (*file, *form), "{name}");
            assert_eq!(found.notes.len(), notes.len(), "{name}: {:?}", found.notes);
            assert!(
                found.notes.iter().zip(*notes).all(|(told, part)| told.contains(part)),
                "{name}: {:?}",
                found.notes
            );
        }
    }

    #[test]
    fn a_broken_list_is_told_and_not_passed_over() {
        for (files, part) in [
            (&[("prd.json", "{\"userStories\": [")][..], "prd.json is not valid JSON"),
            (&[("ralph/prd.json", "[]")], "ralph/prd.json: it is [], not an object with"),
            (
                &[(
                    "prd.json",
                    "{\"userStories\": [{\"id\": \"a\", \"passes\": 1}, {\"id\": \"a\", \"passes\": true}]}",
                )],
                "story a: passes is 1",
            ),
        ] {
            let (_dir, project) = place(files);
            let faults = find(&project, &Asked::Usual, &project.root).unwrap_err();
            assert!(faults[0].contains(part), "{faults:?}");
        }
    }

    #[test]
    fn a_named_file_is_taken_from_where_it_was_said() {
        let (_dir, project) = place(&[("TODO.md", BOXES), ("sub/list.JSON", STORIES), ("sub/notes", BOXES)]);
        let sub = project.root.join("sub");
        for (from, name, file, form) in [
            (&project.root, "TODO.md", "TODO.md", Form::Checklist),
            (&sub, "../TODO.md", "TODO.md", Form::Checklist),
            (&sub, "list.JSON", "sub/list.JSON", Form::Stories),
            (&project.root, "./sub/../sub/notes", "sub/notes", Form::Checklist),
        ] {
            let found = find(&project, &Asked::File(name.into()), from).unwrap();
            assert_eq!((found.source.file.as_str(), found.source.form), (file, form), "{name}");
            assert_eq!(again(&project, &found.source).unwrap().list, found.list);
        }
        assert!(find(&project, &Asked::None, &sub).unwrap().source.is_none());
    }

    #[test]
    fn a_named_file_that_cannot_be_used_says_why() {
        let (dir, project) =
            place(&[("empty.md", ""), ("data.md", "- [ ] a\0"), ("x.json", "{"), ("notes.md", "# Notes\n")]);
        fs::write(dir.path().join("out.md"), BOXES).unwrap();
        for (name, part) in [
            ("gone.md", "--tasks gone.md is not there"),
            ("no/such/x.md", "is not there"),
            ("..", "is not there"),
            ("../out.md", "--tasks ../out.md is outside the project"),
            ("/etc/passwd", "is outside the project"),
            ("sub", "sub cannot be read: "),
            ("empty.md", "empty.md has no item of a checklist in it"),
            ("notes.md", "notes.md has no item of a checklist in it: a line like \"- [ ] what to do\""),
            ("data.md", "data.md is not text"),
            ("x.json", "x.json is not valid JSON"),
        ] {
            let faults = find(&project, &Asked::File(name.into()), &project.root).unwrap_err();
            assert!(faults[0].contains(part), "{name}: {faults:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_project_is_refused() {
        let (dir, project) = place(&[]);
        fs::write(dir.path().join("out.json"), STORIES).unwrap();
        std::os::unix::fs::symlink(dir.path().join("out.json"), project.root.join("prd.json")).unwrap();
        let faults = find(&project, &Asked::File("prd.json".into()), &project.root).unwrap_err();
        assert!(faults[0].contains("out of the project"), "{faults:?}");
        let found = find(&project, &Asked::Usual, &project.root).unwrap();
        assert!(found.source.is_default(), "and unasked nobody looks through it");
    }
}
