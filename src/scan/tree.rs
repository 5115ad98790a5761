//! Every file of the project with what was found in it, remembered between scans.
//!
//! A folder whose mark has not changed holds the same names, so a warm scan asks for marks and lists
//! nothing. What changed within the last moments before a scan may change again within the same tick of the
//! clock; it is not remembered, and looked at once more the next time.

use super::cache;
use super::files;
use super::looking::{Looking, Reach, Seen, within};
use super::mark::{GONE, Mark, UNKNOWN};
use super::place::Root;
use super::rules::Rules;
use super::walk::Walk;
use crate::core::finding::Finding;
use crate::core::progress::Sight;
use crate::core::time::Stamp;
use crate::store::ignores;
use crate::store::project::Project;
use crate::store::world::{World, file_clock};
use std::borrow::Cow;
use std::collections::HashMap;
use std::time::{Duration, Instant};

pub struct Outcome {
    pub findings: Vec<Finding>,
    pub files: usize,
    /// How many files each folder holds itself, by its path.
    pub folders: HashMap<String, usize>,
    /// Time did not run out.
    pub complete: bool,
    /// When everything had been looked at once more, in one scan or in several; nothing before the first time.
    pub whole_at: Option<Stamp>,
    /// Whether a file of the project that was looked at has changed since that moment, or one came or went;
    /// nothing where it is unknown.
    pub changed: Option<bool>,
    /// This look itself, from which the next one counts; nothing where the one before stays the one to count from.
    pub sight: Option<Sight>,
}

/// What a scan is to find out.
#[derive(Clone, Copy)]
pub struct Aim<'a> {
    pub rules: &'a Rules,
    pub deadline: Instant,
    /// Whether something has changed since that look.
    pub since: Option<&'a Sight>,
    /// The next look is to know also of files that are never looked into.
    pub whole_edge: bool,
    /// Of a large project a share is enough, this one in turn.
    pub look: Option<u64>,
    /// Between others of which each has time enough: where it has not, those go on as before.
    pub once: bool,
}

/// So much longer may what came or changed be looked at where all else took its time.
const FOR_WHAT_IS_NEW: Duration = Duration::from_millis(250);
/// More files than this are looked at in shares: it takes some 20 ms, and that at every turn.
const MOST_AT_A_TURN: usize = 16_384;
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

/// Brings the remembered tree up to now and returns what is in it.
pub fn update(world: &World, project: &Project, aim: &Aim) -> Outcome {
    let Aim { rules, deadline, since, whole_edge, look, once } = *aim;
    let bytes = cache::load(world, project);
    let mut tree = cache::parse(&bytes).unwrap_or_default();
    let ignores = ignores::of_user(world, &project.root);
    let walk = Walk { root: &project.root, exclude: &rules.exclude, ignores, deadline, now: file_clock() };
    let looking =
        Looking { root: &Root::new(&project.root), rules, deadline, now: walk.now, since, whole_edge };
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
    let large = tree.folders.iter().map(|folder| folder.files.len()).sum::<usize>() > MOST_AT_A_TURN;
    // Before everything was looked at once, nothing is known of the rest. What does not fit into one look goes on
    // where that stopped.
    let fits = tree.whole_at != 0 && tree.next == 0 && !listed;
    let reach = match look.filter(|_| large && fits) {
        Some(look) => Reach::Share(look),
        None => Reach::All,
    };
    if !whole {
        if listed {
            walk.pending(&mut tree);
            tree.left = tree.folders.len();
        }
        seen = looking.over(&mut tree, reach);
        match walk.relist(&mut tree, &seen.stale) {
            Some(any) => {
                listed |= any;
                let few = Looking { deadline: deadline + FOR_WHAT_IS_NEW, ..looking.clone() };
                seen.merge(few.over(&mut tree, Reach::Fresh));
                // What is ignored by other rules than before may be anywhere below them.
                whole = seen.ignored_otherwise;
            }
            None => whole = true,
        }
    }
    if whole {
        walk.everything(&mut tree);
        tree.left = tree.folders.len();
        seen.merge(looking.over(&mut tree, Reach::Fresh));
        seen.passed_over = false;
    }
    let gone = tree.drop_gone();
    if gone {
        tree.lost_at = walk.now;
    }
    if !(once && fits && seen.late.is_some()) {
        tree.count_round(&seen, world.now);
    }
    // What is not looked at each time has to be known until it is again.
    let worth = if large { 1 } else { WORTH_SAVING };
    if whole || listed || seen.late.is_some() || gone || seen.learned >= worth {
        cache::save(world, project, &tree);
    }
    let in_time = seen.late.is_none() && tree.pending.is_empty();
    let whole = in_time && !seen.passed_over;
    let since = since.filter(|since| since.at <= walk.now);
    let news = since.is_some_and(|since| seen.changed || tree.lost_at > since.at);
    let sure = remembered && in_time;
    let changed = since.and_then(|_| news.then_some(true).or(sure.then_some(false)));
    // What changes where nobody looked is news at a later look that counts from the same one.
    let moves = whole || news || since.is_none();
    let complete = seen.late.is_none();
    let sight = moves.then(|| seen.sight(walk.now, whole, whole_edge));
    tree.outcome(complete, changed, sight)
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
            if self.pending.is_empty() && !seen.passed_over {
                self.whole_at = now.0;
            }
            return;
        };
        self.next = late.at;
        self.left = if seen.passed_over { folders } else { self.left.saturating_sub(late.covered) };
        if self.left == 0 && self.pending.is_empty() {
            self.left = folders;
            self.whole_at = now.0;
        }
    }

    fn outcome(self, complete: bool, changed: Option<bool>, sight: Option<Sight>) -> Outcome {
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
        Outcome { findings, files, folders, complete, whole_at, changed, sight }
    }
}

