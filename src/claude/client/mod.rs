//! Claude Code's own command line: its version, marketplaces and plugins. No shell, and a limit on each call.

pub mod plugins;
pub mod sessions;
pub mod version;

use crate::store::process::lookup;
use crate::store::process::program::{self, ProgramOutput};
use crate::store::world::World;
use anyhow::{Context, Result, ensure};
use plugins::{InstalledPlugin, Marketplace};
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Without a network, Claude Code waits about twenty seconds per call before it works.
const TIMEOUT: Duration = Duration::from_secs(180);
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);
/// Variables that make Claude Code believe it runs inside a session.
const SESSION_VARIABLES: [&str; 4] =
    ["CLAUDECODE", "CLAUDE_PROJECT_DIR", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT"];

pub struct Client {
    program: PathBuf,
}

impl Client {
    /// Finds the named program, or `claude` on `PATH` and where its installers put it.
    pub fn find(world: &World, named: Option<&str>) -> Option<Client> {
        let program = match named {
            Some(path) if path.contains(std::path::is_separator) => {
                Some(world.working_dir.join(path)).filter(|path| lookup::is_program(path))
            }
            _ => {
                let home = named.is_none().then_some(world.home.as_ref()).flatten();
                let folders =
                    [".local/bin", ".claude/local"].map(|folder| home.map(|home| home.join(folder)));
                lookup::find(named.unwrap_or("claude"), &folders.into_iter().flatten().collect::<Vec<_>>())
            }
        };
        Some(Client { program: program? })
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Prepares a call, outside of any session and without network traffic that it does not need.
    pub fn command(&self, args: &[impl AsRef<OsStr>], folder: &Path) -> Command {
        let mut command = lookup::command(&self.program);
        command.args(args).current_dir(folder);
        command.env("DISABLE_AUTOUPDATER", "1").env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        for name in SESSION_VARIABLES {
            command.env_remove(name);
        }
        command
    }

    /// Returns the version, e.g. `2.1.325`.
    pub fn version(&self) -> Result<String> {
        let answer = self.run(&["--version"], VERSION_TIMEOUT);
        ensure!(answer.passed(), "{} does not run: {}", self.program.display(), answer.complaint());
        let version = answer.stdout.split(" (").next().unwrap_or_default();
        Ok(crate::core::text::clean::excerpt(version, 40))
    }

    pub fn marketplaces(&self) -> Result<Vec<Marketplace>> {
        self.list(&["plugin", "marketplace", "list", "--json"])
    }

    pub fn plugins(&self) -> Result<Vec<InstalledPlugin>> {
        self.list(&["plugin", "list", "--json"])
    }

    pub fn add_marketplace(&self, folder: &Path) -> Result<()> {
        self.plugin(&["marketplace".as_ref(), "add".as_ref(), folder.as_os_str()])
    }

    pub fn remove_marketplace(&self, name: &str) -> Result<()> {
        self.plugin(&["marketplace", "remove", name])
    }

    /// Installs a plugin, or enables an installed one.
    pub fn install(&self, id: &str) -> Result<()> {
        self.plugin(&["install", id])
    }

    pub fn update(&self, id: &str) -> Result<()> {
        self.plugin(&["update", id])
    }

    pub fn uninstall(&self, id: &str) -> Result<()> {
        self.plugin(&["uninstall", id])
    }

    fn plugin(&self, args: &[impl AsRef<OsStr>]) -> Result<()> {
        let args: Vec<&OsStr> =
            std::iter::once("plugin".as_ref()).chain(args.iter().map(AsRef::as_ref)).collect();
        let answer = self.run(&args, TIMEOUT);
        let shown = args.join(" ".as_ref());
        ensure!(answer.passed(), "`claude {}` failed: {}", shown.display(), answer.complaint());
        Ok(())
    }

    fn list<T: DeserializeOwned>(&self, args: &[&str]) -> Result<Vec<T>> {
        let answer = self.run(args, TIMEOUT);
        let list = plugins::parse(&answer.stdout).filter(|_| answer.passed());
        list.with_context(|| format!("`claude {}` printed no list: {}", args.join(" "), answer.complaint()))
    }

    /// Runs outside of any project: what is registered belongs to the user.
    fn run(&self, args: &[impl AsRef<OsStr>], limit: Duration) -> ProgramOutput {
        program::run(self.command(args, &std::env::temp_dir()), b"", limit)
    }
}
