//! Git's own files, without a git process: keeps our files out of git by `info/exclude` of the repository,
//! which worktrees share, and reads which commit HEAD names.

use crate::store::file::{self, lock::Lock};
use crate::store::project::{Project, includes, layout};
use anyhow::{Context, Result};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const STATE: &str = ".claude/ralph-state.*";

pub const MAX_EXCLUDE_BYTES: u64 = 16 << 20;
const MAX_PACKED_BYTES: u64 = 64 << 20;

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
    let patterns = std::iter::once(STATE).chain(layout::IGNORED);
    let lines: Vec<String> = patterns.map(|pattern| format!("/{prefix}{pattern}")).collect();
    let present = file::read_unlinked(&path, MAX_EXCLUDE_BYTES)?.unwrap_or_default();
    if missing(&present, &lines).is_empty() {
        return Ok(());
    }
    append_missing(&path, &lines).with_context(|| format!("could not write {}", path.display()))
}

/// Appends the lines that are missing once the file is ours: another start may have added them since we looked.
fn append_missing(path: &Path, lines: &[String]) -> Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(path))?;
    let lock = Lock::acquire(path)?;
    let mut file = lock.file();
    let mut present = Vec::new();
    file.take(MAX_EXCLUDE_BYTES).read_to_end(&mut present)?;
    let mut text = missing(&present, lines);
    if !text.is_empty() && present.last().is_some_and(|last| *last != b'\n') {
        text.insert(0, '\n');
    }
    file.seek(SeekFrom::End(0))?;
    Ok(file.write_all(text.as_bytes())?)
}

/// Returns those of the lines that the file does not have.
fn missing(present: &[u8], lines: &[String]) -> String {
    let present = String::from_utf8_lossy(present);
    let absent = lines.iter().filter(|line| !present.lines().any(|have| have.trim() == **line));
    absent.map(|line| format!("{line}\n")).collect()
}

fn escape(name: &str) -> String {
    name.chars().flat_map(|c| if "\\*?[]!# ".contains(c) { vec!['\\', c] } else { vec![c] }).collect()
}

/// Returns the work tree's top and its repository's common folder.
///
/// A `.git` file may name any folder, so a linked worktree counts only if that folder names the worktree,
/// and a submodule only if the folder is in a `.git/modules` above it.
fn common_dir(root: &Path) -> Option<(&Path, PathBuf)> {
    let top = top(root)?;
    let dot_git = top.join(".git");
    let meta = dot_git.symlink_metadata().ok()?;
    if meta.is_dir() {
        return dot_git.join("HEAD").is_file().then_some((top, dot_git));
    }
    // A link would make another repository this one.
    let git_dir = top.join(pointer(&dot_git, "gitdir:").filter(|_| meta.is_file())?).canonicalize().ok()?;
    if let Some(back) = pointer(&git_dir.join("gitdir"), "") {
        let same = git_dir.join(back).canonicalize().ok()? == dot_git.canonicalize().ok()?;
        let common = git_dir.join(pointer(&git_dir.join("commondir"), "")?).canonicalize().ok()?;
        // Only what is in the repository itself speaks for it.
        let named = git_dir.parent() == Some(&common.join("worktrees"));
        return (same && named && common.join("HEAD").is_file()).then_some((top, common));
    }
    // The folder's path has no links any more, so it is really in there.
    let module_of_ours = top
        .ancestors()
        .skip(1)
        .any(|dir| dir.canonicalize().is_ok_and(|dir| git_dir.starts_with(dir.join(".git").join("modules"))));
    (module_of_ours && git_dir.join("HEAD").is_file()).then_some((top, git_dir))
}

/// Returns the folder that stands for the project in a linked worktree of its repository, if `cwd` is in one.
///
/// Git's own files prove it both ways: the worktree's `.git` file names a folder in `worktrees/` of the project's
/// repository, and that folder names the worktree. Any other folder changes nothing.
pub fn worktree(project: &Path, cwd: &Path) -> Option<PathBuf> {
    let (own, here) = (top(project)?, top(cwd)?);
    if own == here {
        return None;
    }
    let common = common_dir(here)?.1.canonicalize().ok()?;
    let is_linked = dir(here)?.parent() == Some(&common.join("worktrees"));
    let (here_real, own_real) = (here.canonicalize().ok()?, own.canonicalize().ok()?);
    if !is_linked || here_real == own_real || common_dir(own)?.1.canonicalize().ok()? != common {
        return None;
    }
    let below = project.strip_prefix(own).ok()?;
    // Joining nothing would add a slash.
    let place = if below.as_os_str().is_empty() { here.to_owned() } else { here.join(below) };
    // A project below the top may not be there in another commit, or be a link that leads out.
    let is_inside = place.is_dir() && place.canonicalize().is_ok_and(|real| real.starts_with(&here_real));
    Some(if is_inside { place } else { here.to_owned() })
}

