//! What the ignore files that apply to one directory may cost together.
//!
//! Patterns with wildcards are compiled and matched together, and their memory grows with the square of their
//! number: a list of 128 KB once asked for 28 GB. So lists over the budget are not used, and what is below them is
//! left out of the scan and named.

use crate::core::text::clean;
use crate::store::file;
use crate::store::project::ignores;
use std::collections::HashMap;
use std::ops::Add;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

pub const MAX_LIST_BYTES: usize = 256 << 10;
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
}

impl IgnoreBudget {
    pub fn new(root: &Path) -> IgnoreBudget {
        IgnoreBudget { root: root.to_owned(), known: Mutex::default() }
    }

    /// Returns whether the ignore files of this directory and of all above it fit together.
    pub fn allows(&self, directory: &Path) -> bool {
        self.total(directory).is_some()
    }

    fn total(&self, directory: &Path) -> Option<Cost> {
        if let Some(known) = self.known.lock().ok()?.get(directory) {
            return *known;
        }
        let above = directory.parent().map_or(Some(Cost::default()), |above| self.total(above));
        let total = above.and_then(|above| {
            let [git, other] =
                [".gitignore", ".ignore"].map(|name| Cost::of_file(&self.root, &directory.join(name)));
            Some(above + git? + other?).filter(|total| total.fits())
        });
        self.known.lock().ok()?.insert(directory.to_owned(), total);
        total
    }
}

/// Says what is left out: a directory of the project, which is empty for the project itself, or a list elsewhere.
pub fn told(path: &str) -> String {
    let limits = format!(
        "at most {MAX_WILDCARDS} patterns with wildcards ({} KB) and {} KB in all are used for one directory",
        MAX_WILDCARD_BYTES >> 10,
        MAX_LIST_BYTES >> 10
    );
    let what = match path {
        "" => "the project's ignore files are not used: they are too large".to_owned(),
        list if Path::new(list).is_absolute() => format!("{list} is not used: it is too large"),
        directory => format!("{directory} is left out: its ignore files are too large"),
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
        assert!(budget.allows(&a));
        assert!(!budget.allows(&b), "1200 together");
        assert!(!budget.allows(&b.join("below")));
        assert!(budget.allows(&dir.path().join("c")));
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
            assert_eq!(IgnoreBudget::new(dir.path()).allows(dir.path()), fits);
        }
        assert!(is_fit(dir.path(), &dir.path().join("missing")));
    }
}
