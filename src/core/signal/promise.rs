//! The promise tag at the end of a message.

use super::ignored::Ignored;
use super::prose::{self, Fence};
use super::status;
use crate::core::text::clean;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Promise {
    Complete,
    Blocked(String),
    Decide(String),
}

const OPEN: &str = "<promise>";
const CLOSE: &str = "</promise>";
/// Emphasis and inline code.
const MARKS: [char; 3] = ['*', '_', '`'];

/// Returns the promise in a message, or why the tag in it does not count; nothing without a tag.
///
/// It counts if it is the last of the agent's own words, apart from a status block, and alone on its line; BLOCKED and
/// DECIDE may span lines. `expected` is the configured completion text.
pub fn promise(message: &str, expected: &str) -> Option<Result<Promise, Ignored>> {
    // Most messages have none, and are then not read line by line.
    message.contains(OPEN).then_some(())?;
    // Whether indented marks belong to a list is unknown: the tag counts if it does under both readings.
    let first = read(&lines(message, Fence::default()), expected)?;
    let second = read(&lines(message, Fence::outside_lists()), expected)?;
    Some(first.and_then(|promise| second.map(|_| promise)))
}

/// Where a line stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The agent's own words.
    Prose,
    CodeBlock,
    Quotation,
    StatusBlock,
}

struct Line {
    /// Cleaned.
    text: String,
    place: Place,
}

fn lines(message: &str, mut fence: Fence) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut block = None;
    // Two splits by one character each are much faster than one split by two.
    for text in message.split('\n').flat_map(|line| line.split('\r')) {
        let place = match fence.covers(text) {
            true => Place::CodeBlock,
            false if prose::is_quotation(text) => Place::Quotation,
            false => Place::Prose,
        };
        match status::marker(prose::item(text).0).filter(|_| place == Place::Prose) {
            Some(status::NAME) => block = Some(lines.len()),
            Some(status::END) if block.is_some() => {
                let from = block.take().unwrap_or_default();
                lines[from..].iter_mut().for_each(|line| line.place = Place::StatusBlock);
                lines.push(Line { text: String::new(), place: Place::StatusBlock });
                continue;
            }
            _ => {}
        }
        lines.push(Line { text: clean::line(text), place });
    }
    if fence.is_open() {
        // The message was cut off, or the code block reaches to its end: nothing before it is the end.
        lines.push(Line { text: CUT_OFF.into(), place: Place::Prose });
    }
    lines
}

/// Stands for what would follow a code block that was never closed.
const CUT_OFF: &str = "…";

fn is_own(line: &Line) -> bool {
    line.place == Place::Prose && !line.text.is_empty()
}

fn read(lines: &[Line], expected: &str) -> Option<Result<Promise, Ignored>> {
    let last = lines.iter().rposition(is_own);
    let tag = last.and_then(|last| {
        let begins = |line: &Line| is_own(line) && line.text.trim_start_matches(MARKS).starts_with(OPEN);
        let first = lines[..=last].iter().rposition(begins)?;
        let text: Vec<&str> = lines[first..=last].iter().map(|line| line.text.as_str()).collect();
        Some((inner(&clean::line(&text.join(" ")))?, first < last))
    });
    let Some((inner, spans_lines)) = tag else { return misplaced(lines).map(Err) };
    Some(if inner == clean::line(expected) {
        if spans_lines { Err(Ignored::TagOverLines) } else { Ok(Promise::Complete) }
    } else {
        let (word, reason) = inner.split_once(':').unwrap_or((&inner, ""));
        let reason = reason.trim().to_owned();
        match word.trim() {
            "BLOCKED" | "DECIDE" if reason.is_empty() => Err(Ignored::TagWithoutReason),
            "BLOCKED" => Ok(Promise::Blocked(reason)),
            "DECIDE" => Ok(Promise::Decide(reason)),
            _ => Err(Ignored::TagWithOtherText { expected: clean::line(expected), text: inner }),
        }
    })
}

/// Returns what is between the tags of a text that is one tag, with emphasis or inline code around it.
fn inner(text: &str) -> Option<String> {
    let body = text.trim_matches(MARKS);
    let inner = body.strip_prefix(OPEN)?.strip_suffix(CLOSE)?;
    let marks = text.len() - text.trim_start_matches(MARKS).len();
    let mirrored = text[..marks].chars().eq(text[marks + body.len()..].chars().rev());
    (mirrored && !inner.contains(OPEN) && !inner.contains(CLOSE)).then(|| inner.trim().to_owned())
}

