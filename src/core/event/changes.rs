//! What changed in the guidance and the findings of a loop, as events.

use super::{EventKind, Findings, GuidanceChange, GuidanceStep, text, texts};
use crate::core::guidance::finding::Finding;
use crate::core::guidance::merge::sentence;
use crate::core::guidance::{Entry, Guidance, List};
use std::collections::{HashMap, HashSet};

/// Returns what was given, removed or delivered between two states of the guidance, as far as it is for this session.
pub fn guidance(before: &Guidance, after: &Guidance, session: &str, iteration: u64) -> Vec<EventKind> {
    let lists = [
        (List::Encouraged, &before.encouraged, &after.encouraged),
        (List::Forbidden, &before.forbidden, &after.forbidden),
        (List::Allowed, &before.allowed, &after.allowed),
    ];
    let changed = lists.into_iter().filter(|(_, before, after)| before != after);
    changed.flat_map(|(list, before, after)| in_list(list, before, after, session, iteration)).collect()
}

fn in_list(list: List, before: &[Entry], after: &[Entry], session: &str, iteration: u64) -> Vec<EventKind> {
    let own = |entries: &[Entry]| -> HashMap<String, bool> {
        let own = entries.iter().filter(|entry| entry.is_for(session));
        let is_delivered = |entry: &Entry| entry.delivered_to.iter().any(|known| known == session);
        own.map(|entry| (entry.text.clone(), is_delivered(entry))).collect()
    };
    let (earlier, now) = (own(before), own(after));
    let ordered = |entries: &[Entry], keep: &dyn Fn(&str) -> bool| {
        texts(entries.iter().map(|entry| entry.text.as_str()).filter(|text| keep(text)))
    };
    let removed = ordered(before, &|text| earlier.contains_key(text) && !now.contains_key(text));
    let given = ordered(after, &|text| now.contains_key(text) && !earlier.contains_key(text));
    let delivered = ordered(after, &|text| {
        now.get(text).copied().unwrap_or(false) && !earlier.get(text).copied().unwrap_or(false)
    });
    let changes = [
        (GuidanceStep::Removed, removed),
        (GuidanceStep::Given, given),
        (GuidanceStep::Delivered, delivered),
    ];
    let changes = changes.into_iter().filter(|(_, texts)| !texts.is_empty());
    let list = list.word().to_owned();
    changes
        .map(|(change, texts)| {
            EventKind::Guidance(GuidanceChange { change, list: list.clone(), texts, iteration })
        })
        .collect()
}

/// Returns what a scan found otherwise than the one before.
pub fn findings(before: &[Finding], after: &[Finding]) -> Option<EventKind> {
    if before == after {
        return None;
    }
    let ids =
        |findings: &[Finding]| findings.iter().map(|finding| finding.id.clone()).collect::<HashSet<_>>();
    let (earlier, now) = (ids(before), ids(after));
    let new = after.iter().filter(|finding| !earlier.contains(&finding.id));
    let new: Vec<String> = new.map(|finding| text(&sentence(finding))).collect();
    let gone = earlier.difference(&now).count() as u64;
    let is_news = gone > 0 || !new.is_empty();
    let new = texts(new.iter().map(String::as_str));
    is_news.then(|| EventKind::Findings(Findings { count: after.len() as u64, new, gone }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str, session: Option<&str>, delivered_to: &[&str]) -> Entry {
        Entry {
            text: text.into(),
            session_id: session.map(str::to_owned),
            delivered_to: delivered_to.iter().map(|&id| id.to_owned()).collect(),
            ..Entry::default()
        }
    }

    fn forbidden(entries: Vec<Entry>) -> Guidance {
        Guidance { forbidden: entries, ..Guidance::default() }
    }

    fn told(before: Vec<Entry>, after: Vec<Entry>) -> Vec<(GuidanceStep, String)> {
        let events = guidance(&forbidden(before), &forbidden(after), "me", 3);
        let parts = |what: EventKind| match what {
            EventKind::Guidance(GuidanceChange { change, list, texts, iteration: 3 })
                if list == "forbidden" =>
            {
                (change, texts.join("+"))
            }
            other => panic!("unexpected: {other:?}"),
        };
        events.into_iter().map(parts).collect()
    }

    #[test]
    fn only_what_changed_for_this_session_is_told() {
        let [a, b] = ["a", "b"].map(|text| entry(text, None, &[]));
        let read = |entry: &Entry| Entry { delivered_to: vec!["me".into()], ..entry.clone() };
        assert_eq!(told(vec![a.clone()], vec![a.clone()]), []);
        assert_eq!(told(vec![], vec![a.clone(), b.clone()]), [(GuidanceStep::Given, "a+b".into())]);
        assert_eq!(told(vec![a.clone()], vec![read(&a)]), [(GuidanceStep::Delivered, "a".into())]);
        assert_eq!(told(vec![read(&a), b.clone()], vec![read(&a)]), [(GuidanceStep::Removed, "b".into())]);
        let both = [(GuidanceStep::Given, "a".to_owned()), (GuidanceStep::Delivered, "a".to_owned())];
        assert_eq!(told(vec![], vec![read(&a)]), both);
        assert_eq!(told(vec![], vec![entry("x", Some("other"), &[])]), [], "it is for another loop");
    }
}
