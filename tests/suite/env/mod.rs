//! A hermetic world for whole-program tests: its own home, project and user folders, no inherited variable,
//! and a clock the test sets.

mod call;
mod clock;
mod hooks;
mod running;
mod terminal;
mod watch;

pub use call::{Call, Program, copy_program, write_program};
pub use clock::{Clock, MAX_WAIT, wait_for, wait_until};
pub use hooks::{Answer, Event};
pub use running::{Cost, Run, Running};
pub use terminal::Terminal;
pub use watch::{Access, FileEvents};

use crate::transcript::Transcript;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// As long as the client's own ids, so that screens are tested at their real width.
pub const SESSION: &str = "0f8c1a9e-6b1d-4c5e-9a57-3f2f4d6f7a01";
pub const OTHER: &str = "7be0d3c2-1f4a-4d0b-8a66-9d1e5c2b4f02";

/// The test clock's zero: 2026-11-16T08:00:00Z.
pub const T0: i64 = 1_794_816_000;
pub const MINUTE: i64 = 60;
pub const HOUR: i64 = 3600;

pub const DONE: &str = "All green.\n\n<promise>COMPLETE</promise>";

/// Returns a moment on the test clock in RFC 3339.
pub fn stamp(seconds: i64) -> String {
    chrono::DateTime::from_timestamp(T0 + seconds, 0).expect("a time").to_rfc3339()
}

pub struct Env {
    folder: TempDir,
    pub base: PathBuf,
    pub project: PathBuf,
    now: Cell<i64>,
    is_real_time: Cell<bool>,
    vars: RefCell<BTreeMap<String, Option<String>>>,
}

impl Env {
    pub fn new() -> Env {
        Env::named("project")
    }

    /// Returns a world whose project folder has this name.
    pub fn named(project: impl AsRef<OsStr>) -> Env {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let base = folder.path().canonicalize().expect("its real path");
        let project = base.join(project.as_ref());
        for dir in [&base.join("home"), &project, &base.join("data"), &base.join("config")] {
            fs::create_dir(dir).expect("a folder of the world");
        }
        Env {
            folder,
            base,
            project,
            now: Cell::new(0),
            is_real_time: Cell::new(false),
            vars: RefCell::default(),
        }
    }

    /// Returns a world in which turns may repeat and change nothing: only idleness trips the breaker.
    pub fn without_breaker() -> Env {
        let env = Env::new();
        for condition in ["STAGNATION", "REPETITION", "OUTPUT_DECLINE"] {
            env.var(&format!("RALPH_CIRCUIT_{condition}"), "0");
        }
        env
    }

    /// Returns a world whose project is a git repository, as far as files tell.
    pub fn git() -> Env {
        let env = Env::new();
        env.git_init(&env.project);
        env
    }

