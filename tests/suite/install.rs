//! `ralph install` with a scripted client: what it writes, what it says, and what it leaves alone.

use crate::env::{Call, Env, Run, ignores_permissions, names_in};
use crate::skip::skip;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A client that knows only what the commands for plugins do, and keeps their records in a folder.
pub const CLIENT: &str = r#"#!/bin/sh
cat > /dev/null
echo "$*" >> "$FAKE/calls"
[ -f "$FAKE/slow" ] && sleep "$(cat "$FAKE/slow")"
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

/// The programs without what a debugger needs, which is most of them: installs copy and compare them all.
fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<TempDir> = OnceLock::new();
    let folder = PROGRAMS.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let built = Path::new(env!("CARGO_BIN_EXE_ralph")).parent().unwrap();
        for name in ["ralph", "ralph-stop-hook", "ralph-session-start-hook", "ralph-guidance"] {
            let copy = folder.path().join(name);
            fs::copy(built.join(name), &copy).unwrap();
            // Where it is missing, tests take longer.
            let _ = Command::new("strip").arg(&copy).output();
        }
        folder
    });
    folder.path()
}

/// A user with a client.
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
        let client = bin.join("claude");
        fs::write(&client, CLIENT).unwrap();
        fs::set_permissions(&client, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
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

    /// What the client was asked since the last look, without the questions.
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

    /// As if an older Ralph had laid it out, which wrote down nothing.
    fn age(&self) {
        fs::remove_file(self.plugin().join("staged.json")).unwrap();
        for name in ["of-old", "README.md", "commands/help.md"] {
            fs::write(self.plugin().join(name), "of old").unwrap();
        }
    }

    /// Whether the old plugin is there, or the new one; a mixture is neither.
    fn is_old(&self) -> bool {
        let text = |name: &str| fs::read_to_string(self.plugin().join(name)).unwrap_or_default();
        let old = ["of-old", "README.md", "commands/help.md"].map(|name| text(name) == "of old");
        let new = self.plugin().join("staged.json").exists();
        assert!(old == [!new; 3], "a mixture: {old:?}, and the new record is there: {new}");
        !new
    }

    /// Every program in it runs.
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
fn install_stages_registers_proves_and_says_so() {
    let home = Home::new();
    let told = home.install(&[]).ok();
    for part in [
        "Ralph 0.1.0 is installed.",
        home.plugin().to_str().unwrap(),
        "registered with Claude Code 2.1.325, as ralph@ralph",
        "the slowest hook answered in",
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
    assert_eq!(names_in(&folder), [".claude-plugin", "before.json", "ralph"], "nothing half-made is left");
}

#[test]
fn a_second_install_changes_nothing_and_says_so() {
    let home = Home::new();
    home.install(&[]).ok();
    home.asked();
    let before = tree(&home.marketplace());
    let told = home.install(&[]).ok();
    let says = "Nothing to do: Ralph 0.1.0 is installed, registered with Claude Code 2.1.325, and runs.\n  Proof   each";
    assert!(told.starts_with(says), "{told}");
    assert_eq!(home.asked(), Vec::<String>::new());
    assert!(tree(&home.marketplace()) == before);
}

#[test]
fn what_is_missing_is_brought_up_and_nothing_else() {
    let home = Home::new();
    home.install(&[]).ok();
    home.asked();
    let listed = |version: &str, enabled: bool| {
        json!([{"id": "other@x"}, 7, {"id": "ralph@ralph", "version": version, "scope": "user", "enabled": enabled}]).to_string()
    };

    home.tell("plugins", &listed("0.1.0", false));
    assert!(home.install(&[]).ok().contains("switched on again"));
    assert_eq!(home.asked(), ["plugin install ralph@ralph"]);

    home.tell("plugins", &listed("0.0.9", true));
    assert!(home.install(&[]).ok().contains("registered the new version with"));
    assert_eq!(home.asked(), ["plugin update ralph@ralph"]);
}

#[test]
fn an_upgrade_takes_the_place_of_the_old_plugin() {
    let home = Home::new();
    home.install(&[]).ok();
    home.age();
    let told = home.install(&[]).ok();
    assert!(
        told.contains("in the place of 0.1.0; running sessions go on with it at their next hook"),
        "{told}"
    );
    assert!(!home.plugin().join("of-old").exists() && home.plugin().join("staged.json").exists());
}

#[test]
fn hooks_never_miss_their_program_during_upgrades() {
    let home = Home::new();
    home.install(&[]).ok();
    let hook = home.plugin().join("bin/ralph-stop-hook");
    let (sender, stop) = std::sync::mpsc::channel::<()>();
    let sessions = std::thread::spawn(move || {
        let mut calls = 0;
        while stop.try_recv().is_err() {
            let output = Command::new(&hook).stdin(Stdio::null()).output().expect("the program is there");
            assert!(output.status.success() && output.stdout.starts_with(b"{"), "{output:?}");
            calls += 1;
        }
        calls
    });
    for _ in 0..3 {
        home.age();
        home.install(&[]).ok();
    }
    sender.send(()).unwrap();
    assert!(sessions.join().unwrap() > 10, "the hooks were called meanwhile");
}

#[test]
fn a_killed_install_leaves_the_old_plugin_or_the_new_one() {
    let home = Home::new();
    home.install(&[]).ok();
    home.age();
    let (mut old, mut new) = (0, 0);
    // Later each time, until it has come too late twice.
    for step in 0..300 {
        if !home.is_old() {
            home.age();
        }
        let mut running = home.installing(&[]).spawn();
        std::thread::sleep(Duration::from_millis(40 * step));
        let _ = running.child.kill();
        running.wait();
        home.runs();
        match home.is_old() {
            true => old += 1,
            false => new += 1,
        }
        if new == 2 {
            break;
        }
    }
    assert!(old > 0 && new > 0, "killed too early or too late each time: {old} old, {new} new");
    home.install(&[]).ok();
    assert_eq!(names_in(&home.marketplace()), [".claude-plugin", "before.json", "ralph"], "and is tidied up");
    assert!(home.install(&[]).ok().starts_with("Nothing to do"));
}

#[test]
fn of_two_installs_at_once_one_waits_or_is_refused() {
    let home = Home::new();
    home.tell("slow", "1");
    let one = home.installing(&[]).spawn();
    let lock = home.env.data().join("install.lock");
    let began = Instant::now();
    while !lock.exists() && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    let told = home.install(&[]).fails(1);
    assert!(told.contains("install.lock is held by another Ralph") && told.contains("wait for it"), "{told}");
    one.wait().ok();
    home.runs();
}

#[test]
fn an_edited_plugin_is_not_replaced_silently() {
    let home = Home::new();
    home.install(&[]).ok();
    fs::write(home.plugin().join("commands/start.md"), "mine").unwrap();
    fs::write(home.plugin().join("commands/mine.md"), "mine, too").unwrap();
    fs::remove_file(home.plugin().join("README.md")).unwrap();
    home.asked();

    let told = home.install(&[]).fails(1);
    for part in ["was edited: README.md, commands/start.md, commands/mine.md", "Nothing was changed. --force"]
    {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert_eq!(fs::read_to_string(home.plugin().join("commands/start.md")).unwrap(), "mine");
    assert_eq!(home.asked(), Vec::<String>::new());
    home.uninstall(&[]).fails(1);

    let told = home.install(&["--force"]).ok();
    let copy =
        names_in(&home.marketplace()).into_iter().find(|name| name.starts_with("ralph-edited-")).unwrap();
    assert!(told.contains(&copy), "{told}");
    let copy = home.marketplace().join(copy);
    assert_eq!(fs::read_to_string(copy.join("commands/mine.md")).unwrap(), "mine, too");
    assert!(!home.plugin().join("commands/mine.md").exists());
    let told = home.uninstall(&[]).ok();
    assert!(told.contains("Copies of edited plugins stay in") && copy.exists(), "{told}");
}

#[test]
fn a_marketplace_of_our_name_from_elsewhere_is_not_ours_to_replace() {
    let home = Home::new();
    home.tell("marketplaces", r#"[{"name":"ralph","source":"github","repo":"some\u001bone/ralph"}]"#);
    let told = home.install(&[]).fails(1);
    assert!(told.contains("from someone/ralph") && told.contains("--force"), "{told}");
    assert!(!home.marketplace().exists() && home.asked().is_empty(), "nothing was changed");
    assert!(home.uninstall(&[]).ok().contains("from someone/ralph, which stays"));
    assert!(home.asked().is_empty());
    let told = home.install(&["--force"]).ok();
    assert!(told.contains("in the place of the one from someone/ralph"), "{told}");
}

#[test]
fn our_own_repository_gives_way() {
    let home = Home::new();
    let clone = env!("CARGO_MANIFEST_DIR");
    let known = json!([{"name": "ralph", "source": "git", "url": "https://example.org/ralph", "installLocation": clone}]);
    home.tell("marketplaces", &known.to_string());
    let told = home.install(&[]).ok();
    assert!(told.contains("in the place of the one from https://example.org/ralph"), "{told}");
}

#[test]
fn without_a_client_it_says_what_else_works() {
    let home = Home::new();
    home.env.var("PATH", home.env.base.join("empty").to_str().unwrap());
    let told = home.install(&[]).fails(69);
    for part in ["Claude Code was not found", "ralph run --agent-command", "ralph install --to DIR"] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert_eq!(names_in(&home.env.data()), Vec::<String>::new());
    home.install(&["--claude", "nowhere/claude"]).fails(69);
    let client = home.env.base.join("bin/claude");
    home.env.var("PATH", "/usr/bin:/bin");
    home.install(&["--claude", client.to_str().unwrap()]).ok();
}

#[test]
fn a_program_of_the_project_is_not_the_client() {
    let home = Home::new();
    home.env.write("claude", CLIENT);
    fs::set_permissions(home.env.path("claude"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    home.env.var("PATH", ".::/usr/bin:/bin");
    home.install(&[]).fails(69);
}

#[test]
fn what_the_client_complains_of_is_passed_on() {
    for step in ["plugin marketplace add", "plugin install", "plugin list"] {
        let home = Home::new();
        home.tell("fail", step);
        let told = home.install(&[]).fails(70);
        assert!(
            told.contains(&format!("`claude {step}")) && told.contains("it has no luck (exit code 1)"),
            "{told}"
        );
        fs::remove_file(home.fake.join("fail")).unwrap();
        assert!(home.install(&[]).ok().contains("is installed"), "and the next call completes it");
    }
    let home = Home::new();
    home.tell("fail", "--version");
    assert!(home.install(&[]).fails(69).contains("bin/claude does not run: it has no luck"));
}

#[test]
fn a_plugin_that_does_not_run_is_not_called_installed() {
    let home = Home::new();
    home.install(&[]).ok();
    let programs = home.env.base.join("programs");
    fs::create_dir(&programs).unwrap();
    for name in ["ralph", "ralph-stop-hook", "ralph-session-start-hook", "ralph-guidance"] {
        fs::copy(home.plugin().join("bin").join(name), programs.join(name)).unwrap();
    }
    fs::write(programs.join("ralph-session-start-hook"), "#!/bin/sh\nexit 0\n").unwrap();
    let output = Command::new(programs.join("ralph"))
        .arg("install")
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", home.env.base.join("bin").display()))
        .env("FAKE", &home.fake)
        .env("HOME", home.env.base.join("home"))
        .env("RALPH_DATA_DIR", home.env.data())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(70), "{told}");
    assert!(told.contains("bin/ralph-session-start-hook is no hook of ours"), "{told}");
}

#[test]
fn homes_of_all_kinds() {
    let strange = Env::named("pro ject");
    strange.var("RALPH_DATA_DIR", strange.base.join("Größe & 'co' $(x)").to_str().unwrap());
    let home = Home::with(strange);
    home.install(&[]).ok();
    assert!(home.install(&["--settings", "--yes"]).ok().contains("Written"));
    let settings: Value = serde_json::from_slice(&fs::read(home.settings()).unwrap()).unwrap();
    let line = settings["statusLine"]["command"].as_str().unwrap();
    let shell = Command::new("sh").args(["-c", line]).stdin(Stdio::null()).output().unwrap();
    assert!(shell.status.success() && shell.stderr.is_empty(), "a shell understands {line}: {shell:?}");

    let home = Home::new();
    home.env.without("RALPH_DATA_DIR");
    let place = home.env.base.join("home/.local/share/ralph/plugin/ralph");
    assert!(home.install(&[]).ok().contains(place.to_str().unwrap()));

    let home = Home::new();
    let config = home.env.base.join("elsewhere");
    home.env.without("HOME").var("CLAUDE_CONFIG_DIR", config.to_str().unwrap());
    assert!(home.install(&["--settings", "--yes"]).ok().contains("elsewhere/settings.json"));
    home.uninstall(&[]).ok();
    assert_eq!(names_in(&config), Vec::<String>::new(), "a file that was not there is not there again");

    if ignores_permissions() {
        return;
    }
    let home = Home::new();
    home.env.without("RALPH_DATA_DIR");
    fs::set_permissions(home.env.base.join("home"), std::os::unix::fs::PermissionsExt::from_mode(0o500))
        .unwrap();
    let told = home.install(&[]).fails(1);
    assert!(told.contains(".local") && told.contains("Set RALPH_DATA_DIR"), "{told}");
}

#[test]
fn a_home_that_cannot_hold_folders_is_told() {
    // Root writes wherever permissions forbid it; nobody can make a folder in a file.
    let home = Home::new();
    fs::write(home.env.base.join("file"), "").unwrap();
    home.env.var("RALPH_DATA_DIR", home.env.base.join("file/ralph").to_str().unwrap());
    let told = home.install(&[]).fails(1);
    assert!(told.contains("file/ralph") && told.contains("Set RALPH_DATA_DIR"), "{told}");
    assert_eq!(home.asked(), Vec::<String>::new());
}

#[test]
fn settings_that_are_not_json_are_told_and_never_touched() {
    for text in ["{ \"theme\": ", "// mine\n{}", "[]", "{\"a\": 1,}"] {
        let home = Home::new();
        fs::write(home.settings(), text).unwrap();
        for args in [&[][..], &["--settings", "--yes", "--force"]] {
            let told = home.install(args).fails(1);
            assert!(told.contains("settings.json is not valid JSON and is left as it is"), "{told}");
        }
        home.uninstall(&["--purge"]).fails(1);
        assert_eq!(fs::read_to_string(home.settings()).unwrap(), text);
        assert!(home.asked().is_empty() && !home.marketplace().exists(), "nothing was changed");
    }
}

#[test]
fn the_status_line_is_shown_first_and_written_when_agreed_to() {
    let home = Home::new();
    let before = "{\r\n\t\"model\" : \"x\",\r\n\t\"n\": 1.50\r\n}";
    fs::write(home.settings(), before).unwrap();
    let told = home.install(&["--settings"]).ok();
    for part in
        ["  - \"n\": 1.50\n", "  + \"n\": 1.50,\n", "  + \"statusLine\": {", "Not written: --yes does"]
    {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), before);

    let told = home.install(&["--settings", "--yes"]).ok();
    assert!(told.contains("  + \"statusLine\"") && told.contains("Written"), "{told}");
    let after = fs::read_to_string(home.settings()).unwrap();
    let program = home.plugin().join("bin/ralph");
    let line = format!("{{\"type\": \"command\", \"command\": \"{} statusline\"}}", program.display());
    assert_eq!(
        after,
        format!("{{\r\n\t\"model\" : \"x\",\r\n\t\"n\": 1.50,\r\n\t\"statusLine\": {line}\r\n}}")
    );
    assert!(home.install(&["--settings", "--yes"]).ok().contains("already"));
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), after);

    assert!(home.uninstall(&[]).ok().contains("Status line: removed"));
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), before, "to the byte");
}

