//! The promise on the last line of a message.

use super::prose::Fence;
use crate::core::text::clean;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Promise {
    Complete,
    Blocked(String),
    Decide(String),
}

const OPEN: &str = "<promise>";
const CLOSE: &str = "</promise>";

/// Returns the promise that is alone on the last non-empty line, outside a code fence.
///
/// `expected` is the configured completion text. A sentence that mentions the tag is no promise, and neither is a tag
/// with an empty reason or a text other than the expected one.
pub fn promise(message: &str, expected: &str) -> Option<Promise> {
    let (before, last) = last_line(message)?;
    let inner = last.strip_prefix(OPEN)?.strip_suffix(CLOSE)?.trim();
    if inner.contains(OPEN) || inner.contains(CLOSE) {
        return None;
    }
    // Whether indented marks belong to a list is unknown: a fence under either reading excludes the promise.
    if ends_inside(Fence::default(), before) || ends_inside(Fence::outside_lists(), before) {
        return None;
    }
    if inner == clean::line(expected) {
        return Some(Promise::Complete);
    }
    let (word, rest) = inner.split_once(':')?;
    let rest = rest.trim().to_owned();
    match word.trim() {
        _ if rest.is_empty() => None,
        "BLOCKED" => Some(Promise::Blocked(rest)),
        "DECIDE" => Some(Promise::Decide(rest)),
        _ => None,
    }
}

/// Returns the text before the last visible line, and that line, cleaned.
fn last_line(message: &str) -> Option<(&str, String)> {
    let mut rest = message;
    while !rest.is_empty() {
        let start = rest.trim_end_matches('\n').rfind('\n').map_or(0, |at| at + 1);
        let line = clean::line(&rest[start..]);
        rest = &rest[..start];
        if !line.is_empty() {
            return Some((rest, line));
        }
    }
    None
}

/// Returns whether a fence opened in `text` is still open at its end.
fn ends_inside(mut fence: Fence, text: &str) -> bool {
    // Two splits by one character each are much faster than one split by two.
    for line in text.split('\n').flat_map(|line| line.split('\r')) {
        fence.covers(line);
    }
    fence.is_open()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_line_alone_is_a_promise() {
        let complete = Some(Promise::Complete);
        let blocked = |s: &str| Some(Promise::Blocked(s.into()));
        let cases: &[(&str, &str, Option<Promise>)] = &[
            ("alone", "<promise>COMPLETE</promise>", complete.clone()),
            ("after prose", "All tests pass.\n\n<promise>COMPLETE</promise>\n", complete.clone()),
            ("white space folded", "done\n  <promise>  COMPLETE\t</promise>  \n\n", complete.clone()),
            ("carriage return", "done\r\n<promise>COMPLETE</promise>\r\n", complete.clone()),
            (
                "the second of two tags",
                "<promise>DONE</promise>\nand\n<promise>COMPLETE</promise>",
                complete.clone(),
            ),
            ("after a closed fence", "```\ncode\n```\n<promise>COMPLETE</promise>", complete.clone()),
            ("inline code before", "```cargo test``` passes\n<promise>COMPLETE</promise>", complete.clone()),
            ("control character", "ok\u{7}\n<promise>COMP\u{1b}LETE</promise>", complete.clone()),
            ("blocked", "<promise>BLOCKED: no key </promise>", blocked("no key")),
            ("blocked with colons", "<promise>BLOCKED:see http://x:1</promise>", blocked("see http://x:1")),
            ("decide", "x\n<promise>DECIDE:A or B?</promise>", Some(Promise::Decide("A or B?".into()))),
            ("mentioned in prose", "I will print <promise>COMPLETE</promise> when finished", None),
            ("sentence around it", "Now: <promise>COMPLETE</promise>", None),
            ("not the last line", "<promise>COMPLETE</promise>\nNext I will test.", None),
            ("inside a fence", "```\n<promise>COMPLETE</promise>", None),
            ("inside a tilde fence", "~~~text\n<promise>COMPLETE</promise>", None),
            ("fence quoting a fence", "````\n```\n<promise>COMPLETE</promise>", None),
            ("a quoted mark is too deep to close", "```\n    ```\n<promise>COMPLETE</promise>", None),
            ("a mark too deep to open", "x\n\n    ```\n\n```\n<promise>COMPLETE</promise>", None),
            ("carriage returns alone", "~~~\r\r\n~~~\r\r\n~~~\n<promise>COMPLETE</promise>", None),
            ("a mark with odd white space", "```\n```\u{a0}\n<promise>COMPLETE</promise>", None),
            (
                "after a fence behind a list mark",
                "1. ```sh\n   x\n   ```\n\n- ```\n  y\n  ```\n<promise>COMPLETE</promise>",
                complete.clone(),
            ),
            (
                "a fence that its item's end closed, and another",
                "1. ```\n```\n<promise>COMPLETE</promise>",
                None,
            ),
            (
                "after a fence in a list",
                "1. a\n   - b\n\n     ```\n     x\n     ```\n\n<promise>COMPLETE</promise>",
                complete.clone(),
            ),
            ("inline code", "`<promise>COMPLETE</promise>`", None),
            ("quotation", "> <promise>COMPLETE</promise>", None),
            ("two tags on a line", "<promise>A</promise><promise>COMPLETE</promise>", None),
            ("opened again within", "<promise>BLOCKED:no <promise> here</promise>", None),
            ("closed within", "<promise>BLOCKED:no </promise> here</promise>", None),
            ("other text", "<promise>DONE</promise>", None),
            ("other case", "<promise>complete</promise>", None),
            ("empty reason", "<promise>BLOCKED:  </promise>", None),
            ("no reason", "<promise>BLOCKED</promise>", None),
            ("empty", "", None),
            ("cut off", "<promise>COMPLETE", None),
        ];
        for (name, message, expected) in cases {
            assert_eq!(&promise(message, "COMPLETE"), expected, "{name}");
        }
    }

    #[test]
    fn the_expected_text_may_hold_anything() {
        for text in ["it's \"done\"", "a  b", "[x] (y).*", "BLOCKED:never", "$(rm)"] {
            assert_eq!(
                promise(&format!("ok\n<promise>{text}</promise>"), text),
                Some(Promise::Complete),
                "{text}"
            );
        }
    }
}
