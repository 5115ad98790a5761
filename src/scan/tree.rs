//! Every file of the project with what was found in it, remembered between scans.
//!
//! A folder whose time has not changed holds the same names, so a warm scan asks for times and sizes and
//! lists nothing. What changed within the last moments before a scan may change again within the same tick
//! of the clock; it is looked at once more the next time.

use super::cache;
use super::check;
use super::rules::Rules;
use crate::core::finding::Finding;
use crate::store::project::Project;
use crate::store::world::{World, file_clock, nanoseconds};
use ignore::overrides::OverrideBuilder;
use ignore::{WalkBuilder, WalkState};
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

pub struct Outcome {
    pub findings: Vec<Finding>,
    pub files: usize,
    pub complete: bool,
}

/// Two ticks of the coarsest clock a file system keeps.
const TICK: i64 = 2_000_000_000;
/// Folders that are never the project's own work.
const FOREIGN: [&str; 9] =
    [".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache"];

#[derive(Default)]
pub struct Tree {
    /// The rules it was made by.
    pub print: u64,
    /// The walk did not reach everything.
    pub partial: bool,
    pub folders: Vec<Folder>,
}

#[derive(Default)]
pub struct Folder {
    /// Relative, with slashes; empty for the root.
    pub path: String,
    pub mark: Mark,
    pub files: Vec<Known>,
}

#[derive(Default)]
pub struct Known {
    pub name: String,
    pub mark: Mark,
    pub findings: Vec<Finding>,
}

/// What changes when a file or folder does. The default is nobody's.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    pub size: u64,
    pub modified: i64,
    pub inode: u64,
}

impl Mark {
    fn of(meta: &Metadata) -> Mark {
        let modified = meta.modified().ok().map_or(0, nanoseconds);
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(meta);
        #[cfg(not(unix))]
        let inode = 0;
        Mark { size: if meta.is_dir() { 0 } else { meta.len() }, modified, inode }
    }

    /// Fit to be remembered: not so young that a later change could look the same.
    fn settled(self, now: i64) -> Mark {
        if now.saturating_sub(self.modified) > TICK { self } else { Mark { inode: 0, modified: 0, ..self } }
    }
}

/// Brings the remembered tree up to now and returns what is in it.
pub fn update(world: &World, project: &Project, rules: &Rules, deadline: Instant) -> Outcome {
    let now = file_clock();
    let mut tree = cache::load(world, project);
    if tree.print != rules.print {
        tree.folders
            .iter_mut()
            .flat_map(|folder| &mut folder.files)
            .for_each(|known| known.mark = Mark::default());
    }
    let walk = Walk { root: &project.root, rules, deadline, now };
    let mut changed = tree.print != rules.print || tree.partial;
    tree.print = rules.print;
    if tree.folders.is_empty() || tree.partial || !walk.relist(&mut tree, &mut changed) {
        walk.everything(&mut tree);
        changed = true;
    }
    let (checked, complete) = walk.check_files(&mut tree);
    changed |= checked;
    if changed {
        cache::save(world, project, &tree);
    }
    let files = tree.folders.iter().map(|folder| folder.files.len()).sum();
    let partial = tree.partial;
    let findings =
        tree.folders.into_iter().flat_map(|folder| folder.files).flat_map(|known| known.findings).collect();
    Outcome { findings, files, complete: complete && !partial }
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

struct Walk<'a> {
    root: &'a Path,
    rules: &'a Rules,
    deadline: Instant,
    now: i64,
}

