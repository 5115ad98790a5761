//! The client's settings: our status line is set and nothing else changes, or the file is refused.

use super::place::Place;
use ralph::claude::settings::settings_file::SettingsFile;
use serde_json::{Map, Value};

pub fn check(bytes: &[u8]) {
    let place = Place::new();
    place.write("claude/settings.json", bytes);
    let Ok(file) = SettingsFile::read(&place.world) else { return };
    let Ok(change) = file.with_status_line("ralph statusline") else { return };
    let mut after = parse(&change.after).expect("what is written can be read");
    assert!(after.remove("statusLine").is_some_and(|line| line["command"] == "ralph statusline"));
    let mut before = parse(&change.before).unwrap_or_default();
    before.remove("statusLine");
    assert_eq!(before, after, "something else changed");
}

fn parse(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()
}
