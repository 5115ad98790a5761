//! A world and a project in a temporary folder, for what is read from files.

use ralph::store::{Project, World};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

pub struct Place {
    folder: TempDir,
    pub world: World,
    pub project: Project,
}

impl Place {
    pub fn new() -> Place {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = folder.path().canonicalize().expect("its real path");
        let (project, data) = (root.join("project"), root.join("data"));
        fs::create_dir_all(&project).expect("a project");
        let mut world = World::at(&project, &data);
        (world.home, world.claude_config) = (Some(root.join("home")), Some(root.join("claude")));
        world.git_config = Some(root.join("git"));
        Place { folder, world, project: Project { root: project } }
    }

    /// Writes a file below the folder, with its folders.
    pub fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}
