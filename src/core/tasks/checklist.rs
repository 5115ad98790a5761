//! A Markdown checklist as a task list: every box in a list is a task, done if it is ticked.
//!
//! The agent ticks what is done, and must keep every open item; anything else is up to it.

use super::{Story, TaskFormat, TaskList, TaskSource};
use crate::core::signal::{Fence, item};
use crate::core::text::clean;
use std::collections::BTreeMap;

/// Returns the boxes of a text in order, without those in code fences, quotations and comments.
pub fn checklist(text: &str) -> TaskList {
    let mut stories: Vec<Story> = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    // The boxes that the next one may be nested in: index and indentation.
    let mut parents: Vec<(usize, usize)> = Vec::new();
    let mut fence = Fence::default();
    let mut in_comment = false;
    for line in text.trim_start_matches('\u{feff}').lines() {
        in_comment |= !fence.is_open() && line.trim_start().starts_with("<!--");
        if in_comment {
            in_comment = !line.contains("-->");
            continue;
        }
        if fence.covers(line) || line.trim().is_empty() {
            continue;
        }
        let indent = columns(line);
        let (rest, marked) = item(line);
        if !marked {
            // A heading or a paragraph ends the list; an indented line belongs to its item.
            if indent == 0 {
                parents.clear();
            }
            continue;
        }
        while parents.last().is_some_and(|(_, of)| *of >= indent) {
            parents.pop();
        }
        let Some((passes, words)) = tick(rest) else { continue };
        let words = clean::line(words);
        let (id, title) = numbered(&mut seen, words);
        if let Some((parent, _)) = parents.last() {
            stories[*parent].depends_on.push(id.clone());
        }
        parents.push((stories.len(), indent));
        stories.push(Story { id, title, passes, ..Story::default() });
    }
    let source = TaskSource { file: String::new(), form: TaskFormat::Checklist };
    TaskList { source, stories, ..TaskList::default() }
}

/// Parses a box and its words. Marks for "in progress" and "dropped" are not done; other letters are no box.
fn tick(text: &str) -> Option<(bool, &str)> {
    let mut chars = text.strip_prefix('[')?.chars();
    let passes = match chars.next()? {
        'x' | 'X' | '✓' | '✔' => true,
        ' ' | '~' | '/' | '-' => false,
        _ => return None,
    };
    let words = chars.as_str().strip_prefix(']').filter(|rest| rest.starts_with(char::is_whitespace))?;
    (!clean::line(words).is_empty()).then_some((passes, words))
}

/// Returns id and title of an item. Repeated words get a number in the id, and the title keeps them.
fn numbered(seen: &mut BTreeMap<String, usize>, words: String) -> (String, String) {
    let count = seen.entry(words.clone()).or_insert(0);
    *count += 1;
    if *count == 1 { (words, String::new()) } else { (format!("{words} ({count})"), words) }
}

/// Returns an item's words.
pub fn words(story: &Story) -> &str {
    if story.title.is_empty() { &story.id } else { &story.title }
}

fn columns(line: &str) -> usize {
    line.chars().take_while(|c| matches!(c, ' ' | '\t')).map(|c| if c == '\t' { 4 } else { 1 }).sum()
}

/// Checks that no open item is gone; each problem is a sentence. Words may be added after an item's own.
pub fn kept(before: &TaskList, after: &TaskList) -> Result<(), Vec<String>> {
    let mut there: BTreeMap<String, usize> = BTreeMap::new();
    for story in &after.stories {
        *there.entry(plain(story)).or_insert(0) += 1;
    }
    let mut take = |story: &Story| {
        let wanted = plain(story);
        let found = there.range(wanted.clone()..).next().filter(|(words, _)| words.starts_with(&wanted));
        let Some((words, count)) = found.map(|(words, count)| (words.clone(), *count)) else { return false };
        match count {
            1 => there.remove(&words),
            _ => there.insert(words, count - 1),
        };
        true
    };
    let open = before.stories.iter().filter(|story| !story.passes);
    let gone: Vec<String> = open
        .filter(|story| !take(story))
        .map(|story| {
            let words = clean::excerpt(words(story), 80);
            format!("the open item \"{words}\" is missing: restore it unchanged, and tick it when it is done")
        })
        .collect();
    if gone.is_empty() { Ok(()) } else { Err(gone) }
}

