//! The rules: the built-in ones, and the project's own from its settings.

pub mod check;
mod dotenv;
mod file_kind;
mod generated;
pub mod grouping;
mod paths;
pub mod surroundings;

use crate::core::guidance::finding::Severity;
use crate::core::settings::Resolved;
use crate::core::text::clean;
use crate::store::project::fingerprint as hash;
use globset::{Glob, GlobMatcher};
use regex::bytes::{Regex, RegexBuilder};
use serde_json::Value;
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

/// A rule from the project's settings: a pattern in files, or files by their path.
pub struct OwnRule {
    pub id: String,
    pub severity: Severity,
    pub message: String,
    pub pattern: Option<Regex>,
    pub glob: Option<GlobMatcher>,
}

/// Bounds the memory of a pattern; its time is linear anyway.
const MAX_PATTERN_BYTES: usize = 1 << 20;
/// Raised with every change to the built-in rules or to the format of the snapshot.
const VERSION: &str = "4";

impl Rules {
    pub fn new(home: Option<&Path>, resolved: &Resolved) -> Self {
        let home = home.and_then(Path::to_str).map(|home| format!("{}/", home.trim_end_matches(['/', '\\'])));
        let home = home.filter(|home| home.len() > 2);
        let (mut own, mut warnings) = (Vec::new(), Vec::new());
        for (index, value) in resolved.list("scan.rules").iter().enumerate() {
            match own_rule(value) {
                Ok(rule) => own.push(rule),
                Err(wrong) => {
                    let id =
                        value["id"].as_str().map_or_else(|| format!("number {}", index + 1), str::to_owned);
                    warnings.push(clean::line(&format!("scan.rules: rule {id} is left out: {wrong}")));
                }
            }
        }
        let exclude =
            resolved.list("scan.exclude").iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let given = format!("{VERSION} {home:?} {:?} {:?}", resolved.list("scan.rules"), exclude);
        Rules { home, own, exclude, warnings, hash: hash(given.as_bytes()) }
    }
}

impl OwnRule {
    /// Returns whether it searches the content of this file.
    pub fn reads(&self, path: &str) -> bool {
        self.pattern.is_some() && self.glob.as_ref().is_none_or(|glob| glob.is_match(path))
    }

    /// Returns whether it matches this file by its path alone.
    pub fn names(&self, path: &str) -> bool {
        self.pattern.is_none() && self.glob.as_ref().is_some_and(|glob| glob.is_match(path))
    }

    pub fn hits<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        self.pattern.iter().flat_map(|pattern| pattern.find_iter(bytes)).map(|hit| hit.start())
    }
}

fn own_rule(value: &Value) -> Result<OwnRule, String> {
    let text = |name: &str| value[name].as_str().filter(|text| !text.trim().is_empty());
    let id = text("id").ok_or("it has no id")?;
    let severity = match text("severity") {
        None => Severity::High,
        Some(name) => Severity::named(name).ok_or_else(|| format!("'{name}' is no severity"))?,
    };
    let pattern = text("pattern").map(|pattern| {
        RegexBuilder::new(pattern)
            .unicode(false)
            .size_limit(MAX_PATTERN_BYTES)
            .build()
            .map_err(|e| e.to_string())
    });
    let glob = text("glob")
        .or(text("path"))
        .map(|glob| Glob::new(glob).map(|glob| glob.compile_matcher()).map_err(|e| e.to_string()));
    if pattern.is_none() && glob.is_none() {
        return Err("it has neither a pattern nor a glob".into());
    }
    Ok(OwnRule {
        id: clean::line(id),
        severity,
        message: clean::line(text("message").unwrap_or(id)),
        pattern: pattern.transpose()?,
        glob: glob.transpose()?,
    })
}
