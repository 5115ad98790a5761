//! Guidance for people and for scripts.

use crate::core::guidance::{Entry, Guidance};
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use serde_json::{Value, json};

/// Returns all guidance, numbered as `ralph-guidance remove N` counts it.
pub fn listing(guidance: &Guidance, now: Stamp, max_age_ms: i64) -> String {
    if guidance.is_empty() {
        return "No guidance. Add some with /ralph:encourage TEXT or /ralph:forbid TEXT\n".into();
    }
    let mut out = String::new();
    let mut number = 0;
    for (title, entries, is_told) in [
        ("Encouraged", &guidance.encouraged, true),
        ("Forbidden", &guidance.forbidden, true),
        ("Allowed findings", &guidance.allowed, false),
    ] {
        if !entries.is_empty() {
            out.push_str(&format!("{title}\n"));
        }
        for entry in entries {
            number += 1;
            let mut notes = details(entry, now);
            if entry.over_age(now, max_age_ms) {
                notes.push("expired, removed at the next turn".into());
            } else if is_told {
                notes.push(delivery(entry).into());
            }
            out.push_str(&format!("{number:>3}. {} ({})\n", clean::line(&entry.text), notes.join(", ")));
        }
    }
    out
}

/// Returns `3m ago, pinned, delivered`.
pub fn notes(entry: &Entry, now: Stamp) -> String {
    let mut notes = details(entry, now);
    notes.push(delivery(entry).into());
    notes.join(", ")
}

fn details(entry: &Entry, now: Stamp) -> Vec<String> {
    let age = entry.age_ms(now).map_or("no date".into(), |age| format!("{} ago", time::span(age)));
    let pinned = entry.pinned.then(|| "pinned".to_owned());
    let limit =
        entry.for_seconds.map(|seconds| format!("for {}", time::span(Stamp::from_seconds(seconds).0)));
    [Some(age), pinned, limit].into_iter().flatten().collect()
}

fn delivery(entry: &Entry) -> &'static str {
    if entry.delivered { "delivered" } else { "not delivered yet" }
}

pub fn json(guidance: &Guidance, now: Stamp) -> Value {
    let entry = |entry: &Entry| {
        json!({
            "text": entry.text,
            "timestamp": entry.timestamp,
            "age_seconds": entry.age_ms(now).map(|age| Stamp(age).seconds()),
            "pinned": entry.pinned,
            "for_seconds": entry.for_seconds,
            "delivered": entry.delivered,
        })
    };
    let list = |entries: &[Entry]| entries.iter().map(entry).collect::<Vec<_>>();
    json!({
        "encouraged": list(&guidance.encouraged),
        "forbidden": list(&guidance.forbidden),
        "allowed": list(&guidance.allowed),
    })
}
