//! Moves a finished run out of `ralph/`, in steps that lose nothing if the process is killed:
//!
//! 1. Copies everything to a partial folder, with a list of the copied files, and flushes it to disk.
//! 2. Renames the folder: now the archive is complete.
//! 3. Resets the listed files in `ralph/` that have not changed since, then removes the list.
//!
//! Killed before 2, the next call removes the copies. Killed during 3, the next call continues with the list.

use super::layout;
use crate::store::file::lock::Lock;
use crate::store::file::{self, Privacy, walk};
use crate::store::project::Project;
use crate::store::runner::run_lock;
use crate::store::tasks::source;
use crate::store::world::{World, nanoseconds};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The files of a run in `ralph/`. The prompt is copied too, but not reset; other files are ignored.
const FILES: [&str; 5] = ["tasks.json", "prd.md", "progress.txt", "blocked.txt", "decide.txt"];
const FOLDERS: [&str; 2] = ["answered", LOGS];
const LOGS: &str = "logs";
const SUMMARY: &str = "summary.md";
const LIST: &str = ".not-yet-reset.json";
const PARTIAL: &str = ".partial-";
const MAX_BYTES: u64 = 64 << 20;

/// What to archive.
#[derive(Clone, Debug)]
pub struct ArchiveOptions<'a> {
    /// The name of the archive, safe in a path.
    pub name: &'a str,
    /// The project's name in the fresh files.
    pub project_name: &'a str,
    /// Otherwise they stay in `ralph/logs`.
    pub include_logs: bool,
    pub summary: &'a str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archived {
    pub dir: PathBuf,
    /// Logs are left in `ralph/logs`.
    pub logs_left: bool,
    /// Files that were not reset, because they changed after the copy or are links.
    pub left: Vec<String>,
}

/// A copied file, with its size and time when it was copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// Relative to `ralph/`.
    path: PathBuf,
    length: u64,
    modified: i64,
}

#[derive(Serialize, Deserialize)]
struct List {
    project_name: String,
    entries: Vec<Entry>,
}

fn root(project: &Project) -> Result<PathBuf> {
    project.folder(&project.root.join("ralph-archive"))
}

/// Takes the lock, because two archives at the same time would conflict.
pub fn lock(world: &World, project: &Project) -> Result<Lock> {
    let dir = world.data_dir()?.join("runs");
    file::create_dir(&dir)?;
    Lock::acquire(&dir.join(format!("{}-archive.lock", project.key())))
}

/// Returns whether there is nothing to archive: `ralph/` is missing, or as `ralph init` writes it. Logs that an earlier
/// archive left in place count only if logs are moved now.
pub fn is_fresh(project: &Project, project_name: &str, include_logs: bool) -> bool {
    let fresh = |entry: &Entry| {
        let name = entry.path.to_string_lossy();
        let path = project.work_dir().join(&entry.path);
        layout::fresh(&name, project_name).is_some_and(|text| holds(project, &path, &text))
    };
    let is_unchanged = entries(project, include_logs).is_ok_and(|entries| entries.iter().all(fresh));
    is_unchanged && !has_new_logs(project)
}

/// Returns whether a file holds exactly this text.
fn holds(project: &Project, path: &Path, text: &str) -> bool {
    project.read(path, MAX_BYTES).is_ok_and(|bytes| bytes.as_deref() == Some(text.as_bytes()))
}

/// Returns whether there are logs that were written after the newest archive.
pub fn has_new_logs(project: &Project) -> bool {
    let archives = root(project).map(|root| walk::entries(&root)).unwrap_or_default();
    let summaries = archives.iter().filter_map(|dir| dir.join(SUMMARY).metadata().ok()?.modified().ok());
    let newest = summaries.map(nanoseconds).max();
    let is_new = |entry: &Entry| entry.path.starts_with(LOGS) && newest.is_none_or(|at| entry.modified > at);
    entries(project, true).is_ok_and(|entries| entries.iter().any(is_new))
}

