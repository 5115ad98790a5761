//! Every file of the project with what was found in it, remembered between scans.
//!
//! A folder whose mark has not changed holds the same names, so a warm scan asks for marks and lists
//! nothing. What changed within the last moments before a scan may change again within the same tick of the
//! clock; it is not remembered, and looked at once more the next time.

use super::cache;
use super::check::{self, Wants};
use super::files;
use super::rules::Rules;
use super::walk::Walk;
use crate::core::finding::Finding;
use crate::core::time::Stamp;
use crate::store::project::Project;
use crate::store::world::{World, file_clock, nanoseconds};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub struct Outcome {
    pub findings: Vec<Finding>,
    pub files: usize,
    /// How many files each folder holds itself, by its path.
    pub folders: HashMap<String, usize>,
    /// Everything was looked at just now.
    pub complete: bool,
    /// When everything had been looked at once more, in one scan or in several; nothing before the first time.
    pub whole_at: Option<Stamp>,
    /// Whether a file of the project has changed, come or gone since that moment; nothing where it is unknown.
    pub changed: Option<bool>,
    /// This moment by the clock of the files.
    pub seen_at: i64,
}

/// What a scan is to find out.
#[derive(Clone, Copy)]
pub struct Aim<'a> {
    pub rules: &'a Rules,
    pub deadline: Instant,
    /// Whether something has changed since then, by the clock of the files.
    pub since: Option<i64>,
}

/// Two ticks of the coarsest clock a file system keeps.
const TICK: i64 = 2_000_000_000;
/// So much longer may what came or changed be looked at where all else took its time.
const FOR_WHAT_IS_NEW: Duration = Duration::from_millis(250);
/// Reading so many files again costs less than writing the memory down.
const WORTH_SAVING: usize = 64;

#[derive(Default)]
pub struct Tree<'a> {
    /// The rules it was made by.
    pub print: u64,
    /// The rules of what is ignored that stand outside the tree.
    pub outside: u64,
    /// The folder at which the next scan begins: where time ran out in this one.
    pub next: usize,
    /// Folders still to be looked at until everything has been once more.
    pub left: usize,
    /// When that was last so; zero before the first time.
    pub whole_at: i64,
    /// When it was last noticed, by the clock of the files, that a file is gone.
    pub lost_at: i64,
    /// Folders the walk did not reach.
    pub pending: Vec<String>,
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
pub fn update(world: &World, project: &Project, aim: &Aim) -> Outcome {
    let Aim { rules, deadline, since } = *aim;
    let bytes = cache::load(world, project);
    let mut tree = cache::parse(&bytes).unwrap_or_default();
    let walk = Walk { root: &project.root, exclude: &rules.exclude, deadline, now: file_clock() };
    let looking = Looking { base: base(&project.root), rules, deadline, now: walk.now, since };
    let outside = walk.outside();
    let remembered = !tree.folders.is_empty();
    let mut whole = !remembered || tree.outside != outside;
    if tree.print != rules.print {
        tree.folders.iter_mut().flat_map(|folder| &mut folder.files).for_each(Known::forget);
        tree.whole_at = 0;
        whole = true;
    }
    (tree.print, tree.outside) = (rules.print, outside);
    let mut listed = !tree.pending.is_empty();
    let mut seen = Seen::default();
    if !whole {
        if listed {
            walk.pending(&mut tree);
            tree.left = tree.folders.len();
        }
        seen = looking.over(&mut tree, true);
        match walk.relist(&mut tree, &seen.stale) {
            Some(any) => {
                listed |= any;
                let few = Looking { deadline: deadline + FOR_WHAT_IS_NEW, ..looking.clone() };
                seen.merge(few.over(&mut tree, false));
                // What is ignored by other rules than before may be anywhere below them.
                whole = seen.ignored_otherwise;
            }
            None => whole = true,
        }
    }
    if whole {
        walk.everything(&mut tree);
        tree.left = tree.folders.len();
        seen.merge(looking.over(&mut tree, false));
    }
    let gone = tree.drop_gone();
    if gone {
        tree.lost_at = walk.now;
    }
    tree.count_round(&seen, world.now);
    if whole || listed || seen.late.is_some() || gone || seen.learned >= WORTH_SAVING {
        cache::save(world, project, &tree);
    }
    let changed = since.filter(|since| *since <= walk.now).and_then(|since| {
        let known = seen.changed || tree.lost_at > since || looking.any_changed_by_name(&mut tree.folders);
        let sure = remembered && seen.late.is_none() && tree.pending.is_empty();
        known.then_some(true).or_else(|| sure.then_some(false))
    });
    tree.outcome(seen.late.is_none(), changed, walk.now)
}