    pub fn git_init(&self, top: &Path) {
        fs::create_dir_all(top.join(".git/info")).unwrap();
        fs::write(top.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    /// Makes a linked worktree of the project's repository, as git lays it out.
    pub fn worktree(&self, at: &Path) -> PathBuf {
        let git_dir = self.path(".git/worktrees/wt");
        fs::create_dir_all(&git_dir).unwrap();
        fs::create_dir_all(at).unwrap();
        fs::write(at.join(".git"), format!("gitdir: {}\n", git_dir.display())).unwrap();
        fs::write(git_dir.join("gitdir"), format!("{}\n", at.join(".git").display())).unwrap();
        fs::write(git_dir.join("commondir"), "../..\n").unwrap();
        fs::write(git_dir.join("HEAD"), "ref: refs/heads/wt\n").unwrap();
        at.to_owned()
    }

    /// Sets the clock, in seconds after the test's zero.
    pub fn at(&self, seconds: i64) -> &Env {
        self.now.set(seconds);
        self
    }

    /// Sets a variable for every program from here on.
    pub fn var(&self, name: &str, value: &str) -> &Env {
        self.vars.borrow_mut().insert(name.into(), Some(value.into()));
        self
    }

    pub fn without(&self, name: &str) -> &Env {
        self.vars.borrow_mut().insert(name.into(), None);
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.project.join(name)
    }

    pub fn data(&self) -> PathBuf {
        self.base.join("data")
    }

    /// Writes a file of the project, with its folders.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> &Env {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn exists(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    /// Returns the sorted names in a folder of the project; none if there is no such folder.
    pub fn list(&self, name: &str) -> Vec<String> {
        names_in(&self.path(name))
    }

    pub fn call(&self, program: Program) -> Call {
        let call = self.call_at(Path::new(program.path()));
        match program {
            Program::Ralph | Program::Guidance => call,
            Program::StopHook | Program::SessionStartHook => call.var("CLAUDE_PROJECT_DIR", &self.project),
        }
    }

    /// Returns a call of any program in this world.
    pub fn call_at(&self, program: &Path) -> Call {
        let seconds = self.now.get();
        let now = if self.is_real_time.get() { stamp(seconds).into() } else { clock::still(seconds) };
        let mut call = Call::new(program)
            .cwd(&self.project)
            .var("PATH", "/usr/local/bin:/usr/bin:/bin")
            .var("HOME", self.base.join("home"))
            .var("RALPH_DATA_DIR", self.data())
            .var("RALPH_CONFIG_DIR", self.base.join("config"))
            .var("RALPH_NOW", now);
        for (name, value) in self.vars.borrow().iter() {
            call = match value {
                Some(value) => call.var(name, value),
                None => call.without(name),
            };
        }
        call
    }

    pub fn ralph(&self, args: &[&str]) -> Run {
        self.call(Program::Ralph).args(args).run()
    }

    pub fn guidance(&self, args: &[&str]) -> Run {
        self.call(Program::Guidance).args(args).run()
    }

    /// Returns the findings of a scan.
    pub fn findings(&self) -> Vec<Value> {
        let run = self.ralph(&["scan", "--json"]);
        assert!(run.stderr.is_empty() && matches!(run.code, Some(0 | 2)), "{run:?}");
        let scan: Value = serde_json::from_str(&run.stdout).expect("scan --json is one JSON object");
        scan["findings"].as_array().expect("findings").clone()
    }

    /// Starts a loop in the session.
    pub fn start_in(&self, session: &str, task: &str, flags: &[&str]) -> String {
        let mut args = vec!["start", "--session", session];
        args.extend(flags);
        args.extend(["--", task]);
        self.ralph(&args).ok()
    }

    pub fn start(&self, task: &str, flags: &[&str]) -> String {
        self.start_in(SESSION, task, flags)
    }

    /// Returns a call of the Stop hook.
    pub fn stop(&self, session: &str) -> Event<'_> {
        self.event(Program::StopHook, session, "Stop").field("stop_hook_active", true)
    }

    /// Runs the Stop hook with this message: one more turn of the agent.
    pub fn turn(&self, session: &str, message: &str) -> Answer {
        self.stop(session).says(message).run()
    }

    /// Has another loop of the project end with this question.
    pub fn ask(&self, question: &str) {
        self.start_in("asker", "ask", &["--ignore-open-questions"]);
        self.turn("asker", &format!("<promise>DECIDE:{question}</promise>")).ended("decide");
    }

    pub fn session_start(&self, session: &str, source: &str) -> Event<'_> {
        self.event(Program::SessionStartHook, session, "SessionStart").field("source", source)
    }

    /// Types a slash command of the plugin and returns what the hook answers before it expands.
    pub fn types(&self, session: &str, command: &str, text: &str) -> Answer {
        let event = self.event(Program::SessionStartHook, session, "UserPromptExpansion");
        event.field("command_name", format!("ralph:{command}")).field("command_args", text).run()
    }

