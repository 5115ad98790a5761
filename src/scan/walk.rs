//! Which files there are: the whole project, or only the folders that changed.

use super::tree::{Folder, Known, Mark, Tree, UNKNOWN, mark_of, settled, threads};
use crate::store::git;
use ignore::overrides::OverrideBuilder;
use ignore::{WalkBuilder, WalkState};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::{DirEntry, FileType};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Folders that are never the project's own work.
const FOREIGN: [&str; 9] =
    [".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache"];
/// Listing more folders than this one by one takes longer than a walk.
const MOST_ONE_BY_ONE: usize = 24;

pub struct Walk<'a> {
    pub root: &'a Path,
    pub exclude: &'a [String],
    pub deadline: Instant,
    pub now: i64,
}

/// What one thread of the walk saw: paths, folders among them with their marks.
struct Seen<'a> {
    entries: Vec<(String, Option<Mark>)>,
    all: &'a Mutex<Vec<(String, Option<Mark>)>>,
}

impl Drop for Seen<'_> {
    fn drop(&mut self) {
        if let Ok(mut all) = self.all.lock() {
            all.append(&mut self.entries);
        }
    }
}

impl Walk<'_> {
    fn builder(&self, from: &Path) -> WalkBuilder {
        let mut builder = WalkBuilder::new(from);
        if !self.exclude.is_empty() {
            let mut overrides = OverrideBuilder::new(self.root);
            for glob in self.exclude {
                // A glob that does not parse excludes nothing.
                let _ = overrides.add(&format!("!{glob}"));
            }
            if let Ok(overrides) = overrides.build() {
                builder.overrides(overrides);
            }
        }
        // To learn of a global ignore file from git's own settings costs more than all the rest of a warm scan.
        builder.git_global(false).hidden(false).require_git(false).follow_links(false).threads(threads());
        builder.filter_entry(|entry| {
            !is_state(entry.file_name()) && !FOREIGN.iter().any(|name| entry.file_name() == *name)
        });
        builder
    }

    /// A print of the rules outside the tree by which files in it are ignored.
    pub fn outside(&self) -> u64 {
        let above = self.root.ancestors().skip(1);
        let above = above.flat_map(|dir| [dir.join(".gitignore"), dir.join(".ignore")]);
        let own = git::dir(self.root).map(|dir| dir.join("info").join("exclude"));
        let marks = above.chain(own).map(|path| path.metadata().map_or(UNKNOWN, |meta| mark_of(&meta)));
        marks.fold(0, |print: u64, mark| print.rotate_left(7).wrapping_mul(0x0100_0000_01b3) ^ mark)
    }

    /// The path below the root, with slashes; nothing for names that are no text.
    fn relative(&self, path: &Path) -> Option<String> {
        let path = path.strip_prefix(self.root).ok()?.to_str()?;
        Some(if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() })
    }

    /// Walks the whole project. What is known of a file stays with it.
    pub fn everything(&self, tree: &mut Tree) {
        let before = std::mem::take(&mut tree.folders);
        let mut before: HashMap<_, _> =
            before.into_iter().map(|folder| (folder.path, folder.files)).collect();
        let (folders, complete) = self.list(self.root);
        (tree.folders, tree.partial) = (folders, !complete);
        for folder in &mut tree.folders {
            if let Some(files) = before.remove(&folder.path) {
                remember(&mut folder.files, files);
            }
        }
    }

    /// Lists a folder and all below it, without looking into any file.
    fn list<'a>(&self, from: &Path) -> (Vec<Folder<'a>>, bool) {
        let all = Mutex::new(Vec::new());
        let late = AtomicBool::new(false);
        self.builder(from).build_parallel().run(|| {
            let mut seen = Seen { entries: Vec::new(), all: &all };
            let late = &late;
            Box::new(move |entry| {
                let Ok(entry) = entry else { return WalkState::Continue };
                let (Some(kind), Some(path)) = (entry.file_type(), self.relative(entry.path())) else {
                    return WalkState::Continue;
                };
                if kind.is_dir() {
                    if Instant::now() > self.deadline {
                        late.store(true, Ordering::Relaxed);
                        return WalkState::Quit;
                    }
                    seen.entries.push((path, Some(self.folder_mark(entry.path()))));
                } else if kind.is_file() {
                    seen.entries.push((path, None));
                }
                WalkState::Continue
            })
        });
        (by_folder(&all.into_inner().unwrap_or_default()), !late.into_inner())
    }

    /// Asked for before the folder is listed: a change in between shows the next time. One that cannot be
    /// read is tried again.
    fn folder_mark(&self, path: &Path) -> Mark {
        let meta = path.symlink_metadata().ok();
        meta.map_or(UNKNOWN, |meta| settled(&meta, self.now))
    }

    /// Lists the folders that changed; returns whether one of them holds other names than before. Nothing
    /// where the whole tree must be walked: too many changed, or what is ignored did.
    pub fn relist(&self, tree: &mut Tree, stale: &[(usize, bool)]) -> Option<bool> {
        let mut differing = Vec::new();
        for &(at, there) in stale {
            let folder = &mut tree.folders[at];
            let full = self.root.join(&*folder.path);
            let mark = self.folder_mark(&full);
            if !there || !holds_the_same(folder, &full) {
                differing.push((at, there));
            }
            (folder.mark, folder.fresh) = (mark, true);
        }
        if differing.is_empty() {
            return Some(false);
        }
        if differing.len() > MOST_ONE_BY_ONE {
            return None;
        }
        self.one_by_one(tree, &differing).then_some(true)
    }

    fn one_by_one(&self, tree: &mut Tree, differing: &[(usize, bool)]) -> bool {
        let mut known: HashSet<String> = tree.folders.iter().map(|folder| folder.path.to_string()).collect();
        let mut vanished = Vec::new();
        for &(at, there) in differing {
            if !there {
                vanished.push(at);
                continue;
            }
            let full = self.root.join(&*tree.folders[at].path);
            // Before what is ignored is left out: a file that comes in between is not taken for such.
            let present = names(&full);
            let (files, below) = self.listing(&full);
            let before = std::mem::replace(&mut tree.folders[at].files, files);
            let rules =
                |files: &[Known]| files.iter().filter(|k| super::tree::is_ignore_file(&k.name)).count();
            if rules(&before) != rules(&tree.folders[at].files) {
                return false;
            }
            remember(&mut tree.folders[at].files, before);
            tree.folders[at].others = present.map(|names| others(&tree.folders[at].files, names));
            for path in below {
                if self.relative(&path).is_some_and(|path| known.insert(path)) {
                    let (folders, complete) = self.list(&path);
                    tree.partial |= !complete;
                    tree.folders.extend(folders);
                }
            }
        }
        vanished.sort_unstable();
        for at in vanished.into_iter().rev() {
            tree.folders.swap_remove(at);
        }
        true
    }

    /// The files of one folder, and the folders in it, without what is ignored.
    fn listing<'a>(&self, full: &Path) -> (Vec<Known<'a>>, Vec<std::path::PathBuf>) {
        let (mut files, mut below) = (Vec::new(), Vec::new());
        for entry in self.builder(full).max_depth(Some(1)).build().flatten().filter(|entry| entry.depth() > 0)
        {
            let (Some(kind), Some(name)) = (entry.file_type(), entry.file_name().to_str()) else { continue };
            if kind.is_file() {
                files.push(Known { name: name.to_owned().into(), ..Known::default() });
            } else if kind.is_dir() {
                below.push(entry.into_path());
            }
        }
        (files, below)
    }
}

