//! Directories by their paths.

use crate::scan::fingerprint::Stat;
use std::fs::File;
use std::path::{Path, PathBuf};

pub struct OpenDirectory(PathBuf);

impl OpenDirectory {
    /// Opens the root of the project, which may itself be reached through symbolic links.
    pub fn root(path: &Path) -> Option<OpenDirectory> {
        path.canonicalize().ok().map(OpenDirectory)
    }

    /// Opens the directory at a relative path, which is empty for this one itself.
    pub fn open(&self, path: &str) -> Option<OpenDirectory> {
        let directory = OpenDirectory(if path.is_empty() { self.0.clone() } else { self.0.join(path) });
        directory.stat_self().is_some_and(|stat| stat.is_dir).then_some(directory)
    }

    pub fn stat_self(&self) -> Option<Stat> {
        self.0.symlink_metadata().ok().as_ref().map(Stat::from)
    }

    /// Returns the metadata of what has this name, without following a link.
    pub fn stat(&self, name: &str) -> Option<Stat> {
        self.0.join(name).symlink_metadata().ok().as_ref().map(Stat::from)
    }

    /// Opens a regular file.
    pub fn open_file(&self, name: &str) -> Option<File> {
        self.stat(name).filter(|stat| stat.is_file)?;
        File::open(self.0.join(name)).ok()
    }
}
