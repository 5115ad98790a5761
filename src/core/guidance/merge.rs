//! Merges the user's guidance and the scan's findings into the lists that the agent reads.
//!
//! The scan is newer than any entry. A finding beats an entry that contradicts it, unless the user allowed that finding.

use super::finding::{Finding, Severity};
use crate::core::guidance::{Entry, Guidance, key};
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use std::cmp::Reverse;
use std::collections::HashSet;

/// What the agent is told to do more of, and not to do; newest first, findings worst first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuidanceLists {
    pub encouraged: Vec<Line>,
    pub forbidden: Vec<Line>,
    /// Sentences about what the scan found; the agent reads them as forbidden.
    pub findings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    pub given: Option<Stamp>,
}

/// Older entries and further findings are only counted in the prompt.
const MAX_ENTRIES: usize = 12;
const MAX_FINDINGS: usize = 5;
const MAX_LINE_CHARS: usize = 2000;

impl GuidanceLists {
    /// Merges guidance with findings. Of entries with the same text the newest counts, or the forbidden one if they
    /// are equally old.
    pub fn merge(guidance: &Guidance, findings: &[Finding]) -> Self {
        let waived = guidance.waived();
        let mut standing: Vec<&Finding> = findings
            .iter()
            .filter(|finding| finding.severity >= Severity::High && !waived.contains(&finding.id))
            .collect();
        standing.sort_by_key(|finding| finding.rank());

        let line = |entry: &Entry| Line { text: clean::line(&entry.text), given: entry.timestamp };
        let forbidden = guidance.forbidden.iter().map(|entry| (false, line(entry)));
        let encouraged = guidance.encouraged.iter().map(|entry| (true, line(entry)));
        let mut lines: Vec<(bool, Line)> = forbidden.chain(encouraged).collect();
        lines.sort_by_key(|(_, line)| Reverse(line.given));
        let mut seen = HashSet::new();
        lines.retain(|(_, line)| seen.insert(key(&line.text)));

        let mut lists = GuidanceLists::default();
        for (encouraged, line) in lines {
            if !encouraged {
                lists.forbidden.push(line);
            } else if !standing.iter().any(|finding| is_about(&line.text, finding)) {
                lists.encouraged.push(line);
            }
        }
        let mut seen: HashSet<String> = lists.forbidden.iter().map(|line| key(&line.text)).collect();
        lists.findings = standing.into_iter().map(sentence).collect();
        lists.findings.retain(|sentence| seen.insert(key(sentence)));
        lists
    }

    /// Returns the keys of the entries that [`GuidanceLists::text`] shows.
    pub fn told(&self) -> Vec<String> {
        let shown = self.encouraged.iter().take(MAX_ENTRIES).chain(self.forbidden.iter().take(MAX_ENTRIES));
        shown.map(|line| key(&line.text)).collect()
    }

    /// Returns both lists as text, each entry with its age; empty if there is nothing to say.
    pub fn text(&self, now: Stamp) -> String {
        let mut out = String::new();
        let mut add = |title: &str, lines: &[Line], findings: &[String]| {
            if !lines.is_empty() || !findings.is_empty() {
                out.push_str(&format!("\n{title}:"));
            }
            for Line { text, given } in lines.iter().take(MAX_ENTRIES) {
                let age =
                    given.map_or_else(String::new, |given| format!(" ({} ago)", time::span(now - given)));
                out.push_str(&format!("\n- {}{age}", clean::excerpt(text, MAX_LINE_CHARS)));
            }
            for finding in findings.iter().take(MAX_FINDINGS) {
                out.push_str(&format!("\n- {}", clean::excerpt(finding, MAX_LINE_CHARS)));
            }
            if lines.len() > MAX_ENTRIES {
                out.push_str(&format!("\n- {} older: `ralph-guidance list`", lines.len() - MAX_ENTRIES));
            }
            if findings.len() > MAX_FINDINGS {
                out.push_str(&format!("\n- {} more findings: `ralph scan`", findings.len() - MAX_FINDINGS));
            }
        };
        add("ENCOURAGED", &self.encouraged, &[]);
        add("FORBIDDEN", &self.forbidden, &self.findings);
        out
    }
}