impl Tree<'_> {
    /// A folder from which something vanished unseen is listed again the next time. Returns whether a file of
    /// the project's own is among it.
    fn drop_gone(&mut self) -> bool {
        let mut lost = false;
        for Folder { path, mark, files, .. } in &mut self.folders {
            let before = files.len();
            files.retain(|known| {
                let gone = known.mark == GONE;
                lost |= gone && !files::is_ours(&within(path, &known.name));
                !gone
            });
            if files.len() != before {
                *mark = UNKNOWN;
            }
        }
        lost
    }

    /// A project too large for one scan is looked at in rounds of several, each going on where the one before
    /// stopped.
    fn count_round(&mut self, seen: &Seen, now: Stamp) {
        let folders = self.folders.len();
        let Some(late) = seen.late else {
            (self.next, self.left) = (0, folders);
            if self.pending.is_empty() {
                self.whole_at = now.0;
            }
            return;
        };
        self.next = late.at;
        self.left = self.left.saturating_sub(late.covered);
        if self.left == 0 && self.pending.is_empty() {
            self.left = folders;
            self.whole_at = now.0;
        }
    }

    fn outcome(self, complete: bool, changed: Option<bool>, seen_at: i64) -> Outcome {
        let files = self.folders.iter().map(|folder| folder.files.len()).sum();
        let found = |folder: &Folder| folder.files.iter().any(|known| !known.findings.is_empty());
        let mut folders = HashMap::new();
        if self.folders.iter().any(found) {
            folders = self.folders.iter().map(|f| (f.path.to_string(), f.files.len())).collect();
        }
        let complete = complete && self.pending.is_empty();
        let whole_at = Some(Stamp(self.whole_at)).filter(|at| at.0 != 0);
        let files_of = self.folders.into_iter().flat_map(|folder| folder.files);
        let findings = files_of.flat_map(|known| known.findings).collect();
        Outcome { findings, files, folders, complete, whole_at, changed, seen_at }
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
    /// A file that was looked at changed since the time asked for.
    changed: bool,
    ignored_otherwise: bool,
    late: Option<Late>,
}

/// Time ran out.
#[derive(Clone, Copy)]
struct Late {
    /// The first folder that was not looked at.
    at: usize,
    /// How many were.
    covered: usize,
}

impl Seen {
    fn run_out(&mut self, at: usize, covered: usize) {
        self.late = self.late.filter(|late| late.covered <= covered).or(Some(Late { at, covered }));
    }

    fn merge(&mut self, mut other: Seen) {
        self.stale.append(&mut other.stale);
        self.learned += other.learned;
        self.changed |= other.changed;
        self.ignored_otherwise |= other.ignored_otherwise;
        self.late = match (self.late, other.late) {
            (Some(one), Some(two)) => Some(if one.covered <= two.covered { one } else { two }),
            (one, two) => one.or(two),
        };
    }
}

/// Some files of one folder.
struct Part<'t, 'a> {
    at: usize,
    /// How many folders come before it.
    after: usize,
    /// Looked at whatever the time: every scan gets on.
    first: bool,
    path: &'t str,
    /// The folder's own mark, where it is to be asked for.
    mark: Option<Mark>,
    files: &'t mut [Known<'a>],
}

#[derive(Clone)]
struct Looking<'r> {
    base: PathBuf,
    rules: &'r Rules,
    deadline: Instant,
    now: i64,
    since: Option<i64>,
}

