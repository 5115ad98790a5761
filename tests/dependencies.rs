//! What we depend on: only what is used, in one version, from the registry, under a licence that `deny.toml` allows.
//!
//! `cargo deny` says more where it is installed (`.ci/run`); this needs nothing but cargo and what is downloaded.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot continue must say why"
)]

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// Every package that this platform needs, tests included.
fn packages() -> Vec<Value> {
    let rustc = Command::new("rustc").arg("-vV").output().expect("rustc");
    let version = String::from_utf8(rustc.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("a platform");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--offline", "--locked", "--format-version", "1", "--filter-platform", host]);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().clone();
    packages.into_iter().filter(|package| package["name"] != "ralph").collect()
}

/// The names in quotes of a list in `deny.toml`.
fn allowed() -> Vec<String> {
    let text = read("deny.toml");
    let list = text.split_once("\nallow = [").and_then(|(_, rest)| rest.split_once(']')).unwrap().0;
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns whether an expression of licences can be met with those that are allowed.
fn is_met(expression: &str, allowed: &[String]) -> bool {
    let expression = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = expression.split_whitespace().collect();
    let (met, rest) = either(&words, allowed);
    assert!(rest.is_empty(), "cannot be read: {expression}");
    met
}

fn either<'a, 'w>(words: &'w [&'a str], allowed: &[String]) -> (bool, &'w [&'a str]) {
    let (mut met, mut rest) = both(words, allowed);
    while let Some(["OR", after @ ..]) = rest.get(..) {
        let (other, after) = both(after, allowed);
        (met, rest) = (met || other, after);
    }
    (met, rest)
}

fn both<'a, 'w>(words: &'w [&'a str], allowed: &[String]) -> (bool, &'w [&'a str]) {
    let (mut met, mut rest) = one(words, allowed);
    while let Some(["AND", after @ ..]) = rest.get(..) {
        let (other, after) = one(after, allowed);
        (met, rest) = (met && other, after);
    }
    (met, rest)
}

fn one<'a, 'w>(words: &'w [&'a str], allowed: &[String]) -> (bool, &'w [&'a str]) {
    match words {
        ["(", within @ ..] => {
            let (met, rest) = either(within, allowed);
            (met, rest.strip_prefix(&[")"]).expect("a closing bracket"))
        }
        // An exception makes a licence another one, which the list does not name.
        [_, "WITH", _, rest @ ..] => (false, rest),
        [name, rest @ ..] => (allowed.iter().any(|other| other == name), rest),
        [] => panic!("a licence is missing"),
    }
}

#[test]
fn every_licence_is_allowed() {
    let allowed = allowed();
    assert!(allowed.len() > 2, "{allowed:?}");
    let is_allowed =
        |package: &&Value| package["license"].as_str().is_some_and(|text| is_met(text, &allowed));
    let packages = packages();
    assert!(packages.len() > 30, "the packages were not found");
    let others: Vec<_> = packages.iter().filter(|package| !is_allowed(package)).collect();
    let named: Vec<_> = others.iter().map(|package| (&package["name"], &package["license"])).collect();
    assert!(named.is_empty(), "not in the list of deny.toml: {named:?}");
}

#[test]
fn licences_are_read_as_they_are_written() {
    let allowed = ["MIT".to_owned(), "Zlib".to_owned()];
    for (expression, met) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("MIT/Apache-2.0", true),
        ("Apache-2.0 OR (MIT AND Zlib)", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", false),
        ("MIT WITH LLVM-exception", false),
        ("MIT WITH LLVM-exception OR MIT", true),
    ] {
        assert_eq!(is_met(expression, &allowed), met, "{expression}");
    }
}

#[test]
fn a_dependency_comes_once_and_from_the_registry() {
    let mut versions = BTreeMap::<String, Vec<String>>::new();
    for package in packages() {
        assert_eq!(package["source"], REGISTRY, "{}", package["name"]);
        let text = |name: &str| package[name].as_str().unwrap().to_owned();
        versions.entry(text("name")).or_default().push(text("version"));
    }
    // `ring`, which TLS needs, has an older one of its own.
    versions.retain(|name, versions| versions.len() > 1 && name != "getrandom");
    assert!(versions.is_empty(), "in several versions, each of which is built: {versions:?}");
}