fn by_folder<'a>(entries: &[(String, Option<Mark>)]) -> Vec<Folder<'a>> {
    let mut folders: Vec<Folder> = Vec::new();
    let mut index: HashMap<&str, usize> = HashMap::new();
    for (path, mark) in entries {
        if let Some(mark) = *mark {
            index.insert(path, folders.len());
            folders.push(Folder { path: path.clone().into(), mark, fresh: true, ..Folder::default() });
        }
    }
    for (path, _) in entries.iter().filter(|(_, mark)| mark.is_none()) {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if let Some(&at) = index.get(folder) {
            folders[at].files.push(Known { name: name.to_owned().into(), ..Known::default() });
        }
    }
    folders
}

fn remember<'a>(files: &mut [Known<'a>], before: Vec<Known<'a>>) {
    let mut before: HashMap<_, _> = before.into_iter().map(|known| (known.name.clone(), known)).collect();
    for known in files {
        if let Some(earlier) = before.remove(&known.name) {
            *known = earlier;
        }
    }
}

/// A name as it is compared: a file that becomes a folder or a link is another.
fn told(name: &str, kind: FileType) -> String {
    let sign = if kind.is_file() {
        ""
    } else if kind.is_dir() {
        "/"
    } else {
        "/@"
    };
    format!("{name}{sign}")
}

/// Our state comes and goes with every turn, and tells nothing about the project.
fn is_state(name: &std::ffi::OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("ralph-state."))
}

fn names(full: &Path) -> Option<Vec<String>> {
    let name = |entry: DirEntry| Some(told(entry.file_name().to_str()?, entry.file_type().ok()?));
    let names = std::fs::read_dir(full).ok()?.flatten().filter(|entry| !is_state(&entry.file_name()));
    Some(names.filter_map(name).collect())
}

fn holds_the_same(folder: &Folder, full: &Path) -> bool {
    let Some(others) = &folder.others else { return false };
    let Some(names) = names(full) else { return false };
    let known: HashSet<&str> =
        folder.files.iter().map(|known| &*known.name).chain(others.iter().map(|name| &**name)).collect();
    names.len() == known.len() && names.iter().all(|name| known.contains(name.as_str()))
}

/// What is in a folder beside its files.
fn others<'a>(files: &[Known], names: Vec<String>) -> Vec<Cow<'a, str>> {
    let files: HashSet<&str> = files.iter().map(|known| &*known.name).collect();
    names.into_iter().filter(|name| !files.contains(name.as_str())).map(Cow::Owned).collect()
}
