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

/// Raised with every change to the built-in rules or to the format of the snapshot.
const VERSION: &str = "6";

impl Rules {
    pub fn new(home: Option<&Path>, resolved: &Resolved) -> Self {
        let home = home.and_then(Path::to_str).map(|home| format!("{}/", home.trim_end_matches(['/', '\\'])));
        let home = home.filter(|home| home.len() > 2);
        let (own, mut warnings) = own::rules(resolved.list("scan.rules"));
        let (exclude, too_many) = own::exclude(resolved.list("scan.exclude"));
        warnings.extend(too_many);
        let given = format!("{VERSION} {home:?} {:?} {:?}", resolved.list("scan.rules"), exclude);
        Rules { home, own, exclude, warnings, hash: hash(given.as_bytes()) }
    }
}
