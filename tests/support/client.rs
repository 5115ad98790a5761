//! The real Claude Code in a world of its own: nothing inherited, everything below one temporary folder.
//!
//! [`Client::find`] says where the program is, [`Session`] describes how to start it, `print` runs it once with
//! `-p`; `tmux::Screen` shows the same session as a person sees it.
#![allow(dead_code, reason = "each test crate uses its own part of the support")]

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use serde_json::json;
use tempfile::TempDir;

use crate::messages_api::Api;
use crate::run::{Output, Running};
use crate::skip::skip;

pub struct Client;

impl Client {
    /// The program to test with. Without one the test says so and has to return, except where
    /// `RALPH_E2E_REQUIRED=1` promises that there is one.
    pub fn find() -> Option<PathBuf> {
        if let Some(chosen) = env::var_os("RALPH_E2E_CLAUDE").map(PathBuf::from) {
            assert!(runs(&chosen, "--version"), "RALPH_E2E_CLAUDE={}: does not run", chosen.display());
            return Some(chosen);
        }
        let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/client/node_modules");
        let found = installed_programs(&modules).into_iter().find(|program| runs(program, "--version"));
        if found.is_none() {
            skip("the real Claude Code is not installed (npm ci --prefix tests/e2e/client)");
        }
        found
    }

    /// An older version, by the alias under which the tests' package has it.
    pub fn find_version(version: &str) -> Option<PathBuf> {
        let folder = format!("tests/e2e/client/node_modules/claude-code-{version}");
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let programs = installed_programs(&package.join("node_modules"));
        let found = programs.into_iter().find(|program| runs(program, "--version"));
        if found.is_none() {
            skip(&format!("Claude Code {version} is not installed (npm ci --prefix tests/e2e/client)"));
        }
        found
    }
}

/// The package of the platform comes first: where npm skips install scripts, `.bin/claude` only prints advice.
fn installed_programs(modules: &Path) -> Vec<PathBuf> {
    let packages = fs::read_dir(modules.join("@anthropic-ai")).into_iter().flatten().flatten();
    let mut programs: Vec<_> = packages.map(|package| package.path().join("claude")).collect();
    programs.retain(|program| program.is_file());
    programs.sort();
    programs.push(modules.join(".bin/claude"));
    programs
}

/// Whether a program exists and answers the question for its version.
pub fn runs(program: &Path, version_flag: &str) -> bool {
    let asked = Command::new(program)
        .arg(version_flag)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}

/// One user with one project, and how Claude Code is started there. Several runs may share it.
pub struct Session {
    claude: PathBuf,
    folder: TempDir,
    root: PathBuf,
    env: Vec<(OsString, OsString)>,
    args: Vec<OsString>,
    timeout: Duration,
}

impl Session {
    pub fn new(claude: &Path, api: &Api) -> Self {
        let folder = tempfile::Builder::new().prefix("ralph-e2e-").tempdir().expect("a temporary folder");
        // The client stores projects by their real path; the temporary folder may be behind a link.
        let root = folder.path().canonicalize().expect("the temporary folder's real path");
        let session = Self {
            claude: claude.to_owned(),
            folder,
            root,
            env: Vec::new(),
            args: Vec::new(),
            timeout: Duration::from_secs(300),
        };
        let folders = [
            session.home(),
            session.claude_config(),
            session.project(),
            session.data_dir(),
            session.config_dir(),
        ];
        for folder in &folders {
            fs::create_dir_all(folder).expect("a folder of the session");
        }
        session.accept_first_questions();
        let [home, claude_config, _, data, config] = folders;
        session
            .env("PATH", search_path())
            .env("HOME", home)
            .env("CLAUDE_CONFIG_DIR", claude_config)
            .env("RALPH_DATA_DIR", data)
            .env("RALPH_CONFIG_DIR", config)
            .env("LANG", "C.UTF-8")
            .env("ANTHROPIC_API_KEY", API_KEY)
            .env("ANTHROPIC_BASE_URL", api.url())
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1")
    }

    /// Sets a variable; a later value replaces an earlier one.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.retain(|(known, _)| known != name.as_ref());
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Takes a variable away again.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self
    }

    /// Adds an argument for every run.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    #[must_use]
    pub fn plugin(self, folder: &Path) -> Self {
        self.arg("--plugin-dir").arg(folder)
    }

    /// Lets the agent use these tools without asking, for example `Bash`.
    #[must_use]
    pub fn allow(self, tools: &str) -> Self {
        self.arg("--allowedTools").arg(tools)
    }

    /// How long one `-p` run may take before it is killed and the test fails.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Runs `claude -p` to its end.
    pub fn print(&self, prompt: &str) -> Output {
        self.spawn_print(prompt, &[]).wait()
    }

    /// Runs `claude -p` in an earlier conversation.
    pub fn resume(&self, session_id: &str, prompt: &str) -> Output {
        self.spawn_print(prompt, &["--resume", session_id]).wait()
    }

    /// Starts `claude -p` and leaves it running.
    pub fn spawn_print(&self, prompt: &str, args: &[&str]) -> Running {
        let mut command = Command::new(&self.claude);
        // The prompt goes first: options that take a list, such as --allowedTools, would swallow it.
        command
            .args(["-p", prompt, "--output-format", "stream-json", "--verbose"])
            .args(&self.args)
            .args(args);
        command.env_clear().envs(self.variables()).current_dir(self.project());
        Running::start(command, &self.root, self.timeout)
    }

    pub fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Where Claude Code keeps its settings and transcripts.
    pub fn claude_config(&self) -> PathBuf {
        self.root.join("home/.claude")
    }

    pub fn data_dir(&self) -> PathBuf {
        self.root.join("ralph-data")
    }

    pub fn config_dir(&self) -> PathBuf {
        self.root.join("ralph-config")
    }

    /// The folder around all the others.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn program(&self) -> &Path {
        &self.claude
    }

    pub fn args(&self) -> &[OsString] {
        &self.args
    }

    /// The whole environment of the client.
    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// The transcript that was written to last.
    pub fn transcript(&self) -> PathBuf {
        let projects = fs::read_dir(self.claude_config().join("projects")).into_iter().flatten().flatten();
        let files = projects.flat_map(|project| fs::read_dir(project.path()).into_iter().flatten().flatten());
        files
            .map(|file| file.path())
            .filter(|path| path.extension() == Some(OsStr::new("jsonl")))
            .max_by_key(|path| path.metadata().and_then(|file| file.modified()).ok())
            .expect("a transcript, which the client writes with the first prompt")
    }

    /// Answers what the TUI would ask a new user before the first prompt.
    fn accept_first_questions(&self) {
        let answers = json!({
            "hasCompletedOnboarding": true,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [API_KEY]},
            "projects": {self.project().to_string_lossy(): {"hasTrustDialogAccepted": true}},
        });
        fs::write(self.claude_config().join(".claude.json"), answers.to_string())
            .expect("the client's state file");
    }
}

const API_KEY: &str = "sk-ant-dummy";

/// The system's programs, and the folder of `node` for clients that are scripts.
fn search_path() -> OsString {
    let mut folders: Vec<PathBuf> = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from).into();
    let inherited = env::var_os("PATH").unwrap_or_default();
    folders.extend(env::split_paths(&inherited).find(|folder| folder.join("node").is_file()));
    env::join_paths(folders).expect("folders of PATH contain no separator")
}
