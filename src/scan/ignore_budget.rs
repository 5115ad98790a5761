//! What ignore files may cost: those that apply to one directory, and all of a project together.
//!
//! Patterns with wildcards are compiled and matched together, and their memory grows with the square of their
//! number: a list of 128 KB once asked for 28 GB. So lists over the budget are not used, and what is below them is
//! left out of the scan and named. Thousands of folders may each have a list that fits, so all lists of a project have
//! a budget too; a list over it is not even read.

use super::fingerprint::{Stat, mix};
use crate::core::text::clean;
use crate::store::file;
use crate::store::project::ignores;
use std::collections::HashMap;
use std::ops::Add;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

pub const MAX_LIST_BYTES: usize = 256 << 10;
/// All lists of a project together.
pub const MAX_TOTAL_BYTES: u64 = 1 << 20;
/// Patterns with wildcards, and their bytes.
pub const MAX_WILDCARDS: usize = 1000;
pub const MAX_WILDCARD_BYTES: usize = 32 << 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    bytes: usize,
    wildcards: usize,
    wildcard_bytes: usize,
}

impl Cost {
    /// Returns what the patterns of a list cost.
    pub fn of(list: &[u8]) -> Cost {
        let mut cost = Cost { bytes: list.len(), ..Cost::default() };
        for line in list.split(|byte| *byte == b'\n').filter(|line| is_compiled(line)) {
            cost.wildcards += 1;
            cost.wildcard_bytes += line.len();
        }
        cost
    }

    /// Returns what a list costs; nothing if it cannot be used: it is huge, no regular file, or leads out of the project.
    fn of_file(root: &Path, list: &Path) -> Option<Cost> {
        if ignores::leads_out(root, list) {
            return None;
        }
        match file::read_bounded(list, MAX_LIST_BYTES as u64) {
            Ok(read) => Some(read.map_or_else(Cost::default, |bytes| Cost::of(&bytes))),
            // Only files are lists.
            Err(_) => list.is_dir().then(Cost::default),
        }
    }

    pub fn fits(self) -> bool {
        self.bytes <= MAX_LIST_BYTES
            && self.wildcards <= MAX_WILDCARDS
            && self.wildcard_bytes <= MAX_WILDCARD_BYTES
    }
}

impl Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost {
            bytes: self.bytes + other.bytes,
            wildcards: self.wildcards + other.wildcards,
            wildcard_bytes: self.wildcard_bytes + other.wildcard_bytes,
        }
    }
}

/// Returns whether a pattern needs more than a comparison of names or endings, as `*.log` does.
fn is_compiled(pattern: &[u8]) -> bool {
    let pattern = pattern.strip_prefix(b"*").unwrap_or(pattern);
    !pattern.starts_with(b"#") && pattern.iter().any(|byte| b"*?[{".contains(byte))
}

/// Returns whether a list by itself can be used; one that is a device, a pipe or huge cannot.
pub fn is_fit(root: &Path, list: &Path) -> bool {
    Cost::of_file(root, list).is_some_and(Cost::fits)
}

/// The cost of each directory's lists together with those above it, as far as known; `None` where they do not fit.
pub struct IgnoreBudget {
    root: PathBuf,
    known: Mutex<HashMap<PathBuf, Option<Cost>>>,
    /// Bytes of all lists that are used, or were read.
    spent: AtomicU64,
}

/// Whether a directory's lists can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// They have so many bytes.
    Admitted(u64),
    /// They do not fit until their fingerprint is another one; 0 where they were not read.
    Refused(u64),
}

impl IgnoreBudget {
    pub fn new(root: &Path) -> IgnoreBudget {
        IgnoreBudget { root: root.to_owned(), known: Mutex::default(), spent: AtomicU64::new(0) }
    }

    /// Sets how many bytes the lists have that are used already.
    pub fn set_spent(&self, bytes: u64) {
        self.spent.store(bytes, Ordering::Relaxed);
    }

    /// Returns whether the ignore files of this directory and of all above it fit together.
    pub fn fits(&self, directory: &Path) -> bool {
        self.total(directory).is_some()
    }

    /// Decides whether a directory that was not listed yet can be, and counts its lists.
    pub fn admit(&self, directory: &Path) -> Admission {
        let lists = of_directory(directory);
        let Some(bytes) = bytes(&lists) else { return Admission::Admitted(0) };
        if !self.has_room(bytes) || directory.parent().is_some_and(|above| !self.fits(above)) {
            return Admission::Refused(0);
        }
        self.spent.fetch_add(bytes, Ordering::Relaxed);
        match self.fits(directory) {
            true => Admission::Admitted(bytes),
            false => Admission::Refused(fingerprint(&lists)),
        }
    }

    /// Returns whether a directory that was refused may be admitted now. Its lists are not read for that.
    pub fn may_admit(&self, directory: &Path, refused: u64) -> bool {
        let lists = of_directory(directory);
        fingerprint(&lists) != refused && bytes(&lists).is_none_or(|bytes| self.has_room(bytes))
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.spent.load(Ordering::Relaxed).saturating_add(bytes) <= MAX_TOTAL_BYTES
    }

    fn total(&self, directory: &Path) -> Option<Cost> {
        if let Some(known) = self.known.lock().ok()?.get(directory) {
            return *known;
        }
        let above = directory.parent().map_or(Some(Cost::default()), |above| self.total(above));
        let total = above.and_then(|above| {
            let [git, other] = NAMES.map(|name| Cost::of_file(&self.root, &directory.join(name)));
            Some(above + git? + other?).filter(|total| total.fits())
        });
        self.known.lock().ok()?.insert(directory.to_owned(), total);
        total
    }
}

