//! `ralph install` and `ralph uninstall` with the real Claude Code.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::client::{Client, Session};
use crate::messages_api::{Api, Reply};
use crate::ralph::{SOON, ralph, replies, the_loop, with_clock, working};
use crate::skip::skip;
use crate::tmux::Screen;

fn client(session: &Session) -> &str {
    session.program().to_str().unwrap()
}

fn install(session: &Session, args: &[&str]) -> String {
    ralph(session, &[&["install", "--claude", client(session)], args].concat())
}

fn claude(session: &Session, args: &[&str]) -> String {
    let mut command = Command::new(session.program());
    command.args(args).env_clear().envs(session.variables()).current_dir(session.root());
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert!(output.status.success(), "claude {args:?}: {text}");
    text
}

fn finished() -> Vec<Reply> {
    let mut script = replies([working("one")]);
    script.push(Reply::text("All green.\n\n<promise>COMPLETE</promise>"));
    script
}

fn plugin_folder(session: &Session) -> PathBuf {
    session.data_dir().join("plugin/ralph")
}

/// Returns every file below a folder, without `left_out`.
fn tree(folder: &Path, left_out: &[&str]) -> BTreeMap<PathBuf, String> {
    let (mut folders, mut found) = (vec![folder.to_owned()], BTreeMap::new());
    while let Some(dir) = folders.pop() {
        for entry in fs::read_dir(&dir).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(folder).unwrap().to_owned();
            if left_out.iter().any(|part| name.starts_with(part)) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(name, String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
            }
        }
    }
    found
}

#[test]
fn an_installed_plugin_runs_loops_and_is_removed_without_traces() {
    let Some(program) = Client::find() else { return };
    let api = Api::start(finished());
    // The limits of the round trip stand still.
    let (session, _clock) = with_clock(Session::new(&program, &api).allow("Bash"));
    let settings = session.claude_config().join("settings.json");
    fs::write(&settings, "{\n  \"theme\": \"dark\",\n  \"env\": {}\n}\n").unwrap();
    // Claude Code keeps these records of every start.
    let own = [
        ".claude/.claude.json",
        ".claude/backups",
        ".claude/plugins/installed_plugins.json",
        ".claude/plugins/known_marketplaces.json",
        ".claude/plugins/store",
    ];
    let before = tree(&session.home(), &own);

    let told = install(&session, &["--settings", "--yes"]);
    assert!(told.contains("registered with Claude Code 2.") && told.contains("Written"), "{told}");
    assert!(told.contains("a loop of 2 turns ran through Claude Code"), "{told}");
    claude(&session, &["plugin", "validate", plugin_folder(&session).to_str().unwrap()]);
    claude(&session, &["plugin", "validate", session.data_dir().join("plugin").to_str().unwrap()]);
    assert!(install(&session, &[]).starts_with("Nothing to do"));

    let output = session.print("/ralph:start make the suite green");
    let told = output.system_messages().join("\n");
    assert!(told.contains("Ralph ended (complete)"), "{told}");
    assert_eq!(the_loop(&session)["outcome"], "complete");
    assert!(install(&session, &[]).starts_with("Nothing to do"), "a session changes nothing in the plugin");

    let told = ralph(&session, &["uninstall", "--purge", "--claude", client(&session)]);
    assert!(told.contains(".claude/ralph-state.json"), "{told}");
    let sessions =
        [".claude/projects", ".claude/shell-snapshots", ".claude/sessions", ".claude/session-env", ".cache"];
    let after = tree(&session.home(), &[&own[..], &sessions].concat());
    let (kept, known) = (after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    assert_eq!(kept, known, "none of our files is left");
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let name = Path::new(".claude/settings.json");
    assert_eq!(parse(&after[name]), parse(&before[name]), "Claude Code formats its settings itself");
    for record in ["installed_plugins.json", "known_marketplaces.json"] {
        let text = fs::read_to_string(session.claude_config().join("plugins").join(record)).unwrap();
        assert!(!text.contains("ralph"), "{text}");
    }
    assert!(!session.data_dir().exists() && !session.config_dir().exists());
}

#[test]
fn a_loop_survives_an_upgrade() {
    let Some(program) = Client::find() else { return };
    let wait = json!({"command": "until [ -e upgraded ]; do sleep 0.1; done", "description": "wait"});
    let waiting = [Reply::tool("Bash", wait), Reply::text("two")];
    let api =
        Api::start(replies([working("one"), waiting, working("three"), working("four"), working("never")]));
    let session = Session::new(&program, &api).allow("Bash");
    install(&session, &[]);
    let folder = plugin_folder(&session);

    let running = session.spawn_print("/ralph:start make the suite green --max-iterations 4", &[]);
    // In its second turn: the old program answered the first Stop, the new one answers the next ones.
    api.wait_for_requests(3, SOON);
    fs::remove_file(folder.join("staged.json")).unwrap();
    fs::write(folder.join("bin/old-program"), "x").unwrap();
    let told = install(&session, &[]);
    assert!(told.contains("open sessions use it from their next hook"), "{told}");
    assert!(!folder.join("bin/old-program").exists(), "the folder was replaced");
    assert_eq!(api.requests().len(), 3, "the upgrade came in the middle of a turn");
    fs::write(session.project().join("upgraded"), "").unwrap();

    let told = running.wait().system_messages().join("\n");
    for line in ["Ralph 1/4", "Ralph 2/4", "Ralph 3/4", "Ralph ended (max-iterations)"] {
        assert!(told.contains(line), "{line}\n{told}");
    }
}

#[test]
fn the_status_line_is_on_the_screen_while_a_loop_runs() {
    let Some(program) = Client::find() else { return };
    if !Screen::available() {
        return;
    }
    // The client asks for the status line when something changes, so the loop continues until it was shown.
    let mut script: Vec<Reply> = (0..20).flat_map(|_| working("one")).collect();
    script.push(Reply::text("never").delay(Duration::from_secs(600)));
    let api = Api::start(script);
    // The times that are shown stand still.
    let (session, _clock) = with_clock(Session::new(&program, &api).allow("Bash"));
    install(&session, &["--settings", "--yes"]);

    let screen = Screen::start(&session);
    screen.type_line("/ralph:start make the suite green --max-iterations 30");
    // What follows the times is the breaker, which may count a turn as idle until the transcript shows its tools.
    let is_status = |line: &str| {
        line.trim_start().starts_with("working · Ralph ")
            && line.contains("/30 · Runtime: 0.0h/9.0h | Wall: 0.0h · ")
    };
    screen.wait_until(|text| text.lines().any(is_status), SOON);
}

/// The files of the repository as a marketplace gets them: what git knows, and nothing that was built.
fn clone(target: &Path) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = Command::new("git").args(["ls-files", "-z", "--cached"]).current_dir(root).output();
    let Some(listed) = listed.ok().filter(|output| output.status.success()) else { return false };
    for name in String::from_utf8(listed.stdout).unwrap().split('\0').filter(|name| !name.is_empty()) {
        let (from, to) = (root.join(name), target.join(name));
        if from.is_file() && !name.starts_with("fuzz/corpus") {
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(from, to).unwrap();
        }
    }
    true
}

