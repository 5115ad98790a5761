//! Lists the files of the project that git does not ignore.

use super::fingerprint::{Fingerprint, Stat, mix};
use super::ignore_budget::{self, IgnoreBudget};
use super::snapshot::{Directory, File};
use crate::store::file;
use crate::store::project::{fingerprint as hash, git, ignores, layout};
use ignore::overrides::OverrideBuilder;
use ignore::{DirEntry, WalkBuilder, WalkState};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Directories that never hold the project's own work.
const SKIPPED: [&str; 9] =
    [".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache"];

/// How far a walk may be over its deadline before it is given up; a directory is listed to its end within that.
pub const GRACE: Duration = Duration::from_millis(50);

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
    /// Directories for which there was no time.
    pub late: BTreeSet<String>,
    /// Directories that are not listed because their ignore files are over the budget.
    pub left_out: BTreeSet<String>,
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

    /// Lists these directories and everything below them, or only down to a depth.
    pub fn list(&self, roots: &BTreeSet<String>, max_depth: Option<usize>) -> Listing {
        let paths: Vec<_> = roots.iter().map(|path| self.root.join(path)).collect();
        let left_out = Arc::new(Mutex::new(BTreeSet::new()));
        let Some(mut builder) = self.builder(&paths, &left_out) else { return Listing::default() };
        let (listing, first) = (Mutex::new(Listing::default()), AtomicBool::new(true));
        let given_up = AtomicBool::new(false);
        builder.max_depth(max_depth).build_parallel().run(|| {
            Box::new(|entry| {
                if Instant::now() > self.deadline + GRACE {
                    given_up.store(true, Ordering::Relaxed);
                    return WalkState::Quit;
                }
                let visited = entry.ok().and_then(|entry| self.visit(&entry, &listing, &first));
                visited.unwrap_or(WalkState::Continue)
            })
        });
        if given_up.into_inner() {
            // Half a directory must not look like a whole one.
            return Listing { late: roots.clone(), ..Listing::default() };
        }
        let mut listing = listing.into_inner().unwrap_or_default();
        let left_out = left_out.lock().map(|mut left_out| std::mem::take(&mut *left_out));
        // A list keeps its whole path, which tells it from a directory of the project.
        let name = |path: PathBuf| match path.is_dir() {
            true => self.relative(&path),
            false => path.to_str().map(str::to_owned),
        };
        listing.left_out = left_out.unwrap_or_default().into_iter().filter_map(name).collect();
        listing
    }

    fn visit(&self, entry: &DirEntry, listing: &Mutex<Listing>, first: &AtomicBool) -> Option<WalkState> {
        let (kind, path) = (entry.file_type()?, self.relative(entry.path())?);
        if kind.is_file() && !is_ours(&path) {
            let (directory, name) = path.rsplit_once('/').unwrap_or(("", &path));
            let file = File { name: name.to_owned(), ..File::default() };
            listing.lock().ok()?.directories.get_mut(directory)?.files.push(file);
        }
        if !kind.is_dir() {
            return None;
        }
        // The first directory is listed even without time, so that every scan gets further.
        if Instant::now() > self.deadline && !first.swap(false, Ordering::Relaxed) {
            listing.lock().ok()?.late.insert(path);
            return Some(WalkState::Skip);
        }
        // The walker lists a directory after this, so a change in between shows at the next scan.
        let directory = Directory { fingerprint: self.fingerprint(entry.path()), ..Directory::default() };
        // A directory may be found twice, by itself and in its parent: what is known of its files stays.
        listing.lock().ok()?.directories.entry(path).or_insert(directory);
        None
    }

    fn fingerprint(&self, path: &Path) -> Fingerprint {
        path.symlink_metadata().map(|meta| self.settled(&Stat::from(&meta))).unwrap_or_default()
    }

    /// Returns a directory's fingerprint if every later change will show in it.
    pub fn settled(&self, stat: &Stat) -> Fingerprint {
        if stat.is_recent(self.now) { Fingerprint::default() } else { stat.fingerprint() }
    }

    fn builder(&self, roots: &[PathBuf], left_out: &Arc<Mutex<BTreeSet<PathBuf>>>) -> Option<WalkBuilder> {
        let (first, others) = roots.split_first()?;
        let mut builder = WalkBuilder::new(first);
        others.iter().for_each(|path| {
            builder.add(path);
        });
        let with_lists = roots.iter().all(|path| self.budget.allows(path));
        if !with_lists {
            left_out.lock().ok()?.insert(self.root.to_owned());
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
                left_out.lock().ok()?.insert(list.clone());
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
        let has_worktrees = git::has_worktrees(self.root);
        let (budget, left_out) = (self.budget.clone(), left_out.clone());
        builder.filter_entry(move |entry| {
            let name = entry.file_name();
            let skipped = is_state(name) || SKIPPED.iter().any(|other| name == *other);
            let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
            // A worktree in the project is another checkout: what happens there is not this one's work.
            let is_other = || has_worktrees && git::is_linked_worktree(entry.path());
            let fits = || {
                let fits = !with_lists || budget.allows(entry.path());
                if !fits && let Ok(mut left_out) = left_out.lock() {
                    left_out.insert(entry.path().to_owned());
                }
                fits
            };
            !skipped && (!is_dir || (!is_other() && fits()))
        });
        Some(builder)
    }

    /// Returns the path below the root, with slashes; nothing for names that are not UTF-8.
    fn relative(&self, path: &Path) -> Option<String> {
        let path = path.strip_prefix(self.root).ok()?.to_str()?;
        Some(if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() })
    }
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
