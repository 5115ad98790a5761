//! The documentation: every command in it is run, and the reference is held against the code.

use crate::env::{Env, SESSION};
use crate::install;
use ralph::cli::{command_line, guidance_program};
use ralph::core::settings::{KEYS, RUN_FLAGS};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every page, by its name.
fn pages() -> Vec<(String, String)> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let docs = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let top =
        ["README.md", "SECURITY.md", "CONTRIBUTING.md", "ARCHITECTURE.md"].map(|name| root().join(name));
    let named = |path: PathBuf| {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        (name, fs::read_to_string(path).unwrap())
    };
    top.into_iter().chain(docs).map(named).collect()
}

/// The code blocks of a page in one language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut within: Option<&str> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), within) {
            (Some(begins), None) => {
                within = Some(begins);
                found.extend((begins == language).then(String::new));
            }
            (Some(_), Some(_)) => within = None,
            (None, Some(of)) if of == language => found.last_mut().unwrap().extend([line, "\n"]),
            _ => {}
        }
    }
    found
}

/// Stands in for what a test cannot do in seconds, and refuses what it does not know: a command in the docs that is
/// new has to be thought of.
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

/// One answer of the model, and it is done.
const CLAUDE: &str = r#"case "$*" in
"-p --output-format stream-json"*)
    cat > /dev/null
    printf '%s\n' '{"type":"result","is_error":false,"result":"Done.\n\n<promise>COMPLETE</promise>","session_id":"s"}'
    exit ;;
esac
"#;

