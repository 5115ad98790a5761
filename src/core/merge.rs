//! Fresh wins: the user's guidance and the scan's findings as one pair of lists for the agent.
//!
//! The scan is as new as now. Where it and an older word of the user's disagree on the same thing, the
//! scan stands, unless the user has overruled that very finding.

use super::clean;
use super::finding::{Finding, Severity};
use super::guidance::{Guidance, key};
use super::time::{self, Stamp};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    pub encouraged: Vec<Word>,
    pub forbidden: Vec<Word>,
}

/// One line for the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    pub from: From,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum From {
    User {
        given: Option<Stamp>,
    },
    /// A finding, by id.
    Scan {
        id: String,
    },
}

impl Word {
    fn given(&self) -> Option<Stamp> {
        match self.from {
            From::User { given } => given,
            From::Scan { .. } => None,
        }
    }

    fn is_users(&self) -> bool {
        matches!(self.from, From::User { .. })
    }
}

/// Most of the agent's lists go to the newest words; the rest is counted, and listed by our programs.
const MOST_WORDS: usize = 12;
const MOST_FINDINGS: usize = 5;
const LONGEST: usize = 2000;

impl Lists {
    pub fn of(guidance: &Guidance) -> Self {
        let words = |entries: &[super::guidance::Entry]| {
            entries
                .iter()
                .map(|entry| Word {
                    text: clean::line(&entry.text),
                    from: From::User { given: entry.timestamp },
                })
                .collect()
        };
        Lists { encouraged: words(&guidance.encouraged), forbidden: words(&guidance.forbidden) }
    }

    /// Keys of the user's words that [`Lists::text`] shows.
    pub fn told(&self) -> Vec<String> {
        let shown = |list: &[Word]| {
            list.iter()
                .filter(|word| word.is_users())
                .take(MOST_WORDS)
                .map(|word| key(&word.text))
                .collect::<Vec<_>>()
        };
        [shown(&self.encouraged), shown(&self.forbidden)].concat()
    }

    /// The two lists in words, each entry with its age; nothing where there is nothing to say.
    pub fn text(&self, now: Stamp) -> String {
        let mut out = String::new();
        for (title, list) in [("ENCOURAGED", &self.encouraged), ("FORBIDDEN", &self.forbidden)] {
            if list.is_empty() {
                continue;
            }
            out.push_str(&format!("\n{title}:"));
            let users = list.iter().filter(|word| word.is_users());
            let scans = list.iter().filter(|word| !word.is_users());
            for word in users.clone().take(MOST_WORDS).chain(scans.clone().take(MOST_FINDINGS)) {
                out.push_str(&format!("\n- {}", clean::excerpt(&word.text, LONGEST)));
                if let Some(given) = word.given() {
                    out.push_str(&format!(" ({} ago)", time::span(now - given)));
                }
            }
            let words = users.count().saturating_sub(MOST_WORDS);
            if words > 0 {
                out.push_str(&format!("\n- and {words} older ones: `ralph-guidance list`"));
            }
            let findings = scans.count().saturating_sub(MOST_FINDINGS);
            if findings > 0 {
                out.push_str(&format!("\n- and {findings} more findings: `ralph scan`"));
            }
        }
        out
    }
}

/// Merges the lists with the findings of now. What an earlier scan left in them is gone.
pub fn merge(lists: &Lists, findings: &[Finding], waived: &[String]) -> Lists {
    let mut standing: Vec<&Finding> = findings
        .iter()
        .filter(|finding| finding.severity >= Severity::High && !waived.contains(&finding.id))
        .collect();
    standing.sort_by_key(|finding| finding.rank());

    let newest_first = |words: &[Word]| {
        let mut words: Vec<Word> = words.iter().filter(|word| word.is_users()).cloned().collect();
        words.sort_by_key(|word| std::cmp::Reverse(word.given()));
        words
    };
    let (mut encouraged, mut forbidden) = (newest_first(&lists.encouraged), newest_first(&lists.forbidden));
    let forbidden_at = |text: &str, words: &[Word]| {
        let same = key(text);
        words.iter().filter(|word| key(&word.text) == same).map(Word::given).max()
    };
    let opposed: Vec<Word> = encouraged.clone();
    // The newest word on the same thing stands; on a tie the careful one does.
    encouraged.retain(|word| forbidden_at(&word.text, &forbidden).is_none_or(|at| word.given() > at));
    forbidden.retain(|word| forbidden_at(&word.text, &opposed).is_none_or(|at| word.given() >= at));
    encouraged.retain(|word| !standing.iter().any(|finding| is_about(&word.text, finding)));

    forbidden.extend(
        standing
            .iter()
            .map(|finding| Word { text: sentence(finding), from: From::Scan { id: finding.id.clone() } }),
    );
    Lists { encouraged: once(encouraged), forbidden: once(forbidden) }
}

