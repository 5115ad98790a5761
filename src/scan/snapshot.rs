//! The project's files as the last scan saw them, kept in the user's data directory.
//!
//! It only saves time: where it is missing or damaged, the whole project is read again. It is JSON, because parsing
//! that takes some 7 ms of the 70 ms of a warm scan of 50,000 files.

use super::fingerprint::{Fingerprint, mix};
use crate::core::circuit::progress::TreeState;
use crate::core::guidance::finding::Finding;
use crate::core::record::is_default;
use crate::core::time::Stamp;
use crate::store::file;
use crate::store::project::{Project, stable_hash as hash};
use crate::store::world::{self, World};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

const MAX_SNAPSHOT_BYTES: u64 = 1 << 30;

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// A hash of the rules that the findings come from.
    pub rules: u64,
    /// A hash of the ignore files outside the project that apply to it.
    pub outside_ignores: u64,
    /// Stays the same from one scan to the next, until everything is read anew.
    pub id: u64,
    /// When every file had last been compared, by one scan or by several.
    pub completed_at: Option<Stamp>,
    /// The directory at which the next scan begins: the first one for which the last scan had no time.
    pub next: String,
    /// Directories that still have to be listed, with everything below them.
    pub pending: BTreeSet<String>,
    /// Directories that are not listed because their ignore files are over the budget, each with the fingerprint that
    /// these had; 0 where they were not read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, u64>,
    /// By their path relative to the root, which is empty for the root itself.
    pub directories: BTreeMap<String, Directory>,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Directory {
    /// Not known where the directory changed so recently that another change could leave the same fingerprint.
    pub fingerprint: Fingerprint,
    /// A hash of all names in it, ignored ones included; 0 where it is not known.
    pub names: u64,
    /// How many bytes its ignore files have.
    #[serde(default, skip_serializing_if = "is_default")]
    pub list_bytes: u64,
    pub files: Vec<File>,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct File {
    pub name: String,
    pub fingerprint: Fingerprint,
    /// A hash of its content, where that was compared; otherwise 0.
    #[serde(default, skip_serializing_if = "is_default")]
    pub content: u64,
    /// It changed so recently that another change could leave the same fingerprint: its content is compared too.
    #[serde(default, skip_serializing_if = "is_default")]
    pub recent: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// It is no longer there.
    #[serde(skip)]
    pub gone: bool,
}

impl Snapshot {
    /// Returns a snapshot of which everything is still to be listed and read.
    pub fn new(rules: u64) -> Snapshot {
        let mut snapshot = Snapshot { rules, id: (world::unique() as u64).max(1), ..Snapshot::default() };
        snapshot.list_everything();
        snapshot
    }

    pub fn list_everything(&mut self) {
        self.pending = BTreeSet::from([String::new()]);
    }

    pub fn load(world: &World, project: &Project) -> Option<Snapshot> {
        parse(&file::read_bounded(&path(world, project)?, MAX_SNAPSHOT_BYTES).ok()??)
    }

    /// Saves it; a failure only means that the next scan takes longer.
    pub fn save(&self, world: &World, project: &Project) {
        let Some(path) = path(world, project) else { return };
        if path.parent().is_some_and(|dir| file::create_dir(dir).is_ok()) {
            let _ = file::replace_unsynced(&path, &self.bytes());
        }
    }

    fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.directories.values().flat_map(|directory| &directory.files)
    }

    /// Identifies this state of the project's files.
    pub fn state(&self) -> TreeState {
        let mut digest = 0_u64;
        for (path, directory) in &self.directories {
            let path = hash(path.as_bytes());
            for file in &directory.files {
                let parts = [hash(file.name.as_bytes()), file.fingerprint.0, file.content];
                // A sum does not depend on the order in which a directory lists its files.
                digest = digest.wrapping_add(parts.into_iter().fold(path, mix));
            }
        }
        TreeState { snapshot: self.id, digest }
    }
}

impl Directory {
    /// Takes over what is known about files that are still there.
    pub fn adopt(&mut self, earlier: Directory) {
        let mut earlier: BTreeMap<_, _> =
            earlier.files.into_iter().map(|file| (file.name.clone(), file)).collect();
        for file in &mut self.files {
            if let Some(known) = earlier.remove(&file.name) {
                *file = known;
            }
        }
    }

    /// Has the directory listed again by the next scan.
    pub fn forget_listing(&mut self) {
        (self.fingerprint, self.names) = Default::default();
    }

    /// Returns the names of the files in it that say which files git ignores.
    pub fn ignore_files(&self) -> BTreeSet<&str> {
        self.files.iter().map(|file| file.name.as_str()).filter(|name| is_ignore_file(name)).collect()
    }
}

pub fn is_ignore_file(name: &str) -> bool {
    matches!(name, ".gitignore" | ".ignore")
}

/// Returns the path of a name in a directory.
pub fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

fn path(world: &World, project: &Project) -> Option<PathBuf> {
    Some(world.data_dir().ok()?.join("scan").join(format!("{}.json", project.key())))
}

fn parse(bytes: &[u8]) -> Option<Snapshot> {
    serde_json::from_slice(bytes).ok()
}

/// Parses a snapshot and writes it again, for the fuzzer; nothing where it is damaged.
#[doc(hidden)]
pub fn rewrite(bytes: &[u8]) -> Option<Vec<u8>> {
    parse(bytes).map(|snapshot| snapshot.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::guidance::finding::Severity;

    fn sample() -> Snapshot {
        let finding = Finding {
            id: "x-1".into(),
            severity: Severity::High,
            file: "a/é\n".into(),
            line: Some(300),
            ..Finding::default()
        };
        let file = |name: &str, findings| File {
            name: name.into(),
            fingerprint: Fingerprint(u64::MAX),
            findings,
            ..File::default()
        };
        let recent = File { content: 9, recent: true, ..file("r", Vec::new()) };
        let files = vec![file("é\n", vec![finding]), recent];
        let directory = Directory { fingerprint: Fingerprint(7), names: 8, list_bytes: 9, files };
        let directories = [(String::new(), Directory::default()), ("a".into(), directory)];
        let snapshot = Snapshot { directories: directories.into(), next: "a".into(), ..Snapshot::new(1) };
        Snapshot { completed_at: Some(Stamp(5)), ..snapshot }
    }

    #[test]
    fn a_snapshot_is_read_as_it_was_written() {
        let snapshot = sample();
        assert_eq!(parse(&snapshot.bytes()), Some(snapshot));
    }

    #[test]
    fn a_damaged_snapshot_is_none() {
        let bytes = sample().bytes();
        for length in 0..bytes.len() {
            assert!(parse(&bytes[..length]).is_none(), "{length}");
        }
        assert!(parse(&[bytes.as_slice(), b"x"].concat()).is_none());
    }

    #[test]
    fn every_file_is_in_the_state_and_their_order_is_not() {
        let (snapshot, mut other) = (sample(), sample());
        other.id = snapshot.id;
        other.directories.get_mut("a").unwrap().files.reverse();
        assert_eq!(snapshot.state(), other.state());
        let changes: [&dyn Fn(&mut File); 3] =
            [&|file| file.name.push('x'), &|file| file.content += 1, &|file| file.fingerprint.0 -= 1];
        for change in changes {
            let mut other = sample();
            other.id = snapshot.id;
            change(&mut other.directories.get_mut("a").unwrap().files[1]);
            assert_eq!(other.state().changed_since(snapshot.state()), Some(true));
        }
        assert_eq!(sample().state().changed_since(snapshot.state()), None, "another snapshot");
    }
}
