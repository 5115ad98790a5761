//! The one way to our files in a project, which a repository or an agent may have made.
//!
//! A symbolic link below the project's root is refused, unless this user allowed it; so is everything that is not a
//! regular file. Content is counted while it is read, because the size of a file in `/proc` is 0.

use super::{Project, links};
use crate::store::file::{self, Privacy};
use crate::store::hinted::Hinted;
use anyhow::{Context, Result};
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    File,
    Folder,
}

impl Project {
    /// Returns where a file of ours is: a regular file, or none yet.
    pub fn file(&self, path: &Path) -> Result<PathBuf> {
        self.locate(path, Wanted::File)
    }

    /// Returns where a folder of ours is, or will be.
    pub fn folder(&self, path: &Path) -> Result<PathBuf> {
        self.locate(path, Wanted::Folder)
    }

    /// Reads a file of ours of at most `limit` bytes; `None` if there is none.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Option<Vec<u8>>> {
        file::read_unlinked(&self.file(path)?, limit)
    }

    /// Replaces a file of ours, or creates it.
    pub fn replace(&self, path: &Path, bytes: &[u8], privacy: Privacy) -> Result<()> {
        file::replace(&self.file(path)?, bytes, privacy)
    }

    /// Opens a file of ours to add to its end, or creates it.
    pub fn append(&self, path: &Path) -> Result<File> {
        file::append(&self.file(path)?)
    }

    fn locate(&self, path: &Path, wanted: Wanted) -> Result<PathBuf> {
        let mut wanted_here = wanted;
        for part in path.ancestors().take_while(|part| *part != self.root) {
            // What cannot be looked at cannot be opened either, which says why.
            if let Ok(meta) = part.symlink_metadata() {
                if meta.is_symlink() {
                    return self.locate_through_links(path, wanted);
                }
                check(part, &meta, wanted_here)?;
            }
            wanted_here = Wanted::Folder;
        }
        Ok(path.to_owned())
    }

    /// Follows the links that the user allowed, one component at a time.
    fn locate_through_links(&self, path: &Path, wanted: Wanted) -> Result<PathBuf> {
        let unreadable = |path: &Path| format!("could not read {}", path.display());
        let (mut real, mut shown) = (self.root.clone(), self.root.clone());
        let mut parts = path.strip_prefix(&self.root)?.components();
        while let Some(part) = parts.next() {
            real.push(part);
            shown.push(part);
            let mut meta = match real.symlink_metadata() {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    real.extend(parts);
                    return Ok(real);
                }
                meta => meta.with_context(|| unreadable(&shown))?,
            };
            if meta.is_symlink() {
                real = links::target(self, &shown).ok_or_else(|| refused_link(&shown))?;
                meta = real.symlink_metadata().with_context(|| unreadable(&real))?;
            }
            let is_last = parts.as_path().as_os_str().is_empty();
            check(&shown, &meta, if is_last { wanted } else { Wanted::Folder })?;
        }
        Ok(real)
    }
}

fn check(path: &Path, meta: &Metadata, wanted: Wanted) -> Result<()> {
    let expected = match wanted {
        Wanted::File if !meta.is_file() => "a regular file",
        Wanted::Folder if !meta.is_dir() => "a folder",
        _ => return Ok(()),
    };
    let what = format!("{} is {}, not {expected}", path.display(), kind(meta));
    Err(Hinted::error(what, "move it away"))
}

fn refused_link(path: &Path) -> anyhow::Error {
    let what = format!("{} is a symbolic link, which is not followed", path.display());
    Hinted::error(what, format!("remove it, or allow it with `ralph trust --link {}`", word(path)))
}

/// Names the kind of something that is not what we expected.
fn kind(meta: &Metadata) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = meta.file_type();
        if kind.is_fifo() {
            return "a named pipe";
        }
        if kind.is_socket() {
            return "a socket";
        }
        if kind.is_block_device() || kind.is_char_device() {
            return "a device";
        }
    }
    match (meta.is_dir(), meta.is_symlink()) {
        (true, _) => "a folder",
        (_, true) => "a symbolic link",
        _ => "a file",
    }
}

