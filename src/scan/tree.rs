//! Every file of the project with what was found in it, remembered between scans.
//!
//! A folder whose mark has not changed holds the same names, so a warm scan asks for marks and lists
//! nothing. What changed within the last moments before a scan may change again within the same tick of the
//! clock; it is not remembered, and looked at once more the next time.

use super::cache;
use super::check::{self, Wants};
use super::rules::Rules;
use super::walk::Walk;
use crate::core::finding::Finding;
use crate::store::project::Project;
use crate::store::world::{World, file_clock, nanoseconds};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

pub struct Outcome {
    pub findings: Vec<Finding>,
    pub files: usize,
    /// How many files each folder holds itself, by its path.
    pub folders: HashMap<String, usize>,
    pub complete: bool,
}

/// Two ticks of the coarsest clock a file system keeps.
const TICK: i64 = 2_000_000_000;
/// Reading so many files again costs less than writing the memory down.
const WORTH_SAVING: usize = 64;

#[derive(Default)]
pub struct Tree<'a> {
    /// The rules it was made by.
    pub print: u64,
    /// The rules of what is ignored that stand outside the tree.
    pub outside: u64,
    /// The walk did not reach everything.
    pub partial: bool,
    pub folders: Vec<Folder<'a>>,
}

#[derive(Default)]
pub struct Folder<'a> {
    /// Relative, with slashes; empty for the root.
    pub path: Cow<'a, str>,
    pub mark: Mark,
    pub files: Vec<Known<'a>>,
    /// What else is in it, folders with a slash at the end. Known once it was listed a second time: it
    /// tells without asking what is ignored that nothing came or went.
    pub others: Option<Vec<Cow<'a, str>>>,
    /// Listed in this scan.
    pub fresh: bool,
}

#[derive(Default)]
pub struct Known<'a> {
    pub name: Cow<'a, str>,
    pub mark: Mark,
    pub findings: Vec<Finding>,
}

/// A print of what changes when a file or folder does.
pub type Mark = u64;
/// Not known, or too young to be remembered.
pub const UNKNOWN: Mark = 0;
/// Its name says all: it is never looked at.
const BY_NAME: Mark = 1;
/// It was there when its folder was listed.
const GONE: Mark = 2;