/// What only the fuzzer needs. Its packages may not have been downloaded, so their licences are repeated here; the one of
/// LLVM's fuzzer, which is in no program of ours, is met by `NCSA`.
const ONLY_FOR_FUZZING: [(&str, &str); 6] = [
    ("arbitrary", "MIT OR Apache-2.0"),
    ("cc", "MIT OR Apache-2.0"),
    ("find-msvc-tools", "MIT OR Apache-2.0"),
    ("jobserver", "MIT OR Apache-2.0"),
    ("libfuzzer-sys", "(MIT OR Apache-2.0) AND NCSA"),
    ("shlex", "MIT OR Apache-2.0"),
];

/// The versions and sources of a lock file by the names of their packages, without our own.
fn locked(file: &str) -> BTreeMap<String, Vec<(String, String)>> {
    let mut found = BTreeMap::<String, Vec<_>>::new();
    for block in read(file).split("[[package]]").skip(1) {
        let field = |name: &str| {
            let line = block.lines().find_map(|line| line.strip_prefix(&format!("{name} = ")));
            line.unwrap_or_default().trim_matches('"').to_owned()
        };
        if !["ralph", "ralph-fuzz"].contains(&field("name").as_str()) {
            found.entry(field("name")).or_default().push((field("version"), field("source")));
        }
    }
    assert!(found.len() > 30, "{file} was not read");
    found
}

#[test]
fn what_fuzzes_is_the_same_as_what_runs_and_little_else() {
    let (ours, fuzz) = (locked("Cargo.lock"), locked("fuzz/Cargo.lock"));
    let allowed = [allowed(), vec!["NCSA".to_owned()]].concat();
    for (name, packages) in &fuzz {
        assert!(packages.iter().all(|(_, source)| source == REGISTRY), "{name} is from {packages:?}");
        let Some(same) = ours.get(name) else {
            let known = ONLY_FOR_FUZZING.iter().find(|(known, _)| known == name);
            let (_, licence) =
                known.unwrap_or_else(|| panic!("{name} is new in fuzz/Cargo.lock: add its licence here"));
            assert!(is_met(licence, &allowed), "{name}: {licence}");
            assert_eq!(packages.len(), 1, "{name} comes in several versions");
            continue;
        };
        assert!(
            packages.iter().all(|package| same.contains(package)),
            "{name}: {packages:?} is not {same:?}"
        );
    }
    for (name, licence) in ONLY_FOR_FUZZING {
        assert!(fuzz.contains_key(name), "{name} ({licence}) is no longer needed");
    }
}

/// The dependencies of a manifest by the kind of their section: `dependencies` or `dev-dependencies`.
fn dependencies(manifest: &str, kind: &str) -> Vec<String> {
    let (mut found, mut within) = (Vec::new(), false);
    for line in read(manifest).lines() {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']').rsplit('.').next().unwrap_or_default();
            within = section == kind;
        } else if within && let Some((name, _)) = line.split_once(" = ") {
            found.push(name.to_owned());
        }
    }
    assert!(!found.is_empty(), "{kind} were not found");
    found
}

/// The text of all sources below a folder; without their tests where only the program counts.
fn text_below(folder: &str, with_tests: bool) -> String {
    let mut folders: Vec<PathBuf> = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("node_modules") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let source = fs::read_to_string(&path).unwrap();
                let program = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
                text.push_str(if with_tests { &source } else { program });
            }
        }
    }
    text
}

#[test]
fn every_dependency_is_used() {
    let program = text_below("src", false);
    let all = ["src", "tests", "benches"].map(|folder| text_below(folder, true)).concat();
    let fuzz = ["fuzz/bodies", "fuzz/fuzz_targets"].map(|folder| text_below(folder, true)).concat();
    for (manifest, kind, text) in [
        ("Cargo.toml", "dependencies", &program),
        ("Cargo.toml", "dev-dependencies", &all),
        ("fuzz/Cargo.toml", "dependencies", &fuzz),
    ] {
        for name in dependencies(manifest, kind) {
            let path = format!("{}::", name.replace('-', "_"));
            assert!(text.contains(&path), "{name} is in [{kind}] of {manifest} and not used: remove it");
        }
    }
}