/// Returns whether the repository has linked worktrees.
pub fn has_worktrees(root: &Path) -> bool {
    dir(root).is_some_and(|dir| common(&dir).join("worktrees").is_dir())
}

/// Returns whether this folder is the top of a linked worktree, as far as its `.git` file tells.
pub fn is_linked_worktree(folder: &Path) -> bool {
    let git_dir = pointer(&folder.join(".git"), "gitdir:").map(|to| folder.join(to));
    git_dir.is_some_and(|dir| dir.join("commondir").is_file())
}

/// Returns the work tree that this folder is in.
pub fn top(root: &Path) -> Option<&Path> {
    root.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok())
}

/// Returns the folder in which git keeps this work tree's own state.
pub fn dir(root: &Path) -> Option<PathBuf> {
    let top = top(root)?;
    let dot_git = top.join(".git");
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    top.join(pointer(&dot_git, "gitdir:")?).canonicalize().ok()
}

/// Returns the commit that HEAD names, read from git's own files: no process is started. For a branch without a commit it
/// returns the branch's name, so that the first commit is a change. Returns `None` outside git, and where refs are stored in
/// another format.
pub fn head(root: &Path) -> Option<String> {
    let dir = dir(root)?;
    let head = text(&dir.join("HEAD"))?;
    let Some(name) = head.strip_prefix("ref:").map(str::trim) else {
        return Some(head).filter(|id| is_commit(id));
    };
    // A name is a path below the folder: one that leads out of it, or nowhere, is not asked for.
    if !name.starts_with("refs/") || name.contains("..") || name.ends_with("/.invalid") {
        return None;
    }
    let common = common(&dir);
    let loose = [&dir, &common].into_iter().find_map(|dir| text(&dir.join(name)).filter(|id| is_commit(id)));
    Some(loose.or_else(|| packed(&common, name)).unwrap_or_else(|| name.to_owned()))
}

/// The files that git itself reads whole, or waits for, in the folder of a work tree and in the one they share, with
/// the most that each may hold.
const READ_BY_GIT: [(&str, u64); 10] = [
    ("HEAD", MAX_POINTER_BYTES),
    ("commondir", MAX_POINTER_BYTES),
    ("config", MAX_EXCLUDE_BYTES),
    ("config.worktree", MAX_EXCLUDE_BYTES),
    ("info/attributes", MAX_EXCLUDE_BYTES),
    ("info/exclude", MAX_EXCLUDE_BYTES),
    ("index", u64::MAX),
    ("packed-refs", u64::MAX),
    ("shallow", u64::MAX),
    ("objects/info/alternates", MAX_EXCLUDE_BYTES),
];
const SETTINGS: [&str; 2] = ["config", "config.worktree"];
/// One line, however large the repository is.
const MAX_POINTER_BYTES: u64 = 64 << 10;

/// Returns a file of git's own that would make git wait, or read far too much: a pipe, a device, a huge file.
pub fn unsafe_file(root: &Path) -> Option<PathBuf> {
    let dir = dir(root)?;
    let folders = [common(&dir), dir];
    let mut paths =
        folders.iter().flat_map(|folder| READ_BY_GIT.map(|(name, max_bytes)| (folder.join(name), max_bytes)));
    let odd = paths.find(|(path, max_bytes)| is_unsafe_file(path, *max_bytes)).map(|(path, _)| path);
    let settings = || folders.iter().flat_map(|folder| SETTINGS.map(|name| folder.join(name)));
    odd.or_else(|| settings().find_map(|path| includes::unsafe_file(&path)))
}

/// Returns whether this is no regular file, or a larger one. A link is followed: it is an old way to name a branch, and
/// other tools share files of repositories by links.
pub fn is_unsafe_file(path: &Path, max_bytes: u64) -> bool {
    path.metadata().is_ok_and(|meta| !meta.is_file() || meta.len() > max_bytes)
}

