//! Directories as open file descriptors.

use crate::scan::fingerprint::Stat;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, fstat, openat, openat2, statat};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

pub struct OpenDirectory(OwnedFd);

const DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl OpenDirectory {
    /// Opens the root of the project, which may itself be reached through symbolic links.
    pub fn root(path: &Path) -> Option<OpenDirectory> {
        openat(CWD, &path.canonicalize().ok()?, DIRECTORY, Mode::empty()).ok().map(OpenDirectory)
    }

    /// Opens the directory at a relative path, which is empty for this one itself. Returns nothing where there is no
    /// such directory, or only behind a symbolic link.
    pub fn open(&self, path: &str) -> Option<OpenDirectory> {
        let path = if path.is_empty() { "." } else { path };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let opened = match openat2(&self.0, path, DIRECTORY, Mode::empty(), resolve) {
            // An older kernel, or a sandbox without this call.
            Err(Errno::NOSYS | Errno::PERM) => openat(&self.0, path, DIRECTORY, Mode::empty()),
            opened => opened,
        };
        opened.ok().map(OpenDirectory)
    }

    pub fn stat_self(&self) -> Option<Stat> {
        fstat(&self.0).ok().as_ref().map(Stat::from)
    }

    /// Returns the metadata of what has this name, without following a link.
    pub fn stat(&self, name: &str) -> Option<Stat> {
        statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).ok().as_ref().map(Stat::from)
    }

    /// Opens a regular file. A link, pipe or device that replaced it is neither followed nor waited for.
    pub fn open_file(&self, name: &str) -> Option<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.0, name, flags, Mode::empty()).ok()?);
        file.metadata().is_ok_and(|meta| meta.is_file()).then_some(file)
    }
}

#[cfg(test)]
mod tests {
    use super::super::by_path;
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_directory_by_path_tells_the_same() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        std::fs::write(dir.path().join("a/f"), "text").unwrap();
        let held = OpenDirectory::root(dir.path()).unwrap();
        let by_path = by_path::OpenDirectory::root(dir.path()).unwrap();
        for path in ["", "a"] {
            let (held, by_path) = (held.open(path).unwrap(), by_path.open(path).unwrap());
            assert_eq!(held.stat_self(), by_path.stat_self(), "{path}");
            for name in ["a", "f", "gone"] {
                assert_eq!(held.stat(name), by_path.stat(name), "{path}/{name}");
                let opened = (held.open_file(name).is_some(), by_path.open_file(name).is_some());
                assert_eq!(opened.0, opened.1, "{path}/{name}");
            }
        }
        assert!(held.open("gone").is_none() && by_path.open("gone").is_none());
    }

    #[test]
    fn links_below_the_root_are_not_followed_and_pipes_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(path("outside/b")).unwrap();
        std::fs::create_dir(path("project")).unwrap();
        std::fs::write(path("project/f"), "text").unwrap();
        symlink("f", path("project/link")).unwrap();
        symlink(path("outside"), path("project/a")).unwrap();
        symlink(path("project"), path("way")).unwrap();
        std::process::Command::new("mkfifo").arg(path("project/pipe")).status().unwrap();
        let root = OpenDirectory::root(&path("way")).unwrap();
        let top = root.open("").unwrap();
        assert!(top.stat_self().unwrap().is_dir, "the project itself may be reached through a link");
        let is_file = |name| top.stat(name).unwrap().is_file;
        assert_eq!(["f", "link", "pipe"].map(is_file), [true, false, false]);
        assert_eq!(["f", "link", "pipe"].map(|name| top.open_file(name).is_some()), [true, false, false]);
        for out in ["a", "a/b", "../outside", "f"] {
            assert!(root.open(out).is_none(), "{out}");
        }
    }
}
