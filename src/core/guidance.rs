//! What the user encourages and forbids, and how long it stays fresh.
//!
//! Guidance belongs to the work at hand: it is followed in the loop it was given in, or in the same
//! sitting just before, and for a day at most. Last week's word does not haunt today's loop.

use super::clean;
use super::record::{lenient, lenient_list};
use super::time::{self, Stamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub const LONGEST_TEXT: usize = 2000;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Guidance {
    #[serde(deserialize_with = "lenient_list")]
    pub encouraged: Vec<Entry>,
    #[serde(deserialize_with = "lenient_list")]
    pub forbidden: Vec<Entry>,
    /// Findings the user overrules, by id in `text`.
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
    /// How long it holds where the user said so.
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

/// The work that guidance is weighed against.
#[derive(Clone, Debug)]
pub struct Sitting<'a> {
    pub session: &'a str,
    pub started_at: Stamp,
    /// When the previous loop of this project ended.
    pub previous_ended_at: Option<Stamp>,
}

/// What became of a word that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Added,
    /// The same was said before; it counts from now.
    Refreshed,
    /// The opposite was said before; the newest word stands.
    Moved(List),
}

impl Entry {
    /// Age in milliseconds; a timestamp in the future counts as now, an unreadable one has no age.
    pub fn age_ms(&self, now: Stamp) -> Option<i64> {
        self.timestamp.map(|given| (now - given).max(0))
    }

    /// Too old whatever the loop, or without a usable date.
    pub fn over_age(&self, now: Stamp, max_age_ms: i64) -> bool {
        let own = self.for_seconds.map(|seconds| Stamp::from_seconds(seconds).0);
        match self.age_ms(now) {
            None => !self.pinned,
            Some(age) => own.map_or(!self.pinned && age >= max_age_ms, |own| age >= own),
        }
    }

    /// Whether it is meant for this loop: pinned, or young enough and given in it or in the same sitting.
    pub fn is_fresh(&self, sitting: &Sitting, now: Stamp, max_age_ms: i64) -> bool {
        if self.over_age(now, max_age_ms) {
            return false;
        }
        let Some(given) = self.timestamp.map(|given| given.min(now)) else { return self.pinned };
        let same_session = self.session_id.as_deref() == Some(sitting.session);
        let before_start =
            self.session_id.is_none() && sitting.previous_ended_at.is_none_or(|ended| given > ended);
        self.pinned || same_session || given >= sitting.started_at || before_start
    }
}

/// Texts that say the same: case and white space do not matter.
pub fn key(text: &str) -> String {
    clean::line(text).to_lowercase()
}

impl Guidance {
    pub fn is_empty(&self) -> bool {
        self.encouraged.is_empty() && self.forbidden.is_empty() && self.allowed.is_empty()
    }

    pub fn list(&self, list: List) -> &Vec<Entry> {
        match list {
            List::Encouraged => &self.encouraged,
            List::Forbidden => &self.forbidden,
            List::Allowed => &self.allowed,
        }
    }

    fn list_mut(&mut self, list: List) -> &mut Vec<Entry> {
        match list {
            List::Encouraged => &mut self.encouraged,
            List::Forbidden => &mut self.forbidden,
            List::Allowed => &mut self.allowed,
        }
    }

    /// Takes one word. What it says again or against goes; entries keep the order they were given in.
    pub fn give(&mut self, list: List, entry: Entry) -> Change {
        let mut change = Change::Added;
        let opposite = match list {
            List::Encouraged => Some(List::Forbidden),
            List::Forbidden => Some(List::Encouraged),
            List::Allowed => None,
        };
        let same = key(&entry.text);
        if take(self.list_mut(list), &same) {
            change = Change::Refreshed;
        }
        if let Some(opposite) = opposite.filter(|opposite| take(self.list_mut(*opposite), &same)) {
            change = Change::Moved(opposite);
        }
        self.timestamp = self.timestamp.max(entry.timestamp);
        self.list_mut(list).push(entry);
        change
    }

    /// Empties a list and returns what was in it.
    pub fn clear(&mut self, list: List) -> Vec<Entry> {
        std::mem::take(self.list_mut(list))
    }

    /// Ids of the findings the user has overruled.
    pub fn waived(&self) -> Vec<String> {
        self.allowed.iter().map(|entry| entry.text.clone()).collect()
    }

