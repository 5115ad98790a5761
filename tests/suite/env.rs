//! A hermetic world for whole-program tests: own home, project and user folders, no inherited variable,
//! and a clock the test sets.

use serde_json::{Map, Value, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

use crate::transcript::Transcript;

/// As long as the client's own ids, so that screens are tested at their real width.
pub const SESSION: &str = "0f8c1a9e-6b1d-4c5e-9a57-3f2f4d6f7a01";
pub const OTHER: &str = "7be0d3c2-1f4a-4d0b-8a66-9d1e5c2b4f02";

/// The test clock's zero: 2026-11-16T08:00:00Z.
pub const T0: i64 = 1_794_816_000;
pub const MINUTE: i64 = 60;
pub const HOUR: i64 = 3600;

pub const DONE: &str = "All green.\n\n<promise>COMPLETE</promise>";

#[derive(Clone, Copy, Debug)]
pub enum Program {
    Ralph,
    Guidance,
    StopHook,
    SessionStartHook,
}

impl Program {
    pub fn path(self) -> &'static str {
        match self {
            Program::Ralph => env!("CARGO_BIN_EXE_ralph"),
            Program::Guidance => env!("CARGO_BIN_EXE_ralph-guidance"),
            Program::StopHook => env!("CARGO_BIN_EXE_ralph-stop-hook"),
            Program::SessionStartHook => env!("CARGO_BIN_EXE_ralph-session-start-hook"),
        }
    }
}

/// RFC 3339 of a moment on the test clock.
pub fn stamp(seconds: i64) -> String {
    chrono::DateTime::from_timestamp(T0 + seconds, 0).expect("a time").to_rfc3339()
}

pub struct Env {
    folder: TempDir,
    pub base: PathBuf,
    pub project: PathBuf,
    now: Cell<i64>,
    vars: RefCell<BTreeMap<String, Option<String>>>,
}

impl Env {
    pub fn new() -> Env {
        Env::named("project")
    }

    /// A world whose project folder has this name.
    pub fn named(project: impl AsRef<OsStr>) -> Env {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let base = folder.path().canonicalize().expect("its real path");
        let project = base.join(project.as_ref());
        for dir in [&base.join("home"), &project, &base.join("data"), &base.join("config")] {
            fs::create_dir(dir).expect("a folder of the world");
        }
        Env { folder, base, project, now: Cell::new(0), vars: RefCell::default() }
    }

    /// A world in which turns may repeat themselves and change nothing: only idleness trips the breaker.
    pub fn patient() -> Env {
        let env = Env::new();
        for condition in ["STAGNATION", "REPETITION", "OUTPUT_DECLINE"] {
            env.var(&format!("RALPH_CIRCUIT_{condition}"), "0");
        }
        env
    }

    /// A world whose project is a git repository, as far as files tell.
    pub fn git() -> Env {
        let env = Env::new();
        env.git_init(&env.project);
        env
    }

    pub fn git_init(&self, top: &Path) {
        fs::create_dir_all(top.join(".git/info")).unwrap();
        fs::write(top.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
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

    /// Names in a folder of the project, sorted; empty where there is none.
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

    /// A program anywhere, in this world.
    pub fn call_at(&self, program: &Path) -> Call {
        let mut command = heeding(program);
        command.env_clear().current_dir(&self.project);
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.base.join("home"));
        command.env("RALPH_DATA_DIR", self.data()).env("RALPH_CONFIG_DIR", self.base.join("config"));
        command.env("RALPH_NOW", stamp(self.now.get()));
        for (name, value) in self.vars.borrow().iter() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Call { command, stdin: Vec::new() }
    }

    pub fn ralph(&self, args: &[&str]) -> Run {
        self.call(Program::Ralph).args(args).run()
    }

    pub fn guidance(&self, args: &[&str]) -> Run {
        self.call(Program::Guidance).args(args).run()
    }

    /// The findings of a scan now, whatever its exit code.
    pub fn findings(&self) -> Vec<Value> {
        let run = self.ralph(&["scan", "--json"]);
        assert!(run.stderr.is_empty() && matches!(run.code, Some(0 | 2)), "{run:?}");
        let scan: Value = serde_json::from_str(&run.stdout).expect("scan --json is one JSON object");
        scan["findings"].as_array().expect("findings").clone()
    }

    /// Starts a loop in the session, which must work.
    pub fn start_in(&self, session: &str, task: &str, flags: &[&str]) -> String {
        let mut args = vec!["start", "--session", session];
        args.extend(flags);
        args.extend(["--", task]);
        self.ralph(&args).ok()
    }

    pub fn start(&self, task: &str, flags: &[&str]) -> String {
        self.start_in(SESSION, task, flags)
    }

    /// A Stop of this session.
    pub fn stop(&self, session: &str) -> Event<'_> {
        self.event(Program::StopHook, session, "Stop").field("stop_hook_active", true)
    }