/// Returns whether an entry speaks of a finding: by its id, its file or its sentence.
fn is_about(text: &str, finding: &Finding) -> bool {
    let bare = |word: &str| {
        let mark = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '/' | '.');
        // A full stop after a closing mark ends the sentence; it is not part of the name.
        word.trim_end_matches('.').trim_matches(mark).to_lowercase()
    };
    let file = finding.file.to_lowercase();
    key(text) == key(&sentence(finding))
        || text
            .split_whitespace()
            .map(bare)
            .any(|word| word == finding.id || (!file.is_empty() && word.trim_end_matches('.') == file))
}

/// Returns a finding as the agent reads it.
pub fn sentence(finding: &Finding) -> String {
    let place = match finding.place() {
        place if place.is_empty() => place,
        place => format!("{place}: "),
    };
    format!("{place}{}. {}", clean::line(&finding.description), clean::line(&finding.recommendation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::guidance::finding::SEVERITIES;
    use proptest::prelude::*;

    fn entry(text: &str, minute: i64) -> Entry {
        Entry { text: text.into(), timestamp: Some(Stamp(minute * 60_000)), ..Entry::default() }
    }

    fn guidance(encouraged: Vec<Entry>, forbidden: Vec<Entry>, allowed: &[&str]) -> Guidance {
        let allowed = allowed.iter().map(|id| entry(id, 0)).collect();
        Guidance { encouraged, forbidden, allowed, ..Guidance::default() }
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

    fn texts(lines: &[Line]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn a_finding_beats_an_older_entry_unless_it_is_allowed() {
        let encouraged = || vec![entry("edit gen/api.rs", 1), entry("write tests", 2)];
        let findings =
            [finding("f1", Severity::High, "gen/api.rs"), finding("f2", Severity::Medium, "other")];
        let merged = GuidanceLists::merge(&guidance(encouraged(), vec![], &[]), &findings);
        assert_eq!(texts(&merged.encouraged), ["write tests"]);
        assert_eq!(merged.findings, ["gen/api.rs: generated file. Do not edit it"]);
        let allowed = GuidanceLists::merge(&guidance(encouraged(), vec![], &["f1"]), &findings);
        assert_eq!(texts(&allowed.encouraged), ["write tests", "edit gen/api.rs"]);
        assert!(allowed.findings.is_empty());
    }

    #[test]
    fn entries_are_newest_first_and_findings_worst_first() {
        let forbidden = vec![entry("old", 1), entry("new", 5), entry("OLD ", 1)];
        let findings = [finding("b", Severity::High, "b"), finding("a", Severity::Critical, "z")];
        let merged = GuidanceLists::merge(&guidance(vec![], forbidden, &[]), &findings);
        assert_eq!(texts(&merged.forbidden), ["new", "old"]);
        let expected = ["z: generated file. Do not edit it", "b: generated file. Do not edit it"];
        assert_eq!(merged.findings, expected);
    }

    #[test]
    fn the_agent_reads_short_lists_with_ages_and_a_count_of_the_rest() {
        let findings: Vec<_> =
            (0..9).map(|n| finding(&n.to_string(), Severity::High, &format!("f{n}"))).collect();
        let guidance = guidance(vec![entry("be bold", 0)], vec![], &[]);
        let text = GuidanceLists::merge(&guidance, &findings).text(Stamp(3 * 60_000));
        assert!(
            text.starts_with("\nENCOURAGED:\n- be bold (3m ago)\nFORBIDDEN:\n- f0: generated file"),
            "{text}"
        );
        assert!(text.ends_with("\n- 4 more findings: `ralph scan`"), "{text}");
        assert!(!GuidanceLists::merge(&guidance, &findings[..5]).text(Stamp(0)).contains("more findings"));
        assert_eq!(GuidanceLists::default().text(Stamp(0)), "");
    }

    #[test]
    fn entries_are_counted_beyond_a_dozen_and_only_the_shown_ones_are_told() {
        let many = |count: i64| (0..count).map(|n| entry(&format!("w{n}"), 0)).collect::<Vec<_>>();
        let few = GuidanceLists::merge(&guidance(many(12), vec![], &[]), &[]).text(Stamp(0));
        assert!(few.ends_with("\n- w11 (0s ago)"), "{few}");
        let lists = GuidanceLists::merge(&guidance(vec![], many(14), &[]), &[]);
        let text = lists.text(Stamp(0));
        assert!(text.ends_with("\n- w11 (0s ago)\n- 2 older: `ralph-guidance list`"), "{text}");
        assert_eq!(lists.told().len(), 12);
        let scanned = GuidanceLists::merge(&Guidance::default(), &[finding("f1", Severity::High, "a")]);
        assert_eq!(scanned.told(), Vec::<String>::new(), "a finding is not an entry");
    }

    #[test]
    fn texts_are_cleaned() {
        let merged = GuidanceLists::merge(&guidance(vec![entry("write\u{1b} tests", 1)], vec![], &[]), &[]);
        assert_eq!(merged.encouraged, [Line { text: "write tests".into(), given: Some(Stamp(60_000)) }]);
    }

    #[test]
    fn which_entries_are_about_a_finding() {
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

    fn arbitrary_guidance() -> impl Strategy<Value = Guidance> {
        let entries = || prop::collection::vec(("[abAB ]{1,2}", 0i64..4), 0..6);
        let allowed = prop::collection::vec("[ab]", 0..2);
        (entries(), entries(), allowed).prop_map(|(encouraged, forbidden, allowed)| {
            let list =
                |entries: Vec<(String, i64)>| entries.iter().map(|(text, at)| entry(text, *at)).collect();
            let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
            guidance(list(encouraged), list(forbidden), &allowed)
        })
    }

    fn arbitrary_findings() -> impl Strategy<Value = Vec<Finding>> {
        let findings = prop::collection::vec(("[ab]", 0usize..4, "[ab]"), 0..5);
        findings.prop_map(|findings| {
            findings.iter().map(|(id, level, file)| finding(id, SEVERITIES[*level], file)).collect()
        })
    }

    proptest! {
        #[test]
        fn lists_have_no_duplicates_and_no_contradictions(
            given in arbitrary_guidance(), findings in arbitrary_findings(),
        ) {
            let merged = GuidanceLists::merge(&given, &findings);
            let mut backwards = findings.clone();
            backwards.reverse();
            prop_assert_eq!(&GuidanceLists::merge(&given, &backwards), &merged, "the order of the scan does not matter");
            let lines = || merged.encouraged.iter().chain(&merged.forbidden);
            let mut keys: Vec<_> = lines().map(|line| key(&line.text)).collect();
            keys.extend(merged.findings.iter().map(|sentence| key(sentence)));
            let count = keys.len();
            keys.sort();
            keys.dedup();
            prop_assert_eq!(keys.len(), count, "no duplicates, no contradictions");
            for waived in findings.iter().filter(|finding| given.waived().contains(&finding.id)) {
                let others = findings.iter().any(|other| other.file == waived.file && other.id != waived.id);
                prop_assert!(others || !merged.findings.contains(&sentence(waived)), "an allowed finding is not shown");
            }
            for line in lines() {
                let newest = given.encouraged.iter().chain(&given.forbidden)
                    .filter(|other| key(&other.text) == key(&line.text)).map(|entry| entry.timestamp).max();
                prop_assert_eq!(Some(line.given), newest, "the newest entry counts");
            }
        }
    }
}
