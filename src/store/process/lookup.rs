//! Which program a name means: the first of that name in an absolute folder of `PATH`, looked for once and started by
//! its path. Empty and relative entries would be folders of the project, so neither we nor what we start uses them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Without any usable folder a shell would make up its own, and some include the current one.
const DEFAULT_FOLDERS: &[&str] = if cfg!(unix) { &["/usr/local/bin", "/usr/bin", "/bin"] } else { &[] };

/// Returns a command for a program by its name, or by the path that the user gave. One that is not found fails when it
/// is started.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    static FOUND: Mutex<BTreeMap<OsString, PathBuf>> = Mutex::new(BTreeMap::new());
    let program = program.as_ref();
    let mut command = if is_path(program) {
        Command::new(program)
    } else {
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        let path = found.get(program).cloned().or_else(|| find(program, &[]));
        if let Some(path) = &path {
            found.insert(program.to_owned(), path.clone());
        }
        // The bare name would be looked for again, in every entry.
        Command::new(path.unwrap_or_else(|| Path::new("/not found on PATH").join(program)))
    };
    set_path(&mut command);
    command
}

/// Gives a command our `PATH` without the entries that are not used.
pub fn set_path(command: &mut Command) {
    if let Some(path) = &search_path().replaced {
        command.env("PATH", path);
    }
}

/// Returns the first program of this name in the folders of `PATH`, then in `others`.
pub fn find(name: impl AsRef<OsStr>, others: &[PathBuf]) -> Option<PathBuf> {
    let endings: &[&str] = if cfg!(windows) { &[".exe", ".cmd"] } else { &[""] };
    let name = name.as_ref();
    let folders = search_path().folders.iter().chain(others).filter(|folder| folder.is_absolute());
    let named = |(folder, ending): (&PathBuf, &&str)| {
        let mut file = name.to_owned();
        file.push(ending);
        folder.join(file)
    };
    folders
        .flat_map(|folder| endings.iter().map(move |ending| (folder, ending)))
        .map(named)
        .find(|p| is_program(p))
}

pub fn is_program(path: &Path) -> bool {
    let Ok(meta) = path.metadata() else { return false };
    #[cfg(unix)]
    let runs = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let runs = true;
    meta.is_file() && runs
}

/// Returns the entries of `PATH` that are not used.
pub fn unused_entries() -> &'static [String] {
    &search_path().unused
}

fn is_path(program: &OsStr) -> bool {
    program.as_encoded_bytes().iter().any(|byte| std::path::is_separator(char::from(*byte)))
}

#[derive(Debug, Default, PartialEq)]
struct SearchPath {
    folders: Vec<PathBuf>,
    unused: Vec<String>,
    /// What the programs that we start get, if it is not what we got.
    replaced: Option<OsString>,
}

impl SearchPath {
    fn of(variable: Option<&OsStr>) -> SearchPath {
        let entries: Vec<PathBuf> = variable.map(std::env::split_paths).into_iter().flatten().collect();
        let (mut folders, unused): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| entry.is_absolute());
        let is_unusable = folders.is_empty();
        if is_unusable {
            folders = DEFAULT_FOLDERS.iter().map(PathBuf::from).collect();
        }
        let replaced =
            (is_unusable || !unused.is_empty()).then(|| std::env::join_paths(&folders).ok()).flatten();
        let unused = unused.iter().map(|entry| entry.to_string_lossy().into_owned()).collect();
        SearchPath { folders, unused, replaced }
    }
}

fn search_path() -> &'static SearchPath {
    static PATH: OnceLock<SearchPath> = OnceLock::new();
    PATH.get_or_init(|| SearchPath::of(std::env::var_os("PATH").as_deref()))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn empty_and_relative_entries_are_neither_used_nor_passed_on() {
        let standard = "/usr/local/bin:/usr/bin:/bin";
        for (path, folders, replaced) in [
            (Some("/a:/b"), "/a:/b", None),
            (Some(":/a"), "/a", Some("/a")),
            (Some("/a:"), "/a", Some("/a")),
            (Some("/a::/b"), "/a:/b", Some("/a:/b")),
            (Some(".:/a:./node_modules/.bin:../x:~/bin"), "/a", Some("/a")),
            (Some(""), standard, Some(standard)),
            (Some("."), standard, Some(standard)),
            (None, standard, Some(standard)),
        ] {
            let found = SearchPath::of(path.map(OsStr::new));
            let folders: Vec<PathBuf> = folders.split(':').map(PathBuf::from).collect();
            assert_eq!((found.folders, found.replaced), (folders, replaced.map(OsString::from)), "{path:?}");
        }
    }

    #[test]
    fn a_name_becomes_a_path_and_a_path_stays() {
        assert!(Path::new(command("sh").get_program()).is_absolute());
        assert_eq!(command("./agent.sh").get_program(), "./agent.sh");
        let missing = command("no-such-program");
        assert!(Path::new(missing.get_program()).is_absolute() && find("no-such-program", &[]).is_none());
    }
}
