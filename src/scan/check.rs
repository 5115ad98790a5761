//! One file against the rules.

use super::files;
use super::rules::{OwnRule, Rules};
use crate::core::clean;
use crate::core::finding::{Finding, Severity};
use crate::store::project::fingerprint;
use std::fs::File;
use std::io::Read;
use std::path::Path;

pub const GENERATED: &str = "generated";
const PATHS: &str = "absolute-path";
const SECRET: &str = "secret";
const FOLDERS: &str = "rigid-folder";

/// Larger files are no source anybody edits.
const LARGEST: u64 = 1 << 20;
/// A marker stands at the head of a file.
const HEAD: usize = 2048;
/// So many findings of one rule in one file say enough.
const MOST_IN_A_FILE: usize = 3;

/// How much of a file the rules want to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    Nothing,
    Head,
    Whole,
}

/// `path` is relative and with slashes.
pub fn wants(rules: &Rules, path: &str) -> Wants {
    let specimen = files::is_specimen(path);
    let by_pattern = rules.own.iter().any(|rule| rule.reads(path));
    if by_pattern || (!specimen && (files::is_config(path) || files::is_script(path))) {
        Wants::Whole
    } else if !specimen && (files::may_hold_key(path) || files::may_be_generated(path)) {
        Wants::Head
    } else {
        Wants::Nothing
    }
}

/// As much of a file as is wanted; of a huge one, which nobody edits, its head.
pub fn read(opened: Option<File>, path: &Path, size: u64, wants: Wants) -> Vec<u8> {
    let most = if wants == Wants::Whole && size <= LARGEST { LARGEST } else { HEAD as u64 };
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(most)).unwrap_or(0) + 1);
    if let Some(file) = opened.or_else(|| File::open(path).ok()) {
        let _ = file.take(most).read_to_end(&mut bytes);
    }
    bytes
}

/// What the rules find in a file with this path and these bytes.
pub fn judge(rules: &Rules, path: &str, bytes: &[u8]) -> Vec<Finding> {
    let mut found = Vec::new();
    let specimen = files::is_specimen(path);
    if files::is_env(path) && !specimen {
        found.push(secret(path, "environment file with secrets", "Do not print, edit or commit it"));
    }
    for rule in rules.own.iter().filter(|rule| rule.names(path)) {
        found.push(own(rule, path, None, ""));
    }
    let head = &bytes[..bytes.len().min(HEAD)];
    if head.is_empty() || memchr::memchr(0, head).is_some() {
        return found;
    }
    if !specimen {
        if files::may_hold_key(path) && is_private_key(head) {
            found.push(secret(path, "private key", "Do not print, copy or commit it"));
        }
        if let Some((line, text)) = files::may_be_generated(path).then(|| marker(head)).flatten() {
            let advice = "Do not edit it: change its source or its generator";
            found.push(finding(
                GENERATED,
                Severity::High,
                path,
                Some(line),
                &text,
                "generated file".into(),
                advice,
            ));
        }
        if files::is_config(path) {
            found.extend(home_paths(rules.home.as_deref(), path, bytes));
        }
        if files::is_script(path) {
            found.extend(rigid_folders(path, bytes));
        }
    }
    for rule in rules.own.iter().filter(|rule| rule.reads(path)) {
        for at in rule.hits(bytes).take(MOST_IN_A_FILE) {
            let (line, text) = line_at(bytes, at);
            found.push(own(rule, path, Some(line), &text));
        }
    }
    found
}

fn is_private_key(head: &[u8]) -> bool {
    memchr::memmem::find(head, b"-----BEGIN ").is_some()
        && memchr::memmem::find(head, b"PRIVATE KEY").is_some()
}

fn finding(
    rule: &str,
    severity: Severity,
    path: &str,
    line: Option<u64>,
    content: &str,
    description: String,
    recommendation: &str,
) -> Finding {
    let print = fingerprint(format!("{rule}\0{path}\0{}", clean::line(content)).as_bytes());
    Finding {
        id: format!("{rule}-{:08x}", print as u32),
        severity,
        category: rule.to_owned(),
        description,
        file: path.to_owned(),
        line,
        recommendation: recommendation.to_owned(),
    }
}

/// A secret is named by its place alone: nothing of what it says goes anywhere.
fn secret(path: &str, what: &str, recommendation: &str) -> Finding {
    finding(SECRET, Severity::High, path, None, "", what.to_owned(), recommendation)
}

fn own(rule: &OwnRule, path: &str, line: Option<u64>, text: &str) -> Finding {
    finding(&rule.id, rule.severity, path, line, text, rule.message.clone(), "A rule of this project")
}

pub fn generated_folder(folder: &str, count: usize) -> Finding {
    let description = format!("{count} generated files in this folder");
    finding(
        GENERATED,
        Severity::High,
        folder,
        None,
        "",
        description,
        "Do not edit them: change their source or their generator",
    )
}

/// The line number, from 1, and the text of the line at a position.
fn line_at(bytes: &[u8], at: usize) -> (u64, String) {
    let line = memchr::memchr_iter(b'\n', &bytes[..at]).count() as u64 + 1;
    let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |at| at + 1);
    let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |length| at + length);
    (line, String::from_utf8_lossy(&bytes[start..end]).into_owned())
}

