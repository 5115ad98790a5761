//! The throw-away project and all that belongs to it, in one folder that goes when the demo goes.

use crate::called::{GUIDANCE, SESSION_START_HOOK, STOP_HOOK};
use crate::store::world;
use anyhow::{Context, Result};
use std::env::consts::EXE_SUFFIX;
use std::fs;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::process::Command;

/// The programs beside `ralph`.
const OTHERS: [&str; 3] = [STOP_HOOK, SESSION_START_HOOK, GUIDANCE];

pub struct Stage {
    root: PathBuf,
    keep: bool,
    /// The running program.
    ralph: PathBuf,
}

/// The user's command that says whether the work is done, as the user of each system would write it.
const TASTE: (&str, &str, &str) = if cfg!(windows) {
    (
        "taste.cmd",
        "@findstr /C:\"warm the pot\" tea.txt >nul && exit /b 0\r\n@echo nobody warmed the pot\r\n@exit /b 1\r\n",
        "taste.cmd",
    )
} else {
    (
        "taste.sh",
        "while read -r step; do [ \"$step\" = \"warm the pot\" ] && exit 0; done < tea.txt\n\
         echo \"nobody warmed the pot\"\nexit 1\n",
        "sh taste.sh",
    )
};

/// Variables that would tell our programs of another session, project or repository than the demo's.
const FOREIGN: [&str; 4] = ["RALPH_", "CLAUDE", "GIT_", "XDG_"];

impl Stage {
    pub fn build(keep: bool) -> Result<Stage> {
        let ralph = std::env::current_exe().context("this program cannot find itself")?;
        let folder = std::env::temp_dir().join(format!("ralph-demo-{:08x}", world::unique() as u32));
        create_new(&folder).with_context(|| {
            format!(
                "no room for a throw-away project at {}: set TMPDIR to a folder you can write",
                folder.display()
            )
        })?;
        // From here on it goes away with the stage. Without links, so that every program calls it the same.
        let root = folder.canonicalize().unwrap_or(folder);
        let stage = Stage { root, keep, ralph };
        // The folder .git is empty: it keeps a repository that may be around the temporary folder out of this.
        for dir in ["bin", "home", "data", "config", "prompts", "tea/.git"] {
            fs::create_dir_all(stage.root.join(dir))
                .with_context(|| format!("could not create {dir} in {}", stage.root.display()))?;
        }
        stage.write(TASTE.0, TASTE.1)?;
        stage.link("ralph")?;
        for name in OTHERS {
            if !stage.beside(name).is_file() {
                stage.link(name)?;
            }
        }
        Ok(stage)
    }

    pub fn project(&self) -> PathBuf {
        self.root.join("tea")
    }

    pub fn transcript(&self) -> PathBuf {
        self.root.join("transcript.jsonl")
    }

    /// How many prompts the agent of the runner has got.
    pub fn prompts(&self) -> usize {
        fs::read_dir(self.root.join("prompts")).into_iter().flatten().count()
    }

    /// The command line that tastes the tea.
    pub fn check(&self) -> &'static str {
        TASTE.2
    }

    /// The command line of the scripted agent, from within the project: a path without anything to quote.
    pub fn agent(&self) -> String {
        format!("..{MAIN_SEPARATOR}bin{MAIN_SEPARATOR}ralph{EXE_SUFFIX} demo-agent")
    }

    /// Writes a file of the project.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.project().join(name);
        fs::write(&path, text).with_context(|| format!("could not write {}", path.display()))
    }

    /// A program of ours in the demo's own world: nothing of the user's is read or written.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.program(program));
        for (name, _) in std::env::vars_os() {
            if FOREIGN.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        command.env("HOME", self.root.join("home")).env("USERPROFILE", self.root.join("home"));
        command
            .env("RALPH_DATA_DIR", self.root.join("data"))
            .env("RALPH_CONFIG_DIR", self.root.join("config"));
        command.env("CLAUDE_PROJECT_DIR", self.project()).current_dir(self.project());
        command
    }

    /// The program beside the running one, as it was built or installed; else the stand-in.
    fn program(&self, name: &str) -> PathBuf {
        match name {
            "ralph" => self.ralph.clone(),
            _ => Some(self.beside(name)).filter(|path| path.is_file()).unwrap_or_else(|| self.stand_in(name)),
        }
    }

    /// Whether all programs are there to be installed, not only this one, as `cargo run` builds it.
    pub fn is_whole(&self) -> bool {
        OTHERS.iter().all(|name| self.beside(name).is_file())
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.ralph
            .canonicalize()
            .unwrap_or_else(|_| self.ralph.clone())
            .with_file_name(format!("{name}{EXE_SUFFIX}"))
    }

    fn stand_in(&self, name: &str) -> PathBuf {
        self.root.join("bin").join(format!("{name}{EXE_SUFFIX}"))
    }

    /// The running program under another name.
    fn link(&self, name: &str) -> Result<()> {
        let path = self.stand_in(name);
        #[cfg(unix)]
        let linked = std::os::unix::fs::symlink(&self.ralph, &path);
        #[cfg(not(unix))]
        let linked = fs::copy(&self.ralph, &path).map(drop);
        linked.with_context(|| format!("could not link {} to {}", path.display(), self.ralph.display()))
    }

    /// For whoever looks for the reason of a failure.
    pub fn programs_used(&self) -> String {
        let hook = self.program(STOP_HOOK);
        let whose = if hook.starts_with(&self.root) {
            format!("The hooks were played by {} itself.", self.ralph.display())
        } else {
            format!(
                "The hooks were {} and those beside it; older than ralph? Build all: cargo build --release --bins",
                hook.display()
            )
        };
        let look = if self.keep { "" } else { "\nralph demo --keep leaves the project to look at." };
        format!("{whose}{look}")
    }

    /// Removes it all, unless it is to stay.
    pub fn clear(&mut self) -> Result<()> {
        if self.keep || !self.root.exists() {
            return Ok(());
        }
        // A process that was just ended may have written its last while we removed.
        fs::remove_dir_all(&self.root)
            .or_else(|_| fs::remove_dir_all(&self.root))
            .with_context(|| format!("{} could not be removed", self.root.display()))
    }

    pub fn what_is_left(&self) -> String {
        match (self.keep, self.root.exists()) {
            (true, _) => format!("Kept: {}", self.root.display()),
            (_, true) => format!("Left behind: {}", self.root.display()),
            _ => "The throw-away project is gone.".into(),
        }
    }

    /// Where it all is, where it was asked to stay.
    pub fn kept(&self) -> Option<&Path> {
        self.keep.then_some(&self.root)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.clear();
    }
}

/// A folder that was not there before, for the user only.
fn create_new(path: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