impl Looking<'_> {
    /// Looks for what is new or changed: over all folders, asking them too, or over those just listed.
    fn over(&self, tree: &mut Tree, all: bool) -> Seen {
        let first = tree.next.min(tree.folders.len());
        let (before, from) = tree.folders.split_at_mut(first);
        let from = from.iter_mut().enumerate().map(|(at, folder)| (at + first, folder));
        let parts: Vec<Part> = from
            .chain(before.iter_mut().enumerate())
            .filter(|(_, folder)| all || folder.fresh)
            .enumerate()
            .flat_map(|(after, (at, folder))| parts(at, after, folder, all))
            .collect();
        let mut seen = Seen::default();
        in_parallel(parts, |mut part, seen| self.part(&mut part, seen))
            .into_iter()
            .for_each(|one| seen.merge(one));
        seen
    }

    fn part(&self, part: &mut Part, seen: &mut Seen) {
        // Asked once for many files: a clock costs as much as a small file's mark does.
        let hurry = !part.first;
        if hurry && Instant::now() > self.deadline {
            return seen.run_out(part.at, part.after);
        }
        let mut full = self.base.join(part.path);
        if let Some(mark) = part.mark {
            let shown = if full.as_os_str().is_empty() { Path::new(".") } else { &full };
            let meta = shown.symlink_metadata().ok().filter(Metadata::is_dir);
            if meta.as_ref().is_none_or(|meta| mark_of(meta) != mark) {
                return seen.stale.push((part.at, meta.is_some()));
            }
        }
        for known in part.files.iter_mut().filter(|known| known.mark != BY_NAME) {
            full.push(&*known.name);
            let in_time = self.look(&full, part.path, known, hurry, seen);
            full.pop();
            if !in_time {
                return seen.run_out(part.at, part.after);
            }
        }
    }

    /// Looks at one file; false where there is no time left for it.
    fn look(&self, full: &Path, folder: &str, known: &mut Known, hurry: bool, seen: &mut Seen) -> bool {
        if known.mark != UNKNOWN {
            match full.symlink_metadata().ok().filter(Metadata::is_file) {
                Some(meta) if mark_of(&meta) == known.mark => {
                    seen.changed |= self.is_news(&meta, folder, known);
                    return true;
                }
                Some(_) => {}
                None => {
                    gone(known);
                    return true;
                }
            }
        }
        if hurry && Instant::now() > self.deadline {
            known.forget();
            return false;
        }
        let rules = is_ignore_file(&known.name);
        seen.ignored_otherwise |= rules;
        let path = within(folder, &known.name);
        match check::wants(self.rules, &path) {
            Wants::Nothing if !rules => {
                known.findings = check::judge(self.rules, &path, &[]);
                known.mark = BY_NAME;
            }
            wants => self.read(full, &path, wants, known, seen),
        }
        true
    }

    fn is_news(&self, meta: &Metadata, folder: &str, known: &Known) -> bool {
        self.since.is_some_and(|since| changed_at(meta) > since)
            && !files::is_ours(&within(folder, &known.name))
    }

    /// Whether one of the files that nobody looks into has changed. Asked last: mostly another tells.
    fn any_changed_by_name(&self, folders: &mut [Folder]) -> bool {
        let parts = folders.iter_mut().enumerate().flat_map(|(at, folder)| parts(at, at, folder, false));
        let found = AtomicBool::new(false);
        in_parallel(parts.collect(), |part, _| {
            let mut full = self.base.join(part.path);
            for known in part.files.iter().filter(|known| known.mark == BY_NAME) {
                if found.load(Ordering::Relaxed) {
                    return;
                }
                full.push(&*known.name);
                let meta = full.symlink_metadata().ok().filter(|meta| self.is_news(meta, part.path, known));
                found.fetch_or(meta.is_some(), Ordering::Relaxed);
                full.pop();
            }
        });
        found.into_inner()
    }

    fn read(&self, full: &Path, path: &str, wants: Wants, known: &mut Known, seen: &mut Seen) {
        let mut opened = File::open(full).ok();
        let meta = match &opened {
            Some(file) => file.metadata(),
            None => full.symlink_metadata(),
        };
        let Some(meta) = meta.ok().filter(Metadata::is_file) else { return gone(known) };
        seen.changed |= self.since.is_some_and(|since| changed_at(&meta) > since) && !files::is_ours(path);
        let bytes = opened.as_mut().and_then(|file| check::read(file, meta.len(), wants).ok());
        known.findings = check::judge(self.rules, path, bytes.as_deref().unwrap_or_default());
        // What could not be read is tried again.
        known.mark = if bytes.is_some() { settled(&meta, self.now) } else { UNKNOWN };
        seen.learned += usize::from(known.mark != UNKNOWN);
    }
}

fn gone(known: &mut Known) {
    known.mark = GONE;
    known.findings.clear();
}

