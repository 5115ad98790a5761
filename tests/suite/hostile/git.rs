//! A repository that claims to be another one gets no line into the other's `info/exclude`, and no git that we start
//! runs what a repository names.

use super::Hostile;
use crate::env::{Env, Program, SESSION, write_program};
use crate::report::night::git;
use std::fs;
use std::path::Path;

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

/// Git itself would wait for it, or read it until the memory is gone.
#[test]
fn git_is_not_asked_where_it_would_wait_or_read_without_end() {
    let names = ["HEAD", "commondir", "config", "index", "packed-refs", "info/exclude", "info/attributes"];
    for name in names {
        let place = format!(".git/{name}");
        for target in [None, Some("/dev/zero")] {
            let hostile = Hostile::new();
            match target {
                None => hostile.pipe(&place),
                Some(target) => hostile.link(&place, target),
            };
            let doctor = hostile.env.call(Program::Ralph).args(&["doctor", "--quick"]);
            let run = hostile.run("doctor", doctor);
            let told =
                format!("{place} is not a regular file, or is too large, so Ralph does not run git here");
            assert!(run.stdout.contains(&told), "{run:?}");
        }
    }
}

/// Git opens what its settings include before it does anything else.
#[test]
fn git_is_not_asked_where_an_included_file_would_hold_it_up() {
    if !crate::report::night::has_git() {
        return;
    }
    for (settings, pipe) in [
        ("[include]\n\tpath = more\n", ".git/more"),
        ("[includeIf \"gitdir:/**\"]\n\tpath = ../more\n", "more"),
        ("[include]\n\tpath = one\n", ".git/more"),
        ("[core] [include] path = more\n", ".git/more"),
    ] {
        let hostile = Hostile::new();
        git(&hostile.env, &["init", "-q"]);
        hostile.env.write(".git/one", "[include]\n\tpath = more\n").write(".git/config", settings);
        hostile.pipe(pipe);
        let doctor = hostile.env.call(Program::Ralph).args(&["doctor", "--quick"]);
        let run = hostile.run("doctor", doctor);
        assert!(
            run.stdout.contains("is not a regular file, or is too large, so Ralph does not run git here"),
            "{run:?}"
        );
        let report = hostile.env.call(Program::Ralph).args(&["report", "--markdown"]);
        hostile.run("report", report);
    }
    // An ordinary one is no reason not to ask.
    let env = Env::new();
    git(&env, &["init", "-q"]);
    env.write(".git/one", "[include]\n\tpath = nowhere\n").write("more", "");
    for path in ["one", "../more", "gone"] {
        git(&env, &["config", "--add", "include.path", path]);
    }
    let told = env.ralph(&["doctor", "--quick"]).stdout;
    assert!(told.contains("a repository") && !told.contains("Ralph does not run git here"), "{told}");
}