    /// Removes by the number `list` shows, or by text.
    pub fn remove(&mut self, which: &str) -> Option<Entry> {
        let wanted = key(which);
        let lists = [List::Encouraged, List::Forbidden, List::Allowed];
        if let Ok(number) = wanted.parse::<usize>() {
            let mut index = number.checked_sub(1)?;
            for list in lists {
                let entries = self.list_mut(list);
                if index < entries.len() {
                    return Some(entries.remove(index));
                }
                index -= entries.len();
            }
            return None;
        }
        lists.into_iter().find_map(|list| {
            let entries = self.list_mut(list);
            let at = entries.iter().position(|entry| key(&entry.text) == wanted)?;
            Some(entries.remove(at))
        })
    }

    /// Drops what `stale` says and returns it, so that it can be reported.
    fn purge(&mut self, stale: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let mut purged = Vec::new();
        for list in [List::Encouraged, List::Forbidden, List::Allowed] {
            let entries = self.list_mut(list);
            let (old, kept): (Vec<_>, Vec<_>) = std::mem::take(entries).into_iter().partition(&stale);
            *entries = kept;
            purged.extend(old);
        }
        purged
    }

    /// Drops what is too old for any loop.
    pub fn purge_over_age(&mut self, now: Stamp, max_age_ms: i64) -> Vec<Entry> {
        self.purge(|entry| entry.over_age(now, max_age_ms))
    }

    /// Drops what is meant for none of these loops. An overruled finding stays so as long as its loop does.
    pub fn purge_stale(&mut self, sittings: &[Sitting], now: Stamp, max_age_ms: i64) -> Vec<Entry> {
        let allowed = std::mem::take(&mut self.allowed);
        let fresh =
            |entry: &Entry, age: i64| sittings.iter().any(|sitting| entry.is_fresh(sitting, now, age));
        let mut purged = self.purge(|entry| !fresh(entry, max_age_ms));
        let (kept, over): (Vec<_>, Vec<_>) = allowed.into_iter().partition(|entry| fresh(entry, i64::MAX));
        self.allowed = kept;
        purged.extend(over);
        purged
    }

    /// What of it is meant for one loop.
    pub fn fresh_for(&self, sitting: &Sitting, now: Stamp, max_age_ms: i64) -> Guidance {
        let mut own = self.clone();
        own.purge_stale(std::slice::from_ref(sitting), now, max_age_ms);
        own
    }

    /// A date in the future counts as now, and ages from there.
    pub fn bring_back_to(&mut self, now: Stamp) {
        for list in [List::Encouraged, List::Forbidden, List::Allowed] {
            self.list_mut(list)
                .iter_mut()
                .for_each(|entry| entry.timestamp = entry.timestamp.map(|at| at.min(now)));
        }
        self.timestamp = self.timestamp.map(|at| at.min(now));
    }

    /// Marks the entries with these keys as told to the agent.
    pub fn deliver(&mut self, told: &[String]) {
        for entry in self.encouraged.iter_mut().chain(&mut self.forbidden) {
            entry.delivered |= told.contains(&key(&entry.text));
        }
    }
}

fn take(entries: &mut Vec<Entry>, same: &str) -> bool {
    let before = entries.len();
    entries.retain(|entry| key(&entry.text) != same);
    entries.len() < before
}

/// The one report of a purge, with the texts.
pub fn purged(entries: &[Entry]) -> Option<String> {
    let texts: Vec<_> =
        entries.iter().map(|entry| format!("\"{}\"", clean::excerpt(&entry.text, 60))).collect();
    (!texts.is_empty())
        .then(|| format!("dropped guidance that is too old or not meant for this loop: {}", texts.join(", ")))
}

/// A span as people write it: `90s`, `30m`, `2h`, `1.5d`; a bare number is hours.
pub fn parse_span(text: &str) -> Option<f64> {
    let text = text.trim();
    let (number, unit) = match text.char_indices().next_back()? {
        (at, 's') => (&text[..at], 1.0),
        (at, 'm') => (&text[..at], 60.0),
        (at, 'h') => (&text[..at], 3600.0),
        (at, 'd') => (&text[..at], 86_400.0),
        _ => (text, 3600.0),
    };
    let seconds = number.trim().parse::<f64>().ok()? * unit;
    (seconds.is_finite() && seconds > 0.0 && seconds <= 1e9).then_some(seconds)
}

