//! What the user encourages and forbids, and how long it counts.
//!
//! Guidance is for the work at hand: it counts in the loop it was given in, or in the loop started just after it, and
//! for a day at most. Given in a session it is for the loop of that session, otherwise for all loops of the project.
//!
//! A loop takes so little of it that all of it fits in one prompt: Claude Code cuts what a hook adds to the context at
//! 10,000 characters.

mod entry;
pub mod finding;
pub mod merge;
pub mod words;

pub use entry::{Entry, EntryId, GuidanceScope, Overruled, Overruling, key};

use super::record::{lenient, lenient_list};
use super::time::Stamp;
use super::time::duration::HOURS;
use entry::MAX_DELIVERED_TO;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::fmt;

pub const MAX_TEXT_CHARS: usize = 2000;
/// How much guidance one loop takes, as the agent reads it.
pub const MAX_LOOP_CHARS: usize = 4000;
/// How many entries a project keeps, those of all sessions together.
pub const MAX_ENTRIES: usize = 100;

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
    /// Entries of the state file that this user did not give: they stay in the file and count for nothing.
    #[serde(skip)]
    pub foreign: Vec<(List, Entry)>,
    /// Entries that this user gave and the state file had lost.
    #[serde(skip)]
    pub restored: Vec<Entry>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    Encouraged,
    Forbidden,
    Allowed,
}

impl List {
    pub fn word(self) -> &'static str {
        match self {
            List::Encouraged => "encouraged",
            List::Forbidden => "forbidden",
            List::Allowed => "allowed",
        }
    }
}

const LISTS: [List; 3] = [List::Encouraged, List::Forbidden, List::Allowed];

/// What a new entry did to the lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddResult {
    Added,
    /// The text was already in this list; its age was reset.
    Refreshed,
    /// The text was on this list, and the newest entry wins.
    Moved(List),
}

/// Why an entry is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuidanceFull {
    Entries,
    Chars { used: usize },
}

impl fmt::Display for GuidanceFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GuidanceFull::Entries => write!(f, "too many entries: a project keeps at most {MAX_ENTRIES}"),
            GuidanceFull::Chars { used } => {
                write!(f, "too much guidance: {used} characters; one loop takes at most {MAX_LOOP_CHARS}")
            }
        }
    }
}

impl Guidance {
    pub fn is_empty(&self) -> bool {
        self.encouraged.is_empty() && self.forbidden.is_empty() && self.allowed.is_empty()
    }

    fn lists_mut(&mut self) -> [&mut Vec<Entry>; 3] {
        [&mut self.encouraged, &mut self.forbidden, &mut self.allowed]
    }

    /// Returns what the user gave, as it is recorded, with what the state file says became of it. What else that file has is
    /// set apart.
    pub fn recorded(record: &Guidance, mut stated: Guidance) -> Guidance {
        let mut own = Guidance { timestamp: stated.timestamp, ..Guidance::default() };
        own.extra = std::mem::take(&mut stated.extra);
        for list in LISTS {
            let mut found = std::mem::take(stated.list_mut(list));
            for given in record.list(list) {
                let at = found.iter().position(|entry| entry.is_recorded_as(given));
                let entry = match at.map(|at| found.remove(at)) {
                    Some(Entry { delivered_to, overruled, extra, .. }) => {
                        Entry { delivered_to, overruled, extra, ..given.clone() }
                    }
                    None => {
                        own.restored.push(given.clone());
                        given.clone()
                    }
                };
                own.timestamp = own.timestamp.max(entry.timestamp);
                own.list_mut(list).push(entry);
            }
            own.foreign.extend(found.into_iter().map(|entry| (list, entry)));
        }
        own
    }

    /// Returns the entries with those that the user did not give, as the state file keeps them.
    pub fn with_foreign(&self) -> Guidance {
        let mut all = self.clone();
        for (list, entry) in std::mem::take(&mut all.foreign) {
            all.list_mut(list).push(entry);
        }
        all
    }

    /// Returns what is recorded of it in the user's own folder.
    pub fn as_given(&self) -> Guidance {
        let list = |list| self.list(list).iter().map(Entry::as_given).collect();
        let [encouraged, forbidden, allowed] = LISTS.map(list);
        Guidance { encouraged, forbidden, allowed, ..Guidance::default() }
    }