/// Returns why the last tag of a message is no signal; nothing if the message only names the tag.
fn misplaced(lines: &[Line]) -> Option<Ignored> {
    let at = lines.iter().rposition(|line| line.text.contains(OPEN))?;
    let begins = lines[at].text.trim_start_matches(MARKS).starts_with(OPEN);
    let end = lines[at..].iter().position(|line| line.text.contains(CLOSE)).map(|lines| at + lines);
    if end.is_none() && !begins {
        return None;
    }
    Some(match (lines[at].place, end) {
        (Place::CodeBlock, _) => Ignored::TagInCodeBlock,
        (Place::Quotation, _) => Ignored::TagInQuotation,
        (_, None) => Ignored::TagNotClosed,
        (_, Some(end)) => {
            let alone = begins && lines[end].text.trim_end_matches(MARKS).ends_with(CLOSE);
            let follows = lines[end + 1..].iter().any(is_own);
            if alone && follows { Ignored::TagNotLast } else { Ignored::TagNotAlone }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &str = "<promise>COMPLETE</promise>";
    const BLOCK: &str = "---RALPH_STATUS---\nSTATUS: COMPLETE\n---END_RALPH_STATUS---";

    fn read(message: &str) -> Option<Result<Promise, Ignored>> {
        promise(message, "COMPLETE")
    }

    #[test]
    fn the_tag_counts_as_the_last_of_the_agents_own_words() {
        let cases: &[(&str, String)] = &[
            ("alone", TAG.into()),
            ("after prose", format!("All tests pass.\n\n{TAG}\n")),
            ("white space folded", "done\n  <promise>  COMPLETE\t</promise>  \n\n".into()),
            ("carriage return", format!("done\r\n{TAG}\r\n")),
            ("the second of two tags", format!("<promise>DONE</promise>\nand\n{TAG}")),
            ("after a closed fence", format!("```\ncode\n```\n{TAG}")),
            ("inline code before", format!("```cargo test``` passes\n{TAG}")),
            ("control character", "ok\u{7}\n<promise>COMP\u{1b}LETE</promise>".into()),
            (
                "after a fence behind a list mark",
                format!("1. ```sh\n   x\n   ```\n\n- ```\n  y\n  ```\n{TAG}"),
            ),
            ("after a fence in a list", format!("1. a\n   - b\n\n     ```\n     x\n     ```\n\n{TAG}")),
            ("behind a status block", format!("Done.\n{BLOCK}\n\n{TAG}")),
            ("before a status block", format!("Done.\n{TAG}\n\n{BLOCK}\n")),
            ("between two status blocks", format!("{BLOCK}\n{TAG}\n{BLOCK}")),
            ("before decorated markers", format!("{TAG}\n**---RALPH_STATUS---**\n- ---END_RALPH_STATUS---")),
            ("before a status block in a fence", format!("{TAG}\n```\n{BLOCK}\n```\n")),
            ("before a quotation", format!("{TAG}\n> as you asked")),
            ("bold", format!("Done.\n**{TAG}**")),
            ("emphasis", format!("_{TAG}_")),
            ("inline code", format!("Done.\n`{TAG}`")),
            ("bold inline code", format!("**`{TAG}`**\n{BLOCK}")),
            ("three back-quotes on one line", format!("```{TAG}```")),
        ];
        for (name, message) in cases {
            assert_eq!(read(message), Some(Ok(Promise::Complete)), "{name}");
        }
    }

    #[test]
    fn blocked_and_decide_may_span_lines() {
        let blocked = |reason: &str| Some(Ok(Promise::Blocked(reason.into())));
        let decide = |question: &str| Some(Ok(Promise::Decide(question.into())));
        for (message, expected) in [
            ("<promise>BLOCKED: no key </promise>", blocked("no key")),
            ("<promise>BLOCKED:see http://x:1</promise>", blocked("see http://x:1")),
            ("x\n<promise>DECIDE:A or B?</promise>", decide("A or B?")),
            ("x\n<promise>DECIDE:\n  A\n\nor B?\n</promise>\n", decide("A or B?")),
            ("<promise>BLOCKED:no\n  key</promise>", blocked("no key")),
            ("**<promise>BLOCKED:no\nkey</promise>**", blocked("no key")),
            ("<promise>\nBLOCKED: no key\n</promise>", blocked("no key")),
            ("<promise>BLOCKED:it fails:\n```\nE1\n```\n</promise>", blocked("it fails: ``` E1 ```")),
        ] {
            assert_eq!(read(message), expected, "{message}");
            let with_block = format!("{message}\n{BLOCK}");
            assert_eq!(read(&with_block), expected, "{with_block}");
        }
    }

    #[test]
    fn a_tag_that_does_not_count_says_why() {
        use Ignored::*;
        let other = |text: &str| Some(TagWithOtherText { text: text.into(), expected: "COMPLETE".into() });
        let cases: &[(&str, String, Option<Ignored>)] = &[
            ("mentioned in prose", format!("I will print {TAG} when finished"), Some(TagNotAlone)),
            ("sentence around it", format!("Now: {TAG}"), Some(TagNotAlone)),
            ("list item", format!("- {TAG}"), Some(TagNotAlone)),
            ("list item with a star", format!("* {TAG}"), Some(TagNotAlone)),
            ("emphasis on one side", format!("**{TAG}"), Some(TagNotAlone)),
            ("two tags on a line", format!("<promise>A</promise>{TAG}"), Some(TagNotAlone)),
            ("opened again within", "<promise>BLOCKED:no <promise> here</promise>".into(), Some(TagNotAlone)),
            ("closed within", "<promise>BLOCKED:no </promise> here</promise>".into(), Some(TagNotAlone)),
            ("not the last line", format!("{TAG}\nNext I will test."), Some(TagNotLast)),
            ("before a block and text", format!("{TAG}\n{BLOCK}\nNext I will test."), Some(TagNotLast)),
            ("before a block that was cut off", format!("{TAG}\n---RALPH_STATUS---\nSTAT"), Some(TagNotLast)),
            ("before a fence that was cut off", format!("{TAG}\n```\nlog"), Some(TagNotLast)),
            ("over lines before text", "<promise>BLOCKED:a\nb</promise>\nc".into(), Some(TagNotLast)),
            (
                "before text that may be in a list's fence",
                format!("{TAG}\n1. ```\n```\nNext I will test."),
                Some(TagNotLast),
            ),
            ("inside a fence", format!("```\n{TAG}\n```"), Some(TagInCodeBlock)),
            ("inside an open fence", format!("```\n{TAG}"), Some(TagInCodeBlock)),
            ("inside a tilde fence", format!("~~~text\n{TAG}"), Some(TagInCodeBlock)),
            ("fence quoting a fence", format!("````\n```\n{TAG}"), Some(TagInCodeBlock)),
            ("a quoted mark is too deep to close", format!("```\n    ```\n{TAG}"), Some(TagInCodeBlock)),
            ("a mark too deep to open", format!("x\n\n    ```\n\n```\n{TAG}"), Some(TagInCodeBlock)),
            ("carriage returns alone", format!("~~~\r\r\n~~~\r\r\n~~~\n{TAG}"), Some(TagInCodeBlock)),
            ("a mark with odd white space", format!("```\n```\u{a0}\n{TAG}"), Some(TagInCodeBlock)),
            (
                "a fence that its item's end closed, and another",
                format!("1. ```\n```\n{TAG}"),
                Some(TagInCodeBlock),
            ),
            ("quotation", format!("> {TAG}"), Some(TagInQuotation)),
            ("inside the status block", BLOCK.replace("STATUS: COMPLETE", TAG), Some(TagNotAlone)),
            ("completion over lines", "<promise>\nCOMPLETE\n</promise>".into(), Some(TagOverLines)),
            ("other text", "<promise>DONE</promise>".into(), other("DONE")),
            ("other case", "<promise>complete</promise>".into(), other("complete")),
            ("empty reason", "<promise>BLOCKED:  </promise>".into(), Some(TagWithoutReason)),
            ("no reason", "<promise>BLOCKED</promise>".into(), Some(TagWithoutReason)),
            ("cut off", "<promise>COMPLETE".into(), Some(TagNotClosed)),
            ("named only", "I know the `<promise>` tag.".into(), None),
            ("empty", String::new(), None),
        ];
        for (name, message, expected) in cases {
            assert_eq!(read(message), expected.clone().map(Err), "{name}");
        }
    }

    #[test]
    fn the_expected_text_may_hold_anything() {
        for text in ["it's \"done\"", "a  b", "[x] (y).*", "BLOCKED:never", "$(rm)"] {
            assert_eq!(
                promise(&format!("ok\n<promise>{text}</promise>"), text),
                Some(Ok(Promise::Complete)),
                "{text}"
            );
        }
    }
}
