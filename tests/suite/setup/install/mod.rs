//! `ralph install` with a scripted Claude Code.

mod errors;
mod status_line;
mod upgrade;

use super::doctor::hooks_answered;
use crate::env::{Call, Env, Run, copy_program, names_in, write_program};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// A Claude Code that knows only the plugin commands, and keeps its records in a folder. The round trip gives it none of
/// the user's variables.
pub const CLIENT: &str = r#"#!/bin/sh
cat > /dev/null
[ -z "$FAKE" ] || echo "$*" >> "$FAKE/calls"
if [ -f "$FAKE/fail" ]; then case "$*" in "$(cat "$FAKE/fail")"*) echo "it has no luck" >&2; exit 1;; esac; fi
case "$*" in
--version) echo "2.1.325 (Claude Code)" ;;
"plugin marketplace list --json") cat "$FAKE/marketplaces" 2>/dev/null || echo '[]' ;;
"plugin list --json") cat "$FAKE/plugins" 2>/dev/null || echo '[]' ;;
"plugin marketplace add "*) printf '[{"name":"ralph","source":"directory","path":"%s"}]' "$4" > "$FAKE/marketplaces" ;;
"plugin install ralph@ralph" | "plugin update ralph@ralph")
    mkdir -p "${CLAUDE_CONFIG_DIR:-$HOME}" && echo '{}' > "${CLAUDE_CONFIG_DIR:-$HOME}/.claude.json"
    folder=$(sed 's/.*"path":"//; s/"}]$//' "$FAKE/marketplaces")
    printf '[{"id":"ralph@ralph","version":"0.1.0","scope":"user","enabled":true,"readFromFolder":"%s/ralph"}]' \
        "$folder" > "$FAKE/plugins" ;;
"plugin uninstall ralph@ralph") rm "$FAKE/plugins" "${CLAUDE_CONFIG_DIR:-$HOME}/.claude.json" ;;
"-p "*) echo "the fake client has no model" >&2; exit 1 ;;
"plugin marketplace remove ralph") rm "$FAKE/marketplaces" ;;
*) echo "not scripted: $*" >&2; exit 9 ;;
esac
"#;

/// The programs without debug information, because installs copy and compare them.
pub fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<TempDir> = OnceLock::new();
    let folder = PROGRAMS.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let built = Path::new(env!("CARGO_BIN_EXE_ralph")).parent().unwrap();
        for name in ["ralph", "ralph-stop-hook", "ralph-session-start-hook", "ralph-guidance"] {
            let copy = folder.path().join(name);
            copy_program(&built.join(name), &copy);
            // Without `strip` the tests only take longer.
            let _ = Command::new("strip").arg(&copy).output();
        }
        folder
    });
    folder.path()
}

/// A user with a Claude Code.
pub struct Home {
    pub env: Env,
    fake: PathBuf,
}

impl Home {
    pub fn new() -> Home {
        Home::with(Env::new())
    }

    pub fn with(env: Env) -> Home {
        let (bin, fake) = (env.base.join("bin"), env.base.join("fake"));
        for folder in [&bin, &fake, &env.base.join("home/.claude")] {
            fs::create_dir_all(folder).unwrap();
        }
        write_program(&bin.join("claude"), CLIENT);
        env.var("PATH", &format!("{}:/usr/bin:/bin", bin.display()));
        env.var("FAKE", fake.to_str().unwrap());
        Home { env, fake }
    }

    pub fn install(&self, args: &[&str]) -> Run {
        self.installing(args).run()
    }

    fn installing(&self, args: &[&str]) -> Call {
        let call = self.env.call_at(&programs().join("ralph"));
        call.args(&[&["install"], args].concat())
    }

    pub fn uninstall(&self, args: &[&str]) -> Run {
        self.env.ralph(&[&["uninstall"], args].concat())
    }

    pub fn marketplace(&self) -> PathBuf {
        self.env.data().join("plugin")
    }

    pub fn plugin(&self) -> PathBuf {
        self.marketplace().join("ralph")
    }

