//! The one place that starts git.
//!
//! A repository's settings are the agent's or a stranger's to write, so nothing in them may start a program or a
//! connection: no filter, hook or monitor, no pager, no external diff, no conversion of text, no signature check, no
//! fetch of missing objects.

use super::git;
use crate::store::process::lookup;
use crate::store::process::program::{self, MAX_ANSWER_BYTES, ProgramEnd};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long git may take for what it only looks up.
const MAX_LOOKUP_WAIT: Duration = Duration::from_secs(10);
/// A command line is finite, and no repository has this many filters.
const MAX_FILTERS: usize = 100;

const SETTINGS: [&str; 9] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    // An agent could hide its commits behind these two.
    "i18n.logOutputEncoding=UTF-8",
    "diff.interHunkContext=0",
    "log.showSignature=false",
    "log.diffMerges=off",
    "protocol.allow=never",
    // A folder of the work tree that looks like a repository is not asked in the place of the real one.
    "safe.bareRepository=explicit",
];
/// Variables that name another repository, or a program.
const VARIABLES: [&str; 13] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_ATTR_SOURCE",
    // Only `git config` reads it, so the filters would be looked for in the wrong file.
    "GIT_CONFIG",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_PAGER",
];

/// Returns git in this folder, for what does not compare files of the work tree: see [`uncommitted`]. It is an error if
/// git would wait for one of its files, or read it without end.
pub fn command(folder: &Path) -> Result<Command, String> {
    if let Some(path) = git::unsafe_file(folder) {
        return Err(unsafe_file_error(&path));
    }
    let mut git = lookup::command("git");
    // Without optional locks git does not write its index, which a hook would be told of.
    git.arg("--no-optional-locks").arg("--no-pager");
    git.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
    git.current_dir(folder);
    for name in VARIABLES {
        git.env_remove(name);
    }
    git.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none").env("GIT_TERMINAL_PROMPT", "0");
    // History counts as it was made, not as someone replaced it.
    git.env("GIT_NO_REPLACE_OBJECTS", "1").env("GIT_GRAFT_FILE", "/dev/null/none").env("LC_ALL", "C");
    Ok(git)
}

fn unsafe_file_error(path: &Path) -> String {
    format!("{} is not a regular file, or is too large, so Ralph does not run git here", path.display())
}

/// Asks git in this folder, and returns what it printed.
pub fn run_git(folder: &Path, args: &[&str], input: &[u8], limit: Duration) -> Result<String, String> {
    let mut git = command(folder)?;
    git.args(args);
    finish(git, input, limit)
}

fn finish(git: Command, input: &[u8], limit: Duration) -> Result<String, String> {
    let output = program::run(git, input, limit);
    if output.passed() { Ok(output.stdout) } else { Err(format!("git: {}", output.complaint())) }
}

/// Returns the paths of what is not committed, from the top of the work tree, as far as `paths` name it.
///
/// No filter runs, not even the user's own: what those start may follow the repository's settings again (the
/// extensions of git-lfs do). Without it a file that a filter converts seems changed, so such a change does not count.
/// Nor does a change inside a submodule: git would start another git there, with that repository's settings.
pub fn uncommitted(folder: &Path, paths: &[&str], limit: Duration) -> Result<Vec<String>, String> {
    let top = git::top(folder).ok_or("no git repository")?;
    let ignores = top.join(".gitignore");
    if git::is_unsafe_file(&ignores, git::MAX_EXCLUDE_BYTES) {
        return Err(unsafe_file_error(&ignores));
    }
    let filters = filters(folder, top, limit)?;
    let mut git = command(folder)?;
    for name in &filters {
        for setting in ["clean=", "smudge=", "process=", "required=false"] {
            git.arg("-c").arg(format!("filter.{name}.{setting}"));
        }
    }
    git.args(["status", "--porcelain", "-z", "--untracked-files=all", "--no-renames"]);
    git.args(["--ignore-submodules=dirty", "--"]).args(paths);
    // `XY path`: what is staged, and what is changed in the work tree.
    let rows = finish(git, b"", limit)?;
    let rows = rows.split_terminator('\0').filter_map(|row| Some((row.get(..2)?, row.get(3..)?)));
    let rows: Vec<(&str, &str)> = rows.filter(|(_, path)| !path.is_empty()).collect();
    let seems_changed: Vec<&str> = rows.iter().filter(|(xy, _)| *xy == " M").map(|(_, path)| *path).collect();
    let converted = match filters.is_empty() || seems_changed.is_empty() {
        true => BTreeSet::new(),
        false => converted(top, &seems_changed, &filters, limit)?,
    };
    let is_known = |(xy, path): &&(&str, &str)| *xy != " M" || !converted.contains(*path);
    Ok(rows.iter().filter(is_known).map(|(_, path)| (*path).to_owned()).collect())
}

