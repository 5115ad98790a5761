//! Moves a finished run out of `ralph/`, in an order that loses nothing wherever it is cut off:
//!
//! 1. everything is copied to a folder beside its place, with a list of what was copied, and flushed to disk
//! 2. the folder gets its name: from here on the archive is whole
//! 3. what is on the list, and has not changed since, is reset in `ralph/`; then the list is removed
//!
//! Cut off before 2, only copies are lost, and the next call removes them. Cut off before the end of 3, the list is
//! still there, and the next call goes on with it.

use super::file::{self, Privacy};
use super::lock::Lock;
use super::project::Project;
use super::world::{World, nanoseconds};
use super::{layout, run_lock, task_source};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// What a run leaves in `ralph/`. The prompt is copied too, and stays; files of others are left alone.
const FILES: [&str; 5] = ["tasks.json", "prd.md", "progress.txt", "blocked.txt", "decide.txt"];
const FOLDERS: [&str; 2] = ["answered", LOGS];
const LOGS: &str = "logs";
const SUMMARY: &str = "summary.md";
const LIST: &str = ".not-yet-reset.json";
const PARTIAL: &str = ".partial-";
const LARGEST: u64 = 64 << 20;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The name of the archive, without anything that means something to a path.
    pub name: &'a str,
    /// What the project is called in the fresh files.
    pub project_name: &'a str,
    pub include_logs: bool,
    pub summary: &'a str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archived {
    pub dir: PathBuf,
    /// Log files that are gone, because they were not to be kept.
    pub logs_removed: usize,
    /// Files that changed meanwhile, or are links: archived as they were, and left in place.
    pub left: Vec<String>,
}

/// A file to reset, as it was when it was copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// Below `ralph/`.
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
    project.resolve(&project.root.join("ralph-archive"))
}

/// Held while the folders are moved about: two archives at once would undo each other.
pub fn lock(world: &World, project: &Project) -> Result<Lock> {
    let dir = world.data_dir()?.join("runs");
    file::create_dir(&dir)?;
    Lock::acquire(&dir.join(format!("{}-archive.lock", project.key())))
}

/// Whether there is nothing of a run: `ralph/` is not there, or is as `ralph init` makes it.
pub fn is_fresh(project: &Project, project_name: &str) -> bool {
    let fresh = |entry: &Entry| {
        let name = entry.path.to_string_lossy();
        let path = project.work_dir().join(&entry.path);
        layout::fresh(&name, project_name)
            .is_some_and(|text| fs::read(path).is_ok_and(|bytes| bytes == text.as_bytes()))
    };
    entries(project).is_ok_and(|entries| entries.iter().all(fresh))
}

pub fn archive(project: &Project, request: &Request) -> Result<Archived> {
    let root = root(project)?;
    let entries = entries(project)?;
    fs::create_dir_all(&root).with_context(|| format!("could not create the folder {}", root.display()))?;
    let partial = root.join(format!("{PARTIAL}{}", request.name));
    copy(project, &partial, &entries, request)?;
    let dir = free_name(&root, request.name)?;
    fs::rename(&partial, &dir).with_context(|| format!("could not name the archive {}", dir.display()))?;
    file::sync_dir(&dir);
    reset(project, &dir)
}

/// Goes on with archives that were cut off. Returns those whose reset was still to be done.
pub fn recover(project: &Project) -> Result<Vec<Archived>> {
    let mut finished = Vec::new();
    let Ok(found) = fs::read_dir(root(project)?) else { return Ok(finished) };
    for entry in found.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
            let path = entry.path();
            fs::remove_dir_all(&path).with_context(|| format!("could not remove {}", path.display()))?;
        } else if entry.path().join(LIST).is_file() {
            finished.push(reset(project, &entry.path())?);
        }
    }
    Ok(finished)
}

