//! Ignore files outside a work tree that apply to it, found without starting git.

use super::git;
use crate::store::{World, file};
use std::path::{Path, PathBuf};

pub const MAX_LIST_BYTES: u64 = 1 << 20;

/// Returns the user's ignore file: the one that the repository's or the user's git config names, or the default one.
/// Included config files and the system's config are not read.
pub fn of_user(world: &World, root: &Path) -> Option<PathBuf> {
    let home = world.home.as_deref();
    let settings = [
        git::dir(root).map(|dir| git::common(&dir).join("config")),
        home.map(|home| home.join(".gitconfig")),
        world.git_config.as_ref().map(|dir| dir.join("config")),
    ];
    let named = settings.into_iter().flatten().find_map(|path| {
        let bytes = file::read_bounded(&path, MAX_LIST_BYTES).ok()??;
        named(&String::from_utf8_lossy(&bytes), home)
    });
    let list = named.or_else(|| Some(world.git_config.as_ref()?.join("ignore")))?;
    // The repository's config may name a pipe, a device or a file in `/proc`, which has no end.
    list.metadata().is_ok_and(|meta| meta.is_file()).then_some(list)
}

/// Returns whether an ignore file of the project is a link that leads out of it, where it may have no end.
pub fn leads_out(root: &Path, list: &Path) -> bool {
    let is_link = list.starts_with(root) && list.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    let Some(target) = is_link.then(|| list.canonicalize().ok()).flatten() else { return false };
    !target.is_dir() && !root.canonicalize().is_ok_and(|root| target.starts_with(root))
}

/// Returns the repository's own ignore file, which its work trees share.
pub fn of_repository(root: &Path) -> Option<PathBuf> {
    Some(git::common(&git::dir(root)?).join("info").join("exclude"))
}

/// Returns the value of `core.excludesFile`; the last one counts.
fn named(settings: &str, home: Option<&Path>) -> Option<PathBuf> {
    let (mut in_core, mut found) = (false, None);
    for line in settings.lines() {
        let mut line = line.trim();
        if let Some((section, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            in_core = section.trim().eq_ignore_ascii_case("core");
            line = rest;
        }
        let Some((key, value)) = line.split_once('=').filter(|_| in_core) else { continue };
        if key.trim().eq_ignore_ascii_case("excludesfile") {
            found = Some(unquoted(value.trim()));
        }
    }
    let found = found?;
    match found.strip_prefix("~/") {
        Some(below) => Some(home?.join(below)),
        None => Some(PathBuf::from(found)),
    }
}

/// Parses a value as git does: with quotes, escapes and comments.
pub(super) fn unquoted(value: &str) -> String {
    let (mut text, mut quoted) = (String::new(), false);
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => quoted = !quoted,
            '\\' => text.extend(chars.next()),
            '#' | ';' if !quoted => break,
            c => text.push(c),
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_that_gits_settings_name() {
        let cases = [
            ("", None),
            ("[user]\n\tname = x\n", None),
            ("[core]\n\texcludesFile = ~/.ignored\n", Some("/home/me/.ignored")),
            ("[core]\n\texcludesfile=/etc/ignored\n", Some("/etc/ignored")),
            ("[CORE]\nExcludesFile = \"/a b/c;d\" ; mine\n", Some("/a b/c;d")),
            ("[core] excludesfile = /a # mine\n", Some("/a")),
            ("[core]\nexcludesfile = C:\\\\Users\\\\me\\\\ignored\n", Some("C:\\Users\\me\\ignored")),
            ("[core]\nexcludesfile = /a\n[x]\nexcludesfile = /b\n", Some("/a")),
            ("[core]\nexcludesfile = /a\n[core]\nexcludesfile = /b\n", Some("/b")),
            ("[core \"x\"]\nexcludesfile = /a\n", None),
            ("# [core]\nexcludesfile = /a\n", None),
            ("[core\nexcludesfile = /a\n", None),
        ];
        for (settings, expected) in cases {
            assert_eq!(
                named(settings, Some(Path::new("/home/me"))),
                expected.map(PathBuf::from),
                "{settings}"
            );
        }
        assert_eq!(named("[core]\nexcludesfile = ~/x\n", None), None, "no home directory");
    }
}