/// Returns the names of all filters that any settings define. It is an error if one cannot be switched off, if the
/// settings name another folder as the work tree, or a file that git would wait for or read without end.
fn filters(folder: &Path, top: &Path, limit: Duration) -> Result<BTreeSet<String>, String> {
    let mut git = command(folder)?;
    git.args(["config", "-z", "--type=path", "--get-regexp"]);
    git.arg(r"^(filter\..*|core\.(worktree|attributesfile|excludesfile))$");
    let output = program::run(git, b"", limit.min(MAX_LOOKUP_WAIT));
    if output.ended == ProgramEnd::Exit(1) && output.stdout.is_empty() {
        return Ok(BTreeSet::new());
    }
    if !output.passed() || output.stdout.len() >= MAX_ANSWER_BYTES {
        return Err(format!("git: the settings cannot be read: {}", output.complaint()));
    }
    let mut names = BTreeSet::new();
    for row in output.stdout.split_terminator('\0') {
        let (key, value) = row.split_once('\n').unwrap_or((row, ""));
        if key == "core.worktree" {
            // It is the main work tree's, and git does not follow it in a linked one.
            let named = git::dir(folder).and_then(|dir| dir.join(value).canonicalize().ok());
            if named != top.canonicalize().ok() && !git::is_linked_worktree(top) {
                return Err("git: core.worktree names another folder".into());
            }
        } else if key.starts_with("core.") {
            let path = top.join(value);
            if git::is_unsafe_file(&path, git::MAX_EXCLUDE_BYTES) {
                return Err(unsafe_file_error(&path));
            }
        } else if let Some((name, _)) = key.strip_prefix("filter.").and_then(|rest| rest.rsplit_once('.')) {
            names.insert(name.to_owned());
        }
    }
    // Git takes a setting apart at its first `=`, and what is not UTF-8 was replaced.
    let is_unsafe = |name: &String| name.contains(['=', char::REPLACEMENT_CHARACTER]);
    if names.len() > MAX_FILTERS || names.iter().any(is_unsafe) {
        return Err("git: a filter of this repository cannot be switched off".into());
    }
    Ok(names)
}

/// Returns those of the paths that one of the filters converts. Git looks that up in its attributes.
fn converted(
    top: &Path,
    paths: &[&str],
    filters: &BTreeSet<String>,
    limit: Duration,
) -> Result<BTreeSet<String>, String> {
    let (args, input) = (["check-attr", "-z", "--stdin", "filter"], paths.join("\0"));
    let answer = run_git(top, &args, input.as_bytes(), limit.min(MAX_LOOKUP_WAIT))?;
    // Three fields for each path: the path, `filter`, and its name.
    let fields: Vec<&str> = answer.split_terminator('\0').collect();
    let rows = fields.chunks_exact(3).filter(|row| filters.contains(row[2]));
    Ok(rows.map(|row| row[0].to_owned()).collect())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    /// Files of a work tree can look like a repository, and come with a clone.
    #[test]
    fn a_folder_that_looks_like_a_repository_is_not_asked_in_the_place_of_the_real_one() {
        let folder = tempfile::tempdir().unwrap();
        let asked = |folder: &Path| run_git(folder, &["rev-parse", "--git-dir"], b"", MAX_LOOKUP_WAIT);
        if run_git(folder.path(), &["init", "-q"], b"", MAX_LOOKUP_WAIT).is_err() {
            return;
        }
        let inner = folder.path().join("inner");
        std::fs::create_dir_all(inner.join("refs")).unwrap();
        std::fs::create_dir(inner.join("objects")).unwrap();
        assert!(asked(&inner).unwrap().ends_with("/.git\n"));
        std::fs::write(inner.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(inner.join("config"), "[core]\n\tbare = false\n\tworktree = .\n").unwrap();
        assert!(asked(&inner).unwrap_err().contains("safe.bareRepository"), "{:?}", asked(&inner));
    }

    #[test]
    fn git_is_not_asked_if_it_would_wait_for_an_ignore_file() {
        let folder = tempfile::tempdir().unwrap();
        if run_git(folder.path(), &["init", "-q"], b"", MAX_LOOKUP_WAIT).is_err() {
            return;
        }
        std::fs::write(folder.path().join("work"), "").unwrap();
        let uncommitted = || uncommitted(folder.path(), &["."], MAX_LOOKUP_WAIT);
        assert_eq!(uncommitted(), Ok(vec!["work".to_owned()]));
        let pipe = Command::new("mkfifo").arg(folder.path().join(".gitignore")).status().unwrap();
        assert!(pipe.success());
        let refused = uncommitted().unwrap_err();
        assert!(refused.contains(".gitignore is not a regular file"), "{refused}");
    }
}
