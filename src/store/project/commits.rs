//! What git knows about the work of a run: the commits between two states of HEAD, and what they changed as a whole.

use super::{Project, git, git_process};
use crate::core::text::clean;
use crate::core::time::Stamp;
use crate::store::process::program::MAX_ANSWER_BYTES;
use std::time::Duration;

/// A repository in which this takes longer is shown without its commits.
const MAX_GIT_WAIT: Duration = Duration::from_secs(20);
/// The newest are read.
const MAX_COMMITS: usize = 5000;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commits {
    /// Oldest first.
    pub list: Vec<Commit>,
    /// What changed from the first state to the last, as git prints it without context.
    pub patch: String,
    /// There is more than was read.
    pub is_cut: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commit {
    pub id: String,
    pub at: Stamp,
    pub subject: String,
    pub files: Vec<Changed>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    pub path: String,
    /// Lines; 0 for a binary file.
    pub added: u64,
    pub removed: u64,
}

/// Returns the commits after `from` up to `to`. A branch without a commit, which `from` may name, has none before.
pub fn between(project: &Project, from: &str, to: &str) -> Result<Commits, String> {
    if git::top(&project.root).is_none() {
        return Err("no git repository".into());
    }
    if from == to {
        return Ok(Commits::default());
    }
    if !git::is_commit(to) {
        return Err("the last commit of the run is not known".into());
    }
    let (range, base) = match git::is_commit(from) {
        true => (format!("{from}..{to}"), from.to_owned()),
        false if from.starts_with("refs/") => (to.to_owned(), empty_tree(project)?),
        false => return Err("the commit that the run began at is not known".into()),
    };
    let max = format!("--max-count={MAX_COMMITS}");
    let log = ["log", &max, "--topo-order", "--format=commit %H %ct %s", "--numstat", "--no-mailmap"];
    let log = ask(project, &[&log[..], PLAIN_DIFF, &[&range, "--"]].concat(), b"")?;
    let patch = ask(project, &[&["diff", "--unified=0"], PLAIN_DIFF, &[&base, to, "--"]].concat(), b"")?;
    let mut list = parse(&log);
    list.reverse();
    let is_cut =
        list.len() >= MAX_COMMITS || [&log, &patch].iter().any(|text| text.len() >= MAX_ANSWER_BYTES);
    Ok(Commits { list, patch, is_cut })
}

/// What a diff starts by the repository's settings, and what they change of its form, is switched off here.
const PLAIN_DIFF: &[&str] = &[
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-renames",
    "--no-show-signature",
    "--submodule=short",
    "-O/dev/null",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

fn ask(project: &Project, args: &[&str], input: &[u8]) -> Result<String, String> {
    git_process::run_git(&project.root, args, input, MAX_GIT_WAIT)
}

fn empty_tree(project: &Project) -> Result<String, String> {
    Ok(ask(project, &["hash-object", "-t", "tree", "--stdin"], b"")?.trim().to_owned())
}

/// Parses the log: a line for each commit, and then one for each of its files, which begins with a number or a dash.
fn parse(log: &str) -> Vec<Commit> {
    let mut commits: Vec<Commit> = Vec::new();
    for line in log.lines() {
        if let Some(commit) = line.strip_prefix("commit ") {
            let mut parts = commit.splitn(3, ' ');
            let (id, seconds) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            commits.push(Commit {
                id: id.to_owned(),
                at: Stamp(seconds.parse::<i64>().unwrap_or(0).saturating_mul(1000)),
                subject: clean::excerpt(parts.next().unwrap_or_default(), 200),
                files: Vec::new(),
            });
        } else if let (Some(commit), Some(file)) = (commits.last_mut(), changed(line)) {
            commit.files.push(file);
        }
    }
    commits
}

fn changed(line: &str) -> Option<Changed> {
    let mut parts = line.splitn(3, '\t');
    let (added, removed, path) = (parts.next()?, parts.next()?, parts.next()?);
    let lines = |text: &str| text.parse().unwrap_or(0);
    Some(Changed { path: clean::visible(&unquoted(path)), added: lines(added), removed: lines(removed) })
}

/// Returns a path as it is: git quotes one with a quote, a backslash or a control character like a string of C.
pub fn unquoted(path: &str) -> String {
    let Some(inner) = path.strip_prefix('"').and_then(|path| path.strip_suffix('"')) else {
        return path.to_owned();
    };
    let (mut out, mut bytes) = (Vec::new(), inner.bytes());
    while let Some(byte) = bytes.next() {
        let escaped = if byte == b'\\' { bytes.next() } else { None };
        out.push(match escaped {
            None => byte,
            Some(digit @ b'0'..=b'7') => [bytes.next(), bytes.next()]
                .into_iter()
                .fold(digit - b'0', |code, next| (code << 3) | (next.unwrap_or(b'0') & 7)),
            Some(letter) => match letter {
                b'a' => 7,
                b'b' => 8,
                b't' => b'\t',
                b'n' => b'\n',
                b'v' => 11,
                b'f' => 12,
                b'r' => b'\r',
                quoted => quoted,
            },
        });
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_commit_by_commit_with_its_files() {
        let log = "commit bbbb 20 fix: a\tb 3\n\n1\t2\tsrc/a.rs\n-\t-\tlogo.png\n5\t0\t\"odd\\tname\"\ncommit aaaa x\n";
        let commits = parse(log);
        assert_eq!((commits.len(), commits[0].at, commits[1].at), (2, Stamp(20_000), Stamp(0)));
        assert_eq!(commits[0].subject, "fix: a b 3");
        let files: Vec<_> = commits[0].files.iter().map(|f| (f.path.as_str(), f.added, f.removed)).collect();
        assert_eq!(files, [("src/a.rs", 1, 2), ("logo.png", 0, 0), ("odd\\tname", 5, 0)]);
        assert!(commits[1].files.is_empty() && parse("3\t3\tno commit\n").is_empty());
    }

    #[test]
    fn a_quoted_path_is_read_as_it_is() {
        for (quoted, path) in [
            ("src/a b.rs", "src/a b.rs"),
            (r#""we<b>ird/f\"ile.txt""#, "we<b>ird/f\"ile.txt"),
            (r#""a\\b\303\244\033\t\n""#, "a\\bä\u{1b}\t\n"),
            (r#""\"#, "\"\\"),
            (r#""\4""#, "\u{0}"),
            ("\"", "\""),
        ] {
            assert_eq!(unquoted(quoted), path, "{quoted}");
        }
    }

    #[test]
    fn what_is_no_commit_is_never_given_to_git() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project { root: folder.path().to_owned() };
        assert_eq!(between(&project, "aaaa", "bbbb").unwrap_err(), "no git repository");
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        assert_eq!(between(&project, "aaaa", "aaaa").unwrap(), Commits::default());
        for (from, to) in
            [("aaaa", "--output=x"), ("--output=x", "aaaa"), ("", "aaaa"), ("aaaa", "refs/heads/x")]
        {
            assert!(between(&project, from, to).unwrap_err().contains("not known"), "{from} {to}");
        }
    }
}
