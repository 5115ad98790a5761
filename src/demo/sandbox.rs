//! The temporary project, and Ralph's programs started in it.

use crate::core::time::Stamp;
use crate::store::file::temporary;
use crate::store::process::interrupt::Interrupt;
use crate::store::process::names::{GUIDANCE, SESSION_START_HOOK, STOP_HOOK};
use crate::store::process::{lookup, program};
use anyhow::{Context, Result, ensure};
use std::env::consts::EXE_SUFFIX;
use std::fs;
use std::path::{MAIN_SEPARATOR, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// The programs beside `ralph`.
const OTHERS: [&str; 3] = [STOP_HOOK, SESSION_START_HOOK, GUIDANCE];
const TIMEOUT: Duration = Duration::from_secs(30);

/// The check command: its file, the file's text, and the command line.
pub const CHECK: (&str, &str, &str) = if cfg!(windows) {
    (
        "taste.cmd",
        "@findstr /C:\"warm the pot\" tea.txt >nul && exit /b 0\r\n@echo the pot is cold\r\n@exit /b 1\r\n",
        "taste.cmd",
    )
} else {
    (
        "taste.sh",
        "while read -r step; do [ \"$step\" = \"warm the pot\" ] && exit 0; done < tea.txt\n\
         echo \"the pot is cold\"\nexit 1\n",
        "sh taste.sh",
    )
};

/// Variables that would lead our programs to another session, project or repository, or name another client than the
/// one the demo plays.
const FOREIGN: [&str; 5] = ["RALPH_", "CLAUDE", "GIT_", "XDG_", "AI_AGENT"];

pub struct Sandbox {
    folder: TempDir,
    /// The running program.
    ralph: PathBuf,
    interrupt: Interrupt,
}

impl Sandbox {
    pub fn create(interrupt: Interrupt) -> Result<Sandbox> {
        let ralph = std::env::current_exe().context("could not find the path of this program")?;
        let sandbox = Sandbox { folder: temporary::folder("ralph-demo-")?, ralph, interrupt };
        // The empty .git hides a repository that contains the temporary folder.
        for folder in ["bin", "home", "data", "config", "prompts", "tea/.git"] {
            let path = sandbox.path(folder);
            fs::create_dir_all(&path).with_context(|| format!("could not create {}", path.display()))?;
        }
        sandbox.write(CHECK.0, CHECK.1)?;
        let missing = OTHERS.into_iter().filter(|name| !sandbox.beside(name).is_file());
        for name in std::iter::once("ralph").chain(missing) {
            sandbox.link(name)?;
        }
        Ok(sandbox)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn project(&self) -> PathBuf {
        self.path("tea")
    }

    pub fn transcript(&self) -> PathBuf {
        self.path("transcript.jsonl")
    }

    /// Returns how often the runner has started the agent.
    pub fn agent_starts(&self) -> usize {
        fs::read_dir(self.path("prompts")).into_iter().flatten().count()
    }

    /// Returns the agent's command line, relative to the project so that nothing needs quotes.
    pub fn agent(&self) -> String {
        format!("..{MAIN_SEPARATOR}bin{MAIN_SEPARATOR}ralph{EXE_SUFFIX} demo-agent")
    }

    /// Writes a file of the project.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.project().join(name);
        fs::write(&path, text).with_context(|| format!("could not write {}", path.display()))
    }

    /// Prepares one of our programs so that it does not touch the user's files.
    pub fn command(&self, name: &str, now: Stamp) -> Command {
        let mut command = lookup::command(self.program(name));
        for (variable, _) in std::env::vars_os() {
            if FOREIGN.iter().any(|prefix| variable.to_string_lossy().starts_with(prefix)) {
                command.env_remove(variable);
            }
        }
        for (variable, folder) in [
            ("HOME", "home"),
            ("USERPROFILE", "home"),
            ("RALPH_DATA_DIR", "data"),
            ("RALPH_CONFIG_DIR", "config"),
            ("CLAUDE_PROJECT_DIR", "tea"),
        ] {
            command.env(variable, self.path(folder));
        }
        command.current_dir(self.project()).env("RALPH_NOW", now.rfc3339());
        command
    }

    /// Runs a program and returns its stdout. Fails if the program fails or writes to stderr.
    pub fn run(&self, command: &mut Command, input: &str) -> Result<String> {
        let answer =
            program::run_cancellable(command, input.as_bytes(), TIMEOUT, &|| self.interrupt.is_set());
        ensure!(!self.interrupt.is_set(), "interrupted");
        let program = command.get_program().to_string_lossy();
        ensure!(answer.passed() && answer.stderr.is_empty(), "{program} failed: {}", answer.complaint());
        Ok(answer.stdout)
    }

    /// Returns the program installed beside the running one, or the link that replaces it.
    fn program(&self, name: &str) -> PathBuf {
        match name {
            "ralph" => self.ralph.clone(),
            _ => Some(self.beside(name)).filter(|path| path.is_file()).unwrap_or_else(|| self.linked(name)),
        }
    }

    /// Returns whether all programs are built or installed; `cargo run` builds only `ralph`.
    pub fn has_all_programs(&self) -> bool {
        OTHERS.iter().all(|name| self.beside(name).is_file())
    }

    fn beside(&self, name: &str) -> PathBuf {
        let ralph = self.ralph.canonicalize().unwrap_or_else(|_| self.ralph.clone());
        ralph.with_file_name(format!("{name}{EXE_SUFFIX}"))
    }

    fn linked(&self, name: &str) -> PathBuf {
        self.path("bin").join(format!("{name}{EXE_SUFFIX}"))
    }

    /// Links the running program under another name, by which it acts as that program.
    fn link(&self, name: &str) -> Result<()> {
        let path = self.linked(name);
        #[cfg(unix)]
        let linked = std::os::unix::fs::symlink(&self.ralph, &path);
        #[cfg(not(unix))]
        let linked = fs::copy(&self.ralph, &path).map(drop);
        linked.with_context(|| format!("could not link {} to {}", path.display(), self.ralph.display()))
    }

    /// Says which programs were used, for an error message.
    pub fn programs(&self) -> String {
        let hook = self.program(STOP_HOOK);
        if hook.starts_with(self.folder.path()) {
            return format!("The hooks ran as {}.", self.ralph.display());
        }
        format!(
            "The hooks are in {}. If they are older than ralph: cargo build --release --bins",
            hook.with_file_name("").display()
        )
    }

    /// Removes the folder, or returns its path if `keep` is set.
    pub fn close(self, keep: bool) -> Result<Option<PathBuf>> {
        if keep {
            return Ok(Some(self.folder.keep()));
        }
        self.folder.close().context("could not remove the temporary project")?;
        Ok(None)
    }
}
