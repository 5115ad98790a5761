//! What to review first: the files that changed most, weakened tests, constraints, and the commits by iteration.

use super::weakened::{self, Weakened};
use super::{ReportInput, words};
use crate::core::text::clean;
use crate::store::project::commits::{Commit, Commits};
use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Debug)]
pub struct ReviewSection {
    /// How many there are, or why that is unknown.
    pub commits: Result<usize, String>,
    /// The one that changed most first.
    pub files: Vec<FileChurn>,
    pub weakened: Weakened,
    /// The constraints whose files were changed, and those that came up meanwhile: how, and a sentence.
    pub constraints: Vec<(&'static str, String)>,
    pub by_iteration: BTreeMap<u64, OfIteration>,
}

/// Everything that the commits did to a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileChurn {
    pub path: String,
    pub added: u64,
    pub removed: u64,
    pub commits: usize,
}

impl FileChurn {
    pub fn lines(&self) -> u64 {
        self.added.saturating_add(self.removed)
    }
}

/// The commits that an iteration brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfIteration {
    /// The beginning of the id, and the subject.
    pub commits: Vec<(String, String)>,
    /// The one that changed most first.
    pub files: Vec<FileChurn>,
}

pub fn of(facts: &ReportInput) -> ReviewSection {
    let commits = facts.commits.as_ref();
    let list = commits.map_or(&[][..], |commits| &commits.list[..]);
    let files = churn(list.iter());
    ReviewSection {
        commits: commits.map(|commits| commits.list.len()).map_err(|why| clean::excerpt(why, 200)),
        constraints: constraints(facts, &files),
        files,
        weakened: commits.map(|commits: &Commits| weakened::of_patch(&commits.patch)).unwrap_or_default(),
        by_iteration: by_iteration(facts, list),
    }
}

fn constraints(facts: &ReportInput, files: &[FileChurn]) -> Vec<(&'static str, String)> {
    let how = |(iteration, found): &(u64, String)| {
        // A finding begins with its place: a folder, a file, or a file and a line.
        let place = found.split(": ").next().unwrap_or_default();
        let file = place.rsplit_once(':').map_or(place, |(file, _)| file);
        let is_in =
            |path: &str| path == place || path == file || (place.ends_with('/') && path.starts_with(place));
        let is_changed = files.iter().any(|file| is_in(&file.path));
        match (is_changed, *iteration > 0) {
            (true, false) => Some("changed"),
            (true, true) => Some("new, changed"),
            (false, true) => Some("new"),
            (false, false) => None,
        }
    };
    let found = facts.timeline.found.iter();
    found.filter_map(|found| Some((how(found)?, clean::excerpt(&found.1, 300)))).collect()
}

fn churn<'a>(commits: impl Iterator<Item = &'a Commit>) -> Vec<FileChurn> {
    let mut files: HashMap<&str, FileChurn> = HashMap::new();
    for changed in commits.flat_map(|commit| &commit.files) {
        let file = files.entry(&changed.path).or_default();
        file.added = file.added.saturating_add(changed.added);
        file.removed = file.removed.saturating_add(changed.removed);
        file.commits += 1;
    }
    let named = files.into_iter().map(|(path, file)| FileChurn { path: path.to_owned(), ..file });
    let mut files: Vec<FileChurn> = named.collect();
    files.sort_by(|a, b| b.lines().cmp(&a.lines()).then_with(|| a.path.cmp(&b.path)));
    files
}

/// Gives each commit to the iteration at whose end HEAD first named it or a later one.
fn by_iteration(facts: &ReportInput, list: &[Commit]) -> BTreeMap<u64, OfIteration> {
    let places: HashMap<&str, usize> =
        list.iter().enumerate().map(|(at, commit)| (commit.id.as_str(), at)).collect();
    let mut found = BTreeMap::new();
    let mut next = 0;
    for (number, iteration) in &facts.timeline.iterations {
        let place = iteration.facts.head.as_deref().and_then(|head| places.get(head));
        let Some(end) = place.map(|at| at + 1).filter(|end| *end > next) else { continue };
        let own = &list[next..end];
        let name = |commit: &Commit| (words::short_commit(&commit.id), clean::excerpt(&commit.subject, 200));
        found.insert(
            *number,
            OfIteration { commits: own.iter().map(name).collect(), files: churn(own.iter()) },
        );
        next = end;
    }
    found
}
