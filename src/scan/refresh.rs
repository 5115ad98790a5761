//! Brings the snapshot up to date: lists the directories that changed, then compares every file and reads those
//! that changed.

use super::FileCounter;
use super::directory::OpenDirectory;
use super::fingerprint::Stat;
use super::ignore_budget::IgnoreBudget;
use super::rules::Rules;
use super::rules::check;
use super::snapshot::{Directory, File, Snapshot, is_ignore_file, join};
use super::walk::{self, Depth, Walk, threads};
use crate::core::guidance::finding::Finding;
use crate::store::project::{Project, ignores, stable_hash as hash};
use crate::store::world::{Instant, World};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Files that one thread compares before it looks at the clock and takes the next ones.
const FILES_AT_ONCE: usize = 512;

/// More findings are not kept; the worst hundred are used.
const MAX_FINDINGS: usize = 20_000;

/// Loads the snapshot, brings it up to date and saves it where it changed. Returns it, and whether everything was
/// compared before the deadline. `now` is the time by the clock that stamps files, in nanoseconds.
pub fn refresh(
    world: &World,
    project: &Project,
    rules: &Rules,
    deadline: Instant,
    (now, counter): (i64, &FileCounter),
) -> (Snapshot, bool) {
    let user_ignores = ignores::of_user(world, &project.root);
    let root = project.root.as_path();
    let budget = Arc::new(IgnoreBudget::new(root));
    let walk = Walk { root, exclude: &rules.exclude, user_ignores, deadline, budget, now };
    let known = Snapshot::load(world, project).filter(|snapshot| snapshot.rules == rules.hash);
    let mut snapshot = known.unwrap_or_else(|| Snapshot::new(rules.hash));
    let ignores = walk.outside_ignores();
    if std::mem::replace(&mut snapshot.outside_ignores, ignores) != ignores {
        snapshot.list_everything();
    }
    let Some(root) = OpenDirectory::root(&project.root) else { return (snapshot, false) };
    let findings = snapshot.files().map(|file| file.findings.len()).sum();
    let (changed, late) = (AtomicBool::new(false), AtomicBool::new(false));
    let findings = AtomicUsize::new(findings);
    let refresh = Refresh { root, walk, rules, changed, late, findings, counter };
    refresh.update_listings(&mut snapshot);
    refresh.take_back(&mut snapshot);
    refresh.walk_pending(&mut snapshot);
    let reached_end = refresh.compare_files(&mut snapshot);
    if reached_end && snapshot.pending.is_empty() && snapshot.files().all(|file| file.fingerprint.is_known())
    {
        snapshot.completed_at = Some(world.now);
    }
    if refresh.changed.into_inner() {
        snapshot.save(world, project);
    }
    let complete = !refresh.late.into_inner() && snapshot.pending.is_empty();
    (snapshot, complete)
}

struct Refresh<'a> {
    root: OpenDirectory,
    walk: Walk<'a>,
    rules: &'a Rules,
    /// Something is known that the saved snapshot does not say.
    changed: AtomicBool,
    late: AtomicBool,
    /// In all files together.
    findings: AtomicUsize,
    counter: &'a FileCounter,
}

