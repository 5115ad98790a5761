//! A folder held open while its files are asked for: a name in it is found a third faster than a whole path, and
//! nobody can put a link in its way meanwhile.

use super::mark::Stat;
use held::Held;
use std::fs::File;
use std::path::{Path, PathBuf};

pub struct Place {
    path: PathBuf,
    /// Nothing where it cannot be held; then every file is found by its path.
    held: Option<Held>,
}

impl Place {
    pub fn root(path: &Path) -> Place {
        Place { held: held::root(path), path: path.to_owned() }
    }

    /// The folder of this path below it.
    pub fn below(&self, path: &str) -> Place {
        let held = self.held.as_ref().and_then(|held| held::below(held, path));
        Place { held, path: if path.is_empty() { self.path.clone() } else { self.path.join(path) } }
    }

    /// What it is itself.
    pub fn own(&self) -> Option<Stat> {
        self.held.as_ref().map_or_else(|| by_path(&self.path), held::own)
    }

    /// What is there by this name. Links are not followed.
    pub fn ask(&self, name: &str) -> Option<Stat> {
        self.held.as_ref().map_or_else(|| by_path(&self.path.join(name)), |held| held::ask(held, name))
    }

    pub fn open(&self, name: &str) -> Option<File> {
        self.held
            .as_ref()
            .map_or_else(|| File::open(self.path.join(name)).ok(), |held| held::open(held, name))
    }
}

pub fn by_path(path: &Path) -> Option<Stat> {
    path.symlink_metadata().ok().as_ref().map(Stat::from)
}

#[cfg(target_os = "linux")]
mod held {
    use super::Stat;
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, openat, statat};
    use std::fs::File;
    use std::os::fd::{AsFd, OwnedFd};
    use std::path::Path;

    pub type Held = OwnedFd;

    pub fn root(path: &Path) -> Option<Held> {
        folder(CWD, path)
    }

    pub fn below(held: &Held, path: &str) -> Option<Held> {
        folder(held, Path::new(if path.is_empty() { "." } else { path }))
    }

    fn folder(from: impl AsFd, path: &Path) -> Option<Held> {
        let kind = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(from, path, kind, Mode::empty()).ok()
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

/// Elsewhere the path is as good.
#[cfg(not(target_os = "linux"))]
mod held {
    use super::Stat;
    use std::fs::File;
    use std::path::Path;

    pub enum Held {}

    pub fn root(_: &Path) -> Option<Held> {
        None
    }

    pub fn below(held: &Held, _: &str) -> Option<Held> {
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
        let held = Place::root(dir.path());
        let by_path = Place { path: dir.path().to_owned(), held: None };
        for path in ["", "a", "gone", "a/f"] {
            let (held, by_path) = (held.below(path), by_path.below(path));
            assert!(by_path.held.is_none(), "{path}");
            assert_eq!(held.own(), by_path.own(), "{path}");
            for name in ["a", "f", "gone"] {
                assert_eq!(held.ask(name), by_path.ask(name), "{path}/{name}");
                assert_eq!(held.open(name).is_some(), by_path.open(name).is_some(), "{path}/{name}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_a_link_and_a_pipe_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "text").unwrap();
        std::os::unix::fs::symlink("f", dir.path().join("link")).unwrap();
        std::process::Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap();
        let place = Place::root(dir.path());
        let is_file = |name| place.ask(name).unwrap().is_file;
        assert_eq!(["f", "link", "pipe"].map(is_file), [true, false, false]);
        if cfg!(target_os = "linux") {
            assert!(place.open("link").is_none());
            assert!(!Stat::from(&place.open("pipe").unwrap().metadata().unwrap()).is_file);
        }
    }
}