/// A repository with a task list and a file in each of two filters, all committed, whose settings name a program
/// wherever git takes one.
fn trapped() -> Env {
    let env = Env::new();
    git(&env, &["init", "-q", "-b", "main"]);
    env.write("ralph/tasks.json", r#"{"userStories": [{"id": "US-1", "title": "a", "passes": false}]}"#);
    env.write("plain.txt", "one\n").write("a.own", "one\n").write("a.user", "one\n");
    env.write(".gitattributes", "*.own filter=own\n*.user filter=user\n*.far filter=far\n* diff=own\n");
    git(&env, &["init", "-q", "-b", "main", "sub"]);
    env.write("sub/a.own", "one\n").write("sub/.gitattributes", "* filter=inner\n");
    git(&env, &["-C", "sub", "add", "."]);
    git(&env, &["-C", "sub", "commit", "-q", "-m", "sub"]);
    git(&env, &["add", "."]);
    git(&env, &["commit", "-q", "-m", "one"]);
    let trap = env.base.join("trap.sh");
    write_program(&trap, &format!("#!/bin/sh\necho \"$0 $*\" >> {}/ran\nexit 1\n", env.base.display()));
    fs::copy(&trap, env.path(".git/hooks/post-index-change")).unwrap();
    let trap = trap.to_str().unwrap();
    for place in ["filter.own", "filter.a.b c"] {
        for key in ["clean", "smudge", "process"] {
            git(&env, &["config", &format!("{place}.{key}"), trap]);
        }
        git(&env, &["config", &format!("{place}.required"), "true"]);
    }
    git(&env, &["-C", "sub", "config", "filter.inner.clean", trap]);
    git(&env, &["config", "--global", "filter.user.clean", trap]);
    env.write(".git/more", format!("[filter \"far\"]\n\tclean = {trap}\n"));
    git(&env, &["config", "include.path", "more"]);
    for key in [
        "core.fsmonitor",
        "core.pager",
        "pager.status",
        "pager.log",
        "pager.diff",
        "core.sshCommand",
        "core.askPass",
        "credential.helper",
        "diff.external",
        "diff.own.textconv",
        "diff.own.command",
        "gpg.program",
    ] {
        git(&env, &["config", key, trap]);
    }
    for (key, value) in [
        ("log.showSignature", "true"),
        ("status.submoduleSummary", "true"),
        ("diff.submodule", "diff"),
        ("diff.ignoreSubmodules", "none"),
        ("submodule.recurse", "true"),
        ("core.untrackedCache", "true"),
    ] {
        git(&env, &["config", key, value]);
    }
    // Git must compare these, which is when it runs a filter.
    for file in ["plain.txt", "a.own", "a.user", "sub/a.own"] {
        rewrite(&env.path(file));
    }
    env
}

/// Writes the same bytes into another file of that name.
fn rewrite(path: &Path) {
    let text = fs::read(path).unwrap();
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

fn assert_not_trapped(env: &Env) {
    let ran = fs::read_to_string(env.base.join("ran")).unwrap_or_default();
    assert!(ran.is_empty(), "{ran}");
}

/// Runs one iteration whose agent does this and then ends its turn; returns what the Stop hook told it.
fn iteration(env: &Env, work: &str) -> String {
    let hook = Program::StopHook.path();
    let stop =
        r#"'{"session_id":"s-1","hook_event_name":"Stop","cwd":"%s","last_assistant_message":"done"}'"#;
    let script = format!("{work}\nprintf {stop} \"$PWD\" | {hook} > ../answer");
    let run =
        env.run_with(&script, &["--new", "--max-iterations", "1", "--skip-constraint-scan", "task"]).run();
    assert_eq!(run.code, Some(1), "{run:?}");
    fs::read_to_string(env.base.join("answer")).unwrap()
}

#[test]
fn asking_what_is_not_committed_starts_nothing_that_a_repository_names() {
    if !crate::report::night::has_git() {
        return;
    }
    let env = trapped();
    assert_eq!(iteration(&env, ":").trim(), "", "all is committed, and no filter says otherwise");
    let answer =
        iteration(&env, "echo two > plain.txt; echo two > a.own; echo x > b.far; echo x > 'c d.txt'");
    assert!(answer.contains(r#"not committed: plain.txt, b.far, \"c d.txt\"."#), "{answer}");
    env.ralph(&["report", "--markdown"]).ok();
    env.ralph(&["doctor", "--quick"]);
    assert_not_trapped(&env);
    // Without a switch the trap works.
    let status =
        std::process::Command::new("git").args(["status", "--short"]).current_dir(&env.project).output();
    assert!(status.is_ok() && env.base.join("ran").exists());
}

/// A name that cannot be switched off, a work tree elsewhere, a file without an end: git is not asked at all.
#[test]
fn a_repository_that_cannot_be_asked_safely_is_not_asked() {
    if !crate::report::night::has_git() {
        return;
    }
    for (key, value) in [
        ("filter.a=b.clean", "../trap.sh"),
        ("core.worktree", "../../outside"),
        ("core.attributesFile", "/dev/zero"),
        ("core.excludesFile", "/dev/zero"),
    ] {
        let env = trapped();
        fs::create_dir(env.base.join("outside")).unwrap();
        fs::write(env.base.join("outside/private.txt"), "").unwrap();
        env.write(".gitattributes", "* filter=a=b\n");
        git(&env, &["config", key, value]);
        assert_eq!(iteration(&env, "echo two > plain.txt").trim(), "", "{key}");
        assert_not_trapped(&env);
    }
}

#[test]
fn a_missing_object_is_not_fetched() {
    if !crate::report::night::has_git() {
        return;
    }
    let env = Env::new();
    git(&env, &["init", "-q", "-b", "main"]);
    env.write("plain.txt", "one\n").start("task", &[]);
    git(&env, &["add", "plain.txt"]);
    git(&env, &["commit", "-q", "-m", "one"]);
    env.at(60).turn(SESSION, "a step");
    let trap = env.base.join("trap.sh");
    write_program(&trap, &format!("#!/bin/sh\necho \"$0\" >> {}/ran\n", env.base.display()));
    for (key, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", &format!("ext::{}", trap.display())),
        ("protocol.ext.allow", "always"),
    ] {
        git(&env, &["config", key, value]);
    }
    // "one\n", as git names it.
    fs::remove_file(env.path(".git/objects/56/26abf0f72e58d7a153368ba57db4c673c0e171")).unwrap();
    let report = env.ralph(&["report", "--markdown"]).ok();
    assert!(report.contains("5626abf0f72e58d7a153368ba57db4c673c0e171"), "{report}");
    assert_not_trapped(&env);
    let diff = std::process::Command::new("git").args(["show"]).current_dir(&env.project).output();
    assert!(diff.is_ok() && env.base.join("ran").exists(), "without a switch the trap works");
}