/// `3m ago`, or nothing for an entry without a date.
pub fn age(entry: &Entry, now: Stamp) -> Option<String> {
    entry.age_ms(now).map(|age| format!("{} ago", time::span(age)))
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
        let sitting = Sitting {
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
            assert_eq!(entry.is_fresh(&sitting, NOW, 24 * HOUR), *fresh, "{name}");
        }
        let first = Sitting { previous_ended_at: None, ..sitting };
        assert!(entry("x", 20.0, None).is_fresh(&first, NOW, 24 * HOUR), "no loop before: the same sitting");
    }

    #[test]
    fn a_future_date_does_not_live_forever() {
        let ahead = entry("x", -5.0, Some("me"));
        assert!(!ahead.over_age(NOW, 24 * HOUR));
        assert!(ahead.over_age(NOW.plus_ms(29 * HOUR), 24 * HOUR));
    }

    #[test]
    fn the_newest_word_stands() {
        let mut guidance = Guidance::default();
        assert_eq!(guidance.give(List::Encouraged, entry("write tests", 3.0, None)), Change::Added);
        assert_eq!(guidance.give(List::Encouraged, entry("use serde", 2.0, None)), Change::Added);
        assert_eq!(guidance.give(List::Encouraged, entry("Write  TESTS", 1.0, None)), Change::Refreshed);
        assert_eq!(
            guidance.give(List::Forbidden, entry("use SERDE", 0.5, None)),
            Change::Moved(List::Encouraged)
        );
        let texts = |list| guidance.list(list).iter().map(|entry| entry.text.as_str()).collect::<Vec<_>>();
        assert_eq!(texts(List::Encouraged), ["Write  TESTS"]);
        assert_eq!(texts(List::Forbidden), ["use SERDE"]);
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
            "dropped guidance that is too old or not meant for this loop: \"old\", \"undated\""
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
        let sitting = |session| Sitting {
            session,
            started_at: NOW.plus_ms(-2 * HOUR),
            previous_ended_at: Some(NOW.plus_ms(-5 * HOUR)),
        };
        let mine = mixed().fresh_for(&sitting("me"), NOW, 24 * HOUR);
        assert_eq!((texts(&mine.encouraged), texts(&mine.forbidden)), (vec!["mine"], vec![]));
        assert_eq!(mine.waived(), ["f1"]);

        let mut guidance = mixed();
        let gone = guidance.purge_stale(&[sitting("me"), sitting("you")], NOW, 24 * HOUR);
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
        let given = |list| guidance.list(list)[0].timestamp;
        assert_eq!(given(List::Encouraged), Some(NOW.plus_ms(-HOUR)));
        assert_eq!((given(List::Forbidden), given(List::Allowed)), (Some(NOW), None));
        assert_eq!(guidance.timestamp, Some(NOW));
    }

    #[test]
    fn what_was_told_stays_told() {
        let mut guidance = mixed();
        guidance.deliver(&["mine".into(), "mine, old".into(), "f1".into()]);
        guidance.deliver(&["mine".into()]);
        let told = |list| guidance.list(list).iter().map(|entry| entry.delivered).collect::<Vec<_>>();
        assert_eq!((told(List::Encouraged), told(List::Forbidden)), (vec![true, false], vec![true]));
        assert_eq!(told(List::Allowed), [false, false], "a waiver is not for the agent");
    }

    #[test]
    fn an_age_is_told_where_there_is_a_date() {
        assert_eq!(age(&entry("x", 3.0, None), NOW).as_deref(), Some("3.0h ago"));
        assert_eq!(age(&entry("x", -3.0, None), NOW).as_deref(), Some("0s ago"));
        assert_eq!(age(&entry("x", None, None), NOW), None);
    }

    proptest! {
        #[test]
        fn no_list_says_the_same_twice_and_no_word_stands_on_both(
            words in prop::collection::vec((any::<bool>(), "[aAbB ]{1,3}"), 0..20),
        ) {
            let mut guidance = Guidance::default();
            for (index, (encourage, text)) in words.iter().enumerate() {
                let list = if *encourage { List::Encouraged } else { List::Forbidden };
                guidance.give(list, entry(text, 20.0 - index as f64, None));
                prop_assert_eq!(key(&guidance.list(list).last().unwrap().text), key(text));
            }
            let mut keys: Vec<_> = guidance.encouraged.iter().chain(&guidance.forbidden).map(|e| key(&e.text)).collect();
            let count = keys.len();
            keys.sort();
            keys.dedup();
            prop_assert_eq!(keys.len(), count);
        }
    }
}
