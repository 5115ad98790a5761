//! What the user encourages and forbids, and how long it counts.
//!
//! Guidance is for the work at hand: it counts in the loop it was given in, or in the loop started just after it, and
//! for a day at most.

pub mod finding;
pub mod merge;

use super::record::{lenient, lenient_list};
use super::time::Stamp;
use super::time::duration::HOURS;
use crate::core::text::clean;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub const MAX_TEXT_CHARS: usize = 2000;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Guidance {
    #[serde(deserialize_with = "lenient_list")]
    pub encouraged: Vec<Entry>,
    #[serde(deserialize_with = "lenient_list")]
    pub forbidden: Vec<Entry>,
    /// Findings that the user allowed; `text` is their id.
    #[serde(deserialize_with = "lenient_list", skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<Entry>,
    /// When the newest entry was given.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Stamp>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Entry {
    #[serde(deserialize_with = "lenient")]
    pub text: String,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Stamp>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// How long it counts, if the user said so.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub for_seconds: Option<f64>,
    /// Whether the agent has been told.
    #[serde(deserialize_with = "lenient")]
    pub delivered: bool,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    Encouraged,
    Forbidden,
    Allowed,
}

/// The loop that a piece of guidance may be for.
#[derive(Clone, Debug)]
pub struct GuidanceScope<'a> {
    pub session: &'a str,
    pub started_at: Stamp,
    /// When the previous loop of this project ended.
    pub previous_ended_at: Option<Stamp>,
}

/// What a new entry did to the lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Added,
    /// The same text was there; it counts from now.
    Refreshed,
    /// The text was on this list, and the newest entry wins.
    Moved(List),
}

impl Entry {
    /// Returns the age in milliseconds; a timestamp in the future counts as now, an unreadable one has no age.
    pub fn age_ms(&self, now: Stamp) -> Option<i64> {
        self.timestamp.map(|given| (now - given).max(0))
    }

    /// Returns whether it is too old for any loop, or has no usable date.
    pub fn over_age(&self, now: Stamp, max_age_ms: i64) -> bool {
        let own = self.for_seconds.map(|seconds| Stamp::from_seconds(seconds).0);
        match self.age_ms(now) {
            None => !self.pinned,
            Some(age) => own.map_or(!self.pinned && age >= max_age_ms, |own| age >= own),
        }
    }

    /// Returns whether it is for this loop: pinned, or young enough and given in it or just before it.
    pub fn is_fresh(&self, scope: &GuidanceScope, now: Stamp, max_age_ms: i64) -> bool {
        if self.over_age(now, max_age_ms) {
            return false;
        }
        let Some(given) = self.timestamp.map(|given| given.min(now)) else { return self.pinned };
        let same_session = self.session_id.as_deref() == Some(scope.session);
        let before_start =
            self.session_id.is_none() && scope.previous_ended_at.is_none_or(|ended| given > ended);
        self.pinned || same_session || given >= scope.started_at || before_start
    }
}

/// Returns a text in the form in which texts are compared: case and white space do not matter.
pub fn key(text: &str) -> String {
    clean::line(text).to_lowercase()
}

impl Guidance {
    pub fn is_empty(&self) -> bool {
        self.encouraged.is_empty() && self.forbidden.is_empty() && self.allowed.is_empty()
    }

    fn lists_mut(&mut self) -> [&mut Vec<Entry>; 3] {
        [&mut self.encouraged, &mut self.forbidden, &mut self.allowed]
    }

    fn list_mut(&mut self, list: List) -> &mut Vec<Entry> {
        match list {
            List::Encouraged => &mut self.encouraged,
            List::Forbidden => &mut self.forbidden,
            List::Allowed => &mut self.allowed,
        }
    }

    /// Adds an entry, in place of one with the same text on the same or the opposite list.
    pub fn give(&mut self, list: List, entry: Entry) -> Change {
        let same = key(&entry.text);
        let mut take =
            |list| self.list_mut(list).extract_if(.., |entry| key(&entry.text) == same).count() > 0;
        let refreshed = take(list);
        let opposite = match list {
            List::Encouraged => Some(List::Forbidden),
            List::Forbidden => Some(List::Encouraged),
            List::Allowed => None,
        };
        let moved = opposite.filter(|opposite| take(*opposite)).map(Change::Moved);
        self.timestamp = self.timestamp.max(entry.timestamp);
        self.list_mut(list).push(entry);
        moved.unwrap_or(if refreshed { Change::Refreshed } else { Change::Added })
    }

    /// Empties a list and returns its entries.
    pub fn clear(&mut self, list: List) -> Vec<Entry> {
        std::mem::take(self.list_mut(list))
    }

