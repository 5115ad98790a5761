//! Reports many generated files as the directories they are in.

use super::check::{GENERATED, finding};
use crate::core::guidance::finding::{Finding, Severity};
use std::collections::{BTreeMap, HashMap, HashSet};

/// From so many generated files on, a directory is reported in their place.
const MIN_FILES: usize = 5;
/// A directory is reported only where so many of its entries are generated or hold generated files.
const MIN_ENTRIES: usize = 3;

#[derive(Clone, Copy, Default)]
struct Count {
    /// Generated files in the directory itself.
    here: usize,
    /// Generated files in it and everywhere below.
    below: usize,
    /// Its entries that are generated or hold what is.
    entries: usize,
    /// All files in it and below.
    files: usize,
}

/// Replaces generated files by the highest directory that holds little else, or by their own directory where that has
/// many of them. `sizes` are the numbers of files in each directory itself.
pub fn group<'a>(findings: Vec<Finding>, sizes: impl Iterator<Item = (&'a str, usize)>) -> Vec<Finding> {
    let (generated, mut rest): (Vec<_>, Vec<_>) = findings.into_iter().partition(|f| f.category == GENERATED);
    if generated.len() < MIN_FILES {
        rest.extend(generated);
        return rest;
    }
    let counts = count(&generated, sizes);
    let mut directories = BTreeMap::<&str, usize>::new();
    for finding in &generated {
        match directory_for(&finding.file, &counts) {
            Some(directory) => *directories.entry(directory).or_default() += 1,
            None => rest.push(finding.clone()),
        }
    }
    for (directory, count) in directories {
        let what = format!("{count} generated files in this folder, each marked at its top");
        let advice = "Do not edit them: change their source or their generator";
        rest.push(finding(GENERATED, Severity::High, directory, None, "", what, advice));
    }
    rest
}

fn count<'f, 's>(
    generated: &'f [Finding],
    sizes: impl Iterator<Item = (&'s str, usize)>,
) -> HashMap<&'f str, Count> {
    let (mut counts, mut entries) = (HashMap::<&str, Count>::new(), HashSet::new());
    for finding in generated {
        let parent = above(&finding.file).next().unwrap_or_default();
        counts.entry(parent).or_default().here += 1;
        let mut entry = finding.file.as_str();
        for directory in above(&finding.file) {
            let count = counts.entry(directory).or_default();
            count.below += 1;
            count.entries += usize::from(entries.insert(std::mem::replace(&mut entry, directory)));
        }
    }
    for (path, files) in sizes {
        for directory in std::iter::once(path).chain(above(path)) {
            if let Some(count) = counts.get_mut(directory) {
                count.files += files;
            }
        }
    }
    counts
}

/// Returns the directories a path is in, the nearest first, without the root.
fn above(path: &str) -> impl Iterator<Item = &str> {
    let parent = |path: &str| path.rfind('/');
    std::iter::successors(parent(path).map(|at| &path[..at]), move |path| Some(&path[..parent(path)?]))
}

fn directory_for<'a>(file: &'a str, counts: &HashMap<&str, Count>) -> Option<&'a str> {
    let of = |directory: &str| counts.get(directory).copied().unwrap_or_default();
    let is_mostly_generated = |directory: &&str| {
        let Count { below, entries, files, .. } = of(directory);
        // Below the top, generated files are often beside their sources.
        let min = if directory.contains('/') { files.div_ceil(3) } else { files - files / 4 };
        below >= MIN_FILES && entries >= MIN_ENTRIES && below >= min
    };
    let highest = above(file).filter(is_mostly_generated).last();
    highest.or_else(|| above(file).next().filter(|directory| of(directory).here >= MIN_FILES))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(files: &[(&str, usize)], sizes: &[(&str, usize)]) -> Vec<String> {
        let files = files.iter().flat_map(|(dir, count)| {
            (0..*count).map(move |n| if dir.is_empty() { format!("{n}") } else { format!("{dir}/{n}") })
        });
        let finding = |file| Finding { category: GENERATED.into(), file, ..Finding::default() };
        let grouped = group(files.map(finding).collect(), sizes.iter().copied());
        let mut reported: Vec<_> = grouped.into_iter().map(|finding| finding.file).collect();
        reported.sort();
        reported
    }

    #[test]
    fn the_highest_directory_with_little_else_is_reported() {
        assert_eq!(reported(&[("a", 2)], &[("a", 2)]), ["a/0", "a/1"]);
        assert_eq!(reported(&[("a", 6)], &[("", 1), ("a", 6)]), ["a"]);
        assert_eq!(reported(&[("a", 6)], &[("a", 100)]), ["a"], "many in one directory");
        assert_eq!(
            reported(&[("g/a", 2), ("g/b", 2), ("g/c", 2)], &[("g/a", 2), ("g/b", 2), ("g/c", 2)]),
            ["g"]
        );
        assert_eq!(
            reported(&[("s/g", 9), ("s", 1)], &[("s", 1), ("s/g", 9)]),
            ["s/0", "s/g"],
            "no wider than needed"
        );
        let mixed = reported(&[("s/g", 9), ("s", 1)], &[("s", 90), ("s/g", 9)]);
        assert_eq!(mixed, ["s/0", "s/g"]);
        let beside = reported(
            &[("s/g/a", 3), ("s/g/b", 3), ("s/g", 1)],
            &[("s", 9), ("s/g/a", 8), ("s/g/b", 8), ("s/g", 1)],
        );
        assert_eq!(beside, ["s/g"], "beside their sources");
        assert_eq!(reported(&[("", 6)], &[("", 6)]).len(), 6, "the root is never reported");
    }
}