/// Every file of the run that is there.
fn entries(project: &Project) -> Result<Vec<Entry>> {
    let work = project.work_dir();
    project.resolve(&work)?;
    let mut found = Vec::new();
    // A list of another format is the run's as much as ours is.
    let list = task_source::other_in_ralph(project);
    for name in FILES.into_iter().chain(list.as_deref()).map(Path::new) {
        let path = work.join(name);
        if path.symlink_metadata().is_ok() {
            let real = project.resolve(&path)?;
            if !real.is_file() {
                bail!("{} is not a regular file: move it away", path.display());
            }
            found.push(seen(&work, name)?);
        }
    }
    for folder in FOLDERS {
        let mut folders = vec![PathBuf::from(folder)];
        while let Some(folder) = folders.pop() {
            let path = work.join(&folder);
            // A folder that is a link is somebody else's arrangement.
            if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
                for entry in
                    fs::read_dir(&path).with_context(|| format!("could not read {}", path.display()))?
                {
                    let entry = entry?;
                    let below = folder.join(entry.file_name());
                    match entry.file_type()? {
                        kind if kind.is_dir() => folders.push(below),
                        kind if kind.is_file() => found.push(seen(&work, &below)?),
                        _ => {}
                    }
                }
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn seen(work: &Path, name: &Path) -> Result<Entry> {
    let path = work.join(name);
    let meta = path.symlink_metadata().with_context(|| format!("could not read {}", path.display()))?;
    let modified = meta.modified().map_or(0, nanoseconds);
    Ok(Entry { path: name.to_owned(), length: meta.len(), modified })
}

fn copy(project: &Project, to: &Path, entries: &[Entry], request: &Request) -> Result<()> {
    let work = project.work_dir();
    // Whatever is there is a copy that was cut off.
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).with_context(|| format!("could not create the folder {}", to.display()))?;
    let kept = |entry: &&Entry| request.include_logs || !entry.path.starts_with(LOGS);
    let prompt = project.resolve(&work.join(layout::PROMPT))?;
    let prompt = prompt.is_file().then(|| PathBuf::from(layout::PROMPT));
    for path in entries.iter().filter(kept).map(|entry| entry.path.clone()).chain(prompt) {
        let target = to.join(&path);
        let folder = target.parent().unwrap_or(to);
        fs::create_dir_all(folder).with_context(|| format!("could not create {}", folder.display()))?;
        file::copy(&work.join(&path), &target)?;
    }
    file::replace(&to.join(SUMMARY), request.summary.as_bytes(), Privacy::Shared)?;
    let list = List { project_name: request.project_name.to_owned(), entries: entries.to_owned() };
    file::replace(&to.join(LIST), serde_json::to_string(&list)?.as_bytes(), Privacy::Shared)
}

/// The name, or the first of its kind that nobody has.
fn free_name(root: &Path, name: &str) -> Result<PathBuf> {
    let numbered = (2..1000).map(|number| format!("{name}-{number}"));
    let free = std::iter::once(name.to_owned()).chain(numbered).map(|name| root.join(name));
    free.into_iter()
        .find(|path| path.symlink_metadata().is_err())
        .with_context(|| format!("{} is full of archives of this name: give another --label", root.display()))
}

/// Makes `ralph/` ready for the next run: what is safe in the archive is removed, or new from its template.
fn reset(project: &Project, dir: &Path) -> Result<Archived> {
    let mut archived = Archived { dir: dir.to_owned(), ..Archived::default() };
    if let Some(holder) = run_lock::holder(project) {
        bail!(
            "a run began meanwhile (process {}): the archive is whole, `ralph archive` resets later",
            holder.pid
        );
    }
    let bytes = file::read_bounded(&dir.join(LIST), LARGEST)?.unwrap_or_default();
    let list: List = serde_json::from_slice(&bytes).with_context(|| {
        format!("{} is damaged: remove it, the archive itself is whole", dir.join(LIST).display())
    })?;
    let work = project.work_dir();
    // The list may have come with a repository: it chooses among the files of a run, and names no others.
    let now = entries(project)?;
    for entry in &list.entries {
        let Some(present) = now.iter().find(|present| present.path == entry.path) else { continue };
        let path = work.join(&entry.path);
        let fresh = layout::fresh(&entry.path.to_string_lossy(), &list.project_name);
        let is_log = entry.path.starts_with(LOGS);
        let copied = dir.join(&entry.path).is_file();
        if present != entry || !(copied || is_log) || path.is_symlink() {
            // An earlier call may have come so far.
            let done = fresh.is_some_and(|text| fs::read(&path).is_ok_and(|bytes| bytes == text.as_bytes()));
            if !done {
                archived.left.push(format!("ralph/{}", entry.path.display()));
            }
            continue;
        }
        match fresh {
            Some(text) => file::replace(&path, text.as_bytes(), Privacy::Shared)?,
            None => {
                fs::remove_file(&path).with_context(|| format!("could not remove {}", path.display()))?;
                archived.logs_removed += usize::from(is_log && !copied);
            }
        }
    }
    // Those that are not empty stay.
    let folders =
        list.entries.iter().filter_map(|entry| entry.path.parent()).filter(|path| *path != Path::new(LOGS));
    for folder in folders.filter(|path| !path.as_os_str().is_empty()) {
        let _ = fs::remove_dir(work.join(folder));
    }
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
            let request = Request { name: "n", project_name: "p", include_logs: false, summary: "s" };
            archive(&self.1, &request)
        }
    }

    #[test]
    fn cut_off_before_its_name_nothing_has_happened() {
        let place = Place::new();
        let request = Request { name: "n", project_name: "p", include_logs: true, summary: "s" };
        let partial = place.1.root.join("ralph-archive/.partial-n");
        fs::create_dir_all(partial.parent().unwrap()).unwrap();
        copy(&place.1, &partial, &entries(&place.1).unwrap(), &request).unwrap();
        assert_eq!(place.read("ralph/tasks.json").as_deref(), Some("mine"));
        assert_eq!(recover(&place.1).unwrap(), []);
        assert!(!partial.exists());
        place.archive().unwrap();
        assert_eq!(place.read("ralph-archive/n/tasks.json").as_deref(), Some("mine"));
        assert_eq!(place.read("ralph-archive/n/prompt.md").as_deref(), Some("my prompt"));
        assert_eq!(place.read("ralph/prompt.md").as_deref(), Some("my prompt"));
    }

    #[test]
    fn cut_off_after_its_name_the_rest_is_done_later() {
        let place = Place::new();
        place.write("ralph/answered/a.txt", "a");
        let request = Request { name: "n", project_name: "p", include_logs: false, summary: "s" };
        let dir = place.1.root.join("ralph-archive/n");
        fs::create_dir_all(dir.parent().unwrap()).unwrap();
        copy(&place.1, &dir, &entries(&place.1).unwrap(), &request).unwrap();
        // It came as far as the first file, and then somebody wrote an answer.
        place.write("ralph/tasks.json", &layout::fresh("tasks.json", "p").unwrap());
        place.write("ralph/decide.txt", "? yes, do it");
        let finished = recover(&place.1).unwrap();
        assert_eq!(finished, [Archived { dir, logs_removed: 1, left: vec!["ralph/decide.txt".into()] }]);
        assert_eq!(place.read("ralph/decide.txt").as_deref(), Some("? yes, do it"), "what changed stays");
        assert_eq!(place.read("ralph/logs/iteration-001.log"), None);
        assert_eq!(place.read("ralph-archive/n/answered/a.txt").as_deref(), Some("a"));
        assert!(!place.1.root.join("ralph/answered").exists() && place.1.root.join("ralph/logs").is_dir());
        assert_eq!(recover(&place.1).unwrap(), []);
    }

    #[test]
    fn a_list_that_came_with_a_repository_reaches_no_other_file() {
        let place = Place::new();
        place.write("precious.txt", "x").write("ralph/prompt.md", "my prompt");
        let meta = |name: &str| seen(&place.1.work_dir(), Path::new(name)).unwrap();
        let list = List {
            project_name: "p".into(),
            entries: ["../precious.txt", "prompt.md", "decide.txt"].map(meta).to_vec(),
        };
        place.write("ralph-archive/evil/.not-yet-reset.json", &serde_json::to_string(&list).unwrap());
        let finished = recover(&place.1).unwrap();
        assert_eq!(finished[0].left, ["ralph/decide.txt"], "it is not in the archive");
        for (name, text) in
            [("precious.txt", "x"), ("ralph/prompt.md", "my prompt"), ("ralph/decide.txt", "?")]
        {
            assert_eq!(place.read(name).as_deref(), Some(text), "{name}");
        }
    }

    #[test]
    fn a_folder_that_leads_out_of_the_project_is_refused() {
        let (place, other) = (Place::new(), Place::new());
        fs::remove_dir_all(place.1.work_dir()).unwrap();
        std::os::unix::fs::symlink(other.1.work_dir(), place.1.work_dir()).unwrap();
        assert!(place.archive().unwrap_err().to_string().contains("out of the project"));
        assert_eq!(other.read("ralph/logs/iteration-001.log").as_deref(), Some("log"));
    }

    #[test]
    fn a_name_is_taken_once() {
        let place = Place::new();
        place.write("ralph-archive/n/tasks.json", "older");
        let archived = place.archive().unwrap();
        assert!(archived.dir.ends_with("ralph-archive/n-2"), "{archived:?}");
        assert_eq!(place.read("ralph-archive/n/tasks.json").as_deref(), Some("older"));
    }

    #[test]
    fn fresh_is_what_init_made() {
        let place = Place::new();
        assert!(!is_fresh(&place.1, "p"));
        place.archive().unwrap();
        assert!(is_fresh(&place.1, "p"));
        place.write("ralph/notes.md", "somebody else's");
        assert!(is_fresh(&place.1, "p"));
        place.write("ralph/blocked.txt", "?");
        assert!(!is_fresh(&place.1, "p"));
    }

    #[test]
    fn a_file_that_is_a_link_is_copied_and_stays() {
        let place = Place::new();
        place.write("docs/prd.md", "wanted");
        fs::remove_file(place.1.root.join("ralph/prd.md")).unwrap();
        std::os::unix::fs::symlink("../docs/prd.md", place.1.root.join("ralph/prd.md")).unwrap();
        let archived = place.archive().unwrap();
        assert_eq!(archived.left, ["ralph/prd.md"]);
        assert_eq!(place.read("ralph-archive/n/prd.md").as_deref(), Some("wanted"));
        assert_eq!(place.read("docs/prd.md").as_deref(), Some("wanted"));
        assert!(fs::symlink_metadata(place.1.root.join("ralph-archive/n/prd.md")).unwrap().is_file());
    }
}