    /// Returns the ids of the findings that the user allowed.
    pub fn waived(&self) -> Vec<String> {
        self.allowed.iter().map(|entry| entry.text.clone()).collect()
    }

    /// Removes an entry by its number in `ralph-guidance list`, or by its text.
    pub fn remove(&mut self, which: &str) -> Option<Entry> {
        let wanted = key(which);
        let mut index = match wanted.parse::<usize>() {
            Ok(number) => number.checked_sub(1)?,
            Err(_) => {
                let mut entries = self.encouraged.iter().chain(&self.forbidden).chain(&self.allowed);
                entries.position(|entry| key(&entry.text) == wanted)?
            }
        };
        for entries in self.lists_mut() {
            if index < entries.len() {
                return Some(entries.remove(index));
            }
            index -= entries.len();
        }
        None
    }

    /// Drops the entries that are too old for any loop and returns them, to be reported.
    pub fn purge_over_age(&mut self, now: Stamp, max_age_ms: i64) -> Vec<Entry> {
        let old = |entry: &mut Entry| entry.over_age(now, max_age_ms);
        self.lists_mut().into_iter().flat_map(|entries| entries.extract_if(.., old)).collect()
    }

    /// Drops the entries that are for none of these loops. An allowed finding stays as long as its loop.
    pub fn purge_stale(&mut self, scopes: &[GuidanceScope], now: Stamp, max_age_ms: i64) -> Vec<Entry> {
        let ages = [max_age_ms, max_age_ms, i64::MAX];
        let purge = |(entries, age): (&mut Vec<Entry>, i64)| {
            let stale = |entry: &mut Entry| !scopes.iter().any(|scope| entry.is_fresh(scope, now, age));
            entries.extract_if(.., stale).collect::<Vec<_>>()
        };
        self.lists_mut().into_iter().zip(ages).flat_map(purge).collect()
    }

    /// Returns the part that is for one loop.
    pub fn fresh_for(&self, scope: &GuidanceScope, now: Stamp, max_age_ms: i64) -> Guidance {
        let mut own = self.clone();
        own.purge_stale(std::slice::from_ref(scope), now, max_age_ms);
        own
    }

    /// Replaces dates in the future by `now`, so that they age from there.
    pub fn bring_back_to(&mut self, now: Stamp) {
        for entry in self.lists_mut().into_iter().flatten() {
            entry.timestamp = entry.timestamp.map(|at| at.min(now));
        }
        self.timestamp = self.timestamp.map(|at| at.min(now));
    }

    /// Marks the entries with these keys as delivered to the agent.
    pub fn deliver(&mut self, told: &[String]) {
        for entry in self.encouraged.iter_mut().chain(&mut self.forbidden) {
            entry.delivered |= told.contains(&key(&entry.text));
        }
    }
}

/// Returns the texts of entries, quoted and shortened: `"small steps", "no new files"`.
pub fn quoted(entries: &[Entry]) -> String {
    let texts = entries.iter().map(|entry| format!("\"{}\"", clean::excerpt(&entry.text, 60)));
    texts.collect::<Vec<_>>().join(", ")
}

/// Reports a purge with its texts.
pub fn purged(entries: &[Entry]) -> Option<String> {
    (!entries.is_empty())
        .then(|| format!("dropped guidance that is too old or from another loop: {}", quoted(entries)))
}