    /// Returns the commands that Claude Code got since the last call, without those that only read.
    pub fn asked(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.fake.join("calls")).unwrap_or_default();
        let _ = fs::remove_file(self.fake.join("calls"));
        let asking = |call: &&str| call.contains("list --json") || *call == "--version";
        calls.lines().filter(|call| !asking(call)).map(str::to_owned).collect()
    }

    pub fn tell(&self, name: &str, text: &str) {
        fs::write(self.fake.join(name), text).unwrap();
    }

    pub fn settings(&self) -> PathBuf {
        self.env.base.join("home/.claude/settings.json")
    }

    /// Turns the plugin into one of an older version without `staged.json`.
    fn age(&self) {
        fs::remove_file(self.plugin().join("staged.json")).unwrap();
        for name in ["of-old", "README.md", "commands/help.md"] {
            fs::write(self.plugin().join(name), "of old").unwrap();
        }
    }

    /// Returns whether the old plugin is there; panics if it is a mixture.
    fn is_old(&self) -> bool {
        let text = |name: &str| fs::read_to_string(self.plugin().join(name)).unwrap_or_default();
        let old = ["of-old", "README.md", "commands/help.md"].map(|name| text(name) == "of old");
        let new = self.plugin().join("staged.json").exists();
        assert!(old == [!new; 3], "a mixture: {old:?}, and the new record is there: {new}");
        !new
    }

    /// Asserts that every program in it runs.
    fn runs(&self) {
        let hook =
            Command::new(self.plugin().join("bin/ralph-stop-hook")).stdin(Stdio::null()).output().unwrap();
        assert!(String::from_utf8_lossy(&hook.stdout).contains("the hook's input was empty"), "{hook:?}");
        for name in ["ralph", "ralph-guidance"] {
            assert!(
                Command::new(self.plugin().join("bin").join(name))
                    .arg("--version")
                    .output()
                    .unwrap()
                    .status
                    .success()
            );
        }
    }
}

/// Every file below a folder with its bytes.
pub fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for name in names_in(folder) {
        let path = folder.join(name);
        if path.is_dir() {
            found.push((path.clone(), Vec::new()));
            found.extend(tree(&path));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found
}

#[test]
fn install_copies_registers_and_checks_the_plugin() {
    let home = Home::new();
    let told = home.install(&[]).ok();
    for part in [
        "Ralph 0.1.0 is installed.",
        home.plugin().to_str().unwrap(),
        "registered with Claude Code 2.1.325 as ralph@ralph",
        &format!("{}, the slowest in", hooks_answered()),
        "/ralph:start TASK",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    let folder = home.marketplace();
    assert_eq!(
        home.asked(),
        [format!("plugin marketplace add {}", folder.display()), "plugin install ralph@ralph".to_owned()]
    );
    let manifest: Value =
        serde_json::from_slice(&fs::read(folder.join(".claude-plugin/marketplace.json")).unwrap()).unwrap();
    assert_eq!((&manifest["name"], &manifest["plugins"][0]["source"]), (&json!("ralph"), &json!("./ralph")));
    home.runs();
    assert_eq!(names_in(&folder), [".claude-plugin", "before.json", "ralph"], "nothing unfinished is left");
}

#[test]
fn a_second_install_changes_nothing() {
    let home = Home::new();
    home.install(&[]).ok();
    home.asked();
    let before = tree(&home.marketplace());
    let told = home.install(&[]).ok();
    let says = "Nothing to do: Ralph 0.1.0 is installed in Claude Code 2.1.325 and works.";
    assert!(told.starts_with(&format!("{says}\n  Checks  {}", hooks_answered())), "{told}");
    assert_eq!(home.asked(), Vec::<String>::new());
    assert!(tree(&home.marketplace()) == before);
}

#[test]
fn only_what_is_missing_is_registered() {
    let home = Home::new();
    home.install(&[]).ok();
    home.asked();
    let listed = |version: &str, enabled: bool| {
        json!([{"id": "other@x"}, 7, {"id": "ralph@ralph", "version": version, "scope": "user", "enabled": enabled}]).to_string()
    };

    home.tell("plugins", &listed("0.1.0", false));
    assert!(home.install(&[]).ok().contains("enabled again in"));
    assert_eq!(home.asked(), ["plugin install ralph@ralph"]);

    home.tell("plugins", &listed("0.0.9", true));
    assert!(home.install(&[]).ok().contains("updated in"));
    assert_eq!(home.asked(), ["plugin update ralph@ralph"]);
}

#[test]
fn copying_to_a_folder_needs_no_claude_code_and_replaces_only_our_plugin() {
    let home = Home::new();
    home.env.var("PATH", home.env.base.join("empty").to_str().unwrap());
    let target = home.env.base.join("a/my plugin");
    let staged = |args: &[&str]| home.install(&[&["--to", target.to_str().unwrap()], args].concat());
    assert!(staged(&[]).ok().contains("claude --plugin-dir"));
    assert!(staged(&[]).ok().starts_with("Nothing to do"));
    fs::write(target.join("hooks/hooks.json"), "{}").unwrap();
    assert!(staged(&[]).fails(1).contains("was edited: hooks/hooks.json"));
    assert!(staged(&["--force"]).ok().contains("The edited one is in"));
    assert_eq!(names_in(&home.env.base.join("a")).len(), 2);
    fs::write(target.join("Cargo.toml"), "").unwrap();
    assert!(staged(&["--force"]).fails(70).contains("Ralph's own source"));
    home.install(&["--to", "x", "--settings"]).fails(64);
    home.install(&["--yes"]).fails(64);
}