/// Returns the folder that the work trees of a repository share, from the git folder of one of them.
pub fn common(dir: &Path) -> PathBuf {
    pointer(&dir.join("commondir"), "").map_or_else(|| dir.to_owned(), |to| dir.join(to))
}

fn packed(common: &Path, name: &str) -> Option<String> {
    let bytes = file::read_unlinked(&common.join("packed-refs"), MAX_PACKED_BYTES).ok()??;
    let end = memchr::memmem::find_iter(&bytes, name).find(|at| {
        let behind = bytes.get(at + name.len());
        *at > 0 && bytes[at - 1] == b' ' && matches!(behind, None | Some(b'\n' | b'\r'))
    })?;
    let line = memchr::memrchr(b'\n', &bytes[..end]).map_or(0, |at| at + 1);
    String::from_utf8(bytes[line..end - 1].to_vec()).ok().filter(|id| is_commit(id))
}

/// Returns whether this can be the id of a commit: a repository may write any text in its place.
pub fn is_commit(id: &str) -> bool {
    (4..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn text(path: &Path) -> Option<String> {
    let bytes = file::read_unlinked(path, 64 << 10).ok()??;
    let text = String::from_utf8(bytes).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn pointer(path: &Path, prefix: &str) -> Option<PathBuf> {
    Some(PathBuf::from(text(path)?.strip_prefix(prefix)?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const PACKED: &str = "# pack-refs with: peeled\n1111 refs/heads/main-2\n2222 refs/heads/main\n^3333\n";

    struct Repo(tempfile::TempDir);

    impl Repo {
        fn new(files: &[(&str, &str)]) -> Repo {
            let dir = tempfile::tempdir().unwrap();
            for (path, text) in files {
                let path = dir.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Repo(dir)
        }

        fn head(&self, below: &str) -> Option<String> {
            head(&self.0.path().join(below))
        }
    }

    #[test]
    fn head_is_read_from_gits_own_files() {
        type Case = (&'static str, &'static [(&'static str, &'static str)], Option<&'static str>);
        let packed_repo = [(".git/HEAD", "ref: refs/heads/main\n"), (".git/packed-refs", PACKED)];
        assert_eq!(Repo::new(&packed_repo).head("").as_deref(), Some("2222"));
        let loose_too = [packed_repo[0], packed_repo[1], (".git/refs/heads/main", "feed\n")];
        assert_eq!(Repo::new(&loose_too).head("").as_deref(), Some("feed"), "loose wins");
        let cases: &[Case] = &[
            ("no repository", &[("a", "")], None),
            ("detached", &[(".git/HEAD", "abcd\n")], Some("abcd")),
            ("loose", &[(".git/HEAD", "ref: refs/heads/x\n"), (".git/refs/heads/x", "aaaa\n")], Some("aaaa")),
            ("unborn", &[(".git/HEAD", "ref: refs/heads/main\n")], Some("refs/heads/main")),
            ("another way to keep refs", &[(".git/HEAD", "ref: refs/heads/.invalid\n")], None),
            ("leads out", &[(".git/HEAD", "ref: refs/../../secret\n"), ("secret", "s")], None),
            ("empty", &[(".git/HEAD", "")], None),
            ("no commit", &[(".git/HEAD", "some text\n")], None),
        ];
        for (name, files, expected) in cases {
            assert_eq!(Repo::new(files).head("").as_deref(), *expected, "{name}");
        }
    }

    #[test]
    fn a_worktree_has_its_own_head_and_shared_branches() {
        let repo = Repo::new(&[
            ("main/.git/HEAD", "ref: refs/heads/main\n"),
            ("main/.git/refs/heads/main", "aaaa\n"),
            ("main/.git/refs/heads/side", "bbbb\n"),
            ("main/.git/worktrees/side/HEAD", "ref: refs/heads/side\n"),
            ("main/.git/worktrees/side/commondir", "../..\n"),
            ("side/.git", "gitdir: ../main/.git/worktrees/side\n"),
            ("side/src/a.rs", ""),
        ]);
        assert_eq!(repo.head("side/src").as_deref(), Some("bbbb"));
        assert_eq!(repo.head("main").as_deref(), Some("aaaa"));
    }
}