    /// Submits a prompt, before the agent reads it.
    pub fn submits(&self, session: &str, prompt: &str) -> Event<'_> {
        let event = self.event(Program::SessionStartHook, session, "UserPromptSubmit");
        event.field("prompt", prompt).prompt_id("prompt-1")
    }

    pub fn event(&self, program: Program, session: &str, name: &str) -> Event<'_> {
        let fields = json!({
            "session_id": session, "cwd": self.project, "hook_event_name": name, "permission_mode": "auto",
            "transcript_path": self.base.join("no-transcript.jsonl"), "background_tasks": [], "session_crons": [],
        });
        let Value::Object(fields) = fields else { unreachable!() };
        Event { env: self, program, fields }
    }

    pub fn transcript(&self) -> Transcript {
        Transcript::new(&self.base.join("transcript.jsonl"))
    }

    pub fn state(&self) -> Value {
        serde_json::from_str(&self.read(".claude/ralph-state.json")).expect("a state file that parses")
    }

    /// Returns the loop of a session as it is on disk.
    pub fn record(&self, session: &str) -> Value {
        self.state()["loops"][session].clone()
    }

    /// Rewrites the state file, as another program could.
    pub fn edit_state(&self, change: impl FnOnce(&mut Value)) -> &Env {
        let mut state = self.state();
        change(&mut state);
        self.write(".claude/ralph-state.json", serde_json::to_string_pretty(&state).unwrap())
    }

    /// Sets the guidance in the state file and records it as this user's, as `ralph-guidance` does.
    pub fn set_guidance(&self, guidance: Value) -> &Env {
        self.edit_state(|state| state["guidance"] = guidance).record_guidance()
    }

    /// Records the guidance in the state file as this user's.
    pub fn record_guidance(&self) -> &Env {
        let key = ralph::store::Project { root: self.project.clone() }.key();
        let record = json!({"project": self.project, "guidance": self.state()["guidance"]});
        fs::create_dir_all(self.data().join("given")).unwrap();
        fs::write(self.data().join(format!("given/{key}.json")), record.to_string()).unwrap();
        self
    }

    pub fn status(&self) -> Value {
        let text = self.ralph(&["status", "--json"]).ok();
        serde_json::from_str(&text).expect("status --json is one JSON object")
    }

    /// Returns the loop of a session as `ralph status --json` shows it.
    pub fn shown(&self, session: &str) -> Value {
        let status = self.status();
        let loops = status["loops"].as_array().expect("loops").clone();
        loops.into_iter().find(|record| record["session_id"] == session).unwrap_or(Value::Null)
    }

    pub fn history(&self) -> Vec<Value> {
        let text = self.ralph(&["history", "--json"]).ok();
        text.lines().map(|line| serde_json::from_str(line).expect("one JSON object a line")).collect()
    }

    /// Returns all folders of the project and of the user's records.
    pub fn folders(&self) -> Vec<PathBuf> {
        let mut found = vec![self.project.clone(), self.data()];
        let mut next = 0;
        while let Some(folder) = found.get(next) {
            let entries = fs::read_dir(folder).unwrap().flatten();
            let below: Vec<_> =
                entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).collect();
            found.extend(below.iter().map(fs::DirEntry::path));
            next += 1;
        }
        found
    }

    /// Returns every file of this world with what a write would change: inode, time and size.
    pub fn snapshot(&self) -> BTreeMap<PathBuf, (u64, i64, i64, u64)> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.base.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let meta = entry.path().symlink_metadata().unwrap();
                if meta.is_dir() {
                    folders.push(entry.path());
                }
                found.insert(entry.path(), (meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len()));
            }
        }
        found
    }
}

pub fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The file of a slash command in a plugin: a command, or a skill if it registers hooks.
pub fn command_file(plugin: &Path, name: &str) -> PathBuf {
    let skill = plugin.join("skills").join(name).join("SKILL.md");
    if skill.is_file() { skill } else { plugin.join("commands").join(format!("{name}.md")) }
}

pub fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o777
}

impl Drop for Env {
    fn drop(&mut self) {
        // Folders that a test made read-only keep the temporary folder from being removed.
        if fs::remove_dir_all(self.folder.path()).is_err() {
            let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(self.folder.path()).status();
        }
    }
}

/// Returns whether permissions mean nothing to this process, as for root.
pub fn ignores_permissions() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sealed");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o500)).unwrap();
    fs::write(path.join("x"), "x").is_ok()
}