/// The path of a name in a folder.
pub fn within(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Their content is rules too, so they are looked at whatever they say.
pub fn is_ignore_file(name: &str) -> bool {
    matches!(name, ".gitignore" | ".ignore")
}

/// A folder in pieces, so that one of many files is shared between threads.
fn parts<'t, 'a>(at: usize, after: usize, folder: &'t mut Folder<'a>, ask: bool) -> Vec<Part<'t, 'a>> {
    const AT_ONCE: usize = 512;
    let Folder { path, mark, files, .. } = folder;
    let mut mark = ask.then_some(*mark);
    if files.is_empty() {
        return vec![Part { at, after, first: after == 0, path, mark, files }];
    }
    let pieces = files.chunks_mut(AT_ONCE).enumerate();
    let part = |(piece, files)| Part { at, after, first: after + piece == 0, path, mark: mark.take(), files };
    pieces.map(part).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::settings;

    struct Place {
        _dir: tempfile::TempDir,
        world: World,
        project: Project,
        rules: Rules,
    }

    impl Place {
        fn new(files: impl IntoIterator<Item = (String, &'static str)>) -> Place {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().join("project");
            let world = World::at(&root, &dir.path().join("data"));
            let rules = Rules::new(None, &settings::resolve(&[]));
            let project = Project { root };
            let place = Place { _dir: dir, world, project, rules };
            files.into_iter().for_each(|(path, text)| place.write(&path, text));
            place
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.project.root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn update(&self, patience: Duration, since: Option<i64>) -> Outcome {
            let deadline = Instant::now() + patience;
            update(&self.world, &self.project, &Aim { rules: &self.rules, deadline, since })
        }
    }

    const PATIENT: Duration = Duration::from_secs(600);
    const NONE: Duration = Duration::ZERO;

    #[test]
    fn a_scan_that_never_has_time_still_comes_round() {
        let files = (0..30).map(|n| (format!("a{}/b{n}/f.rs", n % 3), "// @generated\n"));
        let place = Place::new(files);
        let rounds = (0..200).take_while(|_| place.update(NONE, None).whole_at.is_none()).count();
        assert!((5..100).contains(&rounds), "{rounds} scans");
        let late = place.update(NONE, None);
        let whole = place.update(PATIENT, None);
        assert!(!late.complete && whole.complete);
        assert_eq!((late.files, late.findings.len()), (30, 30));
        assert_eq!((whole.files, whole.findings.len()), (30, 30));
        // And what changes is seen when its turn comes.
        place.write("a2/b29/f.rs", "// mine\n");
        let seen = (0..200).any(|_| place.update(NONE, None).findings.len() == 29);
        assert!(seen, "a change is never seen");
    }

    #[test]
    fn a_change_within_one_tick_of_the_clock_is_seen() {
        for round in 0..30 {
            // The first scan of a project is always remembered.
            let place = Place::new([("f.rs".into(), "// @generated\n")]);
            assert_eq!(place.update(PATIENT, None).findings.len(), 1);
            place.write("f.rs", "// @gathered_\n");
            assert_eq!(place.update(PATIENT, None).findings.len(), 0, "round {round}");
        }
    }

    #[test]
    fn changes_are_told_from_a_moment_on() {
        let place = Place::new([("src/a.rs".into(), "a"), ("notes.md".into(), "n"), ("old.md".into(), "o")]);
        let mut since = place.update(PATIENT, None).seen_at;
        assert_eq!(place.update(PATIENT, Some(since)).changed, Some(false));
        let gone = |path: &str| std::fs::remove_file(place.project.root.join(path)).unwrap();
        let steps: [(&str, &dyn Fn(), bool); 8] = [
            ("a source rewritten", &|| place.write("src/a.rs", "b"), true),
            ("nothing", &|| {}, false),
            ("prose, which nobody looks into", &|| place.write("notes.md", "m"), true),
            ("a new file", &|| place.write("src/new/b.rs", "b"), true),
            ("a file gone", &|| gone("old.md"), true),
            ("our own state", &|| place.write(".claude/ralph-state.json", "{}"), false),
            ("our own question", &|| place.write("ralph/decide.txt", "?"), false),
            ("our own question gone", &|| gone("ralph/decide.txt"), false),
        ];
        for (what, step, expected) in steps {
            // The clock of the files ticks more coarsely than ours.
            std::thread::sleep(Duration::from_millis(20));
            step();
            // Somebody else's scan in between swallows nothing.
            place.update(PATIENT, None);
            let outcome = place.update(PATIENT, Some(since));
            assert_eq!(outcome.changed, Some(expected), "{what}");
            since = outcome.seen_at;
        }
        let outcome = place.update(PATIENT, Some(since + 60_000_000_000));
        assert_eq!(outcome.changed, None, "a clock that was set back tells nothing");
    }
}