const NAMES: [&str; 2] = [".gitignore", ".ignore"];

/// Returns the metadata of a directory's lists; nothing for one that is not there.
fn of_directory(directory: &Path) -> [Option<Stat>; 2] {
    NAMES.map(|name| directory.join(name).metadata().ok().map(|meta| Stat::from(&meta)))
}

/// Returns how many bytes are read of these lists; nothing if there are none.
fn bytes(lists: &[Option<Stat>; 2]) -> Option<u64> {
    // Of one that is too large by itself nothing is read.
    let size = |list: &Stat| if list.size > MAX_LIST_BYTES as u64 { 0 } else { list.size };
    lists.iter().flatten().map(size).reduce(|a, b| a + b)
}

fn fingerprint(lists: &[Option<Stat>; 2]) -> u64 {
    let parts = lists.iter().map(|list| list.as_ref().map_or(0, |list| list.fingerprint().0));
    parts.fold(0, mix).max(1)
}

/// Says what is left out: a directory of the project, which is empty for the project itself, or a list elsewhere.
pub fn left_out_note(path: &str) -> String {
    let limits = format!(
        "at most {MAX_WILDCARDS} patterns with wildcards ({} KB) and {} KB in all are used for one folder, {} MB for the project",
        MAX_WILDCARD_BYTES >> 10,
        MAX_LIST_BYTES >> 10,
        MAX_TOTAL_BYTES >> 20
    );
    let what = match path {
        "" => "the project's ignore files are not used: they are too large".to_owned(),
        list if Path::new(list).is_absolute() => format!("{list} is not used: it is too large"),
        directory => format!("{directory} is skipped: its ignore files are too large"),
    };
    clean::line(&format!("scan: {what}; {limits}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_patterns_with_wildcards_within_count() {
        let list = b"# a*b*c\ntarget/\n*.log\n/build\n*~\na*b\n**/x\nx?\n[ab]\n{a,b}\n!a*\n";
        let cost = Cost::of(list);
        assert_eq!((cost.wildcards, cost.bytes), (6, list.len()));
    }

    #[test]
    fn lists_count_together_with_those_above() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("a/b"));
        fs::create_dir_all(&b).unwrap();
        fs::create_dir_all(dir.path().join("c")).unwrap();
        fs::write(a.join(".gitignore"), "a*b\n".repeat(600)).unwrap();
        fs::write(b.join(".ignore"), "a*b\n".repeat(600)).unwrap();
        let budget = IgnoreBudget::new(dir.path());
        assert!(budget.fits(&a));
        assert!(!budget.fits(&b), "1200 together");
        assert!(!budget.fits(&b.join("below")));
        assert!(budget.fits(&dir.path().join("c")));
    }

    #[test]
    fn a_list_has_a_limit_in_bytes() {
        let dir = tempfile::tempdir().unwrap();
        for (text, fits) in [
            ("name/\n".repeat(MAX_LIST_BYTES / 6), true),
            ("name/\n".repeat(MAX_LIST_BYTES / 6 + 1), false),
            (format!("a*{}\n", "b".repeat(MAX_WILDCARD_BYTES)), false),
        ] {
            fs::write(dir.path().join(".gitignore"), text).unwrap();
            assert_eq!(is_fit(dir.path(), &dir.path().join(".gitignore")), fits);
            assert_eq!(IgnoreBudget::new(dir.path()).fits(dir.path()), fits);
        }
        assert!(is_fit(dir.path(), &dir.path().join("missing")));
    }

    #[test]
    fn all_lists_of_a_project_have_a_limit_together_and_one_over_it_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let list = "name/\n".repeat(MAX_LIST_BYTES / 6);
        let folder = |n: usize| dir.path().join(n.to_string());
        let fitting = MAX_TOTAL_BYTES as usize / list.len();
        for n in 0..fitting + 2 {
            fs::create_dir(folder(n)).unwrap();
            fs::write(folder(n).join(".gitignore"), &list).unwrap();
        }
        let budget = IgnoreBudget::new(dir.path());
        let admitted = Admission::Admitted(list.len() as u64);
        assert!((0..fitting).all(|n| budget.admit(&folder(n)) == admitted));
        for n in [fitting, fitting + 1] {
            assert_eq!(budget.admit(&folder(n)), Admission::Refused(0));
            assert!(!budget.known.lock().unwrap().contains_key(&folder(n)), "it was read");
            assert!(!budget.may_admit(&folder(n), 0));
        }
        assert_eq!(budget.admit(&dir.path().join("without")), Admission::Admitted(0));
        budget.set_spent(0);
        assert!(budget.may_admit(&folder(fitting), 0), "others are gone");
    }

    #[test]
    fn lists_that_do_not_fit_are_read_again_only_if_they_changed() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join(".gitignore");
        fs::write(&list, "a*b\n".repeat(MAX_WILDCARDS + 1)).unwrap();
        let budget = IgnoreBudget::new(dir.path());
        let Admission::Refused(lists) = budget.admit(dir.path()) else { panic!("they fit") };
        assert!(lists != 0 && !budget.may_admit(dir.path(), lists));
        fs::write(&list, "*.log\n").unwrap();
        assert!(budget.may_admit(dir.path(), lists));
    }
}