/// A user in a project who has all the programs that the docs speak of.
fn user() -> Env {
    let env = Env::git();
    env.write(".git/refs/heads/main", "a".repeat(40));
    let bin = env.base.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let client = install::CLIENT.replacen("#!/bin/sh\n", &format!("#!/bin/sh\n{CLAUDE}"), 1);
    for (name, text) in [("cargo", CARGO), ("npm", NPM), ("claude", &client)] {
        fs::write(bin.join(name), text).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let built = Path::new(env!("CARGO_BIN_EXE_ralph")).parent().unwrap();
    for name in ["ralph", "ralph-stop-hook", "ralph-session-start-hook", "ralph-guidance"] {
        symlink(built.join(name), bin.join(name)).unwrap();
    }
    let fake = env.base.join("fake");
    fs::create_dir(&fake).unwrap();
    env.var("PATH", &format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
    env.var("FAKE", fake.to_str().unwrap()).var("REPOSITORY", root().to_str().unwrap());
    env.without("RALPH_NOW");
    env
}

#[test]
fn every_command_in_the_docs_runs() {
    let mut count = 0;
    for (page, text) in pages() {
        for block in blocks(&text, "sh") {
            let env = user();
            let run = env.call_at(Path::new("/bin/sh")).args(&["-euc", &block]).run();
            assert_eq!(run.code, Some(0), "{page}:\n{block}\n{}\n{}", run.stdout, run.stderr);
            count += 1;
        }
        assert_eq!(blocks(&text, "bash"), Vec::<String>::new(), "{page}: say sh");
    }
    assert!(count >= 8, "{count}");
}

#[test]
fn every_slash_command_in_the_docs_is_understood() {
    let mut count = 0;
    for (page, text) in pages() {
        for line in blocks(&text, "claude").iter().flat_map(|block| block.lines()) {
            let env = user();
            let (command, words) = line.strip_prefix("/ralph:").unwrap().split_once(' ').unwrap();
            let answer = env.types(SESSION, command, words);
            assert!(answer.block.is_none(), "{page}: {line}: {answer:?}");
            count += 1;
        }
    }
    assert!(count >= 2, "{count}");
}

#[test]
fn every_json_in_the_docs_is_json_and_settings_are_ours() {
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

#[test]
fn links_lead_somewhere() {
    for (page, text) in pages() {
        let folder = root().join(&page).parent().unwrap().to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap();
            let elsewhere = link.starts_with("http") || file.is_empty();
            assert!(elsewhere || folder.join(file).exists(), "{page}: {link}");
            // A place within the page: its heading, in small letters and without signs.
            let anchor = link.strip_prefix('#').unwrap_or_default();
            let there = text.lines().filter(|line| line.starts_with('#')).any(|line| {
                let kept = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
                kept.chars().filter(|c| c.is_alphanumeric() || *c == '-').eq(anchor.chars())
            });
            assert!(anchor.is_empty() || there, "{page}: {link}");
        }
    }
}

#[test]
fn every_setting_is_in_the_reference_with_its_flag_and_default() {
    let text = fs::read_to_string(root().join("docs/settings.md")).unwrap();
    let of_run = |name: &str| RUN_FLAGS.iter().find(|(_, key, ..)| *key == name).map(|(flag, ..)| *flag);
    for key in &KEYS {
        let flag = match (key.flag, of_run(key.name)) {
            (Some(flag), _) => format!(" `--{flag}` "),
            (None, Some(flag)) => format!(" `run --{flag}` "),
            (None, None) => " ".into(),
        };
        let default = match key.default() {
            Value::Null => "none".into(),
            Value::String(text) => format!("`{text}`"),
            Value::Array(list) => format!("`{}`", Value::Array(list)),
            other => other.to_string().trim_end_matches(".0").to_owned(),
        };
        let row = format!("| `{}` |{flag}| {default} | ", key.name);
        assert!(text.contains(&row), "{row}");
    }
    let rows = text.lines().filter(|line| line.starts_with("| `") && line.contains('.')).count();
    assert_eq!(rows, KEYS.len(), "a setting that there is not");
}

/// The long flags of a command.
fn flags(command: &clap::Command) -> Vec<String> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    shown.filter_map(|arg| arg.get_long()).map(|long| format!("--{long}")).collect()
}

#[test]
fn every_command_and_flag_is_in_the_docs_and_no_other() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let all: String = pages().into_iter().map(|(_, text)| text).collect();
    let mut missing: Vec<String> = Vec::new();
    let mut known: BTreeSet<String> = ["--help", "--version"].map(String::from).into();
    for command in command_line::command().get_subcommands() {
        let name = command.get_name();
        let rows: String =
            readme.lines().filter(|line| line.starts_with(&format!("| `ralph {name}"))).collect();
        assert!(!rows.is_empty(), "ralph {name} has no row in README.md");
        let everywhere = ["run", "start"].contains(&name);
        for flag in flags(command) {
            let told = if everywhere { &all } else { &rows };
            missing.extend((!told.contains(&flag)).then(|| format!("ralph {name} {flag}")));
            known.insert(flag);
        }
    }
    for command in guidance_program::command().get_subcommands() {
        for flag in flags(command) {
            let name = command.get_name();
            missing.extend((!readme.contains(&flag)).then(|| format!("ralph-guidance {name} {flag}")));
            known.insert(flag);
        }
    }
    assert_eq!(missing, [""; 0], "not in the docs");
    // Flags of other programs, and names that one of ours also has.
    let others = [
        "--plugin-dir",
        "--bins",
        "--release",
        "--locked",
        "--path",
        "--marketplace",
        "--completion-promise",
        "--bench",
        "--exclude-standard",
        "--prefix",
        "--lib",
        "--timeout",
        "--continue",
        "--to",
    ];
    known.extend(others.map(String::from));
    let mut unknown: Vec<String> = Vec::new();
    let pages =
        pages().into_iter().filter(|(page, _)| page != "CONTRIBUTING.md" && page != "ARCHITECTURE.md");
    for (page, text) in pages {
        for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')) {
            let flag = word.starts_with("--") && word.len() > 3 && word.as_bytes()[2].is_ascii_lowercase();
            unknown.extend((flag && !known.contains(word)).then(|| format!("{page}: {word}")));
        }
    }
    assert_eq!(unknown, [""; 0], "no command of ours has it");
}

#[test]
fn scripts_are_shell_that_a_shell_understands() {
    for name in ["scripts/release", "scripts/record-demo", ".ci/run"] {
        let checked = Command::new("bash").arg("-n").arg(root().join(name)).output().unwrap();
        assert!(checked.status.success(), "{name}: {}", String::from_utf8_lossy(&checked.stderr));
    }
}