#[test]
fn on_a_terminal_the_user_is_asked() {
    if Command::new("script").arg("--version").output().is_err() {
        skip("`script` is not installed, which brings a terminal");
        return;
    }
    for (answer, written) in [("n", false), ("", false), ("y", true)] {
        let home = Home::new();
        let line = format!("{} install --settings", programs().join("ralph").display());
        let call = home.env.call_at(Path::new("/usr/bin/script"));
        let call = call.args(&["-qec", &line, "/dev/null"]).stdin(format!("{answer}\n"));
        let told = call.run().stdout;
        assert!(told.contains("statusLine") && told.contains("Write it? [y/N]"), "{told}");
        assert_eq!(told.contains("Not written."), !written, "{told}");
        assert_eq!(home.settings().exists(), written);
    }
}

#[test]
fn a_status_line_of_somebody_else_stays_or_comes_back() {
    let home = Home::new();
    let before = "{\n  \"statusLine\": { \"type\": \"command\", \"command\": \"mine\" },\n  \"a\": 1\n}\n";
    fs::write(home.settings(), before).unwrap();
    let told = home.install(&["--settings", "--yes"]).ok();
    assert!(told.contains("has another status line, which stays") && told.contains("\"mine\""), "{told}");
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), before);

    home.install(&["--settings", "--yes", "--force"]).ok();
    assert!(
        fs::read_to_string(home.settings()).unwrap().contains("bin/ralph statusline\"},\n  \"a\": 1\n}\n")
    );
    assert!(home.uninstall(&[]).ok().contains("put back the one before"));
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), before);
}

