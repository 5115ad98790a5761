//! Merges the user's guidance and the scan's findings into the lists that the agent reads.
//!
//! The scan is newer than any entry. A finding beats an entry that contradicts it, unless the user allowed that finding.

use super::entry::ENTRY_CHARS;
use super::finding::{Finding, Severity};
use super::{EntryId, MAX_LOOP_CHARS, MAX_TEXT_CHARS, Overruled};
use crate::core::guidance::{Entry, Guidance, key};
use crate::core::text::clean;
use crate::core::time::{self, Stamp};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// What the agent is told to do more of, and not to do; newest first, findings worst first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuidanceLists {
    pub encouraged: Vec<GuidanceLine>,
    pub forbidden: Vec<GuidanceLine>,
    /// Sentences about what the scan found; the agent reads them as forbidden.
    pub findings: Vec<String>,
    /// The entries that are not told because a finding contradicts them.
    pub overruled: Vec<Overruled>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuidanceLine {
    pub entry: EntryId,
    pub text: String,
    pub rank: Rank,
}

/// What comes first if not everything fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// This session's agent has not read it.
    New,
    Pinned,
    /// The agent has read it.
    Repeated,
}

/// How much of the guidance a prompt has. What is new or pinned is in every prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptExtent {
    /// The agent has its context: of the entries it has read, the newest are repeated and the others counted.
    Turn,
    /// The agent may have lost its context.
    Whole,
}

/// Entries that the agent has read make up each list to so many lines.
const MAX_LINES: usize = 12;
const MAX_FINDINGS: usize = 5;
/// Wide letters take two columns.
const MAX_LINE_COLUMNS: usize = 2 * MAX_TEXT_CHARS;
const MAX_FINDING_CHARS: usize = 160;

impl GuidanceLists {
    /// Merges the guidance for a session's loop with findings. Of entries with the same text the newest counts, or the
    /// forbidden one if they are equally old.
    pub fn merge(guidance: &Guidance, session: &str, findings: &[Finding]) -> Self {
        let allowed_ids: HashSet<&str> = guidance.allowed.iter().map(|entry| entry.text.as_str()).collect();
        let is_enforced = |finding: &&Finding| {
            finding.severity >= Severity::High && !allowed_ids.contains(finding.id.as_str())
        };
        let mut enforced: Vec<&Finding> = findings.iter().filter(is_enforced).collect();
        enforced.sort_by_key(|finding| finding.rank());
        let subjects = Subjects::new(&enforced);

        let line = |entry: &Entry| GuidanceLine {
            entry: entry.id(),
            text: clean::excerpt(&entry.text, MAX_LINE_COLUMNS),
            rank: match entry {
                entry if !entry.delivered_to.iter().any(|told| told == session) => Rank::New,
                entry if entry.pinned => Rank::Pinned,
                _ => Rank::Repeated,
            },
        };
        let forbidden = guidance.forbidden.iter().map(|entry| (false, line(entry)));
        let encouraged = guidance.encouraged.iter().map(|entry| (true, line(entry)));
        let mut lines: Vec<(bool, GuidanceLine)> = forbidden.chain(encouraged).collect();
        lines.sort_by_key(|(_, line)| Reverse(line.entry.1));
        let mut seen = HashSet::new();
        lines.retain(|(_, line)| seen.insert(line.entry.0.clone()));

        let mut lists = GuidanceLists::default();
        for (encouraged, line) in lines {
            match subjects.of(&line.text).filter(|_| encouraged) {
                _ if !encouraged => lists.forbidden.push(line),
                None => lists.encouraged.push(line),
                Some(finding) => {
                    lists.overruled.push(Overruled { entry: line.entry, by: identified(finding) });
                }
            }
        }
        let mut seen: HashSet<String> = lists.forbidden.iter().map(|line| line.entry.0.clone()).collect();
        lists.findings = enforced.into_iter().map(sentence).collect();
        lists.findings.retain(|sentence| seen.insert(key(sentence)));
        lists
    }

