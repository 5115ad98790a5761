//! Which project a program belongs to, and keeping our files out of its git.

use crate::env::{Env, OTHER, Program, SESSION};
use crate::skip::skip;
use std::fs;
use std::path::Path;
use std::process::Command;

const EXCLUDED: &str = "/.claude/ralph-state.*";

fn excluded(git: &Path, line: &str) -> usize {
    let text = fs::read_to_string(git.join("info/exclude")).unwrap_or_default();
    text.lines().filter(|have| *have == line).count()
}

fn ralph_in(env: &Env, dir: &Path, args: &[&str]) -> String {
    env.call(Program::Ralph).args(args).cwd(dir).run().ok()
}

#[test]
fn a_start_in_a_subdirectory_uses_the_git_root() {
    let env = Env::git();
    let deep = env.path("a/b");
    fs::create_dir_all(&deep).unwrap();
    ralph_in(&env, &deep, &["start", "--session", SESSION, "task"]);
    assert_eq!(env.record(SESSION)["task"], "task");
    assert!(!deep.join(".claude").exists());
    assert!(ralph_in(&env, &deep, &["status"]).contains("working"));
    env.turn(SESSION, "x").continues();
}

#[test]
fn the_nearest_folder_with_our_files_is_the_project() {
    let env = Env::git();
    env.write("packages/app/.claude/ralph-config.json", "{}");
    let inner = env.path("packages/app/src");
    fs::create_dir_all(&inner).unwrap();
    ralph_in(&env, &inner, &["start", "--session", SESSION, "inner"]);
    assert!(env.exists("packages/app/.claude/ralph-state.json"));
    assert!(!env.exists(".claude"));
    assert_eq!(excluded(&env.path(".git"), "/packages/app/.claude/ralph-state.*"), 1);
}

#[test]
fn outside_git_the_working_directory_is_the_project() {
    let env = Env::new();
    env.start("task", &[]);
    assert!(env.exists(".claude/ralph-state.json"));
}

#[test]
fn the_clients_project_directory_wins_over_the_agents_working_directory() {
    let env = Env::new();
    env.start("task", &[]);
    let elsewhere = env.base.join("elsewhere");
    fs::create_dir_all(elsewhere.join(".claude")).unwrap();
    fs::write(elsewhere.join(".claude/ralph-config.json"), "{}").unwrap();
    let event = env.stop(SESSION).says("x").field("cwd", elsewhere.to_str().unwrap());
    event.call().cwd(&elsewhere).run().answer().continues();
}

#[test]
fn our_files_are_excluded_from_git_once() {
    let env = Env::git();
    fs::write(env.path(".git/info/exclude"), "*.log").unwrap();
    env.start("task", &[]);
    let once = env.read(".git/info/exclude");
    assert!(once.starts_with("*.log\n"), "a last line without its end stays whole: {once}");
    assert_eq!(excluded(&env.path(".git"), EXCLUDED), 1);
    env.start_in(OTHER, "another", &[]);
    env.start("again", &["--replace"]);
    assert_eq!(env.read(".git/info/exclude"), once);
    assert!(!env.exists(".gitignore"), "no tracked file is touched");
}

#[test]
fn a_missing_exclude_file_is_created() {
    let env = Env::git();
    fs::remove_dir_all(env.path(".git/info")).unwrap();
    env.start("task", &[]);
    assert_eq!(excluded(&env.path(".git"), EXCLUDED), 1);
}

#[test]
fn a_worktree_has_its_own_state_and_the_common_exclude() {
    let env = Env::git();
    let tree = env.worktree(&env.base.join("tree"));
    ralph_in(&env, &tree, &["start", "--session", SESSION, "task"]);
    assert!(tree.join(".claude/ralph-state.json").is_file());
    assert!(!env.exists(".claude"), "the main checkout has no loop");
    assert_eq!(excluded(&env.path(".git"), EXCLUDED), 1);
    let sub = tree.join("src");
    fs::create_dir(&sub).unwrap();
    let event = env.stop(SESSION).says("x").field("cwd", sub.to_str().unwrap());
    event.call().without("CLAUDE_PROJECT_DIR").cwd(&sub).run().answer().continues();
}

/// Where `claude --worktree` puts them.
#[test]
fn a_worktree_inside_the_main_checkout_is_its_own_project() {
    let env = Env::git();
    env.start_in(OTHER, "in the main checkout", &[]);
    let tree = env.worktree(&env.path(".claude/worktrees/wt"));
    ralph_in(&env, &tree, &["start", "--session", SESSION, "in the worktree"]);
    assert!(tree.join(".claude/ralph-state.json").is_file(), "its loop is in its own folder");
    assert!(env.record(SESSION).is_null());
    let event = env.stop(SESSION).says("x").field("cwd", tree.to_str().unwrap());
    event.call().var("CLAUDE_PROJECT_DIR", &tree).cwd(&tree).run().answer().continues();
}

#[test]
fn a_git_file_that_names_a_foreign_folder_writes_nothing_there() {
    let env = Env::new();
    let foreign = env.base.join("foreign");
    env.git_init(&foreign);
    fs::write(env.path(".git"), format!("gitdir: {}\n", foreign.join(".git").display())).unwrap();
    env.start("task", &[]);
    assert!(!foreign.join(".git/info/exclude").exists());
}

#[test]
fn git_itself_sees_none_of_our_files() {
    let git = |dir: &Path, args: &[&str]| {
        let mut command = Command::new("git");
        command
            .args(args)
            .current_dir(dir)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        command.output().ok().filter(|output| output.status.success())
    };
    let env = Env::named("my [pro]ject #1");
    if git(&env.project, &["init", "-q"]).is_none() {
        skip("git is not installed");
        return;
    }
    let inner = env.path("sub [x]");
    fs::create_dir(&inner).unwrap();
    fs::create_dir(inner.join(".claude")).unwrap();
    fs::write(inner.join(".claude/ralph-config.json"), "{}").unwrap();
    ralph_in(&env, &inner, &["start", "--session", SESSION, "inner"]);
    env.start("outer", &[]);
    env.turn(SESSION, "<promise>BLOCKED:why</promise>").ended("blocked");
    let seen = git(&env.project, &["status", "--porcelain", "-uall"]).unwrap();
    let seen = String::from_utf8(seen.stdout).unwrap();
    assert_eq!(seen.lines().count(), 1, "only the settings, which may be committed: {seen}");
    assert!(seen.contains("ralph-config.json"), "{seen}");
}