#[test]
fn settings_behind_a_link_stay_behind_it() {
    let home = Home::new();
    let dotfiles = home.env.base.join("dotfiles.json");
    fs::write(&dotfiles, "{\n}\n").unwrap();
    std::os::unix::fs::symlink(&dotfiles, home.settings()).unwrap();
    home.install(&["--settings", "--yes"]).ok();
    assert!(home.settings().is_symlink());
    assert!(fs::read_to_string(&dotfiles).unwrap().contains("statusLine"));
    home.uninstall(&[]).ok();
    assert_eq!(fs::read_to_string(&dotfiles).unwrap(), "{\n}\n");
}

#[test]
fn only_laying_it_out_needs_no_client_and_spares_what_is_not_ours() {
    let home = Home::new();
    home.env.var("PATH", home.env.base.join("empty").to_str().unwrap());
    let target = home.env.base.join("a/my plugin");
    let staged = |args: &[&str]| home.install(&[&["--to", target.to_str().unwrap()], args].concat());
    assert!(staged(&[]).ok().contains("claude --plugin-dir"));
    assert!(staged(&[]).ok().starts_with("Nothing to do"));
    fs::write(target.join("hooks/hooks.json"), "{}").unwrap();
    assert!(staged(&[]).fails(1).contains("was edited: hooks/hooks.json"));
    assert!(staged(&["--force"]).ok().contains("What was edited is in"));
    assert_eq!(names_in(&home.env.base.join("a")).len(), 2);
    fs::write(target.join("Cargo.toml"), "").unwrap();
    assert!(staged(&["--force"]).fails(70).contains("Ralph's own source"));
    home.install(&["--to", "x", "--settings"]).fails(64);
    home.install(&["--yes"]).fails(64);
}

#[test]
fn an_install_that_would_not_work_says_why() {
    let home = Home::new();
    fs::create_dir_all(home.settings().parent().unwrap()).unwrap();
    fs::write(home.settings(), "{\"disableAllHooks\": true}").unwrap();
    let told = home.install(&[]).fails(70);
    assert!(
        told.contains("FAILURE: disableAllHooks in") && told.contains("take disableAllHooks out"),
        "{told}"
    );
}