    /// A Stop with a message, the shortest way to one more turn.
    pub fn turn(&self, session: &str, message: &str) -> Answer {
        self.stop(session).says(message).run()
    }

    pub fn session_start(&self, session: &str, source: &str) -> Event<'_> {
        self.event(Program::SessionStartHook, session, "SessionStart").field("source", source)
    }

    /// A slash command of ours, before it expands.
    pub fn types(&self, session: &str, command: &str, text: &str) -> Answer {
        let event = self.event(Program::SessionStartHook, session, "UserPromptExpansion");
        event.field("command_name", format!("ralph:{command}")).field("command_args", text).run()
    }

    pub fn event(&self, program: Program, session: &str, name: &str) -> Event<'_> {
        let fields = json!({
            "session_id": session, "cwd": self.project, "hook_event_name": name, "permission_mode": "default",
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

    /// The loop of a session as it is on disk.
    pub fn lap(&self, session: &str) -> Value {
        self.state()["loops"][session].clone()
    }

    /// Rewrites the state file as somebody else would.
    pub fn edit_state(&self, change: impl FnOnce(&mut Value)) -> &Env {
        let mut state = self.state();
        change(&mut state);
        self.write(".claude/ralph-state.json", serde_json::to_string_pretty(&state).unwrap())
    }

    pub fn status(&self) -> Value {
        let text = self.ralph(&["status", "--json"]).ok();
        serde_json::from_str(&text).expect("status --json is one JSON object")
    }

    /// The loop of a session as `ralph status --json` shows it.
    pub fn shown(&self, session: &str) -> Value {
        let status = self.status();
        let loops = status["loops"].as_array().expect("loops").clone();
        loops.into_iter().find(|lap| lap["session_id"] == session).unwrap_or(Value::Null)
    }

    pub fn history(&self) -> Vec<Value> {
        let text = self.ralph(&["history", "--json"]).ok();
        text.lines().map(|line| serde_json::from_str(line).expect("one JSON object a line")).collect()
    }

    /// Every file below project and user folders, with what a write would change.
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

pub fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o777
}

/// A hook call under construction.
pub struct Event<'e> {
    env: &'e Env,
    program: Program,
    fields: Map<String, Value>,
}

impl Event<'_> {
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.into(), value.into());
        self
    }

    pub fn says(self, message: &str) -> Self {
        self.field("last_assistant_message", message)
    }

    pub fn with(self, transcript: &Transcript) -> Self {
        let path = transcript.path.to_str().unwrap().to_owned();
        self.field("transcript_path", path)
    }

    pub fn prompt_id(self, id: &str) -> Self {
        self.field("prompt_id", id)
    }

    pub fn background(self, description: &str) -> Self {
        let task = json!({"id": "b1", "type": "shell", "status": "running", "description": description});
        self.field("background_tasks", json!([task]))
    }

    pub fn call(self) -> Call {
        let bytes = Value::Object(self.fields).to_string();
        self.env.call(self.program).stdin(bytes)
    }

    pub fn run(self) -> Answer {
        self.call().run().answer()
    }
}

/// One program about to run.
pub struct Call {
    command: Command,
    stdin: Vec<u8>,
}

