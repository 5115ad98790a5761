//! A folder for the user only that is gone, with all that is in it, when it is dropped.

use super::file;
use super::world;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Result<Scratch> {
        // Programs that ask where they are get the real path, and projects are known by it.
        let base = std::env::temp_dir();
        let base = base.canonicalize().with_context(|| format!("could not find {}", base.display()))?;
        let path = base.join(format!("{name}-{:016x}", world::unique() as u64));
        // What is there already is not ours, however unlikely that is.
        anyhow::ensure!(path.symlink_metadata().is_err(), "{} is there already", path.display());
        file::create_dir(&path)?;
        Ok(Scratch(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A folder in it.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.0.join(name);
        file::create_dir(&path)?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A program that was just ended may still be writing its last file.
        for _ in 0..5 {
            if std::fs::remove_dir_all(&self.0).is_ok() || self.0.symlink_metadata().is_err() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_it_stays() {
        let scratch = Scratch::new("ralph-test").unwrap();
        let path = scratch.path().to_owned();
        let inner = scratch.folder("a").unwrap();
        std::fs::write(inner.join("b"), "c").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        }
        drop(scratch);
        assert!(!path.exists());
    }
}
