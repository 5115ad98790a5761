//! Each warning and failure of `ralph doctor` with its hint, and what install and uninstall say.

use super::{Page, replace};
use crate::env::{Program, Run, SESSION};
use crate::setup::doctor::{Doctor, listed, script, whole_plugin};
use crate::setup::install::Home;
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

/// Adds what the doctor complains about.
fn complaints(page: &mut Page, doctor: &Doctor, title: &str, flags: &[&str]) {
    let run = doctor.env.call(Program::Ralph).args(&["doctor"]).args(flags).run();
    let mut text = String::new();
    let mut is_wanted = false;
    for line in run.stdout.lines() {
        if !line.starts_with(' ') {
            is_wanted = line.starts_with("warning") || line.starts_with("FAILURE");
        }
        if is_wanted {
            text.push_str(&format!("{line}\n"));
        }
    }
    let text = text.replace(whole_plugin().to_str().unwrap(), "[plugin]");
    // The name of a record is by the paths of this world.
    let text = replace(&text, "[0-9a-f]{16}-[0-9a-f]{16}", "[id]");
    page.section(&doctor.env, title, &text);
}

#[test]
fn client_and_plugin() {
    let mut page = Page::new();
    let doctor = Doctor::new();
    let quick = ["--quick"];
    for told in ["1.9.9 (Claude Code)", "2.1.162 (Claude Code)", "hello"] {
        doctor.client(told, "[]");
        complaints(&mut page, &doctor, &format!("claude --version: {told}"), &quick);
    }
    let claude = doctor.env.base.join("bin/claude");
    script(&claude, "echo 'not installed' >&2; exit 1");
    complaints(&mut page, &doctor, "claude fails", &quick);
    doctor.client("2.1.325", "Plugins:\n  none");
    complaints(&mut page, &doctor, "plugins that are not listed in JSON", &quick);
    let whole = listed(whole_plugin());
    for (title, name, value) in [
        ("a plugin that is not enabled", "enabled", json!(false)),
        ("a plugin with an error", "errors", json!(["Hook load failed"])),
        ("a plugin in another version", "version", json!("0.0.9")),
        ("a folder without the plugin", "readFromFolder", json!(doctor.env.base)),
        ("a folder that is gone", "readFromFolder", json!("/no/such/folder")),
    ] {
        let mut list = whole.clone();
        list[0][name] = value;
        doctor.plugins(&list);
        complaints(&mut page, &doctor, title, &quick);
    }
    let mut list = whole.clone();
    let mut second = list[0].clone();
    second["id"] = json!("ralph@other");
    list.as_array_mut().unwrap().push(second);
    doctor.plugins(&list);
    complaints(&mut page, &doctor, "the plugin twice", &quick);
    complaints(&mut page, &doctor, "--plugin-dir without a plugin", &["--quick", "--plugin-dir", "."]);

    page.check("doctor_client");
}