#[test]
fn the_repository_is_a_marketplace_that_asks_for_its_programs() {
    let Some(program) = Client::find() else { return };
    let mut script = vec![Reply::text("hello there")];
    script.extend(finished());
    let api = Api::start(script);
    let session = Session::new(&program, &api).allow("Bash");
    let repository = session.root().join("repository");
    if !clone(&repository) {
        skip("this is no git repository");
        return;
    }
    claude(&session, &["plugin", "validate", repository.to_str().unwrap()]);
    claude(&session, &["plugin", "marketplace", "add", repository.to_str().unwrap()]);
    claude(&session, &["plugin", "install", "ralph@ralph"]);

    if Screen::available() {
        let screen = Screen::start(&session);
        screen.wait_for("SessionStart:startup says: Ralph was installed without its programs", SOON);
        screen.type_line("say hello");
        screen.wait_for("hello there", SOON);
        let told = screen.text();
        assert_eq!(
            told.matches("without its programs").count(),
            1,
            "once, visibly, and everything is allowed: {told}"
        );
    }
    let output = session.print("/ralph:start make the suite green");
    assert!(output.answer().contains("cargo install --locked --path"), "{output:?}");
    assert!(api.requests().len() <= 1, "and costs no call");

    // What `cargo install` would do.
    let bin = session.home().join(".cargo/bin");
    fs::create_dir_all(&bin).unwrap();
    for name in ["ralph", "ralph-stop-hook", "ralph-session-start-hook", "ralph-guidance"] {
        fs::copy(Path::new(env!("CARGO_BIN_EXE_ralph")).with_file_name(name), bin.join(name)).unwrap();
    }
    let output = session.print("/ralph:start make the suite green");
    let told = output.system_messages().join("\n");
    assert!(told.contains("Ralph ended (complete)") && !told.contains("cargo install"), "{told}");

    let told = install(&session, &[]);
    assert!(told.contains("replaces the one from"), "{told}");
    let listed = claude(&session, &["plugin", "list", "--json"]);
    assert!(listed.contains(plugin_folder(&session).to_str().unwrap()), "{listed}");
}

#[test]
fn invalid_settings_are_not_changed() {
    let Some(program) = Client::find() else { return };
    let api = Api::start(vec![Reply::text("never")]);
    let session = Session::new(&program, &api);
    let settings = session.claude_config().join("settings.json");
    fs::write(&settings, "{ \"theme\": ").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ralph"));
    command.args(["install", "--claude", client(&session)]).env_clear().envs(session.variables());
    let output = command.current_dir(session.project()).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && told.contains("is not valid JSON"), "{told}");
    assert_eq!(fs::read_to_string(&settings).unwrap(), "{ \"theme\": ");
}