    /// Adds the entries that are not there yet.
    pub fn include(&mut self, other: &Guidance) {
        for list in LISTS {
            let new: Vec<_> =
                other.list(list).iter().filter(|entry| !self.list(list).contains(entry)).cloned().collect();
            self.list_mut(list).extend(new);
        }
    }

    fn list(&self, list: List) -> &[Entry] {
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

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.encouraged.iter().chain(&self.forbidden)
    }

    /// Returns how many entries a loop of this session reads; without a session, how many there are.
    pub fn count_for(&self, session: Option<&str>) -> usize {
        self.entries().filter(|entry| session.is_none_or(|session| entry.is_for(session))).count()
    }

    /// Returns the part that is not for another session.
    pub fn of_session(mut self, session: &str) -> Guidance {
        self.lists_mut().into_iter().for_each(|entries| entries.retain(|entry| entry.is_for(session)));
        self
    }

    /// Returns whether there is more than the project takes, or than a loop of this session takes; without a session,
    /// than the loop of any session takes that has entries of its own.
    pub fn full(&self, session: Option<&str>) -> Option<GuidanceFull> {
        if self.entries().count() > MAX_ENTRIES || self.allowed.len() > MAX_ENTRIES {
            return Some(GuidanceFull::Entries);
        }
        let mut chars: HashMap<Option<&str>, usize> = HashMap::new();
        for entry in self.entries() {
            *chars.entry(entry.session_id.as_deref()).or_default() += entry.chars();
        }
        let for_all = chars.remove(&None).unwrap_or(0);
        let own = match session {
            Some(_) => chars.get(&session).copied(),
            None => chars.into_values().max(),
        };
        let used = for_all + own.unwrap_or(0);
        (used > MAX_LOOP_CHARS).then_some(GuidanceFull::Chars { used })
    }

    /// Adds an entry, in place of those with the same text that are for the same loops. One for all loops also takes
    /// the place of those of single sessions, because the newest entry wins.
    pub fn give(&mut self, list: List, entry: Entry) -> AddResult {
        let same = key(&entry.text);
        let given_in = entry.session_id.clone();
        let replaces =
            |old: &mut Entry| (given_in.is_none() || old.session_id == given_in) && key(&old.text) == same;
        let mut take = |list| self.list_mut(list).extract_if(.., replaces).count() > 0;
        let refreshed = take(list);
        let opposite = match list {
            List::Encouraged => Some(List::Forbidden),
            List::Forbidden => Some(List::Encouraged),
            List::Allowed => None,
        };
        let moved = opposite.filter(|opposite| take(*opposite)).map(AddResult::Moved);
        self.timestamp = self.timestamp.max(entry.timestamp);
        self.list_mut(list).push(entry);
        moved.unwrap_or(if refreshed { AddResult::Refreshed } else { AddResult::Added })
    }

    /// Drops the entries of a list that were given in this session, or in none, and returns them.
    pub fn clear(&mut self, list: List, session: Option<&str>) -> Vec<Entry> {
        let given_there = |entry: &mut Entry| entry.session_id.as_deref() == session;
        self.list_mut(list).extract_if(.., given_there).collect()
    }

    /// Drops all entries, also those that the user did not give, and returns how many there were.
    pub fn clear_all(&mut self) -> usize {
        let foreign = self.foreign.drain(..).count();
        foreign + self.lists_mut().into_iter().map(|entries| entries.drain(..).count()).sum::<usize>()
    }

    /// Returns the ids of the findings that the user allowed.
    pub fn allowed_findings(&self) -> Vec<String> {
        self.allowed.iter().map(|entry| entry.text.clone()).collect()
    }