/// The comment at the head of a file that says it is generated and not to be edited.
fn marker(head: &[u8]) -> Option<(u64, String)> {
    memchr::memmem::find(head, b"enerated").or_else(|| memchr::memmem::find(head, b"ENERATED"))?;
    let text = String::from_utf8_lossy(head);
    let comments: Vec<(u64, String)> = (1..)
        .zip(text.lines().take(40))
        .filter(|(_, line)| is_comment(line))
        .map(|(number, line)| (number, line.to_lowercase()))
        .collect();
    const KEEP_OUT: [&str; 10] = [
        "do not edit",
        "don't edit",
        "do not modify",
        "do not change",
        "do not hand-edit",
        "not be edited",
        "not edit by hand",
        "manual changes",
        "changes will be",
        "edits will be",
    ];
    comments.iter().enumerate().find_map(|(index, (number, line))| {
        let says_generated = line.contains("generated by")
            || line.contains("generated from")
            || line.contains("automatically generated")
            || line.contains("auto-generated")
            || line.contains("autogenerated")
            || line.contains("generated file")
            || line.contains("generated code")
            || line.contains("code generated")
            || line.contains("file is generated")
            || line.contains("was generated");
        let near = &comments[index.saturating_sub(3)..(index + 4).min(comments.len())];
        let keep_out = near.iter().any(|(_, line)| KEEP_OUT.iter().any(|words| line.contains(words)));
        let tagged =
            line.split(|c: char| !(c.is_alphanumeric() || c == '@')).any(|word| word == "@generated");
        (tagged || (says_generated && keep_out)).then(|| (*number, line.clone()))
    })
}

fn is_comment(line: &str) -> bool {
    const MARKS: [&str; 13] =
        ["//", "#", "/*", "*", "--", ";", "%", "<!--", "\"\"\"", "{-", "(*", "..", "@rem"];
    let line = line.trim_start();
    MARKS.iter().any(|mark| line.starts_with(mark))
}

/// People who are nobody: names in images, runners and documentation.
const ANYBODY: [&str; 33] = [
    "user",
    "username",
    "users",
    "you",
    "me",
    "name",
    "yourname",
    "your_name",
    "youruser",
    "runner",
    "node",
    "app",
    "ubuntu",
    "debian",
    "vscode",
    "circleci",
    "jovyan",
    "vagrant",
    "gitpod",
    "codespace",
    "example",
    "foo",
    "bar",
    "git",
    "linuxbrew",
    "docker",
    "www",
    "deploy",
    "travis",
    "build",
    "builder",
    "jenkins",
    "shared",
];

/// Absolute paths of somebody's home, each home once a file.
fn home_paths(home: Option<&str>, path: &str, bytes: &[u8]) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    let mut add = |at: usize, root: &str, severity: Severity, whose: &str| {
        let (line, text) = line_at(bytes, at);
        let comment = text.trim_start().starts_with(['#', ';']) || text.trim_start().starts_with("//");
        let known = found.iter().any(|known| known.description.contains(root));
        if comment || known || found.len() == MOST_IN_A_FILE {
            return;
        }
        let description = format!("absolute path of {whose} home ({root})");
        let advice = "Do not rely on it or add more: use a relative path or a variable";
        found.push(finding(PATHS, severity, path, Some(line), root, description, advice));
    };
    if let Some(home) = home {
        for at in memchr::memmem::find_iter(bytes, home.as_bytes()).filter(|at| starts_path(bytes, *at)) {
            add(at, home.trim_end_matches('/'), Severity::Critical, "your");
        }
    }
    for prefix in ["/home/", "/Users/", ":\\Users\\", ":\\\\Users\\\\"] {
        for at in memchr::memmem::find_iter(bytes, prefix.as_bytes()) {
            let begin = if prefix.starts_with(':') { at.saturating_sub(1) } else { at };
            let after = &bytes[at + prefix.len()..];
            let length =
                after.iter().take(33).take_while(|b| b.is_ascii_alphanumeric() || b"._-".contains(b)).count();
            let named = (1..=32).contains(&length) && matches!(after.get(length), Some(b'/' | b'\\'));
            let name = String::from_utf8_lossy(&after[..length]).into_owned();
            let root = format!("{}{name}", String::from_utf8_lossy(&bytes[begin..at + prefix.len()]));
            let ours = home.is_some_and(|home| home.trim_end_matches('/') == root);
            if named && !ours && starts_path(bytes, begin) && !ANYBODY.contains(&name.to_lowercase().as_str())
            {
                add(at, &root, Severity::High, "somebody's");
            }
        }
    }
    found
}

/// What stands before an absolute path ends something else: a quote, a space, an equals sign.
fn starts_path(bytes: &[u8], at: usize) -> bool {
    at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() || b"._-~/}$%>*".contains(&bytes[at - 1]))
}

/// Scripts that work in one fixed folder of one machine.
fn rigid_folders(path: &str, bytes: &[u8]) -> Vec<Finding> {
    let roots = ["/opt/", "/srv/", "/mnt/", "/data/", "/var/www/", "/home/", "/Users/"];
    let mut found = Vec::new();
    for at in memchr::memmem::find_iter(bytes, b"cd /") {
        let target = &bytes[at + 3..];
        let begins = at == 0 || bytes[at - 1].is_ascii_whitespace() || b";&(@".contains(&bytes[at - 1]);
        let (line, text) = line_at(bytes, at);
        let rigid = roots.iter().any(|root| target.starts_with(root.as_bytes()));
        if begins && rigid && !text.trim_start().starts_with('#') && found.len() < MOST_IN_A_FILE {
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
