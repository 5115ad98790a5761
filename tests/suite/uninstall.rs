//! `ralph uninstall`: what it takes away, what it leaves, and that it says both.

use crate::env::names_in;
use crate::install::{Home, tree};
use std::fs;

#[test]
fn what_install_brought_is_gone_and_nothing_else() {
    let home = Home::new();
    let before = (tree(&home.env.base.join("home")), tree(&home.env.data()));
    home.install(&["--settings", "--yes"]).ok();
    home.asked();
    let told = home.uninstall(&[]).ok();
    assert_eq!(home.asked(), ["plugin uninstall ralph@ralph", "plugin marketplace remove ralph"]);
    for part in [
        "plugin ralph@ralph uninstalled",
        "marketplace ralph removed",
        "Status line: removed",
        "Removed the plugin in",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert!((tree(&home.env.base.join("home")), tree(&home.env.data())) == before);
    assert!(!home.env.data().exists(), "a folder that is empty now goes, too");
    assert_eq!(home.uninstall(&[]).ok(), "Nothing to do: Ralph is not installed.\n");
}

#[test]
fn the_clients_copies_go_and_other_plugins_stay() {
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
fn records_stay_unless_they_are_to_go_and_projects_keep_their_files() {
    let home = Home::new();
    home.install(&[]).ok();
    home.env.start("work", &[]);
    home.env.ralph(&["config", "--user", "loop_limits.max_hours", "3"]).ok();
    home.env.ralph(&["stop", "--all"]).ok();
    fs::write(home.env.data().join("mine.txt"), "x").unwrap();
    let told = home.uninstall(&[]).ok();
    assert!(told.contains("Your records stay in") && home.env.data().join("history").exists(), "{told}");

    let told = home.uninstall(&["--purge"]).ok();
    let config = home.env.base.join("config");
    for part in [
        home.env.data().join("history").display().to_string(),
        config.join("config.json").display().to_string(),
        format!("Not ours, and left:\n  {}", home.env.data().join("mine.txt").display()),
        format!(
            "In your projects, and left (remove what you no longer need):\n  {}",
            home.env.path(".claude/ralph-state.json").display()
        ),
    ] {
        assert!(told.contains(&part), "{part}\n{told}");
    }
    assert_eq!(names_in(&home.env.data()), ["mine.txt"]);
    assert!(!config.exists() && home.env.exists(".claude/ralph-state.json"));
}

#[test]
fn a_purge_of_everything_leaves_no_folder() {
    let home = Home::new();
    home.install(&[]).ok();
    let data = home.env.data();
    // Whatever any part of Ralph keeps there.
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
fn a_running_loop_is_not_left_without_its_hooks() {
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
fn without_a_client_our_own_files_still_go() {
    let home = Home::new();
    home.install(&[]).ok();
    home.env.var("PATH", home.env.base.join("empty").to_str().unwrap());
    let told = home.uninstall(&[]).ok();
    assert!(told.contains("claude plugin marketplace remove ralph") && !home.plugin().exists(), "{told}");
}

#[test]
fn a_client_that_refuses_keeps_the_plugin_it_uses() {
    let home = Home::new();
    home.install(&[]).ok();
    home.tell("fail", "plugin uninstall");
    assert!(home.uninstall(&[]).fails(70).contains("`claude plugin uninstall ralph@ralph` failed"));
    assert!(home.plugin().exists());
}
