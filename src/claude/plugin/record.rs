//! The digests of all installed files, saved in the plugin: they tell an edited plugin from an old one.

use crate::store::file::{self, Privacy, walk};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const NAME: &str = "staged.json";
const MAX_BYTES: u64 = 1 << 20;
const MAX_PROGRAM_BYTES: u64 = 1 << 30;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallRecord {
    version: String,
    /// The digest of each file, by its path with `/`.
    files: BTreeMap<String, String>,
}

impl InstallRecord {
    pub fn of(files: &[(&str, &str)], programs: &[(String, PathBuf)]) -> Result<InstallRecord> {
        let texts = files.iter().map(|(name, text)| Ok(((*name).to_owned(), digest(text.as_bytes()))));
        let programs = programs.iter().map(|(name, path)| Ok((format!("bin/{name}"), digest_of(path)?)));
        let files: Result<BTreeMap<String, String>> = texts.chain(programs).collect();
        Ok(InstallRecord { version: super::VERSION.to_owned(), files: files? })
    }

    pub fn read(folder: &Path) -> Option<InstallRecord> {
        file::read_json(&folder.join(NAME), MAX_BYTES)
    }

    pub fn write(&self, folder: &Path) -> Result<()> {
        let text = format!("{}\n", serde_json::to_string_pretty(self)?);
        file::replace(&folder.join(NAME), text.as_bytes(), Privacy::Shared)
    }

    fn has(&self, name: &str) -> bool {
        name == NAME || self.files.contains_key(name)
    }

    /// Returns the files that were changed, removed or added.
    pub fn edited(&self, folder: &Path) -> Result<Vec<String>> {
        let changed = self.files.iter().filter(|(name, written)| {
            digest_of(&folder.join(name.as_str())).map_or(true, |found| found != **written)
        });
        let mut edited: Vec<String> = changed.map(|(name, _)| name.clone()).collect();
        edited.extend(names_in(folder)?.into_iter().filter(|name| !self.has(name) && !is_of_client(name)));
        Ok(edited)
    }
}

/// Returns whether a file is one of those that Claude Code writes beside a module when it loads it, for its editors.
fn is_of_client(name: &str) -> bool {
    name == "tsconfig.json" || name.starts_with(".claude-plugin/types/")
}

/// Returns every file below a folder, with `/`.
pub fn names_in(folder: &Path) -> Result<Vec<String>> {
    let name = |path: PathBuf| path.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/");
    Ok(walk::files_below(folder)?.into_iter().map(name).collect())
}

fn digest_of(path: &Path) -> Result<String> {
    let bytes = file::read_bounded(path, MAX_PROGRAM_BYTES)?;
    Ok(digest(&bytes.with_context(|| format!("{} is missing", path.display()))?))
}

/// Returns a digest that is the same in every release. Not cryptographic; it works on words because programs are
/// large.
fn digest(bytes: &[u8]) -> String {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mut hash = 0_u64;
    let mut mix = |word: &[u8; 8]| {
        hash = (hash.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    };
    for word in words {
        mix(word);
    }
    mix(&last);
    format!("{hash:016x}-{}", bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_contents_have_different_digests() {
        let texts = ["", "\0", "a", "b", "ab", "12345678", "123456789", "12345678\0", "x2345678"];
        let digests: std::collections::BTreeSet<_> =
            texts.iter().map(|text| digest(text.as_bytes())).collect();
        assert_eq!(digests.len(), texts.len());
        // Saved by one release and compared by the next.
        assert_eq!(digest(b"the same for ever"), "7a0dc9743c63c918-17");
    }
}