/// Returns the path as one word of a shell.
fn word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@".contains(c);
    if text.chars().all(is_plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn project() -> (tempfile::TempDir, Project) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("project");
        fs::create_dir_all(root.join("ralph")).unwrap();
        (dir, Project { root })
    }

    #[test]
    fn only_a_regular_file_without_links_is_opened() {
        let (dir, project) = project();
        let path = |name: &str| project.root.join(name);
        fs::write(dir.path().join("secret"), "secret").unwrap();
        fs::write(path("ralph/file"), "text").unwrap();
        fs::create_dir(path("ralph/folder")).unwrap();
        symlink("file", path("ralph/link")).unwrap();
        symlink("gone", path("ralph/dead")).unwrap();
        symlink("ralph", path("linked")).unwrap();
        symlink(dir.path(), path("ralph/out")).unwrap();
        std::process::Command::new("mkfifo").arg(path("ralph/pipe")).status().unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("ralph/socket")).unwrap();
        let cases = [
            ("ralph/link", "ralph/link is a symbolic link"),
            ("ralph/dead", "ralph/dead is a symbolic link"),
            ("linked/file", "linked is a symbolic link"),
            ("linked/gone", "linked is a symbolic link"),
            ("ralph/out/secret", "ralph/out is a symbolic link"),
            ("ralph/folder", "ralph/folder is a folder, not a regular file; move it away"),
            ("ralph/pipe", "ralph/pipe is a named pipe, not a regular file"),
            ("ralph/socket", "ralph/socket is a socket, not a regular file"),
            ("ralph/file/x", "ralph/file is a file, not a folder"),
        ];
        for (name, expected) in cases {
            let errors = [
                project.read(&path(name), 100).unwrap_err(),
                project.append(&path(name)).unwrap_err(),
                project.replace(&path(name), b"x", Privacy::Shared).unwrap_err(),
            ];
            for error in errors {
                assert!(error.to_string().contains(expected), "{name}: {error}");
            }
        }
        assert_eq!(fs::read_to_string(dir.path().join("secret")).unwrap(), "secret");
        assert_eq!(project.read(&path("ralph/file"), 4).unwrap().as_deref(), Some(&b"text"[..]));
        assert!(project.read(&path("ralph/file"), 3).unwrap_err().to_string().contains("too large"));
        assert_eq!(project.read(&path("ralph/none/at/all"), 3).unwrap(), None);
        assert!(
            project.folder(&path("ralph/folder")).is_ok() && project.folder(&path("ralph/file")).is_err()
        );
    }

    #[test]
    fn the_project_itself_may_be_reached_through_a_link() {
        let (dir, project) = project();
        fs::write(project.root.join("ralph/file"), "text").unwrap();
        symlink(&project.root, dir.path().join("way")).unwrap();
        let way = Project { root: dir.path().join("way") };
        assert!(way.read(&way.root.join("ralph/file"), 9).unwrap().is_some());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_is_measured_while_it_is_read() {
        let path = Path::new("/proc/self/smaps");
        assert_eq!(path.metadata().unwrap().len(), 0, "what the system says");
        let error = file::read_unlinked(path, 64).unwrap_err();
        assert!(error.to_string().contains("too large"), "{error}");
        assert!(file::read_unlinked(Path::new("/proc/self/pagemap"), 1 << 20).is_err());
    }

    #[test]
    fn the_hint_can_be_pasted() {
        let (_dir, project) = project();
        symlink("ralph", project.root.join("a b'c")).unwrap();
        let error = project.file(&project.root.join("a b'c/x")).unwrap_err();
        let refused = error.downcast_ref::<Hinted>().unwrap();
        assert!(refused.hint.ends_with(r"project/a b'\''c'`"), "{}", refused.hint);
    }
}
