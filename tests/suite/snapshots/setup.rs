//! The commands around a loop: init, archive, doctor, demo, install.

use super::{Page, replace};
use crate::env::{Env, Program, Run, names_in, write_program};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn init_and_archive() {
    let mut page = Page::new();
    let env = Env::git();
    page.ralph(&env, &["init", "--name", "demo"]).ralph(&env, &["init"]);
    env.run_with("work; commit; promise COMPLETE", &["--no-tasks", "make the suite green"]).run();
    page.ralph(&env, &["archive", "--label", "first"]);
    page.check("project");
}

/// Writes a Claude Code that knows its version and its plugins, and nothing else.
fn fake_client(env: &Env, plugins: &str) {
    let base = env.base.display();
    fs::create_dir_all(env.base.join("bin")).unwrap();
    fs::write(env.base.join("plugins"), plugins).unwrap();
    let claude = format!(
        "case \"$1\" in\n--version) echo '2.1.325 (Claude Code)';;\nplugin) cat '{base}/plugins';;\n*) exit 1;;\nesac"
    );
    // The real git and its words differ from machine to machine.
    for (name, text) in [("claude", claude.as_str()), ("git", "echo true")] {
        let path = env.base.join("bin").join(name);
        write_program(&path, &format!("#!/bin/sh\n{text}\n"));
    }
    env.var("PATH", &format!("{base}/bin:/usr/local/bin:/usr/bin:/bin"));
}

fn doctor(env: &Env, args: &[&str]) -> Run {
    env.ralph(&[&["doctor", "--quick"], args].concat())
}

#[test]
fn doctor_checks() {
    let mut page = Page::new();
    let env = Env::git();
    for folder in ["project/.git/refs/heads", "project/.git/objects", "home/.claude"] {
        fs::create_dir_all(env.base.join(folder)).unwrap();
    }
    fs::write(env.base.join("home/.claude.json"), "{}").unwrap();
    fs::set_permissions(env.data(), fs::Permissions::from_mode(0o700)).unwrap();
    let plugin = env.base.join("a plugin");
    page.ralph(&env, &["install", "--to", plugin.to_str().unwrap()]);
    let entry = json!([{"id": "ralph@ralph", "version": env!("CARGO_PKG_VERSION"), "scope": "user", "enabled": true,
        "installPath": "/nowhere", "readFromFolder": plugin, "errors": []}]);
    fake_client(&env, &entry.to_string());
    page.run(&env, "ralph doctor: a healthy installation", &doctor(&env, &[]));
    fake_client(&env, "[]");
    page.run(&env, "ralph doctor: without the plugin", &doctor(&env, &[]));
    page.run(&env, "ralph doctor: without Claude Code", &doctor(&env, &["--claude", "/no/such/claude"]));
    page.check("doctor");
}

#[test]
fn demo() {
    let env = Env::new();
    let temporary = env.base.join("tmp");
    fs::create_dir(&temporary).unwrap();
    let run = env.call(Program::Ralph).args(&["demo", "--fast"]).var("TMPDIR", &temporary).run();
    let stdout = replace(&run.stdout, r"(· |Duration: +|Avg/iter: +)[0-9]+s", "$1[n]s");
    Page::new().run(&env, "ralph demo --fast", &Run { stdout, ..run }).check("demo");
}

/// What agents and the client read verbatim: the templates that `ralph init` writes, and the commands of the plugin.
#[test]
fn files() {
    let mut page = Page::new();
    let env = Env::named("shop");
    env.ralph(&["init"]).ok();
    for name in ["prompt.md", "prd.md", "tasks.json", "progress.txt"] {
        page.section(&env, &format!("ralph/{name}"), &env.read(&format!("ralph/{name}")));
    }
    page.section(&env, ".gitignore", &env.read(".gitignore"));
    env.ralph(&["install", "--to", env.base.join("plugin").to_str().unwrap()]).ok();
    for folder in ["commands", "skills/start"] {
        for name in names_in(&env.base.join("plugin").join(folder)) {
            let text = fs::read_to_string(env.base.join("plugin").join(folder).join(&name)).unwrap();
            page.section(&env, &format!("{folder}/{name}"), &text);
        }
    }
    page.check("files");
}