impl Walk<'_> {
    fn builder(&self, from: &Path) -> WalkBuilder {
        let mut builder = WalkBuilder::new(from);
        let mut overrides = OverrideBuilder::new(self.root);
        for glob in &self.rules.exclude {
            // A glob that does not parse excludes nothing.
            let _ = overrides.add(&format!("!{glob}"));
        }
        if let Ok(overrides) = overrides.build() {
            builder.overrides(overrides);
        }
        builder.hidden(false).require_git(false).follow_links(false).threads(threads());
        builder.filter_entry(|entry| !FOREIGN.iter().any(|name| entry.file_name() == *name));
        builder
    }

    /// The path below the root, with slashes; nothing for names that are no text.
    fn relative(&self, path: &Path) -> Option<String> {
        let path = path.strip_prefix(self.root).ok()?.to_str()?;
        Some(if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() })
    }

    /// Walks the whole project. What is known of a file stays with it.
    fn everything(&self, tree: &mut Tree) {
        let mut known = take_known(&mut tree.folders);
        let (folders, complete) = self.list(self.root);
        tree.folders = folders;
        tree.partial = !complete;
        for folder in &mut tree.folders {
            let mut before = known.remove(&folder.path).unwrap_or_default();
            remember(&mut folder.files, &mut before);
        }
    }

    /// Lists a folder and all below it, without looking into any file.
    fn list(&self, from: &Path) -> (Vec<Folder>, bool) {
        let all = Mutex::new(Vec::new());
        let late = AtomicBool::new(false);
        self.builder(from).build_parallel().run(|| {
            let mut seen = Seen { entries: Vec::new(), all: &all };
            let late = &late;
            Box::new(move |entry| {
                if Instant::now() > self.deadline {
                    late.store(true, Ordering::Relaxed);
                    return WalkState::Quit;
                }
                let Ok(entry) = entry else { return WalkState::Continue };
                let Some(kind) = entry.file_type() else { return WalkState::Continue };
                let Some(path) = self.relative(entry.path()) else { return WalkState::Continue };
                if kind.is_dir() {
                    // Asked for before it is listed: a change in between shows the next time.
                    let mark =
                        entry.metadata().map_or(Mark::default(), |meta| Mark::of(&meta).settled(self.now));
                    seen.entries.push((path, Some(mark)));
                } else if kind.is_file() {
                    seen.entries.push((path, None));
                }
                WalkState::Continue
            })
        });
        let entries = all.into_inner().unwrap_or_default();
        let mut folders: HashMap<String, Folder> = HashMap::new();
        for (path, mark) in &entries {
            if let Some(mark) = mark {
                folders.insert(path.clone(), Folder { path: path.clone(), mark: *mark, files: Vec::new() });
            }
        }
        for (path, _) in entries.iter().filter(|(_, mark)| mark.is_none()) {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            if let Some(folder) = folders.get_mut(folder) {
                folder.files.push(Known { name: name.to_owned(), ..Known::default() });
            }
        }
        (folders.into_values().collect(), !late.load(Ordering::Relaxed))
    }

    /// Lists only the folders that changed. False where the whole tree must be walked: a change of what is
    /// ignored reaches everywhere below.
    fn relist(&self, tree: &mut Tree, changed: &mut bool) -> bool {
        let stale = Mutex::new(Vec::new());
        in_parallel(&mut tree.folders, |folder| {
            let meta = self.root.join(&folder.path).symlink_metadata().ok().filter(Metadata::is_dir);
            if meta.as_ref().is_none_or(|meta| Mark::of(meta) != folder.mark)
                && let Ok(mut stale) = stale.lock()
            {
                stale.push((folder.path.clone(), meta.is_some()));
            }
        });
        let stale = stale.into_inner().unwrap_or_default();
        if self.ignore_rules_changed(tree) || stale.len() > tree.folders.len() / 2 + 8 {
            return false;
        }
        let mut index: HashMap<String, usize> =
            tree.folders.iter().enumerate().map(|(at, folder)| (folder.path.clone(), at)).collect();
        for (path, there) in stale {
            let Some(&at) = index.get(&path) else { continue };
            *changed = true;
            if !there {
                tree.folders[at] = Folder { path: "\0".into(), ..Folder::default() };
                continue;
            }
            let full = self.root.join(&path);
            let mark =
                full.symlink_metadata().map_or(Mark::default(), |meta| Mark::of(&meta).settled(self.now));
            let mut files = Vec::new();
            for entry in self.builder(&full).max_depth(Some(1)).build().flatten().skip(1) {
                let (Some(kind), Some(name)) = (entry.file_type(), entry.file_name().to_str()) else {
                    continue;
                };
                if kind.is_file() {
                    files.push(Known { name: name.to_owned(), ..Known::default() });
                }
                let Some(below) = self.relative(entry.path()).filter(|_| kind.is_dir()) else { continue };
                if !index.contains_key(&below) {
                    let (folders, complete) = self.list(entry.path());
                    tree.partial |= !complete;
                    for folder in folders {
                        index.insert(folder.path.clone(), tree.folders.len());
                        tree.folders.push(folder);
                    }
                }
            }
            let folder = &mut tree.folders[at];
            folder.mark = mark;
            let mut before = std::mem::replace(&mut folder.files, files)
                .into_iter()
                .map(|known| (known.name.clone(), known))
                .collect();
            remember(&mut folder.files, &mut before);
        }
        tree.folders.retain(|folder| folder.path != "\0");
        !self.ignore_rules_appeared(tree)
    }

    fn ignore_rules_changed(&self, tree: &Tree) -> bool {
        let known =
            tree.folders.iter().flat_map(|folder| folder.files.iter().map(move |known| (folder, known)));
        known.filter(|(_, known)| is_ignore_file(&known.name)).any(|(folder, known)| {
            let meta = self.root.join(&folder.path).join(&known.name).symlink_metadata();
            meta.map_or(true, |meta| Mark::of(&meta) != known.mark)
        })
    }

    fn ignore_rules_appeared(&self, tree: &Tree) -> bool {
        let mut files = tree.folders.iter().flat_map(|folder| &folder.files);
        files.any(|known| is_ignore_file(&known.name) && known.mark == Mark::default())
    }

    /// Looks into every file that is new or changed. Returns whether anything was, and whether all was done.
    fn check_files(&self, tree: &mut Tree) -> (bool, bool) {
        let (changed, late) = (AtomicBool::new(false), AtomicBool::new(false));
        in_parallel(&mut tree.folders, |folder| {
            let base = self.root.join(&folder.path);
            let prefix = if folder.path.is_empty() { String::new() } else { format!("{}/", folder.path) };
            folder.files.retain_mut(|known| {
                if Instant::now() > self.deadline {
                    late.store(true, Ordering::Relaxed);
                    return true;
                }
                let full = base.join(&known.name);
                match self.look(&full, &format!("{prefix}{}", known.name), known) {
                    Look::Same => {}
                    Look::Changed => changed.store(true, Ordering::Relaxed),
                    Look::Gone => {
                        changed.store(true, Ordering::Relaxed);
                        return false;
                    }
                }
                true
            });
        });
        (changed.into_inner(), !late.into_inner())
    }

    fn look(&self, full: &Path, path: &str, known: &mut Known) -> Look {
        let new = known.mark == Mark::default();
        let wants = check::wants(self.rules, path);
        // A new file that is read anyway is asked for its mark through the open file: one call less.
        let opened = if new && wants != check::Wants::Nothing { File::open(full).ok() } else { None };
        let meta = match &opened {
            Some(file) => file.metadata(),
            None => full.symlink_metadata(),
        };
        let Some(meta) = meta.ok().filter(Metadata::is_file) else { return Look::Gone };
        let mark = Mark::of(&meta);
        if !new && mark == known.mark {
            return Look::Same;
        }
        let bytes = if wants == check::Wants::Nothing {
            Vec::new()
        } else {
            check::read(opened, full, mark.size, wants)
        };
        known.findings = check::judge(self.rules, path, &bytes);
        known.mark = mark.settled(self.now);
        Look::Changed
    }
}

