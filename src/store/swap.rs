//! A folder replaced as a whole: whoever looks finds the old one or the new one, never a mixture.

use anyhow::{Context, Result};
use std::path::Path;

/// Puts `new` in the place of `target`. The old folder, where there was one, is then where the new one was.
/// `false` where this system cannot exchange two folders at once; nothing has happened then.
pub fn folders(new: &Path, target: &Path) -> Result<bool> {
    let named = || format!("could not put {} in the place of {}", new.display(), target.display());
    let empty = std::fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_none());
    if empty {
        std::fs::remove_dir(target).with_context(named)?;
    }
    if target.symlink_metadata().is_err() {
        std::fs::rename(new, target).with_context(named)?;
        super::file::sync_dir(target);
        return Ok(true);
    }
    let exchanged = exchange(new, target);
    if exchanged {
        super::file::sync_dir(target);
    }
    Ok(exchanged)
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
    fn nobody_ever_finds_nothing_or_half() {
        let base = tempfile::tempdir().unwrap();
        let (new, target) = (base.path().join("new"), base.path().join("target"));
        for folder in [&new, &target] {
            fs::create_dir(folder).unwrap();
            for name in ["a", "b"] {
                fs::write(folder.join(name), folder.file_name().unwrap().as_encoded_bytes()).unwrap();
            }
        }
        let watched = target.clone();
        let (sender, stop) = std::sync::mpsc::channel::<()>();
        let watch = std::thread::spawn(move || {
            while stop.try_recv().is_err() {
                // One look at the folder holds on to it, as the start of a program does to its file.
                let text = fs::read(watched.join("a")).expect("it is there at every moment");
                assert!(text == b"new" || text == b"target");
            }
        });
        for _ in 0..2000 {
            assert!(folders(&new, &target).unwrap());
        }
        sender.send(()).unwrap();
        watch.join().unwrap();
        assert!(folders(&new, &base.path().join("fresh")).unwrap() && !new.exists());
    }
}
