//! The fuzzer's seeds, replayed without it: what it once found, and what it starts from, holds on stable.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot continue must say why"
)]

#[path = "../fuzz/bodies/mod.rs"]
mod bodies;

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

/// The names in a folder, without what follows the first dot.
fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(fuzz().join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
    entries.map(|name| name.to_str().unwrap().split('.').next().unwrap().to_owned()).collect()
}

#[test]
fn every_seed_holds() {
    let mut broken = Vec::new();
    for (target, check) in bodies::TARGETS {
        for entry in fs::read_dir(fuzz().join("seeds").join(target)).unwrap() {
            let path = entry.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            if catch_unwind(|| check(&bytes)).is_err() {
                broken.push(format!("{target} {}", path.file_name().unwrap().display()));
            }
        }
    }
    assert!(broken.is_empty(), "these fail, for the reasons above: {broken:#?}");
}

/// A target that is only half added would never run, and nothing would show it.
#[test]
fn every_target_has_a_program_and_seeds() {
    let targets: BTreeSet<_> = bodies::TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names("fuzz_targets"), targets);
    assert_eq!(names("seeds"), targets);
    for target in &targets {
        assert!(!names(&format!("seeds/{target}")).is_empty(), "{target} has no seeds");
    }
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    for target in &targets {
        assert!(manifest.contains(&format!("name = \"{target}\"")), "{target} is not in fuzz/Cargo.toml");
    }
}