impl Known<'_> {
    pub fn forget(&mut self) {
        self.mark = UNKNOWN;
    }
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

        fn update(&self, patience: Duration, since: Option<&Sight>) -> Outcome {
            self.look(patience, since, None)
        }

        fn look(&self, patience: Duration, since: Option<&Sight>, look: Option<u64>) -> Outcome {
            let deadline = Instant::now() + patience;
            let aim = Aim { rules: &self.rules, deadline, since, whole_edge: true, look, once: false };
            update(&self.world, &self.project, &aim)
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
        let mut since = place.update(PATIENT, None).sight.unwrap();
        assert_eq!(place.update(PATIENT, Some(&since)).changed, Some(false));
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
            step();
            // Somebody else's scan in between swallows nothing.
            place.update(PATIENT, None);
            let outcome = place.update(PATIENT, Some(&since));
            assert_eq!(outcome.changed, Some(expected), "{what}");
            since = outcome.sight.unwrap();
            // A progress that was found early leaves prose unknown; the next turn settles it.
            since = place.update(PATIENT, Some(&since)).sight.unwrap();
        }
        since.at += 60_000_000_000;
        let outcome = place.update(PATIENT, Some(&since));
        assert_eq!(outcome.changed, None, "a clock that was set back tells nothing");
    }

    // One file has many names here, more than some systems allow.
    #[cfg(target_os = "linux")]
    #[test]
    fn in_a_large_project_a_change_is_news_once_when_its_share_comes() {
        let place = Place::new((0..40).map(|n| (format!("d{n}/a.rs"), "a")));
        for n in 0..=MOST_AT_A_TURN {
            let link = place.project.root.join(format!("d{}/f{n}.rs", n % 40));
            std::fs::hard_link(place.project.root.join(format!("d{}/a.rs", n % 40)), link).unwrap();
        }
        for n in 0..3 {
            place.write(&format!("d{n}/a.md"), "prose");
        }
        std::thread::sleep(Duration::from_millis(2100));
        let mut since = place.update(PATIENT, None).sight.unwrap();
        for n in 0..3 {
            // Clear of the look before by more than a tick of the clock that stamps files.
            std::thread::sleep(Duration::from_millis(20));
            place.write(&format!("d{n}/a.md"), "other");
            let news = (0..6).filter(|look| {
                let Outcome { changed, sight, .. } = place.look(PATIENT, Some(&since), Some(*look));
                assert_eq!(sight.is_some(), changed == Some(true), "it counts from there on, or from before");
                since = sight.unwrap_or(since.clone());
                changed.unwrap()
            });
            assert_eq!(news.count(), 1, "{n}");
        }
        let whole = place.update(PATIENT, Some(&since));
        assert_eq!((whole.changed, whole.sight.is_some()), (Some(false), true));
        let since = Some(&since);
        let (deadline, rules) = (Instant::now(), &place.rules);
        let aim = Aim { rules, deadline, since, whole_edge: true, look: None, once: true };
        let late = update(&place.world, &place.project, &aim);
        assert_eq!((late.complete, late.changed), (false, None));
        let share = place.look(PATIENT, since, Some(0));
        assert_eq!((share.changed, share.sight.is_some()), (Some(false), false), "shares go on");
    }
}
