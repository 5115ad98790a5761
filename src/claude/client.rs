//! The real client, asked to register a plugin: its own commands, no shell, no input, bounded in time.

use crate::store::file;
use crate::store::program::{self, Said};
use crate::store::world::World;
use anyhow::{Result, bail};
use serde::Deserialize;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Without a network the client waits for it, some twenty seconds a call, before it does its work.
const LIMIT: Duration = Duration::from_secs(180);
const LIMIT_VERSION: Duration = Duration::from_secs(30);

/// As in the manifest of the repository's own marketplace.
const OWNER: &str = "The Ralph developers";

pub struct Client {
    program: PathBuf,
}

/// A marketplace the client knows.
#[derive(Debug, Default, Deserialize)]
pub struct Marketplace {
    #[serde(default)]
    pub name: String,
    /// What kind it is; `directory` for one on this disk.
    #[serde(default)]
    source: String,
    path: Option<PathBuf>,
    repo: Option<String>,
    url: Option<String>,
    /// Where the client keeps or finds it.
    #[serde(rename = "installLocation")]
    location: Option<PathBuf>,
}

impl Marketplace {
    pub fn is_folder(&self, folder: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        self.path.as_deref().is_some_and(|path| real(path) == real(folder))
    }

    /// Whether it is a copy of this project's repository: by its owner, whatever it is called.
    pub fn is_our_repository(&self) -> bool {
        let manifest = self.location.as_ref().map(|folder| folder.join(".claude-plugin/marketplace.json"));
        let bytes = manifest.and_then(|path| file::read_bounded(&path, 1 << 20).ok().flatten());
        let manifest: serde_json::Value =
            serde_json::from_slice(&bytes.unwrap_or_default()).unwrap_or_default();
        manifest["owner"]["name"] == OWNER
    }

    /// Where it comes from, for people.
    pub fn place(&self) -> String {
        let path = self.path.as_ref().map(|path| path.display().to_string());
        path.or(self.repo.clone()).or(self.url.clone()).unwrap_or_else(|| self.source.clone())
    }
}

/// A plugin the client has installed.
#[derive(Debug, Default, Deserialize)]
pub struct Installed {
    #[serde(default)]
    pub id: String,
    pub version: Option<String>,
    #[serde(default)]
    pub scope: String,
    #[serde(default)]
    pub enabled: bool,
}

impl Client {
    /// The program that was named, else `claude` where people and its installers put it.
    pub fn find(world: &World, named: Option<&str>) -> Option<Client> {
        let program = match named {
            Some(path) if path.contains(std::path::is_separator) => {
                Some(world.working_dir.join(path)).filter(|path| program::is_program(path))
            }
            Some(name) => program::find(name, &[]),
            None => {
                let home =
                    |folder: &str| world.home.iter().map(move |home| home.join(folder)).collect::<Vec<_>>();
                let others = [home(".local/bin"), home(".claude/local")].concat();
                program::find("claude", &others)
            }
        };
        Some(Client { program: program? })
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    /// `2.1.325`, or what else it calls itself.
    pub fn version(&self) -> Result<String> {
        let answer = program::run(self.command(["--version"]), b"", LIMIT_VERSION);
        if !answer.is_green() {
            bail!("{} does not run: {}", self.program.display(), answer.complaint());
        }
        let text = answer.stdout;
        Ok(crate::core::clean::excerpt(text.split(" (").next().unwrap_or_default(), 40))
    }

    pub fn marketplaces(&self) -> Result<Vec<Marketplace>> {
        self.list(&["marketplace", "list", "--json"])
    }

    pub fn plugins(&self) -> Result<Vec<Installed>> {
        self.list(&["list", "--json"])
    }

    pub fn add_marketplace(&self, folder: &Path) -> Result<()> {
        self.plugin(&[OsStr::new("marketplace"), OsStr::new("add"), folder.as_os_str()])
    }

    pub fn remove_marketplace(&self, name: &str) -> Result<()> {
        self.plugin(&["marketplace", "remove", name])
    }

    /// Also switches a plugin on that was switched off.
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
        let words: Vec<_> = args.iter().map(|arg| arg.as_ref().to_string_lossy().into_owned()).collect();
        let answer = self.ask(args);
        if !answer.is_green() {
            bail!("`claude plugin {}` failed: {}", words.join(" "), answer.complaint());
        }
        Ok(())
    }

    fn list<T: for<'de> Deserialize<'de>>(&self, args: &[&str]) -> Result<Vec<T>> {
        let answer = self.ask(args);
        let entries: Option<Vec<serde_json::Value>> = serde_json::from_str(&answer.stdout).ok();
        match entries.filter(|_| answer.is_green()) {
            // An entry of a kind we do not know is none of ours.
            Some(entries) => {
                Ok(entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect())
            }
            None => {
                bail!("`claude plugin {}` did not answer with a list: {}", args.join(" "), answer.complaint())
            }
        }
    }

    fn ask(&self, args: &[impl AsRef<OsStr>]) -> Said {
        let words = std::iter::once(OsStr::new("plugin")).chain(args.iter().map(AsRef::as_ref));
        program::run(self.command(words), b"", LIMIT)
    }

    fn command<'a>(&self, args: impl IntoIterator<Item = impl AsRef<OsStr> + 'a>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args);
        // A project's own settings are not asked: what is registered is the user's. And a client within a session
        // of the client is not what this is.
        command.current_dir(std::env::temp_dir());
        for name in ["CLAUDECODE", "CLAUDE_PROJECT_DIR", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT"] {
            command.env_remove(name);
        }
        command
    }
}
