//! `ralph uninstall`: what it removes, what it keeps, and that it reports both.

use crate::env::names_in;
use crate::setup::install::{Home, tree};
use std::fs;

#[test]
fn everything_that_install_added_is_removed() {
    let home = Home::new();
    let before = (tree(&home.env.base.join("home")), tree(&home.env.data()));
    home.install(&["--settings", "--yes"]).ok();
    home.asked();
    let told = home.uninstall(&[]).ok();
    assert_eq!(home.asked(), ["plugin uninstall ralph@ralph", "plugin marketplace remove ralph"]);
    for part in [
        "Uninstalled the plugin ralph@ralph",
        "Removed the marketplace ralph",
        "Status line: removed",
        "Removed the plugin in",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert!((tree(&home.env.base.join("home")), tree(&home.env.data())) == before);
    assert!(!home.env.data().exists(), "the empty folder is removed, too");
    assert_eq!(home.uninstall(&[]).ok(), "Nothing to do: Ralph is not installed.\n");
}

#[test]
fn copies_of_claude_code_are_removed_and_other_plugins_kept() {
    let home = Home::new();
    home.install(&[]).ok();
    let cache = home.env.base.join("home/.claude/plugins/cache");
    let ours = cache.join("ralph/ralph/0.1.0/.claude-plugin");
    fs::create_dir_all(&ours).unwrap();
    fs::write(ours.join("plugin.json"), r#"{"name":"ralph"}"#).unwrap();
    fs::create_dir_all(cache.join("others/x")).unwrap();
    home.uninstall(&[]).ok();
    assert_eq!(names_in(&cache), ["others"]);
}

#[test]
fn purge_removes_records_and_keeps_files_in_projects() {
    let home = Home::new();
    home.install(&[]).ok();
    home.env.start("work", &[]);
    home.env.ralph(&["config", "--user", "loop_limits.max_hours", "3"]).ok();
    home.env.ralph(&["stop", "--all"]).ok();
    fs::write(home.env.data().join("mine.txt"), "x").unwrap();
    let told = home.uninstall(&[]).ok();
    assert!(told.contains("Kept your records in") && home.env.data().join("history").exists(), "{told}");

    let told = home.uninstall(&["--purge"]).ok();
    let config = home.env.base.join("config");
    for part in [
        home.env.data().join("history").display().to_string(),
        config.join("config.json").display().to_string(),
        format!("Kept, not ours:\n  {}", home.env.data().join("mine.txt").display()),
        format!(
            "Kept in your projects (remove what you no longer need):\n  {}",
            home.env.path(".claude/ralph-state.json").display()
        ),
    ] {
        assert!(told.contains(&part), "{part}\n{told}");
    }
    assert_eq!(names_in(&home.env.data()), ["mine.txt"]);
    assert!(!config.exists() && home.env.exists(".claude/ralph-state.json"));
}

#[test]
fn purge_leaves_no_folder() {
    let home = Home::new();
    home.install(&[]).ok();
    let data = home.env.data();
    // Every part of Ralph writes its records.
    home.env.start("work", &[]);
    home.env.ralph(&["stop", "--all"]).ok();
    home.env.ralph(&["run", "--agent-command", "echo hi", "--max-iterations", "1", "do it"]);
    home.env.ralph(&["scan"]);
    home.env.write(".claude/ralph-config.json", r#"{"notify": {"command": "true"}}"#);
    home.env.ralph(&["trust"]).ok();
    assert!(names_in(&data).len() > 5, "{:?}", names_in(&data));
    home.uninstall(&["--purge"]).ok();
    assert!(!data.exists(), "{:?}", names_in(&data));
}

#[test]
fn a_running_loop_refuses_an_uninstall() {
    let home = Home::new();
    home.install(&[]).ok();
    home.env.start("work", &[]);
    home.asked();
    let told = home.uninstall(&["--purge"]).fails(1);
    assert!(told.contains(home.env.project.to_str().unwrap()) && told.contains("ralph stop --all"), "{told}");
    assert!(home.asked().is_empty() && home.plugin().exists());
    home.uninstall(&["--force"]).ok();
    assert!(!home.plugin().exists());
}

#[test]
fn without_claude_code_our_files_are_still_removed() {
    let home = Home::new();
    home.install(&[]).ok();
    home.env.var("PATH", home.env.base.join("empty").to_str().unwrap());
    let told = home.uninstall(&[]).ok();
    assert!(told.contains("claude plugin marketplace remove ralph") && !home.plugin().exists(), "{told}");
}

#[test]
fn an_error_of_claude_code_keeps_the_plugin() {
    let home = Home::new();
    home.install(&[]).ok();
    home.tell("fail", "plugin uninstall");
    assert!(home.uninstall(&[]).fails(70).contains("`claude plugin uninstall ralph@ralph` failed"));
    assert!(home.plugin().exists());
}

#[test]
fn purge_knows_every_record() {
    let home = Home::new();
    let env = &home.env;
    env.ask("Which way?");
    env.guidance(&["forbid", "push"]).ok();
    env.ralph(&["answer", "Left"]).ok();
    assert_eq!(env.run_with("promise COMPLETE", &["x"]).run().code, Some(0));
    for record in ["given", "asked", "runs", "history", "answers"] {
        assert!(env.data().join(record).exists() || record == "answers", "{record}");
    }
    let told = home.uninstall(&["--purge"]).ok();
    assert!(!env.data().exists() && !told.contains("not ours"), "{told}");
}