    /// Removes an entry by its number in `ralph-guidance list`, or by its text; of several with that text, the one of
    /// this session, else the one for all loops.
    pub fn remove(&mut self, which: &str, session: Option<&str>) -> Option<Entry> {
        let wanted = key(which);
        let mut index = match wanted.parse::<usize>() {
            Ok(number) => number.checked_sub(1)?,
            Err(_) => {
                let entries = self.encouraged.iter().chain(&self.forbidden).chain(&self.allowed).enumerate();
                let matching = entries.filter(|(_, entry)| key(&entry.text) == wanted);
                let distance = |entry: &Entry| match entry.session_id.as_deref() {
                    own if own == session => 0,
                    None => 1,
                    Some(_) => 2,
                };
                matching.min_by_key(|(_, entry)| distance(entry))?.0
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

    /// Drops the entries that are for none of these loops. An allowed finding stays as long as its loop. What another
    /// session was given may be for a loop that it has yet to start, so only its age counts, even if it is pinned.
    pub fn purge_stale(&mut self, scopes: &[GuidanceScope], now: Stamp, max_age_ms: i64) -> Vec<Entry> {
        self.drop_unless(max_age_ms, |entry, age| {
            let elsewhere = |session: &String| scopes.iter().all(|scope| scope.session != session);
            scopes.iter().any(|scope| entry.is_fresh(scope, now, age))
                || (entry.session_id.as_ref().is_some_and(elsewhere)
                    && !Entry { pinned: false, ..entry.clone() }.over_age(now, max_age_ms))
        })
    }

    /// Returns the part that is for one loop.
    pub fn fresh_for(&self, scope: &GuidanceScope, now: Stamp, max_age_ms: i64) -> Guidance {
        let mut own = self.clone();
        own.drop_unless(max_age_ms, |entry, age| entry.is_fresh(scope, now, age));
        own
    }

    /// Drops the entries that do not pass, each with the age it may reach, and returns them.
    fn drop_unless(&mut self, max_age_ms: i64, stays: impl Fn(&Entry, i64) -> bool) -> Vec<Entry> {
        let ages = [max_age_ms, max_age_ms, i64::MAX];
        let lists = self.lists_mut().into_iter().zip(ages);
        let drop = |(entries, age): (&mut Vec<Entry>, i64)| {
            entries.extract_if(.., |entry| !stays(entry, age)).collect::<Vec<_>>()
        };
        lists.flat_map(drop).collect()
    }

    /// Gives the entries of a session to another one, which takes over its loop.
    pub fn hand_over(&mut self, from: &str, to: &str) {
        let entries = self.lists_mut().into_iter().flatten();
        for entry in entries.filter(|entry| entry.session_id.as_deref() == Some(from)) {
            entry.session_id = Some(to.to_owned());
        }
    }

    /// Replaces dates in the future by `now`, so that they age from there. Returns whether there were any.
    pub fn bring_back_to(&mut self, now: Stamp) -> bool {
        let mut found = false;
        for entry in self.lists_mut().into_iter().flatten().filter(|entry| entry.timestamp > Some(now)) {
            entry.timestamp = Some(now);
            found = true;
        }
        self.timestamp = self.timestamp.map(|at| at.min(now));
        found
    }

    /// Notes what a session's agent was told, and which finding overrules which entry. Returns the entries for which
    /// the finding is news.
    pub fn deliver(&mut self, session: &str, told: &HashSet<EntryId>, overruled: &[Overruled]) -> Vec<Entry> {
        let findings: HashMap<&EntryId, &str> =
            overruled.iter().map(|overruled| (&overruled.entry, overruled.by.as_str())).collect();
        self.note_told(session, told);
        let mut news = Vec::new();
        for entry in self.entries_for(session) {
            let by = findings.get(&entry.id()).copied();
            if entry.set_overruled(session, by) {
                news.push(entry.clone());
            }
        }
        news
    }

    /// Notes what a session's agent was told.
    pub fn note_told(&mut self, session: &str, told: &HashSet<EntryId>) {
        let is_new = |entry: &&mut Entry| {
            told.contains(&entry.id()) && !entry.delivered_to.iter().any(|known| known == session)
        };
        for entry in self.entries_for(session).filter(is_new) {
            entry.delivered_to.push(session.to_owned());
            let over = entry.delivered_to.len().saturating_sub(MAX_DELIVERED_TO);
            entry.delivered_to.drain(..over);
        }
    }

    fn entries_for<'a>(&'a mut self, session: &'a str) -> impl Iterator<Item = &'a mut Entry> {
        self.encouraged.iter_mut().chain(&mut self.forbidden).filter(move |entry| entry.is_for(session))
    }
}

/// Parses how long an entry counts, into seconds; a bare number is hours.
pub fn parse_span(text: &str) -> Option<f64> {
    let seconds = Stamp(HOURS.to_ms(HOURS.parse(text)?)).seconds();
    (seconds > 0.0 && seconds <= 1e9).then_some(seconds)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::entry::ENTRY_CHARS;
    use super::words::*;
    use super::*;
    use proptest::prelude::*;

    std::thread_local! {
        /// How many texts were brought into the form in which they are compared.
        pub static KEYS_MADE: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

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
            ("given in this loop, by another session", entry("x", 1.0, Some("you")), false),
            ("just before the start, same session", entry("x", 3.0, Some("me")), true),
            ("just before the start, from a terminal", entry("x", 3.0, None), true),
            ("before the start, another session", entry("x", 3.0, Some("you")), false),
            ("before the previous loop ended, from a terminal", entry("x", 6.0, None), false),
            ("before the previous loop ended, same session", entry("x", 6.0, Some("me")), true),
            ("23 hours old, same session", entry("x", 23.0, Some("me")), true),
            ("24 hours old, same session", entry("x", 24.0, Some("me")), false),
            ("a week old, pinned", pinned(entry("x", 168.0, None)), true),
            ("a week old, pinned, same session", pinned(entry("x", 168.0, Some("me"))), true),
            ("pinned in another session", pinned(entry("x", 1.0, Some("you"))), false),
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
        assert_eq!(guidance.give(List::Encouraged, entry("write tests", 3.0, None)), AddResult::Added);
        assert_eq!(guidance.give(List::Encouraged, entry("use serde", 2.0, None)), AddResult::Added);
        assert_eq!(guidance.give(List::Encouraged, entry("Write  TESTS", 1.0, None)), AddResult::Refreshed);
        assert_eq!(
            guidance.give(List::Forbidden, entry("use SERDE", 0.5, None)),
            AddResult::Moved(List::Encouraged)
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
        assert_eq!(guidance.remove("2", None).unwrap().text, "b");
        assert_eq!(guidance.remove(" C  D ", None).unwrap().text, "c d");
        assert_eq!(
            (guidance.remove("0", None), guidance.remove("9", None), guidance.remove("zzz", None)),
            (None, None, None)
        );
        assert_eq!(guidance.remove("1", None).unwrap().text, "a");
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
            "removed guidance that has expired or is from another loop: \"old\", \"undated\""
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
        assert_eq!(mine.allowed_findings(), ["f1"]);

        let mut guidance = mixed();
        let gone = guidance.purge_stale(&[scope("me"), scope("you")], NOW, 24 * HOUR);
        assert_eq!(texts(&gone), ["mine, old"], "what is meant for one of the loops stays");
        assert_eq!(guidance.allowed_findings(), ["f1", "f2"]);
        guidance.give(List::Forbidden, entry("ours", 6.0, None));
        let gone = guidance.purge_stale(&[scope("a third")], NOW, 24 * HOUR);
        assert_eq!(texts(&gone), ["ours", "f1", "f2"], "other sessions may be about to start a loop");
    }

    #[test]
    fn a_pinned_entry_of_a_session_ends_with_its_loop() {
        let pinned = |session| Entry { pinned: true, ..entry("x", 30.0, session) };
        let scope = |session| GuidanceScope { session, started_at: Stamp(0), previous_ended_at: None };
        let left = |scopes: &[GuidanceScope]| {
            let forbidden = vec![pinned(Some("me")), pinned(None)];
            let mut guidance = Guidance { forbidden, ..Guidance::default() };
            guidance.purge_stale(scopes, NOW, 24 * HOUR);
            guidance.forbidden.len()
        };
        assert_eq!(left(&[scope("me"), scope("you")]), 2);
        assert_eq!(left(&[scope("you")]), 1, "the loop of the session is gone");
    }

    #[test]
    fn it_is_empty_when_no_list_says_anything() {
        assert!(Guidance::default().is_empty());
        for list in [List::Encouraged, List::Forbidden, List::Allowed] {
            let mut guidance = Guidance::default();
            guidance.give(list, entry("x", 1.0, None));
            assert!(!guidance.is_empty(), "{list:?}");
            assert_eq!(texts(&guidance.clear(list, None)), ["x"], "{list:?}");
            assert!(guidance.is_empty(), "{list:?}");
        }
    }

    #[test]
    fn numbers_run_through_all_lists() {
        for (number, expected) in
            [("1", "mine"), ("2", "yours"), ("3", "mine, old"), ("4", "f1"), ("5", "f2")]
        {
            assert_eq!(
                mixed().remove(number, None).map(|entry| entry.text).as_deref(),
                Some(expected),
                "{number}"
            );
        }
        assert_eq!(mixed().remove("6", None), None);
    }

    #[test]
    fn sessions_say_the_same_or_the_opposite_without_touching_each_other() {
        let mut guidance = Guidance::default();
        guidance.give(List::Forbidden, entry("push", 3.0, Some("me")));
        assert_eq!(guidance.give(List::Encouraged, entry("push", 2.0, Some("you"))), AddResult::Added);
        assert_eq!((guidance.count_for(Some("me")), guidance.count_for(None)), (1, 2));
        assert_eq!(guidance.clone().remove("push", Some("me")).unwrap().session_id.as_deref(), Some("me"));
        assert_eq!(guidance.clear(List::Forbidden, Some("you")), []);
        guidance.hand_over("me", "heir");
        assert_eq!(guidance.forbidden[0].session_id.as_deref(), Some("heir"));
        let for_all = guidance.give(List::Encouraged, entry("push", 1.0, None));
        assert_eq!(for_all, AddResult::Moved(List::Forbidden), "for all loops, so it replaces both");
        assert_eq!(guidance.count_for(None), 1);
    }

    #[test]
    fn a_loop_and_a_project_take_a_limited_amount() {
        let given = |entries: Vec<Entry>| Guidance { forbidden: entries, ..Guidance::default() }.full(None);
        let small = |n: usize| entry(&format!("{n}"), 1.0, (n >= 50).then_some("me"));
        assert_eq!(given((0..100).map(small).collect()), None);
        assert_eq!(given((0..101).map(small).collect()), Some(GuidanceFull::Entries));
        let of = |chars: usize, session| entry(&"x".repeat(chars - ENTRY_CHARS), 1.0, session);
        assert_eq!(given(vec![of(2000, None), of(2000, Some("me")), of(2000, Some("you"))]), None);
        let more = given(vec![of(2000, None), of(1000, Some("me")), of(2001, Some("you"))]);
        assert_eq!(more, Some(GuidanceFull::Chars { used: 4001 }));
        let crabs = entry(&"\u{1f980}".repeat(2000), 1.0, None);
        assert_eq!(given(vec![crabs]), Some(GuidanceFull::Chars { used: 4020 }), "as the client counts");
        let allowed = (0..101).map(small).collect();
        assert_eq!(Guidance { allowed, ..Guidance::default() }.full(None), Some(GuidanceFull::Entries));
        let mine = Guidance { forbidden: vec![of(2000, None), of(2001, Some("you"))], ..Guidance::default() };
        assert_eq!(
            (mine.full(Some("me")), mine.full(None)),
            (None, Some(GuidanceFull::Chars { used: 4001 }))
        );
    }

    #[test]
    fn no_message_grows_with_the_number_of_entries() {
        let entries: Vec<_> = (0..2000)
            .map(|n| Entry {
                overruled: vec![Overruling { session_id: None, by: "x".repeat(999) }],
                ..entry(&format!("{n} {}", "long ".repeat(99)), 30.0, None)
            })
            .collect();
        for told in [purged(&entries), withheld(&entries)] {
            let told = told.unwrap();
            assert!(told.contains(" and 1990 more") && told.chars().count() < 2600, "{told}");
        }
        assert!(purged(&entries[..10]).unwrap().ends_with("…\""), "ten are named");
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
        let all: HashSet<EntryId> = guidance.entries().chain(&guidance.allowed).map(Entry::id).collect();
        guidance.deliver("me", &all, &[]);
        guidance.deliver("me", &HashSet::new(), &[]);
        let told = |list: &[Entry]| list.iter().map(Entry::is_delivered).collect::<Vec<_>>();
        assert_eq!((told(&guidance.encouraged), told(&guidance.forbidden)), (vec![true, false], vec![true]));
        guidance.give(List::Encouraged, entry("ours", 1.0, None));
        let ours = HashSet::from([guidance.encouraged[2].id()]);
        (0..99).for_each(|n| drop(guidance.deliver(&format!("s{n}"), &ours, &[])));
        assert_eq!(guidance.encouraged[2].delivered_to.len(), MAX_DELIVERED_TO, "it does not grow");
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