#[test]
fn hooks_and_settings() {
    let mut page = Page::new();
    let doctor = Doctor::new();
    let (whole, quick) = (listed(whole_plugin()), ["--quick"]);
    for (title, does) in [
        ("a hook that fails", "cat > /dev/null; echo boom >&2; exit 101"),
        ("a hook that answers in prose", "cat > /dev/null; echo hello"),
        (
            "a hook that reports a problem",
            "cat > /dev/null; echo '{\"systemMessage\": \"the disk is full\"}'",
        ),
        ("a hook that is killed", "kill -9 $$"),
    ] {
        doctor.plugin_with_stop_hook(does);
        complaints(&mut page, &doctor, title, &quick);
    }
    let plugin = doctor.plugin_with_stop_hook("");
    fs::remove_dir_all(plugin.join("bin")).unwrap();
    complaints(&mut page, &doctor, "programs that are missing", &quick);
    fs::write(plugin.join("hooks/hooks.json"), "{").unwrap();
    complaints(&mut page, &doctor, "hooks.json that is not JSON", &quick);
    doctor.plugins(&whole);

    doctor.settings("user", r#"{"disableAllHooks": true}"#);
    complaints(&mut page, &doctor, "disableAllHooks", &quick);
    doctor.settings("user", "{ nope").settings("project", "[]");
    complaints(&mut page, &doctor, "settings of Claude Code that are not JSON", &quick);
    doctor.settings("user", "{}").settings("project", r#"{"hooks": {"Stop": [{"hooks": []}]}}"#);
    complaints(&mut page, &doctor, "another Stop hook", &quick);
    doctor.settings("project", r#"{"env": {"RALPH_MAX_ITERATIONS": "0"}}"#);
    complaints(&mut page, &doctor, "a variable in the project's settings", &quick);
    doctor.settings("project", "{}");
    doctor.env.var("CLAUDE_CODE_SIMPLE", "1").var("RALPH_CIRCUIT_IDLE", "12");
    complaints(&mut page, &doctor, "CLAUDE_CODE_SIMPLE, and a block cap below the breaker", &quick);
    page.check("doctor_hooks");
}

#[test]
fn files_and_leftovers() {
    let mut page = Page::new();
    let doctor = Doctor::new();
    let (env, quick) = (&doctor.env, ["--quick"]);
    env.start("a task", &[]);
    let state = env.path(".claude/ralph-state.json");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o644)).unwrap();
    complaints(&mut page, &doctor, "a state file that others can read", &quick);
    let good = fs::read_to_string(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o600)).unwrap();
    for (title, text) in [("a damaged state", "{"), ("a newer state", r#"{"version": 99, "loops": {}}"#)] {
        env.write(".claude/ralph-state.json", text);
        complaints(&mut page, &doctor, title, &quick);
    }
    env.write(".claude/ralph-state.json", good);
    env.write(
        ".claude/ralph-config.json",
        r#"{"loop_limits": {"max_hours": "many"}, "scam": {"enabled": true}}"#,
    );
    complaints(&mut page, &doctor, "settings with wrong values", &quick);
    env.write(".claude/ralph-config.json", "{,}");
    complaints(&mut page, &doctor, "settings that are not JSON", &quick);
    env.write(".claude/ralph-config.json", r#"{"completion": {"verify": ["make test"]}}"#);
    complaints(&mut page, &doctor, "commands that are not trusted", &quick);
    fs::remove_file(env.path(".claude/ralph-config.json")).unwrap();

    env.write("ralph/run.lock", r#"{"pid": 1, "run_id": "0123456789"}"#);
    env.write(".claude/STOP_LOOP", "").write(".claude/ralph-state.json.corrupt-20261116", "x");
    fs::write(env.data().join("stop-all"), "2026-11-16T09:00:00Z\n").unwrap();
    env.edit_state(|state| state["loops"][SESSION]["session"]["orphaned_at"] = json!("2026-11-16T08:00:00Z"));
    complaints(&mut page, &doctor, "leftovers", &quick);
    fs::remove_dir_all(env.path("ralph")).unwrap();
    for name in ["STOP_LOOP", "ralph-state.json.corrupt-20261116"] {
        fs::remove_file(env.path(".claude").join(name)).unwrap();
    }
    fs::remove_file(env.data().join("stop-all")).unwrap();
    env.ralph(&["stop"]).ok();
    let other = env.base.join("other project");
    fs::create_dir(&other).unwrap();
    env.call(Program::Ralph).args(&["start", "--session", SESSION, "a task"]).cwd(&other).run().ok();
    fs::remove_dir_all(&other).unwrap();
    complaints(&mut page, &doctor, "a project that is gone", &quick);
    fs::create_dir(&other).unwrap();
    fs::remove_dir_all(env.path(".claude")).unwrap();
    symlink(&env.base, env.path(".claude")).unwrap();
    complaints(&mut page, &doctor, "a folder behind a link", &quick);
    fs::remove_file(env.path(".claude")).unwrap();

    let docker = env.base.join("bin/docker");
    for (title, does) in [
        ("an old Claude Code", "[ $1 = inspect ] && echo true || echo '1.0.1 (Claude Code)'"),
        ("no Claude Code", "[ $1 = inspect ] && echo true || exit 127"),
        ("not running", "echo false"),
        ("no container", "echo 'no such object' >&2; exit 1"),
    ] {
        script(&docker, does);
        complaints(
            &mut page,
            &doctor,
            &format!("--container box: {title}"),
            &["--quick", "--container", "box"],
        );
    }
    complaints(&mut page, &doctor, "--container=-v", &["--quick", "--container=-v"]);
    script(&env.base.join("bin/git"), "echo 'dubious ownership' >&2; exit 128");
    complaints(&mut page, &doctor, "git fails", &quick);
    fs::remove_dir_all(env.path(".git")).unwrap();
    complaints(&mut page, &doctor, "no repository", &quick);
    page.check("doctor_files");
}

/// Adds what install or uninstall said.
fn told(page: &mut Page, home: &Home, title: &str, run: Run) {
    let stdout = replace(&run.stdout, r"[0-9]+ ms", "[n] ms");
    page.run(&home.env, title, &Run { stdout, ..run });
}

#[test]
fn install() {
    let mut page = Page::new();
    let home = Home::new();
    for step in ["plugin marketplace add", "--version"] {
        home.tell("fail", step);
        told(&mut page, &home, &format!("ralph install: claude {step} fails"), home.install(&[]));
    }
    home.tell("fail", "nothing");
    home.tell("marketplaces", r#"[{"name":"ralph","source":"github","repo":"someone/ralph"}]"#);
    told(&mut page, &home, "ralph install: another marketplace", home.install(&[]));
    home.tell("marketplaces", "[]");
    fs::write(home.settings(), "{ \"theme\": ").unwrap();
    told(&mut page, &home, "ralph install: settings that are not JSON", home.install(&[]));
    fs::write(home.settings(), "{\n  \"model\": \"x\"\n}\n").unwrap();
    told(&mut page, &home, "ralph install", home.install(&[]));
    told(&mut page, &home, "ralph install: again", home.install(&[]));
    told(&mut page, &home, "ralph install --settings", home.install(&["--settings"]));
    told(&mut page, &home, "ralph install --settings --yes", home.install(&["--settings", "--yes"]));
    home.tell("plugins", r#"[{"id":"ralph@ralph","version":"0.0.9","scope":"user","enabled":true}]"#);
    told(&mut page, &home, "ralph install: an older version", home.install(&[]));
    told(&mut page, &home, "ralph install --yes", home.install(&["--yes"]));
    told(&mut page, &home, "ralph install --to x --settings", home.install(&["--to", "x", "--settings"]));
    page.check("install");
}

#[test]
fn uninstall_and_problems() {
    let mut page = Page::new();
    let home = Home::new();
    told(&mut page, &home, "ralph uninstall: nothing there", home.uninstall(&[]));
    fs::write(home.settings(), "{\"disableAllHooks\": true}").unwrap();
    told(&mut page, &home, "ralph install: disableAllHooks", home.install(&[]));
    home.env.start("work", &[]);
    home.env.ralph(&["config", "--user", "loop_limits.max_hours", "3"]).ok();
    told(&mut page, &home, "ralph uninstall: a loop runs", home.uninstall(&[]));
    home.env.ralph(&["stop", "--all"]).ok();
    told(&mut page, &home, "ralph uninstall", home.uninstall(&[]));
    fs::write(home.env.data().join("mine.txt"), "x").unwrap();
    let purged = home.uninstall(&["--purge"]);
    let stdout = replace(&purged.stdout, r"project-[0-9a-f]{16}", "project-[id]");
    told(&mut page, &home, "ralph uninstall --purge", Run { stdout, ..purged });

    let home = Home::new();
    let target = home.env.base.join("a plugin");
    let to = ["--to", target.to_str().unwrap()];
    home.install(&to).ok();
    fs::write(target.join("hooks/hooks.json"), "{}").unwrap();
    told(&mut page, &home, "ralph install --to: an edited plugin", home.install(&to));
    fs::write(target.join("Cargo.toml"), "").unwrap();
    told(&mut page, &home, "ralph install --to: the source", home.install(&[&to[..], &["--force"]].concat()));
    home.env.var("PATH", home.env.base.join("empty").to_str().unwrap());
    told(&mut page, &home, "ralph install: without Claude Code", home.install(&[]));
    fs::write(home.env.base.join("file"), "").unwrap();
    let home = Home::new();
    fs::write(home.env.base.join("file"), "").unwrap();
    home.env.var("RALPH_DATA_DIR", home.env.base.join("file/ralph").to_str().unwrap());
    told(&mut page, &home, "ralph install: a folder that cannot be written", home.install(&[]));
    page.check("uninstall");
}
