//! Which files there are: the whole project, or only the folders that changed.

use super::files;
use super::looking::{is_ignore_file, threads, within};
use super::mark::{Mark, Stat, UNKNOWN};
use super::place::by_path;
use super::tree::{Folder, Known, Tree};
use crate::store::{git, ignores};
use ignore::overrides::OverrideBuilder;
use ignore::{WalkBuilder, WalkState};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::{DirEntry, FileType};
use std::path::{Path, PathBuf};
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
    /// The user's own list of what git ignores.
    pub ignores: Option<PathBuf>,
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
        self.set_up(&mut builder, [from]);
        builder
    }

    fn set_up<'p>(&self, builder: &mut WalkBuilder, from: impl IntoIterator<Item = &'p Path>) {
        let above = from.into_iter().flat_map(Path::ancestors);
        if above.into_iter().any(ignores_without_end) {
            builder.git_ignore(false).ignore(false).parents(false);
        }
        if ignores::of_repository(self.root).is_some_and(|list| is_endless(&list)) {
            builder.git_exclude(false);
        }
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
        // The walker would look for the user's list itself, at a cost above that of a whole warm scan.
        if let Some(list) = &self.ignores {
            // Its paths begin where git's do.
            builder.current_dir(git::top(self.root).unwrap_or(self.root));
            // One that cannot be read ignores nothing.
            let _ = builder.add_ignore(list);
        }
        builder.git_global(false).hidden(false).require_git(false).follow_links(false).threads(threads());
        builder.filter_entry(|entry| {
            let name = entry.file_name();
            let foreign = is_state(name) || FOREIGN.iter().any(|other| name == *other);
            let folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            !foreign && (!folder || !ignores_without_end(entry.path()))
        });
    }

    /// A print of the rules outside the tree by which files in it are ignored.
    pub fn outside(&self) -> u64 {
        let above = self.root.ancestors().skip(1);
        let above = above.flat_map(|dir| [dir.join(".gitignore"), dir.join(".ignore")]);
        let lists = ignores::of_repository(self.root).into_iter().chain(self.ignores.clone());
        let marks =
            above.chain(lists).map(|path| path.metadata().map_or(UNKNOWN, |meta| Stat::from(&meta).mark()));
        marks.fold(0, |print: u64, mark| print.rotate_left(7).wrapping_mul(0x0100_0000_01b3) ^ mark)
    }

    /// The path below the root, with slashes; nothing for names that are no text.
    fn relative(&self, path: &Path) -> Option<String> {
        let path = path.strip_prefix(self.root).ok()?.to_str()?;
        Some(if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() })
    }

    /// Walks the whole project.
    pub fn everything(&self, tree: &mut Tree) {
        tree.pending = vec![String::new()];
        self.pending(tree);
    }

    /// Walks what the last walk had no time for. What is known of a file stays with it, and of a folder that
    /// is not reached again stays everything.
    pub fn pending(&self, tree: &mut Tree) {
        let roots: HashSet<String> = std::mem::take(&mut tree.pending).into_iter().collect();
        let (mut folders, late) = self.list(&roots);
        let (again, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut tree.folders).into_iter().partition(|folder| is_in(&roots, &folder.path));
        let mut before: HashMap<_, _> =
            again.into_iter().map(|folder| (folder.path.clone(), folder)).collect();
        let mut lost = false;
        for folder in &mut folders {
            if let Some(known) = before.remove(&folder.path) {
                lost |= remember(folder, known.files);
            }
        }
        let (kept, gone): (Vec<_>, Vec<_>) =
            before.into_values().partition(|folder| is_in(&late, &folder.path));
        lost |= gone.iter().any(holds_work);
        tree.folders = others;
        tree.folders.extend(folders);
        tree.folders.extend(kept);
        tree.pending = late.into_iter().collect();
        self.note_loss(tree, lost);
    }

    fn note_loss(&self, tree: &mut Tree, lost: bool) {
        if lost {
            tree.lost_at = self.now;
        }
    }

    /// Lists folders and all below them, without looking into any file; and the folders among them for which
    /// there was no time.
    fn list<'a>(&self, roots: &HashSet<String>) -> (Vec<Folder<'a>>, HashSet<String>) {
        let full: Vec<_> = roots.iter().map(|path| self.root.join(path)).collect();
        let Some((first, others)) = full.split_first() else { return Default::default() };
        let mut builder = WalkBuilder::new(first);
        others.iter().for_each(|path| {
            builder.add(path);
        });
        self.set_up(&mut builder, full.iter().map(PathBuf::as_path));
        let all = Mutex::new(Vec::new());
        let late = Mutex::new(HashSet::new());
        let first = AtomicBool::new(true);
        builder.build_parallel().run(|| {
            let mut seen = Seen { entries: Vec::new(), all: &all };
            let (late, first) = (&late, &first);
            Box::new(move |entry| {
                let Ok(entry) = entry else { return WalkState::Continue };
                let (Some(kind), Some(path)) = (entry.file_type(), self.relative(entry.path())) else {
                    return WalkState::Continue;
                };
                if kind.is_dir() {
                    // The first one is listed whatever the time: every walk gets on.
                    if Instant::now() > self.deadline && !first.swap(false, Ordering::Relaxed) {
                        late.lock().map(|mut late| late.insert(path)).ok();
                        return WalkState::Skip;
                    }
                    seen.entries.push((path, Some(self.folder_mark(entry.path()))));
                } else if kind.is_file() {
                    seen.entries.push((path, None));
                }
                WalkState::Continue
            })
        });
        (by_folder(&all.into_inner().unwrap_or_default()), late.into_inner().unwrap_or_default())
    }

    /// Asked for before the folder is listed: a change in between shows the next time. One that cannot be
    /// read is tried again.
    fn folder_mark(&self, path: &Path) -> Mark {
        by_path(path).map_or(UNKNOWN, |stat| stat.settled(self.now))
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
        let (mut vanished, mut lost) = (Vec::new(), false);
        let mut below_all = HashSet::new();
        let gone = differing.iter().filter(|(_, there)| !there);
        let gone: HashSet<String> = gone.map(|(at, _)| tree.folders[*at].path.to_string()).collect();
        for &(at, _) in differing {
            // What seems to be below a folder that is gone lies behind a link.
            if is_in(&gone, &tree.folders[at].path) {
                vanished.push(at);
                lost |= holds_work(&tree.folders[at]);
                continue;
            }
            let full = self.root.join(&*tree.folders[at].path);
            // Before what is ignored is left out: a file that comes in between is not taken for such.
            let present = names(&full);
            let (files, below) = self.listing(&full);
            let before = std::mem::replace(&mut tree.folders[at].files, files);
            let rules = |files: &[Known]| files.iter().filter(|k| is_ignore_file(&k.name)).count();
            if rules(&before) != rules(&tree.folders[at].files) {
                return false;
            }
            lost |= remember(&mut tree.folders[at], before);
            tree.folders[at].others = present.map(|names| others(&tree.folders[at].files, names));
            let below = below.iter().filter_map(|path| self.relative(path));
            below_all.extend(below.filter(|path| known.insert(path.clone())));
        }
        let (folders, late) = self.list(&below_all);
        tree.folders.extend(folders);
        tree.pending.extend(late);
        vanished.sort_unstable();
        for at in vanished.into_iter().rev() {
            tree.folders.swap_remove(at);
        }
        self.note_loss(tree, lost);
        true
    }

    /// The files of one folder, and the folders in it, without what is ignored.
    fn listing<'a>(&self, full: &Path) -> (Vec<Known<'a>>, Vec<PathBuf>) {
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

/// The walker would read what a repository may put there, a device or a pipe, to an end that never comes.
fn ignores_without_end(folder: &Path) -> bool {
    [".gitignore", ".ignore"].iter().any(|name| is_endless(&folder.join(name)))
}

fn is_endless(list: &Path) -> bool {
    list.metadata().is_ok_and(|meta| !meta.is_dir() && !ignores::is_fit(&meta))
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

/// Whether a path is one of the folders or below one.
fn is_in(folders: &HashSet<String>, path: &str) -> bool {
    let up = |path: &str| path.rfind('/').unwrap_or(0);
    let above = std::iter::successors(Some(path), |path| (!path.is_empty()).then(|| &path[..up(path)]));
    !folders.is_empty() && above.into_iter().any(|path| folders.contains(path))
}

/// What is known of files stays with them; returns whether one of the project's own is gone.
fn remember<'a>(folder: &mut Folder<'a>, before: Vec<Known<'a>>) -> bool {
    let mut before: HashMap<_, _> = before.into_iter().map(|known| (known.name.clone(), known)).collect();
    for known in &mut folder.files {
        if let Some(earlier) = before.remove(&known.name) {
            *known = earlier;
        }
    }
    before.values().any(|known| !files::is_ours(&within(&folder.path, &known.name)))
}

fn holds_work(folder: &Folder) -> bool {
    folder.files.iter().any(|known| !files::is_ours(&within(&folder.path, &known.name)))
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
