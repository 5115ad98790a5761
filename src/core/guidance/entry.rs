//! One piece of guidance, and for which loop it counts.

use crate::core::record::{lenient, lenient_list};
use crate::core::text::clean;
use crate::core::time::Stamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Each entry is read with a dash before it and its age after it.
pub(super) const ENTRY_CHARS: usize = 20;
/// An entry forgets the first of more sessions, which only means that it is told there once more.
pub(super) const MAX_DELIVERED_TO: usize = 16;

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
    /// The sessions whose agent has been told.
    #[serde(deserialize_with = "lenient_list", skip_serializing_if = "Vec::is_empty")]
    pub delivered_to: Vec<String>,
    /// The findings that keep it from the agents, as the users of these sessions were told.
    #[serde(deserialize_with = "lenient_list", skip_serializing_if = "Vec::is_empty")]
    pub overruled: Vec<Overruling>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The loop that a piece of guidance may be for.
#[derive(Clone, Debug)]
pub struct GuidanceScope<'a> {
    pub session: &'a str,
    pub started_at: Stamp,
    /// When the previous loop of this project ended.
    pub previous_ended_at: Option<Stamp>,
}

/// Tells an entry from others: its [`key`], and when it was given.
pub type EntryId = (String, Option<Stamp>);

/// That a finding keeps an entry from the agent of a session; from all of them, if a terminal was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overruling {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The finding's id and what it is about.
    pub by: String,
}

/// An entry that a finding keeps from the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overruled {
    pub entry: EntryId,
    /// The finding's id and what it is about.
    pub by: String,
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

    /// Returns the finding that keeps it from an agent, if one does.
    pub fn overruled_by(&self) -> Option<&str> {
        self.overruled.last().map(|overruling| overruling.by.as_str())
    }

    /// Notes which finding keeps it from a session's agent. Returns whether that is news for its user.
    pub(super) fn set_overruled(&mut self, session: &str, finding: Option<&str>) -> bool {
        let told = |known: &Overruling| known.session_id.as_deref().is_none_or(|id| id == session);
        let is_news =
            finding.is_some_and(|by| !self.overruled.iter().any(|known| told(known) && known.by == by));
        if is_news || finding.is_none() {
            self.overruled.retain(|known| !told(known));
        }
        if let Some(by) = finding.filter(|_| is_news) {
            self.overruled.push(Overruling { session_id: Some(session.to_owned()), by: by.to_owned() });
            let over = self.overruled.len().saturating_sub(MAX_DELIVERED_TO);
            self.overruled.drain(..over);
        }
        is_news
    }

    /// Returns whether it is for this loop: pinned or young enough, and given in its session, or in none and since the
    /// previous loop.
    pub fn is_fresh(&self, scope: &GuidanceScope, now: Stamp, max_age_ms: i64) -> bool {
        if self.over_age(now, max_age_ms) {
            return false;
        }
        match (&self.session_id, self.timestamp.map(|given| given.min(now))) {
            (Some(session), _) => session == scope.session,
            (None, None) => self.pinned,
            (None, Some(given)) => {
                self.pinned
                    || given >= scope.started_at
                    || scope.previous_ended_at.is_none_or(|ended| given > ended)
            }
        }
    }

    pub fn id(&self) -> EntryId {
        (key(&self.text), self.timestamp)
    }

    /// Returns whether it is for this session's loop or for all loops.
    pub fn is_for(&self, session: &str) -> bool {
        self.session_id.as_deref().is_none_or(|own| own == session)
    }

    /// Returns whether this is the entry that the user gave, as it was recorded then. Dates in the future are brought back.
    pub(super) fn is_recorded_as(&self, record: &Entry) -> bool {
        self.text == record.text
            && self.session_id == record.session_id
            && self.pinned == record.pinned
            && self.for_seconds == record.for_seconds
            && self.timestamp <= record.timestamp
    }

    /// Returns what the user gave, without what became of it since.
    pub(super) fn as_given(&self) -> Entry {
        Entry { delivered_to: Vec::new(), overruled: Vec::new(), extra: Map::new(), ..self.clone() }
    }

    pub fn is_delivered(&self) -> bool {
        !self.delivered_to.is_empty()
    }

    /// Returns how much of a prompt it takes. The client counts in UTF-16.
    pub(super) fn chars(&self) -> usize {
        self.text.encode_utf16().count() + ENTRY_CHARS
    }
}

/// Returns a text in the form in which texts are compared: case and white space do not matter.
pub fn key(text: &str) -> String {
    #[cfg(test)]
    super::tests::KEYS_MADE.set(super::tests::KEYS_MADE.get() + 1);
    clean::line(text).to_lowercase()
}
