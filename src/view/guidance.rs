//! Guidance for people and for scripts.

use crate::core::guidance::{Entry, Guidance, List, MAX_ENTRIES};
use crate::core::message;
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use serde_json::{Value, json};

/// More entries than a project keeps are only counted.
const MAX_LISTED: usize = 2 * MAX_ENTRIES;
const MAX_COLUMNS: usize = 300;

/// Returns all guidance, numbered as `ralph-guidance remove N` counts it.
pub fn listing(guidance: &Guidance, session: Option<&str>, now: Stamp, max_age_ms: i64) -> String {
    let mut out = String::new();
    if guidance.is_empty() {
        out.push_str("No guidance. Add some with /ralph:encourage TEXT or /ralph:forbid TEXT\n");
    }
    let (mut listed, mut number) = (0, 0);
    for (title, entries, is_told) in [
        ("Encouraged", &guidance.encouraged, true),
        ("Forbidden", &guidance.forbidden, true),
        ("Allowed findings", &guidance.allowed, false),
    ] {
        if !entries.is_empty() {
            out.push_str(&format!("{title}\n"));
        }
        for entry in entries {
            listed += 1;
            // An expired entry has no number: it may be gone before the user has read the list.
            let is_expired = entry.over_age(now, max_age_ms);
            number += usize::from(!is_expired);
            if listed > MAX_LISTED {
                continue;
            }
            let mut notes = details(entry, session, now);
            if is_expired {
                notes.push("expired, removed at the next turn".into());
            } else if is_told {
                notes.push(delivery(entry));
            }
            let place = if is_expired { "   -".to_owned() } else { format!("{number:>3}.") };
            let text = clean::excerpt(&entry.text, MAX_COLUMNS);
            out.push_str(&format!("{place} {text} ({})\n", notes.join(", ")));
        }
    }
    if listed > MAX_LISTED {
        out.push_str(&format!("{} more: `ralph-guidance list --json`\n", listed - MAX_LISTED));
    }
    out + &foreign(guidance, now)
}

/// Returns the entries that the user did not give.
fn foreign(guidance: &Guidance, now: Stamp) -> String {
    let line = |(list, entry): &(List, Entry)| {
        let text = clean::excerpt(&entry.text, MAX_COLUMNS);
        format!("   - {}: {text} ({})\n", list.word(), details(entry, None, now).join(", "))
    };
    let lines: String = guidance.foreign.iter().take(MAX_LISTED).map(line).collect();
    if lines.is_empty() {
        return lines;
    }
    format!(
        "Ignored, because it is not from you (`ralph-guidance adopt` accepts it, `clear` removes it):\n{lines}"
    )
}

/// Returns `3m ago, pinned, delivered`. Of a finding that overrules the entry it has the id alone.
pub fn notes(entry: &Entry, now: Stamp) -> String {
    let mut notes = details(entry, None, now);
    let id = entry.overruled_by().and_then(|by| by.split(' ').next());
    notes.push(match id {
        Some(id) => format!("not sent: {}", clean::excerpt(id, 40)),
        None => delivery(entry),
    });
    notes.join(", ")
}

fn details(entry: &Entry, session: Option<&str>, now: Stamp) -> Vec<String> {
    let age = entry.age_ms(now).map_or("no date".into(), |age| format!("{} ago", time::span(age)));
    let pinned = entry.pinned.then(|| "pinned".to_owned());
    let limit =
        entry.for_seconds.map(|seconds| format!("for {}", time::span(Stamp::from_seconds(seconds).0)));
    let whose = entry.session_id.as_deref().map(|own| match session {
        Some(session) if own == session => "this session only".to_owned(),
        _ => format!("session {} only", message::short_id(own)),
    });
    [Some(age), whose, pinned, limit].into_iter().flatten().collect()
}

fn delivery(entry: &Entry) -> String {
    match entry.overruled_by() {
        Some(by) => format!("not sent: overruled by finding {}", clean::excerpt(by, 160)),
        None if entry.is_delivered() => "delivered".into(),
        None => "not delivered yet".into(),
    }
}

pub fn json(guidance: &Guidance, now: Stamp) -> Value {
    let entry = |entry: &Entry| {
        json!({
            "text": entry.text,
            "timestamp": entry.timestamp,
            "age_seconds": entry.age_ms(now).map(|age| Stamp(age).seconds()),
            "pinned": entry.pinned,
            "for_seconds": entry.for_seconds,
            "delivered": entry.is_delivered(),
            "session_id": entry.session_id,
            "overruled_by": entry.overruled_by(),
        })
    };
    let list = |entries: &[Entry]| entries.iter().map(entry).collect::<Vec<_>>();
    json!({
        "encouraged": list(&guidance.encouraged),
        "forbidden": list(&guidance.forbidden),
        "allowed": list(&guidance.allowed),
        "ignored": guidance.foreign.iter().map(|(list, foreign)| {
            let mut shown = entry(foreign);
            shown["list"] = list.word().into();
            shown
        }).collect::<Vec<_>>(),
    })
}
