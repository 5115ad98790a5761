//! Repositories that were made to do harm: whatever our files in them are, nothing outside is changed, nothing of
//! another file is shown or kept, and every program answers.

mod git;
mod seen;
mod table;

use crate::env::{Call, Cost, Env, Run};
use crate::skip::skip;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// What is in every file that a repository could want to have. It must not appear anywhere else.
pub const CANARY: &str = "CANARY-7f3d";
/// What a program may allocate, where the system can limit it.
const MAX_MEMORY_MB: u64 = 100;
/// What a program may read, and how long it may compute. A test is not told how long a program waits for others; these
/// say the same on a busy machine.
const MAX_READ_MB: u64 = 16;
const MAX_COPY_MB: u64 = 600;
const MAX_CPU_MS: u64 = 5000;

/// A project with secrets in it and beside it.
pub struct Hostile {
    pub env: Env,
}

impl Hostile {
    pub fn new() -> Hostile {
        let env = Env::git();
        let secret = format!("export KEY={CANARY}\n");
        for folder in ["outside/folder", "outside/repo/.git/info"] {
            fs::create_dir_all(env.base.join(folder)).unwrap();
        }
        let outside = [
            ("file", secret.as_str()),
            ("folder/file", &secret),
            ("repo/.git/HEAD", "ref: refs/heads/main\n"),
            ("repo/.git/config", &secret),
            ("repo/.git/info/exclude", "# theirs\n"),
        ];
        for (name, text) in outside {
            fs::write(env.base.join("outside").join(name), text).unwrap();
        }
        env.write(".env", &secret).write(".git/config", format!("[remote]\n\turl = {CANARY}\n"));
        env.write("src/main.rs", "fn main() {}\n").write("ralph/prompt.md", "Do the work.\n");
        env.write("ralph/progress.txt", "Half of it is done.\n");
        fs::create_dir(env.path(".claude")).unwrap();
        Hostile { env }
    }

    pub fn outside(&self, name: &str) -> PathBuf {
        self.env.base.join("outside").join(name)
    }

    /// Makes a file of the project a link, in place of what is there.
    pub fn link(&self, place: &str, target: impl AsRef<Path>) -> &Hostile {
        symlink(target, self.free(place)).unwrap();
        self
    }

    pub fn pipe(&self, place: &str) -> &Hostile {
        make("mkfifo", &[], &self.free(place));
        self
    }

    /// Makes room for a file of the project and returns its path.
    pub fn free(&self, place: &str) -> PathBuf {
        let path = self.env.path(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match path.symlink_metadata() {
            Ok(meta) if meta.is_dir() => fs::remove_dir_all(&path).unwrap(),
            Ok(_) => fs::remove_file(&path).unwrap(),
            Err(_) => {}
        }
        path
    }

    /// Runs a program and asserts that it ended by itself and showed nothing of another file.
    pub fn run(&self, what: &str, call: Call) -> Run {
        let run = call.max_memory_mb(MAX_MEMORY_MB).run();
        assert!(matches!(run.code, Some(code) if code != 101 && code < 128), "{what}: {run:?}");
        assert_bounded(what, &run);
        for text in [&run.stdout, &run.stderr] {
            assert!(!text.contains(CANARY), "{what} shows another file: {run:?}");
        }
        run
    }

    /// Returns what must stay as it is: everything outside, and the repository's and the user's own files inside.
    pub fn victims(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        read_all(&self.env.base.join("outside"), &mut found);
        for name in [".env", ".git/HEAD", ".git/config"] {
            let path = self.env.path(name);
            if path.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.len() < 1 << 20) {
                found.insert(path.clone(), fs::read(path).unwrap());
            }
        }
        found
    }

    /// Asserts that no file that we wrote holds anything of another: in the project, in the user's records, and what
    /// the agent was given.
    pub fn assert_nothing_leaked(&self, what: &str) {
        let mut found = BTreeMap::new();
        read_all(&self.env.base, &mut found);
        let theirs = [self.env.base.join("outside"), self.env.path(".env"), self.env.path(".git/config")];
        for (path, bytes) in found.iter().filter(|(path, _)| !theirs.iter().any(|own| path.starts_with(own)))
        {
            let text = String::from_utf8_lossy(bytes);
            assert!(!text.contains(CANARY), "{what}: {} holds another file: {text}", path.display());
        }
    }
}

/// Asserts that a program did a bounded amount of work, where the system tells.
pub fn assert_bounded(what: &str, run: &Run) {
    let Some(Cost { read_bytes, cpu_ms }) = run.cost else {
        thread_local!(static IS_SAID: Cell<bool> = const { Cell::new(false) });
        if !IS_SAID.replace(true) {
            skip(
                "the system does not tell what a program of this user has read, so that is not limited here",
            );
        }
        return;
    };
    // What the user has copied is read.
    let copies = what.ends_with("install --to") || what.ends_with("archive");
    let max = if copies { MAX_COPY_MB } else { MAX_READ_MB };
    assert!(read_bytes >> 20 < max, "{what} reads {read_bytes} bytes: {run:?}");
    assert!(cpu_ms < MAX_CPU_MS, "{what} takes {cpu_ms} ms of CPU: {run:?}");
}

/// Reads every regular file below a folder that is not huge; folders are listed as empty files.
fn read_all(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, meta) = (entry.path(), entry.path().symlink_metadata().unwrap());
        if meta.is_dir() {
            read_all(&path, found);
            found.insert(path, Vec::new());
        } else if meta.is_file() && meta.len() < 10 << 20 {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
}

/// Makes something with a program of the system: the standard library makes neither pipes nor devices.
pub fn make(program: &str, args: &[&str], path: &Path) {
    let made = std::process::Command::new(program).arg(path).args(args).status().unwrap();
    assert!(made.success(), "{program} {}", path.display());
}
