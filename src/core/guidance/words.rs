//! What the user reads about guidance that was dropped, ignored or withheld.

use super::{Entry, List};
use crate::core::text::clean;

/// How many entries a message names; the rest is counted.
const MAX_QUOTED_ENTRIES: usize = 10;

/// Returns the texts of entries, quoted and shortened: `"small steps", "no new files" and 3 more`.
pub fn quoted(entries: &[Entry]) -> String {
    named(entries, |entry| format!("\"{}\"", clean::excerpt(&entry.text, 60)))
}

fn named(entries: &[Entry], name: impl Fn(&Entry) -> String) -> String {
    let names = entries.iter().take(MAX_QUOTED_ENTRIES).map(name).collect::<Vec<_>>().join(", ");
    match entries.len().saturating_sub(MAX_QUOTED_ENTRIES) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

/// Reports the entries that the user did not give.
pub fn foreign(entries: &[(List, Entry)], file: &str) -> Option<String> {
    let entries: Vec<Entry> = entries.iter().map(|(_, entry)| entry.clone()).collect();
    (!entries.is_empty()).then(|| {
        format!(
            "ignored guidance in {file} that is not from you: {}; `ralph-guidance list` shows it, \
             `ralph-guidance adopt` accepts it",
            quoted(&entries)
        )
    })
}

/// Reports the entries that the state file had lost.
pub fn restored(entries: &[Entry], file: &str) -> Option<String> {
    (!entries.is_empty())
        .then(|| format!("your guidance was missing in {file} and is still in effect: {}", quoted(entries)))
}

/// Reports a purge with its texts.
pub fn purged(entries: &[Entry]) -> Option<String> {
    (!entries.is_empty())
        .then(|| format!("removed guidance that has expired or is from another loop: {}", quoted(entries)))
}

/// Reports the entries that a finding keeps from the agent.
pub fn withheld(entries: &[Entry]) -> Option<String> {
    let name = |entry: &Entry| {
        let by = entry.overruled_by().unwrap_or_default();
        format!("\"{}\" (finding {})", clean::excerpt(&entry.text, 60), clean::excerpt(by, 160))
    };
    (!entries.is_empty()).then(|| {
        format!(
            "guidance not sent because a finding overrules it: {}; `ralph-guidance allow ID` allows the finding",
            named(entries, name)
        )
    })
}