impl Refresh<'_> {
    /// Lists again the directories in which something was added or removed. New directories below them are left
    /// pending; where ignore files changed, everything is.
    fn update_listings(&self, snapshot: &mut Snapshot) {
        let (differing, missing) = (Mutex::new(BTreeMap::new()), Mutex::new(BTreeSet::new()));
        let ignores_changed = AtomicBool::new(false);
        let directories = from_next(snapshot);
        in_parallel(4 * directories.len(), directories, |index, (path, directory)| {
            if index > 0 && self.is_late() {
                return;
            }
            let Some(open) = self.root.open(path) else {
                missing.lock().map(|mut missing| missing.insert(path.clone())).ok();
                return;
            };
            if self.ignores_changed(&open, path, directory) {
                ignores_changed.store(true, Ordering::Relaxed);
            }
            if let Some(names) = self.differing(&open, path, directory) {
                differing.lock().map(|mut differing| differing.insert(path.clone(), names)).ok();
            }
        });
        let missing = missing.into_inner().unwrap_or_default();
        if !missing.is_empty() {
            snapshot.directories.retain(|path, _| !is_below(&missing, path));
            for path in &missing {
                snapshot.directories.entry(parent(path).to_owned()).and_modify(Directory::forget_listing);
            }
            self.note_change();
        }
        let differing = differing.into_inner().unwrap_or_default();
        let relisted = self.relist(snapshot, differing);
        if ignores_changed.into_inner() || !relisted {
            snapshot.list_everything();
        }
    }

    /// Returns whether one of the directory's known ignore files changed.
    fn ignores_changed(&self, open: &OpenDirectory, path: &str, directory: &mut Directory) -> bool {
        let mut changed = false;
        for file in directory.files.iter_mut().filter(|file| is_ignore_file(&file.name)) {
            changed |= match open.stat(&file.name).filter(|stat| stat.is_file) {
                Some(stat) => !file.matches(&stat) && self.read(open, path, file, &stat),
                None => true,
            };
        }
        changed
    }

    /// Returns the hash of the names in a directory where they are not those of its last listing.
    fn differing(&self, open: &OpenDirectory, path: &str, directory: &mut Directory) -> Option<u64> {
        let stat = open.stat_self()?;
        if stat.fingerprint() == directory.fingerprint {
            return None;
        }
        let names = walk::names(&self.walk.root.join(path)).unwrap_or_default();
        if names == 0 || names != directory.names {
            return Some(names);
        }
        // A directory that merely changed again is not worth saving the snapshot for.
        if !directory.fingerprint.is_known() && !stat.is_recent(self.walk.now) {
            self.note_change();
        }
        directory.fingerprint = self.walk.settled(&stat);
        None
    }

    /// Lists single directories. Returns false where one of them has other ignore files than before.
    fn relist(&self, snapshot: &mut Snapshot, differing: BTreeMap<String, u64>) -> bool {
        let roots = differing.keys().filter(|path| snapshot.directories.contains_key(*path)).cloned();
        let mut listing = self.walk.list(&roots.collect(), Depth::Alone);
        if listing.left_out.keys().any(|path| differing.contains_key(path) && !path.is_empty()) {
            return false;
        }
        for (path, names) in differing {
            let listed = listing.directories.remove(&path).zip(snapshot.directories.get_mut(&path));
            let Some((mut listed, known)) = listed else { continue };
            if listed.ignore_files() != known.ignore_files() {
                return false;
            }
            (listed.names, listed.list_bytes) = (names, known.list_bytes);
            listed.adopt(std::mem::take(known));
            *known = listed;
            self.note_change();
        }
        self.late.fetch_or(!listing.late.is_empty(), Ordering::Relaxed);
        snapshot.left_out.extend(listing.left_out);
        let is_known =
            |path: &String| snapshot.directories.contains_key(path) || snapshot.left_out.contains_key(path);
        let below: Vec<_> = listing.below.into_iter().filter(|path| !is_known(path)).collect();
        snapshot.pending.extend(below);
        true
    }

    /// Leaves directories pending that were left out and whose ignore files may fit by now.
    fn take_back(&self, snapshot: &mut Snapshot) {
        let is_list = |path: &str| path.is_empty() || Path::new(path).is_absolute();
        self.walk.budget.set_spent(snapshot.directories.values().map(|directory| directory.list_bytes).sum());
        let mut fitting = Vec::new();
        for (index, (path, lists)) in snapshot.left_out.iter().enumerate() {
            if index > 0 && self.is_late() {
                break;
            }
            if !is_list(path) && self.walk.budget.may_admit(&self.walk.root.join(path), *lists) {
                fitting.push(path.clone());
            }
        }
        snapshot.pending.extend(fitting);
    }

    /// Walks the directories that are pending. What is known of their files is kept, and so is everything below
    /// directories that the walk does not reach in time.
    fn walk_pending(&self, snapshot: &mut Snapshot) {
        let pending = std::mem::take(&mut snapshot.pending);
        if pending.is_empty() {
            return;
        }
        // A directory below another one is walked with it.
        let is_root = |path: &&String| path.is_empty() || !is_below(&pending, parent(path));
        let roots: BTreeSet<_> = pending.iter().filter(is_root).cloned().collect();
        let spent = snapshot.directories.iter().filter(|(path, _)| !is_below(&roots, path));
        self.walk.budget.set_spent(spent.map(|(_, directory)| directory.list_bytes).sum());
        let mut listing = self.walk.list(&roots, Depth::All);
        self.late.fetch_or(!listing.late.is_empty(), Ordering::Relaxed);
        let (again, others): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut snapshot.directories)
            .into_iter()
            .partition(|(path, _)| is_below(&roots, path));
        for (path, known) in again {
            if let Some(listed) = listing.directories.get_mut(&path) {
                listed.adopt(known);
            } else if is_below(&listing.late, &path) {
                listing.directories.insert(path, known);
            }
        }
        snapshot.left_out.retain(|path, _| !is_below(&roots, path) || is_below(&listing.late, path));
        snapshot.left_out.extend(listing.left_out);
        snapshot.directories = others;
        snapshot.directories.extend(listing.directories);
        snapshot.pending = listing.late;
        self.note_change();
    }

    /// Compares every file, from the directory where the last scan stopped. Returns whether it reached the last
    /// directory, at which the scan after this one begins again with the first.
    fn compare_files(&self, snapshot: &mut Snapshot) -> bool {
        let (total, start) = (snapshot.directories.len(), start(snapshot));
        let mut parts = Vec::new();
        for (order, (path, directory)) in from_next(snapshot).into_iter().enumerate() {
            // An empty directory is a part too, so that a scan can begin at it.
            let first = FILES_AT_ONCE.min(directory.files.len());
            let (first, rest) = directory.files.split_at_mut(first);
            let chunks = std::iter::once(first).chain(rest.chunks_mut(FILES_AT_ONCE));
            parts.extend(chunks.map(|files| (order, path.as_str(), files)));
        }
        let files = parts.iter().map(|(.., files)| files.len()).sum();
        let reached = AtomicUsize::new(total);
        in_parallel(files, parts, |index, (order, path, files)| {
            if !self.compare(path, files, index == 0) {
                reached.fetch_min(order, Ordering::Relaxed);
            }
        });
        for directory in snapshot.directories.values_mut() {
            let before = directory.files.len();
            directory.files.retain(|file| !file.gone);
            if directory.files.len() < before {
                directory.forget_listing();
                self.note_change();
            }
        }
        let stopped_at = start + reached.into_inner();
        let next = snapshot.directories.keys().nth(stopped_at % total.max(1)).cloned().unwrap_or_default();
        snapshot.next = if self.late.load(Ordering::Relaxed) { next } else { String::new() };
        stopped_at >= total
    }

    /// Compares some files of one directory. Returns false where time ran out, which the first ones ignore so that
    /// every scan gets further.
    fn compare(&self, path: &str, files: &mut [File], first: bool) -> bool {
        if !first && self.is_late() {
            return false;
        }
        self.counter.add(files.len());
        let open = self.root.open(path);
        let mut exempt = first;
        for file in files {
            let stat = open.as_ref().and_then(|open| Some((open, open.stat(&file.name)?)));
            let Some((open, stat)) = stat.filter(|(_, stat)| stat.is_file) else {
                file.gone = true;
                continue;
            };
            if file.matches(&stat) {
                continue;
            }
            if !std::mem::take(&mut exempt) && self.is_late() {
                return false;
            }
            self.read(open, path, file, &stat);
        }
        true
    }

    /// Reads a file whose fingerprint changed or does not tell, and applies the rules to it. Returns whether it
    /// changed.
    fn read(&self, open: &OpenDirectory, directory: &str, file: &mut File, stat: &Stat) -> bool {
        let (fingerprint, path) = (stat.fingerprint(), join(directory, &file.name));
        let same = fingerprint == file.fingerprint;
        let recent = stat.is_recent(self.walk.now);
        let by_content = same || recent;
        let bytes = match by_content || check::needs_content(self.rules, &path) {
            true => open.open_file(&file.name).and_then(|mut file| check::read(&mut file, stat.size).ok()),
            false => Some(Vec::new()),
        };
        let content = bytes.as_ref().filter(|_| by_content).map_or(0, |bytes| hash(bytes));
        let changed = !same || content != file.content;
        // A file that cannot be read is tried again at the next scan.
        let recent = recent || bytes.is_none();
        if changed {
            let over = || Instant::lately() > self.walk.deadline + walk::GRACE;
            let judged = check::judge(self.rules, &path, &bytes.unwrap_or_default(), over);
            let Some(found) = judged else {
                self.is_late();
                return false;
            };
            self.findings.fetch_sub(file.findings.len(), Ordering::Relaxed);
            file.findings = self.bounded(found);
            (file.fingerprint, file.content) = (fingerprint, content);
        }
        if changed || recent != file.recent {
            self.note_change();
        }
        file.recent = recent;
        changed
    }

    /// Returns as many of a file's findings as all files together may have.
    fn bounded(&self, mut findings: Vec<Finding>) -> Vec<Finding> {
        let before = self.findings.fetch_add(findings.len(), Ordering::Relaxed);
        findings.truncate(MAX_FINDINGS.saturating_sub(before));
        findings
    }

    fn note_change(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    fn is_late(&self) -> bool {
        let late = Instant::lately() > self.walk.deadline;
        if late {
            self.late.store(true, Ordering::Relaxed);
            self.note_change();
        }
        late
    }
}