/// Returns an item's words without Markdown marks, so that an item struck out or in bold is the same one.
fn plain(story: &Story) -> String {
    clean::line(&words(story).replace(['*', '_', '~', '`'], ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tasks::{Mode, is_done, mode, pick};
    use proptest::prelude::*;

    /// `x words` or `- words`, one a box.
    fn read(text: &str) -> Vec<String> {
        let story = |story: &Story| format!("{} {}", if story.passes { "x" } else { "-" }, story.id);
        checklist(text).stories.iter().map(story).collect()
    }

    #[test]
    fn every_box_in_a_list_is_a_task() {
        let cases: &[(&str, &str, &[&str])] = &[
            ("nothing", "", &[]),
            ("no boxes", "# Plan\n- a\n- b\n", &[]),
            ("dashes", "- [ ] a\n- [x] b\n", &["- a", "x b"]),
            ("stars, plus, capital", "* [X] a\n+ [ ] b", &["x a", "- b"]),
            ("numbered", "1. [ ] a\n2) [x] b\n10. [ ] c", &["- a", "x b", "- c"]),
            ("nested", "- [ ] a\n  - [x] b\n\t- [ ] c\n", &["- a", "x b", "- c"]),
            ("carriage returns", "- [ ] a\r\n- [x] b\r\n", &["- a", "x b"]),
            ("a byte order mark", "\u{feff}- [ ] a", &["- a"]),
            ("in a fence", "- [x] a\n```md\n- [ ] b\n```\n- [ ] c", &["x a", "- c"]),
            ("in a fence of an item", "- [x] a\n  ```\n  - [ ] b\n  ```\n- [ ] c", &["x a", "- c"]),
            ("in a tilde fence", "~~~\n- [ ] b\n~~~", &[]),
            ("in a quotation", "> - [ ] a", &[]),
            ("in a comment", "<!-- - [ ] a -->\n<!--\n- [ ] b\n-->\n- [ ] c", &["- c"]),
            ("about comments", "- [ ] close `<!--` rightly\n- [ ] b", &["- close `<!--` rightly", "- b"]),
            ("a comment after an item", "- [ ] a <!-- why -->\n- [ ] c", &["- a <!-- why -->", "- c"]),
            ("a comment mark in a fence", "```\n<!--\n```\n- [ ] a", &["- a"]),
            ("in progress and dropped", "- [~] a\n- [/] b\n- [-] c", &["- a", "- b", "- c"]),
            ("ticked otherwise", "- [✓] a\n- [✔] b", &["x a", "x b"]),
            ("no box", "- [] a\n- [1] b\n- [ x ] c\n- [x]d\n- [x](link) e\n[ ] f\n-[ ] g", &[]),
            ("no words", "- [ ]\n- [ ]   \n- [x] \u{200b}", &[]),
            ("the same words", "- [ ] a\n- [x] a\n- [ ] a", &["- a", "x a (2)", "- a (3)"]),
            ("hostile words", "- [ ] a\u{1b}[31m\u{7}  b", &["- a[31m b"]),
            ("deeply indented", "        - [ ] a", &["- a"]),
        ];
        for (name, text, expected) in cases {
            assert_eq!(&read(text), expected, "{name}");
        }
    }

    #[test]
    fn nested_items_go_first() {
        for (name, text, expected) in [
            ("in order", "- [ ] a\n- [ ] b", Some("a")),
            ("below", "- [ ] a\n  - [x] b\n  - [ ] c\n- [ ] d", Some("c")),
            ("all below are ticked", "- [ ] a\n  - [x] b\n- [ ] d", Some("a")),
            ("two deep", "- [ ] a\n  - [ ] b\n    - [ ] c", Some("c")),
            ("ended by a heading", "- [ ] a\n\n# B\n\n  - [ ] b", Some("a")),
            ("words of the item end nothing", "- [ ] a\n  more of it\n  - [ ] b", Some("b")),
            ("a parent without a box", "- group\n  - [ ] b\n- [ ] c", Some("b")),
            ("all ticked", "- [x] a", None),
        ] {
            let list = checklist(text);
            assert_eq!(mode(&list, false), Mode::Implement, "{name}");
            let picked = pick(&list, Mode::Implement).map(|story| story.id.as_str());
            assert_eq!((picked, is_done(&list, false)), (expected, expected.is_none()), "{name}");
        }
    }

    #[test]
    fn no_open_item_disappears() {
        let before = "- [ ] a\n- [x] b\n- [ ] c d\n- [ ] c d";
        for (name, after, gone) in [
            ("nothing", before, 0),
            ("ticked", "- [x] a\n- [x] b\n- [x] c d\n- [x] c d", 0),
            ("ticked ones removed", "- [ ] a\n- [ ] c d\n- [ ] c d", 0),
            ("added to", "- [ ] a\n- [ ] e\n- [ ] c d\n- [ ] c d", 0),
            ("with a word how it went", "- [x] **a** (in 4711)\n- [x] ~~c d~~\n- [x] c d, twice", 0),
            ("in another order", "- [ ] c d\n- [ ] c d\n- [ ] a", 0),
            ("removed", "- [x] b\n- [ ] c d\n- [ ] c d", 1),
            ("one of two alike", "- [ ] a\n- [ ] c d", 1),
            ("reworded", "- [ ] the first\n- [ ] c d\n- [ ] c d", 1),
            ("all", "", 3),
        ] {
            let problems = kept(&checklist(before), &checklist(after)).err().unwrap_or_default();
            assert_eq!(problems.len(), gone, "{name}: {problems:?}");
        }
        assert_eq!(
            kept(&checklist("- [x] a\n- [ ] a"), &checklist("- [ ] a")),
            Ok(()),
            "the ticked one was removed"
        );
        let problems = kept(&checklist("- [ ] a"), &checklist("")).unwrap_err();
        assert!(problems[0].starts_with("the open item \"a\" is missing: restore it"), "{problems:?}");
    }

    const PIECES: &[&str] = &[
        "- ", "* ", "1. ", "[ ] ", "[x] ", "[X]", "[", "]", "a", "é", "\n", "\r\n", "  ", "\t", "```", "~~~",
        "`", "<!--", "-->", "> ", "# ", "\u{feff}", "\u{1b}", "\u{a0}",
    ];

    fn joined() -> impl Strategy<Value = String> {
        let piece =
            prop_oneof![4 => prop::sample::select(PIECES).prop_map(str::to_owned), 1 => any::<String>()];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_text_has_a_next_item_until_all_are_ticked(text in joined()) {
            let list = checklist(&text);
            prop_assert_eq!(pick(&list, mode(&list, false)).is_none(), is_done(&list, false));
            prop_assert_eq!(kept(&list, &list), Ok(()));
            for story in &list.stories {
                prop_assert!(!story.id.is_empty() && !story.id.contains(['\n', '\u{1b}']), "{:?}", story.id);
            }
        }

        #[test]
        fn boxes_are_read_as_written(
            boxes in prop::collection::vec((any::<bool>(), "[a-z]{1,8}", 0..3_usize, 0..4_usize), 0..20),
            crlf: bool,
        ) {
            let mark = ["-", "*", "+", "7."];
            let end = if crlf { "\r\n" } else { "\n" };
            let line = |(passes, words, depth, kind): &(bool, String, usize, usize)| {
                format!("{}{} [{}] {words}{end}", "  ".repeat(*depth), mark[*kind], if *passes { "x" } else { " " })
            };
            let text: String = boxes.iter().map(line).collect();
            let list = checklist(&text);
            let read: Vec<bool> = list.stories.iter().map(|story| story.passes).collect();
            let written: Vec<bool> = boxes.iter().map(|(passes, ..)| *passes).collect();
            prop_assert_eq!(read, written);
            let fenced = format!("~~~~~~~~~~~~\n{text}~~~~~~~~~~~~\n");
            prop_assert_eq!(checklist(&fenced).stories.len(), 0);
        }
    }

    /// Sizes at which quadratic time would not end within a test run.
    #[test]
    fn a_huge_list_is_read_in_linear_time() {
        for unit in
            ["- [ ] a\n", "<!--", "<!-- -->", "- [ ] a\n <!--`", "```\n", " - [x] b\n  - [ ] c\n", "\t"]
        {
            let text = unit.repeat(2_000_000 / unit.len());
            let list = checklist(&text);
            assert_eq!(kept(&list, &list), Ok(()), "{unit}");
        }
        let deep: String = (0..1500).map(|n| format!("{}- [ ] n{n}\n", " ".repeat(n))).collect();
        assert_eq!(pick(&checklist(&deep), Mode::Implement).map(|story| story.id.as_str()), Some("n1499"));
    }
}
