//! Lists the files of the project that git does not ignore.

use super::fingerprint::{Fingerprint, Stat, mix};
use super::ignore_budget::{self, Admission, IgnoreBudget};
use super::snapshot::{Directory, File};
use crate::store::file;
use crate::store::project::{git, ignores, layout, stable_hash as hash};
use crate::store::world::Instant;
use ignore::overrides::OverrideBuilder;
use ignore::{DirEntry, WalkBuilder, WalkState};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Directories that never hold the project's own work.
const SKIPPED: [&str; 9] =
    [".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache"];

/// How far a file may be judged over the deadline before that is given up.
pub const GRACE: Duration = Duration::from_millis(50);
/// Directories that are walked at once; what is found below them comes with them, and the next ones are four times as
/// many. Their ignore files are looked at before the walk, which leaves no time for it if they are too many.
const FIRST_BATCH: usize = 64;

pub struct Walk<'a> {
    pub root: &'a Path,
    /// Globs of the user's that exclude files.
    pub exclude: &'a [String],
    /// The user's own ignore file, where git has one.
    pub user_ignores: Option<PathBuf>,
    pub deadline: Instant,
    pub budget: Arc<IgnoreBudget>,
    /// The time by the clock that stamps files, in nanoseconds.
    pub now: i64,
}

/// What a walk found.
#[derive(Default)]
pub struct Listing {
    pub directories: BTreeMap<String, Directory>,
    /// Directories in those that were listed alone.
    pub below: BTreeSet<String>,
    /// Directories for which there was no time.
    pub late: BTreeSet<String>,
    /// Directories that are not listed because their ignore files are over the budget, each with the fingerprint of
    /// these.
    pub left_out: BTreeMap<String, u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The directories alone.
    Alone,
    /// Everything below them too.
    All,
}

/// What the threads of a walk write together.
#[derive(Default)]
struct SharedListing {
    listing: Listing,
    /// Directories that were found or asked for, and not listed yet, with the bytes of their ignore files.
    waiting: BTreeMap<String, u64>,
}

