//! `ralph demo` on a small terminal.

use std::ffi::OsString;

use tempfile::TempDir;

use crate::clock::Clock;
use crate::ralph::SOON;
use crate::tmux::Screen;

/// Starts the demo on a screen of 80 by 24, with its own temporary folder.
fn demo(flags: &[&str]) -> Option<(Screen, TempDir)> {
    if !Screen::available() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::create_dir(root.join("tmp")).unwrap();
    let mut words: Vec<OsString> = ["env", "-i", "TERM=xterm-256color", "LANG=C.UTF-8", "PATH=/usr/bin:/bin"]
        .map(OsString::from)
        .to_vec();
    words.push(format!("TMPDIR={}", root.join("tmp").display()).into());
    // It stands still, so that a demo with pauses goes no further than the first one.
    let clock = Clock::new(root.join("clock"), 1_794_816_000_000);
    words.push(format!("RALPH_NOW={}", clock.variable().display()).into());
    // The shell prints the exit code; it gets Ctrl-C too and must survive it.
    let line = format!(
        "trap : INT; '{}' demo {}; echo \"exit code $?\"",
        env!("CARGO_BIN_EXE_ralph"),
        flags.join(" ")
    );
    words.extend(["sh", "-c", &line].map(Into::into));
    Some((Screen::open(root, (80, 24), &words), folder))
}

fn left(folder: &TempDir) -> usize {
    std::fs::read_dir(folder.path().join("tmp")).unwrap().count()
}

#[test]
fn the_demo_fits_a_screen_of_80_by_24() {
    let Some((screen, folder)) = demo(&["--fast"]) else { return };

    let text = screen.wait_for("exit code 0", SOON);

    // A line that is too long would wrap, and its second part would start at the left edge.
    let known = |line: &str| {
        let begins = |starts: &[&str]| starts.iter().any(|start| line.starts_with(start));
        begins(&["you   ›", "agent   ", "ralph │", "      │", "      ›"])
            || line.is_empty()
            || line.starts_with(|c: char| c.is_ascii_digit())
    };
    let others: Vec<_> = text.lines().map(str::trim_end).filter(|line| !known(line)).collect();
    let said = ["A whole", "key, no", "The next prompt", "Done.", "Next:", "exit code 0", "Pane is dead"];
    assert!(
        others.len() <= said.len()
            && others.iter().all(|line| said.iter().any(|part| line.starts_with(part))),
        "{others:#?}"
    );
    let last = screen.visible(true);
    assert!(last.contains("Exit:        COMPLETE (code 0)"), "the summary is visible at the end:\n{last}");
    assert!(last.contains("\u{1b}[32m"), "a terminal gets colours:\n{last:?}");
    assert_eq!(left(&folder), 0);
}

#[test]
fn ctrl_c_at_the_keyboard_leaves_nothing() {
    let Some((screen, folder)) = demo(&[]) else { return };
    screen.wait_for("A whole loop", SOON);
    assert_eq!(left(&folder), 1);

    screen.key("C-c");

    let text = screen.wait_for("The temporary project was removed.", SOON);
    assert!(!text.contains("Done."), "{text}");
    screen.wait_for("exit code 130", SOON);
    assert_eq!(left(&folder), 0);
}
