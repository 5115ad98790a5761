//! Absolute paths that tie a project to one machine.

use super::check::{MAX_FINDINGS_PER_FILE, finding, line_at};
use super::file_kind;
use crate::core::guidance::finding::{Finding, Severity};

const ABSOLUTE_PATH: &str = "absolute-path";
const RIGID_FOLDER: &str = "rigid-folder";

/// Accounts of images, build machines and services, and placeholders.
const SERVICE_ACCOUNTS: &str = " runner runneradmin node app ubuntu debian fedora centos rocky alpine core pi vscode \
    circleci distiller jovyan vagrant gitpod codespace codespaces coder linuxbrew docker git www www-data deploy \
    deployer travis jenkins appveyor vsts vssadministrator containeruser containeradministrator gitlab-runner \
    buildkite-agent semaphore ec2-user azureuser opc nonroot nobody username yourname your-name your_name \
    youruser your-user your_user yourusername your-username your_username ";

/// Directories beside the homes, for all users.
const SHARED: [&str; 3] = ["/Users/Shared", ":\\Users\\Public", ":\\Users\\Default"];

fn is_no_person(root: &str, name: &str) -> bool {
    let root = root.replace("\\\\", "\\");
    SERVICE_ACCOUNTS.contains(&format!(" {} ", name.to_lowercase()))
        || SHARED.iter().any(|shared| root.ends_with(shared))
}

/// A home directory in a file.
struct Home {
    at: usize,
    root: String,
}

/// Returns the home directories in a file, each once. `home` is the user's own and ends with a slash.
pub fn homes(home: Option<&str>, path: &str, bytes: &[u8]) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    let mut known: Vec<String> = Vec::new();
    let only_own = file_kind::holds_routes(path) || file_kind::is_for_a_server(path);
    let others = if only_own { Vec::new() } else { other_homes(home, bytes) };
    for Home { at, root } in own_home(home, bytes).into_iter().chain(others) {
        let (line, text) = line_at(bytes, at);
        if is_comment(&text) || known.contains(&root) || found.len() == MAX_FINDINGS_PER_FILE {
            continue;
        }
        let own = is_own(home, &root);
        let (whose, severity) =
            if own { ("your", Severity::Critical) } else { ("another user's", Severity::High) };
        let description = format!("absolute path in {whose} home ({root})");
        let advice = "Do not rely on it or add more: use a relative path or a variable";
        found.push(finding(ABSOLUTE_PATH, severity, path, Some(line), &root, description, advice));
        known.push(root);
    }
    found
}

fn is_own(home: Option<&str>, root: &str) -> bool {
    home.is_some_and(|home| home.trim_end_matches('/') == root)
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(['#', ';']) || ["//", "/*", "* ", "<!--"].iter().any(|sign| line.starts_with(sign))
}

fn own_home(home: Option<&str>, bytes: &[u8]) -> Vec<Home> {
    let Some(home) = home else { return Vec::new() };
    let at = memchr::memmem::find_iter(bytes, home).filter(|at| starts_path(bytes, *at));
    at.map(|at| Home { at, root: home.trim_end_matches('/').to_owned() }).collect()
}

fn other_homes(home: Option<&str>, bytes: &[u8]) -> Vec<Home> {
    let mut found = Vec::new();
    for prefix in ["/home/", "/Users/", ":\\Users\\", ":\\\\Users\\\\"] {
        for at in memchr::memmem::find_iter(bytes, prefix) {
            let has_drive = prefix.starts_with(':');
            if has_drive && !bytes[..at].last().is_some_and(u8::is_ascii_alphabetic) {
                continue;
            }
            let begin = at - usize::from(has_drive);
            let Some(name) = user_name(&bytes[at + prefix.len()..]) else { continue };
            let root = format!("{}{name}", String::from_utf8_lossy(&bytes[begin..at + prefix.len()]));
            if !is_own(home, &root) && starts_path(bytes, begin) && !is_no_person(&root, name) {
                found.push(Home { at, root });
            }
        }
    }
    found
}

/// Returns the name of a user at the beginning of these bytes, if more of a path follows it.
fn user_name(after: &[u8]) -> Option<&str> {
    let fits = |byte: &&u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let length = after.iter().take(33).take_while(fits).count();
    let is_name = (1..=32).contains(&length) && matches!(after.get(length), Some(b'/' | b'\\'));
    std::str::from_utf8(&after[..length]).ok().filter(|_| is_name)
}

/// Returns whether an absolute path starts here: after a quote, a space, an equals sign or a compiler's flag, and not
/// on another machine.
fn starts_path(bytes: &[u8], at: usize) -> bool {
    const FLAGS: [&[u8]; 7] = [b"-I", b"-L", b"-F", b"-B", b"-isystem", b"-Wl,-rpath,", b"-R"];
    let before = &bytes[..at];
    let ends_word = |before: &[u8]| {
        let part_of_path = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-~/}$%>*)]".contains(byte);
        !before.last().is_some_and(part_of_path)
    };
    let after_flag = FLAGS.iter().any(|flag| before.strip_suffix(*flag).is_some_and(ends_word));
    (ends_word(before) || after_flag) && !is_elsewhere(before)
}

/// Returns whether a path after this is on another machine, `user@host:`, or in a container, `-v volume:`.
fn is_elsewhere(before: &[u8]) -> bool {
    let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    let Some(line) = before[start..].strip_suffix(b":") else { return false };
    let apart = |byte: &u8| byte.is_ascii_whitespace() || b"\"'=,".contains(byte);
    let word = line.iter().rposition(apart).map_or(0, |at| at + 1);
    let option = &line[..line[..word].iter().rposition(|byte| !apart(byte)).map_or(0, |at| at + 1)];
    line[word..].contains(&b'@') || [&b"-v"[..], b"--volume"].iter().any(|name| option.ends_with(name))
}

/// Returns where a script changes to a fixed directory of one machine.
pub fn fixed_directories(path: &str, bytes: &[u8]) -> Vec<Finding> {
    let roots = ["/opt/", "/srv/", "/mnt/", "/data/", "/var/www/", "/home/", "/Users/"];
    let mut found = Vec::new();
    for at in memchr::memmem::find_iter(bytes, b"cd ") {
        let target = &bytes[at + 3..];
        let target = target.strip_prefix(b"\"").or(target.strip_prefix(b"'")).unwrap_or(target);
        let is_command = at == 0 || bytes[at - 1].is_ascii_whitespace() || b";&(@".contains(&bytes[at - 1]);
        let fixed = roots.iter().any(|root| target.starts_with(root.as_bytes()));
        if !is_command || !fixed || found.len() == MAX_FINDINGS_PER_FILE {
            continue;
        }
        let (line, text) = line_at(bytes, at);
        if !text.trim_start().starts_with('#') {
            let what = "works in a fixed absolute folder".to_owned();
            let advice = "Do not assume that the folder exists";
            found.push(finding(RIGID_FOLDER, Severity::Medium, path, Some(line), text.trim(), what, advice));
        }
    }
    found
}