impl Walk<'_> {
    /// Returns a hash of the ignore files outside the project that apply to its files.
    pub fn outside_ignores(&self) -> u64 {
        let above = self.root.ancestors().skip(1);
        let above = above.flat_map(|dir| [dir.join(".gitignore"), dir.join(".ignore")]);
        let lists = ignores::of_repository(self.root).into_iter().chain(self.user_ignores.clone());
        let content = |list: PathBuf| file::read_bounded(&list, ignores::MAX_LIST_BYTES).ok().flatten();
        above.chain(lists).map(|list| content(list).map_or(0, |bytes| hash(&bytes))).fold(0, mix)
    }

    /// Lists these directories, as far as there is time: every directory is listed as a whole or is late.
    pub fn list(&self, roots: &BTreeSet<String>, depth: Depth) -> Listing {
        let mut found = SharedListing::default();
        if roots.is_empty() {
            return found.listing;
        }
        let with_lists = self.budget.fits(self.root);
        if !with_lists {
            found.listing.left_out.insert(String::new(), 0);
        }
        let found = Arc::new(Mutex::new(found));
        // One directory is listed even without time, so that every scan gets further.
        let (first, mut size) = (AtomicBool::new(true), FIRST_BATCH);
        let mut roots = roots.iter().peekable();
        while roots.peek().is_some() {
            let batch: Vec<&String> = roots.by_ref().take(size).collect();
            if self.list_batch(&batch, depth, with_lists, &found, &first).is_none() {
                break;
            }
            size *= 4;
        }
        found.lock().map(|mut found| std::mem::take(&mut found.listing)).unwrap_or_default()
    }

    fn list_batch(
        &self,
        roots: &[&String],
        depth: Depth,
        with_lists: bool,
        found: &Arc<Mutex<SharedListing>>,
        first: &AtomicBool,
    ) -> Option<()> {
        let mut paths = Vec::new();
        for (index, &root) in roots.iter().enumerate() {
            let path = self.root.join(root);
            let is_exempt = index == 0 && first.load(Ordering::Relaxed);
            let admission = match depth {
                _ if !is_exempt && self.is_late() => None,
                _ if !with_lists || root.is_empty() => Some(Admission::Admitted(0)),
                Depth::Alone if !self.budget.fits(&path) => Some(Admission::Refused(0)),
                Depth::Alone => Some(Admission::Admitted(0)),
                Depth::All => Some(self.budget.admit(&path)),
            };
            let mut found = found.lock().ok()?;
            match admission {
                None => drop(found.listing.late.insert(root.clone())),
                Some(Admission::Refused(lists)) => drop(found.listing.left_out.insert(root.clone(), lists)),
                Some(Admission::Admitted(bytes)) => {
                    found.waiting.insert(root.clone(), bytes);
                    paths.push(path);
                }
            }
        }
        let Some(builder) = self.builder(&paths, depth, with_lists, found) else { return Some(()) };
        let given_up = AtomicBool::new(false);
        builder.build_parallel().run(|| {
            Box::new(|entry| {
                // An error is that of one entry, and the others still belong to the listing.
                let Ok(entry) = entry else { return WalkState::Continue };
                if self.is_late() && !first.swap(false, Ordering::Relaxed) {
                    given_up.store(true, Ordering::Relaxed);
                    return WalkState::Quit;
                }
                first.store(false, Ordering::Relaxed);
                self.begin(&entry, found);
                WalkState::Continue
            })
        });
        let mut found = found.lock().ok()?;
        let waiting = std::mem::take(&mut found.waiting);
        // Those that no longer exist wait too, if there was time for all.
        if given_up.into_inner() {
            found.listing.late.extend(waiting.into_keys());
        }
        Some(())
    }

    pub fn is_late(&self) -> bool {
        Instant::lately() > self.deadline
    }

    /// Begins the listing of a directory. The walker has read its names already, and passes each to `take` after this.
    fn begin(&self, entry: &DirEntry, found: &Mutex<SharedListing>) -> Option<()> {
        let path = self.relative(entry.path())?;
        let fingerprint = self.fingerprint(entry.path());
        let mut found = found.lock().ok()?;
        let list_bytes = found.waiting.remove(&path)?;
        if entry.file_type()?.is_dir() {
            let directory = Directory { fingerprint, list_bytes, ..Directory::default() };
            found.listing.directories.insert(path, directory);
        }
        Some(())
    }

    fn fingerprint(&self, path: &Path) -> Fingerprint {
        path.symlink_metadata().map(|meta| self.settled(&Stat::from(&meta))).unwrap_or_default()
    }

    /// Returns a directory's fingerprint if every later change will show in it.
    pub fn settled(&self, stat: &Stat) -> Fingerprint {
        if stat.is_recent(self.now) { Fingerprint::default() } else { stat.fingerprint() }
    }

    fn builder(
        &self,
        roots: &[PathBuf],
        depth: Depth,
        with_lists: bool,
        found: &Arc<Mutex<SharedListing>>,
    ) -> Option<WalkBuilder> {
        let (first, others) = roots.split_first()?;
        let mut builder = WalkBuilder::new(first);
        others.iter().for_each(|path| {
            builder.add(path);
        });
        if !with_lists {
            builder.git_ignore(false).ignore(false).parents(false);
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
        // The repository's list overrules the user's.
        for list in self.user_ignores.iter().chain(&ignores::of_repository(self.root)) {
            if !ignore_budget::is_fit(self.root, list) {
                // A list keeps its whole path, which tells it from a directory of the project.
                let name = list.to_str().map(str::to_owned);
                found.lock().ok()?.listing.left_out.extend(name.map(|name| (name, 0)));
                continue;
            }
            // Patterns in it are relative to the top of the repository, as git reads them.
            builder.current_dir(git::top(self.root).unwrap_or(self.root));
            // One that cannot be read ignores nothing.
            let _ = builder.add_ignore(list);
        }
        // `git_global` would search for the user's ignore file at a cost above that of a whole warm scan, and
        // `git_exclude` would read whatever a `.git` in any folder names, to its end.
        builder
            .git_global(false)
            .git_exclude(false)
            .hidden(false)
            .require_git(false)
            .follow_links(false)
            .threads(threads());
        let taker = DirectoryVisitor {
            root: self.root.to_owned(),
            has_worktrees: git::has_worktrees(self.root),
            budget: (depth == Depth::All && with_lists).then(|| self.budget.clone()),
            depth,
            deadline: self.deadline,
            found: found.clone(),
        };
        builder.filter_entry(move |entry| taker.take(entry).is_some());
        Some(builder)
    }

    fn relative(&self, path: &Path) -> Option<String> {
        relative(self.root, path)
    }
}

