//! The documentation: every command in it runs, links lead to a file, and the reference matches the code.

mod deciding;
mod files;
mod lists;
mod reference;
mod tables;

use crate::env::{Env, SESSION, write_program};
use crate::setup::install;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

const README_MAX_LINES: usize = 180;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the name and text of every page.
fn pages() -> Vec<(String, String)> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let docs = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let docs = docs.map(|path| path.strip_prefix(root()).unwrap().display().to_string());
    let top = ["README.md", "SECURITY.md", "CONTRIBUTING.md", "ARCHITECTURE.md"].map(String::from);
    top.into_iter().chain(docs).map(|name| (name.clone(), page(&name))).collect()
}

/// Returns the code blocks of a page in one language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open: Option<&str> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), open) {
            (Some(name), None) => {
                open = Some(name);
                found.extend((name == language).then(String::new));
            }
            (Some(_), Some(_)) => open = None,
            (None, Some(name)) if name == language => found.last_mut().unwrap().extend([line, "\n"]),
            _ => {}
        }
    }
    found
}

/// Returns the rows of every table in a text, without its headings.
fn rows(text: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| {
        let line = line.trim().trim_matches('|').replace("\\|", "\0");
        line.split('|').map(|cell| cell.trim().replace('\0', "|")).collect::<Vec<_>>()
    };
    let lines: Vec<&str> = text.lines().collect();
    let heading = |at: usize| lines.get(at + 1).is_some_and(|next| next.starts_with("|-"));
    let tables = lines.iter().enumerate().filter(|(at, line)| line.starts_with("| ") && !heading(*at));
    tables.map(|(_, line)| cells(line)).collect()
}

/// Returns what stands between back-quotes.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(String::from).collect()
}

/// Replaces what a test cannot do in seconds, and refuses what it does not know, so that a new command in the docs
/// needs a decision here.
const CARGO: &str = r#"#!/bin/sh
case "$*" in
"run --release -- "*) shift 3; exec ralph "$@" --fast ;;
"install --locked --path ." | "install cargo-mutants --locked" | test) ;;
"mutants -f src/"*) test -f "$REPOSITORY/$3" ;;
*) echo "cargo $* is in no documentation" >&2; exit 1 ;;
esac
"#;

const NPM: &str = r#"#!/bin/sh
test "$1 $2" = "ci --prefix" && test -f "$REPOSITORY/$3/package-lock.json"
"#;

/// An agent that is done at once.
const CLAUDE: &str = r#"case "$*" in
"--bg -- /ralph:start "*) echo "backgrounded"; exit ;;
"-p --output-format stream-json"*)
    cat > /dev/null
    printf '%s\n' '{"type":"result","is_error":false,"result":"Done.\n\n<promise>COMPLETE</promise>","session_id":"s"}'
    exit ;;
esac
"#;