    /// Returns only what this session's agent has not read.
    pub fn news(mut self) -> Self {
        for lines in [&mut self.encouraged, &mut self.forbidden] {
            lines.retain(|line| line.rank == Rank::New);
        }
        GuidanceLists { encouraged: self.encouraged, forbidden: self.forbidden, ..Self::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.encouraged.is_empty() && self.forbidden.is_empty() && self.findings.is_empty()
    }

    /// Returns the entries that the next prompt shows.
    pub fn told(&self) -> HashSet<EntryId> {
        self.shown(PromptExtent::Turn).into_iter().flatten().map(|line| line.entry.clone()).collect()
    }

    /// Returns the lines of both lists that fit: the new ones first, then the pinned ones, then the rest.
    fn shown(&self, extent: PromptExtent) -> [Vec<&GuidanceLine>; 2] {
        let lists = [&self.encouraged, &self.forbidden];
        let all =
            lists.iter().enumerate().flat_map(|(list, lines)| lines.iter().map(move |line| (list, line)));
        let mut all: Vec<(usize, &GuidanceLine)> = all.collect();
        all.sort_by_key(|(_, line)| (line.rank, Reverse(line.entry.1)));
        let mut chars = MAX_LOOP_CHARS;
        let mut shown = [Vec::new(), Vec::new()];
        for (list, line) in all {
            let cost = line.text.encode_utf16().count() + ENTRY_CHARS;
            let repeats = extent == PromptExtent::Whole || shown[list].len() < MAX_LINES;
            // One that is longer than everything together, which only another program can have written, is alone.
            let fits = cost <= chars || chars == MAX_LOOP_CHARS;
            if fits && (line.rank < Rank::Repeated || repeats) {
                chars = chars.saturating_sub(cost);
                shown[list].push(line);
            }
        }
        for lines in &mut shown {
            lines.sort_by_key(|line| Reverse(line.entry.1));
        }
        shown
    }

    /// Returns both lists as text, each entry with its age; empty if there is nothing to say.
    pub fn text(&self, extent: PromptExtent, now: Stamp) -> String {
        let mut out = String::new();
        let mut add = |title: &str, all: &[GuidanceLine], shown: &[&GuidanceLine], findings: &[String]| {
            if !all.is_empty() || !findings.is_empty() {
                out.push_str(&format!("\n{title}:"));
            }
            for GuidanceLine { text, entry: (_, given), .. } in shown {
                let age =
                    given.map_or_else(String::new, |given| format!(" ({} ago)", time::span(now - given)));
                out.push_str(&format!("\n- {text}{age}"));
            }
            for finding in findings.iter().take(MAX_FINDINGS) {
                out.push_str(&format!("\n- {}", clean::excerpt(finding, MAX_FINDING_CHARS)));
            }
            if all.len() > shown.len() {
                out.push_str(&format!("\n- {} older: `ralph-guidance list`", all.len() - shown.len()));
            }
            if findings.len() > MAX_FINDINGS {
                out.push_str(&format!("\n- {} more findings: `ralph scan`", findings.len() - MAX_FINDINGS));
            }
        };
        let [encouraged, forbidden] = self.shown(extent);
        add("ENCOURAGED", &self.encouraged, &encouraged, &[]);
        add("FORBIDDEN", &self.forbidden, &forbidden, &self.findings);
        out
    }
}

/// What entries can name a finding by: its id, its file or its sentence.
struct Subjects<'a>(HashMap<String, &'a Finding>);

impl<'a> Subjects<'a> {
    /// Takes the findings worst first.
    fn new(findings: &[&'a Finding]) -> Self {
        let mut subjects = HashMap::new();
        for finding in findings {
            let names = [finding.id.clone(), finding.file.to_lowercase(), key(&sentence(finding))];
            for name in names.into_iter().filter(|name| !name.is_empty()) {
                subjects.entry(name).or_insert(*finding);
            }
        }
        Subjects(subjects)
    }

    /// Returns the finding that a text speaks of.
    fn of(&self, text: &str) -> Option<&'a Finding> {
        if self.0.is_empty() {
            return None;
        }
        let bare = |word: &str| {
            let mark = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '/' | '.');
            // A full stop after a closing mark ends the sentence; it is not part of the name.
            word.trim_end_matches('.').trim_matches(mark).trim_end_matches('.').to_lowercase()
        };
        let named = text.split_whitespace().find_map(|word| self.0.get(&bare(word)));
        named.or_else(|| self.0.get(&key(text))).copied()
    }
}

