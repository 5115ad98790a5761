//! `ralph doctor`: each problem is reported with a hint, and nothing is changed.

mod client;
mod files;
mod hooks;
mod leftovers;

use crate::env::{Call, Clock, Env, Program, Run, names_in, wait_until, write_program};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// Returns what the doctor says of hooks that all answer, by the plugin's files.
pub fn hooks_answered() -> String {
    let files = ["hooks.json", "steering.json"].map(|name| whole_plugin().join("hooks").join(name));
    let entries = files.map(|file| fs::read_to_string(file).unwrap()).concat().matches("\"type\":").count();
    format!("{entries} hooks answered")
}

const IDS: [&str; 16] = [
    "client",
    "plugin",
    "hooks",
    "hook-programs",
    "round-trip",
    "steering",
    "figures",
    "block-cap",
    "stop-hooks",
    "files",
    "lock",
    "git",
    "config",
    "trust",
    "docker",
    "leftovers",
];

/// The installed plugin, shared by all tests: none of them writes to it.
pub fn whole_plugin() -> &'static Path {
    static PLUGIN: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = PLUGIN.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().canonicalize().unwrap().join("a plugin");
        let env = Env::new();
        env.ralph(&["install", "--to", target.to_str().unwrap()]).ok();
        (folder, target)
    });
    path
}

pub fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_program(path, &format!("#!/bin/sh\n{text}\n"));
}

