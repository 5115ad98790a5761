//! Many generated files, told as the folders they are in.

use super::check::{self, GENERATED};
use crate::core::finding::Finding;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Files of one kind in one folder are named by the folder from here on.
const MANY: usize = 5;
/// A folder is named in place of so many things in it; for fewer they are named themselves.
const SEVERAL: usize = 3;

#[derive(Clone, Copy, Default)]
struct Count {
    /// In the folder itself.
    here: usize,
    /// In it and all below.
    below: usize,
    /// Things right in it that are generated or hold what is.
    things: usize,
    files: usize,
}

/// Replaces generated files by the highest folder that holds little else, or by their own where there are
/// many. `sizes` are the numbers of files in each folder itself.
pub fn folders(findings: Vec<Finding>, sizes: &HashMap<String, usize>) -> Vec<Finding> {
    let (generated, mut rest): (Vec<_>, Vec<_>) = findings.into_iter().partition(|f| f.category == GENERATED);
    if generated.len() < MANY {
        rest.extend(generated);
        return rest;
    }
    let counts = count(&generated, sizes);
    let mut named = BTreeMap::<String, usize>::new();
    for finding in &generated {
        match name(&finding.file, &counts) {
            Some(folder) => *named.entry(folder.to_owned()).or_default() += 1,
            None => rest.push(finding.clone()),
        }
    }
    rest.extend(named.into_iter().map(|(folder, count)| check::generated_folder(&folder, count)));
    rest
}

fn count<'a>(generated: &'a [Finding], sizes: &'a HashMap<String, usize>) -> HashMap<&'a str, Count> {
    let (mut counts, mut things) = (HashMap::<&str, Count>::new(), HashSet::new());
    for finding in generated {
        let parent = above(&finding.file).next().unwrap_or_default();
        counts.entry(parent).or_default().here += 1;
        let mut thing = finding.file.as_str();
        for folder in above(&finding.file) {
            let count = counts.entry(folder).or_default();
            count.below += 1;
            count.things += usize::from(things.insert(std::mem::replace(&mut thing, folder)));
        }
    }
    for (path, files) in sizes {
        for folder in std::iter::once(path.as_str()).chain(above(path)) {
            if let Some(count) = counts.get_mut(folder) {
                count.files += files;
            }
        }
    }
    counts
}

/// The folders a path is in, the nearest first, without the root.
fn above(path: &str) -> impl Iterator<Item = &str> {
    let up = |path: &str| path.rfind('/');
    std::iter::successors(up(path).map(|at| &path[..at]), move |path| Some(&path[..up(path)?]))
}

fn name<'a>(file: &'a str, counts: &HashMap<&str, Count>) -> Option<&'a str> {
    let of = |folder: &str| counts.get(folder).copied().unwrap_or_default();
    let mostly = |folder: &&str| {
        let Count { below, things, files, .. } = of(folder);
        // Below the top, generated files stand beside what they are made of.
        let least = if folder.contains('/') { files.div_ceil(3) } else { files - files / 4 };
        below >= MANY && things >= SEVERAL && below >= least
    };
    let highest = above(file).filter(mostly).last();
    highest.or_else(|| above(file).next().filter(|folder| of(folder).here >= MANY))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(files: &[(&str, usize)], sizes: &[(&str, usize)]) -> Vec<String> {
        let files = files.iter().flat_map(|(folder, count)| {
            (0..*count).map(move |n| if folder.is_empty() { format!("{n}") } else { format!("{folder}/{n}") })
        });
        let finding = |file| Finding { category: GENERATED.into(), file, ..Finding::default() };
        let sizes = sizes.iter().map(|(folder, size)| ((*folder).to_owned(), *size)).collect();
        let mut told: Vec<_> =
            folders(files.map(finding).collect(), &sizes).into_iter().map(|f| f.file).collect();
        told.sort();
        told
    }

    #[test]
    fn the_highest_folder_of_little_else_is_named() {
        assert_eq!(told(&[("a", 2)], &[("a", 2)]), ["a/0", "a/1"]);
        assert_eq!(told(&[("a", 6)], &[("", 1), ("a", 6)]), ["a"]);
        assert_eq!(told(&[("a", 6)], &[("a", 100)]), ["a"], "many in one folder");
        assert_eq!(told(&[("g/a", 2), ("g/b", 2), ("g/c", 2)], &[("g/a", 2), ("g/b", 2), ("g/c", 2)]), ["g"]);
        assert_eq!(
            told(&[("s/g", 9), ("s", 1)], &[("s", 1), ("s/g", 9)]),
            ["s/0", "s/g"],
            "no wider than needed"
        );
        let mixed = told(&[("s/g", 9), ("s", 1)], &[("s", 90), ("s/g", 9)]);
        assert_eq!(mixed, ["s/0", "s/g"]);
        let beside = told(
            &[("s/g/a", 3), ("s/g/b", 3), ("s/g", 1)],
            &[("s", 9), ("s/g/a", 8), ("s/g/b", 8), ("s/g", 1)],
        );
        assert_eq!(beside, ["s/g"], "beside their sources");
        assert_eq!(told(&[("", 6)], &[("", 6)]).len(), 6, "the root is no folder to keep out of");
    }
}
