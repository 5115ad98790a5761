//! The plugin as a git marketplace brings it: no programs, only the scripts that stand in for them.

use crate::env::{copy_program, write_program};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const PROGRAMS: [&str; 4] = ["ralph", "ralph-guidance", "ralph-stop-hook", "ralph-session-start-hook"];

struct Clone {
    _folder: TempDir,
    home: PathBuf,
    root: PathBuf,
}

impl Clone {
    fn new() -> Clone {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (home, root) = (base.join("home"), base.join("the plugin"));
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::create_dir_all(home.join("data")).unwrap();
        for name in PROGRAMS.iter().chain(&["stand-in.sh"]) {
            copy_program(
                &Path::new(env!("CARGO_MANIFEST_DIR")).join("bin").join(name),
                &root.join("bin").join(name),
            );
        }
        Clone { _folder: folder, home, root }
    }

    fn call(&self, name: &str, args: &[&str], session: &str, input: &Value) -> Output {
        let mut command = Command::new(self.root.join("bin").join(name));
        command.args(args).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", &self.home);
        command.env("CLAUDE_PLUGIN_ROOT", &self.root).env("CLAUDE_PLUGIN_DATA", self.home.join("data"));
        command.env("CLAUDE_CODE_SESSION_ID", session).current_dir(&self.home);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Not every script reads it.
        let _ = child.stdin.take().unwrap().write_all(input.to_string().as_bytes());
        child.wait_with_output().unwrap()
    }

    /// A hook's answer: exit 0, nothing on stderr, and one JSON object or nothing.
    fn hook(&self, name: &str, session: &str, input: Value) -> Value {
        let output = self.call(name, &[], session, &input);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        if output.stdout.is_empty() { Value::Null } else { serde_json::from_slice(&output.stdout).unwrap() }
    }

    /// The programs, installed where cargo puts them.
    fn cargo_install(&self, names: &[&str]) {
        let bin = self.home.join(".cargo/bin");
        fs::create_dir_all(&bin).unwrap();
        for name in names {
            write_program(
                &bin.join(name),
                &format!("#!/bin/sh\ncat >/dev/null; echo '\"{name} '\"$*\"'\"'\n"),
            );
        }
    }
}

fn stop() -> Value {
    json!({"hook_event_name": "Stop", "session_id": "s"})
}

#[test]
fn each_session_is_told_once_and_everything_is_allowed() {
    let clone = Clone::new();
    let start = || json!({"hook_event_name": "SessionStart", "source": "startup"});
    let told = clone.hook("ralph-session-start-hook", "s1", start());
    let text = told["systemMessage"].as_str().unwrap();
    assert!(text.contains(&format!("cargo install --locked --path '{}'", clone.root.display())), "{text}");
    assert!(text.contains("release archive"), "{text}");
    for _ in 0..3 {
        assert_eq!(clone.hook("ralph-stop-hook", "s1", stop()), Value::Null);
        assert_eq!(clone.hook("ralph-session-start-hook", "s1", start()), Value::Null);
    }
    let told = clone.hook("ralph-stop-hook", "s2", stop());
    assert!(
        told["systemMessage"].is_string() && told["decision"].is_null(),
        "a session that began before: {told}"
    );
    assert_eq!(clone.hook("ralph-stop-hook", "s2", stop()), Value::Null);
}

#[test]
fn where_nothing_can_be_noted_only_the_start_speaks() {
    let clone = Clone::new();
    fs::remove_dir(clone.home.join("data")).unwrap();
    assert_eq!(clone.hook("ralph-stop-hook", "s", stop()), Value::Null);
    assert!(clone.hook("ralph-session-start-hook", "s", json!({}))["systemMessage"].is_string());
}

#[test]
fn a_command_of_ours_is_answered_and_others_are_let_through() {
    let clone = Clone::new();
    let typed = |command: &str| json!({"hook_event_name": "UserPromptExpansion", "command_name": command});
    let answer = clone.hook("ralph-session-start-hook", "s", typed("ralph:start"));
    assert!(
        answer["decision"] == "block" && answer["reason"].as_str().unwrap().contains("cargo install"),
        "{answer}"
    );
    assert_eq!(clone.hook("ralph-session-start-hook", "s", typed("review")), Value::Null);
    assert_eq!(clone.call("ralph", &["wake"], "s", &stop()).stdout, b"");
    let relay = clone.call("ralph", &["relay", "start"], "s", &Value::Null);
    assert!(
        relay.status.success() && relay.stdout.starts_with(b"Tell the user: Ralph was installed without")
    );
    let slash = clone.call("ralph-guidance", &["forbid", "--slash", "--session", "s"], "s", &Value::Null);
    assert!(
        slash.status.success() && slash.stdout.starts_with(b"Tell the user: Ralph was installed without")
    );
    let typed = clone.call("ralph-guidance", &["list"], "s", &Value::Null);
    assert_eq!((typed.status.code(), typed.stdout.len()), (Some(69), 0));
}

#[test]
fn installed_programs_are_run_in_its_place() {
    let clone = Clone::new();
    clone.cargo_install(&PROGRAMS);
    for name in PROGRAMS {
        let output = clone.call(name, &["a b", "c"], "s", &stop());
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("\"{name} a b c\"\n"));
    }
}

#[test]
fn another_program_called_ralph_is_not_ours() {
    let clone = Clone::new();
    clone.cargo_install(&["ralph"]);
    assert!(clone.call("ralph", &["relay", "start"], "s", &stop()).stdout.starts_with(b"Tell the user"));
}

#[test]
fn a_link_to_the_script_does_not_run_in_circles() {
    let clone = Clone::new();
    let bin = clone.home.join(".cargo/bin");
    fs::create_dir_all(&bin).unwrap();
    for name in PROGRAMS.iter().chain(&["stand-in.sh"]) {
        std::os::unix::fs::symlink(clone.root.join("bin").join(name), bin.join(name)).unwrap();
    }
    assert!(clone.hook("ralph-stop-hook", "s", stop())["systemMessage"].is_string());
}

#[test]
fn a_folder_that_would_break_the_answer_is_not_quoted() {
    let clone = Clone::new();
    let odd = clone.home.join("it's \"odd\"");
    fs::rename(&clone.root, &odd).unwrap();
    let clone = Clone { root: odd, ..clone };
    let told = clone.hook("ralph-stop-hook", "s", stop());
    assert!(told["systemMessage"].as_str().unwrap().contains("--path 'the folder of this plugin'"), "{told}");
}

#[test]
fn the_repository_is_a_marketplace_of_this_version_and_its_scripts_can_be_run() {
    let read = |name: &str| -> Value {
        let path = format!("{}/{name}", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    };
    assert_eq!(read(".claude-plugin/plugin.json")["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(read("plugin.json"), read(".claude-plugin/plugin.json"));
    let marketplace = read(".claude-plugin/marketplace.json");
    assert_eq!((&marketplace["name"], &marketplace["plugins"][0]["source"]), (&json!("ralph"), &json!("./")));
    for name in PROGRAMS {
        let meta = fs::metadata(format!("{}/bin/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert!(meta.permissions().mode() & 0o111 == 0o111, "{name}");
    }
}