/// Says each thing once, where it stands first.
fn once(words: Vec<Word>) -> Vec<Word> {
    let mut seen = std::collections::HashSet::new();
    words.into_iter().filter(|word| seen.insert(key(&word.text))).collect()
}

/// Whether a word of the user's speaks of what was found: its id, its file, or its very sentence.
fn is_about(text: &str, finding: &Finding) -> bool {
    let bare = |word: &str| {
        let mark = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '/' | '.');
        // A full stop behind a closing mark is the sentence's, not the name's.
        word.trim_end_matches('.').trim_matches(mark).to_lowercase()
    };
    let file = finding.file.to_lowercase();
    key(text) == key(&sentence(finding))
        || text
            .split_whitespace()
            .map(bare)
            .any(|word| word == finding.id || (!file.is_empty() && word.trim_end_matches('.') == file))
}

/// A finding as the agent reads it.
pub fn sentence(finding: &Finding) -> String {
    let place = match (&finding.file, finding.line) {
        (file, _) if file.is_empty() => String::new(),
        (file, None) => format!("{}: ", clean::line(file)),
        (file, Some(line)) => format!("{}:{line}: ", clean::line(file)),
    };
    format!("{place}{}. {}", clean::line(&finding.description), clean::line(&finding.recommendation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word(text: &str, minute: i64) -> Word {
        Word { text: text.into(), from: From::User { given: Some(Stamp(minute * 60_000)) } }
    }

    fn finding(id: &str, severity: Severity, file: &str) -> Finding {
        Finding {
            id: id.into(),
            severity,
            description: "generated file".into(),
            file: file.into(),
            recommendation: "Do not edit it".into(),
            ..Finding::default()
        }
    }

    fn texts(words: &[Word]) -> Vec<&str> {
        words.iter().map(|word| word.text.as_str()).collect()
    }

    #[test]
    fn the_scan_stands_against_an_older_word_unless_it_is_overruled() {
        let lists =
            Lists { encouraged: vec![word("edit gen/api.rs", 1), word("write tests", 2)], forbidden: vec![] };
        let findings =
            [finding("f1", Severity::High, "gen/api.rs"), finding("f2", Severity::Medium, "other")];
        let merged = merge(&lists, &findings, &[]);
        assert_eq!(texts(&merged.encouraged), ["write tests"]);
        assert_eq!(texts(&merged.forbidden), ["gen/api.rs: generated file. Do not edit it"]);
        let overruled = merge(&lists, &findings, &["f1".into()]);
        assert_eq!(texts(&overruled.encouraged), ["write tests", "edit gen/api.rs"]);
        assert!(overruled.forbidden.is_empty());
        assert_eq!(merge(&merged, &[], &[]).forbidden, [], "what was fixed is gone");
    }

    #[test]
    fn newest_first_then_findings_worst_first() {
        let lists =
            Lists { encouraged: vec![], forbidden: vec![word("old", 1), word("new", 5), word("OLD ", 1)] };
        let findings = [finding("b", Severity::High, "b"), finding("a", Severity::Critical, "z")];
        let merged = merge(&lists, &findings, &[]);
        let expected =
            ["new", "old", "z: generated file. Do not edit it", "b: generated file. Do not edit it"];
        assert_eq!(texts(&merged.forbidden), expected);
    }

    #[test]
    fn the_agent_reads_short_lists_with_ages_and_a_count_of_the_rest() {
        let findings: Vec<_> =
            (0..9).map(|n| finding(&n.to_string(), Severity::High, &format!("f{n}"))).collect();
        let lists = Lists { encouraged: vec![word("be bold", 0)], forbidden: vec![] };
        let text = merge(&lists, &findings, &[]).text(Stamp(3 * 60_000));
        assert!(
            text.starts_with("\nENCOURAGED:\n- be bold (3m ago)\nFORBIDDEN:\n- f0: generated file"),
            "{text}"
        );
        assert!(text.ends_with("- and 4 more findings: `ralph scan`"), "{text}");
        assert_eq!(Lists::default().text(Stamp(0)), "");
    }

    #[test]
    fn the_users_words_are_counted_beyond_a_dozen_and_only_the_shown_are_told() {
        let many = |count: i64| (0..count).map(|n| word(&format!("w{n}"), 0)).collect::<Vec<_>>();
        let lists = Lists { encouraged: many(12), forbidden: many(14) };
        let text = merge(&Lists { forbidden: vec![], ..lists.clone() }, &[], &[]).text(Stamp(0));
        assert!(text.ends_with("\n- w11 (0s ago)"), "{text}");
        let text = Lists { encouraged: vec![], ..lists.clone() }.text(Stamp(0));
        assert!(text.ends_with("\n- w11 (0s ago)\n- and 2 older ones: `ralph-guidance list`"), "{text}");
        assert_eq!(lists.told().len(), 24);

        let scanned = merge(&Lists::default(), &[finding("f1", Severity::High, "a")], &[]);
        assert_eq!(scanned.told(), Vec::<String>::new(), "a finding is nobody's word");
        let five: Vec<_> =
            (0..5).map(|n| finding(&n.to_string(), Severity::High, &format!("f{n}"))).collect();
        assert!(!merge(&Lists::default(), &five, &[]).text(Stamp(0)).contains("more findings"));
    }

    #[test]
    fn the_lists_are_the_users_words_with_their_dates() {
        let mut guidance = Guidance::default();
        let entry = |text: &str| super::super::guidance::Entry {
            text: text.into(),
            timestamp: Some(Stamp(60_000)),
            ..Default::default()
        };
        guidance.encouraged.push(entry("write\u{1b} tests"));
        guidance.forbidden.push(entry("push"));
        let expected = Lists { encouraged: vec![word("write tests", 1)], forbidden: vec![word("push", 1)] };
        assert_eq!(Lists::of(&guidance), expected);
    }

    #[test]
    fn which_words_are_about_a_finding() {
        let found = finding("f1", Severity::High, "gen/Api.rs");
        for (text, expected) in [
            ("edit gen/api.rs", true),
            ("edit `gen/api.rs`", true),
            ("edit gen/api.rs.", true),
            ("edit `gen/api.rs`.", true),
            ("ignore F1!", true),
            ("gen/Api.rs: generated file. Do not edit it", true),
            ("edit gen/api.rs.bak", false),
            ("edit api.rs", false),
            ("ignore f12", false),
        ] {
            assert_eq!(is_about(text, &found), expected, "{text}");
        }
        assert!(!is_about("do it ...", &finding("f1", Severity::High, "")), "a finding without a file");
    }

    #[test]
    fn a_finding_names_its_place_as_far_as_it_has_one() {
        let at = |file: &str, line| sentence(&Finding { line, ..finding("f", Severity::High, file) });
        assert_eq!(at("", Some(3)), "generated file. Do not edit it");
        assert_eq!(at("a.rs", None), "a.rs: generated file. Do not edit it");
        assert_eq!(at("a.rs", Some(3)), "a.rs:3: generated file. Do not edit it");
    }

    fn arbitrary_lists() -> impl Strategy<Value = Lists> {
        let words = || prop::collection::vec(("[abAB ]{1,2}", 0i64..4), 0..6);
        (words(), words()).prop_map(|(encouraged, forbidden)| {
            let list =
                |words: Vec<(String, i64)>| words.iter().map(|(text, minute)| word(text, *minute)).collect();
            Lists { encouraged: list(encouraged), forbidden: list(forbidden) }
        })
    }

    fn arbitrary_findings() -> impl Strategy<Value = Vec<Finding>> {
        prop::collection::vec(("[ab]", 0usize..4, "[ab]"), 0..5).prop_map(|findings| {
            findings
                .iter()
                .map(|(id, level, file)| finding(id, super::super::finding::SEVERITIES[*level], file))
                .collect()
        })
    }

    proptest! {
        #[test]
        fn merging_is_idempotent_says_nothing_twice_and_contradicts_itself_never(
            lists in arbitrary_lists(), findings in arbitrary_findings(), waived in prop::collection::vec("[ab]", 0..2),
        ) {
            let merged = merge(&lists, &findings, &waived);
            prop_assert_eq!(&merge(&lists, &findings, &waived), &merged, "deterministic");
            prop_assert_eq!(&merge(&merged, &findings, &waived), &merged, "idempotent");
            let mut backwards = findings.clone();
            backwards.reverse();
            prop_assert_eq!(&merge(&lists, &backwards, &waived), &merged, "the order of the scan does not matter");
            let mut keys: Vec<_> = merged.encouraged.iter().chain(&merged.forbidden).map(|word| key(&word.text)).collect();
            let count = keys.len();
            keys.sort();
            keys.dedup();
            prop_assert_eq!(keys.len(), count, "no duplicates, no contradictions");
            let named = |id: &String| merged.forbidden.iter().any(|w| matches!(&w.from, From::Scan { id: i } if i == id));
            prop_assert!(!waived.iter().any(named), "waived findings stay away");
            for word in merged.encouraged.iter().chain(&merged.forbidden).filter(|word| word.is_users()) {
                let newest = lists.encouraged.iter().chain(&lists.forbidden)
                    .filter(|other| key(&other.text) == key(&word.text)).map(Word::given).max();
                prop_assert_eq!(Some(word.given()), newest, "the newest word stands");
            }
        }
    }
}
