//! Temporary folders.

use anyhow::{Context, Result};
use tempfile::TempDir;

/// Creates a folder that only the user can read, and that is removed when dropped.
pub fn folder(prefix: &str) -> Result<TempDir> {
    let base = std::env::temp_dir();
    // Without links, because programs report the real path of their working directory.
    let base = base.canonicalize().unwrap_or(base);
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder
        .tempdir_in(&base)
        .context("could not create a temporary folder; set TMPDIR to a folder you can write")
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_the_user_can_read_it_and_nothing_stays() {
        let folder = folder("ralph-test-").unwrap();
        let path = folder.path().to_owned();
        assert_eq!(path, path.canonicalize().unwrap());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(path.join("file"), "text").unwrap();
        drop(folder);
        assert!(!path.exists());
    }
}
