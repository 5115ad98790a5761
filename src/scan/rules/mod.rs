//! The rules: the built-in ones, and the project's own from its settings.

pub mod check;
mod dotenv;
mod file_kind;
mod generated;
pub mod grouping;
mod own;
mod paths;
pub mod surroundings;

use crate::core::settings::Resolved;
use crate::store::project::stable_hash as hash;
pub use own::OwnRule;
use std::path::Path;

pub struct Rules {
    /// The user's home, with a slash at its end.
    pub home: Option<String>,
    pub own: Vec<OwnRule>,
    pub exclude: Vec<String>,
    pub warnings: Vec<String>,
    /// Changes whenever the same file could have other findings.
    pub hash: u64,
}

/// The sources that decide what is found in a file, and how the snapshot keeps it.
const SOURCES: [(&str, &[u8]); 10] = [
    ("check.rs", include_bytes!("check.rs")),
    ("dotenv.rs", include_bytes!("dotenv.rs")),
    ("file_kind.rs", include_bytes!("file_kind.rs")),
    ("generated.rs", include_bytes!("generated.rs")),
    ("grouping.rs", include_bytes!("grouping.rs")),
    ("mod.rs", include_bytes!("mod.rs")),
    ("own.rs", include_bytes!("own.rs")),
    ("paths.rs", include_bytes!("paths.rs")),
    ("surroundings.rs", include_bytes!("surroundings.rs")),
    ("../snapshot.rs", include_bytes!("../snapshot.rs")),
];

/// Differs in every build with other rules, so that a new rule also applies to files that did not change.
const BUILT_IN: u64 = checksum();

/// FNV-1a, computed by the compiler.
const fn checksum() -> u64 {
    let (mut hash, mut file) = (0xcbf2_9ce4_8422_2325_u64, 0);
    while file < SOURCES.len() {
        let (bytes, mut at) = (SOURCES[file].1, 0);
        while at < bytes.len() {
            hash = (hash ^ bytes[at] as u64).wrapping_mul(0x100_0000_01b3);
            at += 1;
        }
        file += 1;
    }
    hash
}

impl Rules {
    pub fn new(home: Option<&Path>, resolved: &Resolved) -> Self {
        let home = home.and_then(Path::to_str).map(|home| format!("{}/", home.trim_end_matches(['/', '\\'])));
        let home = home.filter(|home| home.len() > 2);
        let (own, mut warnings) = own::rules(resolved.list("scan.rules"));
        let (exclude, too_many) = own::exclude(resolved.list("scan.exclude"));
        warnings.extend(too_many);
        let given = format!("{BUILT_IN} {home:?} {:?} {:?}", resolved.list("scan.rules"), exclude);
        Rules { home, own, exclude, warnings, hash: hash(given.as_bytes()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_in_the_checksum() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/scan/rules");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(SOURCES.iter().any(|(source, _)| *source == name), "add {name} to SOURCES");
        }
    }
}
