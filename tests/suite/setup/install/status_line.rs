//! `ralph install --settings`: the status line in the settings of Claude Code.

use super::{Home, programs};
use crate::skip::skip;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn invalid_settings_are_reported_and_not_changed() {
    for text in ["{ \"theme\": ", "// mine\n{}", "[]", "{\"a\": 1,}"] {
        let home = Home::new();
        fs::write(home.settings(), text).unwrap();
        for args in [&[][..], &["--settings", "--yes", "--force"]] {
            let told = home.install(args).fails(1);
            assert!(told.contains("settings.json is not valid JSON: "), "{told}");
        }
        home.uninstall(&["--purge"]).fails(1);
        assert_eq!(fs::read_to_string(home.settings()).unwrap(), text);
        assert!(home.asked().is_empty() && !home.marketplace().exists(), "nothing was changed");
    }
}

#[test]
fn the_status_line_is_written_after_confirmation() {
    let home = Home::new();
    let before = "{\r\n\t\"model\" : \"x\",\r\n\t\"n\": 1.50\r\n}";
    fs::write(home.settings(), before).unwrap();
    let told = home.install(&["--settings"]).ok();
    for part in [
        "  - \"n\": 1.50\n",
        "  + \"n\": 1.50,\n",
        "  + \"statusLine\": {",
        "Not written: confirm on a terminal, or use --yes.",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), before);

    let told = home.install(&["--settings", "--yes"]).ok();
    assert!(told.contains("  + \"statusLine\"") && told.contains("Written"), "{told}");
    let after = fs::read_to_string(home.settings()).unwrap();
    let program = home.plugin().join("bin/ralph");
    let line = format!(
        "{{\"type\": \"command\", \"command\": \"{} statusline\", \"refreshInterval\": 5}}",
        program.display()
    );
    assert_eq!(
        after,
        format!("{{\r\n\t\"model\" : \"x\",\r\n\t\"n\": 1.50,\r\n\t\"statusLine\": {line}\r\n}}")
    );
    assert!(home.install(&["--settings", "--yes"]).ok().contains("already"));
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), after);

    assert!(home.uninstall(&[]).ok().contains("Status line: removed"));
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), before, "byte for byte");
}

#[test]
fn a_terminal_asks_for_confirmation() {
    if Command::new("script").arg("--version").output().is_err() {
        skip("`script` is not installed, which provides a terminal");
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
fn another_status_line_is_kept_or_restored() {
    let home = Home::new();
    let before = "{\n  \"statusLine\": { \"type\": \"command\", \"command\": \"mine\" },\n  \"a\": 1\n}\n";
    fs::write(home.settings(), before).unwrap();
    let told = home.install(&["--settings", "--yes"]).ok();
    assert!(told.contains("keeps its own status line") && told.contains("\"mine\""), "{told}");
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), before);

    home.install(&["--settings", "--yes", "--force"]).ok();
    assert!(
        fs::read_to_string(home.settings())
            .unwrap()
            .contains("bin/ralph statusline\", \"refreshInterval\": 5},\n  \"a\": 1\n}\n")
    );
    assert!(home.uninstall(&[]).ok().contains("restored the previous one"));
    assert_eq!(fs::read_to_string(home.settings()).unwrap(), before);
}

#[test]
fn settings_behind_a_link_stay_behind_it() {
    let home = Home::new();
    let dotfiles = home.env.base.join("dotfiles.json");
    let before = "{\n  \"theme\": \"dark\"\n}\n";
    fs::write(&dotfiles, before).unwrap();
    std::os::unix::fs::symlink(&dotfiles, home.settings()).unwrap();
    home.install(&["--settings", "--yes"]).ok();
    assert!(home.settings().is_symlink());
    assert!(fs::read_to_string(&dotfiles).unwrap().contains("statusLine"));
    home.uninstall(&[]).ok();
    assert_eq!(fs::read_to_string(&dotfiles).unwrap(), before);
}

#[test]
fn a_status_line_of_an_earlier_version_gets_the_interval_and_keeps_the_rest() {
    let home = Home::new();
    home.install(&["--settings", "--yes"]).ok();
    let with_interval = fs::read_to_string(home.settings()).unwrap();
    let before = with_interval.replace(", \"refreshInterval\": 5", ", \"padding\": 0");
    fs::write(home.settings(), &before).unwrap();
    let told = home.install(&["--settings", "--yes"]).ok();
    assert!(told.contains("Written"), "{told}");
    let after = fs::read_to_string(home.settings()).unwrap();
    assert_eq!(after, before.replace("\"padding\": 0", "\"padding\": 0, \"refreshInterval\": 5"));
    let own = after.replace("\"refreshInterval\": 5", "\"refreshInterval\": 60");
    fs::write(home.settings(), &own).unwrap();
    assert!(
        home.install(&["--settings", "--yes"]).ok().contains("already"),
        "another interval is the user's own"
    );
    assert!(home.uninstall(&[]).ok().contains("Status line: removed"));
}
