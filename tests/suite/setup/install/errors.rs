//! `ralph install` when something is in the way.

use super::{CLIENT, Home};
use crate::env::{Env, copy_program, ignores_permissions, names_in, write_program};
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};

#[test]
fn another_marketplace_of_our_name_is_replaced_only_with_force() {
    let home = Home::new();
    home.tell("marketplaces", r#"[{"name":"ralph","source":"github","repo":"some\u001bone/ralph"}]"#);
    let told = home.install(&[]).fails(1);
    assert!(told.contains("from someone/ralph") && told.contains("--force"), "{told}");
    assert!(!home.marketplace().exists() && home.asked().is_empty(), "nothing was changed");
    assert!(home.uninstall(&[]).ok().contains("from someone/ralph"));
    assert!(home.asked().is_empty());
    let told = home.install(&["--force"]).ok();
    assert!(told.contains("replaces the one from someone/ralph"), "{told}");
}

#[test]
fn a_marketplace_of_our_repository_is_replaced() {
    let home = Home::new();
    let clone = env!("CARGO_MANIFEST_DIR");
    let known = json!([{"name": "ralph", "source": "git", "url": "https://example.org/ralph", "installLocation": clone}]);
    home.tell("marketplaces", &known.to_string());
    let told = home.install(&[]).ok();
    assert!(told.contains("replaces the one from https://example.org/ralph"), "{told}");
}

#[test]
fn without_claude_code_the_error_names_alternatives() {
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
fn a_program_in_the_project_is_not_used_as_claude_code() {
    let home = Home::new();
    home.env.write("claude", CLIENT);
    fs::set_permissions(home.env.path("claude"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    home.env.var("PATH", ".::/usr/bin:/bin");
    home.install(&[]).fails(69);
}

#[test]
fn errors_of_claude_code_are_shown() {
    for step in ["plugin marketplace add", "plugin install", "plugin list"] {
        let home = Home::new();
        home.tell("fail", step);
        let told = home.install(&[]).fails(70);
        assert!(
            told.contains(&format!("`claude {step}")) && told.contains("it has no luck (exit code 1)"),
            "{told}"
        );
        fs::remove_file(home.fake.join("fail")).unwrap();
        assert!(home.install(&[]).ok().contains("is installed"), "the next install completes it");
    }
    let home = Home::new();
    home.tell("fail", "--version");
    assert!(home.install(&[]).fails(69).contains("bin/claude does not run: it has no luck"));
}

#[test]
fn a_plugin_that_does_not_run_fails_the_install() {
    let home = Home::new();
    home.install(&[]).ok();
    let programs = home.env.base.join("programs");
    fs::create_dir(&programs).unwrap();
    for name in ["ralph", "ralph-stop-hook", "ralph-session-start-hook", "ralph-guidance"] {
        copy_program(&home.plugin().join("bin").join(name), &programs.join(name));
    }
    write_program(&programs.join("ralph-session-start-hook"), "#!/bin/sh\nexit 3\n");
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
    assert!(told.contains("bin/ralph-session-start-hook at") && told.contains("exit code 3"), "{told}");
}

#[test]
fn unusual_homes_work() {
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
    assert_eq!(names_in(&config), Vec::<String>::new(), "a file that we created is removed");

    if ignores_permissions() {
        return;
    }
    let home = Home::new();
    home.env.without("RALPH_DATA_DIR");
    fs::set_permissions(home.env.base.join("home"), std::os::unix::fs::PermissionsExt::from_mode(0o500))
        .unwrap();
    let told = home.install(&[]).fails(1);
    assert!(told.contains(".local") && told.contains("set RALPH_DATA_DIR"), "{told}");
}

#[test]
fn a_home_that_cannot_be_written_is_reported() {
    // A folder inside a file fails even for root.
    let home = Home::new();
    fs::write(home.env.base.join("file"), "").unwrap();
    home.env.var("RALPH_DATA_DIR", home.env.base.join("file/ralph").to_str().unwrap());
    let told = home.install(&[]).fails(1);
    assert!(told.contains("file/ralph") && told.contains("set RALPH_DATA_DIR"), "{told}");
    assert_eq!(home.asked(), Vec::<String>::new());
}

#[test]
fn an_install_that_cannot_work_fails_with_the_reason() {
    let home = Home::new();
    fs::create_dir_all(home.settings().parent().unwrap()).unwrap();
    fs::write(home.settings(), "{\"disableAllHooks\": true}").unwrap();
    let told = home.install(&[]).fails(70);
    assert!(
        told.contains("FAILURE: disableAllHooks in") && told.contains("remove disableAllHooks"),
        "{told}"
    );
}
