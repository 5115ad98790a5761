//! The files that a repository's settings include: git opens each before it does anything else, and waits for a pipe.

use super::{git, ignores};
use crate::store::file;
use std::path::{Path, PathBuf};

/// Far more than a repository has; git itself follows ten levels.
const MAX_FILES: usize = 100;
const SECTION: &str = "[include";

/// Returns the first file of settings that git would wait for, or read without end, by what this one includes; also one
/// whose includes are written in a way that only git understands.
pub fn unsafe_file(settings: &Path) -> Option<PathBuf> {
    let mut files = vec![settings.to_owned()];
    let mut next = 0;
    while let Some(path) = files.get(next).cloned() {
        if next >= MAX_FILES || git::is_unsafe_file(&path, git::MAX_EXCLUDE_BYTES) {
            return Some(path);
        }
        next += 1;
        let Ok(bytes) = file::read_bounded(&path, git::MAX_EXCLUDE_BYTES) else { return Some(path) };
        let Some(named) = named(&String::from_utf8_lossy(&bytes.unwrap_or_default())) else {
            return Some(path);
        };
        let folder = path.parent().unwrap_or(&path);
        for name in named {
            let included = match name.strip_prefix("~/") {
                Some(below) => dirs::home_dir().unwrap_or_default().join(below),
                None => folder.join(name),
            };
            if !files.contains(&included) {
                files.push(included);
            }
        }
    }
    None
}

/// Returns the paths that settings include, under whatever condition; `None` if a line could name one in another way than
/// as `path = VALUE` below a section's own line.
fn named(settings: &str) -> Option<Vec<String>> {
    let mut paths = Vec::new();
    if !settings.to_ascii_lowercase().contains(SECTION) {
        return Some(paths);
    }
    let mut in_section = false;
    for line in settings.lines().map(str::trim) {
        let lower = line.to_ascii_lowercase();
        if lower.contains(SECTION) {
            let header = lower.strip_prefix('[')?.strip_suffix(']')?;
            if header.contains(['[', ']', '\\']) {
                return None;
            }
            in_section = true;
        } else if line.starts_with('[') {
            in_section = false;
        } else if in_section && let Some((key, value)) = line.split_once('=') {
            let value = ignores::unquoted(value.trim());
            let is_of_user = value.starts_with('~') && !value.starts_with("~/");
            if line.contains(['\\', char::REPLACEMENT_CHARACTER]) || value.starts_with('%') || is_of_user {
                return None;
            }
            if key.trim().eq_ignore_ascii_case("path") {
                paths.push(value);
            }
        }
    }
    Some(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_settings_include_is_found_or_they_are_odd() {
        let cases: &[(&str, Option<&[&str]>)] = &[
            ("", Some(&[])),
            ("[core]\n\tpath = x\n\tbare = \\\nfalse\n", Some(&[])),
            ("[include]\n\tpath = x\n[core]\n\tpath = y\n", Some(&["x"])),
            ("[INCLUDE]\n\tPath=\"a;b\" # c\n\tpath = d\n", Some(&["a;b", "d"])),
            ("[includeIf \"gitdir:~/a/\"]\n\tpath = ~/x\n", Some(&["~/x"])),
            ("\u{feff}[include]\npath = x\n", None),
            ("[include] path = x\n", None),
            ("[include] path = x]\n", None),
            ("[core] [include]\npath = x\n", None),
            ("[core]\r[include]\rpath = x\n", None),
            ("[includeIf \"gitdir:]\"]\n\tpath = x\n", None),
            ("[include]\n\tpath = \\\nx\n", None),
            ("[include]\n\tpath = ~me/x\n", None),
            ("[include]\n\tpath = %(prefix)/x\n", None),
            ("[include]\n\tpath = \u{fffd}\n", None),
        ];
        for (settings, expected) in cases {
            let expected = expected.map(|paths| paths.iter().map(|path| (*path).to_owned()).collect());
            assert_eq!(named(settings), expected, "{settings:?}");
        }
    }
}