/// Returns the id of a finding and what it is about.
fn identified(finding: &Finding) -> String {
    let place = finding.place();
    let gap = if place.is_empty() { "" } else { ": " };
    clean::excerpt(&format!("{} ({place}{gap}{})", finding.id, finding.description), MAX_FINDING_CHARS)
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
    use crate::core::guidance::tests::KEYS_MADE;
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

    fn texts(lines: &[GuidanceLine]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn a_finding_beats_an_older_entry_unless_it_is_allowed() {
        let encouraged = || vec![entry("edit gen/api.rs", 1), entry("write tests", 2)];
        let findings =
            [finding("f1", Severity::High, "gen/api.rs"), finding("f2", Severity::Medium, "other")];
        let merged = GuidanceLists::merge(&guidance(encouraged(), vec![], &[]), "me", &findings);
        assert_eq!(texts(&merged.encouraged), ["write tests"]);
        assert_eq!(merged.findings, ["gen/api.rs: generated file. Do not edit it"]);
        let allowed = GuidanceLists::merge(&guidance(encouraged(), vec![], &["f1"]), "me", &findings);
        assert_eq!(texts(&allowed.encouraged), ["write tests", "edit gen/api.rs"]);
        assert!(allowed.findings.is_empty());
    }

    #[test]
    fn entries_are_newest_first_and_findings_worst_first() {
        let forbidden = vec![entry("old", 1), entry("new", 5), entry("OLD ", 1)];
        let findings = [finding("b", Severity::High, "b"), finding("a", Severity::Critical, "z")];
        let merged = GuidanceLists::merge(&guidance(vec![], forbidden, &[]), "me", &findings);
        assert_eq!(texts(&merged.forbidden), ["new", "old"]);
        let expected = ["z: generated file. Do not edit it", "b: generated file. Do not edit it"];
        assert_eq!(merged.findings, expected);
    }

    fn told(mut entry: Entry) -> Entry {
        entry.delivered_to = vec!["me".into()];
        entry
    }

    fn pinned(entry: Entry) -> Entry {
        Entry { pinned: true, ..entry }
    }

    fn many(count: i64) -> Vec<Entry> {
        (0..count).map(|n| entry(&format!("w{n}"), 0)).collect()
    }

    #[test]
    fn the_agent_reads_short_lists_with_ages_and_a_count_of_the_rest() {
        let findings: Vec<_> =
            (0..9).map(|n| finding(&n.to_string(), Severity::High, &format!("f{n}"))).collect();
        let guidance = guidance(vec![entry("be bold", 0)], vec![], &[]);
        let text = |findings: &[Finding], minute: i64| {
            GuidanceLists::merge(&guidance, "me", findings).text(PromptExtent::Turn, Stamp(minute * 60_000))
        };
        let nine = text(&findings, 3);
        assert!(
            nine.starts_with("\nENCOURAGED:\n- be bold (3m ago)\nFORBIDDEN:\n- f0: generated file"),
            "{nine}"
        );
        assert!(nine.ends_with("\n- 4 more findings: `ralph scan`"), "{nine}");
        assert!(!text(&findings[..5], 0).contains("more findings"));
        assert_eq!(GuidanceLists::default().text(PromptExtent::Whole, Stamp(0)), "");
    }

    #[test]
    fn what_is_new_or_pinned_is_always_told_and_the_rest_is_counted_beyond_a_dozen() {
        let text = |entries: Vec<Entry>, extent| {
            GuidanceLists::merge(&guidance(vec![], entries, &[]), "me", &[]).text(extent, Stamp(0))
        };
        let new = text(many(60), PromptExtent::Turn);
        assert_eq!(new.lines().count(), 62, "{new}");
        assert!(!new.contains("older"), "{new}");

        let old = || many(15).into_iter().map(told);
        let dozen = text(old().collect(), PromptExtent::Turn);
        assert!(dozen.ends_with("\n- w11 (0s ago)\n- 3 older: `ralph-guidance list`"), "{dozen}");
        let whole = text(old().collect(), PromptExtent::Whole);
        assert!(whole.ends_with("\n- w14 (0s ago)"), "{whole}");

        let pinned = old().chain([told(pinned(entry("never push", -9)))]).collect::<Vec<_>>();
        let with_pinned = text(pinned, PromptExtent::Turn);
        assert!(with_pinned.contains("\n- never push (9m ago)\n- 4 older"), "{with_pinned}");

        let elsewhere = Entry { delivered_to: vec!["you".into()], ..entry("x", 0) };
        assert!(text(vec![elsewhere; 1], PromptExtent::Turn).contains("- x"), "told in another session only");
    }

    #[test]
    fn only_the_shown_entries_are_told() {
        let lists = GuidanceLists::merge(&guidance(vec![], many(14), &[]), "me", &[]);
        assert_eq!(lists.told().len(), 14);
        let scanned = GuidanceLists::merge(&Guidance::default(), "me", &[finding("f1", Severity::High, "a")]);
        assert!(scanned.told().is_empty(), "a finding is not an entry");
    }

    /// A state file that another program wrote can have more than a loop takes.
    #[test]
    fn a_text_is_bounded_whatever_there_is_and_what_did_not_fit_comes_first_next_time() {
        let long = |n: i64| pinned(entry(&format!("{n} {}", "\u{1f980}".repeat(900)), n));
        let findings: Vec<_> = (0..9)
            .map(|n| finding(&format!("id{n}"), Severity::High, &format!("f{n}{}", "x".repeat(5000))))
            .collect();
        let mut given =
            guidance((0..5).map(long).collect(), (5..9).map(long).chain(many(2000)).collect(), &[]);
        let mut seen = HashSet::new();
        for _ in 0..60 {
            let lists = GuidanceLists::merge(&given, "me", &findings);
            for extent in [PromptExtent::Turn, PromptExtent::Whole] {
                let text = lists.text(extent, Stamp(600_000));
                assert!(text.encode_utf16().count() < 5200, "{}", text.encode_utf16().count());
            }
            seen.extend(lists.told());
            given.deliver("me", &lists.told(), &lists.overruled);
        }
        assert_eq!(seen.len(), 2009, "every entry was told at some time");
    }

    #[test]
    fn merging_and_delivering_is_linear() {
        let keys_made = |count: i64| {
            let encouraged = (0..count).map(|n| entry(&format!("edit f{n}"), n)).collect();
            let forbidden = (0..count).map(|n| entry(&format!("never f{n}"), n)).collect();
            let findings: Vec<_> = (0..count)
                .map(|n| finding(&format!("id{n}"), Severity::High, &format!("f{}", 2 * n)))
                .collect();
            let mut given = guidance(encouraged, forbidden, &[]);
            KEYS_MADE.set(0);
            let lists = GuidanceLists::merge(&given, "me", &findings);
            given.deliver("me", &lists.told(), &lists.overruled);
            KEYS_MADE.get()
        };
        let (some, ten_times) = (keys_made(200), keys_made(2000));
        assert!(ten_times <= some * 11, "{some} comparisons for 200 entries, {ten_times} for 2,000");
    }

    #[test]
    fn texts_are_cleaned() {
        let given = guidance(vec![entry("write\u{1b} tests", 1)], vec![], &[]);
        let merged = GuidanceLists::merge(&given, "me", &[]);
        let line = GuidanceLine {
            entry: ("write tests".into(), Some(Stamp(60_000))),
            text: "write tests".into(),
            rank: Rank::New,
        };
        assert_eq!(merged.encouraged, [line]);
    }

    #[test]
    fn which_entries_are_about_a_finding() {
        let found = finding("f1", Severity::High, "gen/Api.rs");
        let is_about = |text: &str, finding: &Finding| Subjects::new(&[finding]).of(text).is_some();
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
    fn an_overruled_entry_is_news_once_for_each_session() {
        let mut given = guidance(vec![entry("edit gen/api.rs", 1)], vec![], &[]);
        let findings = [finding("f1", Severity::High, "gen/api.rs")];
        let mut news = |session: &str, findings: &[Finding]| {
            let lists = GuidanceLists::merge(&given, session, findings);
            given.deliver(session, &lists.told(), &lists.overruled).len()
        };
        for (session, found, expected) in [
            ("me", true, 1),
            ("you", false, 0),
            ("me", true, 0),
            ("you", true, 1),
            ("me", true, 0),
            ("you", true, 0),
        ] {
            assert_eq!(news(session, if found { &findings } else { &[] }), expected, "{session} {found}");
        }
    }

    #[test]
    fn an_overruled_entry_names_the_finding_and_is_news_once() {
        let mut given = guidance(vec![entry("edit gen/api.rs", 1), entry("ignore f1", 2)], vec![], &[]);
        let findings = [finding("f1", Severity::High, "gen/api.rs")];
        let mut news = |findings: &[Finding]| {
            let lists = GuidanceLists::merge(&given, "me", findings);
            given.deliver("me", &lists.told(), &lists.overruled)
        };
        let by = Some("f1 (gen/api.rs: generated file)");
        let told = news(&findings);
        assert_eq!(told.iter().map(Entry::overruled_by).collect::<Vec<_>>(), [by, by]);
        assert_eq!(news(&findings), []);
        assert_eq!(news(&[]), [], "the finding is gone");
        assert_eq!(news(&findings).len(), 2, "and back");
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
            let merged = GuidanceLists::merge(&given, "me", &findings);
            let mut backwards = findings.clone();
            backwards.reverse();
            prop_assert_eq!(&GuidanceLists::merge(&given, "me", &backwards), &merged, "the order of the scan does not matter");
            let lines = || merged.encouraged.iter().chain(&merged.forbidden);
            let mut keys: Vec<_> = lines().map(|line| key(&line.text)).collect();
            keys.extend(merged.findings.iter().map(|sentence| key(sentence)));
            let count = keys.len();
            keys.sort();
            keys.dedup();
            prop_assert_eq!(keys.len(), count, "no duplicates, no contradictions");
            for allowed in findings.iter().filter(|finding| given.allowed_findings().contains(&finding.id)) {
                let others = findings.iter().any(|other| other.file == allowed.file && other.id != allowed.id);
                prop_assert!(others || !merged.findings.contains(&sentence(allowed)), "an allowed finding is not shown");
            }
            for line in lines() {
                let newest = given.encouraged.iter().chain(&given.forbidden)
                    .filter(|other| key(&other.text) == key(&line.text)).map(|entry| entry.timestamp).max();
                prop_assert_eq!(Some(line.entry.1), newest, "the newest entry counts");
            }
        }
    }
}
