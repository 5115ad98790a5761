//! Where the project is, and the paths of our files in it.

pub mod archive;
pub mod commits;
pub mod door;
pub mod git;
pub mod git_process;
pub mod ignores;
mod includes;
pub mod layout;
pub mod leftovers;
pub mod links;
pub mod official;

use super::world::World;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    pub root: PathBuf,
}

const STATE: &str = "ralph-state.json";
const CONFIG: &str = "ralph-config.json";

impl Project {
    /// Finds the nearest folder at or above the start, within its git work tree, that has Ralph's files; else
    /// the folder where the client was launched, the git root, or the start itself.
    pub fn find(world: &World, cwd: Option<&Path>) -> Project {
        let start = world.launch_dir.as_deref().or(cwd).unwrap_or(&world.working_dir);
        let start = if start.is_absolute() { start.to_owned() } else { world.working_dir.join(start) };
        let holds_ours = |dir: &&Path| {
            // Files in the home folder belong to a project of that name, not to everything below it.
            (*dir == start || (world.home.as_deref() != Some(dir) && same_owner(dir, &start)))
                && [STATE, CONFIG]
                    .iter()
                    .any(|name| dir.join(".claude").join(name).symlink_metadata().is_ok())
        };
        let git_root = start.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok());
        // A worktree inside the main checkout is a project of its own.
        let within = start.ancestors().take_while(|dir| git_root.is_none_or(|root| dir.starts_with(root)));
        if let Some(dir) = within.into_iter().find(holds_ours) {
            return Project { root: dir.to_owned() };
        }
        if world.launch_dir.is_some() {
            return Project { root: start };
        }
        Project { root: git_root.map_or_else(|| start.clone(), Path::to_owned) }
    }

    /// Returns the checkout in which an agent in this folder works: a linked worktree of the project's repository, or
    /// the project itself. The loop and its state stay those of the project.
    pub fn work_tree(&self, cwd: &Path) -> Project {
        let moved = (cwd != self.root && cwd.is_absolute()).then(|| git::worktree(&self.root, cwd)).flatten();
        moved.map_or_else(|| self.clone(), |root| Project { root })
    }

    /// Returns how a checkout of this project is called: nothing for the project itself, else its path, which is
    /// relative if it is in the project.
    pub fn name_of(&self, work_tree: &Project) -> String {
        let root = &work_tree.root;
        root.strip_prefix(&self.root).unwrap_or(root).to_string_lossy().into_owned()
    }

    pub fn claude_dir(&self) -> PathBuf {
        self.root.join(".claude")
    }

    pub fn state(&self) -> PathBuf {
        self.claude_dir().join(STATE)
    }

    pub fn lock(&self) -> PathBuf {
        self.claude_dir().join("ralph-state.lock")
    }

    pub fn config(&self) -> PathBuf {
        self.claude_dir().join(CONFIG)
    }

    pub fn kill_switch(&self) -> PathBuf {
        self.claude_dir().join("STOP_LOOP")
    }

    /// Returns the folder of the agent's questions and the runner's files.
    pub fn work_dir(&self) -> PathBuf {
        self.root.join("ralph")
    }

    /// Returns the root without links, so that a project has the same name however it was reached.
    pub fn real_root(&self) -> PathBuf {
        self.root.canonicalize().unwrap_or_else(|_| self.root.clone())
    }

    /// Returns a file name for the user's folders that belongs to this project alone.
    pub fn key(&self) -> String {
        let root = self.real_root();
        let name: String = root.file_name().map_or("root".into(), |name| {
            let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
            name.to_string_lossy().chars().take(40).map(safe).collect()
        });
        format!("{name}-{:016x}", stable_hash(root.as_os_str().as_encoded_bytes()))
    }

    /// Identifies the project by its real path.
    pub fn hash(&self) -> u64 {
        stable_hash(self.real_root().as_os_str().as_encoded_bytes())
    }
}

/// Returns whether both folders belong to one user. A folder of another user above the project does not count.
fn same_owner(dir: &Path, start: &Path) -> bool {
    #[cfg(unix)]
    {
        let owner = |path: &Path| path.metadata().map(|meta| std::os::unix::fs::MetadataExt::uid(&meta)).ok();
        owner(dir) == owner(start)
    }
    #[cfg(not(unix))]
    {
        let _ = (dir, start);
        true
    }
}

/// Returns the FNV-1a hash, which unlike the standard library's hashes stays the same in every release.
pub fn stable_hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