impl Call {
    pub fn args<S: AsRef<OsStr>>(mut self, args: &[S]) -> Self {
        self.command.args(args);
        self
    }

    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    pub fn var(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub fn cwd(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Started deaf to the end of its terminal.
    pub fn nohup(self) -> Self {
        let mut command = Command::new("nohup");
        command.arg(self.command.get_program()).args(self.command.get_args()).env_clear();
        command.envs(self.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(self.command.get_current_dir().unwrap());
        Call { command, ..self }
    }

    /// With a keyboard in place of the input; what is written to it is typed.
    pub fn typed(mut self) -> (Child, fs::File) {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&keyboard).and_then(|()| unlockpt(&keyboard)).expect("a terminal of ours");
        let name = ptsname(&keyboard, Vec::new()).expect("its name");
        let terminal = fs::OpenOptions::new().read(true).write(true).open(OsStr::new(name.to_str().unwrap()));
        self.command.stdin(terminal.expect("the other side")).stdout(Stdio::piped()).stderr(Stdio::piped());
        (self.command.spawn().expect("the program starts"), keyboard.into())
    }

    pub fn spawn(mut self) -> Running {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the program starts");
        let mut pipe = child.stdin.take().unwrap();
        let bytes = self.stdin;
        // A program that does not read all of its input is no failure of the test.
        let writer = std::thread::spawn(move || drop(pipe.write_all(&bytes)));
        Running { child, writer }
    }

    pub fn run(self) -> Run {
        self.spawn().wait()
    }
}

pub struct Running {
    pub child: Child,
    writer: std::thread::JoinHandle<()>,
}

impl Running {
    pub fn wait(mut self) -> Run {
        let mut errors = self.child.stderr.take().unwrap();
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            errors.read_to_end(&mut text).unwrap();
            text
        });
        let mut text = Vec::new();
        self.child.stdout.take().unwrap().read_to_end(&mut text).unwrap();
        let status = self.child.wait().unwrap();
        self.writer.join().unwrap();
        let stderr = String::from_utf8(errors.join().unwrap()).expect("stderr is text");
        let stdout = String::from_utf8(text).expect("stdout is text");
        Run { code: status.code(), stdout, stderr }
    }
}

#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// It worked and had nothing to complain about: its stdout.
    pub fn ok(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{}", self.stdout);
        self.stdout
    }

    /// It failed with this code and printed nothing for a script to mistake: its stderr.
    pub fn fails(self, code: i32) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (Some(code), ""), "{}", self.stderr);
        assert!(!self.stderr.trim().is_empty(), "a failure says why");
        self.stderr
    }

    /// The answer of a hook: exit 0, nothing on stderr, and exactly one JSON object or nothing.
    pub fn answer(self) -> Answer {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{}", self.stdout);
        if self.stdout.is_empty() {
            return Answer::default();
        }
        let value: Value = serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("a hook prints one JSON object or nothing: {error}\n{}", self.stdout)
        });
        let fields = value.as_object().expect("an object");
        for name in fields.keys() {
            let known = ["decision", "reason", "systemMessage", "hookSpecificOutput"];
            assert!(known.contains(&name.as_str()), "the client does not know '{name}'");
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let block = (value["decision"] == "block").then(|| text(&value["reason"]).expect("a reason"));
        let context = text(&value["hookSpecificOutput"]["additionalContext"]);
        Answer { block, message: text(&value["systemMessage"]), context }
    }
}

#[derive(Debug, Default, PartialEq)]
pub struct Answer {
    /// The agent's next prompt, or the answer to a refused command.
    pub block: Option<String>,
    /// What the user reads.
    pub message: Option<String>,
    /// What goes into the context.
    pub context: Option<String>,
}

impl Answer {
    pub fn silent(&self) {
        assert_eq!(self, &Answer::default(), "nothing was expected");
    }

    /// The loop goes on: the agent's prompt.
    pub fn goes_on(&self) -> &str {
        self.block.as_deref().unwrap_or_else(|| panic!("the loop should go on: {self:?}"))
    }

    /// The stop is allowed: what the user is told.
    pub fn allows(&self) -> &str {
        assert_eq!(self.block, None, "the stop should be allowed");
        self.message.as_deref().unwrap_or_else(|| panic!("the user should be told: {self:?}"))
    }

    /// The loop ended here with this outcome, in words.
    pub fn ended(&self, outcome: &str) -> &str {
        let told = self.allows();
        assert!(told.contains("ended") && told.contains(outcome), "not an ending by {outcome}: {told}");
        told
    }
}

impl Drop for Env {
    fn drop(&mut self) {
        // Folders that a test made read-only would keep the temporary folder from being removed.
        let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(self.folder.path()).status();
    }
}

/// Whether permissions mean nothing to this process, as for root.
pub fn ignores_permissions() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sealed");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o500)).unwrap();
    fs::write(path.join("x"), "x").is_ok()
}

/// Whoever starts the tests may ignore interrupts or hang-ups (`nohup`, `&` in a script), and what they start inherits
/// that, as users mean it to. The programs under test begin like those of an ordinary terminal.
fn heeding(program: &Path) -> Command {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // SIGHUP is 1, SIGINT 2, SIGQUIT 3.
    if ignored & 0b111 == 0 {
        return Command::new(program);
    }
    let mut command = Command::new("/usr/bin/env");
    command.arg("--default-signal=HUP,INT,QUIT").arg(program);
    command
}