enum Look {
    Same,
    Changed,
    Gone,
}

fn is_ignore_file(name: &str) -> bool {
    matches!(name, ".gitignore" | ".ignore")
}

fn take_known(folders: &mut Vec<Folder>) -> HashMap<String, HashMap<String, Known>> {
    let by_name = |files: Vec<Known>| files.into_iter().map(|known| (known.name.clone(), known)).collect();
    std::mem::take(folders).into_iter().map(|folder| (folder.path, by_name(folder.files))).collect()
}

fn remember(files: &mut [Known], before: &mut HashMap<String, Known>) {
    for known in files {
        if let Some(earlier) = before.remove(&known.name) {
            *known = earlier;
        }
    }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(8)
}

/// Runs over the items on all cores; a few are not worth a thread.
fn in_parallel(items: &mut [Folder], work: impl Fn(&mut Folder) + Sync) {
    const WORTH_A_THREAD: usize = 256;
    const AT_ONCE: usize = 4;
    if items.iter().map(|folder| folder.files.len() + 1).sum::<usize>() < WORTH_A_THREAD {
        return items.iter_mut().for_each(work);
    }
    let queue = Mutex::new(items.chunks_mut(AT_ONCE));
    let next = || queue.lock().ok().and_then(|mut queue| queue.next());
    std::thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(|| {
                while let Some(chunk) = next() {
                    chunk.iter_mut().for_each(&work);
                }
            });
        }
    });
}
