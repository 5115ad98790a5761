//! What the user encourages and forbids, and when it is too old to be followed.

use super::time::Stamp;
use super::{clean, time};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Guidance {
    #[serde(deserialize_with = "super::record::lenient_list")]
    pub encouraged: Vec<Entry>,
    #[serde(deserialize_with = "super::record::lenient_list")]
    pub forbidden: Vec<Entry>,
    /// When the newest entry was given.
    #[serde(deserialize_with = "super::record::lenient", skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Stamp>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Entry {
    #[serde(deserialize_with = "super::record::lenient")]
    pub text: String,
    #[serde(deserialize_with = "super::record::lenient", skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Stamp>,
    #[serde(deserialize_with = "super::record::lenient", skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(deserialize_with = "super::record::lenient", skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// Whether the agent has been told.
    #[serde(deserialize_with = "super::record::lenient")]
    pub delivered: bool,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Entry {
    /// Age in milliseconds; a timestamp in the future counts as now, an unreadable one has no age.
    pub fn age_ms(&self, now: Stamp) -> Option<i64> {
        self.timestamp.map(|given| (now - given).max(0))
    }

    fn over_age(&self, now: Stamp, max_age_ms: i64) -> bool {
        !self.pinned && self.age_ms(now).is_none_or(|age| age >= max_age_ms)
    }
}

impl Guidance {
    pub fn is_empty(&self) -> bool {
        self.encouraged.is_empty() && self.forbidden.is_empty()
    }

    /// Drops what is over age and returns it, so that it can be reported.
    pub fn purge(&mut self, now: Stamp, max_age_ms: i64) -> Vec<Entry> {
        let mut purged = Vec::new();
        for list in [&mut self.encouraged, &mut self.forbidden] {
            let (old, kept) =
                std::mem::take(list).into_iter().partition(|entry| entry.over_age(now, max_age_ms));
            *list = kept;
            purged.extend::<Vec<Entry>>(old);
        }
        purged
    }

    /// The two lists for the agent, each entry with its age; nothing where there is nothing to say.
    pub fn lists(&self, now: Stamp) -> String {
        let mut out = String::new();
        for (title, list) in [("ENCOURAGED", &self.encouraged), ("FORBIDDEN", &self.forbidden)] {
            if list.is_empty() {
                continue;
            }
            out.push_str(&format!("\n{title}:"));
            for entry in list {
                let age =
                    entry.age_ms(now).map_or_else(String::new, |age| format!(" ({} ago)", time::span(age)));
                out.push_str(&format!("\n- {}{age}", clean::line(&entry.text)));
            }
        }
        out
    }

    /// Marks every entry as told to the agent; true where that is news.
    pub fn deliver(&mut self) -> bool {
        let entries = self.encouraged.iter_mut().chain(&mut self.forbidden);
        entries.fold(false, |news, entry| news | !std::mem::replace(&mut entry.delivered, true))
    }
}

/// The one report of a purge, with the texts.
pub fn purged(entries: &[Entry]) -> Option<String> {
    let texts: Vec<_> =
        entries.iter().map(|entry| format!("\"{}\"", clean::excerpt(&entry.text, 60))).collect();
    (!texts.is_empty()).then(|| format!("dropped guidance that was too old: {}", texts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn entry(text: &str, hours_ago: Option<i64>, pinned: bool) -> Entry {
        let timestamp = hours_ago.map(|hours| Stamp(100 * HOUR - hours * HOUR));
        Entry { text: text.into(), timestamp, pinned, ..Entry::default() }
    }

    #[test]
    fn only_what_is_over_age_goes_and_it_is_named() {
        let mut guidance = Guidance {
            encouraged: vec![entry("fresh", Some(23), false), entry("old", Some(24), false)],
            forbidden: vec![
                entry("undated", None, false),
                entry("pinned", Some(99), true),
                entry("ahead", Some(-5), false),
            ],
            ..Guidance::default()
        };
        let gone = guidance.purge(Stamp(100 * HOUR), 24 * HOUR);
        assert_eq!(purged(&gone).unwrap(), "dropped guidance that was too old: \"old\", \"undated\"");
        assert_eq!(
            guidance.lists(Stamp(100 * HOUR)),
            "\nENCOURAGED:\n- fresh (23.0h ago)\nFORBIDDEN:\n- pinned (4d ago)\n- ahead (0s ago)"
        );
        assert!(guidance.deliver());
        assert!(!guidance.deliver());
        assert_eq!(purged(&[]), None);
    }
}
