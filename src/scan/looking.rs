//! Looking at the files of the project, on all cores and within its time: which are new, changed or gone.

use super::check::{self, Wants};
use super::files;
use super::mark::{BY_NAME, GONE, Mark, Stat, UNKNOWN};
use super::place::{Place, Root};
use super::rules::Rules;
use super::tree::{Folder, Known, Tree};
use crate::core::progress::{Edge, Sight};
use crate::store::project::fingerprint;
use std::sync::Mutex;
use std::time::Instant;

/// Files are stamped by a clock that may lag this much behind ours.
const COARSE: i64 = 10_000_000;

/// What one thread met.
#[derive(Default)]
pub struct Seen {
    /// Folders by their place, with whether they are still there.
    pub stale: Vec<(usize, bool)>,
    /// Files read of which other things are known than before.
    pub learned: usize,
    /// A file that was looked at changed since the look asked for.
    pub changed: bool,
    /// Prints of those that changed just now.
    pub edge: Vec<u64>,
    pub ignored_otherwise: bool,
    /// There are files that were not asked for, this not being their turn.
    pub passed_over: bool,
    pub late: Option<Late>,
}

/// Where to look.
#[derive(Clone, Copy)]
pub enum Reach {
    /// In all folders.
    All,
    /// In all folders too, at this share of the files and at those that matter most.
    Share(u64),
    /// In the folders just listed.
    Fresh,
}

/// So many looks at a share of the files are one at all of them.
const SHARES: u64 = 3;
/// More files than this are not written all at once by an agent's last tool.
const MOST_ON_THE_EDGE: usize = 256;

/// Time ran out.
#[derive(Clone, Copy)]
pub struct Late {
    /// The first folder that was not looked at.
    pub at: usize,
    /// How many were.
    pub covered: usize,
}

impl Seen {
    /// The look itself.
    pub fn sight(self, at: i64, whole: bool, whole_edge: bool) -> Sight {
        let edge_of = match whole && self.edge.len() <= MOST_ON_THE_EDGE {
            true if whole_edge && !self.changed => Edge::All,
            true => Edge::LookedInto,
            false => Edge::Nothing,
        };
        let edge = if edge_of == Edge::Nothing { Vec::new() } else { self.edge };
        Sight { at, edge, edge_of }
    }

    fn run_out(&mut self, at: usize, covered: usize) {
        self.late = self.late.filter(|late| late.covered <= covered).or(Some(Late { at, covered }));
    }

    pub fn merge(&mut self, mut other: Seen) {
        self.stale.append(&mut other.stale);
        self.learned += other.learned;
        self.changed |= other.changed;
        self.edge.append(&mut other.edge);
        self.ignored_otherwise |= other.ignored_otherwise;
        self.passed_over |= other.passed_over;
        self.late = match (self.late, other.late) {
            (Some(one), Some(two)) => Some(if one.covered <= two.covered { one } else { two }),
            (one, two) => one.or(two),
        };
    }
}

/// Some files of one folder.
struct Part<'t, 'a> {
    at: usize,
    /// Which of the folder's parts.
    piece: u64,
    /// How many folders come before it.
    after: usize,
    /// Looked at whatever the time: every scan gets on.
    first: bool,
    path: &'t str,
    /// The folder's own mark, where it is to be asked for.
    mark: Option<Mark>,
    files: &'t mut [Known<'a>],
}

impl Part<'_, '_> {
    /// The look, of so many, at which it is asked for. It stays the same whatever comes and goes in other folders.
    fn turn(&self) -> u64 {
        fingerprint(self.path.as_bytes()).wrapping_add(self.piece) % SHARES
    }
}

impl Known<'_> {
    /// It may be told of, or is not known as it is, or says what is ignored.
    fn matters(&self) -> bool {
        !self.findings.is_empty() || self.mark == UNKNOWN || is_ignore_file(&self.name)
    }
}

#[derive(Clone)]
pub struct Looking<'r> {
    pub root: &'r Root,
    pub rules: &'r Rules,
    pub deadline: Instant,
    pub now: i64,
    pub since: Option<&'r Sight>,
    /// Files that are never looked into are asked too, until one that changed is met.
    pub whole_edge: bool,
}

