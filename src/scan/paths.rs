//! Absolute paths that bind a project to a machine.

use super::check::{MOST_IN_A_FILE, finding, line_at};
use super::files;
use crate::core::finding::{Finding, Severity};

const PATHS: &str = "absolute-path";
const FOLDERS: &str = "rigid-folder";

/// Accounts of images, build machines and services, and names that only stand for one.
const NOBODY: &str = " runner runneradmin node app ubuntu debian fedora centos rocky alpine core pi vscode circleci \
    distiller jovyan vagrant gitpod codespace codespaces coder linuxbrew docker git www www-data deploy deployer \
    travis jenkins appveyor vsts vssadministrator containeruser containeradministrator gitlab-runner \
    buildkite-agent semaphore ec2-user azureuser opc nonroot nobody username yourname your-name your_name \
    youruser your-user your_user yourusername your-username your_username ";

/// Folders beside the homes, for all users.
const SHARED: [&str; 3] = ["/Users/Shared", ":\\Users\\Public", ":\\Users\\Default"];

fn is_nobodys(root: &str, name: &str) -> bool {
    let root = root.replace("\\\\", "\\");
    NOBODY.contains(&format!(" {} ", name.to_lowercase()))
        || SHARED.iter().any(|shared| root.ends_with(shared))
}

/// A home in a file.
struct Home {
    at: usize,
    root: String,
    own: bool,
}

/// Absolute paths of somebody's home, each home once a file. `home` ends with a slash.
pub fn homes(home: Option<&str>, path: &str, bytes: &[u8]) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    let mut known: Vec<String> = Vec::new();
    let only_own = files::holds_routes(path) || files::is_for_a_server(path);
    let others = if only_own { Vec::new() } else { somebodys(home, bytes) };
    for Home { at, root, own } in own(home, bytes).into_iter().chain(others) {
        let (line, text) = line_at(bytes, at);
        if is_comment(&text) || known.contains(&root) || found.len() == MOST_IN_A_FILE {
            continue;
        }
        let whose = if own { "your" } else { "somebody's" };
        let severity = if own { Severity::Critical } else { Severity::High };
        let description = format!("absolute path of {whose} home ({root})");
        let advice = "Do not rely on it or add more: use a relative path or a variable";
        found.push(finding(PATHS, severity, path, Some(line), &root, description, advice));
        known.push(root);
    }
    found
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(['#', ';']) || ["//", "/*", "* ", "<!--"].iter().any(|mark| line.starts_with(mark))
}

fn own(home: Option<&str>, bytes: &[u8]) -> Vec<Home> {
    let Some(home) = home else { return Vec::new() };
    let root = home.trim_end_matches('/');
    memchr::memmem::find_iter(bytes, home)
        .filter(|at| starts_path(bytes, *at))
        .map(|at| Home { at, root: root.to_owned(), own: true })
        .collect()
}

fn somebodys(home: Option<&str>, bytes: &[u8]) -> Vec<Home> {
    let mut found = Vec::new();
    for prefix in ["/home/", "/Users/", ":\\Users\\", ":\\\\Users\\\\"] {
        for at in memchr::memmem::find_iter(bytes, prefix) {
            let begin = if prefix.starts_with(':') { at.saturating_sub(1) } else { at };
            let Some(name) = named(&bytes[at + prefix.len()..]) else { continue };
            let root = format!("{}{name}", String::from_utf8_lossy(&bytes[begin..at + prefix.len()]));
            let ours = home.is_some_and(|home| home.trim_end_matches('/') == root);
            if !ours && starts_path(bytes, begin) && !is_nobodys(&root, name) {
                found.push(Home { at, root, own: false });
            }
        }
    }
    found
}

/// The name of a person at the beginning of this, with more of the path behind it.
fn named(after: &[u8]) -> Option<&str> {
    let fits = |byte: &&u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let length = after.iter().take(33).take_while(fits).count();
    let named = (1..=32).contains(&length) && matches!(after.get(length), Some(b'/' | b'\\'));
    std::str::from_utf8(&after[..length]).ok().filter(|_| named)
}

/// What stands before an absolute path ends something else: a quote, a space, an equals sign, or is the
/// flag of a compiler.
fn starts_path(bytes: &[u8], at: usize) -> bool {
    const FLAGS: [&[u8]; 7] = [b"-I", b"-L", b"-F", b"-B", b"-isystem", b"-Wl,-rpath,", b"-R"];
    let before = &bytes[..at];
    let ends = |byte: u8| !(byte.is_ascii_alphanumeric() || b"._-~/}$%>*)]".contains(&byte));
    let is_flag = |flag: &&[u8]| {
        before.strip_suffix(*flag).is_some_and(|rest| rest.last().is_none_or(|byte| ends(*byte)))
    };
    let begins = before.last().is_none_or(|byte| ends(*byte)) || FLAGS.iter().any(is_flag);
    begins && !is_elsewhere(before)
}

/// A path behind this is one on another machine, `user@host:`, or in a container, `-v volume:`.
fn is_elsewhere(before: &[u8]) -> bool {
    let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    let Some(line) = before[start..].strip_suffix(b":") else { return false };
    let apart = |byte: &u8| byte.is_ascii_whitespace() || b"\"'=,".contains(byte);
    let word = line.iter().rposition(apart).map_or(0, |at| at + 1);
    let option = &line[..line[..word].iter().rposition(|byte| !apart(byte)).map_or(0, |at| at + 1)];
    line[word..].contains(&b'@') || [&b"-v"[..], b"--volume"].iter().any(|name| option.ends_with(name))
}

/// Scripts that work in one fixed folder of one machine.
pub fn rigid_folders(path: &str, bytes: &[u8]) -> Vec<Finding> {
    let roots = ["/opt/", "/srv/", "/mnt/", "/data/", "/var/www/", "/home/", "/Users/"];
    let mut found = Vec::new();
    for at in memchr::memmem::find_iter(bytes, b"cd ") {
        let target = &bytes[at + 3..];
        let target = target.strip_prefix(b"\"").or(target.strip_prefix(b"'")).unwrap_or(target);
        let begins = at == 0 || bytes[at - 1].is_ascii_whitespace() || b";&(@".contains(&bytes[at - 1]);
        let rigid = roots.iter().any(|root| target.starts_with(root.as_bytes()));
        if !begins || !rigid || found.len() == MOST_IN_A_FILE {
            continue;
        }
        let (line, text) = line_at(bytes, at);
        if !text.trim_start().starts_with('#') {
            let description = "works in a fixed absolute folder".to_owned();
            let advice = "Do not assume that the folder is there";
            found.push(finding(
                FOLDERS,
                Severity::Medium,
                path,
                Some(line),
                text.trim(),
                description,
                advice,
            ));
        }
    }
    found
}
