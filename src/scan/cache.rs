//! The remembered tree on disk: a plain sequence of numbers and texts, quick to read at every turn.
//!
//! It is only a memory. Whatever is wrong with it, the project is scanned anew.

use super::mark::Mark;
use super::tree::{Folder, Known, Tree};
use crate::core::finding::{Finding, SEVERITIES};
use crate::store::file;
use crate::store::project::Project;
use crate::store::world::World;
use std::borrow::Cow;
use std::path::PathBuf;

const MAGIC: &[u8] = b"ralph-tree-3\n";
const LARGEST: u64 = 1 << 30;

fn path(world: &World, project: &Project) -> Option<PathBuf> {
    Some(world.data_dir().ok()?.join("scan").join(format!("{}.tree", project.key())))
}

pub fn load(world: &World, project: &Project) -> Vec<u8> {
    let bytes = path(world, project).and_then(|path| file::read_bounded(&path, LARGEST).ok().flatten());
    bytes.unwrap_or_default()
}

/// Names stay where they are in the bytes: a tree of many files is read without copying them.
pub fn parse(bytes: &[u8]) -> Option<Tree<'_>> {
    Reader(bytes.strip_prefix(MAGIC)?).tree()
}

/// A memory that cannot be kept costs time, not truth.
pub fn save(world: &World, project: &Project, tree: &Tree) {
    let Some(path) = path(world, project) else { return };
    if path.parent().is_some_and(|dir| file::create_dir(dir).is_ok()) {
        let _ = file::replace_quickly(&path, &write(tree));
    }
}

pub fn write(tree: &Tree) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    put_mark(&mut out, tree.print);
    put_mark(&mut out, tree.outside);
    put_number(&mut out, tree.next as u64);
    put_number(&mut out, tree.left as u64);
    put_mark(&mut out, tree.whole_at as u64);
    put_mark(&mut out, tree.lost_at as u64);
    put_number(&mut out, tree.pending.len() as u64);
    tree.pending.iter().for_each(|path| put_text(&mut out, path));
    put_number(&mut out, tree.folders.len() as u64);
    for folder in &tree.folders {
        put_text(&mut out, &folder.path);
        put_mark(&mut out, folder.mark);
        put_number(&mut out, folder.files.len() as u64);
        for known in &folder.files {
            put_text(&mut out, &known.name);
            put_mark(&mut out, known.mark);
            put_number(&mut out, known.findings.len() as u64);
            known.findings.iter().for_each(|finding| put_finding(&mut out, finding));
        }
        // One more than there are, for nothing is not the same as none.
        put_number(&mut out, folder.others.as_ref().map_or(0, |others| others.len() as u64 + 1));
        folder.others.iter().flatten().for_each(|name| put_text(&mut out, name));
    }
    out
}

fn put_mark(out: &mut Vec<u8>, mark: u64) {
    out.extend(mark.to_le_bytes());
}

/// Seven bits a byte, the lowest first: most numbers are small.
fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend(text.as_bytes());
}

fn put_finding(out: &mut Vec<u8>, finding: &Finding) {
    let severity = SEVERITIES.iter().position(|severity| *severity == finding.severity).unwrap_or(0);
    put_number(out, severity as u64);
    put_number(out, finding.line.map_or(0, |line| line + 1));
    let Finding { id, category, description, file, recommendation, .. } = finding;
    [id, category, description, file, recommendation].into_iter().for_each(|text| put_text(out, text));
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn tree(mut self) -> Option<Tree<'a>> {
        let (print, outside) = (self.mark()?, self.mark()?);
        let (next, left) = (usize::try_from(self.number()?).ok()?, usize::try_from(self.number()?).ok()?);
        let (whole_at, lost_at) = (self.mark()? as i64, self.mark()? as i64);
        let pending = (0..self.count()?).map(|_| self.owned()).collect::<Option<_>>()?;
        let mut folders = Vec::new();
        for _ in 0..self.number()? {
            folders.push(self.folder()?);
        }
        self.0.is_empty().then_some(Tree { print, outside, next, left, whole_at, lost_at, pending, folders })
    }

    fn folder(&mut self) -> Option<Folder<'a>> {
        let (path, mark, count) = (self.name()?, self.mark()?, self.count()?);
        let mut files = Vec::with_capacity(count);
        for _ in 0..count {
            let (name, mark) = (self.name()?, self.mark()?);
            let mut findings = Vec::new();
            for _ in 0..self.count()? {
                findings.push(self.finding()?);
            }
            files.push(Known { name, mark, findings });
        }
        let mut others = None;
        if let Some(count) = self.count()?.checked_sub(1) {
            others = Some((0..count).map(|_| self.name()).collect::<Option<Vec<_>>>()?);
        }
        Some(Folder { path, mark, files, others, fresh: false })
    }

    fn finding(&mut self) -> Option<Finding> {
        let severity = *SEVERITIES.get(usize::try_from(self.number()?).ok()?)?;
        let line = self.number()?.checked_sub(1);
        let (id, category, description) = (self.owned()?, self.owned()?, self.owned()?);
        let (file, recommendation) = (self.owned()?, self.owned()?);
        Some(Finding { id, severity, category, description, file, line, recommendation })
    }

    fn mark(&mut self) -> Option<Mark> {
        let (bytes, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// A number of things to come, each of a byte at least: a damaged one reserves no memory.
    fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok().filter(|count| *count <= self.0.len() + 1)
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(bytes).ok()
    }

    fn name(&mut self) -> Option<Cow<'a, str>> {
        self.text().map(Cow::Borrowed)
    }

    fn owned(&mut self) -> Option<String> {
        self.text().map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Tree<'static> {
        let finding = Finding {
            id: "x-1".into(),
            severity: SEVERITIES[1],
            category: "x".into(),
            description: "said".into(),
            file: "a/é".into(),
            line: Some(300),
            recommendation: "do".into(),
        };
        let file = |name: &'static str, findings| Known { name: name.into(), mark: u64::MAX, findings };
        let files = vec![file("é", vec![finding]), file(&LONG, Vec::new())];
        let folder = |path: &'static str, files, others| Folder {
            path: path.into(),
            mark: 7,
            files,
            others,
            fresh: false,
        };
        let folders = vec![
            folder("", Vec::new(), None),
            folder("a", files, Some(vec!["b/".into()])),
            folder("a/b", Vec::new(), Some(Vec::new())),
        ];
        let pending = vec!["a/b".into()];
        Tree { print: 1, outside: 2, next: 3, left: 4, whole_at: 5, lost_at: 6, pending, folders }
    }

    static LONG: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| "n".repeat(200));

    #[test]
    fn a_tree_is_read_as_it_was_written() {
        let bytes = write(&sample());
        let tree = parse(&bytes).unwrap();
        assert_eq!(write(&tree), bytes);
        assert_eq!(tree.folders[1].files[0].findings[0].line, Some(300));
        assert_eq!(tree.folders[2].others.as_deref(), Some(&[][..]));
    }

    #[test]
    fn a_damaged_memory_is_none() {
        let bytes = write(&sample());
        for length in 0..bytes.len() {
            assert!(parse(&bytes[..length]).is_none(), "{length}");
        }
        assert!(parse(&[bytes.as_slice(), b"x"].concat()).is_none());
        for at in MAGIC.len()..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            let _ = parse(&damaged);
        }
    }
}
