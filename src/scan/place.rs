//! A folder held open while its files are asked for: a name in it is found a third faster than a whole path, and
//! no link leads out of the project. Where it cannot be held, files are found by their paths.

use super::mark::Stat;
use held::Held;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The top of the project.
pub struct Root {
    path: PathBuf,
    held: Option<Held>,
}

/// One of its folders.
pub enum Place {
    Held(Held),
    ByPath(PathBuf),
    /// No such folder, or none that is reached without a link.
    Gone,
}

impl Root {
    pub fn new(path: &Path) -> Root {
        // The way to the project may lead over links.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Root { held: held::root(&path), path }
    }

    /// The folder of this path, which is empty for the root itself.
    pub fn folder(&self, path: &str) -> Place {
        let held = self.held.as_ref().and_then(|held| held::below(held, path));
        held.unwrap_or_else(|| {
            Place::ByPath(if path.is_empty() { self.path.clone() } else { self.path.join(path) })
        })
    }
}

impl Place {
    /// What it is itself.
    pub fn own(&self) -> Option<Stat> {
        match self {
            Place::Held(held) => held::own(held),
            Place::ByPath(path) => by_path(path),
            Place::Gone => None,
        }
    }

    /// What is there by this name. Links are not followed.
    pub fn ask(&self, name: &str) -> Option<Stat> {
        match self {
            Place::Held(held) => held::ask(held, name),
            Place::ByPath(path) => by_path(&path.join(name)),
            Place::Gone => None,
        }
    }

    pub fn open(&self, name: &str) -> Option<File> {
        match self {
            Place::Held(held) => held::open(held, name),
            Place::ByPath(path) => File::open(path.join(name)).ok(),
            Place::Gone => None,
        }
    }
}

pub fn by_path(path: &Path) -> Option<Stat> {
    path.symlink_metadata().ok().as_ref().map(Stat::from)
}

#[cfg(target_os = "linux")]
mod held {
    use super::{Place, Stat};
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, fstat, openat, openat2, statat};
    use rustix::io::Errno;
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    pub type Held = OwnedFd;

    const FOLDER: OFlags =
        OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

    pub fn root(path: &Path) -> Option<Held> {
        openat(CWD, path, FOLDER, Mode::empty()).ok()
    }

    /// Nothing where the system has other troubles than that folder.
    pub fn below(held: &Held, path: &str) -> Option<Place> {
        let path = if path.is_empty() { "." } else { path };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let opened = match openat2(held, path, FOLDER, Mode::empty(), resolve) {
            // An older kernel, or a sandbox of one.
            Err(Errno::NOSYS | Errno::PERM) => openat(held, path, FOLDER, Mode::empty()),
            opened => opened,
        };
        match opened {
            Ok(held) => Some(Place::Held(held)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Some(Place::Gone),
            Err(_) => None,
        }
    }

    pub fn own(held: &Held) -> Option<Stat> {
        fstat(held).ok().as_ref().map(Stat::from)
    }

    pub fn ask(held: &Held, name: &str) -> Option<Stat> {
        statat(held, name, AtFlags::SYMLINK_NOFOLLOW).ok().as_ref().map(Stat::from)
    }

    /// What became a pipe since it was listed is not waited for.
    pub fn open(held: &Held, name: &str) -> Option<File> {
        let kind = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        openat(held, name, kind, Mode::empty()).ok().map(File::from)
    }
}

#[cfg(not(target_os = "linux"))]
mod held {
    use super::{Place, Stat};
    use std::fs::File;
    use std::path::Path;

    /// Nothing is held here.
    pub enum Held {}

    pub fn root(_: &Path) -> Option<Held> {
        None
    }

    pub fn below(held: &Held, _: &str) -> Option<Place> {
        match *held {}
    }

    pub fn own(held: &Held) -> Option<Stat> {
        match *held {}
    }

    pub fn ask(held: &Held, _: &str) -> Option<Stat> {
        match *held {}
    }

    pub fn open(held: &Held, _: &str) -> Option<File> {
        match *held {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_cannot_be_held_tells_the_same() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        std::fs::write(dir.path().join("a/f"), "text").unwrap();
        let root = Root::new(dir.path());
        let by_path = Root { held: None, path: root.path.clone() };
        for path in ["", "a", "gone"] {
            let (held, by_path) = (root.folder(path), by_path.folder(path));
            assert!(matches!(by_path, Place::ByPath(_)), "{path}");
            assert_eq!(held.own(), by_path.own(), "{path}");
            for name in ["a", "f", "gone"] {
                assert_eq!(held.ask(name), by_path.ask(name), "{path}/{name}");
                assert_eq!(held.open(name).is_some(), by_path.open(name).is_some(), "{path}/{name}");
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn no_link_is_followed_below_the_root_and_no_pipe_waited_for() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(path("outside/b")).unwrap();
        std::fs::create_dir(path("project")).unwrap();
        std::fs::write(path("project/f"), "text").unwrap();
        symlink("f", path("project/link")).unwrap();
        symlink(path("outside"), path("project/a")).unwrap();
        symlink(path("project"), path("way")).unwrap();
        std::process::Command::new("mkfifo").arg(path("project/pipe")).status().unwrap();
        let root = Root::new(&path("way"));
        let top = root.folder("");
        assert!(top.own().unwrap().is_dir, "the way to the project may lead over a link");
        let is_file = |name| top.ask(name).unwrap().is_file;
        assert_eq!(["f", "link", "pipe"].map(is_file), [true, false, false]);
        assert!(top.open("f").is_some() && top.open("link").is_none());
        assert!(!Stat::from(&top.open("pipe").unwrap().metadata().unwrap()).is_file);
        for out in ["a", "a/b", "../outside", "f"] {
            assert!(matches!(root.folder(out), Place::Gone), "{out}");
        }
    }
}
