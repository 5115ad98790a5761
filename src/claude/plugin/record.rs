//! What was laid out, written down inside the plugin: by it an edited plugin is told from an old one.

use crate::store::file::{self, Privacy};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub const MANIFEST: &str = ".claude-plugin/plugin.json";
const NAME: &str = "staged.json";
const LARGEST: u64 = 1 << 20;
const LARGEST_PROGRAM: u64 = 1 << 30;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    version: String,
    /// Each file by its path, with `/`, and a digest of what was written.
    files: BTreeMap<String, String>,
}

impl Record {
    pub fn of(files: &[(&str, &str)], programs: &[(String, PathBuf)]) -> Result<Record> {
        let texts = files.iter().map(|(name, text)| Ok(((*name).to_owned(), digest(text.as_bytes()))));
        let programs = programs.iter().map(|(name, path)| Ok((format!("bin/{name}"), digest_of(path)?)));
        let files: Result<BTreeMap<String, String>> = texts.chain(programs).collect();
        Ok(Record { version: super::VERSION.to_owned(), files: files? })
    }

    pub fn read(folder: &Path) -> Option<Record> {
        serde_json::from_slice(&file::read_bounded(&folder.join(NAME), LARGEST).ok()??).ok()
    }

    pub fn write(&self, folder: &Path) -> Result<()> {
        let text = format!("{}\n", serde_json::to_string_pretty(self)?);
        file::replace(&folder.join(NAME), text.as_bytes(), Privacy::Shared)
    }

    pub fn has(&self, name: &str) -> bool {
        name == NAME || self.files.contains_key(name)
    }

    /// Files that are not as they were written, gone, or not ours.
    pub fn edited(&self, folder: &Path) -> Result<Vec<String>> {
        let changed = self.files.iter().filter(|(name, written)| {
            digest_of(&folder.join(name.as_str())).map_or(true, |found| found != **written)
        });
        let mut edited: Vec<String> = changed.map(|(name, _)| name.clone()).collect();
        edited.extend(names_in(folder)?.into_iter().filter(|name| !self.has(name)));
        Ok(edited)
    }
}

/// The version of the plugin in a folder, where it is one of ours.
pub fn version_of(folder: &Path) -> Result<Option<String>> {
    let manifest = file::read_bounded(&folder.join(MANIFEST), LARGEST)?.unwrap_or_default();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap_or_default();
    let version = manifest["version"].as_str().unwrap_or("of an unknown version");
    Ok((manifest["name"] == "ralph").then(|| version.to_owned()))
}

/// Every file below a folder, with `/`; links are files here and are not followed.
pub fn names_in(folder: &Path) -> Result<Vec<String>> {
    let (mut folders, mut names) = (vec![folder.to_owned()], Vec::new());
    while let Some(dir) = folders.pop() {
        let entries = std::fs::read_dir(&dir);
        let entries = entries.with_context(|| format!("could not read the folder {}", dir.display()))?;
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            } else if let Ok(name) = entry.path().strip_prefix(folder) {
                let parts: Vec<_> =
                    name.components().map(|part| part.as_os_str().to_string_lossy()).collect();
                names.push(parts.join("/"));
            }
        }
    }
    names.sort();
    Ok(names)
}

fn digest_of(path: &Path) -> Result<String> {
    let bytes = file::read_bounded(path, LARGEST_PROGRAM)?;
    Ok(digest(&bytes.with_context(|| format!("{} is gone", path.display()))?))
}

/// Tells contents apart, and is the same in every release; it is no proof against forgery. By words, not bytes:
/// programs are large.
fn digest(bytes: &[u8]) -> String {
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = |chunk: &[u8]| chunk.iter().rev().fold(0, |word, byte| (word << 8) | u64::from(*byte));
    let chunks = bytes.chunks_exact(8);
    let rest = word(chunks.remainder());
    let hash = chunks
        .fold(0, |hash, chunk| mix(hash, chunk.try_into().map_or_else(|_| word(chunk), u64::from_le_bytes)));
    format!("{:016x}-{}", mix(hash, rest), bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_tells_contents_apart() {
        let texts = ["", "\0", "a", "b", "ab", "12345678", "123456789", "12345678\0", "x2345678"];
        let digests: std::collections::BTreeSet<_> =
            texts.iter().map(|text| digest(text.as_bytes())).collect();
        assert_eq!(digests.len(), texts.len());
        // Written to disk by one release and compared by the next.
        assert_eq!(digest(b"the same for ever"), "7a0dc9743c63c918-17");
    }
}