/// Replaces git, if it is not installed, by a repository and a program that succeeds.
fn replace_git(env: &Env) {
    fs::create_dir_all(env.path(".git/refs/heads")).unwrap();
    fs::create_dir(env.path(".git/objects")).unwrap();
    fs::write(env.path(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    script(&env.base.join("bin/git"), "echo true");
}

/// What Claude Code lists, with the plugin enabled.
pub fn listed(folder: &Path) -> Value {
    json!([{"id": "ralph@ralph", "version": env!("CARGO_PKG_VERSION"), "scope": "user", "enabled": true,
        "installPath": "/nowhere", "readFromFolder": folder, "errors": []}])
}

pub struct Doctor {
    pub env: Env,
    /// The clock does not move by itself, so no program is slow on a busy machine.
    clock: Clock,
}

impl Doctor {
    /// A healthy installation: a Claude Code with the plugin, a repository, and folders for everything.
    pub fn new() -> Doctor {
        Doctor::within(Env::new())
    }

    fn within(env: Env) -> Doctor {
        let made = Command::new("git").args(["init", "-q"]).arg(&env.project).status();
        if !made.is_ok_and(|made| made.success()) {
            replace_git(&env);
        }
        for folder in ["tmp", "bin", "home/.claude"] {
            fs::create_dir_all(env.base.join(folder)).unwrap();
        }
        fs::write(env.base.join("home/.claude.json"), "{}").unwrap();
        for folder in ["data", "tmp"] {
            fs::set_permissions(env.base.join(folder), fs::Permissions::from_mode(0o700)).unwrap();
        }
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", env.base.join("bin").display());
        env.var("PATH", &path).var("TMPDIR", env.base.join("tmp").to_str().unwrap());
        let clock = env.clock();
        let doctor = Doctor { env, clock };
        doctor.client("2.1.325 (Claude Code)", &listed(whole_plugin()).to_string());
        doctor
    }

    /// Installs a Claude Code with this version and these plugins.
    pub fn client(&self, version: &str, plugins: &str) -> &Doctor {
        let base = self.env.base.display();
        fs::write(self.env.base.join("version"), version).unwrap();
        fs::write(self.env.base.join("plugins"), plugins).unwrap();
        let answers = format!(
            "case \"$1\" in\n--version) cat '{base}/version';;\nplugin) cat '{base}/plugins';;\n\
             *) env > '{base}/round-trip-env'; cp -r \"$CLAUDE_CONFIG_DIR\" '{base}/round-trip-claude'; cp -r . '{base}/round-trip-project'\n\
             echo 'no model for me'; exit 1;;\nesac"
        );
        script(&self.env.base.join("bin/claude"), &answers);
        self
    }

    pub fn plugins(&self, plugins: &Value) -> &Doctor {
        self.client("2.1.325 (Claude Code)", &plugins.to_string())
    }

    fn call(&self, flags: &[&str]) -> Call {
        self.env.call(Program::Ralph).args(&["doctor", "--json"]).args(flags)
    }

    fn report(&self, call: Call) -> Report {
        self.parse(call.run())
    }

    fn parse(&self, run: Run) -> Report {
        assert_eq!(run.stderr, "");
        let told: Value = serde_json::from_str(&run.stdout).expect("one JSON object");
        let ids: Vec<_> =
            told["checks"].as_array().unwrap().iter().map(|check| check["id"].clone()).collect();
        assert_eq!(ids, IDS, "every check, each once");
        assert_eq!(names_in(&self.env.base.join("tmp")), Vec::<String>::new(), "nothing is left behind");
        assert_eq!(run.code, Some(i32::from(told["healthy"] == false)), "{told}");
        Report(told)
    }

    /// Runs the doctor without the round trip, which the fake Claude Code cannot play.
    fn check(&self) -> Report {
        self.report(self.call(&["--quick"]))
    }

    pub fn settings(&self, name: &str, text: &str) -> &Doctor {
        let path = match name {
            "user" => self.env.base.join("home/.claude/settings.json"),
            "local" => self.env.path(".claude/settings.local.json"),
            _ => self.env.path(".claude/settings.json"),
        };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Installs a plugin of small scripts, with this Stop hook.
    pub fn plugin_with_stop_hook(&self, does: &str) -> PathBuf {
        let plugin = self.env.base.join("plugin");
        for file in
            [".claude-plugin/plugin.json", "hooks/hooks.json", "hooks/steering.json", "hooks/module.json"]
        {
            let path = plugin.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::copy(whole_plugin().join(file), path).unwrap();
        }
        for program in ["ralph", "ralph-session-start-hook"] {
            script(&plugin.join("bin").join(program), "cat > /dev/null");
        }
        script(&plugin.join("bin/ralph-stop-hook"), does);
        self.plugins(&listed(&plugin));
        plugin
    }
}

struct Report(Value);

impl Report {
    fn of(&self, id: &str) -> &Value {
        self.0["checks"].as_array().unwrap().iter().find(|check| check["id"] == id).unwrap()
    }

    /// Asserts that the check has this verdict, and that the notes with it contain these words.
    fn says(&self, id: &str, verdict: &str, words: &[&str]) -> &Report {
        let check = self.of(id);
        assert_eq!(check["verdict"], verdict, "{check:#}");
        let notes = check["notes"].as_array().unwrap().iter().filter(|note| note["verdict"] == verdict);
        let text: String = notes.map(|note| format!("{} → {}\n", note["message"], note["hint"])).collect();
        for word in words {
            assert!(text.contains(word), "{id} does not say \"{word}\":\n{text}");
        }
        if ["warning", "failure"].contains(&verdict) {
            assert!(!text.contains("→ null"), "no hint:\n{text}");
        }
        self
    }
}

#[test]
fn a_healthy_installation_has_no_problems_and_nothing_is_changed() {
    let doctor = Doctor::new();
    let before = doctor.env.snapshot();
    let report = doctor.check();
    assert_eq!(report.0["verdict"], "ok", "{:#}", report.0);
    report.says("hook-programs", "ok", &[&hooks_answered()]).says("round-trip", "skipped", &["--quick"]);
    // Folders change when temporary files come and go; nothing else may.
    let shape = |seen: std::collections::BTreeMap<PathBuf, (u64, i64, i64, u64)>| {
        seen.into_iter()
            .map(|(path, seen)| if path.is_dir() { (path, 0) } else { (path, seen.0) })
            .collect::<Vec<_>>()
    };
    assert_eq!(shape(doctor.env.snapshot()), shape(before));
    let human = doctor.env.ralph(&["doctor", "--quick"]).ok();
    assert!(human.contains("OK       client         Claude Code 2.1.325 ("), "{human}");
    assert!(human.ends_with("\nNo problems found.\n"), "{human}");
}

#[test]
fn unusual_homes_work() {
    let doctor = Doctor::within(Env::named("ein Projekt für 测试"));
    let home = doctor.env.base.join("mein Zuhause, größer");
    fs::create_dir_all(home.join(".claude")).unwrap();
    fs::write(home.join(".claude.json"), "{}").unwrap();
    doctor.env.var("HOME", home.to_str().unwrap()).without("RALPH_DATA_DIR").without("RALPH_CONFIG_DIR");
    assert_eq!(doctor.check().0["verdict"], "ok");
    assert!(!home.join(".local").exists(), "no folders are created");
    doctor.env.without("HOME").var("RALPH_DATA_DIR", doctor.env.data().to_str().unwrap());
    doctor.check();
}

#[test]
fn untrusted_text_is_cleaned() {
    let doctor = Doctor::new();
    let mut list = listed(whole_plugin());
    list[0]["errors"] = json!(["a\u{1b}]0;title\u{7}b\u{202e}"]);
    doctor.plugins(&list);
    doctor.env.write(
        ".claude/ralph-config.json",
        json!({"loop_limits": {"max_hours": "\u{1b}[2J"}, "\u{1b}[31m": 1}).to_string(),
    );
    let run = doctor.env.ralph(&["doctor", "--quick"]);
    assert_eq!(run.code, Some(1));
    let odd = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!run.stdout.contains(odd), "{:?}", run.stdout);
    assert!(run.stdout.contains("unknown setting [31m"), "{}", run.stdout);
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    let doctor = Doctor::new();
    let base = doctor.env.base.display();
    let answers = format!(
        "case $1 in\n--version) cat '{base}/version';;\nplugin) cat '{base}/plugins';;\n\
         *) touch '{base}/begun'; sleep 600;;\nesac"
    );
    script(&doctor.env.base.join("bin/claude"), &answers);
    let running = doctor.call(&[]).spawn();
    wait_until("the round trip begins", || doctor.env.base.join("begun").exists());
    assert_ne!(names_in(&doctor.env.base.join("tmp")), Vec::<String>::new());
    running.signal(Signal::INT);
    let run = running.wait();
    assert_eq!((run.code, run.stdout.as_str()), (Some(130), ""));
    assert_eq!(names_in(&doctor.env.base.join("tmp")), Vec::<String>::new());
    assert_eq!(doctor.env.processes(), Vec::<String>::new());
}