impl File {
    /// Returns whether the file is surely the one that was read.
    fn matches(&self, stat: &Stat) -> bool {
        !self.recent && self.fingerprint == stat.fingerprint()
    }
}

/// Returns the position of the directory at which this scan begins.
fn start(snapshot: &Snapshot) -> usize {
    snapshot.directories.range(..snapshot.next.clone()).count()
}

/// Returns all directories, beginning where the last scan stopped.
fn from_next(snapshot: &mut Snapshot) -> Vec<(&String, &mut Directory)> {
    let start = start(snapshot);
    let mut directories: Vec<_> = snapshot.directories.iter_mut().collect();
    directories.rotate_left(start);
    directories
}

fn parent(path: &str) -> &str {
    &path[..path.rfind('/').unwrap_or(0)]
}

/// Returns whether a path is one of these or below one.
fn is_below(directories: &BTreeSet<String>, path: &str) -> bool {
    let mut above = std::iter::successors(Some(path), |path| (!path.is_empty()).then(|| parent(path)));
    !directories.is_empty() && above.any(|path| directories.contains(path))
}

/// Works on all items, with their index; in several threads where that costs as much as to compare many files.
fn in_parallel<T: Send>(files: usize, items: Vec<T>, work: impl Fn(usize, T) + Sync) {
    let threads = if files < FILES_AT_ONCE { 1 } else { threads() };
    let queue = Mutex::new(items.into_iter().enumerate());
    let next = || queue.lock().ok().and_then(|mut queue| queue.next());
    let run = || {
        while let Some((index, item)) = next() {
            work(index, item);
        }
    };
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| {
            scope.spawn(run);
        });
        run();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::circuit::progress::TreeState;
    use crate::core::settings;
    use crate::store::world::file_clock;
    use std::time::Duration;

    const GENERATED: &str = "// @generated\n";
    /// As long as `GENERATED`.
    const WRITTEN: &str = "// by a human\n";
    const HOUR_NS: i64 = 3_600_000_000_000;

    struct TestProject {
        _dir: tempfile::TempDir,
        world: World,
        project: Project,
    }

    impl TestProject {
        fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> TestProject {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().join("project");
            let world = World::at(&root, &dir.path().join("data"));
            let test = TestProject { _dir: dir, world, project: Project { root } };
            files.into_iter().for_each(|(path, text)| test.write(path, text));
            test
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.project.root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn remove(&self, path: &str) {
            std::fs::remove_file(self.project.root.join(path)).unwrap();
        }

        fn refresh_in(&self, budget: Duration, now: i64) -> (Snapshot, bool) {
            let rules = Rules::new(None, &settings::resolve(&[]));
            refresh(
                &self.world,
                &self.project,
                &rules,
                Instant::now() + budget,
                (now, &FileCounter::default()),
            )
        }

        /// Returns when something was last written, which is now on a machine that is fast enough.
        fn written_at(&self) -> i64 {
            fn newest(path: &Path) -> i64 {
                let inside = std::fs::read_dir(path).into_iter().flatten().flatten();
                let inside = inside.map(|entry| newest(&entry.path())).max();
                let meta = path.symlink_metadata().unwrap();
                inside.unwrap_or_default().max(Stat::from(&meta).changed_at)
            }
            newest(&self.project.root)
        }

        /// A scan with enough time, right after the last change.
        fn refresh(&self) -> Snapshot {
            let (snapshot, complete) = self.refresh_in(Duration::from_secs(600), self.written_at());
            assert!(complete);
            snapshot
        }

        fn refresh_later(&self) -> Snapshot {
            self.refresh_in(Duration::from_secs(600), file_clock() + HOUR_NS).0
        }

        /// Makes a file look, in the saved snapshot, as if the clock had not advanced since it was read. Returns the
        /// state before the next scan.
        fn stop_clock(&self, path: &str, recent: bool) -> TreeState {
            let mut snapshot = Snapshot::load(&self.world, &self.project).unwrap();
            let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
            let files = &mut snapshot.directories.get_mut(directory).unwrap().files;
            let file = files.iter_mut().find(|file| file.name == name).unwrap();
            let meta = self.project.root.join(path).symlink_metadata().unwrap();
            (file.fingerprint, file.recent) = (Stat::from(&meta).fingerprint(), recent);
            snapshot.save(&self.world, &self.project);
            snapshot.state()
        }
    }

    fn found(snapshot: &Snapshot) -> Vec<String> {
        snapshot.files().flat_map(|file| file.findings.iter().map(|finding| finding.file.clone())).collect()
    }

    fn changed(before: TreeState, after: &Snapshot) -> Option<bool> {
        after.state().changed_since(before)
    }

    #[test]
    fn a_change_within_one_tick_of_the_clock_is_seen() {
        for round in 0..30 {
            let test = TestProject::new([("f.rs", GENERATED)]);
            let before = test.refresh();
            assert_eq!(found(&before), ["f.rs"]);
            test.write("f.rs", WRITTEN);
            test.write("new.rs", GENERATED);
            let after = test.refresh();
            assert_eq!(found(&after), ["new.rs"], "round {round}");
            test.write("new.rs", WRITTEN);
            let last = test.refresh();
            assert_eq!((found(&last), changed(after.state(), &last)), (vec![], Some(true)), "round {round}");
        }
    }

    #[test]
    fn a_file_with_the_same_fingerprint_is_compared_by_content_if_it_was_recent() {
        let test = TestProject::new([("a/f.rs", GENERATED), ("a/notes.md", "one")]);
        test.refresh();
        for path in ["a/f.rs", "a/notes.md"] {
            let before = test.stop_clock(path, true);
            assert_eq!(changed(before, &test.refresh()), Some(false), "{path}: the same content");
        }
        test.write("a/f.rs", WRITTEN);
        let before = test.stop_clock("a/f.rs", true);
        let after = test.refresh();
        assert_eq!((found(&after), changed(before, &after)), (vec![], Some(true)));
        test.write("a/notes.md", "two");
        let before = test.stop_clock("a/notes.md", true);
        assert_eq!(changed(before, &test.refresh()), Some(true), "prose, which no rule reads");
    }

    #[test]
    fn a_file_that_did_not_change_is_not_read_again() {
        let test = TestProject::new([("f.rs", GENERATED)]);
        test.refresh();
        test.write("f.rs", WRITTEN);
        let before = test.stop_clock("f.rs", false);
        let after = test.refresh();
        assert_eq!((found(&after).len(), changed(before, &after)), (1, Some(false)));
    }

    #[test]
    fn content_is_compared_until_the_clock_has_advanced() {
        let test = TestProject::new([("f.rs", GENERATED), ("a/g.md", "g")]);
        let recent = |snapshot: &Snapshot| snapshot.files().filter(|file| file.recent).count();
        let before = test.refresh();
        let (later, again) = (test.refresh_later(), test.refresh_later());
        assert_eq!((recent(&before), recent(&later), recent(&again)), (2, 0, 0));
        assert_eq!(changed(before.state(), &later), Some(false));
        assert_eq!(again, later);
        assert_eq!(Snapshot::load(&test.world, &test.project).as_ref(), Some(&later), "and that is saved");
    }

    #[test]
    fn changes_are_those_since_any_earlier_state() {
        let test =
            TestProject::new([("src/a.rs", "a"), ("notes.md", "n"), ("old.md", "o"), ("d/e/f.md", "f")]);
        let mut before = test.refresh().state();
        let steps: [(&str, &dyn Fn(), bool); 10] = [
            ("nothing", &|| {}, false),
            ("a source rewritten", &|| test.write("src/a.rs", "b"), true),
            ("nothing again", &|| {}, false),
            ("prose, which no rule reads", &|| test.write("notes.md", "m"), true),
            ("a new file", &|| test.write("src/new/b.rs", "b"), true),
            ("a file removed", &|| test.remove("old.md"), true),
            ("a directory removed", &|| std::fs::remove_dir_all(test.project.root.join("d")).unwrap(), true),
            ("Ralph's own state", &|| test.write(".claude/ralph-state.json", "{}"), false),
            ("Ralph's own question", &|| test.write("ralph/decide.txt", "?"), false),
            ("the question removed", &|| test.remove("ralph/decide.txt"), false),
        ];
        for (what, step, expected) in steps {
            step();
            // Another scan in between, as of another loop, hides nothing.
            test.refresh();
            let after = test.refresh();
            assert_eq!(changed(before, &after), Some(expected), "{what}");
            before = after.state();
        }
        let back = test.refresh_in(Duration::from_secs(600), file_clock() - HOUR_NS).0;
        assert_eq!(changed(before, &back), Some(false), "a clock that was set back");
        std::fs::remove_dir_all(test.world.data_dir().unwrap().join("scan")).unwrap();
        assert_eq!(changed(before, &test.refresh()), None, "without a snapshot nothing is known");
    }

    #[test]
    fn a_scan_without_time_is_continued_by_the_next_ones() {
        const NO_TIME: Duration = Duration::ZERO;
        let paths: Vec<_> = (0..30).map(|n| format!("a{}/b{n}/f.rs", n % 3)).collect();
        let test = TestProject::new(paths.iter().map(|path| (path.as_str(), GENERATED)));
        let scan = || test.refresh_in(NO_TIME, file_clock());
        let scans = (0..200).take_while(|_| scan().0.completed_at.is_none()).count();
        assert!((5..150).contains(&scans), "{scans} scans");
        let (late, complete) = scan();
        assert_eq!((complete, found(&late).len()), (false, 30));
        assert_eq!(found(&test.refresh()).len(), 30);
        test.write("a2/b29/f.rs", WRITTEN);
        assert!((0..200).any(|_| found(&scan().0).len() == 29), "a changed file is never read");
        test.write("a1/new/f.rs", GENERATED);
        assert!((0..200).any(|_| found(&scan().0).len() == 30), "a new directory is never listed");
    }

    #[test]
    fn directories_that_are_pending_twice_are_listed_once() {
        let test = TestProject::new([("a/b/f.rs", GENERATED), ("g.rs", GENERATED)]);
        let mut snapshot = test.refresh();
        snapshot.pending = ["a".to_owned(), "a/b".to_owned()].into();
        snapshot.save(&test.world, &test.project);
        assert_eq!(found(&test.refresh()), ["g.rs", "a/b/f.rs"]);
    }

    #[test]
    fn a_directory_that_is_moved_away_and_back_is_found_again() {
        let test = TestProject::new([("a/b/f.rs", GENERATED)]);
        test.refresh_later();
        let parked = test.project.root.join("parked");
        std::fs::rename(test.project.root.join("a/b"), &parked).unwrap();
        assert_eq!(found(&test.refresh_later()), ["parked/f.rs"]);
        std::fs::rename(&parked, test.project.root.join("a/b")).unwrap();
        assert_eq!(found(&test.refresh_later()), ["a/b/f.rs"]);
    }

    #[test]
    fn folders_over_the_budget_of_all_ignore_files_stay_left_out_until_there_is_room() {
        // Few patterns, because every one is compiled.
        let list = format!("{}\n", "n".repeat(1023)).repeat(255);
        let lists: Vec<_> = (0..8).map(|n| format!("d{n}/.gitignore")).collect();
        let files: Vec<_> = (0..8).map(|n| format!("d{n}/f.rs")).collect();
        let lists = lists.iter().map(|path| (path.as_str(), list.as_str()));
        let test = TestProject::new(lists.chain(files.iter().map(|path| (path.as_str(), GENERATED))));
        test.write("g.rs", GENERATED);
        let first = test.refresh();
        let listed: Vec<_> = found(&first).into_iter().filter(|path| path.starts_with('d')).collect();
        assert_eq!((listed.len(), first.left_out.len()), (4, 4), "1 MB are four lists");
        test.write("h.rs", GENERATED);
        let second = test.refresh();
        assert!(second.left_out.keys().eq(first.left_out.keys()), "no other ones take their place");
        assert_eq!(found(&second).len(), listed.len() + 2);
        std::fs::remove_dir_all(test.project.root.join(&listed[0]).parent().unwrap()).unwrap();
        let third = test.refresh();
        assert_eq!((third.left_out.len(), found(&third).len()), (3, 6), "one has room now");
    }

    #[test]
    fn without_time_a_folder_of_many_others_is_listed_in_parts() {
        let paths: Vec<_> = (0..300).map(|n| format!("a{n}/f.rs")).collect();
        let test = TestProject::new(paths.iter().map(|path| (path.as_str(), GENERATED)));
        let mut known = 0;
        for scan in 0..4 {
            let (snapshot, complete) = test.refresh_in(Duration::ZERO, file_clock());
            assert!(!complete && snapshot.directories.len() > known, "scan {scan} got no further");
            assert_eq!(snapshot.directories.len() + snapshot.pending.len(), 301, "none is forgotten");
            known = snapshot.directories.len();
        }
        assert_eq!(found(&test.refresh()).len(), 300);
    }
}
