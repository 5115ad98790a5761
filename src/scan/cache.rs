//! The remembered tree on disk: a plain sequence of numbers and texts, quick to read at every turn.
//!
//! It is only a memory. Whatever is wrong with it, the project is scanned anew.

use super::tree::{Folder, Known, Mark, Tree};
use crate::core::finding::Finding;
use crate::store::file;
use crate::store::project::Project;
use crate::store::world::World;
use std::path::PathBuf;

const MAGIC: &[u8] = b"ralph-tree-1\n";
const LARGEST: u64 = 1 << 30;

fn path(world: &World, project: &Project) -> Option<PathBuf> {
    Some(world.data_dir().ok()?.join("scan").join(format!("{}.tree", project.key())))
}

pub fn load(world: &World, project: &Project) -> Tree {
    let bytes = path(world, project).and_then(|path| file::read_bounded(&path, LARGEST).ok().flatten());
    bytes.and_then(|bytes| Reader(bytes.strip_prefix(MAGIC)?).tree()).unwrap_or_default()
}

/// A memory that cannot be kept costs time, not truth.
pub fn save(world: &World, project: &Project, tree: &Tree) {
    let Some(path) = path(world, project) else { return };
    if path.parent().is_some_and(|dir| file::create_dir(dir).is_ok()) {
        let _ = file::replace_quickly(&path, &write(tree));
    }
}

fn write(tree: &Tree) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let number = |out: &mut Vec<u8>, number: u64| out.extend(number.to_le_bytes());
    let text = |out: &mut Vec<u8>, text: &str| {
        number(out, text.len() as u64);
        out.extend(text.as_bytes());
    };
    let mark = |out: &mut Vec<u8>, mark: Mark| {
        number(out, mark.size);
        number(out, mark.modified as u64);
        number(out, mark.inode);
    };
    number(&mut out, tree.print);
    number(&mut out, u64::from(tree.partial));
    number(&mut out, tree.folders.len() as u64);
    for folder in &tree.folders {
        text(&mut out, &folder.path);
        mark(&mut out, folder.mark);
        number(&mut out, folder.files.len() as u64);
        for known in &folder.files {
            text(&mut out, &known.name);
            mark(&mut out, known.mark);
            let findings = if known.findings.is_empty() {
                String::new()
            } else {
                serde_json::to_string(&known.findings).unwrap_or_default()
            };
            text(&mut out, &findings);
        }
    }
    out
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn tree(mut self) -> Option<Tree> {
        let (print, partial, count) = (self.number()?, self.number()? != 0, self.number()?);
        let mut folders = Vec::new();
        for _ in 0..count {
            let (path, mark, files) = (self.text()?.to_owned(), self.mark()?, self.number()?);
            let mut folder = Folder { path, mark, files: Vec::new() };
            for _ in 0..files {
                let (name, mark) = (self.text()?.to_owned(), self.mark()?);
                let findings = self.text()?;
                let findings: Vec<Finding> =
                    if findings.is_empty() { Vec::new() } else { serde_json::from_str(findings).ok()? };
                folder.files.push(Known { name, mark, findings });
            }
            folders.push(folder);
        }
        self.0.is_empty().then_some(Tree { print, partial, folders })
    }

    fn number(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    fn text(&mut self) -> Option<&str> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(bytes).ok()
    }

    fn mark(&mut self) -> Option<Mark> {
        Some(Mark { size: self.number()?, modified: self.number()? as i64, inode: self.number()? })
    }
}