pub fn archive(world: &World, project: &Project, request: &ArchiveOptions) -> Result<Archived> {
    let root = root(project)?;
    let entries = entries(project, request.include_logs)?;
    file::create_shared_dir(&root)?;
    let partial = root.join(format!("{PARTIAL}{}", request.name));
    copy(project, &partial, &entries, request)?;
    let dir = file::free_name(|more| root.join(format!("{}{more}", request.name)));
    fs::rename(&partial, &dir).with_context(|| format!("could not create the archive {}", dir.display()))?;
    file::sync_dir(&dir);
    reset(world, project, &dir)
}

/// Completes unfinished archives. Returns those that were not reset yet.
pub fn recover(world: &World, project: &Project) -> Result<Vec<Archived>> {
    let mut finished = Vec::new();
    let Ok(found) = fs::read_dir(root(project)?) else { return Ok(finished) };
    for entry in found.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
            let path = entry.path();
            fs::remove_dir_all(&path).with_context(|| format!("could not remove {}", path.display()))?;
        } else if entry.path().join(LIST).symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            finished.push(reset(world, project, &entry.path())?);
        }
    }
    Ok(finished)
}

/// Returns the existing files of the run, with or without its logs.
fn entries(project: &Project, with_logs: bool) -> Result<Vec<Entry>> {
    let work = project.work_dir();
    project.folder(&work)?;
    let mut found = Vec::new();
    // A task list in another format belongs to the run too.
    let list = source::other_in_ralph(project);
    for name in FILES.into_iter().chain(list.as_deref()).map(Path::new) {
        let path = work.join(name);
        if path.symlink_metadata().is_ok() {
            project.file(&path)?;
            found.push(entry(&work, name)?);
        }
    }
    let kind = |path: &Path| work.join(path).symlink_metadata().map(|meta| meta.file_type());
    // Links are neither followed nor copied.
    let folders = FOLDERS.into_iter().filter(|name| with_logs || *name != LOGS).map(Path::new);
    for folder in folders.filter(|path| kind(path).is_ok_and(|kind| kind.is_dir())) {
        let files = walk::files_below(&work.join(folder))?.into_iter().map(|name| folder.join(name));
        for file in files.filter(|path| kind(path).is_ok_and(|kind| kind.is_file())) {
            found.push(entry(&work, &file)?);
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn entry(work: &Path, name: &Path) -> Result<Entry> {
    let path = work.join(name);
    let meta = path.symlink_metadata().with_context(|| format!("could not read {}", path.display()))?;
    let modified = meta.modified().map_or(0, nanoseconds);
    Ok(Entry { path: name.to_owned(), length: meta.len(), modified })
}

fn copy(project: &Project, to: &Path, entries: &[Entry], request: &ArchiveOptions) -> Result<()> {
    let work = project.work_dir();
    // An existing folder is an unfinished copy.
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).with_context(|| format!("could not create the folder {}", to.display()))?;
    let prompt = project.file(&work.join(layout::PROMPT))?;
    let prompt = prompt.is_file().then(|| PathBuf::from(layout::PROMPT));
    for path in entries.iter().map(|entry| entry.path.clone()).chain(prompt) {
        let target = to.join(&path);
        let folder = target.parent().unwrap_or(to);
        fs::create_dir_all(folder).with_context(|| format!("could not create {}", folder.display()))?;
        file::copy(&project.file(&work.join(&path))?, &target)?;
    }
    file::replace(&to.join(SUMMARY), request.summary.as_bytes(), Privacy::Shared)?;
    let list = List { project_name: request.project_name.to_owned(), entries: entries.to_owned() };
    file::replace(&to.join(LIST), serde_json::to_string(&list)?.as_bytes(), Privacy::Shared)
}

/// Resets `ralph/`: archived files are removed, or replaced by their template.
fn reset(world: &World, project: &Project, dir: &Path) -> Result<Archived> {
    let mut archived = Archived { dir: dir.to_owned(), ..Archived::default() };
    if let Some(holder) = run_lock::holder(world, project) {
        bail!(
            "a run started in the meantime (process {}); the archive is complete, `ralph archive` resets ralph/ later",
            holder.pid
        );
    }
    let bytes = file::read_unlinked(&dir.join(LIST), MAX_BYTES)?.unwrap_or_default();
    let list: List = serde_json::from_slice(&bytes).with_context(|| {
        format!("{} is damaged: remove it, the archive itself is complete", dir.join(LIST).display())
    })?;
    let work = project.work_dir();
    // The list may come with a repository, so only files of a run are reset.
    let now = entries(project, true)?;
    for entry in &list.entries {
        let Some(present) = now.iter().find(|present| present.path == entry.path) else { continue };
        let path = work.join(&entry.path);
        let fresh = layout::fresh(&entry.path.to_string_lossy(), &list.project_name);
        let copied = dir.join(&entry.path).is_file();
        if present != entry || !copied || path.is_symlink() {
            // An earlier call may have reset it.
            let done = fresh.is_some_and(|text| holds(project, &path, &text));
            if !done {
                archived.left.push(format!("ralph/{}", entry.path.display()));
            }
            continue;
        }
        match fresh {
            Some(text) => file::replace(&path, text.as_bytes(), Privacy::Shared)?,
            None => {
                fs::remove_file(&path).with_context(|| format!("could not remove {}", path.display()))?;
            }
        }
    }
    // Only succeeds for empty folders.
    let folders =
        list.entries.iter().filter_map(|entry| entry.path.parent()).filter(|path| *path != Path::new(LOGS));
    for folder in folders.filter(|path| !path.as_os_str().is_empty()) {
        let _ = fs::remove_dir(work.join(folder));
    }
    archived.logs_left = walk::files_below(&work.join(LOGS)).is_ok_and(|files| !files.is_empty());
    fs::remove_file(dir.join(LIST)).with_context(|| format!("could not finish {}", dir.display()))?;
    Ok(archived)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    struct Place(#[allow(dead_code, reason = "held, not read")] tempfile::TempDir, Project);

    impl Place {
        fn new() -> Place {
            let dir = tempfile::tempdir().unwrap();
            let project = Project { root: dir.path().canonicalize().unwrap() };
            layout::lay_out(&project, "p", false).unwrap();
            let place = Place(dir, project);
            place.write("ralph/tasks.json", "mine").write("ralph/decide.txt", "?");
            place.write("ralph/logs/iteration-001.log", "log").write("ralph/prompt.md", "my prompt");
            place
        }

        fn write(&self, name: &str, text: &str) -> &Place {
            let path = self.1.root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            self
        }

        fn read(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.1.root.join(name)).ok()
        }

        fn archive(&self) -> Result<Archived> {
            let request = ArchiveOptions { name: "n", project_name: "p", include_logs: false, summary: "s" };
            archive(&self.world(), &self.1, &request)
        }

        fn world(&self) -> World {
            World::at(&self.1.root, &self.1.root.join("data"))
        }
    }

    #[test]
    fn killed_before_the_rename_nothing_has_changed() {
        let place = Place::new();
        let request = ArchiveOptions { name: "n", project_name: "p", include_logs: true, summary: "s" };
        let partial = place.1.root.join("ralph-archive/.partial-n");
        fs::create_dir_all(partial.parent().unwrap()).unwrap();
        copy(&place.1, &partial, &entries(&place.1, true).unwrap(), &request).unwrap();
        assert_eq!(place.read("ralph/tasks.json").as_deref(), Some("mine"));
        assert_eq!(recover(&place.world(), &place.1).unwrap(), []);
        assert!(!partial.exists());
        place.archive().unwrap();
        assert_eq!(place.read("ralph-archive/n/tasks.json").as_deref(), Some("mine"));
        assert_eq!(place.read("ralph-archive/n/prompt.md").as_deref(), Some("my prompt"));
        assert_eq!(place.read("ralph/prompt.md").as_deref(), Some("my prompt"));
    }

    #[test]
    fn killed_after_the_rename_the_next_call_completes_it() {
        let place = Place::new();
        place.write("ralph/answered/a.txt", "a");
        let request = ArchiveOptions { name: "n", project_name: "p", include_logs: false, summary: "s" };
        let dir = place.1.root.join("ralph-archive/n");
        fs::create_dir_all(dir.parent().unwrap()).unwrap();
        copy(&place.1, &dir, &entries(&place.1, false).unwrap(), &request).unwrap();
        // It was killed after the first file, and then the user wrote an answer.
        place.write("ralph/tasks.json", &layout::fresh("tasks.json", "p").unwrap());
        place.write("ralph/decide.txt", "? yes, do it");
        let finished = recover(&place.world(), &place.1).unwrap();
        assert_eq!(finished, [Archived { dir, logs_left: true, left: vec!["ralph/decide.txt".into()] }]);
        assert_eq!(place.read("ralph/decide.txt").as_deref(), Some("? yes, do it"), "a changed file is kept");
        assert_eq!(
            place.read("ralph/logs/iteration-001.log").as_deref(),
            Some("log"),
            "they were not asked for"
        );
        assert_eq!(place.read("ralph-archive/n/answered/a.txt").as_deref(), Some("a"));
        assert!(!place.1.root.join("ralph/answered").exists() && place.1.root.join("ralph/logs").is_dir());
        assert_eq!(recover(&place.world(), &place.1).unwrap(), []);
    }

    #[test]
    fn a_list_from_a_repository_resets_only_files_of_a_run() {
        let place = Place::new();
        place.write("precious.txt", "x").write("ralph/prompt.md", "my prompt");
        let meta = |name: &str| entry(&place.1.work_dir(), Path::new(name)).unwrap();
        let list = List {
            project_name: "p".into(),
            entries: ["../precious.txt", "prompt.md", "decide.txt"].map(meta).to_vec(),
        };
        place.write("ralph-archive/evil/.not-yet-reset.json", &serde_json::to_string(&list).unwrap());
        let finished = recover(&place.world(), &place.1).unwrap();
        assert_eq!(finished[0].left, ["ralph/decide.txt"], "it is not in the archive");
        for (name, text) in
            [("precious.txt", "x"), ("ralph/prompt.md", "my prompt"), ("ralph/decide.txt", "?")]
        {
            assert_eq!(place.read(name).as_deref(), Some(text), "{name}");
        }
    }

    #[test]
    fn a_link_out_of_the_project_is_refused() {
        let (place, other) = (Place::new(), Place::new());
        fs::remove_dir_all(place.1.work_dir()).unwrap();
        std::os::unix::fs::symlink(other.1.work_dir(), place.1.work_dir()).unwrap();
        assert!(place.archive().unwrap_err().to_string().contains("is a symbolic link"));
        assert_eq!(other.read("ralph/logs/iteration-001.log").as_deref(), Some("log"));
    }

    #[test]
    fn a_taken_name_gets_a_number() {
        let place = Place::new();
        place.write("ralph-archive/n/tasks.json", "older");
        let archived = place.archive().unwrap();
        assert!(archived.dir.ends_with("ralph-archive/n-2"), "{archived:?}");
        assert_eq!(place.read("ralph-archive/n/tasks.json").as_deref(), Some("older"));
    }

    #[test]
    fn a_project_is_fresh_after_init_and_archive() {
        let place = Place::new();
        let fresh = || is_fresh(&place.1, "p", false);
        assert!(!fresh());
        place.archive().unwrap();
        assert!(fresh());
        assert!(!is_fresh(&place.1, "p", true), "the logs can still be archived");
        place.write("ralph/notes.md", "not ours");
        assert!(fresh());
        place.write("ralph/blocked.txt", "?");
        assert!(!fresh());
    }

    #[test]
    fn a_link_inside_the_project_is_refused_too() {
        let place = Place::new();
        place.write("docs/prd.md", "wanted");
        fs::remove_file(place.1.root.join("ralph/prd.md")).unwrap();
        std::os::unix::fs::symlink("../docs/prd.md", place.1.root.join("ralph/prd.md")).unwrap();
        let error = place.archive().unwrap_err().to_string();
        assert!(error.contains("ralph/prd.md is a symbolic link"), "{error}");
        assert_eq!(place.read("docs/prd.md").as_deref(), Some("wanted"));
        assert_eq!(place.read("ralph/decide.txt").as_deref(), Some("?"), "nothing is half archived");
    }
}