impl Looking<'_> {
    /// Looks for what is new or changed; folders that were not just listed are asked too.
    pub fn over(&self, tree: &mut Tree, reach: Reach) -> Seen {
        let all = !matches!(reach, Reach::Fresh);
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
        in_parallel(parts, |mut part, seen| self.part(&mut part, reach, seen))
            .into_iter()
            .for_each(|one| seen.merge(one));
        seen
    }

    fn part(&self, part: &mut Part, reach: Reach, seen: &mut Seen) {
        // Asked once for many files: a clock costs as much as a small file's mark does.
        let hurry = !part.first;
        if hurry && Instant::now() > self.deadline {
            return seen.run_out(part.at, part.after);
        }
        let all = match reach {
            Reach::Share(look) => part.turn() == look % SHARES,
            Reach::All | Reach::Fresh => true,
        };
        let place = self.root.folder(part.path);
        if let Some(mark) = part.mark {
            let stat = place.own().filter(|stat| stat.is_dir);
            if stat.is_none_or(|stat| stat.mark() != mark) {
                return seen.stale.push((part.at, stat.is_some()));
            }
        }
        for known in part.files.iter_mut() {
            if !all && !known.matters() {
                seen.passed_over = true;
                continue;
            }
            if known.mark != BY_NAME && !self.look(&place, part.path, known, hurry, seen) {
                return seen.run_out(part.at, part.after);
            }
            if known.mark == BY_NAME && self.whole_edge && !seen.changed {
                let stat = place.ask(&known.name);
                stat.iter().for_each(|stat| self.compare(stat, part.path, &known.name, Edge::All, seen));
            }
        }
    }

    /// Looks at one file; false where there is no time left for it.
    fn look(&self, place: &Place, folder: &str, known: &mut Known, hurry: bool, seen: &mut Seen) -> bool {
        if known.mark != UNKNOWN {
            match place.ask(&known.name).filter(|stat| stat.is_file) {
                Some(stat) if stat.mark() == known.mark => {
                    self.compare(&stat, folder, &known.name, Edge::LookedInto, seen);
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
            wants => self.read(place, &path, wants, known, seen),
        }
        true
    }

    /// Whether the file is news, and whether it will be hard to tell at the next look.
    fn compare(&self, stat: &Stat, folder: &str, name: &str, kind: Edge, seen: &mut Seen) {
        let at = stat.changed_at;
        let soon = self.since.is_some_and(|since| at > since.at - COARSE);
        let late = at > self.now - COARSE;
        // A stamp ahead of the clock was given before that was set back, and tells nothing.
        let ahead = at > self.now + COARSE;
        if (!soon && !late) || ahead || files::is_ours(&within(folder, name)) {
            return;
        }
        let print = fingerprint(within(folder, name).as_bytes()) ^ stat.mark();
        if late {
            seen.edge.push(print);
        }
        seen.changed |= self.since.is_some_and(|since| {
            at > since.at || (soon && since.edge_of >= kind && !since.edge.contains(&print))
        });
    }

    fn read(&self, place: &Place, path: &str, wants: Wants, known: &mut Known, seen: &mut Seen) {
        let mut opened = place.open(&known.name);
        let stat = match &opened {
            Some(file) => file.metadata().ok().as_ref().map(Stat::from),
            None => place.ask(&known.name),
        };
        let Some(stat) = stat.filter(|stat| stat.is_file) else { return gone(known) };
        self.compare(&stat, "", path, Edge::LookedInto, seen);
        let bytes = opened.as_mut().and_then(|file| check::read(file, stat.size, wants).ok());
        known.findings = check::judge(self.rules, path, bytes.as_deref().unwrap_or_default());
        // What could not be read is tried again.
        let mark = if bytes.is_some() { stat.settled(self.now) } else { UNKNOWN };
        seen.learned += usize::from(mark != known.mark);
        known.mark = mark;
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
        return vec![Part { at, piece: 0, after, first: after == 0, path, mark, files }];
    }
    let pieces = files.chunks_mut(AT_ONCE).enumerate();
    let part = |(piece, files)| {
        let first = after + piece == 0;
        Part { at, piece: piece as u64, after, first, path, mark: mark.take(), files }
    };
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