/// Takes what the walker finds in a directory while it lists it. A file is not passed on, so that a walk that is given up
/// leaves no directory half listed.
struct DirectoryVisitor {
    root: PathBuf,
    has_worktrees: bool,
    /// Nothing where no ignore files are used, or none below.
    budget: Option<Arc<IgnoreBudget>>,
    depth: Depth,
    deadline: Instant,
    found: Arc<Mutex<SharedListing>>,
}

impl DirectoryVisitor {
    /// Notes an entry. Returns `Some` if it is a directory that must be listed now.
    fn take(&self, entry: &DirEntry) -> Option<()> {
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        if is_state(name) || SKIPPED.iter().any(|other| name == *other) {
            return None;
        }
        let path = relative(&self.root, entry.path())?;
        if kind.is_file() && !is_ours(&path) {
            let (directory, name) = path.rsplit_once('/').unwrap_or(("", &path));
            let file = File { name: name.to_owned(), ..File::default() };
            self.found.lock().ok()?.listing.directories.get_mut(directory)?.files.push(file);
        }
        // A worktree in the project is another checkout: what happens there is not this one's work.
        if !kind.is_dir() || (self.has_worktrees && git::is_linked_worktree(entry.path())) {
            return None;
        }
        if self.depth == Depth::Alone {
            self.found.lock().ok()?.listing.below.insert(path);
            return None;
        }
        if Instant::lately() > self.deadline {
            self.found.lock().ok()?.listing.late.insert(path);
            return None;
        }
        match self.budget.as_ref().map_or(Admission::Admitted(0), |budget| budget.admit(entry.path())) {
            Admission::Admitted(bytes) => {
                self.found.lock().ok()?.waiting.insert(path, bytes);
                Some(())
            }
            Admission::Refused(lists) => {
                self.found.lock().ok()?.listing.left_out.insert(path, lists);
                None
            }
        }
    }
}

/// Returns the path below the root, with slashes; nothing for names that are not UTF-8.
fn relative(root: &Path, path: &Path) -> Option<String> {
    let path = path.strip_prefix(root).ok()?.to_str()?;
    Some(if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() })
}

/// Returns whether Ralph writes the file, or the user writes it for Ralph: it is not the project's work.
fn is_ours(path: &str) -> bool {
    let mut prefixes = [".claude/ralph-state.", ".claude/ralph-config."].into_iter().chain(layout::IGNORED);
    prefixes.any(|prefix| path.starts_with(prefix))
}

/// Returns whether it is Ralph's state, which changes with every turn.
fn is_state(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("ralph-state."))
}

/// Returns a hash of all names in a directory and their kinds, ignored ones included; nothing where it cannot be
/// read. It tells without the ignore rules whether anything was added or removed.
pub fn names(directory: &Path) -> Option<u64> {
    let mut sum = 1_u64;
    for entry in std::fs::read_dir(directory).ok()?.flatten() {
        let (name, kind) = (entry.file_name(), entry.file_type().ok()?);
        if !is_state(&name) {
            let kind = u64::from(kind.is_file()) + 2 * u64::from(kind.is_dir());
            sum = sum.wrapping_add(mix(hash(name.as_encoded_bytes()), kind));
        }
    }
    Some(sum.max(1))
}

pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(8)
}
