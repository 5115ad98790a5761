//! A repository that claims to be another one gets no line into the other's `info/exclude`.

use super::Hostile;
use crate::env::{Program, SESSION};
use std::fs;

/// Starts a loop in a folder of the project and asserts that the other repository is as it was.
fn start_in(hostile: &Hostile, folder: &str) {
    let before = hostile.victims();
    let folder = hostile.env.path(folder);
    let start = hostile.env.call(Program::Ralph).args(&["start", "--session", SESSION, "task"]).cwd(&folder);
    let run = hostile.run("start", start);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(hostile.victims(), before);
}

#[test]
fn a_git_folder_that_is_a_link_to_another_repository() {
    let hostile = Hostile::new();
    hostile.link(".git", hostile.outside("repo/.git"));
    start_in(&hostile, "");
}

#[test]
fn a_git_file_whose_folder_has_a_foreign_commondir() {
    let hostile = Hostile::new();
    fs::write(hostile.free(".git"), "gitdir: fake\n").unwrap();
    let other = hostile.outside("repo/.git");
    hostile.env.write("fake/gitdir", "../.git\n").write("fake/HEAD", "ref: refs/heads/main\n");
    hostile.env.write("fake/commondir", format!("{}\n", other.display()));
    start_in(&hostile, "");
}

#[test]
fn a_git_folder_with_a_foreign_commondir() {
    let hostile = Hostile::new();
    hostile.env.write(".git/commondir", format!("{}\n", hostile.outside("repo/.git").display()));
    start_in(&hostile, "");
}

#[test]
fn a_submodule_whose_repository_is_behind_a_link() {
    let hostile = Hostile::new();
    hostile.link(".git/modules", hostile.outside("repo"));
    hostile.env.write("sub/.git", "gitdir: ../.git/modules/.git\n");
    start_in(&hostile, "sub");
}

#[test]
fn the_list_itself_behind_a_link() {
    for place in [".git/info", ".git/info/exclude"] {
        let hostile = Hostile::new();
        hostile.link(place, hostile.outside("repo").join(place));
        start_in(&hostile, "");
    }
}

/// Git itself would wait for it.
#[test]
fn a_head_that_is_a_pipe_is_named_and_not_waited_for() {
    let hostile = Hostile::new();
    hostile.pipe(".git/HEAD");
    let doctor = hostile.env.call(Program::Ralph).args(&["doctor", "--quick"]);
    let run = hostile.run("doctor", doctor);
    assert!(run.stdout.contains(".git/HEAD is not a regular file, so git cannot work here"), "{run:?}");
}
