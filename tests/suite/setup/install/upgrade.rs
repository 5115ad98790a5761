//! `ralph install` over an earlier plugin.

use super::Home;
use crate::env::{Access, FileEvents, MAX_WAIT, Running, names_in, wait_until};
use fs2::FileExt;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

#[test]
fn an_upgrade_replaces_the_old_plugin() {
    let home = Home::new();
    home.install(&[]).ok();
    home.age();
    let told = home.install(&[]).ok();
    assert!(told.contains("replaces 0.1.0; open sessions use it from their next hook"), "{told}");
    assert!(!home.plugin().join("of-old").exists() && home.plugin().join("staged.json").exists());
}

#[test]
fn hooks_never_miss_their_program_during_upgrades() {
    let home = Home::new();
    home.install(&[]).ok();
    let hook = home.plugin().join("bin/ralph-stop-hook");
    let (is_over, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut upgrades = 0;
    std::thread::scope(|scope| {
        let sessions = scope.spawn(|| {
            // Also if the test fails below, where nothing says that it is over.
            let began = Instant::now();
            while !is_over.load(Ordering::Relaxed) && began.elapsed() < MAX_WAIT {
                let output = Command::new(&hook).stdin(Stdio::null()).output().expect("the program is there");
                assert!(output.status.success() && output.stdout.starts_with(b"{"), "{output:?}");
                calls.fetch_add(1, Ordering::Relaxed);
            }
        });
        wait_until("hooks ran during three upgrades and more", || {
            home.age();
            home.install(&[]).ok();
            upgrades += 1;
            (upgrades >= 3 && calls.load(Ordering::Relaxed) > 10) || sessions.is_finished()
        });
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_killed_install_leaves_the_old_plugin_or_the_new_one() {
    let home = Home::new();
    home.install(&[]).ok();
    home.age();
    let (mut old, mut new) = (0, 0);
    // While the new plugin is copied, with more of its files each time; then after each change beside the two plugins.
    let moments = [0, 4, 8, 12].map(|files| (files, 0)).into_iter().chain((1..).map(|changes| (0, changes)));
    for (files, changes) in moments {
        if !home.is_old() {
            home.age();
        }
        let before = entries(&home.marketplace());
        let mut events = FileEvents::of(&[home.env.data(), home.marketplace()], Access::Change);
        let mut running = home.installing(&[]).spawn();
        let copied =
            |running: &mut Running| entries(&home.marketplace()) >= before + files || running.has_ended();
        wait_until("the files are there", || copied(&mut running));
        let in_time = events.wait_for_or_end(changes, &mut running);
        running.kill();
        home.runs();
        match home.is_old() {
            true => old += 1,
            false => new += 1,
        }
        if !in_time {
            break;
        }
    }
    assert!(old > 0 && new > 0, "killed too early or too late each time: {old} old, {new} new");
    home.install(&[]).ok();
    assert_eq!(
        names_in(&home.marketplace()),
        [".claude-plugin", "before.json", "ralph"],
        "nothing unfinished is left"
    );
    assert!(home.install(&[]).ok().starts_with("Nothing to do"));
}

/// Returns the number of files and folders below a folder.
fn entries(folder: &Path) -> usize {
    let below = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    below.map(|path| if path.is_dir() { 1 + entries(&path) } else { 1 }).sum()
}

#[test]
fn a_second_install_at_the_same_time_is_refused() {
    let home = Home::new();
    home.install(&[]).ok();
    let held = fs::File::open(home.env.data().join("install.lock")).unwrap();
    held.lock_exclusive().unwrap();
    let clock = home.env.clock();
    let mut opens = FileEvents::of_file(&home.env.data().join("install.lock"), Access::Open);
    let mut second = home.installing(&[]).spawn();
    // Claude Code was asked for its version by now, which has a limit by the same clock.
    assert!(opens.wait_for_or_end(1, &mut second), "it wants the lock");
    clock.advance_until(1, "it gives up", || second.has_ended());
    let told = second.wait().fails(1);
    assert!(
        told.contains("install.lock: another Ralph process has held it") && told.contains("wait for it"),
        "{told}"
    );
    drop(held);
    home.install(&[]).ok();
    home.runs();
}

#[test]
fn an_edited_plugin_is_not_replaced_silently() {
    let home = Home::new();
    home.install(&[]).ok();
    fs::write(home.plugin().join("commands/stop.md"), "mine").unwrap();
    fs::write(home.plugin().join("commands/mine.md"), "mine, too").unwrap();
    // The client writes these when it loads the plugin's module.
    fs::create_dir_all(home.plugin().join(".claude-plugin/types/claude-code")).unwrap();
    for name in ["tsconfig.json", ".claude-plugin/types/claude-code/index.d.ts"] {
        fs::write(home.plugin().join(name), "the client's").unwrap();
    }
    fs::remove_file(home.plugin().join("README.md")).unwrap();
    home.asked();

    let told = home.install(&[]).fails(1);
    for part in [
        "was edited: README.md, commands/stop.md, commands/mine.md",
        "replace it with --force, which keeps a copy; nothing was changed",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert_eq!(fs::read_to_string(home.plugin().join("commands/stop.md")).unwrap(), "mine");
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
    assert!(told.contains("Kept the copies of edited plugins in") && copy.exists(), "{told}");
}
