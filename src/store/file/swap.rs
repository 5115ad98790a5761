//! Replaces a folder as a whole, so that a reader finds the old one or the new one and never a mixture.

use crate::store::file;
use anyhow::{Context, Result};
use std::path::Path;

/// Puts `new` in the place of `target`; the old folder, if any, is then at `new`. Where the system cannot exchange
/// two folders, there is none for a moment.
pub fn folders(new: &Path, target: &Path) -> Result<()> {
    let swapped = if target.symlink_metadata().is_err() {
        std::fs::rename(new, target)
    } else if exchange(new, target) {
        Ok(())
    } else {
        let old = new.with_extension("old");
        let _ = std::fs::remove_dir_all(&old);
        std::fs::rename(target, &old)
            .and_then(|()| std::fs::rename(new, target))
            .and_then(|()| std::fs::rename(&old, new))
    };
    swapped.with_context(|| format!("could not replace {} with {}", target.display(), new.display()))?;
    file::sync_dir(target);
    Ok(())
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn exchange(one: &Path, other: &Path) -> bool {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok()
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn exchange(_: &Path, _: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_reader_always_finds_one_of_the_two() {
        let base = tempfile::tempdir().unwrap();
        let (new, target) = (base.path().join("new"), base.path().join("target"));
        for folder in [&new, &target] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("a"), folder.file_name().unwrap().as_encoded_bytes()).unwrap();
        }
        let watched = target.clone();
        let (sender, stop) = std::sync::mpsc::channel::<()>();
        let reader = std::thread::spawn(move || {
            while stop.try_recv().is_err() {
                let text = fs::read(watched.join("a")).expect("the file is always there");
                assert!(text == b"new" || text == b"target");
            }
        });
        for _ in 0..2000 {
            folders(&new, &target).unwrap();
        }
        sender.send(()).unwrap();
        reader.join().unwrap();
        folders(&new, &base.path().join("fresh")).unwrap();
        assert!(!new.exists());
    }
}