pub fn mark_of(meta: &Metadata) -> Mark {
    let modified = meta.modified().map_or(0, nanoseconds);
    let size = if meta.is_dir() { 0 } else { meta.len() };
    let parts = [modified as u64, changed_at(meta) as u64, inode(meta), size];
    let mix = |hash: u64, part: u64| (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    parts.into_iter().fold(0x51_7cc1, mix).max(GONE + 1)
}

/// The mark, if it is fit to be remembered: not so young that a later change could look the same.
pub fn settled(meta: &Metadata, now: i64) -> Mark {
    if now.saturating_sub(changed_at(meta)) > TICK { mark_of(meta) } else { UNKNOWN }
}

/// When the system saw the last change. Unlike the time of modification nobody can set it back.
#[cfg(unix)]
fn changed_at(meta: &Metadata) -> i64 {
    use std::os::unix::fs::MetadataExt;
    meta.ctime().saturating_mul(1_000_000_000).saturating_add(meta.ctime_nsec())
}

#[cfg(not(unix))]
fn changed_at(meta: &Metadata) -> i64 {
    meta.modified().map_or(i64::MAX, nanoseconds)
}

#[cfg(unix)]
fn inode(meta: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(meta)
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> u64 {
    0
}

/// Brings the remembered tree up to now and returns what is in it.
pub fn update(world: &World, project: &Project, rules: &Rules, deadline: Instant) -> Outcome {
    let bytes = cache::load(world, project);
    let mut tree = cache::parse(&bytes).unwrap_or_default();
    let walk = Walk { root: &project.root, exclude: &rules.exclude, deadline, now: file_clock() };
    let looking = Looking { base: base(&project.root), rules, deadline, now: walk.now };
    let outside = walk.outside();
    let mut whole = tree.folders.is_empty() || tree.partial || tree.outside != outside;
    if tree.print != rules.print {
        tree.folders.iter_mut().flat_map(|folder| &mut folder.files).for_each(Known::forget);
        whole = true;
    }
    (tree.print, tree.outside) = (rules.print, outside);
    let (mut seen, mut listed) = (Seen::default(), false);
    if !whole {
        seen = looking.over(&mut tree.folders, true);
        match walk.relist(&mut tree, &seen.stale) {
            Some(any) => {
                listed = any;
                seen.merge(looking.over(&mut tree.folders, false));
                // What is ignored by other rules than before may be anywhere below them.
                whole = seen.ignored_otherwise;
            }
            None => whole = true,
        }
    }
    if whole {
        walk.everything(&mut tree);
        seen.merge(looking.over(&mut tree.folders, false));
    }
    tree.drop_gone();
    if whole || listed || seen.late || seen.gone || seen.learned >= WORTH_SAVING {
        cache::save(world, project, &tree);
    }
    tree.outcome(!seen.late)
}

impl Tree<'_> {
    /// A folder from which something vanished unseen is listed again the next time.
    fn drop_gone(&mut self) {
        for folder in &mut self.folders {
            let before = folder.files.len();
            folder.files.retain(|known| known.mark != GONE);
            if folder.files.len() != before {
                folder.mark = UNKNOWN;
            }
        }
    }

    fn outcome(self, complete: bool) -> Outcome {
        let files = self.folders.iter().map(|folder| folder.files.len()).sum();
        let found = |folder: &Folder| folder.files.iter().any(|known| !known.findings.is_empty());
        let mut folders = HashMap::new();
        if self.folders.iter().any(found) {
            folders = self.folders.iter().map(|f| (f.path.to_string(), f.files.len())).collect();
        }
        let complete = complete && !self.partial;
        let files_of = self.folders.into_iter().flat_map(|folder| folder.files);
        Outcome { findings: files_of.flat_map(|known| known.findings).collect(), files, folders, complete }
    }
}

impl Known<'_> {
    fn forget(&mut self) {
        self.mark = UNKNOWN;
    }
}

/// Where paths begin: nothing in the folder we stand in, for every part of a path costs its time.
fn base(root: &Path) -> PathBuf {
    let here = Path::new(".").metadata().ok().filter(|_| cfg!(unix));
    let same = here.zip(root.metadata().ok()).is_some_and(|(here, root)| mark_of(&here) == mark_of(&root));
    if same { PathBuf::new() } else { root.to_owned() }
}

/// What one thread met.
#[derive(Default)]
struct Seen {
    /// Folders by their place, with whether they are still there.
    stale: Vec<(usize, bool)>,
    /// Files read whose mark is worth remembering.
    learned: usize,
    gone: bool,
    ignored_otherwise: bool,
    late: bool,
}

impl Seen {
    fn merge(&mut self, mut other: Seen) {
        self.stale.append(&mut other.stale);
        self.learned += other.learned;
        self.gone |= other.gone;
        self.ignored_otherwise |= other.ignored_otherwise;
        self.late |= other.late;
    }
}

/// Some files of one folder.
struct Part<'t, 'a> {
    at: usize,
    path: &'t str,
    /// The folder's own mark, where it is to be asked for.
    mark: Option<Mark>,
    files: &'t mut [Known<'a>],
}

struct Looking<'r> {
    base: PathBuf,
    rules: &'r Rules,
    deadline: Instant,
    now: i64,
}