/// Returns a user in a project who has every program that the docs mention.
fn user() -> Env {
    let env = Env::git();
    env.write(".git/refs/heads/main", "a".repeat(40));
    let bin = env.base.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let client = install::CLIENT.replacen("#!/bin/sh\n", &format!("#!/bin/sh\n{CLAUDE}"), 1);
    for (name, text) in [("cargo", CARGO), ("npm", NPM), ("claude", &client)] {
        write_program(&bin.join(name), text);
    }
    let built = Path::new(env!("CARGO_BIN_EXE_ralph")).parent().unwrap();
    for name in ["ralph", "ralph-stop-hook", "ralph-session-start-hook", "ralph-guidance"] {
        symlink(built.join(name), bin.join(name)).unwrap();
    }
    let fake = env.base.join("fake");
    fs::create_dir(&fake).unwrap();
    env.var("PATH", &format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
    env.var("FAKE", fake.to_str().unwrap()).var("REPOSITORY", root().to_str().unwrap());
    env
}

fn shell(env: &Env, page: &str, script: &str) {
    let run = env.call_at(Path::new("/bin/sh")).args(&["-euc", script]).run();
    assert_eq!(run.code, Some(0), "{page}:\n{script}\n{}\n{}", run.stdout, run.stderr);
}

fn slash_command(env: &Env, page: &str, line: &str) {
    let line = line.strip_prefix("/ralph:").unwrap_or_else(|| panic!("{page}: {line}"));
    let (command, words) = line.split_once(' ').unwrap_or((line, ""));
    let answer = env.types(SESSION, command, words);
    // Without a loop an answer is a block, and so is an error: its first word tells them apart.
    let told = answer.block.clone().unwrap_or_default();
    assert!(!told.starts_with("error:") && !told.starts_with("ralph:"), "{page}: {line}: {answer:?}");
}

#[test]
fn every_shell_command_in_the_docs_runs() {
    let mut count = 0;
    for (page, text) in pages() {
        for block in blocks(&text, "sh") {
            shell(&user(), &page, &block);
            count += 1;
        }
        assert_eq!(blocks(&text, "bash"), [""; 0], "{page}: call the language sh");
    }
    assert!(count >= 8, "{count}");
}

#[test]
fn every_slash_command_in_the_docs_is_understood() {
    let mut count = 0;
    for (page, text) in pages() {
        for line in blocks(&text, "claude").iter().flat_map(|block| block.lines()) {
            slash_command(&user(), &page, line);
            count += 1;
        }
    }
    assert!(count >= 2, "{count}");
}

/// The README's table of what people do is read as one afternoon: each row in its turn, in one project.
#[test]
fn the_ten_things_people_do_work_in_their_order() {
    let readme = page("README.md");
    let section = readme.split("\n## ").find(|section| section.starts_with("Ten things")).unwrap();
    let commands: Vec<String> = rows(section).iter().flat_map(|row| quoted(&row[0])).collect();
    assert_eq!(rows(section).len(), 10);
    let env = user();
    env.write("prd.json", r#"{"userStories": [{"id": "US-1", "title": "t", "passes": true}]}"#);
    for command in &commands {
        if command.contains("answer") {
            env.ralph(&["start", "--session", SESSION, "--replace", "ask"]).ok();
            env.turn(SESSION, "<promise>DECIDE:which one?</promise>");
        }
        match command.starts_with('/') {
            true => slash_command(&env, "README.md", command),
            false => shell(&env, "README.md", command),
        }
    }
}

#[test]
fn the_readme_is_short() {
    let lines = page("README.md").lines().count();
    assert!(lines <= README_MAX_LINES, "README.md has {lines} lines, at most {README_MAX_LINES}");
}

#[test]
fn every_json_in_the_docs_is_json_and_its_settings_exist() {
    for (page, text) in pages() {
        for block in blocks(&text, "json") {
            let value: Value =
                serde_json::from_str(&block).unwrap_or_else(|error| panic!("{page}: {error}\n{block}"));
            if value.get("scan").is_some() {
                let env = Env::new();
                env.write(".claude/ralph-config.json", &block);
                let shown: Value = serde_json::from_str(&env.ralph(&["config", "--json"]).ok()).unwrap();
                assert!(shown["warnings"].as_array().is_none_or(Vec::is_empty), "{page}: {shown}");
            }
        }
    }
}

/// Returns the anchors that a page's headings have on GitHub.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let heading = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        heading.chars().filter(|c| c.is_alphanumeric() || *c == '-' || *c == '_').collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_lead_to_a_file_and_a_heading() {
    for (page, text) in pages() {
        let folder = root().join(&page).parent().unwrap().to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("http") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path: PathBuf = if file.is_empty() { root().join(&page) } else { folder.join(file) };
            assert!(path.exists(), "{page}: {link}");
            if !anchor.is_empty() {
                let target = fs::read_to_string(path).unwrap();
                assert!(anchors(&target).iter().any(|known| known == anchor), "{page}: {link}");
            }
        }
    }
}

#[test]
fn every_page_can_be_reached_from_the_readme() {
    let readme = page("README.md");
    for (page, _) in pages().iter().filter(|(page, _)| page != "README.md") {
        assert!(readme.contains(&format!("({page})")), "README.md has no link to {page}");
    }
}

#[test]
fn scripts_are_valid_shell() {
    let scripts = fs::read_dir(root().join("scripts")).unwrap().map(|entry| entry.unwrap().path());
    for path in scripts.chain([root().join(".ci/run")]) {
        let checked = Command::new("bash").arg("-n").arg(&path).output().unwrap();
        let complaint = String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.success(), "{}: {complaint}", path.display());
    }
}
