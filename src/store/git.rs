//! Keeps our files out of git without touching a tracked file: `info/exclude` of the repository, which
//! worktrees share. No git process is needed for that.

use super::file;
use super::project::Project;
use anyhow::{Context, Result};
use std::io::Write;
use std::path::{Path, PathBuf};

const PATTERNS: [&str; 4] =
    [".claude/ralph-state.*", "ralph/blocked.txt", "ralph/decide.txt", "ralph/answered/"];

/// Adds what is missing. A project outside git needs nothing.
pub fn exclude_ours(project: &Project) -> Result<()> {
    let Some((top, common)) = common_dir(&project.root) else { return Ok(()) };
    let below = project.root.strip_prefix(top).unwrap_or(Path::new(""));
    let prefix: String =
        below.components().map(|part| format!("{}/", escape(&part.as_os_str().to_string_lossy()))).collect();
    let path = common.join("info").join("exclude");
    let linked = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    anyhow::ensure!(
        !linked(&path) && !linked(&common.join("info")),
        "{} is behind a symbolic link",
        path.display()
    );
    let present = file::read_bounded(&path, 16 << 20)?.unwrap_or_default();
    let present = String::from_utf8_lossy(&present);
    let lines: Vec<String> = PATTERNS.iter().map(|pattern| format!("/{prefix}{pattern}")).collect();
    let missing: Vec<_> =
        lines.iter().filter(|line| !present.lines().any(|have| have.trim() == **line)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut text = String::new();
    if !present.is_empty() && !present.ends_with('\n') {
        text.push('\n');
    }
    for line in missing {
        text.push_str(line);
        text.push('\n');
    }
    std::fs::create_dir_all(common.join("info"))
        .and_then(|()| {
            std::fs::OpenOptions::new().append(true).create(true).open(&path)?.write_all(text.as_bytes())
        })
        .with_context(|| format!("could not write {}", path.display()))
}

fn escape(name: &str) -> String {
    name.chars().flat_map(|c| if "\\*?[]!# ".contains(c) { vec!['\\', c] } else { vec![c] }).collect()
}

/// The work tree's top and its repository's common folder.
///
/// A `.git` file may name any folder, so a linked worktree counts only where that folder names it back,
/// and a submodule only where the folder lies in a `.git/modules` above it.
fn common_dir(root: &Path) -> Option<(&Path, PathBuf)> {
    let top = root.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok())?;
    let dot_git = top.join(".git");
    if dot_git.is_dir() {
        return dot_git.join("HEAD").is_file().then_some((top, dot_git));
    }
    let git_dir = top.join(pointer(&dot_git, "gitdir:")?).canonicalize().ok()?;
    if let Some(back) = pointer(&git_dir.join("gitdir"), "") {
        let same = git_dir.join(back).canonicalize().ok()? == dot_git.canonicalize().ok()?;
        let common = git_dir.join(pointer(&git_dir.join("commondir"), "")?).canonicalize().ok()?;
        return (same && common.join("HEAD").is_file()).then_some((top, common));
    }
    let module_of_ours = top.ancestors().skip(1).any(|dir| {
        dir.join(".git").join("modules").canonicalize().is_ok_and(|modules| git_dir.starts_with(modules))
    });
    (module_of_ours && git_dir.join("HEAD").is_file()).then_some((top, git_dir))
}

/// The folder in which git keeps this work tree's own state.
pub fn dir(root: &Path) -> Option<PathBuf> {
    let top = root.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok())?;
    let dot_git = top.join(".git");
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    top.join(pointer(&dot_git, "gitdir:")?).canonicalize().ok()
}

fn pointer(path: &Path, prefix: &str) -> Option<PathBuf> {
    let bytes = file::read_bounded(path, 64 << 10).ok()??;
    let text = String::from_utf8(bytes).ok()?;
    Some(PathBuf::from(text.trim().strip_prefix(prefix)?.trim()))
}