impl Looking<'_> {
    /// Looks for what is new or changed: over all folders, asking them too, or over those just listed.
    fn over(&self, folders: &mut [Folder], all: bool) -> Seen {
        let parts: Vec<Part> = folders
            .iter_mut()
            .enumerate()
            .filter(|(_, folder)| all || folder.fresh)
            .flat_map(|(at, folder)| parts(at, folder, all))
            .collect();
        let mut seen = Seen::default();
        in_parallel(parts, |mut part, seen| self.part(&mut part, seen))
            .into_iter()
            .for_each(|one| seen.merge(one));
        seen
    }

    fn part(&self, part: &mut Part, seen: &mut Seen) {
        let mut full = self.base.join(part.path);
        if let Some(mark) = part.mark {
            let shown = if full.as_os_str().is_empty() { Path::new(".") } else { &full };
            let meta = shown.symlink_metadata().ok().filter(Metadata::is_dir);
            if meta.as_ref().is_none_or(|meta| mark_of(meta) != mark) {
                return seen.stale.push((part.at, meta.is_some()));
            }
        }
        // Asked once for many files: a clock costs as much as a small file's mark does.
        if Instant::now() > self.deadline {
            seen.late = true;
            return;
        }
        for known in part.files.iter_mut().filter(|known| known.mark != BY_NAME) {
            full.push(&*known.name);
            self.look(&full, part.path, known, seen);
            full.pop();
        }
    }

    fn look(&self, full: &Path, folder: &str, known: &mut Known, seen: &mut Seen) {
        if known.mark != UNKNOWN {
            match full.symlink_metadata().ok().filter(Metadata::is_file) {
                Some(meta) if mark_of(&meta) == known.mark => return,
                Some(_) => {}
                None => return gone(known, seen),
            }
        }
        if Instant::now() > self.deadline {
            known.forget();
            seen.late = true;
            return;
        }
        let rules = is_ignore_file(&known.name);
        seen.ignored_otherwise |= rules;
        let path =
            if folder.is_empty() { known.name.to_string() } else { format!("{folder}/{}", known.name) };
        match check::wants(self.rules, &path) {
            Wants::Nothing if !rules => {
                known.findings = check::judge(self.rules, &path, &[]);
                known.mark = BY_NAME;
            }
            wants => self.read(full, &path, wants, known, seen),
        }
    }

    fn read(&self, full: &Path, path: &str, wants: Wants, known: &mut Known, seen: &mut Seen) {
        let mut opened = File::open(full).ok();
        let meta = match &opened {
            Some(file) => file.metadata(),
            None => full.symlink_metadata(),
        };
        let Some(meta) = meta.ok().filter(Metadata::is_file) else { return gone(known, seen) };
        let bytes = opened.as_mut().and_then(|file| check::read(file, meta.len(), wants).ok());
        known.findings = check::judge(self.rules, path, bytes.as_deref().unwrap_or_default());
        // What could not be read is tried again.
        known.mark = if bytes.is_some() { settled(&meta, self.now) } else { UNKNOWN };
        seen.learned += usize::from(known.mark != UNKNOWN);
    }
}

fn gone(known: &mut Known, seen: &mut Seen) {
    known.mark = GONE;
    known.findings.clear();
    seen.gone = true;
}

/// Their content is rules too, so they are looked at whatever they say.
pub fn is_ignore_file(name: &str) -> bool {
    matches!(name, ".gitignore" | ".ignore")
}

/// A folder in pieces, so that one of many files is shared between threads.
fn parts<'t, 'a>(at: usize, folder: &'t mut Folder<'a>, ask: bool) -> Vec<Part<'t, 'a>> {
    const AT_ONCE: usize = 512;
    let Folder { path, mark, files, .. } = folder;
    let mut mark = ask.then_some(*mark);
    if files.is_empty() {
        return vec![Part { at, path, mark, files }];
    }
    files.chunks_mut(AT_ONCE).map(|files| Part { at, path, mark: mark.take(), files }).collect()
}

/// Works on the parts with all cores; a few are not worth a thread.
fn in_parallel(parts: Vec<Part>, work: impl Fn(Part, &mut Seen) + Sync) -> Vec<Seen> {
    const WORTH_A_THREAD: usize = 512;
    let many = parts.iter().map(|part| part.files.len() + 1).sum::<usize>() >= WORTH_A_THREAD;
    let threads = if many { threads() } else { 1 };
    let queue = Mutex::new(parts.into_iter());
    let next = || queue.lock().ok().and_then(|mut queue| queue.next());
    let run = || {
        let mut seen = Seen::default();
        while let Some(part) = next() {
            work(part, &mut seen);
        }
        seen
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let own = run();
        others.into_iter().filter_map(|thread| thread.join().ok()).chain([own]).collect()
    })
}

pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(8)
}