/// Parses how long an entry counts, into seconds; a bare number is hours.
pub fn parse_span(text: &str) -> Option<f64> {
    let seconds = Stamp(HOURS.to_ms(HOURS.parse(text)?)).seconds();
    (seconds > 0.0 && seconds <= 1e9).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: i64 = 3_600_000;
    const NOW: Stamp = Stamp(1000 * HOUR);

    fn entry(text: &str, hours_ago: impl Into<Option<f64>>, session: Option<&str>) -> Entry {
        let timestamp = hours_ago.into().map(|hours| NOW.plus_ms(-(hours * HOUR as f64) as i64));
        Entry { text: text.into(), timestamp, session_id: session.map(str::to_owned), ..Entry::default() }
    }

    #[test]
    fn freshness() {
        // The loop "me" started two hours ago; the loop before it ended five hours ago. At most 24 hours.
        let scope = GuidanceScope {
            session: "me",
            started_at: NOW.plus_ms(-2 * HOUR),
            previous_ended_at: Some(NOW.plus_ms(-5 * HOUR)),
        };
        let pinned = |entry: Entry| Entry { pinned: true, ..entry };
        let lasting = |hours: f64, entry: Entry| Entry { for_seconds: Some(hours * 3600.0), ..entry };
        let cases: &[(&str, Entry, bool)] = &[
            ("given in this loop, by this session", entry("x", 1.0, Some("me")), true),
            ("given in this loop, from a terminal", entry("x", 1.0, None), true),
            ("given in this loop, by another session", entry("x", 1.0, Some("you")), true),
            ("just before the start, same session", entry("x", 3.0, Some("me")), true),
            ("just before the start, from a terminal", entry("x", 3.0, None), true),
            ("before the start, another session", entry("x", 3.0, Some("you")), false),
            ("before the previous loop ended, from a terminal", entry("x", 6.0, None), false),
            ("before the previous loop ended, same session", entry("x", 6.0, Some("me")), true),
            ("23 hours old, same session", entry("x", 23.0, Some("me")), true),
            ("24 hours old, same session", entry("x", 24.0, Some("me")), false),
            ("a week old, pinned", pinned(entry("x", 168.0, Some("you"))), true),
            ("no date", entry("x", None, Some("me")), false),
            ("no date, pinned", pinned(entry("x", None, None)), true),
            ("dated in the future", entry("x", -48.0, Some("me")), true),
            ("for two hours, one passed", lasting(2.0, entry("x", 1.0, Some("me"))), true),
            ("for two hours, two passed", lasting(2.0, entry("x", 2.0, Some("me"))), false),
            ("pinned for two hours, three passed", lasting(2.0, pinned(entry("x", 3.0, None))), false),
        ];
        for (name, entry, fresh) in cases {
            assert_eq!(entry.is_fresh(&scope, NOW, 24 * HOUR), *fresh, "{name}");
        }
        let first = GuidanceScope { previous_ended_at: None, ..scope };
        assert!(entry("x", 20.0, None).is_fresh(&first, NOW, 24 * HOUR), "no loop before it");
    }

    #[test]
    fn a_future_date_does_not_live_forever() {
        let ahead = entry("x", -5.0, Some("me"));
        assert!(!ahead.over_age(NOW, 24 * HOUR));
        assert!(ahead.over_age(NOW.plus_ms(29 * HOUR), 24 * HOUR));
    }

    #[test]
    fn the_newest_entry_counts() {
        let mut guidance = Guidance::default();
        assert_eq!(guidance.give(List::Encouraged, entry("write tests", 3.0, None)), Change::Added);
        assert_eq!(guidance.give(List::Encouraged, entry("use serde", 2.0, None)), Change::Added);
        assert_eq!(guidance.give(List::Encouraged, entry("Write  TESTS", 1.0, None)), Change::Refreshed);
        assert_eq!(
            guidance.give(List::Forbidden, entry("use SERDE", 0.5, None)),
            Change::Moved(List::Encouraged)
        );
        assert_eq!(texts(&guidance.encouraged), ["Write  TESTS"]);
        assert_eq!(texts(&guidance.forbidden), ["use SERDE"]);
        assert_eq!(guidance.timestamp, Some(NOW.plus_ms(-HOUR / 2)));
    }

    #[test]
    fn removal_by_number_or_text() {
        let mut guidance = Guidance::default();
        guidance.give(List::Encouraged, entry("a", 1.0, None));
        guidance.give(List::Forbidden, entry("b", 1.0, None));
        guidance.give(List::Forbidden, entry("c d", 1.0, None));
        assert_eq!(guidance.remove("2").unwrap().text, "b");
        assert_eq!(guidance.remove(" C  D ").unwrap().text, "c d");
        assert_eq!((guidance.remove("0"), guidance.remove("9"), guidance.remove("zzz")), (None, None, None));
        assert_eq!(guidance.remove("1").unwrap().text, "a");
        assert!(guidance.is_empty());
    }

    #[test]
    fn a_purge_names_what_went() {
        let mut guidance = Guidance::default();
        guidance.give(List::Encouraged, entry("fresh", 23.0, None));
        guidance.give(List::Encouraged, entry("old", 24.0, None));
        guidance.give(List::Forbidden, entry("undated", None, None));
        let gone = guidance.purge_over_age(NOW, 24 * HOUR);
        assert_eq!(
            purged(&gone).unwrap(),
            "dropped guidance that is too old or from another loop: \"old\", \"undated\""
        );
        assert_eq!(purged(&guidance.purge_over_age(NOW, 24 * HOUR)), None, "and only once");
    }

    #[test]
    fn spans_as_people_write_them() {
        for (text, seconds) in [
            ("90s", 90.0),
            ("30m", 1800.0),
            ("2h", 7200.0),
            ("1.5d", 129_600.0),
            ("2", 7200.0),
            ("1000000000s", 1e9),
            ("1h30m", 5400.0),
        ] {
            assert_eq!(parse_span(text), Some(seconds), "{text}");
        }
        for text in ["", "h", "-2h", "0m", "two", "1w", "NaNh", "infh", "1e99d", "1000000001s"] {
            assert_eq!(parse_span(text), None, "{text}");
        }
    }

    fn mixed() -> Guidance {
        let mut guidance = Guidance::default();
        guidance.give(List::Encouraged, entry("mine", 1.0, Some("me")));
        guidance.give(List::Encouraged, entry("yours", 3.0, Some("you")));
        guidance.give(List::Forbidden, entry("mine, old", 30.0, Some("me")));
        guidance.give(List::Allowed, entry("f1", 30.0, Some("me")));
        guidance.give(List::Allowed, entry("f2", 30.0, Some("you")));
        guidance
    }

    fn texts(entries: &[Entry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.text.as_str()).collect()
    }

    #[test]
    fn an_overruled_finding_lasts_as_long_as_its_loop() {
        let scope = |session| GuidanceScope {
            session,
            started_at: NOW.plus_ms(-2 * HOUR),
            previous_ended_at: Some(NOW.plus_ms(-5 * HOUR)),
        };
        let mine = mixed().fresh_for(&scope("me"), NOW, 24 * HOUR);
        assert_eq!((texts(&mine.encouraged), texts(&mine.forbidden)), (vec!["mine"], vec![]));
        assert_eq!(mine.waived(), ["f1"]);

        let mut guidance = mixed();
        let gone = guidance.purge_stale(&[scope("me"), scope("you")], NOW, 24 * HOUR);
        assert_eq!(texts(&gone), ["mine, old"], "what is meant for one of the loops stays");
        assert_eq!(guidance.waived(), ["f1", "f2"]);
        let gone = guidance.purge_stale(&[], NOW, 24 * HOUR);
        assert_eq!(texts(&gone), ["mine", "yours", "f1", "f2"], "without a loop nothing is meant");
    }

    #[test]
    fn it_is_empty_when_no_list_says_anything() {
        assert!(Guidance::default().is_empty());
        for list in [List::Encouraged, List::Forbidden, List::Allowed] {
            let mut guidance = Guidance::default();
            guidance.give(list, entry("x", 1.0, None));
            assert!(!guidance.is_empty(), "{list:?}");
            assert_eq!(texts(&guidance.clear(list)), ["x"], "{list:?}");
            assert!(guidance.is_empty(), "{list:?}");
        }
    }

    #[test]
    fn numbers_run_through_all_lists() {
        for (number, expected) in
            [("1", "mine"), ("2", "yours"), ("3", "mine, old"), ("4", "f1"), ("5", "f2")]
        {
            assert_eq!(mixed().remove(number).map(|entry| entry.text).as_deref(), Some(expected), "{number}");
        }
        assert_eq!(mixed().remove("6"), None);
    }

    #[test]
    fn a_future_date_is_brought_back_and_no_other() {
        let mut guidance = Guidance::default();
        guidance.give(List::Encouraged, entry("past", 1.0, None));
        guidance.give(List::Forbidden, entry("ahead", -5.0, None));
        guidance.give(List::Allowed, entry("undated", None, None));
        guidance.bring_back_to(NOW);
        let given = |list: &[Entry]| list[0].timestamp;
        assert_eq!(given(&guidance.encouraged), Some(NOW.plus_ms(-HOUR)));
        assert_eq!((given(&guidance.forbidden), given(&guidance.allowed)), (Some(NOW), None));
        assert_eq!(guidance.timestamp, Some(NOW));
    }

    #[test]
    fn what_was_told_stays_told() {
        let mut guidance = mixed();
        guidance.deliver(&["mine".into(), "mine, old".into(), "f1".into()]);
        guidance.deliver(&["mine".into()]);
        let told = |list: &[Entry]| list.iter().map(|entry| entry.delivered).collect::<Vec<_>>();
        assert_eq!((told(&guidance.encouraged), told(&guidance.forbidden)), (vec![true, false], vec![true]));
        assert_eq!(told(&guidance.allowed), [false, false], "a waiver is not for the agent");
    }

    proptest! {
        #[test]
        fn no_text_is_twice_on_a_list_or_on_both(
            words in prop::collection::vec((any::<bool>(), "[aAbB ]{1,3}"), 0..20),
        ) {
            let mut guidance = Guidance::default();
            for (index, (encourage, text)) in words.iter().enumerate() {
                let list = if *encourage { List::Encouraged } else { List::Forbidden };
                guidance.give(list, entry(text, 20.0 - index as f64, None));
                prop_assert_eq!(key(&guidance.list_mut(list).last().unwrap().text), key(text));
            }
            let mut keys: Vec<_> = guidance.encouraged.iter().chain(&guidance.forbidden).map(|e| key(&e.text)).collect();
            let count = keys.len();
            keys.sort();
            keys.dedup();
            prop_assert_eq!(keys.len(), count);
        }
    }
}
